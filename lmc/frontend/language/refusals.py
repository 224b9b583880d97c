"""Errors about the user's program, at their line."""

from __future__ import annotations

import difflib
import reprlib
from typing import Any

from lmc.frontend.source.locations import user_location
from lmc.ir.errors import CaptureError
from lmc.ir.wording import with_article


def bad(cause: str, remedy: str) -> CaptureError:
    """A ``CaptureError`` at the user's line."""
    return CaptureError(cause, remedy=remedy, location=user_location())


def described(value: Any) -> str:
    """``value`` as a message shows it: shortened, with its class."""
    return f"{reprlib.repr(value)} ({with_article(type(value).__name__)})"


def near(name: str, known: tuple[str, ...] | list[str]) -> str:
    """``did you mean …?`` for the known name most like ``name``, else the list of known names."""
    matches = difflib.get_close_matches(name, known, n=1)
    if matches:
        return f"did you mean {matches[0]!r}?"
    return f"known: {', '.join(map(repr, known))}" if known else "none is there yet"
