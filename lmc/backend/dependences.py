"""What has to be finished before an op may start: its operands, and the effects it must not overtake."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.core import Effect, Op, Value
from lmc.ir.ops import AssumeOp, SamplingOp, SelectOp


def dependences(ops: Sequence[Op]) -> list[tuple[int, ...]]:
    """For each op of a straight-line block the indices of those it waits for, ascending. Linear in operands.

    Writes keep their order, reads wait for the last write, and a write waits for everything earlier that reads or may
    raise: where plain Python would have stopped before a write, it does not happen here either.
    """
    producers: dict[Value, int] = {}
    last_write: int | None = None
    before_next_write: list[int] = []
    waits: list[tuple[int, ...]] = []
    for index, op in enumerate(ops):
        needed = {producers[value] for value in op.operands if value in producers}
        writes = op.effect is Effect.WRITES and not isinstance(op, AssumeOp)
        if last_write is not None and (writes or op.effect is Effect.READS):
            needed.add(last_write)
        if writes:
            needed.update(before_next_write)
            before_next_write = []
            last_write = index
        elif op.may_raise or op.effect is Effect.READS:
            before_next_write.append(index)
        waits.append(tuple(sorted(needed)))
        producers.update((value, index) for value in op.results)
    return waits


def waves(ops: Sequence[Op], waits: Sequence[Sequence[int]]) -> list[int]:
    """For each op the round of model calls it belongs to.

    That is its ``wave`` attribute where a pass has set it, else the number of calls on the longest way to it.
    """
    found: list[int] = []
    for op, needed in zip(ops, waits, strict=True):
        planned = op.wave if isinstance(op, SamplingOp | SelectOp) else None
        found.append(
            max((found[index] + ops[index].billable for index in needed), default=0) if planned is None else planned
        )
    return found
