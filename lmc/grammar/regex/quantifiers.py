"""Quantifiers: ``*``, ``+``, ``?``, ``{m,n}``."""

from __future__ import annotations

import re

from lmc.grammar.regex.syntax import refusal
from lmc.ir.errors import ConstraintError

MAX_REPEAT = 2**32 - 2
"""The largest number in ``{m,n}``, as in `re`."""

Bounds = tuple[int, int | None]
"""The least and the greatest number of repetitions (None: without end)."""

_SIMPLE: dict[str, Bounds] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_BRACES = re.compile(r"\{([0-9]*)(?:(,)([0-9]*))?\}")


def read_quantifier(pattern: str, start: int) -> tuple[Bounds | None, int]:
    """The quantifier at ``start`` and where the pattern goes on; None for a brace that is a character.

    Raises ``ConstraintError`` for bounds that are too large or the wrong way round, and for possessive ones.
    """
    bounds = _SIMPLE.get(pattern[start])
    end = start + 1
    if bounds is None:
        found = _BRACES.match(pattern, start)
        if found is None or found[0] == "{}":
            return None, end
        bounds, end = _bounds(found), found.end()
    following = pattern[end : end + 1]
    if following == "+":
        remedy = "leave out the last +: all matches count here, however they are found"
        raise refusal(pattern, start, end + 1 - start, "a possessive quantifier is not supported", remedy)
    return bounds, end + (following == "?")  # a lazy one has the same language


def _bounds(found: re.Match[str]) -> Bounds:
    low = _number(found, 1) or 0
    high = _number(found, 3) if found[2] else low
    if high is not None and high < low:
        raise _refusal(found, "a quantifier whose bounds are the wrong way round", "write the smaller one first")
    return low, high


def _number(found: re.Match[str], group: int) -> int | None:
    if not found[group]:
        return None
    digits = found[group].lstrip("0")
    if len(digits) > 10 or int(digits or "0") > MAX_REPEAT:
        raise _refusal(found, f"a quantifier above {MAX_REPEAT}", "lower the bound, or leave out the upper one")
    return int(digits or "0")


def _refusal(found: re.Match[str], problem: str, remedy: str) -> ConstraintError:
    return refusal(found.string, found.start(), len(found[0]), problem, remedy)
