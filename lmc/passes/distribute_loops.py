"""The pass ``distribute-loops``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.analysis.ordering import objects_of, uses
from lmc.ir.core import Attribute, Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.dialects.region_ops import ConditionOp, LoopOp, MapOp, TryOp, YieldOp, guarded_ops
from lmc.ir.dialects.regions import RegionOp, is_local, is_write
from lmc.ir.ids import each_round_id
from lmc.ir.rewriter import with_regions
from lmc.ir.types import INT, ListType, holds_context, list_of
from lmc.passes.analysis.kv_hints import without_hints
from lmc.passes.analysis.liveness import exposed_values
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.rewriting import FreshNames, make_op, substituted, with_ops

Held = Attribute | Value


@dataclass(frozen=True)
class CountedLoop:
    """A loop of ``rounds`` rounds, or of none where that is below 1.

    ``index`` is the parameter of its body that begins with 0 and is the number of the round; ``counters`` are those
    that count: what they begin with, and by how much they grow in each round. ``following`` is what the body yields for
    each of its parameters.
    """

    rounds: Value
    index: Value
    counters: Mapping[Value, tuple[Held, int]]
    following: Mapping[Value, Held]


def counted(op: LoopOp, producers: Mapping[Value, Op]) -> CountedLoop | None:
    """``op`` as such a loop; None where it is none. ``producers`` are the ops that define what is seen around it."""
    condition, end = op.condition.terminator, op.body.terminator
    if not isinstance(condition, ConditionOp) or not isinstance(end, YieldOp) or len(op.condition.ops) > 1:
        return None
    if op.limit is not None:
        return None
    initial = dict(zip(op.condition.parameters, op.initial, strict=True))
    yielded = dict(zip(op.condition.parameters, end.values, strict=True))
    if not all(isinstance(value, Value) and value in initial for value in condition.values):
        return None
    sources = {
        parameter: value
        for parameter, value in zip(op.body.parameters, condition.values, strict=True)
        if isinstance(value, Value)
    }
    inside = {value: inner for inner in op.body.ops for value in inner.results}
    following = {parameter: yielded[source] for parameter, source in sources.items()}
    counters = {
        parameter: (initial[source], step)
        for parameter, source in sources.items()
        if parameter.type == INT and (step := _step(parameter, following[parameter], inside)) is not None
    }
    first, further = initial.get(condition.flag), yielded.get(condition.flag)
    made, again = _comparison(first, producers), _comparison(further, inside)
    if made is None or again is None:
        return None
    rounds = again[1]
    if made != (0, rounds) or not isinstance(rounds, Value) or rounds.type != INT:
        return None
    if rounds in inside or rounds in op.body.parameters:
        return None
    for parameter, (start, step) in counters.items():
        if start == 0 and type(start) is int and step == 1 and _is_next(again[0], parameter, inside):
            return CountedLoop(rounds, parameter, counters, following)
    return None


def _comparison(value: object, made: Mapping[Value, Op]) -> tuple[Held, Held] | None:
    """The arguments of ``lt`` that ``value`` is the result of."""
    op = made.get(value) if isinstance(value, Value) else None
    if isinstance(op, PyCallOp) and op.function == "lt" and len(op.arguments) == 2:
        return op.arguments[0], op.arguments[1]
    return None


def _is_next(value: Held, parameter: Value, inside: Mapping[Value, Op]) -> bool:
    return isinstance(value, Value) and _step(parameter, value, inside) == 1


def _step(parameter: Value, value: Held, inside: Mapping[Value, Op]) -> int | None:
    """By how much ``value`` is more than ``parameter``, where that is known."""
    total = 0
    while value != parameter:
        op = inside.get(value) if isinstance(value, Value) else None
        if not isinstance(op, PyCallOp) or op.function != "add" or len(op.arguments) != 2:
            return None
        value, step = op.arguments
        if type(step) is not int or not isinstance(value, Value):
            return None
        total += step
    return total


@dataclass(frozen=True)
class Collection:
    """A list that a loop carries as ``parameter``, to which each round adds ``value`` alone."""

    result: Value
    parameter: Value
    begun: Held
    adding: Op
    making: Op
    value: Value


@dataclass(frozen=True)
class KnownLists:
    """Facts about the lists of a function: those that may change while it runs, and their users.

    ``local`` are the values that may be objects of this run (``lmc.ir.analysis.ordering.Objects``).
    """

    changing: AbstractSet[Value]
    local: AbstractSet[Value]
    users: Mapping[Value, int]

    @classmethod
    def of(cls, body: Block) -> KnownLists:
        """Linear in operands."""
        ops = [*walk((body,))]
        writes = any(is_write(op) or is_local(op) for op in ops)
        objects = objects_of(body.ops)
        changing = exposed_values(body) | objects.shared if writes else frozenset[Value]()
        return cls(changing, objects.local, Counter(value for op in ops for value in op.operands))


class LoopSplit:
    """A loop in two parts: ``together``, the ops that need nothing of earlier rounds, and ``rest``.

    ``producers`` are the ops that define the values visible to it. ``guarded``: it is in the body of a ``cf.try``.
    """

    def __init__(
        self, op: LoopOp, loop: CountedLoop, producers: Mapping[Value, Op], lists: KnownLists, *, guarded: bool = False
    ) -> None:
        self._op = op
        self._guarded = guarded
        self._loop = loop
        self._producers = producers
        self._lists = lists
        self.together: list[Op] = []
        self.rest: list[Op] = []
        self._numbers: set[Value] = {loop.index, *loop.counters}  # known from the number of the round alone
        self._counting: dict[Op, None] = {}
        self._makers = {value: inner for inner in op.body.ops for value in inner.results}
        self._asked = Counter(value for inner in op.body.ops for value in uses(inner))
        needs = set(op.body.parameters) - self._numbers
        inside = {*op.body.parameters, *(value for inner in op.body.ops for value in inner.results)}
        for inner in op.body.ops[:-1]:
            used = set(uses(inner))
            if not needs.isdisjoint(used) or is_local(inner) or not lists.local.isdisjoint(used):
                self.rest.append(inner)
                needs.update(inner.results)
                continue
            self.together.append(inner)
            if _only_counts(inner) and used & inside <= self._numbers:
                self._numbers.update(inner.results)
                self._counting[inner] = None
        self._sink()
        self._made = {value for inner in self.together for value in inner.results} - self._numbers
        self._collected = [found for found in map(self._collection, *self._places()) if found is not None]
        gone = {inner for found in self._collected for inner in (found.adding, found.making)}
        self.rest = [inner for inner in self.rest if inner not in gone]
        self._end = op.body.terminator.substitute({f.adding.results[0]: f.parameter for f in self._collected})
        asked = [value for inner in (*self.rest, self._end) for value in uses(inner)]
        self._taken = [value for value in dict.fromkeys(asked) if value in self._made]
        self._crossing = list(dict.fromkeys((*self._taken, *(found.value for found in self._collected))))

    def _places(self) -> tuple[Sequence[Value], Sequence[Value], Sequence[Held]]:
        """Return what a loop carries: its results, its parameters, and what these begin with."""
        op = self._op
        begun = dict(zip(op.condition.parameters, op.initial, strict=True))
        return op.results, op.body.parameters, [begun[value] for value in op.condition.terminator.operands[1:]]

    def _sink(self) -> None:
        """Leave lists of one item to the rest, where that alone uses them: then the items are what it is given."""
        used = {value for inner in self.together for value in uses(inner)}
        sunk = [
            inner
            for inner in self.together
            if isinstance(inner, PyCallOp) and inner.function == "list" and used.isdisjoint(inner.results)
        ]
        if sunk:
            self.rest[:0] = sunk
            self.together = [inner for inner in self.together if inner not in sunk]

    def problem(self) -> str | None:
        """The reason why the loop can't be split, if any."""
        if self._op.writes:
            return "a call in them may write"
        if self._guarded and self._op.changes_objects:
            return "a handler may see which objects the rounds before have changed"
        raising = _first_raising(self.rest, guarded=self._guarded)
        if raising is not None:
            return f"{_named(raising)} needs the round before, and may raise before later rounds begin"
        if any(holds_context(value.type) for value in self._crossing):
            return "what goes from round to round is a context made in each"
        return None

    def ops(self, names: FreshNames) -> list[Op]:
        """The map, the loop over what it gives, and what they need."""
        op, loop = self._op, self._loop
        made: list[Op] = []
        lists = self._lists_of(loop.rounds)
        if not lists:
            numbers = Value(names.fresh("numbers"), list_of(INT))
            made.append(make_op(PyCallOp, (numbers,), op.location, function="range", arguments=(loop.rounds,)))
            lists = (numbers,)
        results = {value: Value(names.fresh(f"{value.name}_list"), list_of(value.type)) for value in self._crossing}
        made.append(self._map(lists, [*results.values()], names))
        taken: list[Op] = []
        places: dict[Value, Value] = {}
        for value in self._taken:
            places[value] = Value(names.fresh(value.name), value.type)
            arguments = (results[value], loop.index)
            taken.append(make_op(PyCallOp, (places[value],), op.location, function="getitem", arguments=arguments))
        rest = [substituted(inner, places) for inner in (*self.rest, self._end)]
        body = Block(op.body.parameters, (*self._counting, *taken, *rest))
        left = {found.result: Value(names.fresh(found.result.name), found.result.type) for found in self._collected}
        made.append(dataclasses.replace(op, body=body, results=tuple(left.get(value, value) for value in op.results)))
        for found in self._collected:
            arguments = (found.begun, results[found.value])
            where = found.adding.location
            made.append(make_op(PyCallOp, (found.result,), where, function="add", arguments=arguments))
        return made

    def _collection(self, result: Value, parameter: Value, begun: Held) -> Collection | None:
        """``result`` of the loop, where it is a list to which each round adds what it makes."""
        whole = self._loop.following[parameter]
        adding = self._makers.get(whole) if isinstance(whole, Value) else None
        if not isinstance(adding, PyCallOp) or adding.function != "add" or adding.arguments[0] != parameter:
            return None
        making = self._makers.get(adding.arguments[1]) if isinstance(adding.arguments[1], Value) else None
        if not isinstance(making, PyCallOp) or making.function != "list" or len(making.arguments) != 1:
            return None
        if isinstance(begun, Value) and not self._is_own(begun):
            return None  # where no round begins, the result is that very object
        (value,) = making.arguments
        own = (parameter, *adding.results, *making.results)
        if any(self._asked[one] != 1 for one in own) or not isinstance(value, Value) or value not in self._made:
            return None
        return Collection(result, parameter, begun, adding, making, value)

    def _is_own(self, value: Value) -> bool:
        """Return whether ``value`` is a list that was just made, for this loop alone."""
        op = self._producers.get(value)
        made = isinstance(op, PyCallOp) and op.function in ("list", "add")
        return made and self._lists.users[value] == 1

    def _lists_of(self, rounds: Value) -> tuple[Value, ...]:
        """Return unchanged lists whose shortest length is ``rounds``; none if there are none."""
        op = self._producers.get(rounds)
        if not isinstance(op, PyCallOp):
            return ()
        if op.function == "len" and isinstance(op.arguments[0], Value) and isinstance(op.arguments[0].type, ListType):
            return (op.arguments[0],) if op.arguments[0] not in self._lists.changing else ()
        if op.function != "min":
            return ()
        parts = [self._lists_of(part) if isinstance(part, Value) else () for part in op.arguments]
        return tuple(dict.fromkeys(value for part in parts for value in part)) if all(parts) else ()

    def _map(self, lists: Sequence[Value], results: Sequence[Value], names: FreshNames) -> Op:
        op, loop = self._op, self._loop
        index = Value(names.fresh("index"), INT)
        elements = [Value(names.fresh("element"), kind.element) for kind in map(_list_type, lists)]
        element_of = dict(zip(lists, elements, strict=True))
        places: dict[Value, Value] = {loop.index: index}
        ops: list[Op] = []
        used = {value for inner in self.together for value in uses(inner)}
        for parameter, (start, step) in loop.counters.items():
            if parameter is not loop.index and parameter in used:
                value, made = _closed_form(parameter.name, start, step, index, names)
                places[parameter] = value
                ops += made
        for inner in self.together:
            fields = substituted(inner, places)
            if isinstance(inner, PyCallOp) and inner.function == "getitem" and inner.arguments[1:] == (loop.index,):
                found = element_of.get(inner.arguments[0]) if isinstance(inner.arguments[0], Value) else None
                if found is not None and found.type == inner.results[0].type:
                    places[inner.results[0]] = found
                    continue
            if inner in self._counting:
                places.update((value, Value(names.fresh(value.name), value.type)) for value in inner.results)
                fields = dataclasses.replace(fields, results=tuple(places[value] for value in inner.results))
            ops.append(fields)
        yields = tuple(places.get(value, value) for value in self._crossing)
        end = make_op(YieldOp, (), op.location, values=yields)
        body = Block((index, *elements), (*ops, end))
        map_id = None if op.id is None else each_round_id(op.id)
        return make_op(MapOp, results, op.location, id=map_id, lists=tuple(lists), strict=False, body=body)


