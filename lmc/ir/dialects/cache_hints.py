"""Hints of a plan about the KV of contexts between the calls that use it. No output depends on them.

A context defined by a call, a prefill, a region or a parameter is kept from an ``lm.keep`` to the next ``lm.keep`` or
``lm.free`` of it, or to the end of its block. Contexts that grow from it by text alone are kept with it. Branches share
prefixes: an engine evicts only tokens that no kept context begins with.
"""

from __future__ import annotations

from lmc.ir.core import Op, Value, attribute, operand, operands, register
from lmc.ir.dialects.rules import expect_context, expect_results


@register("lm.keep")
class KeepOp(Op):
    """Expect another call that starts from ``context``: in wave ``next_use`` of this block at the earliest.

    The hint takes effect once the values of ``after`` (results of earlier uses of the context) are computed. Waves
    count on past the end of a block: in a loop those of the next round, else those of the block around it.
    """

    context: Value = operand()
    after: tuple[Value, ...] = operands(())
    next_use: int = attribute()

    def verify(self) -> None:
        expect_context(self, self.context)
        if self.next_use < 0:
            raise self.fail(f"next_use is {self.next_use}", "waves count from 0")
        expect_results(self)


@register("lm.free")
class FreeOp(Op):
    """Keep ``context`` no longer, once the values of ``after`` (results of its uses) are computed.

    No later call starts from it, nor from text appended to it (``lmc.ir.verify.cache_hint_rules``). With ``next_use``
    one does, in that wave: then an evicted beginning is computed again, which is cheaper than to keep it.
    """

    context: Value = operand()
    after: tuple[Value, ...] = operands(())
    next_use: int | None = attribute(None)

    def verify(self) -> None:
        expect_context(self, self.context)
        if self.next_use is not None and self.next_use < 0:
            raise self.fail(f"next_use is {self.next_use}", "waves count from 0")
        expect_results(self)
