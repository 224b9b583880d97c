"""A loop over unknown branches whose rounds change their own branch: one ``cf.map``, in which one round stands for all.

A round begins with symbols for what is its own: its number, the context of its branch, what differs there. Nothing of
it may reach another round. What it leaves in its branch becomes a list of the graph; so does what it puts into a list
of the program, one text in each round, and what its names are bound to. How many ids it takes on the paths of others is
measured in a round of its own, after which each begins with a multiple of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.choosing import either
from lmc.frontend.columns import Column, Columns, as_list
from lmc.frontend.growing import freeze, is_value_list
from lmc.frontend.id_steps import IdSteps
from lmc.frontend.id_values import holes_of
from lmc.frontend.meeting import is_scalar
from lmc.frontend.proxy import Grown, Proxy, Symbol, symbol
from lmc.frontend.regions import Ended
from lmc.frontend.same_values import are_same
from lmc.frontend.unclear import ABSENT, Maybe, Unclear, one_or_unsure
from lmc.frontend.unknown_branches import SHAPE, BranchItems
from lmc.frontend.ways import Traced
from lmc.ir.core import Value
from lmc.ir.region_ops import MapOp, YieldOp
from lmc.ir.types import BOOL, CTX, FLOAT, INT, TEXT, ListType, Type

if TYPE_CHECKING:
    from lmc.frontend.core import Core
    from lmc.frontend.recorder import Recorder

_REMEDY = f"do in one loop what branches need, and collect in another; {SHAPE}"


class BranchRounds:
    """Such a loop over ``items`` of that ``length`` under construction; see ``Carrying``, in whose place it stands.

    ``entry`` are the values of ``names`` before it, the last of which is the number of a round.
    """

    endless = False

    def __init__(
        self,
        recorder: Recorder,
        names: tuple[str, ...],
        entry: tuple[Any, ...],
        *,
        items: Sequence[BranchItems],
        length: Any,
    ) -> None:
        self._recorder = recorder
        self._names = names
        self._entry = entry
        self._begun = [
            before if _is_object(before) else _carried(name) for name, before in zip(names, entry, strict=True)
        ]
        self._items = items
        self._first = items[0].branches
        self._length = length
        self._steps = IdSteps(recorder, _REMEDY)
        self._columns = Columns(recorder)
        self._guard: Traced | None = None
        self._returns = recorder.returns
        self._check()
        self.unsettled = False
        self.results: tuple[Any, ...] = ()

    def _check(self) -> None:
        recorder = self._recorder
        for found in self._items:
            found.branches.check_changed_here()
            if not self._are_same(found.branches.size, self._first.size):
                raise recorder.stop("branches of several forks are changed in one loop", SHAPE)
        self._covers = self._are_same(self._length, self._first.size)

    def _are_same(self, left: Any, right: Any) -> bool:
        return are_same(self._recorder, *map(self._literal_or_value, (left, right)))

    def _literal_or_value(self, value: Any) -> Any:
        return self._recorder.value_of(value) if type(value) is Proxy else value

    # A round

    def enter(self) -> tuple[Any, ...]:
        """A round begins: what the names are then, and its number."""
        recorder = self._recorder
        recorder.step()
        fresh = recorder.builder.fresh_name
        index = Value(fresh(), INT)
        self._lists: list[Value] = []
        places: list[Value] = []

        def place(values: Value) -> Value:
            kind = values.type
            assert isinstance(kind, ListType)
            self._lists.append(values)
            places.append(Value(fresh(), kind.element))
            return places[-1]

        begun: list[tuple[BranchItems, Value, dict[tuple[str, str], Any], dict[str, Any]]] = []
        for found in self._items:
            branches = found.branches
            context = branches.template.context if branches.contexts is None else place(branches.contexts)
            entries = {key: column.of(tuple(map(place, column.lists))) for key, column in branches.columns.items()}
            numbers = {
                name: Proxy(Symbol(recorder, INT, place(count), "how often a name was used"))
                if type(count) is Value
                else count
                for name, count in branches.numbers.items()
            }
            begun.append((found, context, entries, numbers))
        if not self._lists:
            numbered = recorder.value_of(recorder.pure("range", (self._first.size,), total=True))
            self._lists, places = [numbered], [Value(fresh(), INT)]
        recorder.regions.open([index, *places])
        number = Proxy(Symbol(recorder, INT, index, "the number of a branch"))
        self._before: list[Core] = []
        for found, context, entries, numbers in begun:
            found.entered = found.branches.branch(number, context, entries)
            self._before.append(found.entered.core.like())
            for name, count in numbers.items():
                key = (name, holes_of(found.entered.path))
                recorder.regions.touch_count(key)
                recorder.counts[key] = count
        self._steps.enter(number)
        if not self._covers:
            self._guard = Traced(recorder, recorder.pure("lt", (number, self._length), total=True), -1)
            self._guard.enter(self._names, tuple(self._begun))
        return (*self._begun[:-1], number)

    def joined(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of names at the end of a round, where it may be none of a branch that the items do not reach."""
        if self._guard is None:
            return values
        self._guard.turn(values)
        return self._guard.join(tuple(self._begun))

    def close(self, values: tuple[Any, ...], flag: Any) -> bool:  # noqa: ARG002
        """A round is over, with ``values`` of the names. Gives whether the loop is done: it is an op then."""
        recorder = self._recorder
        if recorder.returns > self._returns:
            raise recorder.stop("a round of a loop over branches returns", "return behind the loop")
        ended = recorder.regions.leave()
        if self._rebinds(values) | self._steps.measure(ended):
            return False
        calls = {base: count for base, count in ended.counts.items() if "/@" in base[0]}
        for base, count in calls.items():
            recorder.regions.touch_count(base)
            recorder.counts[base] = count
        recorder.regions.reopen(ended.region)
        lists = self._grown_lists(ended)
        changed = [self._changed(found, before) for found, before in zip(self._items, self._before, strict=True)]
        counts = [self._numbers(found, ended) for found in self._items]
        names = [
            self._columns.of(value) if is_scalar(value) and value is not begun else None
            for value, begun in zip(values, self._begun, strict=True)
        ]
        recorder.regions.close()
        recorder.emit_region_op(
            MapOp,
            self._columns.lists,
            lists=tuple(self._lists),
            strict=False,
            body=ended.region.block(_yield(self._columns.yields)),
        )
        self._put(changed, counts, lists)
        self._steps.leave(self._length)
        self.results = tuple(
            before if value is begun else self._last(column, name, before)
            for before, value, begun, column, name in zip(
                self._entry, values, self._begun, names, self._names, strict=True
            )
        )
        return True

    # What a round has left

    def _rebinds(self, values: tuple[Any, ...]) -> bool:
        """Whether another round is to be traced, because a name that held an object is bound to something else."""
        again = False
        for index, (value, begun) in enumerate(zip(values, self._begun, strict=True)):
            if value is not begun and type(begun) is not Unclear:
                self._begun[index] = _carried(self._names[index])
                again = True
        return again

    def _grown_lists(self, ended: Ended) -> list[tuple[Any, list[Column]]]:
        """The lists that the round has put something into, with what."""
        found: list[tuple[Any, list[Column]]] = []
        for number, (held, content) in ended.objects.items():
            before: Any = ended.region.touched[number][1]
            new: Any = content[len(before) :] if type(held) is list else []
            kept = type(held) is list and all(one is other for one, other in zip(before, content, strict=False))
            if not (kept and len(content) >= len(before) and is_value_list(new)) or any(
                type(part) is Grown for part in new
            ):
                raise self._recorder.stop(
                    "a round of a loop over branches changes a state, a list or a dict that other rounds see", _REMEDY
                )
            freeze(self._recorder, new)
            found.append((held, [self._columns.of(part) for part in new]))
        return found

    def _changed(self, found: BranchItems, before: Core) -> tuple[Core, Value | None, dict[tuple[str, str], Any]]:
        """What a branch is now, the list of contexts where it has another, and the columns of what differs."""
        assert found.entered is not None
        core = found.entered.core.like()
        contexts = None if core.context == before.context else self._columns.listed(core.context, CTX)
        columns: dict[tuple[str, str], Any] = {}
        for what in ("variables", "metas"):
            old, new = getattr(before, what), getattr(core, what)
            for name in dict.fromkeys((*old, *new)):
                value = new.get(name, ABSENT)
                if value is not old.get(name, ABSENT):
                    columns[(what, name)] = self._columns.variable(value, f"the variable {name!r}")
        return core, contexts, columns

    def _numbers(self, found: BranchItems, ended: Ended) -> dict[str, Any]:
        """How many ids there are now on each base of a branch."""
        assert found.entered is not None
        holes = holes_of(found.entered.path)
        return {
            base[0]: self._columns.listed(self._columns.ir(count), INT) if type(count) is Proxy else count
            for base, count in ended.counts.items()
            if base[1] == holes and "/@" not in base[0]
        }

    # Behind the loop

    def _put(
        self,
        changed: Sequence[tuple[Core, Value | None, Mapping[tuple[str, str], Any]]],
        counts: Sequence[dict[str, Any]],
        lists: Sequence[tuple[Any, list[Column]]],
    ) -> None:
        for found, (core, contexts, columns), numbers in zip(self._items, changed, counts, strict=True):
            branches = found.branches
            branches.contexts = contexts or branches.contexts
            branches.numbers.update(numbers)
            template = branches.template
            template.chat, template.bare, template.unsure = core.chat, core.bare, core.unsure
            template.answer, template.role = one_or_unsure(template.answer, core.answer), core.role
            for (what, name), column in columns.items():
                branches.columns.pop((what, name), None)
                getattr(template, what).pop(name, None)
                if type(column) is Column:
                    branches.columns[(what, name)] = column
                elif column is not ABSENT:
                    getattr(template, what)[name] = column
            found.entered = None
        for held, columns in lists:
            self._recorder.touch(held)
            made = [Grown(as_list(column)) for column in columns]
            held.extend(made if len(made) < 2 else [self._alternating(columns)])

    def _alternating(self, columns: Sequence[Column]) -> Grown:
        recorder = self._recorder
        kinds = {column.lists[0].type for column in columns}
        given = kinds.pop() if len(kinds) == 1 else None
        return Grown(recorder.pure("interleaved", tuple(map(as_list, columns)), total=True, gives=given))

    def _last(self, column: Column | None, name: str, before: Any) -> Any:
        """The value of a name behind the loop: from the last round, or without a round the one ``before``."""
        recorder = self._recorder
        if column is None or not self._covers or name == self._names[-1]:
            return Unclear(repr(name))
        like = column.like[0]
        items = recorder.pure("add", ([_DEFAULTS.get(like.type)], as_list(column)), total=True)
        found = recorder.pure("getitem", (items, -1), total=True)
        last = Proxy(replace(symbol(found), volatile=like.volatile, constant=like.constant, scalar=like.scalar))
        bound = Maybe(recorder.pure("lt", (0, self._length), total=True), last)
        return bound if type(before) in (Unclear, Maybe) else either(recorder, bound, before, repr(name))


# Stand before the items of a list, so that an empty one has a last item, which nothing reads.
_DEFAULTS: dict[Type, Any] = {TEXT: "", INT: 0, FLOAT: 0.0, BOOL: False}


def _is_object(value: Any) -> bool:
    """Whether it may be a state, a list or the like, which a name can go on standing for."""
    return value is not ABSENT and type(value) not in (Unclear, Maybe) and not is_scalar(value)


def _carried(name: str) -> Unclear:
    cause = (
        f"{name!r} is taken over from one round of a loop over branches to the next, and rounds run at the same time"
    )
    return Unclear(repr(name), (cause, _REMEDY))


def _yield(values: Sequence[Any]) -> Any:
    make: Any = YieldOp
    return make(values=tuple(values))