def _first_raising(ops: Sequence[Op], *, guarded: bool) -> Op | None:
    """The first op that raises by what the program means, regions included: None where there is none.

    An engine's failure is no part of that, but where it is caught (``guarded``). What a ``cf.try`` catches never is.
    Recursion is as deep as regions are nested.
    """
    for op in ops:
        if not op.may_raise:
            continue
        if not isinstance(op, RegionOp):
            if guarded or not op.billable:
                return op
        elif isinstance(op, TryOp) or op.raises_itself:
            return op
        for region in op.regions:
            found = _first_raising(region.ops, guarded=guarded)
            if found is not None:
                return found
    return None


def _only_counts(op: Op) -> bool:
    return isinstance(op, PyCallOp) and op.function in ("add", "sub", "mul", "lt") and not op.may_raise


def _closed_form(wish: str, start: Held, step: int, index: Value, names: FreshNames) -> tuple[Value, list[Op]]:
    """Return what a counter is in the round ``index``, and the ops that work it out."""
    ops: list[Op] = []
    value = index
    if step != 1:
        value = Value(names.fresh(wish), INT)
        ops.append(make_op(PyCallOp, (value,), None, function="mul", arguments=(index, step)))
    if type(start) is int and start == 0:
        return value, ops
    total = Value(names.fresh(wish), INT)
    ops.append(make_op(PyCallOp, (total,), None, function="add", arguments=(start, value)))
    return total, ops


