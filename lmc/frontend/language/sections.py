"""Sections of text, some of which may go ahead of others: ``lmc.section``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from lmc.frontend.language.messages import Appendable, Section, Several, is_text, no_text
from lmc.frontend.language.refusals import bad, described


def section(text: Any, *, movable: bool = False) -> Section:
    """A part of a message: ``s += lmc.user(lmc.section(essay) + lmc.section(RULES, movable=True))``.

    It is its text. Where the program runs with ``order_sections=True``, those that are ``movable`` go ahead of the
    other sections directly before them, so that prompts of different instances begin alike and share what is computed
    of them: mark what means the same wherever it stands, and is the same in every instance. Text that is no section
    stays where it is, and no section passes it. Both the movable sections and the others keep their order.

    Raises ``CaptureError`` for what is no text.
    """
    if type(movable) is not bool:
        raise bad(f"movable is {described(movable)}", "give True or False")
    if not is_text(text):
        raise no_text(type(text), "a section holds")
    return Section(text, movable)


@dataclass(frozen=True, slots=True, eq=False)
class Sections(Appendable):
    """Texts and sections that are appended at once: ``texts`` and what they are (``lmc.ir.dialects.section_ops``)."""

    kinds: tuple[str, ...]
    texts: tuple[Any, ...]


def with_sections(parts: Iterable[Any]) -> Sequence[Any]:
    """``parts`` of a ``Several``, in which texts and sections that follow each other are one ``Sections``.

    Texts among which there is no section are left alone.
    """
    found: list[Any] = []
    for is_plain, group in groupby(parts, key=lambda part: type(part) is Section or is_text(part)):
        members = list(group)
        if is_plain and any(type(part) is Section for part in members):
            found.append(merged_sections(members))
        else:
            found += members
    return found


def merged_sections(members: Sequence[Any]) -> Sections:
    """Texts and sections that follow each other, as one."""
    return Sections(tuple(map(_kind, members)), tuple(map(_text, members)))


def sections_of(content: Any) -> Sections | None:
    """The content of a message that is made of texts and sections alone; None for any other."""
    parts = content.parts if type(content) is Several else (content,)
    found = with_sections(parts)
    return found[0] if len(found) == 1 and type(found[0]) is Sections else None


def _kind(part: Any) -> str:
    if type(part) is not Section:
        return "text"
    return "movable" if part.movable else "section"


def _text(part: Any) -> Any:
    return part.text if type(part) is Section else part
