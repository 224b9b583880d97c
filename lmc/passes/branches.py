"""Who goes on from a context, and what is the same in every instance of a batch."""

from __future__ import annotations

from lmc.ir.core import Block, Effect, Op, Value
from lmc.ir.ops import SampleOp
from lmc.ir.types import CTX


def users_that_call(block: Block) -> dict[Value, list[int]]:
    """For each context the ops that go on from it and are, or lead to, a model call; in order."""
    users: dict[Value, list[int]] = {}
    for index in range(len(block.ops) - 1, -1, -1):
        op = block.ops[index]
        if op.billable or any(value in users for value in op.results):
            for value in op.operands:
                if value.type == CTX:
                    users.setdefault(value, []).append(index)
    for indices in users.values():
        indices.reverse()
    return users


def same_in_every_instance(block: Block) -> frozenset[Value]:
    """The values that depend on no input, no model and no host function."""
    same: set[Value] = set()
    for op in block.ops:
        if op.effect is Effect.PURE and not (op.may_raise or op.billable) and same.issuperset(op.operands):
            same.update(op.results)
    return frozenset(same)


def weight(op: Op) -> int:
    """How many requests go on from the op's context at once."""
    return op.n if isinstance(op, SampleOp) else 1
