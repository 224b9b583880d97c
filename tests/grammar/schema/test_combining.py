"""Schemas for the same value together: references, `allOf`, `anyOf`, `oneOf`, `not`, `if`."""

from typing import Any

import pytest

from lmc.grammar.schema import RecursiveSchemaError
from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import accepts, automaton_of, compact, is_valid


def _object(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


_INTEGER, _STRING, _NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}
_CAT = _object(["kind"], kind={"const": "cat"}, lives=_INTEGER)
_DOG = _object(["kind"], kind={"const": "dog"}, lives=_STRING)

CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "a reference": ({"$ref": "#/$defs/a", "$defs": {"a": _INTEGER}}, [1], ["a"]),
    "a reference with keywords beside it": (
        {"$ref": "#/definitions/a", "minimum": 3, "definitions": {"a": _INTEGER}},
        [3],
        [2, 3.5],
    ),
    "a reference to a property": (
        {"properties": {"a": _INTEGER, "b": {"$ref": "#/properties/a"}}},
        [{"a": 1, "b": 2}],
        [{"b": "x"}],
    ),
    "a pointer with escapes": (
        {"$ref": "#/$defs/a~1b%20c~0/anyOf/1", "$defs": {"a/b c~": {"anyOf": [_STRING, _INTEGER]}}},
        [1],
        ["a"],
    ),
    "an anchor": ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", **_INTEGER}}}, [1], ["a"]),
    "a reference by the $id of the whole": (
        {"$id": "https://a.example/s", "$ref": "https://a.example/s#/$defs/a", "$defs": {"a": _INTEGER}},
        [1],
        ["a"],
    ),
    "a chain of references": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"title": "A", "$ref": "#/$defs/b"}, "b": _INTEGER}},
        [1],
        ["a"],
    ),
    "one reference twice": (
        {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": _INTEGER}},
        [1],
        ["a"],
    ),
    "allOf": ({"allOf": [{"minimum": 1}, {"maximum": 3}, _INTEGER]}, [1, 3], [0, 4, 1.5]),
    "allOf of objects": (
        {"allOf": [_object(["a"], a=_INTEGER), _object(["b"], b=_STRING, a={"minimum": 3})]},
        [{"a": 3, "b": "x"}],
        [{"a": 3}, {"a": 1, "b": "x"}],
    ),
    "allOf of an object that is closed": (
        {"allOf": [{**_object(a=_INTEGER), "additionalProperties": False}, _object(b=_STRING)]},
        [{}, {"a": 1}],
        [{"b": "x"}],
    ),
    "allOf of arrays": (
        {"allOf": [{"prefixItems": [_INTEGER]}, {"items": {"minimum": 2}}, {"maxItems": 2}], "type": "array"},
        [[], [2]],
        [[1], [2, 1], ["a"]],
    ),
    "anyOf": ({"anyOf": [_INTEGER, _NULL]}, [1, None], ["a", 1.5]),
    "anyOf beside keywords": (
        {**_object(a=_INTEGER, b=_INTEGER), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}],
        [{}],
    ),
    "anyOf twice": (
        {
            "type": "string",
            "allOf": [{"anyOf": [{"minLength": 2}, {"const": ""}]}, {"anyOf": [{"maxLength": 3}, _NULL]}],
        },
        ["", "ab", "abc"],
        ["a", "abcd"],
    ),
    "anyOf of nothing but false": ({"anyOf": [False, _INTEGER]}, [1], ["a"]),
    "oneOf of types": ({"oneOf": [_INTEGER, _STRING]}, [1, "a"], [None]),
    "oneOf of constants": ({"oneOf": [{"const": 1, "title": "one"}, {"const": "a"}]}, [1, "a"], [2]),
    "oneOf told apart by a property": (
        {"oneOf": [_CAT, _DOG]},
        [{"kind": "cat", "lives": 9}, {"kind": "dog", "lives": "one"}],
        [{"kind": "dog", "lives": 9}, {}],
    ),
    "oneOf that overlaps": ({"oneOf": [{"minimum": 3}, {"maximum": 5}], "type": "integer"}, [2, 6], [3, 4, 5]),
    "oneOf of integers and numbers": ({"oneOf": [_INTEGER, {"type": "number"}]}, [0.5, -12.25], [1, 0]),
    "oneOf with a value in two branches": ({"oneOf": [{"enum": [1, 2, "a"]}, {"enum": [2.0, 3]}]}, [1, "a", 3], [2]),
    "oneOf of required names": (
        {"properties": {"a": _INTEGER, "b": _INTEGER}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}, {"b": 1}],
        [{}, {"a": 1, "b": 1}],
    ),
    "oneOf of closed objects": (
        {
            "oneOf": [
                {**_object(a=_STRING), "additionalProperties": False},
                {**_object(b=_STRING), "additionalProperties": False},
            ]
        },
        [{"a": "x"}, {"b": "x"}],
        [{}, {"a": "x", "b": "x"}, {"a": 1}],
    ),
    "oneOf of closed objects with properties in common": (
        {
            "oneOf": [
                {**_object(a=_STRING, b=_INTEGER), "additionalProperties": False},
                {**_object(a=_STRING, c=_INTEGER), "additionalProperties": False},
                {**_object(["a"], a=_STRING), "additionalProperties": False},
            ]
        },
        [{"b": 1}, {"c": 1}, {"a": "x", "b": 1}, {"a": "x", "c": 1}],
        [{}, {"a": "x"}, {"b": 1, "c": 1}],
    ),
    "oneOf of a closed and an open object": (
        {
            "oneOf": [
                {**_object(a=_STRING), "patternProperties": {"^x": _INTEGER}, "additionalProperties": False},
                {"type": "object", "additionalProperties": _INTEGER},
            ]
        },
        [{"a": "x"}, {"b": 1}, {"x": 1, "b": 1}, {"a": "y", "x": 1}],
        [{}, {"x": 1}, {"b": "x"}, {"a": "x", "b": 1}],
    ),
    "not a schema for patterned properties": (
        {
            "type": "object",
            "patternProperties": {"^x": {"type": ["integer", "null"]}},
            "additionalProperties": False,
            "not": {"patternProperties": {"^x": _INTEGER}},
        },
        [{"x": None}, {"x": 1, "xa": None}],
        [{}, {"x": 1}, {"a": None}],
    ),
    "not a schema for names": (
        {
            **_object(a=_INTEGER, b=_INTEGER),
            "additionalProperties": _NULL,
            "not": {"propertyNames": {"enum": ["a", "d"]}},
        },
        [{"b": 1}, {"a": 1, "b": 1}, {"c": None}, {"d": None, "c": None}],
        [{}, {"a": 1}, {"d": None}, {"a": 1, "d": None}],
    ),
    "not a schema for additional properties": (
        {
            **_object(a=_INTEGER, b={"type": ["integer", "null"]}),
            "not": {"properties": {"a": True}, "additionalProperties": _INTEGER},
        },
        [{"b": None}, {"a": 1, "b": None}],
        [{}, {"a": 1}, {"b": 1}],
    ),
    "oneOf of three": (
        {"oneOf": [{"type": "string", "minLength": 2}, {"type": "string", "maxLength": 3}, {"const": "abcd"}]},
        ["", "a", "abcde"],
        ["ab", "abc", "abcd"],
    ),
    "oneOf of arrays": (
        {"type": "array", "items": _INTEGER, "oneOf": [{"maxItems": 2}, {"minItems": 2}]},
        [[], [1], [1, 2, 3]],
        [[1, 2]],
    ),
    "not an enum": ({"type": "string", "not": {"enum": ["a", "é", "ab", 3]}}, ["", "b", "abc", "e"], ["a", "é", "ab"]),
    "not a number": ({"type": "number", "minimum": 0, "maximum": 2, "not": {"const": 1}}, [0, 1.5, 2], [1, 1.0]),
    "not a boolean": ({"type": "boolean", "not": {"const": True}}, [False], [True]),
    "not an object": (
        {**_object(a=_INTEGER), "not": {"enum": [{}, {"a": 1}]}},
        [{"a": 2}],
        [{}, {"a": 1}],
    ),
    "not an array": ({"type": "array", "items": _INTEGER, "not": {"const": [1, 2]}}, [[], [1], [2, 1]], [[1, 2]]),
    "not a pattern": ({"type": "string", "not": {"pattern": "a$"}}, ["", "ab", "é"], ["a", "ba"]),
    "not a range": ({"type": "integer", "not": {"minimum": 3, "maximum": 5}}, [2, 6], [3, 5]),
    "not exclusive": ({"type": "integer", "not": {"exclusiveMinimum": 3}}, [3, 2], [4]),
    "not a length": ({"type": "string", "not": {"minLength": 2, "maxLength": 3}}, ["a", "abcd"], ["ab", "abc"]),
    "not a type": ({"not": {"type": ["string", "integer", "array"]}}, [None, True, 1.5], ["a", 1, []]),
    "not required": (
        {**_object(a=_INTEGER, b=_INTEGER), "not": {"required": ["a", "b"]}},
        [{"a": 1}, {}],
        [{"a": 1, "b": 1}],
    ),
    "not properties": (
        {**_object(a=_INTEGER), "not": {"properties": {"a": {"minimum": 3}, "b": True}}},
        [{"a": 2}],
        [{}, {"a": 3}],
    ),
    "not items": ({"type": "array", "items": _INTEGER, "not": {"items": {"minimum": 3}}}, [[2], [3, 2]], [[], [3]]),
    "not prefixItems": (
        {"type": "array", "items": _INTEGER, "not": {"prefixItems": [{"minimum": 3}], "items": False}},
        [[2], [3, 3]],
        [[], [3]],
    ),
    "not contains": (
        {"type": "array", "items": _INTEGER, "not": {"contains": {"minimum": 3}}},
        [[], [2]],
        [[3], [1, 3]],
    ),
    "not a count": (
        {"type": "array", "items": _INTEGER, "not": {"minItems": 2, "maxItems": 3}},
        [[], [1], [1] * 4],
        [[1, 1], [1, 1, 1]],
    ),
    "not a count of properties": (
        {**_object(a=_INTEGER, b=_INTEGER), "not": {"minProperties": 1, "maxProperties": 1}},
        [{}, {"a": 1, "b": 1}],
        [{"a": 1}],
    ),
    "not allOf": ({"type": "integer", "not": {"allOf": [{"minimum": 3}, {"maximum": 5}]}}, [2, 6], [4]),
    "not anyOf": ({"type": "integer", "not": {"anyOf": [{"minimum": 3}, {"const": 1}]}}, [2, 0], [3, 1]),
    "not oneOf": ({"type": "integer", "not": {"oneOf": [{"minimum": 3}, {"maximum": 5}]}}, [3, 5], [2, 6]),
    "not not": ({"not": {"not": _INTEGER}}, [1], ["a"]),
    "not a reference": (
        {"type": ["integer", "null"], "not": {"$ref": "#/$defs/a"}, "$defs": {"a": _NULL}},
        [1],
        [None],
    ),
    "not if": (
        {"type": "integer", "not": {"if": {"minimum": 3}, "then": {"maximum": 5}, "else": {"minimum": 1}}},
        [6, 0],
        [3, 5, 1, 2],
    ),
    "not dependentRequired": (
        {**_object(a=_INTEGER, b=_INTEGER), "not": {"dependentRequired": {"a": ["b"]}}},
        [{"a": 1}],
        [{}, {"b": 1}, {"a": 1, "b": 1}],
    ),
    "not dependentSchemas": (
        {**_object(a=_INTEGER, b=_INTEGER), "not": {"dependentSchemas": {"a": {"required": ["b"]}}}},
        [{"a": 1}],
        [{}, {"b": 1}, {"a": 1, "b": 1}],
    ),
    "not closed": (
        {**_object(a=_INTEGER), "not": {"additionalProperties": False, "required": ["a"]}},
        [{}, {"a": 1}],
        [],
    ),
    "not anything": ({"anyOf": [_INTEGER, {"not": {}}]}, [1], ["a", None]),
    "if": (
        {
            **_object(["country"], country={"enum": ["US", "DE"]}, zip=_STRING),
            "if": {"properties": {"country": {"const": "US"}}},
            "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
            "else": {"required": ["zip"]},
        },
        [{"country": "US"}, {"country": "US", "zip": "12345"}, {"country": "DE", "zip": "x"}],
        [{"country": "US", "zip": "x"}, {"country": "DE"}],
    ),
    "if without else": ({"type": "integer", "if": {"minimum": 3}, "then": {"multipleOf": 2}}, [1, 2, 4], [3, 5]),
    "if alone": ({"type": "integer", "if": {"minimum": 3}}, [1, 3], ["a"]),
    "a discriminator": (
        {"discriminator": {"propertyName": "kind"}, "oneOf": [{**_CAT, "required": []}, {**_DOG, "required": []}]},
        [{"kind": "cat"}, {"kind": "dog"}],
        [{}],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_combination(name: str):
    schema, outputs, others = CASES[name]
    automaton = automaton_of(schema)
    for value in outputs:
        assert is_valid(schema, value), value
        assert automaton.matches(compact(value)), value
    for value in others:
        assert not is_valid(schema, value), value
        assert not automaton.matches(compact(value)), value


def test_the_order_of_properties_is_that_in_which_they_are_met():
    schema = {"allOf": [_object(b=_NULL)], **_object(["d"], c=_NULL, a=_NULL), "additionalProperties": _NULL}
    assert accepts(schema, {"b": None, "c": None, "a": None, "d": None, "z": None, "y": None})
    assert not accepts(schema, {"c": None, "b": None, "d": None})
    assert not accepts(schema, {"z": None, "d": None})


def test_branches_keep_an_order_of_their_own():
    schema = {"anyOf": [_object(["a"], a=_INTEGER, b=_INTEGER), _object(["b"], b=_STRING, a=_STRING)]}
    assert accepts(schema, {"a": 1, "b": 1})
    assert accepts(schema, {"b": "x", "a": "x"})
    assert not accepts(schema, {"b": 1, "a": 1})


RECURSIVE: dict[str, Any] = {
    "a tree": _object(children={"type": "array", "items": {"$ref": "#"}}),
    "by two definitions": {
        "$ref": "#/$defs/a",
        "$defs": {"a": _object(b={"$ref": "#/$defs/b"}), "b": _object(a={"$ref": "#/$defs/a"})},
    },
    "with keywords beside the reference": _object(a={"$ref": "#", "minProperties": 1}),
    "within a negation": {
        "$ref": "#/$defs/a",
        "$defs": {"a": _object(["b"], b={"not": {"not": {"$ref": "#/$defs/a"}}})},
    },
    "anything": {},
    "true": True,
    "a property that may be anything": _object(a={"title": "Anything"}),
    "any object": {"type": "object"},
    "any array": {"type": "array"},
    "items that may be anything": {"type": "array", "items": {}},
    "additional properties that may be anything": {"type": "object", "additionalProperties": True},
    "a name without a schema": {"type": "object", "required": ["a"]},
    "more items than are described": {"prefixItems": [_NULL], "minItems": 2},
}


@pytest.mark.parametrize("name", RECURSIVE)
def test_values_that_nest_without_bound(name: str):
    with pytest.raises(RecursiveSchemaError):
        automaton_of(RECURSIVE[name])


def test_one_definition_in_several_places_is_not_recursive():
    schema = {**_object(a={"$ref": "#/$defs/p"}, b={"$ref": "#/$defs/p"}), "$defs": {"p": _object(x=_INTEGER)}}
    automaton_of(schema)
    assert accepts(schema, {"a": {"x": 1}, "b": {"x": 2}})


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 4},
        {"type": "number", "minimum": 3, "exclusiveMaximum": 3},
        {"type": "array", "items": _NULL, "minItems": 3, "maxItems": 2},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "prefixItems": [_NULL, False], "items": _NULL, "minItems": 2},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "properties": {"a": _NULL}, "minProperties": 2, "additionalProperties": False},
        {"type": "object", "properties": {"a": _NULL, "b": _NULL}, "required": ["a", "b"], "maxProperties": 1},
        {"type": "object", "properties": {"ab": _NULL}, "required": ["ab"], "propertyNames": {"maxLength": 1}},
        {"enum": []},
        {"enum": [1], "const": 2},
        {"enum": [1, "a"], "type": "null"},
        {"const": "ab", "pattern": "^b"},
        {"allOf": [_INTEGER, _STRING]},
        {"type": "integer", "not": _INTEGER},
        {"const": 1, "not": {"const": 1.0}},
        {"type": "boolean", "not": {"enum": [True, False]}},
        {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3},
        {"anyOf": [False, {"enum": []}]},
        {"type": "array", "items": _NULL, "contains": _NULL, "minContains": 3, "maxContains": 2},
        {"type": "number", "not": _INTEGER, "multipleOf": 3},
    ],
)
def test_a_schema_that_no_value_meets(schema: Any):
    with pytest.raises(ConstraintError, match="no value meets this schema") as caught:
        automaton_of(schema)
    assert caught.value.pointer is not None


def test_a_contradiction_is_named_where_it_is():
    with pytest.raises(ConstraintError) as caught:
        automaton_of(_object(["a/b"], **{"a/b": {"type": "string", "minLength": 2, "maxLength": 1}}))
    assert caught.value.pointer == "/properties/a~1b"
