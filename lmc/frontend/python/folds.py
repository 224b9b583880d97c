"""Functions that take all items of an iterable: ``sorted``, ``min``, ``max``, ``sum``, ``any``, ``all``."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from lmc.frontend.control.conditions import adopt, branch, scope
from lmc.frontend.emit.known import concrete, known_value
from lmc.frontend.emit.objects import looked_into
from lmc.frontend.emit.operands import pure, type_of_value
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import (
    GeneratorCell,
    ListCell,
    ObjectCell,
)
from lmc.frontend.heap.reach import reached_from
from lmc.frontend.heap.state import Place
from lmc.frontend.heap.values import (
    FALSE,
    NONE,
    ZERO,
    Abstract,
    BoundMethod,
    Const,
    Function,
    Ref,
    Symbol,
)
from lmc.frontend.machine.exits import NORMAL, Exit, Left, Way
from lmc.frontend.python.classes import ordering_keys
from lmc.frontend.python.items import are_numbered, one_of
from lmc.frontend.python.iteration import Counted, items_in_any_order, items_of, known_items
from lmc.frontend.python.library import polyfills
from lmc.frontend.python.operators import binary, run_now, truth
from lmc.frontend.source.nondeterminism import has_one_order
from lmc.ir.core import Block, Effect, walk
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, Type, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
T = TypeVar("T")
Handler = Callable[..., Abstract]


def sorted_items(machine: Machine, given: Abstract, key: Abstract = NONE, reverse: Abstract = FALSE) -> Abstract:
    """``sorted(given, key=…, reverse=…)``."""
    keyless = isinstance(key, Const) and key.value is None
    items = _items_by_value(machine, given) if keyless else items_of(machine, given)
    if items is None and isinstance(given, Symbol):
        items = Counted(pure(machine, "list_from", (given,)))
    elif items is None:
        items = known_items(machine, given, "it is sorted")
    if isinstance(items, Counted):
        if not keyless:
            return machine.list_of(
                pure(machine, "sorted_by", (items.value, _keys(machine, items.value, key)), {"reverse": reverse})
            )
        return machine.list_of(pure(machine, "sorted", (items.value,), {"reverse": reverse}))
    if keyless:
        ordering = ordering_keys(machine, items)
        keyless = ordering is None
        keys = items if ordering is None else ordering
    else:
        keys = [machine.rules.call(key, [item], {}) for item in items]
    if len(items) < 2:
        return machine.new(ListCell(tuple(items)))
    plain = [machine.plain(each) for each in keys]
    if all(each is not None for each in plain) and isinstance(known_value(machine, reverse), bool):
        values = [each[0] for each in plain if each is not None]
        try:
            order = sorted(range(len(values)), key=values.__getitem__, reverse=concrete(machine, reverse))
        except TypeError as error:
            raise_new(machine, TypeError, *error.args)
        return machine.new(ListCell(tuple(items[index] for index in order)))
    if keyless:
        return machine.list_of(pure(machine, "sorted", (machine.new(ListCell(tuple(items))),), {"reverse": reverse}))
    if are_numbered(machine, items):
        numbers = pure(machine, "sorted_by", _numbered(machine, keys), {"reverse": reverse}, gives=list_of(INT))
        order = [pure(machine, "getitem", (numbers, Const(index)), raises=False) for index in range(len(items))]
        return machine.new(ListCell(tuple(one_of(machine, items, each) for each in order)))
    listed = [machine.new(ListCell(tuple(part))) for part in (items, keys)]
    return machine.list_of(pure(machine, "sorted_by", listed, {"reverse": reverse}))


def _items_by_value(machine: Machine, given: Abstract) -> list[Abstract] | Counted | None:
    """The items of what gives the same in whatever order they come, if all are texts or all are whole numbers."""
    cell = machine.cell(given)
    if isinstance(cell, ObjectCell) and not cell.ordered and cell.domain is not None:
        return Counted(pure(machine, "list_from", (looked_into(machine, given),), gives=list_of(TEXT)))
    known = machine.plain(given)
    return (items_in_any_order if known and has_one_order(known[0]) else items_of)(machine, given)


def _numbered(machine: Machine, keys: Sequence[Abstract]) -> list[Abstract]:
    """The numbers of items, which take their place in the run, and their keys."""
    numbers = tuple(Const(number) for number in range(len(keys)))
    return [machine.new(ListCell(part)) for part in (numbers, tuple(keys))]


def _keys(machine: Machine, items: Abstract, key: Abstract) -> Abstract:
    """The keys of items that only a run counts, in a list."""
    keys = machine.new(ListCell(()))

    def note(item: Abstract) -> None:
        machine.rules.call(BoundMethod("append", keys), [machine.rules.call(key, [item], {})], {})

    machine.rules.for_each(items, note)
    return keys


class InterleavedError(Exception):
    """Python takes an item, then its key, then the next item: what these do can be seen between them."""


def extreme(name: str) -> Handler:
    """``min`` or ``max``. Keys are taken of all items at once, except where the run could see the difference."""
    function = getattr(builtins, name)
    better = operator.gt if name == "max" else operator.lt

    def extreme(machine: Machine, *given: Abstract, key: Abstract = NONE, **default: Abstract) -> Abstract:
        if not given:
            raise_new(machine, TypeError, f"{name} expected at least 1 argument, got 0")
        if isinstance(key, Const) and key.value is None:
            return of_items(machine, given, None, default)
        if len(given) > 1:
            return of_items(machine, given, key, default)
        args = (Const(name), Const(better), *given, key, *default.values())
        return machine.attempt(
            lambda: of_items(machine, given, key, default),
            lambda: machine.rules.inline(polyfills.extreme, args, {}),
            InterleavedError,
        )

    def of_items(machine: Machine, given: Args, key: Abstract | None, default: Mapping[str, Abstract]) -> Abstract:
        first = given[0]
        is_lazy = isinstance(machine.cell(first), GeneratorCell)
        read = _items_by_value if key is None else items_of
        items: list[Abstract] | Counted | None = None
        if is_lazy and key is not None:
            items = _unseen(machine, key, lambda: read(machine, first))
        else:
            items = list(given) if len(given) > 1 else read(machine, first)
        if items is None and not isinstance(first, Symbol):
            items = known_items(machine, first, f"its {name} is taken")
        value = items.value if isinstance(items, Counted) else first
        if key is None:
            if isinstance(items, list):
                return among(machine, items, ordering_keys(machine, items) or items, default)
            return pure(machine, name, (value,), default)

        def keys() -> list[Abstract] | Abstract:
            if isinstance(items, list):
                return [machine.rules.call(key, [item], {}) for item in items]
            return _keys(machine, value, key)

        before = machine.cell(first), machine.writes, machine.objects.changes
        found = _quiet(machine, keys) if is_lazy else keys()
        after = machine.cell(first), machine.writes, machine.objects.changes
        if len(given) == 1 and (before[0] is not after[0] or (not isinstance(items, list) and before != after)):
            raise InterleavedError
        if isinstance(found, Abstract):
            return pure(machine, f"{name}_by", (value, found, *default.values()))
        assert isinstance(items, list)
        return among(machine, items, found, default)

    def among(
        machine: Machine, items: list[Abstract], keys: list[Abstract], default: Mapping[str, Abstract]
    ) -> Abstract:
        if not items:
            if default:
                return default["default"]
            raise_new(machine, ValueError, f"{name}() arg is an empty sequence")
        if len(items) == 1:
            return items[0]
        plain = [machine.plain(each) for each in keys]
        if all(each is not None for each in plain):
            values = [each[0] for each in plain if each is not None]
            try:
                index = function(range(len(values)), key=values.__getitem__)
            except TypeError as error:
                raise_new(machine, TypeError, *error.args)
            return items[index]
        if keys is items:
            return pure(machine, name, items)
        if are_numbered(machine, items):
            best = pure(machine, f"{name}_by", _numbered(machine, keys), gives=INT)
            return one_of(machine, items, best)
        listed = [machine.new(ListCell(tuple(part))) for part in (items, keys)]
        return pure(machine, f"{name}_by", listed)

    return extreme


def _unseen(machine: Machine, key: Abstract, take: Callable[[], T]) -> T:
    """Return ``take()``, the items. Raises ``InterleavedError`` where that changes what a function ``key`` reads."""
    base = machine.state
    machine.state = base.child()
    found = take()
    changed = machine.state.changed_since(base)
    if isinstance(key, Function):
        used = {node.id for node in ast.walk(key.definition.node) if isinstance(node, ast.Name)}
        read: set[Place] = {(frame, name) for frame in key.frames for name in used}
        held = [machine.state.get(place) for place in read if place in machine.state]
        reached = reached_from(machine.state, [each for each in held if isinstance(each, Abstract)])
    else:
        read, reached = set(), reached_from(machine.state, [key])
    if any(place in read or (place[0] if type(place) is tuple else place) in reached for place in changed):
        raise InterleavedError
    base.absorb(machine.state)
    machine.state = base
    return found


def _quiet(machine: Machine, run: Callable[[], T]) -> T:
    """Return ``run()``. Raises ``InterleavedError`` where that does more than compute: changes, effects, exceptions."""
    builder, base, watermark = machine.graph.builder, machine.state, machine.watermark()
    count = len(builder.ops)
    machine.state = base.child()
    try:
        found = run()
    except Left:
        raise InterleavedError from None
    changed = [place[0] if type(place) is tuple else place for place in machine.state.changed_since(base)]
    done = walk([Block((), tuple(builder.ops[count:]))])
    if (
        machine.graph.builder is not builder
        or any(type(address) is not int or address < watermark for address in changed)
        or any(op.effect is not Effect.PURE or op.may_raise for op in done)
    ):
        raise InterleavedError
    base.absorb(machine.state)
    machine.state = base
    return found


def _sum_type(machine: Machine, values: Sequence[Abstract], start: Abstract) -> Type | None:
    """The type of a sum of at least one value, where it follows from theirs."""
    kinds = {type_of_value(machine, value) for value in (*values, start)}
    if kinds <= {INT, BOOL}:
        return INT
    return FLOAT if kinds <= {INT, BOOL, FLOAT} else None


def sum_of(machine: Machine, given: Abstract, start: Abstract = ZERO) -> Abstract:
    """``sum(given, start)``."""
    if isinstance(machine.cell(given), GeneratorCell) and isinstance(given, Ref):
        return _folded(machine, given, start)
    items = _items_by_value(machine, given)
    if items is None and not isinstance(given, Symbol):
        items = known_items(machine, given, "its sum is taken")
    if isinstance(items, list):
        plain = [machine.plain(each) for each in (*items, start)]
        if all(each is not None for each in plain):
            values = [each[0] for each in plain if each is not None]
            return run_now(machine, sum, [values[:-1], values[-1]], "sum")
        kind = _sum_type(machine, items, start)
        return pure(machine, "sum", (machine.new(ListCell(tuple(items))), start), gives=kind)
    value = items.value if items is not None else given
    whole = isinstance(value, Symbol) and value.type in (list_of(INT), list_of(BOOL))
    known = _sum_type(machine, (), start)
    return pure(machine, "sum", (value, start), gives=INT if whole and known == INT else None)


def _folded(machine: Machine, generator: Ref, start: Abstract) -> Abstract:
    """The sum of what a generator gives: each item is added before the next one is made."""
    total = (machine.allocate(), "total")
    machine.state.put(total, start)

    def add(item: Abstract) -> None:
        so_far = machine.state.get(total)
        assert isinstance(so_far, Abstract)
        machine.state.put(total, binary(machine, "add", so_far, item))

    machine.rules.consume(generator, add)
    found = machine.state.get(total)
    assert isinstance(found, Abstract)
    return found


def _first(machine: Machine, generator: Ref, *, wanted: bool) -> Abstract:
    """Return whether a generator gives an item whose truth is ``wanted``; no further one is asked for behind it."""
    target = machine.begin_target()
    found, leave = (target, "found"), Exit("break", target)
    machine.state.put(found, Const(not wanted))

    def stop() -> None:
        machine.state.put(found, Const(wanted))
        machine.leave_for(leave)

    def each(item: Abstract) -> None:
        flag = truth(machine, item)
        if isinstance(flag, Const):
            if flag.value is wanted:
                stop()
            return
        assert isinstance(flag, Symbol)
        arms = (stop, lambda: None) if wanted else (lambda: None, stop)
        adopt(machine, branch(machine, flag, *arms))

    def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, None) if exit == leave else (exit, way.payload)

    adopt(machine, scope(machine, lambda: machine.rules.consume(generator, each), settle))
    value = machine.state.get(found)
    assert isinstance(value, Abstract)
    return value


def quantifier(*, wanted: bool) -> Handler:
    """``any``, or ``all`` where ``wanted`` is false."""

    def quantifier(machine: Machine, given: Abstract) -> Abstract:
        if isinstance(machine.cell(given), GeneratorCell) and isinstance(given, Ref):
            return _first(machine, given, wanted=wanted)
        items = items_in_any_order(machine, given)
        if items is None and not isinstance(given, Symbol):
            items = known_items(machine, given, "its items are tested")
        if not isinstance(items, list):
            return pure(machine, "any" if wanted else "all", (items.value if items is not None else given,))

        def further(index: int) -> Abstract:
            if index == len(items):
                return Const(not wanted)
            flag = truth(machine, items[index])
            if isinstance(flag, Const):
                return Const(wanted) if flag.value is wanted else further(index + 1)
            assert isinstance(flag, Symbol)
            if index + 1 == len(items):
                return flag
            if wanted:
                return machine.choose(flag, lambda: Const(True), lambda: further(index + 1))
            return machine.choose(flag, lambda: further(index + 1), lambda: Const(False))

        return further(0)

    return quantifier
