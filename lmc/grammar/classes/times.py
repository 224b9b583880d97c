"""Dates, times and durations within bounds, as formats and patterns.

A bound on a moment is enforced in whole seconds: within the second of the bound, moments are not always distinguished.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from lmc.grammar.classes.errors import UnsupportedTypeError
from lmc.grammar.classes.patterns import not_above, not_below, whole_numbers

_MOST_UNITS = 999_999  # of one unit, as the format has it
_UNITS = (("P{}W", 604_800), ("P{}D", 86_400), ("PT{}H", 3_600), ("PT{}M", 60), ("PT{}S", 1))

JsonSchema = dict[str, Any]
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
