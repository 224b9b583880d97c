"""A forward walk over a block in which later ops may take the place of earlier ones."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

from lmc.ir.core import Block, Op, Value
from lmc.ir.ops import BeginOp, ConcatOp, ExtendOp, PrefillOp
from lmc.passes.rope import Rope


class AbsorbingWalk:
    """The ops so far, and who uses what.

    An op that a later one absorbs is taken out of ``ops`` again. ``uses`` counts the operands that name a value in the
    block as it stands; ``ropes`` are the texts of ``lm.extend`` and ``text.concat`` by result, written at the end.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.uses = Counter(value for op in block.ops for value in op.operands)
        self.ops: list[Op | None] = []
        self.ropes: dict[Value, Rope] = {}
        self.replaced: dict[Value, Value] = {}
        self._missed: dict[Value, int] = {}
        self._positions: dict[Value, int] = {}

    def emit(self, op: Op) -> None:
        """Append ``op``."""
        self._positions.update((value, len(self.ops)) for value in op.results)
        self.ops.append(op)

    def definition(self, value: Value) -> Op | None:
        """The op that gives ``value``; None for a parameter and for what was taken out."""
        position = self._positions.get(value)
        return None if position is None else self.ops[position]

    def expect(self, value: Value, uses: int) -> bool:
        """Whether ``value`` has at most ``uses`` users; where it has more, they may become fewer further down."""
        if self.uses[value] <= uses:
            return True
        self._missed[value] = max(uses, self._missed.get(value, 0))
        return False

    @property
    def misses(self) -> bool:
        """Whether a value has lost users since one was too many: another walk would find that."""
        return any(self.uses[value] <= uses and value in self._positions for value, uses in self._missed.items())

    def remove(self, value: Value) -> None:
        """Take the op that gives ``value`` out of the block."""
        self.ops[self._positions[value]] = None

    def absorb(self, value: Value) -> None:
        """Take the op that gives ``value`` out of the block: its only user takes its place, and its operands over."""
        self.remove(value)
        self.uses[value] -= 1

    def forward(self, op: Op, value: Value) -> None:
        """Leave ``op`` out and let ``value``, its operand, stand for its only result."""
        self.uses.subtract(op.operands)
        self.uses[value] += self.uses[op.results[0]]
        self.replaced[op.results[0]] = value

    def reuse(self, op: ExtendOp | BeginOp | PrefillOp, context: Value) -> Any:
        """``op`` on another context."""
        self.uses[op.context] -= 1
        self.uses[context] += 1
        return dataclasses.replace(op, context=context)

    def written(self) -> tuple[Op, ...]:
        """The ops that are left, with their texts."""
        return tuple(self._written(op) for op in self.ops if op is not None)

    def _written(self, op: Op) -> Op:
        if not isinstance(op, ExtendOp | ConcatOp):
            return op
        parts = self.ropes[op.results[0]].parts()
        return op if parts == op.text else dataclasses.replace(op, text=parts)
