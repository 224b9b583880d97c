"""What is refused: the cause, the remedy, and the JSON pointer of the keyword."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from lmc.grammar.schema import RecursiveSchemaError
from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import automaton_of

_OPEN = {"additionalProperties": {"type": "null"}}


def _nested(value: Any, wrap: Callable[[Any], Any], depth: int) -> Any:
    for _ in range(depth):
        value = wrap(value)
    return value


# name → schema, pointer, part of the cause, part of the remedy
CASES: dict[str, tuple[Any, str, str, str]] = {
    "no schema": (
        {"properties": {"a": 3}},
        "/properties/a",
        "a schema is an object, true or false, not 3",
        "write a schema",
    ),
    "an unknown type": ({"type": "strin"}, "/type", "type has to be one of null, boolean", "2020-12"),
    "no type": ({"type": []}, "/type", "type has to be", "2020-12"),
    "a bound that is true": (
        {"exclusiveMinimum": True},
        "/exclusiveMinimum",
        "has to be a number",
        "in place of minimum",
    ),
    "a bound that is not finite": ({"minimum": float("inf")}, "/minimum", "minimum has to be a number", "2020-12"),
    "a step of 0": ({"multipleOf": 0}, "/multipleOf", "multipleOf has to be a number above 0", "2020-12"),
    "a negative count": ({"minLength": -1}, "/minLength", "a whole number that is not negative, not -1", "2020-12"),
    "a count with a fraction": ({"maxItems": 1.5}, "/maxItems", "a whole number", "2020-12"),
    "required in a property": (
        {"required": True},
        "/required",
        "required has to be a list of texts",
        "not in that of a property",
    ),
    "an enum that is no list": ({"enum": 1}, "/enum", "enum has to be a list", "2020-12"),
    "no branches": ({"anyOf": []}, "/anyOf", "a list of one schema or more", "2020-12"),
    "properties that are no object": ({"properties": []}, "/properties", "an object of schemas", "2020-12"),
    "a flag that is none": ({"uniqueItems": 1}, "/uniqueItems", "true or false", "2020-12"),
    "a pattern that is none": ({"pattern": 1}, "/pattern", "pattern has to be a text", "2020-12"),
    "dependentRequired": (
        {"dependentRequired": {"a": "b"}},
        "/dependentRequired",
        "an object of lists of texts",
        "2020-12",
    ),
    "a malformed negated keyword": ({"not": {"minLength": "x"}}, "/not/minLength", "a whole number", "2020-12"),
    "a value that JSON does not have": ({"const": float("nan")}, "/const", "nan is no JSON value", "JSON values only"),
    "such a value in an enum": ({"enum": [1, {2}]}, "/enum/1", "{2} is no JSON value", "JSON values only"),
    "such a value within one": ({"const": [float("inf")]}, "/const", "inf is no JSON value", "JSON values only"),
    "half of a surrogate pair": ({"const": ["\ud800"]}, "/const", "half of a surrogate pair", "whole characters"),
    "such a property": (
        {"properties": {"\udc00": {"type": "null"}}},
        "/properties/\\udc00",
        "half of a surrogate pair",
        "whole characters",
    ),
    "a property without a name": ({"const": {1: 2}}, "/const", "1 is no name of a property", "JSON values only"),
    "an unknown dialect": (
        {"$schema": "http://json-schema.org/draft-03/schema#"},
        "/$schema",
        "unknown dialect",
        "2020-12",
    ),
    "a reference to elsewhere": (
        {"$ref": "https://a.example/s"},
        "/$ref",
        "nothing is fetched",
        "copy that schema into $defs",
    ),
    "a URI that two schemas have": (
        {"$defs": {"a": {"$id": "x:a", "type": "null"}, "b": {"$id": "x:a"}}, "$ref": "x:a"},
        "/$ref",
        "several schemas have this URI",
        "give each its own",
    ),
    "a part in another dialect": (
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "properties": {"a": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "null"}},
        },
        "/properties/a/$schema",
        "written in another dialect",
        "in one dialect",
    ),
    "an anchor that depends on what refers to it": (
        {
            "$id": "x:a",
            "$defs": {"b": {"$id": "x:b", "$dynamicAnchor": "t", "type": "null"}, "c": {"$dynamicAnchor": "t"}},
            "properties": {"p": {"$dynamicRef": "#t"}},
        },
        "/properties/p/$dynamicRef",
        "an anchor that several schemas have",
        "use $ref",
    ),
    "a list of items where it means nothing": (
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{"type": "null"}]},
        "/items",
        "items is a list, as in older drafts",
        "write prefixItems",
    ),
    "a reference to nothing": ({"$ref": "#/$defs/a"}, "/$ref", "points at nothing", "correct the reference"),
    "a reference past the end": ({"$ref": "#/anyOf/1", "anyOf": [True]}, "/$ref", "points at nothing", "correct"),
    "a reference into a text": ({"$ref": "#/title/0", "title": "a"}, "/$ref", "points at nothing", "correct"),
    "an anchor that there is not": (
        {"$ref": "#a", "const": {"$anchor": "a"}},
        "/$ref",
        "there is no $anchor of this name",
        "correct",
    ),
    "a reference to itself": (
        {"$ref": "#"},
        "/$ref",
        "refers to itself for the same value",
        "in a property or an item",
    ),
    "by way of alternatives": (
        {"type": "string", "anyOf": [{"$ref": "#"}, {"minLength": 2}]},
        "/anyOf/0/$ref",
        "refers to itself for the same value",
        "in a property",
    ),
    "by way of a negation": (
        {"not": {"$ref": "#"}},
        "/not/$ref",
        "refers to itself for the same value",
        "in a property",
    ),
    "a pattern that is wrong": ({"type": "string", "pattern": "(a"}, "/pattern", "closing parenthesis", "close it"),
    "a look-ahead in the middle": (
        {"type": "string", "pattern": "^a(?=b)"},
        "/pattern",
        "look-ahead is not supported",
        "",
    ),
    "a look-ahead of one alternative": ({"type": "string", "pattern": "^(?=a)|b"}, "/pattern", "look-ahead is not", ""),
    "a look-ahead that does not end": ({"type": "string", "pattern": "^(?=a"}, "/pattern", "look-ahead is not", ""),
    "too many remainders": (
        {"type": "integer", "multipleOf": 997},
        "/multipleOf",
        "multiples of 997 need",
        "give bounds",
    ),
    "too fine a step": (
        {"multipleOf": 1e-12, "type": "number"},
        "/multipleOf",
        "multiples of 1e-12 need",
        "smaller factors",
    ),
    "counting keys that may be the same": (
        {**_OPEN, "minProperties": 3},
        "/minProperties",
        "two may be the same",
        "ask for at most 2",
    ),
    "counting too many properties": (
        {"properties": {f"p{index}": {"type": "null"} for index in range(200)}, "maxProperties": 100},
        "/maxProperties",
        "so many properties can't be counted",
        "fewer properties",
    ),
    "too many patterns of properties": (
        {"patternProperties": {f"^{letter}": {"type": "null"} for letter in "abcde"}},
        "/patternProperties/^a",
        "more than 4 patterns",
        "join patterns",
    ),
    "items that differ out of an endless supply": (
        {"items": {"type": "integer"}, "uniqueItems": True},
        "/uniqueItems",
        "only for items out of a list",
        "maxItems 1",
    ),
    "too many items that differ": (
        {"items": {"enum": list(range(300))}, "uniqueItems": True, "minItems": 20},
        "/uniqueItems",
        "so many values",
        "fewer",
    ),
    "contains beside prefixItems": (
        {"prefixItems": [{"type": "null"}], "items": {"type": "null"}, "contains": {"type": "null"}},
        "/contains",
        "only where items says what all items are",
        "use items",
    ),
    "nested values": (
        _nested({"type": "null"}, lambda inner: {"items": inner}, 120),
        "/items" * 100,
        "nested deeper than 100",
        "nest less",
    ),
    "nested allOf": (
        _nested({"type": "null"}, lambda inner: {"allOf": [inner]}, 120),
        "/allOf/0" * 100,
        "nested deeper than 100",
        "nest less",
    ),
    "a nested constant": ({"const": _nested(1, lambda inner: [inner], 2000)}, "", "nested too deeply", "nest less"),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str):
    schema, pointer, cause, remedy = CASES[name]
    with pytest.raises(ConstraintError, match=re.escape(cause)) as caught:
        automaton_of(schema)
    assert not isinstance(caught.value, RecursiveSchemaError)
    assert caught.value.pointer == pointer
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy
    assert f"#{pointer}:" in str(caught.value)


NEGATED: dict[str, Any] = {
    "format": {"format": "date"},
    "multipleOf": {"multipleOf": 3},
    "uniqueItems": {"uniqueItems": True},
    "unevaluatedProperties": {"unevaluatedProperties": False},
    "items": {"prefixItems": [{"type": "null"}], "items": {"type": "null"}},
    "contains": {"contains": {"type": "null"}, "maxContains": 2},
}


@pytest.mark.parametrize("keyword", NEGATED)
def test_a_keyword_that_can_not_be_negated(keyword: str):
    for schema, pointer in (
        ({"type": "integer", "not": NEGATED[keyword]}, f"/not/{keyword}"),
        ({"type": "integer", "if": NEGATED[keyword], "then": {"minimum": 1}}, f"/if/{keyword}"),
        ({"type": "integer", "oneOf": [{"minimum": 1}, NEGATED[keyword]]}, f"/oneOf/1/{keyword}"),
    ):
        with pytest.raises(ConstraintError, match=f"{keyword} would have to be negated") as caught:
            automaton_of(schema)
        assert caught.value.pointer == pointer


def test_too_many_combinations():
    schema = {"type": "string", "allOf": [{"anyOf": [{"minLength": n}, {"maxLength": n}]} for n in range(20)]}
    with pytest.raises(ConstraintError, match="more than 20000 combinations") as caught:
        automaton_of(schema)
    assert "combine fewer" in str(caught.value)


def test_the_error_names_what_refers_to_itself():
    schema = {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}
    with pytest.raises(RecursiveSchemaError, match="refers to itself") as caught:
        automaton_of(schema)
    assert caught.value.pointer == "/$defs/a"
    with pytest.raises(RecursiveSchemaError, match="any JSON value is allowed here") as caught:
        automaton_of({"properties": {"a": {}}})
    assert caught.value.pointer == "/properties/a"


def test_a_position_in_a_pattern():
    with pytest.raises(ConstraintError) as caught:
        automaton_of({"type": "string", "pattern": "ab\\1"})
    assert (caught.value.pointer, caught.value.position) == ("/pattern", 2)
