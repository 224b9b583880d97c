"""Sets in brackets: ``[a-z_]``, ``[^0-9]``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from lmc.grammar.automata import charsets
from lmc.grammar.automata.charsets import CharSet, Range
from lmc.grammar.regex.escapes import IGNORE_CASE, folded, read_escape
from lmc.grammar.regex.syntax import refusal
from lmc.ir.errors import ConstraintError

# From bracket to bracket. The first character is a member even where it is a bracket; in ECMA-262 it is not.
_EXTENT = re.compile(r"\[\^?+\]?+(?:[^\]\\]++|\\.)*+\]", re.DOTALL)
_ECMA_EXTENT = re.compile(r"\[(?:[^\]\\]++|\\.)*+\]", re.DOTALL)
_ESCAPE_OR_SET = re.compile(rf"\\.|({_EXTENT.pattern})", re.DOTALL)


def sets_in(pattern: str) -> Iterator[str]:
    """Yield the inside of the brackets of each set of a pattern, as `re` reads it."""
    for found in _ESCAPE_OR_SET.finditer(pattern):
        if found[1]:
            yield found[1][1:-1]


def read_set(pattern: str, start: int, flags: int, *, ecma: bool) -> tuple[CharSet, int]:
    """The set whose bracket opens at ``start``, and where the pattern goes on. Raises ``ConstraintError``."""
    extent = (_ECMA_EXTENT if ecma else _EXTENT).match(pattern, start)
    if extent is None:
        length = len(pattern) - start
        raise refusal(pattern, start, length, "a set without its closing bracket", r"close it with ], or write \[")
    try:
        return _set(extent[0], flags, ecma), extent.end()
    except ConstraintError:
        # Once more, with the positions and the text of the whole pattern.
        return _Set(pattern, start, extent.end() - 1, flags, ecma).read(), extent.end()


@lru_cache(maxsize=1024)
def _set(text: str, flags: int, ecma: bool) -> CharSet:
    return _Set(text, 0, len(text) - 1, flags, ecma).read()


class _Set:
    """Reads ``pattern[start:end]``, where ``end`` is the place of the closing bracket."""

    def __init__(self, pattern: str, start: int, end: int, flags: int, ecma: bool) -> None:
        self._pattern = pattern
        self._start = start
        self._end = end
        self._flags = flags
        self._ecma = ecma

    def read(self) -> CharSet:
        at = self._start + 1
        negated = self._pattern[at] == "^"
        at += negated
        ranges: list[Range] = []
        classes: list[CharSet] = []
        while at < self._end:
            members, at = self._next(at)
            for member in members:
                if isinstance(member, CharSet):
                    classes.append(member)
                else:
                    ranges.append(member)
        return self._charset(negated, ranges, classes)

    def _next(self, at: int) -> tuple[tuple[Range | CharSet, ...], int]:
        """A member or a range, and where the set goes on."""
        first, following = self._member(at)
        if following >= self._end - 1 or self._pattern[following] != "-":
            return (_as_range(first),), following
        last, following = self._member(following + 1)
        if isinstance(first, str) and isinstance(last, str):
            if first > last:
                remedy = r"swap its ends, or write \- for a dash"
                raise self._refusal(at, following, "a range that ends before it begins", remedy)
            return ((ord(first), ord(last)),), following
        if self._ecma:  # ECMA-262, B.1.2: the dash stands for itself
            return (_as_range(first), _as_range("-"), _as_range(last)), following
        remedy = r"write \- for a dash, or put it first or last"
        raise self._refusal(at, following, "a range from or to a class", remedy)

    def _member(self, at: int) -> tuple[str | CharSet, int]:
        if self._pattern[at] == "\\":
            return read_escape(self._pattern, at, self._flags, ecma=self._ecma, in_set=True)
        return self._pattern[at], at + 1

    def _charset(self, negated: bool, ranges: list[Range], classes: list[CharSet]) -> CharSet:
        named = CharSet(ranges)
        if ranges and not named and not classes and not negated:
            remedy = r"write the characters themselves, or \U and eight digits: UTF-8 has no surrogates"
            raise self._refusal(self._start, self._end + 1, "a set of nothing but surrogates", remedy)
        if self._flags & IGNORE_CASE:
            named = folded(named, self._flags)
        found = charsets.union([named, *classes]) if classes else named
        return ~found if negated else found

    def _refusal(self, at: int, end: int, problem: str, remedy: str) -> ConstraintError:
        return refusal(self._pattern, at, end - at, problem, remedy)


def _as_range(member: str | CharSet) -> Range | CharSet:
    return (ord(member), ord(member)) if isinstance(member, str) else member
