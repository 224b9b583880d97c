"""``lm.keep`` and ``lm.free`` in passes that run after kv-liveness has put them in."""

from __future__ import annotations

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.rewriter import with_regions
from lmc.ir.types import CTX
from lmc.ir.verify.cache_hint_rules import Origins, uses_cache
from lmc.passes.rewriting import with_ops

_HINTS = (KeepOp, FreeOp)


def without_hints(block: Block) -> Block:
    """Return the block without hints, for passes that invalidate them."""
    return _only(block, set()) if _has_hints(block) else block


def with_true_hints(block: Block) -> Block:
    """The block without those that are not true any more, because another context took the place of theirs.

    Linear in the function, regions included.
    """
    return _only(block, _true_hints(block)) if _has_hints(block) else block


def _has_hints(block: Block) -> bool:
    return any(isinstance(op, _HINTS) for op in walk((block,)))


def _only(block: Block, hints: set[Op]) -> Block:
    """The block with these hints alone. Recursion is as deep as regions are nested."""
    ops: list[Op] = []
    for op in block.ops:
        if not isinstance(op, _HINTS):
            ops.append(with_regions(op, [_only(region, hints) for region in op.regions]))
        elif op in hints:
            ops.append(op)
    return with_ops(block, ops)


def _true_hints(block: Block) -> set[Op]:
    """Return the hints that keep ``lmc.ir.verify.cache_hint_rules``; of those that contradict each other, the first."""
    origins = Origins()
    own = _own_values(block)
    freed: dict[Value, Op] = {}
    found: set[Op] = set()
    for op in walk((block,)):
        if isinstance(op, KeepOp | FreeOp):
            is_true = op.context not in freed and origins.of(op.context) == op.context and op in own
            if is_true:
                found.add(op)
            if is_true and isinstance(op, FreeOp) and op.next_use is None:
                freed[op.context] = op
        elif freed and uses_cache(op):
            for value in op.operands:
                if value.type == CTX:
                    found.discard(freed.pop(origins.of(value), op))
        origins.add(op)
    return found


def _own_values(block: Block) -> set[Op]:
    """The hints about contexts of their own block."""
    found: set[Op] = set()
    for inner in (block, *(region for op in walk((block,)) for region in op.regions)):
        here = set(inner.parameters)
        for op in inner.ops:
            here.update(op.results)
            if isinstance(op, KeepOp | FreeOp) and op.context in here:
                found.add(op)
    return found
