"""The rounds of model calls of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.core import Op
from lmc.ir.ops import SamplingOp, SelectOp


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
