"""Which ops an eager continuation asks for by id."""

from __future__ import annotations

from lmc.ir.core import Block, Op, walk
from lmc.ir.ops import BreakOp
from lmc.ir.regions import RegionOp, has_id, may_break


def recorded_ops(body: Block) -> frozenset[Op]:
    """The ops of a function whose ids have to be there after a run: they are neither merged nor dropped.

    After ``lm.break`` the program goes on eagerly and finds the results of all ops with an id that ran. A break that
    ends the function may list what others have to stand for (``BreakOp.values``); what it does not list, what runs in
    a region, and everything where a break stands in a region has nobody to stand for it.
    """
    if not may_break(body):
        return frozenset()
    held = (op for op in walk((body,)) if not isinstance(op, RegionOp) and has_id(op))
    end = body.terminator
    if not isinstance(end, BreakOp) or any(isinstance(op, RegionOp) and op.breaks for op in body.ops):
        return frozenset(held)
    listed = {op for op in body.ops if getattr(op, "id", None) in end.ids}
    return frozenset(op for op in held if op not in listed)
