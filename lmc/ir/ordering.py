"""What must be finished before an op may start: its operands, and the effects it must not overtake.

One set of rules for every pass, the backend and the graph views, so that a plan can't allow what a pass forbids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.regions import RegionOp, can_change, effects_of, gives_objects, has_id, is_write


def waits_of(ops: Sequence[Op], shared: AbstractSet[Value] | None = None) -> list[tuple[int, ...]]:
    """For each op of a block the indices of those it waits for, ascending. Linear in operands.

    Writes keep their order, reads wait for the last write, and a write waits for everything earlier that reads or may
    raise: where plain Python would have stopped before a write, it does not happen here either. Looking into a list or
    an object that a host function gave counts as a read, since any write may change it. ``py.assume`` only checks.

    An op that may leave the program holds up all that comes after it and could be seen: what has an effect, an id or a
    price, or may raise, and the end of the block.

    An op with regions does all that the ops inside do, and uses what they use from outside. For the block of a region
    ``shared`` is needed: ``shared_values`` of the function's body.
    """
    order = Order(shared_values(ops) if shared is None else shared)
    return [order.add(index, op) for index, op in enumerate(ops)]


class Order:
    """The ops of a block so far, and what the next one waits for. ``shared`` is that of ``waits_of``."""

    def __init__(self, shared: AbstractSet[Value]) -> None:
        self._shared = shared
        self._producers: dict[Value, int] = {}
        self._last_write: int | None = None
        self._last_leaving: int | None = None
        self._before_next_write: list[int] = []

    def add(self, index: int, op: Op) -> tuple[int, ...]:
        """Take the next op; gives what it waits for."""
        used = list(uses(op))
        looks = any(value in self._shared for value in used) or (isinstance(op, RegionOp) and op.gives_objects)
        writes = is_write(op)
        reads = looks or Effect.READS in effects_of(op)
        needed = self._needed(used, reads=writes or reads, is_seen=_could_be_seen(op))
        if isinstance(op, RegionOp) and op.leaves:
            self._last_leaving = index
        if writes:
            needed.update(self._before_next_write)
            self._before_next_write, self._last_write = [], index
        elif reads or op.may_raise:
            self._before_next_write.append(index)
        self._producers.update((value, index) for value in op.results)
        return tuple(sorted(needed))

    def waits(self, used: Iterable[Value], *, reads: bool) -> tuple[int, ...]:
        """What a call of a host function over these values would wait for here, that ``reads`` or is pure."""
        return tuple(sorted(self._needed(used, reads=reads, is_seen=True)))

    def _needed(self, used: Iterable[Value], *, reads: bool, is_seen: bool) -> set[int]:
        needed = {self._producers[value] for value in used if value in self._producers}
        if self._last_write is not None and reads:
            needed.add(self._last_write)
        if self._last_leaving is not None and is_seen:
            needed.add(self._last_leaving)
        return needed


def _could_be_seen(op: Op) -> bool:
    """Whether running the op where plain Python has returned before would be noticed."""
    return op.IS_TERMINATOR or op.may_raise or op.billable or has_id(op) or op.effect is not Effect.PURE


def shared_values(ops: Sequence[Op]) -> set[Value]:
    """The values of ``ops`` and their regions that may be, or hold, an object which a host function gave.

    What a region is given, and what it gives, may all be such an object where one comes in or is made inside.
    """
    shared: set[Value] = set()
    for op in walk((Block((), tuple(ops)),)):
        if not gives_objects(op) and all(value not in shared for value in uses(op)):
            continue
        shared.update(filter(can_change, op.results))
        for region in op.regions:
            shared.update(filter(can_change, region.parameters))
    return shared


def uses(op: Op) -> Iterator[Value]:
    """The values an op uses, repeats included, and those from outside that its regions use."""
    yield from op.operands
    if isinstance(op, RegionOp):
        yield from op.free_values
