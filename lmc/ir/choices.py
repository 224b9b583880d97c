"""What a select chooses from: the same checks, with the same words, wherever the choices become known."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

from lmc.ir.errors import CaptureError, Location

_REMEDY = "give a list of texts, none of them empty"


def checked_choices(choices: Sequence[Any], location: Location | None) -> list[str]:
    """The choices as plain texts. Raises ``CaptureError`` where there is none, or one that can't be scored."""
    if not choices:
        raise CaptureError("select has no choices", remedy=_REMEDY, location=location)
    return [checked_choice(choice, location) for choice in choices]


def checked_choice(choice: Any, location: Location | None = None) -> str:
    """One choice as a plain text. Raises ``CaptureError`` for what is no text, and for an empty one."""
    if not isinstance(choice, str):
        raise CaptureError(
            f"a choice is no text: {reprlib.repr(choice)} (a {type(choice).__name__})",
            remedy=_REMEDY,
            location=location,
        )
    if not choice:
        raise CaptureError("an empty choice can't be scored", remedy=_REMEDY, location=location)
    return str.__getitem__(choice, slice(None))
