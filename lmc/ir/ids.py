"""Stable ids of ops in regions: templates, whose holes take the numbers that are known when the op runs.

Plain Python calls the uses of one name ``f/x``, ``f/x#1``, ``f/x#2`` and so on. An op in a region runs many times or
not at all, so which use it is becomes a value of the program. In an id ``*`` stands for the number of a use (nothing
for the first, else ``#k``) and ``$`` for a plain number; ``f/view$/x*`` becomes ``f/view3/x#1``.

Calls of the user's functions are not counted but identified by their places, so their ids have no holes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_HOLE = re.compile(r"[*$]")
_USE = re.compile(r"#(?:[0-9]+|_)")
_PATTERNS = {"*": "(?:#[1-9][0-9]*)?", "$": "[0-9]+"}


def count_holes(template: str) -> int:
    """Return the number of holes in an id."""
    return template.count("*") + template.count("$")


def fill_holes(template: str, numbers: Iterable[int]) -> str:
    """The id with ``numbers`` in its holes, in order. Of an iterator it takes as many as there are holes."""
    remaining = iter(numbers)
    return _HOLE.sub(lambda hole: _filled(hole.group(), next(remaining)), template)


def matching(template: str) -> re.Pattern[str]:
    """Return a pattern for the ids that ``template`` may become."""
    parts = re.split(r"([*$])", template)
    return re.compile("".join(_PATTERNS.get(part) or re.escape(part) for part in parts))


def base_of(op_id: str) -> str:
    """The id without numbers of uses: the same for all that stands at one place of a program."""
    return _USE.sub("", op_id)


def without_holes(template: str) -> str:
    """A text that says where the holes are, and has none."""
    return template.replace("*", "#_").replace("$", "#_")


def each_round_id(loop_id: str) -> str:
    """The id of the map that does for each round what rounds of this loop do without needing each other."""
    return f"{loop_id}/@each"


def _filled(hole: str, number: int) -> str:
    if hole == "$":
        return str(number)
    return f"#{number}" if number else ""


_ESCAPES = {"%": "%25", "/": "%2F", "#": "%23", "@": "%40", "*": "%2A", "$": "%24"}


def escape(name: str) -> str:
    """``name`` without the characters that structure an id."""
    return "".join(_ESCAPES.get(letter, letter) for letter in name)
