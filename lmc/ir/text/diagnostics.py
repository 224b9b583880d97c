"""The place of an error in a text: line, column and the line itself with a caret."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmc.ir.errors import Location, ParseError

_WIDTH = 100
_BEFORE_CARET = 60


@dataclass(frozen=True, slots=True)
class SourceText:
    """A text and the name of the file it came from."""

    filename: str
    text: str = field(repr=False)

    def error(self, cause: str, *, remedy: str, start: int, end: int | None = None) -> ParseError:
        """An error about the characters from ``start`` up to ``end`` (one character where it is None)."""
        start = min(max(start, 0), len(self.text))
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        width = max(1, min(start + 1 if end is None else end, line_end) - start)
        line = self.text.count("\n", 0, start) + 1
        return ParseError(
            cause,
            remedy=remedy,
            location=Location(self.filename, line),
            column=start - line_start + 1,
            excerpt=_excerpt(self.text[line_start:line_end], start - line_start, width),
        )


def shown(text: str, limit: int = 40) -> str:
    """``text`` for a message: cut to ``limit`` characters, with nothing in it that would not print."""
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    return _printable(cut)


def _excerpt(line: str, column: int, width: int) -> str:
    """The line, cut around the caret where it is long, and the caret under it."""
    first = max(0, column - _BEFORE_CARET) if len(line) > _WIDTH else 0
    window = line[first : first + _WIDTH]
    left, right = "…" if first else "", "…" if first + _WIDTH < len(line) else ""
    at = len(left) + column - first
    carets = "^" + "~" * max(0, min(width - 1, len(left) + len(window) - at - 1))
    return f"    {left}{_printable(window)}{right}\n    {' ' * at}{carets}"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " if character == "\t" else "�" for character in text)
