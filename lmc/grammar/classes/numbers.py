"""Numbers that have more to say than JSON Schema's keywords: decimals, floats in steps, fractions, sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

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
