"""The pass ``dce``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.passes.base import Pass, PassContext


@dataclass(frozen=True)
class EliminateDeadCode(Pass):
    """Drop ops whose results nobody reads.

    What is read in the end are the operands of the terminator: the returned values, the names on the root context and
    its text; after a break, everything the eager continuation needs.

    An op is dropped if it does not write and cannot raise by the meaning of the program. So an unused ``int(answer)``
    or host call stays, since it may raise and the program would then end there. A model call (``billable``) is dropped
    although its engine may fail: failing to serve an answer that nobody reads is no part of what a program means.
    ``py.assume`` counts as a write and stays.

    Before::

        %1, %draft = lm.gen %0 {id = "f/draft"} : !ctx, !text
        %2 = text.concat [%draft, "!"] : !text
        %3, %answer = lm.gen %0 {id = "f/answer"} : !ctx, !text
        lm.return %3 (%answer)

    After::

        %3, %answer = lm.gen %0 {id = "f/answer"} : !ctx, !text
        lm.return %3 (%answer)
    """

    NAME: ClassVar[str] = "dce"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        live: set[Value] = set()
        kept: list[Op] = []
        dropped: list[Op] = []
        for op in reversed(block.ops):
            if not _must_stay(op) and live.isdisjoint(op.results):
                dropped.append(op)
                continue
            kept.append(op)
            live.update(op.operands)
            for inner in walk(op.regions):
                live.update(inner.operands)
        if not dropped:
            return block
        for op in reversed(dropped):
            if op.billable:
                self._remark(op, context)
        return Block(block.parameters, tuple(reversed(kept)))

    def _remark(self, op: Op, context: PassContext) -> None:
        identity = repr(getattr(op, "id", op.NAME))
        calls = getattr(op, "n", 1)
        self.applied(context, op.location, f"{identity} is dropped: nobody reads its result", saved_calls=calls)


def _must_stay(op: Op) -> bool:
    if op.IS_TERMINATOR or op.effect is Effect.WRITES:
        return True
    return op.may_raise and not op.billable
