"""Moves ops that give the same in every round, or for every element, out of the bodies of loops, maps and races.

Loop-invariant code motion (Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.5).
"""

from __future__ import annotations

from collections.abc import Callable

from lmc.ir.core import Block, Effect, Op, Value
from lmc.ir.dialects.regions import RegionOp, has_id
from lmc.ir.ordering import objects_of
from lmc.ir.rewriter import with_regions
from lmc.passes.analysis.escape import exposed_values, touches
from lmc.passes.rewriting.new_ops import with_ops

Moved = Callable[[RegionOp, list[Op]], None]


def move_invariants(body: Block, moved: Moved) -> Block:
    """The body of a function with invariant ops ahead of the loops, maps and races that held them.

    An op moves if it is pure, cannot raise, asks no model, has no id, and uses nothing that depends on the round. Lists
    and objects that others may change, or could tell apart, are left alone. ``moved`` is called for each op with
    regions that lost some.
    """
    return _Motion(body, moved).block(body)


class _Motion:
    """Recursion is as deep as regions are nested; inner regions go first, so that an op can leave several."""

    def __init__(self, body: Block, moved: Moved) -> None:
        self._moved = moved
        self._seen_by_others = exposed_values(body) | objects_of(body.ops).shared

    def block(self, block: Block) -> Block:
        ops: list[Op] = []
        for op in block.ops:
            if not isinstance(op, RegionOp):
                ops.append(op)
                continue
            rest = with_regions(op, [self.block(region) for region in op.regions])
            if not op.EXCLUSIVE:
                rest, found = self._split(rest)
                if found:
                    self._moved(op, found)
                    ops += found
            ops.append(rest)
        return with_ops(block, ops)

    def _split(self, op: Op) -> tuple[Op, list[Op]]:
        """``op`` without what is the same whenever its regions run, and that."""
        found: list[Op] = []
        regions: list[Block] = []
        for region in op.regions:
            inside: set[Value] = set(region.parameters)
            kept: list[Op] = []
            for inner in region.ops:
                if self._may_move(inner) and inside.isdisjoint(inner.operands):
                    found.append(inner)
                else:
                    kept.append(inner)
                    inside.update(inner.results)
            regions.append(with_ops(region, kept))
        return with_regions(op, regions), found

    def _may_move(self, op: Op) -> bool:
        is_pure = op.effect is Effect.PURE and not (op.may_raise or op.billable or has_id(op))
        return is_pure and not op.IS_TERMINATOR and not op.regions and not touches(op, self._seen_by_others)
