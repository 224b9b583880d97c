"""Escape analysis: mutable values that code outside the graph may change or compare by identity.

Values of the IR are immutable by contract, but lists and JSON objects are Python objects at run time: a host function
with effects may change one it is given, and so may the caller who gets one back. Two equal lists must stay two objects
where that could be seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.dialects.region_ops import TryOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.types import BOOL, CTX, FLOAT, INT, NONE, TEXT

_IMMUTABLE = (CTX, TEXT, INT, FLOAT, BOOL, NONE)
_CHANGING = (Effect.LOCAL, Effect.WRITES)
_IDENTITY = frozenset({"is", "is_not"})


def exposed_values(block: Block) -> frozenset[Value]:
    """The values of ``block`` and its regions that share an object, or may share one, with what leaves the graph.

    What leaves are mutable operands of ops that write or change objects of this run, of ``lm.return`` and ``lm.break``
    and of identity comparisons.
    An op's mutable results may be, or hold, any of its mutable operands; what a region is given, and what comes out of
    it, is what went in there. Linear in operands (union-find).
    """
    ops = [*walk((block,))]
    leaving = [value for op in ops if _exposes(op) for value in op.operands if value.type not in _IMMUTABLE]
    if not leaving:
        return frozenset()
    groups = _Groups()
    for op in ops:
        if isinstance(op, RegionOp):
            for flow in (*op.flows(), *op.carried()):
                groups.join(flow)
            if isinstance(op, TryOp):  # an exception may hold what the op that raised it was given
                groups.join((op.results[1], *(value for inner in walk(op.regions) for value in inner.operands)))
        elif any(value.type not in _IMMUTABLE for value in op.results):
            groups.join((*op.results, *op.operands))
    exposed = {groups.root(value) for value in leaving}
    values = {*block.parameters, *(value for op in ops for value in op.results)}
    values.update(value for op in ops for region in op.regions for value in region.parameters)
    return frozenset(value for value in values if groups.root(value) in exposed)


def touches(op: Op, values: frozenset[Value]) -> bool:
    """Return whether a result or an operand of ``op`` is among ``values``."""
    return bool(values) and any(value in values for value in (*op.results, *op.operands))


def _exposes(op: Op) -> bool:
    if isinstance(op, PyCallOp):
        return op.function in _IDENTITY
    return isinstance(op, LEAVING) or (op.effect in _CHANGING and not isinstance(op, RegionOp))


class _Groups:
    """Disjoint sets of values that may change, with path halving."""

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def root(self, value: Value) -> Value:
        parents = self._parents
        while (parent := parents.get(value, value)) != value:
            parents[value] = value = parents.get(parent, parent)
        return value

    def join(self, values: Sequence[Value]) -> None:
        """Put all of ``values`` that may change into one set."""
        held = [value for value in values if value.type not in _IMMUTABLE]
        for other in held[1:]:
            self._parents[self.root(other)] = self.root(held[0])
