"""Texts and numbers that have more to say than keywords: ranges of digits, base64, decimals, times, durations."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic.errors import PydanticInvalidForJsonSchema

from lmc.grammar.regex.escapes import sets_in


class UnsupportedTypeError(PydanticInvalidForJsonSchema):
    """A type whose values no schema describes, so that pydantic would refuse some that a schema allows.

    Pydantic leaves it out where it is one choice of a union. ``remedy`` names a replacement.
    """

    def __init__(self, cause: str, remedy: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"field {'.'.join(path)}: {cause}" if path else cause)
        self.cause = cause
        self.remedy = remedy
        self.path = path

    def within(self, name: str) -> UnsupportedTypeError:
        """The same of a type one of whose fields it is about."""
        return UnsupportedTypeError(self.cause, self.remedy, (name, *self.path))


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


_MOST_PLACES = 10
_MOST_DIGITS = 15
# Pydantic computes the rest of a division of floats; from 2**23 on its error is beyond what it allows.
_MOST_DIVIDED = 8_000_000

JsonSchema = dict[str, Any]
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def decimal_schema(constraints: Mapping[str, Any]) -> JsonSchema:
    """A decimal as a number or as a text that holds one. Up to 10 places and 15 digits where these are bounded."""
    shape: JsonSchema = {"type": "number", **_inward(constraints)}
    step: Decimal | None = constraints.get("multiple_of")
    if step is not None:
        shape["multipleOf"] = float(step)
        _hold(shape, 10**_MOST_DIGITS)  # beyond them a decimal context divides no more
    places, digits = constraints.get("decimal_places"), constraints.get("max_digits")
    forms = _forms(places, digits)
    if len(forms) == 1 and not shape.keys() & forms[0].keys():
        shape.update(forms[0])
    elif len(forms) == 1:
        shape["allOf"] = forms
    elif forms:
        shape["anyOf"] = forms
    text = {"type": "string", "contentMediaType": "application/json", "contentSchema": shape}
    return {"anyOf": [shape, text]}


def _forms(places: int | None, digits: int | None) -> list[JsonSchema]:
    """Alternatives for how digits are shared out before and behind the point."""
    if digits is None:
        return [] if places is None else [_form(min(places, _MOST_PLACES), None)]
    if places is not None:
        whole = max(digits - places, 0)
        form = _form(min(places, digits, _MOST_PLACES), whole)
        return [form if whole else {**form, "not": {"const": 0}}]  # the 0 before the point counts if nothing follows
    digits = min(digits, _MOST_DIGITS)
    return [_form(behind, digits - behind) for behind in range(min(digits, _MOST_PLACES) + 1)]


def _form(places: int, whole: int | None) -> JsonSchema:
    made: JsonSchema = {"multipleOf": float(Decimal(1).scaleb(-places)) if places else 1}
    if whole is not None:
        made["exclusiveMinimum"], made["exclusiveMaximum"] = -(10**whole), 10**whole
    return made


def float_schema(schema: JsonSchema) -> JsonSchema:
    """The schema of a float, within those bounds where pydantic divides it by its step exactly enough."""
    step = schema.get("multipleOf")
    if step is None or Fraction(repr(step)) == Fraction(step):
        return schema
    _hold(schema, _MOST_DIVIDED)
    return schema


def _hold(schema: JsonSchema, limit: int) -> None:
    """Hold numbers to those whose amount is not above a limit."""
    schema["minimum"] = max(schema.get("minimum", -limit), -limit)
    schema["maximum"] = min(schema.get("maximum", limit), limit)


def fraction_schema(constraints: Mapping[str, Any]) -> JsonSchema:
    """A fraction: a number, or where nothing is asked of it a text like ``3/4``."""
    bounds = _inward(constraints)
    number: JsonSchema = {"type": "number", **bounds}
    return number if bounds else {"anyOf": [number, {"type": "string", "format": "fraction"}]}


def complex_schema() -> JsonSchema:
    """A real and an imaginary part with up to 15 digits before and behind the point."""
    digits = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
    return {"type": "string", "pattern": f"^-?{digits}(?:[+-]{digits}j)?$"}


def byte_size_schema(units: Mapping[str, float]) -> JsonSchema:
    """A number of bytes, or a text with a unit."""
    names = "|".join(sorted({*units, *map(str.upper, units)}, key=lambda name: (-len(name), name)))
    text = {"type": "string", "pattern": rf"^[0-9]{{1,9}}(?:\.[0-9]{{1,3}})? ?(?:{names})$"}
    return {"anyOf": [{"type": "integer", "minimum": 0}, text]}


def _inward(constraints: Mapping[str, Any]) -> JsonSchema:
    """Bounds as floats that are not beyond them."""
    found: JsonSchema = {}
    for name, keyword in _BOUNDS.items():
        bound = constraints.get(name)
        if bound is None:
            continue
        number = float(bound)
        if Fraction(repr(number)) != Fraction(bound):
            inward = math.inf if name in ("ge", "gt") else -math.inf
            is_beyond = (
                Fraction(repr(number)) < Fraction(bound) if inward > 0 else Fraction(repr(number)) > Fraction(bound)
            )
            number = math.nextafter(number, inward) if is_beyond else number
        found[keyword] = int(number) if number.is_integer() and abs(number) < 2**53 else number
    return found


_MOST_UNITS = 999_999  # of one unit, as the format has it
_UNITS = (("P{}W", 604_800), ("P{}D", 86_400), ("PT{}H", 3_600), ("PT{}M", 60), ("PT{}S", 1))

Constraints = Mapping[str, Any]


def date_schema(constraints: Constraints) -> JsonSchema:
    """A date; one in the past is before today as of now, everywhere on Earth."""
    found = _compared(constraints, lambda bound: bound.isoformat(), "$")
    if _is_past(constraints):
        found.append(not_above(_yesterday().isoformat(), "$"))
    return _schema("date", found)


def time_schema(constraints: Constraints) -> JsonSchema:
    """A time of day: with an offset, or without one where bounds have none."""
    bounds: list[time] = [constraints[name] for name in ("ge", "gt", "le", "lt") if constraints.get(name) is not None]
    if not bounds:
        return _schema("time", [])
    offsets = {bound.utcoffset() for bound in bounds}
    if offsets == {None}:
        return _schema("local-time", _compared(constraints, _seconds, "$"))
    if offsets != {timedelta(0)}:
        raise UnsupportedTypeError(
            "bounds on times with different offsets, or others than UTC", "give bounds without tzinfo, or in UTC"
        )
    return _schema("time", [*_compared(constraints, _seconds, "Z$"), ".*Z$"])


def datetime_schema(constraints: Constraints) -> JsonSchema:
    """A date and time: with an offset, or without one where that is asked for or bounds have none."""
    bounds: list[datetime] = [
        constraints[name] for name in ("ge", "gt", "le", "lt") if constraints.get(name) is not None
    ]
    zone = constraints.get("tz_constraint")
    is_local = zone == "naive" or (zone is None and bool(bounds) and all(bound.tzinfo is None for bound in bounds))
    if is_local and any(bound.tzinfo is not None for bound in bounds):
        raise UnsupportedTypeError("a bound with an offset on moments without one", "give bounds without tzinfo")
    if isinstance(zone, int):
        if bounds or _is_past(constraints):
            raise UnsupportedTypeError("bounds on moments with a fixed offset", "leave one of them out")
        sign, minutes = "-" if zone < 0 else "+", abs(zone) // 60
        return _schema("date-time", [rf".*\{sign}{minutes // 60:02}:{minutes % 60:02}$"])
    end = "$" if is_local else "Z$"
    found = _compared(constraints, lambda bound: _seconds(bound if is_local else _in_utc(bound)), end)
    if _is_past(constraints):
        found.append(not_above(f"{_yesterday().isoformat()}T00:00:00", end))
    if is_local:
        return _schema("local-date-time", found)
    return _schema("date-time", [*found, ".*Z$"] if found else [])


def timedelta_schema(constraints: Constraints) -> JsonSchema:
    """A duration; between bounds of one unit alone, so that they can be compared."""
    low, high = timedelta(0), None
    for name in ("ge", "gt", "le", "lt"):
        bound: timedelta | None = constraints.get(name)
        if bound is None:
            continue
        step = timedelta(microseconds={"ge": 0, "le": 0, "gt": 1, "lt": -1}[name])
        if name in ("ge", "gt"):
            low = max(low, bound + step)
        else:
            high = bound + step if high is None else min(high, bound + step)
    if not low and high is None:
        return _schema("duration", [])
    found: list[str] = []
    for form, seconds in _UNITS:
        unit = timedelta(seconds=seconds)
        first, last = -(-low // unit), _MOST_UNITS if high is None else min(high // unit, _MOST_UNITS)
        if first <= last:
            found.append(form.format(f"(?:{whole_numbers(first, last)})"))
    if not found:
        raise UnsupportedTypeError(
            "bounds between which there is no whole number of seconds that is not negative", "give wider bounds"
        )
    return _schema("duration", ["|".join(f"{each}$" for each in found)])


def _schema(form: str, patterns: list[str]) -> JsonSchema:
    made: JsonSchema = {"type": "string", "format": form}
    if len(patterns) == 1:
        made["pattern"] = f"^(?:{patterns[0]})"
    elif patterns:
        made["allOf"] = [{"pattern": f"^(?:{pattern})"} for pattern in patterns]
    return made


def _compared(constraints: Constraints, text: Any, end: str) -> list[str]:
    """Patterns for the bounds; what is equal to one has ``end`` behind its text."""
    found: list[str] = []
    for name in ("ge", "gt", "le", "lt"):
        bound = constraints.get(name)
        if bound is None:
            continue
        has_more = bool(getattr(bound, "microsecond", 0))
        if name in ("ge", "gt"):
            found.append(not_below(text(bound), is_open=name == "gt" or has_more))
        else:
            found.append(not_above(text(bound), end, is_open=name == "lt" and not has_more))
    return found


def _seconds(bound: time | datetime) -> str:
    return bound.replace(tzinfo=None).isoformat("T", "seconds") if isinstance(bound, datetime) else _clock(bound)


def _clock(bound: time) -> str:
    return bound.replace(tzinfo=None).isoformat("seconds")


def _in_utc(bound: datetime) -> datetime:
    """A bound without an offset is compared with what is written, whatever its offset."""
    if bound.tzinfo is None:
        return bound
    try:
        return bound.astimezone(UTC)
    except OverflowError:
        raise UnsupportedTypeError(f"the bound {bound} is no date in UTC", "give another bound") from None


def _is_past(constraints: Constraints) -> bool:
    """Return True if it has to be in the past. Raises ``UnsupportedTypeError`` for the future."""
    now = constraints.get("now_op")
    if now == "future":
        raise UnsupportedTypeError(
            "what is in the future when it is generated may be in the past when it is read",
            "use a date or datetime with Field(gt=...)",
        )
    return now == "past"


def _yesterday() -> date:
    """The day before the earliest date there is on Earth now."""
    return (datetime.now(UTC) - timedelta(hours=12)).date() - timedelta(days=1)
