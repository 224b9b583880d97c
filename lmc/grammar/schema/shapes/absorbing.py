"""From the keywords of one schema to the shape that several schemas share.

One function per keyword that says something of its own; those that are read together (``properties`` and its
companions) have one function.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from lmc.grammar.schema import values
from lmc.grammar.schema.documents.keywords import Internal
from lmc.grammar.schema.errors import Pointer
from lmc.grammar.schema.formats import BOUNDS
from lmc.grammar.schema.shapes.shapes import (
    Contains,
    ItemRules,
    Keyword,
    LengthBound,
    NumberBound,
    PropertyRules,
    Shape,
    TextRule,
)

Absorb = Callable[[Shape, Keyword], None]


def _type(shape: Shape, keyword: Keyword) -> None:
    named = 0
    for name in [keyword.value] if isinstance(keyword.value, str) else keyword.value:
        named |= values.TYPES[name]
    shape.classes &= named
    shape.is_typed = True


def _enum(shape: Shape, keyword: Keyword) -> None:
    found: dict[Any, Any] = {}
    for index, each in enumerate(keyword.value):
        values.check_value(each, (keyword.at, index))
        found.setdefault(values.identity(each), each)
    _allow(shape, found)


def _const(shape: Shape, keyword: Keyword) -> None:
    values.check_value(keyword.value, keyword.at)
    _allow(shape, {values.identity(keyword.value): keyword.value})


def _allow(shape: Shape, found: dict[Any, Any]) -> None:
    if shape.allowed is not None:
        found = {key: value for key, value in shape.allowed.items() if key in found}
    shape.allowed = found
    shape.is_typed = True


def _bound(shape: Shape, keyword: Keyword) -> None:
    is_open = keyword.name.startswith("exclusive")
    add_bound(shape, keyword.value, is_low=keyword.name.endswith("inimum"), is_open=is_open, pointer=keyword.at)


def add_bound(shape: Shape, value: float, *, is_low: bool, is_open: bool, pointer: Pointer) -> None:
    """Narrow the numbers of a shape.

    A float from 2^53 on stands for other numbers than its decimal digits do; both readings are kept to.
    """
    shape.implied |= values.NUMBER
    bound = values.exact(value)
    if isinstance(value, float) and abs(value) >= values.EXACT_FLOATS:
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


def _multiple(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.NUMBER
    shape.multiples += ((values.exact(keyword.value), keyword.at),)


_COUNTS = {
    "minLength": ("min_length", values.STRING),
    "maxLength": ("max_length", values.STRING),
    "minItems": ("min_items", values.ARRAY),
    "maxItems": ("max_items", values.ARRAY),
    "minProperties": ("min_members", values.OBJECT),
    "maxProperties": ("max_members", values.OBJECT),
}


def _count(shape: Shape, keyword: Keyword) -> None:
    attribute, implied = _COUNTS[keyword.name]
    shape.implied |= implied
    made = LengthBound(int(keyword.value), keyword.at)
    old: LengthBound | None = getattr(shape, attribute)
    pick = max if keyword.name.startswith("min") else min
    setattr(shape, attribute, made if old is None else pick(old, made, key=_value))


def _value(count: LengthBound) -> int:
    return count.value


def _pattern(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.STRING
    is_negated = keyword.name is Internal.NOT_PATTERN
    shape.patterns += (TextRule(keyword.value, is_negated, (keyword.pointer, "pattern")),)


def _format(shape: Shape, keyword: Keyword) -> None:
    if keyword.value in BOUNDS:
        low, high = BOUNDS[keyword.value]
        add_bound(shape, low, is_low=True, is_open=False, pointer=keyword.at)
        add_bound(shape, high, is_low=False, is_open=False, pointer=keyword.at)
    else:
        shape.implied |= values.STRING
        shape.formats += (TextRule(keyword.value, False, keyword.at),)


def _content(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.STRING
    shape.contents += (keyword.inner,)


def _items(shape: Shape, keyword: Keyword) -> None:
    """`prefixItems` and `items`, or in older drafts `items` and `additionalItems`; for the first there is."""
    schema = keyword.schema
    if keyword.name == "items" and "prefixItems" in schema:
        return
    shape.implied |= values.ARRAY
    first, others = ("items", "additionalItems") if isinstance(schema.get("items"), list) else ("prefixItems", "items")
    rest = keyword.beside(others).inner if others in schema else None
    shape.items += (ItemRules(keyword.beside(first, ()).each(), rest),)


def _contains(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.ARRAY
    low = int(keyword.schema.get("minContains", 1))
    high = int(keyword.schema["maxContains"]) if "maxContains" in keyword.schema else None
    if low or high is not None:
        shape.contains += (Contains(keyword.inner, low, high),)


def _unique(shape: Shape, keyword: Keyword) -> None:
    if keyword.value:
        shape.implied |= values.ARRAY
        shape.unique = keyword.at


_MEMBERS = ("properties", "patternProperties", "additionalProperties")


def _members(shape: Shape, keyword: Keyword) -> None:
    """`properties`, `patternProperties`, `additionalProperties`; for the first of them that there is."""
    if any(name in keyword.schema for name in _MEMBERS[: _MEMBERS.index(keyword.name)]):
        return
    shape.implied |= values.OBJECT
    named, patterns = (keyword.beside(name).named() if name in keyword.schema else {} for name in _MEMBERS[:2])
    rest = keyword.beside(_MEMBERS[2]).inner if _MEMBERS[2] in keyword.schema else None
    shape.members += (PropertyRules(named, list(patterns.items()), rest),)


def _required(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.OBJECT
    at = keyword.at
    shape.required += tuple([(name, at) for name in keyword.value])


def _names(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.OBJECT
    shape.names += (keyword.inner,)


def _some(shape: Shape, keyword: Keyword) -> None:
    shape.implied |= values.OBJECT
    shape.some += (keyword.value,)


ABSORB: dict[Any, Absorb] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bound),
    "multipleOf": _multiple,
    **dict.fromkeys(_COUNTS, _count),
    "pattern": _pattern,
    Internal.NOT_PATTERN: _pattern,
    "format": _format,
    "contentSchema": _content,
    "prefixItems": _items,
    "items": _items,
    "contains": _contains,
    "uniqueItems": _unique,
    **dict.fromkeys(_MEMBERS, _members),
    "required": _required,
    "propertyNames": _names,
    Internal.SOME: _some,
}
"""The effect of a keyword on a shape. Those that combine schemas are in ``expanding.py``."""
