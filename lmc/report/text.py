"""Texts that are safe to show: printable, bounded, and without marks that change the direction of what is around."""

from __future__ import annotations

import unicodedata

KEPT = "\n\t"
"""Characters that do not print, and stay where a text has several lines."""


def visible(text: str, kept: str = "") -> str:
    r"""Return the text with every character that does not print as its number: ``\u{202e}``.

    That are control characters, marks of direction, other format characters and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(one if one in kept or _prints(one) else f"\\u{{{ord(one):x}}}" for one in text)


def _prints(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == "Zs"


def shortened(text: str, most: int) -> str:
    """Return a printable text of at most about ``most`` characters, which says how long it was."""
    shown = visible(text[:most], KEPT)
    return shown if len(text) <= most else f"{shown}… ({len(text):,} characters)"


def one_line(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters in one line, with ``⏎`` for a line break."""
    shown = visible(text[: most + 1].replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " "))
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
