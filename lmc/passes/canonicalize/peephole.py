"""A forward walk over a function in which later ops may take the place of earlier ones."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.core_ops import BeginOp, ConcatOp, ExtendOp, PrefillOp
from lmc.passes.canonicalize.rope import Rope


class AbsorbingWalk:
    """The ops of the open block so far, and who uses what.

    An op that a later one absorbs is taken out of ``ops`` again; both stand in one block, so that nothing is computed
    more often than before. ``uses`` counts the operands that name a value in the function as it stands, regions
    included; ``ropes`` are the texts of ``lm.extend`` and ``text.concat`` by result, written when their block ends.
    """

    def __init__(self, block: Block) -> None:
        self.uses = Counter(value for op in walk((block,)) for value in op.operands)
        self.ops: list[Op | None] = []
        self.ropes: dict[Value, Rope] = {}
        self.replaced: dict[Value, Value] = {}
        self._missed: dict[Value, int] = {}
        self._places: dict[Value, tuple[list[Op | None], int]] = {}

    def emit(self, op: Op) -> None:
        """Append ``op``."""
        self._places.update((value, (self.ops, len(self.ops))) for value in op.results)
        self.ops.append(op)

    def definition(self, value: Value) -> Op | None:
        """The op that gives ``value``, in this block or one around it; None for a parameter and for what is gone."""
        if value not in self._places:
            return None
        ops, position = self._places[value]
        return ops[position]

    def is_here(self, value: Value) -> bool:
        """Whether an op of the open block gives ``value``."""
        return value in self._places and self._places[value][0] is self.ops

    def expect(self, value: Value, uses: int) -> bool:
        """Whether ``value`` has at most ``uses`` users; where it has more, they may become fewer further down."""
        if self.uses[value] <= uses:
            return True
        self._missed[value] = max(uses, self._missed.get(value, 0))
        return False

    @property
    def misses(self) -> bool:
        """Whether a value has lost users since one was too many: another walk would find that."""
        return any(self.uses[value] <= uses and value in self._places for value, uses in self._missed.items())

    def remove(self, value: Value) -> None:
        """Take the op that gives ``value`` out of its block."""
        ops, position = self._places[value]
        ops[position] = None

    def absorb(self, value: Value) -> None:
        """Take the op that gives ``value`` out of the block: its only user takes its place, and its operands over."""
        self.remove(value)
        self.uses[value] -= 1

    def forward(self, op: Op, value: Value) -> None:
        """Leave ``op`` out and let ``value``, its operand, stand for its only result."""
        self.uses.subtract(op.operands)
        self.stand_for(op.results[0], value)

    def stand_for(self, old: Value, new: Value) -> None:
        """Let ``new`` take over all uses of ``old``."""
        self.uses[new] += self.uses.pop(old, 0)
        self.replaced[old] = new

    def forget(self, ops: Iterable[Op]) -> None:
        """Give up what ``ops`` and their regions use: they are not visited."""
        for op in walk((Block((), tuple(ops)),)):
            self.uses.subtract(self.replaced.get(value, value) for value in op.operands)

    def reuse(self, op: ExtendOp | BeginOp | PrefillOp, context: Value) -> Any:
        """``op`` on another context."""
        self.uses[op.context] -= 1
        self.uses[context] += 1
        return dataclasses.replace(op, context=context)

    def written(self) -> list[Op]:
        """The ops of the open block that are left, with their texts."""
        return [self._written(op) for op in self.ops if op is not None]

    def _written(self, op: Op) -> Op:
        if not isinstance(op, ExtendOp | ConcatOp):
            return op
        parts = self.ropes[op.results[0]].parts()
        return op if parts == op.text else dataclasses.replace(op, text=parts)
