"""The syntax tree of a pattern, over characters, and what is said of a pattern that is refused."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lmc.grammar.automata.charsets import CharSet
from lmc.ir.errors import ConstraintError

_SHOWN = 60  # characters of a pattern in a message


@dataclass(eq=False, slots=True)
class Text:
    """Exactly these characters; none of them: the empty string."""

    text: str


@dataclass(eq=False, slots=True)
class Characters:
    """One character of a set."""

    charset: CharSet


class Side(IntEnum):
    """The text beyond one end of an expression, from the weakest to the strongest statement about it.

    An anchor at that end raises the side to its own; INSIDE may have other parts of the pattern.
    """

    OPEN = 0  # any text
    FINAL_NEWLINE = 1  # nothing or one newline: `$` of a search, as `re` has it
    EDGE = 2  # nothing: the text begins or ends here
    INSIDE = 3


@dataclass(eq=False, slots=True)
class Anchor:
    """The start or end of the text. ``of_line``: of any line, by ``(?m)``."""

    is_start: bool
    side: Side
    of_line: bool
    position: int
    spelling: str


@dataclass(eq=False, slots=True)
class Concatenation:
    """One item after the other, at least one."""

    items: tuple[Item, ...]


@dataclass(eq=False, slots=True)
class Alternation:
    """Any of the arms, at least two."""

    arms: tuple[Item, ...]


@dataclass(eq=False, slots=True)
class Repeat:
    """The item ``low`` to ``high`` times (None: without end)."""

    item: Item
    low: int
    high: int | None


Composite = Concatenation | Alternation | Repeat
Item = Text | Characters | Anchor | Composite

EMPTY = Text("")


@dataclass(eq=False, slots=True)
class Pattern:
    """A parsed pattern. ``composites`` holds every item that has parts, parts first, so that no walk needs to recurse.

    Items are compared by identity; a composite or an anchor is part of one other item at most.
    """

    text: str
    root: Item
    composites: list[Composite]
    anchors: list[Anchor]


def refusal(pattern: str, position: int, length: int, problem: str, remedy: str) -> ConstraintError:
    """The error for ``length`` characters at ``position``: the problem, the characters, and the pattern around them."""
    shown = pattern
    if len(pattern) > _SHOWN:
        first = max(0, min(position - _SHOWN // 2, len(pattern) - _SHOWN))
        last = first + _SHOWN
        shown = f"{'…' if first else ''}{pattern[first:last]}{'…' if last < len(pattern) else ''}"
    offending = pattern[position : position + min(length, _SHOWN)]
    cause = f"{problem}: {_quoted(offending)} at character {position} of the pattern {_quoted(shown)}"
    return ConstraintError(cause, remedy=remedy, position=position)


def _quoted(text: str) -> str:
    """In backticks, with what does not print escaped; backslashes stay single, as the user wrote them."""
    return "`" + "".join(each if each.isprintable() else repr(each)[1:-1] for each in text) + "`"
