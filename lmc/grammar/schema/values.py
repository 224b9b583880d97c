"""JSON values: the classes they fall into, when two are equal, and their text."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from fractions import Fraction
from typing import Any

from lmc.grammar.schema.errors import Pointer, refusal

# Disjoint classes of values, as bits. `number` is the union of the two classes of numbers: 1.0 is whole.
NULL, BOOLEAN, WHOLE, FRACTIONAL, STRING, ARRAY, OBJECT = (1 << bit for bit in range(7))
NUMBER = WHOLE | FRACTIONAL
SCALAR = NULL | BOOLEAN | NUMBER | STRING
ANY = SCALAR | ARRAY | OBJECT
EXACT_FLOATS = 2**53  # whole numbers below it are floats

TYPES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "integer": WHOLE,
    "number": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}


def class_of(value: Any) -> int:
    """The class of a value, 0 for what is no JSON value."""
    if isinstance(value, str):
        return STRING
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return WHOLE
    if isinstance(value, float):
        if not math.isfinite(value):
            return 0
        return WHOLE if value.is_integer() else FRACTIONAL
    if isinstance(value, list):
        return ARRAY
    return OBJECT if isinstance(value, dict) else 0


def check_value(value: Any, pointer: Pointer) -> None:
    """Raise ``ConstraintError`` for what JSON can't write, or UTF-8."""
    if isinstance(value, str):
        if not value.isascii():
            string_text(value, pointer)
    elif not class_of(value):
        raise refusal(pointer, f"{value!r} is no JSON value", "use JSON values only")
    elif isinstance(value, list):
        for each in value:
            check_value(each, pointer)
    elif isinstance(value, dict):
        for name, each in value.items():
            if not isinstance(name, str):
                raise refusal(pointer, f"{name!r} is no name of a property", "use JSON values only")
            check_value(name, pointer)
            check_value(each, pointer)


def identity(value: Any) -> Hashable:
    """Equal for values that JSON Schema takes as equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, list):
        return ("array", *map(identity, value))
    if isinstance(value, dict):
        return ("object", frozenset((key, identity(each)) for key, each in value.items()))
    return value  # Python compares numbers by value


def exact(number: float) -> Fraction:
    """A JSON number as it is written: 0.1 is one tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


_spelled = json.JSONEncoder(ensure_ascii=False).encode


def string_text(text: str, pointer: Pointer) -> bytes:
    """The canonical spelling of a string: what `json.dumps` writes with ``ensure_ascii=False``."""
    try:
        return _spelled(text).encode()
    except UnicodeEncodeError:
        raise refusal(pointer, f"{text!r} has half of a surrogate pair", "write whole characters") from None


def scalar_text(value: Any) -> bytes:
    """The canonical spelling of a value that was checked and is no array and no object."""
    return _spelled(value).encode()
