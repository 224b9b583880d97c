"""Dependences of ops: operands, and the effects that an op must not overtake.

One set of rules for every pass, the backend and the graph views, so that a plan can't allow what a pass forbids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.region_ops import TryOp, guarded_ops
from lmc.ir.dialects.regions import RegionOp, can_change, gives_objects, has_id, is_local, is_read, is_write


@dataclass(frozen=True, slots=True)
class Objects:
    """The values of a function that may be, or hold, objects which change.

    ``shared``: objects that a host function gave, which any write may change. ``local``: objects that ops with the
    effect ``LOCAL`` may change. ``guarded`` are the ops in bodies of ``cf.try``: what they leave of objects is seen
    where one of them raises.
    """

    shared: frozenset[Value]
    local: frozenset[Value]
    guarded: frozenset[Op]


def waits_of(ops: Sequence[Op], objects: Objects | None = None) -> list[tuple[int, ...]]:
    """For each op of a block the indices of those it waits for, ascending. Linear in operands.

    Writes keep their order, reads wait for the last write, and a write waits for everything earlier that reads or may
    raise: where plain Python would have stopped before a write, it does not happen here either. Looking into a list or
    an object that a host function gave counts as a read, since any write may change it. ``py.assume`` only checks.

    Ops with the effect ``LOCAL`` keep their order among themselves. Other ops that use an object which such an op may
    change keep their places between them. In the body of a ``cf.try`` they also wait for what may raise before them.

    An op that may leave the program holds up all that comes after it and could be seen: what has an effect, an id or a
    price, or may raise, and the end of the block.

    An op with regions does all that the ops inside do, and uses what they use from outside. For the block of a region
    ``objects`` are needed: ``objects_of`` the function's body.
    """
    order = Order(objects_of(ops) if objects is None else objects)
    return [order.add(index, op) for index, op in enumerate(ops)]


class Order:
    """The ops of a block so far, and what the next one waits for. ``objects`` are those of ``waits_of``."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._producers: dict[str, int] = {}
        self._last_write: int | None = None
        self._last_leaving: int | None = None
        self._before_next_write: list[int] = []
        self._last_local: int | None = None
        self._before_next_local: list[int] = []

    def add(self, index: int, op: Op) -> tuple[int, ...]:
        """Take the next op; gives what it waits for."""
        used = uses(op)
        shared, local = self._objects.shared, self._objects.local
        looks = bool(shared and not shared.isdisjoint(used)) or (isinstance(op, RegionOp) and op.gives_objects)
        touches = bool(local and not local.isdisjoint(used))
        is_seen = _could_be_seen(op)
        writes = is_seen and is_write(op)
        reads = looks or (is_seen and is_read(op))
        needed = self._needed(used, reads=writes or reads, is_seen=is_seen)
        if is_seen and isinstance(op, RegionOp) and op.leaves:
            self._last_leaving = index
        if writes:
            needed.update(self._before_next_write)
            self._before_next_write, self._last_write = [], index
        elif reads or (is_seen and op.may_raise):
            self._before_next_write.append(index)
        if is_seen or touches:
            needed.update(self._local(index, op, touches=touches, writes=writes))
        for value in op.results:
            self._producers[value.name] = index
        return tuple(sorted(needed))

    def _local(self, index: int, op: Op, *, touches: bool, writes: bool) -> list[int]:
        """Return what an op waits for because of objects of this run. ``touches``: it uses one."""
        changes = is_local(op)
        touches = touches or changes
        needed = [self._last_local] if touches and self._last_local is not None else []
        if changes or (touches and writes):
            needed += self._before_next_local
            self._before_next_local, self._last_local = [], index
        elif touches or (op.may_raise and op in self._objects.guarded):
            self._before_next_local.append(index)
        return needed

    def waits(self, used: Iterable[Value], *, reads: bool) -> tuple[int, ...]:
        """Return what a call of a host function over these values would wait for here, that ``reads`` or is pure."""
        return tuple(sorted(self._needed(used, reads=reads, is_seen=True)))

    def _needed(self, used: Iterable[Value], *, reads: bool, is_seen: bool) -> set[int]:
        producers = self._producers
        needed = {producers[value.name] for value in used if value.name in producers}
        if self._last_write is not None and reads:
            needed.add(self._last_write)
        if self._last_leaving is not None and is_seen:
            needed.add(self._last_leaving)
        return needed


def _could_be_seen(op: Op) -> bool:
    """Return whether running the op where plain Python has returned before would be noticed.

    Otherwise the op is pure and can't raise.
    """
    return op.IS_TERMINATOR or op.may_raise or op.billable or has_id(op) or op.effect is not Effect.PURE


def objects_of(ops: Sequence[Op]) -> Objects:
    """The objects of a function's body. Linear in operands."""
    body = Block((), tuple(ops))
    inside = [*walk((body,))]
    local = _local_values(inside)
    return Objects(_shared_values(inside), local, guarded_ops(body) if local else frozenset())


def _shared_values(ops: Sequence[Op]) -> frozenset[Value]:
    """The values that may be, or hold, an object which a host function gave.

    What a region is given, and what it gives, may all be such an object where one comes in or is made inside.
    """
    shared: set[Value] = set()
    for op in ops:
        if not gives_objects(op) and (not shared or shared.isdisjoint(uses(op))):
            continue
        shared.update(filter(can_change, op.results))
        for region in op.regions:
            shared.update(filter(can_change, region.parameters))
    return frozenset(shared)


def _local_values(ops: Sequence[Op]) -> frozenset[Value]:
    """The values that may be, or hold, or be held by an object which an op with the effect ``LOCAL`` is about.

    An op's results may be or hold what its operands are, and the other way round.
    """
    changing = [op for op in ops if not isinstance(op, RegionOp) and op.effect is Effect.LOCAL]
    waiting = [value for op in changing for value in (*op.results, *op.operands) if can_change(value)]
    if not waiting:
        return frozenset()
    next_to: dict[Value, list[Value]] = {}
    for op in ops:
        for first, second in _connected(op):
            next_to.setdefault(first, []).append(second)
            next_to.setdefault(second, []).append(first)
    found = set(waiting)
    while waiting:
        new = [value for value in next_to.get(waiting.pop(), ()) if value not in found]
        found.update(new)
        waiting += new
    return frozenset(found)


def _connected(op: Op) -> Iterator[tuple[Value, Value]]:
    """Pairs of values of which one may be, or hold, the object that the other one is."""
    if isinstance(op, RegionOp):
        yield from ((source, place) for source, place in (*op.flows(), *op.carried()) if can_change(source))
        if isinstance(op, TryOp):  # an exception may hold what the op that raised it was given
            inside = (value for inner in walk(op.regions) for value in inner.operands)
            yield from ((op.results[1], value) for value in filter(can_change, inside))
        return
    held = list(filter(can_change, op.results))
    if held:
        yield from ((held[0], value) for value in (*held[1:], *filter(can_change, op.operands)))


def uses(op: Op) -> tuple[Value, ...]:
    """The values an op uses, repeats included, and those from outside that its regions use."""
    return (*op.operands, *op.free_values) if isinstance(op, RegionOp) else op.operands
