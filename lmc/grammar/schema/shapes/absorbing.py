"""From the keywords of one schema to the shape that several schemas share.

One function per keyword that says something of its own; those that are read together (``properties`` and its
companions) have one function.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from lmc.grammar.schema import values
from lmc.grammar.schema.documents.errors import Pointer, Subschema
from lmc.grammar.schema.documents.keywords import Internal
from lmc.grammar.schema.formats import BOUNDS
from lmc.grammar.schema.numbers import EXACT_FLOATS
from lmc.grammar.schema.shapes.shapes import (
    Contains,
    ItemRules,
    LengthBound,
    NumberBound,
    PropertyRules,
    Shape,
    Some,
    TextRule,
)

Absorb = Callable[[Shape, dict[Any, Any], Any, Pointer], None]
"""Takes the shape, the whole schema, the value of the keyword and where the schema stands."""


def _type(shape: Shape, _schema: dict[Any, Any], value: Any, _pointer: Pointer) -> None:
    if isinstance(value, str):
        named = values.TYPES[value]
    else:
        named = 0
        for name in value:
            named |= values.TYPES[name]
    shape.classes &= named
    shape.is_typed = True


def _enum(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    found: dict[Any, Any] = {}
    for index, each in enumerate(value):
        values.check_value(each, ((pointer, "enum"), index))
        found.setdefault(values.identity(each), each)
    _allow(shape, found)


def _const(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    values.check_value(value, (pointer, "const"))
    _allow(shape, {values.identity(value): value})


def _allow(shape: Shape, found: dict[Any, Any]) -> None:
    if shape.allowed is not None:
        found = {key: value for key, value in shape.allowed.items() if key in found}
    shape.allowed = found
    shape.is_typed = True


def _bound(keyword: str) -> Absorb:
    is_low, is_open = keyword.endswith("inimum"), keyword.startswith("exclusive")

    def absorb(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
        add_bound(shape, value, is_low=is_low, is_open=is_open, pointer=(pointer, keyword))

    return absorb


def add_bound(shape: Shape, value: float, *, is_low: bool, is_open: bool, pointer: Pointer) -> None:
    """Narrow the numbers of a shape.

    A float from 2^53 on stands for other numbers than its decimal digits do; both readings are kept to.
    """
    shape.implied |= values.NUMBER
    bound = values.exact(value)
    if isinstance(value, float) and abs(value) >= EXACT_FLOATS:
        bound = (max if is_low else min)(bound, Fraction(value))
    made = NumberBound(bound, is_open, pointer)
    old = shape.low if is_low else shape.high
    if old is not None:
        is_tighter = bound > old.value if is_low else bound < old.value
        if not is_tighter and not (bound == old.value and is_open):
            return
    if is_low:
        shape.low = made
    else:
        shape.high = made


def _multiple(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.NUMBER
    shape.multiples += ((values.exact(value), (pointer, "multipleOf")),)


def _count(keyword: str, attribute: str, implied: int) -> Absorb:
    pick = max if keyword.startswith("min") else min

    def absorb(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
        shape.implied |= implied
        made = LengthBound(int(value), (pointer, keyword))
        old: LengthBound | None = getattr(shape, attribute)
        setattr(shape, attribute, made if old is None else pick(old, made, key=_value))

    return absorb


def _value(count: LengthBound) -> int:
    return count.value


def _pattern(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.STRING
    shape.patterns += (TextRule(value, False, (pointer, "pattern")),)


def _not_pattern(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.STRING
    shape.patterns += (TextRule(value, True, (pointer, "pattern")),)


def _format(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    if value in BOUNDS:
        low, high = BOUNDS[value]
        add_bound(shape, low, is_low=True, is_open=False, pointer=(pointer, "format"))
        add_bound(shape, high, is_low=False, is_open=False, pointer=(pointer, "format"))
    else:
        shape.implied |= values.STRING
        shape.formats += (TextRule(value, False, (pointer, "format")),)


def _content(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.STRING
    shape.contents += (Subschema(value, (pointer, "contentSchema")),)


def _items(shape: Shape, schema: dict[Any, Any], _value: Any, pointer: Pointer) -> None:
    """`prefixItems` and `items`, or in older drafts `items` and `additionalItems`; called for the first there is."""
    shape.implied |= values.ARRAY
    first, others = ("items", "additionalItems") if isinstance(schema.get("items"), list) else ("prefixItems", "items")
    prefix = [Subschema(each, ((pointer, first), index)) for index, each in enumerate(schema.get(first, ()))]
    rest = Subschema(schema[others], (pointer, others)) if others in schema else None
    shape.items += (ItemRules(prefix, rest),)


def _items_alone(shape: Shape, schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    if "prefixItems" not in schema:
        _items(shape, schema, value, pointer)


def _contains(shape: Shape, schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.ARRAY
    low = int(schema.get("minContains", 1))
    high = int(schema["maxContains"]) if "maxContains" in schema else None
    if low or high is not None:
        shape.contains += (Contains(Subschema(value, (pointer, "contains")), low, high),)


def _unique(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    if value:
        shape.implied |= values.ARRAY
        shape.unique = (pointer, "uniqueItems")


def _members(shape: Shape, schema: dict[Any, Any], _value: Any, pointer: Pointer) -> None:
    """`properties`, `patternProperties`, `additionalProperties`; called for the first of them that there is."""
    shape.implied |= values.OBJECT
    at = (pointer, "properties")
    named = {name: Subschema(each, (at, name)) for name, each in schema.get("properties", {}).items()}
    at = (pointer, "patternProperties")
    patterns = [(name, Subschema(each, (at, name))) for name, each in schema.get("patternProperties", {}).items()]
    rest = None
    if "additionalProperties" in schema:
        rest = Subschema(schema["additionalProperties"], (pointer, "additionalProperties"))
    shape.members += (PropertyRules(named, patterns, rest),)


def _patterns_first(shape: Shape, schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    if "properties" not in schema:
        _members(shape, schema, value, pointer)


def _rest_alone(shape: Shape, schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    if "properties" not in schema and "patternProperties" not in schema:
        _members(shape, schema, value, pointer)


def _required(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.OBJECT
    at = (pointer, "required")
    shape.required += tuple((name, at) for name in value)


def _names(shape: Shape, _schema: dict[Any, Any], value: Any, pointer: Pointer) -> None:
    shape.implied |= values.OBJECT
    shape.names += (Subschema(value, (pointer, "propertyNames")),)


def _some(shape: Shape, _schema: dict[Any, Any], value: Some, _pointer: Pointer) -> None:
    shape.implied |= values.OBJECT
    shape.some += (value,)


ABSORB: dict[Any, Absorb] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound("minimum"),
    "maximum": _bound("maximum"),
    "exclusiveMinimum": _bound("exclusiveMinimum"),
    "exclusiveMaximum": _bound("exclusiveMaximum"),
    "multipleOf": _multiple,
    "minLength": _count("minLength", "min_length", values.STRING),
    "maxLength": _count("maxLength", "max_length", values.STRING),
    "pattern": _pattern,
    Internal.NOT_PATTERN: _not_pattern,
    "format": _format,
    "contentSchema": _content,
    "prefixItems": _items,
    "items": _items_alone,
    "contains": _contains,
    "minItems": _count("minItems", "min_items", values.ARRAY),
    "maxItems": _count("maxItems", "max_items", values.ARRAY),
    "uniqueItems": _unique,
    "properties": _members,
    "patternProperties": _patterns_first,
    "additionalProperties": _rest_alone,
    "required": _required,
    "propertyNames": _names,
    Internal.SOME: _some,
    "minProperties": _count("minProperties", "min_members", values.OBJECT),
    "maxProperties": _count("maxProperties", "max_members", values.OBJECT),
}
"""The effect of a keyword on a shape. Those that combine schemas are in ``expanding.py``."""
