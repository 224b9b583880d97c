"""Host calls in regions that may start before it is known whether those run: which, with what, and after what.

A call that starts early is speculative: if its branch is not taken, its result is dropped. So only calls
that change nothing may start early, and none before what they must not overtake has ended (``analysis/ordering.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from lmc.ir.analysis.ordering import Objects, Order
from lmc.ir.core import Attribute, Block, Effect, Op, Value
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, TryOp
from lmc.ir.dialects.regions import RegionOp, is_write

IsWanted = Callable[[HostCallOp], bool]
Round = tuple[int, ...]
Place = tuple[int | None, ...]
"""Rounds of loops and elements of maps; None for the element of a map, which there are several of."""


@dataclass(frozen=True, slots=True)
class CondRegion:
    """A region of a ``cf.cond`` that a call is in.

    ``rounds`` are those of the loops between the op that was looked into and the conditional.
    """

    cond: CondOp
    region: Block
    rounds: Place

    @property
    def is_predicted(self) -> bool:
        """Return True if speculation is likely to pay; so it is without a known probability."""
        known = self.cond.probability
        if known is None:
            return True
        return (known if self.region is self.cond.then else 1.0 - known) >= 0.5


@dataclass(frozen=True, slots=True)
class CallAhead:
    """A call in the regions of an op, as seen from the block of that op.

    ``arguments`` are those of the call; where they stand for a value of that block, or for a literal, they are that.
    ``unknown`` are the others: values that only the regions compute. Of a loop this is the call of the first round
    (``rounds``). In a ``cf.map`` there is one for each row of ``lists``, and ``each`` are the map's parameters, which
    stand for them. ``obstacle`` says what else keeps it from starting before the op does.
    """

    call: HostCallOp
    arguments: tuple[Attribute | Value, ...]
    unknown: tuple[Value, ...]
    arms: tuple[CondRegion, ...]
    rounds: Place
    reads: bool
    obstacle: str | None
    each: tuple[Value, ...] = ()
    lists: tuple[Value, ...] = ()

    @property
    def needed(self) -> Iterator[Value]:
        """The values of the block that it waits for."""
        yield from self.lists
        yield from (entry for entry in self.arguments if isinstance(entry, Value) and entry not in self.each)


@dataclass(frozen=True, slots=True)
class EarlyStart:
    """A call that may start before the op at ``holder`` of a block does: when those at ``waits`` are finished."""

    ahead: CallAhead
    holder: int
    waits: tuple[int, ...]


def early_starts(ops: Sequence[Op], objects: Objects) -> list[EarlyStart]:
    """Return the calls marked ``early``, in the regions of a block's ops, that may start in this block.

    ``objects`` are those of ``lmc.ir.analysis.ordering.waits_of``.
    """
    order = Order(objects)
    found: list[EarlyStart] = []
    for index, op in enumerate(ops):
        if isinstance(op, RegionOp):
            for ahead in calls_ahead(op, is_marked, objects):
                if ahead.obstacle is None and not ahead.unknown:
                    found.append(EarlyStart(ahead, index, order.waits(ahead.needed, reads=ahead.reads)))
        order.add(index, op)
    return found


def is_marked(call: HostCallOp) -> bool:
    """Return whether a run may start the call early."""
    return call.early


def calls_ahead(op: RegionOp, is_wanted: IsWanted, objects: Objects) -> Iterator[CallAhead]:
    """The calls in the regions of ``op`` that are wanted, in program order."""
    yield from _Walk(is_wanted, objects).op(op, _Way())


@dataclass(frozen=True, slots=True)
class _Way:
    """The path of the walk to a block."""

    arms: tuple[CondRegion, ...] = ()
    rounds: Place = ()
    written: str | None = None
    obstacle: str | None = None
    each: tuple[Value, ...] = ()
    lists: tuple[Value, ...] = ()


class _Walk:
    """Over the regions of one op. ``_known`` are the values defined there that stand for others, or for literals.

    Recursion is as deep as regions are nested.
    """

    def __init__(self, is_wanted: IsWanted, objects: Objects) -> None:
        self._is_wanted = is_wanted
        self._objects = objects
        self._inside: set[Value] = set()
        self._known: dict[Value, Attribute | Value] = {}

    def op(self, op: RegionOp, way: _Way) -> Iterator[CallAhead]:
        if isinstance(op, CondOp):
            for region in op.regions:
                arm = CondRegion(op, region, way.rounds)
                obstacle = None if arm.is_predicted else "its way is not the likely one"
                inner = replace(way, arms=(*way.arms, arm), obstacle=way.obstacle or obstacle)
                yield from self._block(region, inner)
        elif isinstance(op, LoopOp):
            yield from self._first_round(op, replace(way, rounds=(*way.rounds, 0)))
        elif isinstance(op, MapOp) and not way.each:
            yield from self._elements(op, way)
        elif isinstance(op, TryOp):
            yield from self._block(op.body, way)
        else:
            obstacle = way.obstacle or f"{op.NAME} gives it its element"
            for region in op.regions:
                yield from self._block(region, replace(way, obstacle=obstacle))

    def _elements(self, op: MapOp, way: _Way) -> Iterator[CallAhead]:
        """Elements that write take turns, so what one reads comes after what the one before it has written."""
        lists = tuple(value for entry in op.lists if isinstance(value := self._meant(entry), Value))
        written = way.written or (_named(op) if op.writes else None)
        inner = replace(way, rounds=(*way.rounds, None), written=written, each=op.body.parameters, lists=lists)
        if len(lists) < len(op.lists):
            inner = replace(inner, obstacle=way.obstacle or "its list is a literal")
        yield from self._block(op.body, inner)

    def _first_round(self, op: LoopOp, way: _Way) -> Iterator[CallAhead]:
        self._stand_for(op.condition.parameters, op.initial)
        way = yield from self._block(op.condition, way)
        end = op.condition.terminator
        if isinstance(end, ConditionOp):
            self._stand_for(op.body.parameters, end.values)
            yield from self._block(op.body, way)

    def _stand_for(self, places: Sequence[Value], given: Sequence[Attribute | Value]) -> None:
        for place, entry in zip(places, given, strict=True):
            self._known[place] = self._meant(entry)

    def _meant(self, entry: Attribute | Value) -> Attribute | Value:
        return self._known.get(entry, entry) if isinstance(entry, Value) else entry

    def _block(self, block: Block, way: _Way) -> Generator[CallAhead, None, _Way]:
        """The calls of a block; returns how its end is come to."""
        self._inside.update(block.parameters)
        for op in block.ops:
            if isinstance(op, RegionOp):
                yield from self.op(op, way)
            elif isinstance(op, HostCallOp) and self._is_wanted(op):
                yield self._ahead(op, way)
            self._inside.update(op.results)
            if is_write(op):
                way = replace(way, written=_named(op))
            if isinstance(op, RegionOp) and op.leaves:
                way = replace(way, obstacle=way.obstacle or "the program may end before it, in the same region")
        return way

    def _ahead(self, call: HostCallOp, way: _Way) -> CallAhead:
        arguments = tuple(map(self._meant, call.arguments))
        values = [*way.lists, *(entry for entry in arguments if isinstance(entry, Value))]
        unknown = tuple(dict.fromkeys(value for value in values if value in self._inside and value not in way.each))
        asked = (*values, *call.operands)
        reads = call.effect is Effect.READS or any(value in self._objects.shared for value in asked)
        obstacle = way.obstacle
        if obstacle is None and any(value in self._objects.local for value in asked):
            obstacle = "it is called with an object that the program may change before"
        if obstacle is None and reads and way.written is not None:
            obstacle = f"{way.written} stands before it and writes"
        return CallAhead(call, arguments, unknown, way.arms, way.rounds, reads, obstacle, way.each, way.lists)


def _named(op: Op) -> str:
    return repr(getattr(op, "id", None) or op.NAME)
