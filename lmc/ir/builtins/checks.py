"""Checks of choices, branch counts and definitions of constraints, with one wording wherever a value becomes known."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from typing import Any, cast

from lmc.ir.errors import CaptureError, Location
from lmc.ir.wording import with_article, with_count

CHOICE_REMEDY = "give a list of texts, none of them empty"
DEFINED_KINDS = ("choices", "regex", "grammar")
"""Kinds of constraints whose definition may be a value of the run: what they allow is a text."""
_REMEDIES = {
    "choices": CHOICE_REMEDY,
    "regex": "give the pattern as a text",
    "grammar": "give the grammar as a text in the syntax of Lark",
}


def listed_choices(choices: Any) -> list[str]:
    """The choices as plain texts, whatever they are. Raises ``CaptureError`` as ``checked_choices`` does."""
    if type(choices) not in (list, tuple):
        raise CaptureError(
            f"choices is {reprlib.repr(choices)} ({with_article(type(choices).__name__)})",
            remedy="give a list of texts",
        )
    return checked_choices(choices, None)


def checked_choices(choices: Sequence[Any], location: Location | None) -> list[str]:
    """The choices as plain texts. Raises ``CaptureError`` where there is none, or one that can't be scored."""
    if not choices:
        raise CaptureError("select has no choices", remedy=CHOICE_REMEDY, location=location)
    return [checked_choice(choice, location) for choice in choices]


def checked_choice(choice: Any, location: Location | None = None) -> str:
    """One choice as a plain text. Raises ``CaptureError`` for what is no text, and for an empty one."""
    if not isinstance(choice, str):
        raise CaptureError(
            f"a choice is no text: {reprlib.repr(choice)} ({with_article(type(choice).__name__)})",
            remedy=CHOICE_REMEDY,
            location=location,
        )
    if not choice:
        raise CaptureError("an empty choice can't be scored", remedy=CHOICE_REMEDY, location=location)
    return str.__getitem__(choice, slice(None))


def checked_branch_count(count: Any, location: Location | None = None) -> int:
    """Return the number of branches of a fork. Raises ``CaptureError`` unless it is an int of at least 0."""
    if type(count) is not int or count < 0:
        given = f"fork({reprlib.repr(count)})"
        raise CaptureError(
            given if type(count) is int else f"{given}: n is {with_article(type(count).__name__)}",
            remedy="fork into a whole number of branches, at least 0",
            location=location,
        )
    return count


def checked_branch_index(count: int, index: Any) -> int:
    """The place among ``count`` branches that ``index``, which may count from the end, stands for.

    Raises ``IndexError`` where there is none, ``CaptureError`` where it is no whole number.
    """
    if type(index) is not int:
        raise CaptureError(f"branches[{index!r}]", remedy="index branches by number, or by the name of a variable")
    if not -count <= index < count:
        raise IndexError(f"the fork has {with_count(count, 'branch', 'branches')}, none at {index}")
    return index % count


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
