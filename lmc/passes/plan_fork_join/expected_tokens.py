"""Expected number of generated tokens from an op to the end of its block, on the longest path."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.analysis import longest_paths
from lmc.ir.core import Block, Op, walk
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.ordering import Objects, waits_of


class ExpectedTokens:
    """Tokens on the longest path through ops, and one for each call, as a call with an empty answer takes a step too.

    A generation without an expectation counts as one that is never reached. A conditional has the mean of its arms,
    the longer one if their probability is unknown; a loop its rounds, one if their number is unknown; elements of
    a map or a race run at the same time. ``objects`` are those of ``lmc.ir.ordering.waits_of``.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[RegionOp, float] = {}

    def after(self, ops: Sequence[Op], waits: Sequence[Sequence[int]]) -> list[float]:
        """For each op the tokens on the longest way from it to the end, itself included."""
        return longest_paths([self._of(op) for op in ops], waits)

    def _of(self, op: Op) -> float:
        if not op.billable:
            return 0.0
        if not isinstance(op, RegionOp):
            return 1.0 + ((op.expected_tokens or 0) if isinstance(op, SamplingOp) else 0)
        if op not in self._known:
            self._known[op] = self._of_regions(op)
        return self._known[op]

    def _of_regions(self, op: RegionOp) -> float:
        inside = [max(self.after(region.ops, waits_of(region.ops, self._objects))) for region in op.regions]
        if isinstance(op, CondOp):
            then, otherwise = inside
            return max(inside) if op.probability is None else otherwise + (then - otherwise) * op.probability
        if isinstance(op, LoopOp):
            condition, body = inside
            return condition + (condition + body) * (1.0 if op.expected_rounds is None else op.expected_rounds)
        return sum(inside)


def expects_anything(block: Block) -> bool:
    """Return whether it is known of a generation how long its outputs are."""
    return any(isinstance(op, SamplingOp) and op.expected_tokens is not None for op in walk((block,)))
