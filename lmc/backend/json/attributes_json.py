"""Literals, slots and types as JSON, both ways. What can't be told from its JSON form alone is an object with one key.

A Value is ``{"slot": n}`` where literals may stand too; a float that JSON has no number for is ``{"float": "nan"}``; an
integer of more than 15 digits is ``{"int": "0x…"}``, so that every JSON reader keeps it exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lmc.backend.json.untrusted_json import shorten
from lmc.backend.plan import PlanError
from lmc.ir.core import Attribute, Value
from lmc.ir.types import SIMPLE_TYPES, JsonType, ListType, Type, json_of, list_of

MAX_DEPTH = 64
_EXACT = 10**15
_MAX_HEX_DIGITS = 1100  # more than any integer that the IR holds


def dump_literal(value: Attribute | Value) -> Any:
    """A literal or a Value named after its slot."""
    if isinstance(value, Value):
        return {"slot": int(value.name)}
    if isinstance(value, tuple):
        return [dump_literal(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if type(value) is int and abs(value) >= _EXACT:
        return {"int": hex(value)}
    return value


def load_literal(data: Any, depth: int = 0) -> Attribute:
    """A literal without slots in it."""
    if depth > MAX_DEPTH:
        raise PlanError(f"a literal is nested deeper than {MAX_DEPTH} levels")
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return tuple(load_literal(entry, depth + 1) for entry in data)
    match data:
        case {"float": "nan" | "inf" | "-inf" as text} if len(data) == 1:
            return float(text)
        case {"int": str(digits)} if len(data) == 1 and len(digits) <= _MAX_HEX_DIGITS:
            return _load_integer(digits)
        case _:
            raise PlanError(f"not a literal: {shorten(data)}")


def load_entry(data: Any, slots: Sequence[Value]) -> Attribute | Value:
    """A literal or a slot."""
    if isinstance(data, dict) and set(data) == {"slot"}:
        return load_slot(data["slot"], slots)
    return load_literal(data)


def load_slot(data: Any, slots: Sequence[Value]) -> Value:
    """The value of slot ``data``."""
    if type(data) is not int or not 0 <= data < len(slots):
        raise PlanError(f"there is no slot {shorten(data)}, slots are 0 … {len(slots) - 1}")
    return slots[data]


def dump_type(kind: Type) -> Any:
    """A type: its name, ``{"list": type}`` or ``{"json": schema}``."""
    if isinstance(kind, ListType):
        return {"list": dump_type(kind.element)}
    return {"json": kind.schema} if isinstance(kind, JsonType) else kind.name


def load_type(data: Any, depth: int = 0) -> Type:
    """The inverse of ``dump_type``."""
    if depth > MAX_DEPTH:
        raise PlanError(f"a type is nested deeper than {MAX_DEPTH} levels")
    match data:
        case str() if data in SIMPLE_TYPES:
            return SIMPLE_TYPES[data]
        case {"list": element} if len(data) == 1:
            return list_of(load_type(element, depth + 1))
        case {"json": str(schema)} if len(data) == 1:
            return json_of(schema)
        case _:
            raise PlanError(f"not a type: {shorten(data)}")


def _load_integer(digits: str) -> int:
    try:
        return int(digits, 16)
    except ValueError as error:
        raise PlanError(f"not an integer: {digits[:80]!r}") from error
