"""Sets of characters: ranges of code points with set algebra, the classes of `re`, and folding of case.

A character is a Unicode scalar value: what UTF-8 can encode. Surrogates (U+D800 to U+DFFF) belong to no set, so the
complement of a set and "any character" hold none either.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache
from itertools import groupby

import numpy as np

Range = tuple[int, int]
"""First and last code point, both included."""

LAST_CODE_POINT = 0x10FFFF
FIRST_SURROGATE, LAST_SURROGATE = 0xD800, 0xDFFF


def _merged(ranges: list[Range]) -> list[Range]:
    """Sorted ranges without overlaps and neighbours."""
    merged: list[Range] = []
    end = -2
    for first, last in ranges:
        if first > end + 1:
            merged.append((first, last))
            end = last
        elif last > end:
            merged[-1] = (merged[-1][0], last)
            end = last
    return merged


def _without_surrogates(ranges: list[Range]) -> tuple[Range, ...]:
    for at, (first, last) in enumerate(ranges):
        if last >= FIRST_SURROGATE and first <= LAST_SURROGATE:
            rest = [(first, FIRST_SURROGATE - 1)] if first < FIRST_SURROGATE else []
            if last > LAST_SURROGATE:
                rest.append((LAST_SURROGATE + 1, last))
            return (*ranges[:at], *rest, *_without_surrogates(ranges[at + 1 :]))
        if first > LAST_SURROGATE:
            break
    return tuple(ranges)


class CharSet:
    """An immutable set of characters.

    ``ranges`` are sorted, disjoint, not adjacent, and free of surrogates, so equal sets have equal ranges.
    """

    __slots__ = ("_hash", "ranges")

    ranges: tuple[Range, ...]

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self.ranges = _without_surrogates(_merged(sorted(ranges)))
        self._hash = hash(self.ranges)

    @classmethod
    def of(cls, *parts: str | tuple[str, str]) -> CharSet:
        """The characters of strings and of ranges: ``CharSet.of(("a", "z"), "_-")``."""
        ranges: list[Range] = []
        for part in parts:
            if isinstance(part, str):
                ranges += [(code, code) for code in map(ord, part)]
            else:
                ranges.append((ord(part[0]), ord(part[1])))
        return cls(ranges)

    def __contains__(self, character: str) -> bool:
        code = ord(character)
        at = bisect_left(self.ranges, (code + 1,)) - 1
        return at >= 0 and code <= self.ranges[at][1]

    def __len__(self) -> int:
        """Return the number of characters."""
        return sum(last - first + 1 for first, last in self.ranges)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __or__(self, other: CharSet) -> CharSet:
        return CharSet(self.ranges + other.ranges)

    def __and__(self, other: CharSet) -> CharSet:
        found: list[Range] = []
        left, right = self.ranges, other.ranges
        i = j = 0
        while i < len(left) and j < len(right):
            first, last = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
            if first <= last:
                found.append((first, last))
            if left[i][1] < right[j][1]:
                i += 1
            else:
                j += 1
        return CharSet(found)

    def __invert__(self) -> CharSet:
        """All other characters."""
        found: list[Range] = []
        following = 0
        for first, last in self.ranges:
            found.append((following, first - 1))
            following = last + 1
        found.append((following, LAST_CODE_POINT))
        return CharSet(each for each in found if each[0] <= each[1])

    def __sub__(self, other: CharSet) -> CharSet:
        return self & ~other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharSet) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        shown = [f"U+{a:04X}" if a == b else f"U+{a:04X}-U+{b:04X}" for a, b in self.ranges[:8]]
        return f"CharSet({', '.join(shown)}{', …' if len(self.ranges) > 8 else ''})"


def union(sets: Iterable[CharSet]) -> CharSet:
    """The characters of all sets, merged once."""
    return CharSet(each for part in sets for each in part.ranges)


ANY = CharSet([(0, LAST_CODE_POINT)])
NOT_NEWLINE = ~CharSet.of("\n")

_ASCII_DIGIT = CharSet.of(("0", "9"))
_ASCII_WORD = CharSet.of(("a", "z"), ("A", "Z"), ("0", "9"), "_")
_ASCII_SPACE = CharSet.of(" \t\n\r\f\v")


def digit(*, unicode: bool = False) -> CharSet:
    r"""``\d`` as `re` has it, with or without ``re.ASCII``."""
    return _unicode_class(r"\d+") if unicode else _ASCII_DIGIT


def word(*, unicode: bool = False) -> CharSet:
    r"""``\w`` as `re` has it, with or without ``re.ASCII``."""
    return _unicode_class(r"\w+") if unicode else _ASCII_WORD


def space(*, unicode: bool = False) -> CharSet:
    r"""``\s`` as `re` has it, with or without ``re.ASCII``."""
    return _unicode_class(r"\s+") if unicode else _ASCII_SPACE


def general_category(name: str) -> CharSet | None:
    """The characters of a general category (``Lu``) or of a group of them (``L``); None where there is no such name.

    ``Cs`` (surrogates) is empty. The tables are those of this Python's ``unicodedata``.
    """
    if name == "LC":
        return union(each for category, each in _categories().items() if category in {"Lu", "Ll", "Lt"})
    found = [each for category, each in _categories().items() if category == name or category[0] == name]
    return union(found) if found else None


def fold_ascii(charset: CharSet) -> CharSet:
    """With every ASCII letter its other case: ``re.IGNORECASE | re.ASCII``."""
    upper, lower = charset & CharSet.of(("A", "Z")), charset & CharSet.of(("a", "z"))
    moved = [(a + 32, b + 32) for a, b in upper.ranges] + [(a - 32, b - 32) for a, b in lower.ranges]
    return CharSet([*charset.ranges, *moved]) if moved else charset


def fold_unicode(charset: CharSet) -> CharSet:
    """With every character those that ``re.IGNORECASE`` takes for the same: ``k`` brings ``K`` and the Kelvin sign."""
    cased, variants = _case_variants()
    more: set[int] = set()
    for first, last in charset.ranges:
        for at in range(bisect_left(cased, first), bisect_left(cased, last + 1)):
            more.update(variants[cased[at]])
    return CharSet([*charset.ranges, *((code, code) for code in more)]) if more else charset


def _all_characters() -> str:
    """Every code point in order, surrogates included, so that an index is a code point."""
    codes = np.arange(LAST_CODE_POINT + 1, dtype="<u4")
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


@cache
def _unicode_class(runs: str) -> CharSet:
    """Return the characters of a class of `re`, asked of `re` itself, which finds its runs in milliseconds."""
    return CharSet((found.start(), found.end() - 1) for found in re.finditer(runs, _all_characters()))


@cache
def _categories() -> dict[str, CharSet]:
    ranges: dict[str, list[Range]] = {}
    first = 0
    for category, run in groupby(map(unicodedata.category, _all_characters())):
        following = first + sum(1 for _ in run)
        ranges.setdefault(category, []).append((first, following - 1))
        first = following
    return {category: CharSet(found) for category, found in sorted(ranges.items())}


@cache
def _case_variants() -> tuple[list[int], dict[int, tuple[int, ...]]]:
    """The code points that have case, sorted, and for each all that match it without regard to case.

    `re` compares lower case, and takes lower-case letters with the same upper case (s and ſ) as equal.
    """
    by_lower: dict[str, set[str]] = {}
    by_upper: dict[str, set[str]] = {}
    for character in _cased(_all_characters()):
        # The one full mapping of several characters is that of U+0130: i and a combining dot; `re` takes the i.
        lower = character.lower()[0]
        by_lower.setdefault(lower, {lower}).add(character)
        by_upper.setdefault(lower.upper(), set()).add(lower)
    variants: dict[int, tuple[int, ...]] = {}
    for lowers in by_upper.values():
        group = tuple(sorted(ord(each) for lower in lowers for each in by_lower[lower]))
        if len(group) > 1:
            variants.update(dict.fromkeys(group, group))
    return sorted(variants), variants


def _cased(characters: str) -> Iterable[str]:
    """Characters that a change of case changes. Most blocks have none, which two calls per block show."""
    for at in range(0, len(characters), 512):
        block = characters[at : at + 512]
        if block.lower() != block or block.upper() != block:
            yield from (each for each in block if each.lower() != each or each.upper() != each)
