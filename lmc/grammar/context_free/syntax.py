"""The syntax tree of a grammar in Lark's notation, and what is said of a grammar that is refused."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmc.ir.errors import ConstraintError

_SHOWN = 60  # characters of a line in a message


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in quotes; ``flags`` are letters, "i" or none."""

    text: str
    flags: str
    position: int


@dataclass(frozen=True, slots=True)
class TerminalPattern:
    """A regular expression between slashes; its text begins at ``position`` + 1 of the grammar."""

    text: str
    flags: str
    position: int


@dataclass(frozen=True, slots=True)
class Range:
    """One character from ``first`` to ``last``, both in it."""

    first: str
    last: str
    position: int


@dataclass(frozen=True, slots=True)
class Name:
    """A rule or terminal; ``arguments`` are those of a template."""

    name: str
    arguments: tuple[Expression, ...]
    position: int


@dataclass(frozen=True, slots=True)
class RuleSequence:
    """One part after the other; without parts nothing at all."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RuleChoice:
    """Any of at least two alternatives."""

    alternatives: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RuleRepeat:
    """The part ``low`` to ``high`` times (None: without end)."""

    part: Expression
    low: int
    high: int | None


Expression = Literal | TerminalPattern | Range | Name | RuleSequence | RuleChoice | RuleRepeat


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    """A rule (small letters) or a terminal (capitals); ``parameters`` are those of a template."""

    name: str
    parameters: tuple[str, ...]
    expression: Expression
    position: int


@dataclass(slots=True)
class Grammar:
    """All definitions by name, and what may stand between terminals. ``text`` is where positions count."""

    text: str
    definitions: dict[str, RuleDefinition] = field(default_factory=dict[str, RuleDefinition])
    ignored: list[Expression] = field(default_factory=list[Expression])


def is_terminal(name: str) -> bool:
    """Return True for the name of a terminal: its letters are capitals."""
    return name.lstrip("_")[:1].isupper()


def refusal(text: str, position: int, problem: str, remedy: str) -> ConstraintError:
    """The error for what stands at ``position`` of a grammar (its end, where that is behind it)."""
    start = text.rfind("\n", 0, position) + 1
    line, column = text.count("\n", 0, position) + 1, position - start + 1
    shown = text[start:].split("\n", 1)[0]
    if len(shown) > _SHOWN:
        first = max(0, min(column - 1 - _SHOWN // 2, len(shown) - _SHOWN))
        last = first + _SHOWN
        shown = f"{'…' if first else ''}{shown[first:last]}{'…' if last < len(shown) else ''}"
    where = f"grammar, line {line}, column {column}"
    return ConstraintError(f"{where}: {problem}, in `{shown.strip()}`", remedy=remedy, position=position)
