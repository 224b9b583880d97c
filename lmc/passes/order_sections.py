"""The pass ``order-sections``."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import ExtendOp
from lmc.ir.dialects.section_ops import SectionsOp, section_order
from lmc.ir.rewriter import with_regions
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.hoist_prefixes import same_in_every_instance
from lmc.passes.rewriting import make_op, with_ops


@dataclass(frozen=True)
class OrderSections(FunctionPass):
    """Put sections that may move ahead of those in which instances differ, so that prompts begin alike.

    A program marks with ``lmc.section(text, movable=True)`` what means the same wherever it stands: rules, examples, a
    description of the output. Of sections that follow each other in one message (or in one piece of bare text), the
    movable ones come first; these and the others keep their order. Text that is no section stays where it is, and no
    section passes it.

    It changes prompts, and so what a model says. Therefore it is in no level: ``order_sections=True`` of a program, or
    ``--order-sections``, puts it first. With that option an eager run orders in the same way, so all ways of running a
    program still agree. Sound under what the program says of its sections.

    Before::

        %1 = lm.sections %0, user [%essay, "Grade strictly. "] {kinds = ["section", "movable"], lengths = [1, 1]} : !ctx

    After::

        %1 = lm.extend %0, user ["Grade strictly. ", %essay] : !ctx
    """

    NAME: ClassVar[str] = "order-sections"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        return self._block(block, same_in_every_instance(block), context)

    def _block(self, block: Block, same: AbstractSet[Value], context: PassContext) -> Block:
        """Recursion is as deep as regions are nested."""
        ops: list[Op] = []
        for op in block.ops:
            if isinstance(op, SectionsOp):
                ops.append(self._ordered(op, same, context))
            else:
                ops.append(with_regions(op, [self._block(region, same, context) for region in op.regions]))
        return with_ops(block, ops)

    def _ordered(self, op: SectionsOp, same: AbstractSet[Value], context: PassContext) -> Op:
        order = section_order(op.kinds)
        sections = op.sections
        text = tuple(part for index in order for part in sections[index])
        if order != sorted(order):
            self._remark(op, text, same, context)
        self._remark_missed(op, [sections[index] for index in order if op.kinds[index] == "movable"], context)
        return make_op(ExtendOp, op.results, op.location, context=op.context, role=op.role, text=text)

    def _remark(
        self, op: SectionsOp, text: Sequence[str | Value], same: AbstractSet[Value], context: PassContext
    ) -> None:
        before, after = _leading(op.text, context), _leading(text, context)
        who = "all instances of a batch" if op.context in same else "all that goes on from the context before it"
        if after > before:
            message = f"movable sections come first: about {after} tokens of text, not {before}, are the same for {who}"
            self.applied(context, op, message)
        elif after < before:
            message = (
                f"movable sections come first, of which some are known at run time only: about {after} tokens of text, "
                f"not {before}, are the same for {who}; mark only what is always the same"
            )
            self.missed(context, op, message)
        else:
            message = "movable sections come first, but what comes ahead of them is known at run time only"
            self.applied(context, op, message)

    def _remark_missed(self, op: SectionsOp, movable: Sequence[Sequence[str | Value]], context: PassContext) -> None:
        """A movable section that is not known now keeps those behind it from being shared."""
        known = [all(isinstance(part, str) for part in section) for section in movable]
        if False in known and True in known[known.index(False) :]:
            message = (
                "a movable section that is known at run time only stands ahead of one that is always the same: "
                "write that one first, or mark only what is always the same"
            )
            self.missed(context, op, message)


def _leading(text: Sequence[str | Value], context: PassContext) -> int:
    """Return the number of tokens at the beginning of a text that are known now."""
    count = 0
    for part in text:
        if isinstance(part, Value):
            break
        count += context.tokens(part)
    return count
