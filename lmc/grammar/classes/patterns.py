"""Regular expressions for what a schema has no keyword for: ranges of digits, base64 of so many bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lmc.grammar.classes.errors import UnsupportedTypeError
from lmc.grammar.regex.sets import sets_in

ASCII = r"^[\x00-\x7f]*$"
NOTHING = r"[^\s\S]"
STRIPPED = r"^(?:\S(?:[\s\S]*\S)?)?$"
"""Without white space at either end."""


def not_below(text: str, *, is_open: bool = False) -> str:
    """Return a pattern for the beginning of texts that have digits in the places of ``text`` and are not less."""
    return "|".join([*_beyond(text, "9"), *([] if is_open else [re.escape(text)])])


def not_above(text: str, end: str, *, is_open: bool = False) -> str:
    """The same for what is not more. Behind ``text`` itself comes ``end``, a pattern."""
    return "|".join([*_beyond(text, "0"), *([] if is_open else [re.escape(text) + end])])


def _beyond(text: str, last: str) -> list[str]:
    """Return alternatives that agree with the text up to a digit that is nearer to ``last``."""
    found: list[str] = []
    for at, character in enumerate(text):
        if character.isdecimal() and character != last:
            following = chr(ord(character) + (1 if last == "9" else -1))
            found.append(f"{re.escape(text[:at])}[{min(following, last)}-{max(following, last)}]")
    return found


def whole_numbers(low: int, high: int) -> str:
    """The numbers from ``low``, at least 0, to ``high``, without leading zeros."""
    found: list[str] = []
    while len(str(low)) < len(str(high)):
        most = 10 ** len(str(low)) - 1
        found.append(_same_length(str(low), str(most)))
        low = most + 1
    return "|".join([*found, _same_length(str(low), str(high))])


def _same_length(low: str, high: str) -> str:
    if low == high:
        return low
    if len(low) == 1:
        return f"[{low}-{high}]"
    first, last, rest = low[0], high[0], len(low) - 1
    if first == last:
        return f"{first}(?:{_same_length(low[1:], high[1:])})"
    parts = [f"{first}(?:{_same_length(low[1:], '9' * rest)})", f"{last}(?:{_same_length('0' * rest, high[1:])})"]
    if int(last) - int(first) > 1:
        parts.insert(1, f"[{int(first) + 1}-{int(last) - 1}][0-9]{{{rest}}}")
    return "|".join(parts)


_ANY = "[A-Za-z0-9+/]"
# The digits of base64 by the bits that are 0 in them: of a byte of ASCII the first is, of padding the last ones are.
_BITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _digits(zero: int) -> str:
    return "[" + "".join(digit for value, digit in enumerate(_BITS) if not value & zero) + "]"


def base64(low: int, high: int | None, *, is_url: bool, is_ascii: bool) -> str:
    """Base64 with padding of ``low`` to ``high`` bytes (None: without end), all of them ASCII if it says so."""
    first, second, third = (_digits(zero if is_ascii else 0) for zero in (0b100000, 0b001000, 0b000010))
    tails = ["", f"{first}{_digits(0b001111)}==", f"{first}{second}{_digits(0b000011)}="]
    found: list[str] = []
    for length, tail in enumerate(tails):
        least = -(-max(low - length, 0) // 3)
        most = "" if high is None else (high - length) // 3
        if most == "" or least <= most:
            found.append(f"(?:{first}{second}{third}{_ANY}){{{least},{most}}}{tail}")
    pattern = f"^(?:{'|'.join(found) or NOTHING})$"
    return pattern.replace("+/", "_-") if is_url else pattern


_ESCAPE = re.compile(r"\\.", re.DOTALL)
# Sets in sets, and operators on them, as Rust has them.
_RUST_SET = re.compile(r"\[|&&|--|~~")
# What is no digit or letter is something else in Rust than in Python and ECMA-262, or in another version of Unicode.
_NEGATED_CLASS = re.compile(r"\\[WDP]")
_CLASS = re.compile(r"\\[wdp]")
_FOLDS = re.compile(r"\(\?[a-zA-Z]*i")
_FLAGS = {re.IGNORECASE: "i", re.VERBOSE: "x", re.DOTALL: "s", re.MULTILINE: "m"}


def of_pydantic(given: str | re.Pattern[str]) -> tuple[str, bool]:
    """A pattern with its flags at its beginning; whether dialects agree on it in ASCII only.

    Raises ``UnsupportedTypeError`` for syntax that means something else elsewhere.
    """
    pattern = given if isinstance(given, str) else given.pattern
    sets = list(sets_in(pattern))
    negated = [each for each in sets if each.startswith("^")]
    if isinstance(given, str):
        if any(_RUST_SET.search(_ESCAPE.sub("", each)) for each in sets):
            cause = f"the pattern {given!r} has sets in sets, which other dialects read differently"
            raise UnsupportedTypeError(cause, "write the set out, with [ as \\[")
        folds = _FOLDS.search(given) is not None
        is_rough = _NEGATED_CLASS.search(given) is not None or any(map(_CLASS.search, negated))
        return given, is_rough or (folds and bool(negated))
    flags = "".join(letter for flag, letter in _FLAGS.items() if given.flags & flag)
    is_rough = bool(negated) and ("i" in flags or _FOLDS.search(pattern) is not None)
    return f"(?{flags}){given.pattern}" if flags else given.pattern, is_rough


def url(schema: dict[str, Any], constraints: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a URL, with its scheme and host."""
    schemes = constraints.get("allowed_schemes")
    scheme = f"(?:{'|'.join(map(re.escape, schemes))})" if schemes else "[A-Za-z][A-Za-z0-9+.-]*"
    if constraints.get("host_required"):
        schema["pattern"] = f"^{scheme}://[^/]"
    elif schemes:
        schema["pattern"] = f"^{scheme}://"
    return schema


def with_patterns(schema: dict[str, Any], more: list[str]) -> dict[str, Any]:
    """The schema with more patterns that all have to be found."""
    if len(more) == 1 and "pattern" not in schema:
        return {**schema, "pattern": more[0]}
    if not more:
        return schema
    return {**schema, "allOf": [*schema.get("allOf", ()), *({"pattern": each} for each in more)]}