def _list_type(value: Value) -> ListType:
    assert isinstance(value.type, ListType)
    return value.type


def _named(op: Op) -> str:
    name = getattr(op, "id", None) or getattr(op, "function", None) or op.NAME
    return repr(name)


@dataclass(frozen=True)
class DistributeLoops(FunctionPass):
    """Let what rounds of a loop do without needing each other run at the same time.

    A loop over a list is split in two: a ``cf.map`` of all that needs nothing of earlier rounds, and a loop of the rest
    that takes the results one after the other (loop distribution: Kennedy and Allen, "Optimizing Compilers for Modern
    Architectures", 2002, section 2.2). Numbers that count rounds, such as how often an id was used, follow from the
    number of the round, so ids and draws stay what they are.

    Sound where nothing in the loop writes, since rounds no longer run in order (ops on objects of this run stay with
    the rest, where they do); where the number of rounds is known
    when the loop begins, so that no round runs which would not have; and where nothing of the rest may raise (but for
    an engine that fails), since then no later round would have begun. In a ``cf.try`` no model call of the rest may
    fail either, since it shows which op fails first. A context that the rest continues can't be
    taken out of a list, so there the loop stays. A list that somebody may change meanwhile is looked into in each
    round, as before. A loop is left alone unless a model or a host function is asked in what can run at the same time.

    Before::

        %n = py.call len (%items) : !int
        %any = py.call lt (0, %n) : !bool
        %all, %k = cf.loop (%any, "", 0) : !text, !int ^condition(%f: !bool, %s: !text, %i: !int) {
          cf.condition %f (%s, %i)
        } ^body(%t: !text, %j: !int) {
          %item = py.call getitem (%items, %j) : !text
          %1 = lm.extend %0, user [%item] : !ctx
          %2, %a = lm.gen %1 (%j) {id = "f/$/a"} : !ctx, !text
          %u = text.concat [%t, %a] : !text
          %m = py.call add (%j, 1) : !int
          %go = py.call lt (%m, %n) : !bool
          cf.yield (%go, %u, %m)
        }

    After::

        %n = py.call len (%items) : !int
        %any = py.call lt (0, %n) : !bool
        %as = cf.map (%items) : !list<!text> ^body(%index: !int, %element: !text) {
          %1 = lm.extend %0, user [%element] : !ctx
          %2, %a = lm.gen %1 (%index) {id = "f/$/a"} : !ctx, !text
          cf.yield (%a)
        }
        %all, %k = cf.loop (%any, "", 0) : !text, !int ^condition(%f: !bool, %s: !text, %i: !int) {
          cf.condition %f (%s, %i)
        } ^body(%t: !text, %j: !int) {
          %a_1 = py.call getitem (%as, %j) : !text
          %u = text.concat [%t, %a_1] : !text
          %m = py.call add (%j, 1) : !int
          %go = py.call lt (%m, %n) : !bool
          cf.yield (%go, %u, %m)
        }
    """

    NAME: ClassVar[str] = "distribute-loops"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        block = without_hints(block)
        if not any(isinstance(op, LoopOp) for op in walk((block,))):
            return block
        function = _Function(FreshNames(block), KnownLists.of(block), guarded_ops(block))
        return self._block(block, {}, function, context)

    def _block(self, block: Block, around: Mapping[Value, Op], function: _Function, context: PassContext) -> Block:
        """The block with its loops split, inner ones first. Recursion is as deep as regions are nested."""
        producers = dict(around)
        ops: list[Op] = []
        for op in block.ops:
            rest = with_regions(op, [self._block(region, producers, function, context) for region in op.regions])
            guarded = op in function.guarded
            found = self._split(rest, producers, function, context, guarded) if isinstance(rest, LoopOp) else None
            found = [rest] if found is None else found
            ops += found
            producers.update((value, made) for made in found for value in made.results)
        return with_ops(block, ops)

    def _split(
        self, op: LoopOp, producers: Mapping[Value, Op], function: _Function, context: PassContext, guarded: bool
    ) -> list[Op] | None:
        """Return what takes the place of a loop; None where it stays. ``guarded``: it is in a ``cf.try``."""
        if not any(map(_asks, walk(op.regions))):
            return None
        loop = counted(op, producers)
        if loop is None or op.leaves:
            return None
        split = LoopSplit(op, loop, producers, function.lists, guarded=guarded)
        if not any(map(_asks, split.together)):
            self.missed(context, op, "each round needs a result of the round before")
            return None
        problem = split.problem()
        if problem is not None:
            self.missed(context, op, f"rounds that could run at the same time run in order: {problem}")
            return None
        count = sum(
            each.billable and not isinstance(each, RegionOp) for each in walk([Block((), tuple(split.together))])
        )
        calls = f"{count} model call{'s' * (count != 1)} of each" if count else "the host calls of each"
        self.applied(context, op, f"rounds of the loop run at the same time, with {calls}")
        return split.ops(function.names)


@dataclass(frozen=True)
class _Function:
    """The shared state of walks over the blocks of a function. ``guarded`` are the ops in the bodies of ``cf.try``."""

    names: FreshNames
    lists: KnownLists
    guarded: frozenset[Op]


def _asks(op: Op) -> bool:
    """Return whether the op asks a model, or a host function that takes its time."""
    return op.billable or op.effect in (Effect.READS, Effect.SAMPLES)
