"""Random schemas that combine keywords which depend on each other, and all small values to judge them by.

Objects have the properties "a" to "d", of which schemas name the first three. Everything is small, so that the values
of ``OBJECTS``, ``ARRAYS`` and ``SCALARS`` meet many of the schemas and fail many others.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

NAMES = ("a", "b", "c")

_LEAVES: tuple[Any, ...] = (
    {"type": "integer"},
    {"type": "string"},
    {"type": ["integer", "null"]},
    {"type": "null"},
    {"const": 1},
    {"enum": ["x", 1]},
    {"type": "number", "minimum": 0, "maximum": 1e12},
    {"type": "string", "maxLength": 1},
)
_OPEN_LEAVES: tuple[Any, ...] = (*_LEAVES, {}, True, {"not": {"type": "string"}}, {"minLength": 2}, {"minimum": 1})
_PATTERNS = ("^a", "b", "^[bc]$", "d")

_VALUES: tuple[Any, ...] = (1, "x", 3.14159265, None)
SCALARS: list[Any] = [None, True, False, 0, 1, 2, 0.5, 3.14159265, "", "x", "xy"]
ARRAYS: list[Any] = [
    list(items) for count in range(4) for items in itertools.product(_VALUES[: 4 - count // 3], repeat=count)
]
OBJECTS: list[Any] = [
    dict(zip(names, values, strict=True))
    for count in range(4)
    for names in itertools.combinations("abcd", count)
    for values in itertools.product(_VALUES[: 3 - count // 3], repeat=count)
]
SMALL_VALUES: list[Any] = [*SCALARS, *ARRAYS, *OBJECTS]
_PARTS: tuple[Any, ...] = (1, "x", None, {}, [], {"a": 1}, {"b": "x"}, [1], {"a": {"a": 1}}, {"c": [1]}, [[]], [{}])
NESTED_VALUES: list[Any] = [
    *([each] for each in _PARTS),
    *([1, each] for each in _PARTS),
    *({name: each} for name in "abcd" for each in _PARTS),
    *({"a": first, name: each} for name in "bd" for first in _PARTS[:6] for each in _PARTS),
    *({"b": {"a": each}} for each in _PARTS),
    *([[each, first]] for first in _PARTS[:6] for each in _PARTS),
]


class SchemaMaker:
    """Makes random schemas from one source.

    ``is_open``: schemas may leave open which properties, items or types a value has. Otherwise every part of every
    value is described by some keyword, so that lmc can produce all valid values. ``is_recursive``: parts of a value may
    have to meet the whole schema.
    """

    def __init__(self, chance: random.Random, *, is_open: bool, is_recursive: bool = False) -> None:
        self._chance = chance
        self._is_open = is_open
        self._is_recursive = is_recursive

    def schema(self) -> Any:
        """A schema of objects, of arrays, or now and then of both."""
        is_object = self._chance.random() < 0.7
        part = self._object if is_object else self._array
        found: dict[str, Any] = part(2)
        if is_object and self._maybe(0.15):
            found = {self._chance.choice(("oneOf", "anyOf")): [self._closed_object() for _ in range(2)]}
        if self._is_open:
            if self._chance.random() < 0.7:
                found["type"] = "object" if is_object else "array"
            return found
        return self._closed(found, is_object=is_object)

    def _closed(self, schema: dict[str, Any], *, is_object: bool) -> dict[str, Any]:
        """The same with a type, and a keyword that speaks of all parts which no other keyword describes."""
        made = {"type": "object" if is_object else "array", **schema}
        rest = self._chance.choice((False, False, False, {"type": "integer"}))
        keywords = ("additionalProperties", "unevaluatedProperties") if is_object else ("items", "unevaluatedItems")
        if not any(keyword in made for keyword in keywords):
            made[self._chance.choice(keywords)] = rest
        return made

    def _closed_object(self) -> dict[str, Any]:
        properties = {name: self._leaf() for name in self._names()}
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def _maybe(self, share: float) -> bool:
        return self._chance.random() < share

    def _names(self) -> list[str]:
        return [name for name in NAMES if self._maybe(0.4)]

    def _leaf(self) -> Any:
        if self._maybe(0.08):
            return False
        if self._is_recursive and self._maybe(0.5):
            return self._chance.choice(({"$ref": "#"}, {"anyOf": [{"$ref": "#"}, self._chance.choice(_LEAVES)]}))
        return self._chance.choice(_OPEN_LEAVES if self._is_open else _LEAVES)

    def _rest(self) -> Any:
        return self._chance.choice((False, False, False, True, self._leaf())) if self._is_open else False

    def _object(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._maybe(0.3):
            made["type"] = "object"
        if self._maybe(0.7):
            made["properties"] = {name: self._leaf() for name in self._names()}
        if self._maybe(0.35):
            made["required"] = self._names()
        if self._maybe(0.25):
            made["additionalProperties"] = self._rest()
        if self._maybe(0.15):
            made["patternProperties"] = {self._chance.choice(_PATTERNS): self._leaf()}
        if self._maybe(0.1):
            made["propertyNames"] = self._chance.choice(
                ({"enum": ["a", "c", "d"]}, {"maxLength": 1}, {"pattern": "^[a-c]"}, {"not": {"const": "a"}}, False)
            )
        if self._maybe(0.12):
            # Of three keys that are not listed two may be the same: such objects are not produced.
            made["minProperties"] = self._chance.randrange(4 if self._is_open else 3)
        if self._maybe(0.1):
            made["maxProperties"] = self._chance.randrange(4)
        if self._maybe(0.12):
            made["dependentRequired"] = {self._chance.choice(NAMES): self._names()}
        if depth:
            if self._maybe(0.12):
                made["dependentSchemas"] = {self._chance.choice(NAMES): self._object(depth - 1)}
            self._combine(made, self._object, depth)
        if self._maybe(0.25 if depth == 2 else 0.05):
            made["unevaluatedProperties"] = self._rest()
        return self._shuffled(made)

    def _array(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self._maybe(0.3):
            made["type"] = "array"
        if self._maybe(0.4):
            made["prefixItems"] = [self._leaf() for _ in range(self._chance.randrange(1, 3))]
        if self._maybe(0.3):
            made["items"] = self._leaf()
        if self._maybe(0.15):
            made["contains"] = self._leaf()
            if self._maybe(0.3):
                made["minContains"] = self._chance.randrange(3)
            if self._maybe(0.3):
                made["maxContains"] = self._chance.randrange(3)
        if self._maybe(0.2):
            made["minItems"] = self._chance.randrange(4)
        if self._maybe(0.2):
            made["maxItems"] = self._chance.randrange(4)
        if self._maybe(0.08):
            made["uniqueItems"] = True
        if depth:
            self._combine(made, self._array, depth)
        if self._maybe(0.3 if depth == 2 else 0.05):
            made["unevaluatedItems"] = self._rest()
        return self._shuffled(made)

    def _combine(self, made: dict[str, Any], part: Any, depth: int) -> None:
        """Add keywords that hold schemas for the same value."""

        def inner() -> Any:
            roll = self._chance.random()
            if roll < 0.1:
                return self._chance.choice((True, {}, False))
            if roll < 0.2:
                return {"not": part(depth - 1)}
            return part(depth - 1)

        for keyword in ("allOf", "anyOf", "oneOf"):
            if self._maybe(0.18):
                made[keyword] = [inner() for _ in range(self._chance.randrange(1, 4))]
        if self._maybe(0.12):
            made["not"] = inner()
        if self._maybe(0.15):
            made["if"] = inner()
        if self._maybe(0.12):
            made["then"] = inner()
        if self._maybe(0.12):
            made["else"] = inner()
        if depth == 2 and self._maybe(0.1):
            made["$ref"] = "#/$defs/part"
            made["$defs"] = {"part": inner()}

    def _shuffled(self, schema: dict[str, Any]) -> dict[str, Any]:
        keywords = list(schema.items())
        self._chance.shuffle(keywords)
        return dict(keywords)


def orders_of(value: Any) -> list[Any]:
    """The same object with its properties in every order; anything else alone."""
    if not isinstance(value, dict):
        return [value]
    return [dict(order) for order in itertools.permutations(value.items())]
