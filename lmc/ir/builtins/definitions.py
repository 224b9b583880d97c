"""Definitions of constraints: the same checks, with the same words, wherever a value becomes known."""

from __future__ import annotations

import json
import reprlib
from typing import Any, cast

from lmc.ir.errors import CaptureError, Location
from lmc.ir.wording import with_article

DEFINED_KINDS = ("choices", "regex", "grammar")
"""Kinds of constraints whose definition may be a value of the run: what they allow is a text."""
_REMEDIES = {
    "choices": "give a list of texts, none of them empty",
    "regex": "give the pattern as a text",
    "grammar": "give the grammar as a text in the syntax of Lark",
}


def definition(kind: str, value: Any, location: Location | None = None) -> str:
    """Return the text of a constraint of one of ``DEFINED_KINDS``. Raises ``CaptureError`` for a wrong value."""
    given: Any = value
    if type(value) is tuple:
        given = [*value]
    if kind == "choices":
        is_valid = isinstance(given, list) and given and all(isinstance(entry, str) and entry for entry in given)
    else:
        is_valid = isinstance(given, str) and (given.strip() if kind == "grammar" else given)
    if not is_valid:
        described = f"{reprlib.repr(given)} ({with_article(type(given).__name__)})"
        raise CaptureError(f"{kind} is {described}", remedy=_REMEDIES[kind], location=location)
    if kind == "choices":
        return json.dumps(list(dict.fromkeys(given)), separators=(",", ":"), ensure_ascii=False)
    return cast("str", given)
