"""Text in sections (``lmc.section``), of which some may move ahead of others."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.core import Op, Value, attribute, operand, parts, register
from lmc.ir.dialects.core_ops import ROLES
from lmc.ir.dialects.rules import expect_context, expect_one_of, expect_results, expect_text_parts
from lmc.ir.types import CTX

SECTION_KINDS = ("text", "section", "movable")


def section_order(kinds: Sequence[str]) -> list[int]:
    """Sections in the order that the option ``order_sections`` gives them.

    Of sections that follow each other the movable ones come first; both they and the others keep their order. Text
    that is no section stays where it is, and nothing passes it.
    """
    order: list[int] = []
    behind: list[int] = []
    for index, kind in enumerate(kinds):
        if kind == "section":
            behind.append(index)
            continue
        if kind == "text":
            order += behind
            behind = []
        order.append(index)
    return order + behind


@register("lm.sections")
class SectionsOp(Op):
    """Append text in sections, else as ``lm.extend`` does.

    ``kinds`` has one of ``SECTION_KINDS`` for each section, ``lengths`` its number of parts. The op keeps their order;
    the pass order-sections puts movable ones first.
    """

    context: Value = operand()
    role: str | None = attribute(None, keyword=True)
    text: tuple[str | Value, ...] = parts()
    lengths: tuple[int, ...] = attribute()
    kinds: tuple[str, ...] = attribute()

    def verify(self) -> None:
        expect_context(self, self.context)
        if self.role is not None:
            expect_one_of(self, "role", self.role, ROLES)
        expect_text_parts(self, self.text)
        for kind in self.kinds:
            expect_one_of(self, "kind of section", kind, SECTION_KINDS)
        if len(self.kinds) != len(self.lengths):
            raise self.fail("kinds and lengths differ in number", "give each section both")
        if min(self.lengths, default=0) < 0 or sum(self.lengths) != len(self.text):
            raise self.fail("lengths don't add up to the parts of the text", "count the parts of each section")
        expect_results(self, CTX)

    @property
    def sections(self) -> list[tuple[str | Value, ...]]:
        """The text of each section."""
        found: list[tuple[str | Value, ...]] = []
        start = 0
        for length in self.lengths:
            found.append(self.text[start : start + length])
            start += length
        return found
