"""Which mutable values somebody outside the graph may change or compare by identity.

Values of the IR are immutable by contract, but lists and JSON objects are Python objects at run time: a host function
with effects may change one it is given, and so may the caller who gets one back. Two equal lists must stay two objects
where that could be seen.
"""

from __future__ import annotations

from lmc.ir.core import Block, Effect, Op, Value
from lmc.ir.ops import PyCallOp
from lmc.ir.types import BOOL, CTX, FLOAT, INT, NONE, TEXT

_IMMUTABLE = frozenset({CTX, TEXT, INT, FLOAT, BOOL, NONE})
_IDENTITY = frozenset({"is", "is_not"})


def exposed_values(block: Block) -> frozenset[Value]:
    """The values that share an object, or may share one, with what leaves the graph.

    What leaves are mutable operands of ops that write, of the terminator and of identity comparisons. An op's mutable
    results may be, or hold, any of its mutable operands. Linear in operands (union-find).
    """
    leaving = [value for op in block.ops if _exposes(op) for value in op.operands if value.type not in _IMMUTABLE]
    if not leaving:
        return frozenset()
    groups = _Groups()
    for op in block.ops:
        held = [value for value in (*op.results, *op.operands) if value.type not in _IMMUTABLE]
        if any(value.type not in _IMMUTABLE for value in op.results):
            groups.join(held)
    exposed = {groups.root(value) for value in leaving}
    values = (value for op in block.ops for value in op.results)
    return frozenset(value for value in (*block.parameters, *values) if groups.root(value) in exposed)


def touches(op: Op, values: frozenset[Value]) -> bool:
    """Whether a result or an operand of ``op`` is among ``values``."""
    return bool(values) and any(value in values for value in (*op.results, *op.operands))


def _exposes(op: Op) -> bool:
    if isinstance(op, PyCallOp):
        return op.function in _IDENTITY
    return op.IS_TERMINATOR or op.effect is Effect.WRITES


class _Groups:
    """Disjoint sets of values, with path halving."""

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def root(self, value: Value) -> Value:
        parents = self._parents
        while (parent := parents.get(value, value)) != value:
            parents[value] = value = parents.get(parent, parent)
        return value

    def join(self, values: list[Value]) -> None:
        first, *others = values
        root = self.root(first)
        for other in others:
            self._parents[self.root(other)] = root
