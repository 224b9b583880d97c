r"""Escapes, and sets in brackets: ``[a-z_]``, ``[^0-9]``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

from lmc.grammar.automata import charsets
from lmc.grammar.automata.charsets import CharSet, Range
from lmc.grammar.regex.syntax import refusal
from lmc.ir.errors import ConstraintError

UNICODE, IGNORE_CASE = int(re.UNICODE), int(re.IGNORECASE)

# ECMA-262, 12.2 and 12.3: white space and line terminators.
ECMA_LINE_TERMINATORS = CharSet.of("\n\r\u2028\u2029")
ECMA_SPACE = ECMA_LINE_TERMINATORS | CharSet.of("\t\v\f \u00a0\u1680", ("\u2000", "\u200a"), "\u202f\u205f\u3000\ufeff")

_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_HEXADECIMAL = {
    "x": re.compile(r"[0-9a-fA-F]{2}"),
    "u": re.compile(r"[0-9a-fA-F]{4}"),
    "U": re.compile(r"[0-9a-fA-F]{8}"),
}
_ECMA_CODE_POINT = re.compile(r"\\u\{([0-9a-fA-F]+)\}")
_SURROGATE_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_OCTAL_IN_SET = re.compile(r"\\[0-7]{1,3}")
_OCTAL = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{2})")
_BACK_REFERENCE = re.compile(r"\\(?:[1-9][0-9]?|k<[^>]*>)")
_NAMED = re.compile(r"\\N\{([^}]*)\}")
_PROPERTY = re.compile(r"\\[pP]\{([^}]*)\}")

_BACK_REFERENCE_REMEDY = "write out what may stand there: which text a group matched is beyond a regular language"
_CATEGORY_NAMES = {
    "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt",
    "Modifier_Letter": "Lm", "Other_Letter": "Lo", "Mark": "M", "Nonspacing_Mark": "Mn", "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd", "Letter_Number": "Nl", "Other_Number": "No",
    "Punctuation": "P", "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi", "Final_Punctuation": "Pf", "Other_Punctuation": "Po",
    "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc", "Modifier_Symbol": "Sk", "Other_Symbol": "So",
    "Separator": "Z", "Space_Separator": "Zs", "Line_Separator": "Zl", "Paragraph_Separator": "Zp", "Other": "C",
    "Control": "Cc", "Format": "Cf", "Private_Use": "Co", "Unassigned": "Cn",
}  # fmt: skip


def read_escape(pattern: str, at: int, flags: int, *, ecma: bool, in_set: bool) -> tuple[str | CharSet, int]:
    """The character or set of the escape whose backslash is at ``at``, and where the pattern goes on.

    A character may be a surrogate. Anchors are not read here. Raises ``ConstraintError`` for what is no escape.
    """
    letter = pattern[at + 1 : at + 2]
    if letter in _CONTROLS:
        return _CONTROLS[letter], at + 2
    if letter in "dDsSwW" and letter:
        return character_class(letter, flags & UNICODE, ecma), at + 2
    if letter in _HEXADECIMAL:
        return _code_point(pattern, at, letter, ecma)
    if letter.isdecimal() and letter.isascii():
        return _number(pattern, at, in_set)
    if letter == "N":
        return _named(pattern, at)
    if letter in ("p", "P"):
        return _property(pattern, at, flags)
    if letter == "b" and in_set:
        return "\b", at + 2
    if letter == "c" and ecma:
        control = pattern[at + 2 : at + 3]
        if control.isalpha() and control.isascii():
            return chr(ord(control) % 32), at + 3
        raise refusal(pattern, at, 3, "a control escape without its letter", r"write \cA to \cZ")
    if not letter:
        raise refusal(pattern, at, 1, "a backslash at the end", r"write \\ for a backslash")
    if letter.isalpha() and letter.isascii():
        raise _unknown(pattern, at, letter, in_set)
    return letter, at + 2


@cache
def character_class(letter: str, unicode: int, ecma: bool) -> CharSet:
    r"""The set of \d, \s, \w (upper case: all others)."""
    if letter.isupper():
        return ~character_class(letter.lower(), unicode, ecma)
    if letter == "d":
        return charsets.digit(unicode=bool(unicode))
    if letter == "w":
        return charsets.word(unicode=bool(unicode))
    return ECMA_SPACE if ecma else charsets.space(unicode=bool(unicode))


def folded(charset: CharSet, flags: int) -> CharSet:
    """The set with what is equal to its members where case does not count."""
    if not flags & IGNORE_CASE:
        return charset
    return charsets.fold_unicode(charset) if flags & UNICODE else charsets.fold_ascii(charset)


def _code_point(pattern: str, at: int, letter: str, ecma: bool) -> tuple[str, int]:
    if ecma and letter == "u":
        braced = _ECMA_CODE_POINT.match(pattern, at)
        if braced is not None:
            digits = braced[1].lstrip("0")
            code = int(digits or "0", 16) if len(digits) <= 6 else charsets.LAST_CODE_POINT + 1
            return _character(pattern, at, braced.end(), code)
        pair = _SURROGATE_PAIR.match(pattern, at)
        if pair is not None:
            high, low = int(pair[1], 16) - 0xD800, int(pair[2], 16) - 0xDC00
            return chr(0x10000 + (high << 10) + low), pair.end()
    digits = _HEXADECIMAL[letter].match(pattern, at + 2)
    if digits is None:
        count = {"x": 2, "u": 4, "U": 8}[letter]
        raise refusal(
            pattern,
            at,
            2 + count,
            f"an escape without its {count} hexadecimal digits",
            f"give {count}, with leading zeros",
        )
    return _character(pattern, at, digits.end(), int(digits[0], 16))


def _character(pattern: str, at: int, end: int, code: int) -> tuple[str, int]:
    if code > charsets.LAST_CODE_POINT:
        raise refusal(pattern, at, end - at, "an escape beyond the last character", "characters end at U+10FFFF")
    return chr(code), end


def _number(pattern: str, at: int, in_set: bool) -> tuple[str, int]:
    octal = (_OCTAL_IN_SET if in_set else _OCTAL).match(pattern, at)
    if octal is not None:
        code = int(octal[0][1:], 8)
        if code > 0o377:
            raise refusal(pattern, at, 4, r"an octal escape above \377", r"write the character, or \u and four digits")
        return chr(code), octal.end()
    if in_set:
        raise refusal(pattern, at, 2, "an escape that means nothing", r"write the digit alone, or \x and two digits")
    found = _BACK_REFERENCE.match(pattern, at)
    assert found is not None
    raise refusal(pattern, at, len(found[0]), "a back-reference is not regular", _BACK_REFERENCE_REMEDY)


def _named(pattern: str, at: int) -> tuple[str, int]:
    found = _NAMED.match(pattern, at)
    if found is None:
        raise refusal(pattern, at, 2, "a named character without its name", r"write \N{DIGIT ONE}")
    try:
        character = unicodedata.lookup(found[1])
    except KeyError:
        character = ""
    if len(character) != 1:
        raise refusal(
            pattern, at, len(found[0]), "no character has this name", r"write the character, or \u and its code"
        )
    return character, found.end()


def _property(pattern: str, at: int, flags: int) -> tuple[CharSet, int]:
    found = _PROPERTY.match(pattern, at)
    if found is None:
        raise refusal(pattern, at, 2, "a property without its name", r"write \p{L}")
    name = found[1].removeprefix("General_Category=").removeprefix("gc=")
    charset = charsets.ANY if name == "Any" else charsets.general_category(_CATEGORY_NAMES.get(name, name))
    if charset is None:
        problem = "only general categories are known as properties"
        raise refusal(
            pattern, at, len(found[0]), problem, r"use \p{L}, \p{Lu}, \p{N} and the like, or write the ranges"
        )
    charset = folded(charset, flags)
    return (~charset if pattern[at + 1] == "P" else charset), found.end()


def _unknown(pattern: str, at: int, letter: str, in_set: bool) -> Exception:
    if letter in "bB" and not in_set:
        remedy = "write the characters that may stand on both sides; what surrounds a place is not looked at"
        return refusal(pattern, at, 2, "a word boundary is not supported", remedy)
    if letter == "k" and not in_set:
        found = _BACK_REFERENCE.match(pattern, at)
        return refusal(
            pattern, at, len(found[0]) if found else 2, "a back-reference is not regular", _BACK_REFERENCE_REMEDY
        )
    return refusal(pattern, at, 2, "an escape that means nothing", "write the letter alone, or two backslashes")


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
        if self._ecma:  # ECMA-262, B.1.2: the dash is a literal
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
