"""Each keyword by itself and with those that it is read with: values that are outputs, and values that are none."""

from typing import Any

import pytest

from tests.grammar.schema.sampling import automaton_of, compact, is_valid

_POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]}

_INTEGER: dict[str, Any] = {"type": "integer"}

CASES: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "type null": ({"type": "null"}, [None], [False, 0, "", [], {}]),
    "type boolean": ({"type": "boolean"}, [True, False], [None, 0, 1, "true"]),
    "type integer": ({"type": "integer"}, [0, -1, 10**30], [0.5, "1", True, None]),
    "type number": ({"type": "number"}, [0, -1, 0.5, 1e-7, 1e22, -2.50], ["1", True, None]),
    "type string": ({"type": "string"}, ["", "a", "é😀", '"\\\n\x01\x7f'], [1, None, ["a"]]),
    "a list of types": ({"type": ["integer", "null"]}, [1, None], [1.5, "", []]),
    "types of containers": (
        {"type": ["object", "null"], "properties": {"a": {"type": "integer"}}},
        [{}, {"a": 1}, None],
        [{"a": "x"}, []],
    ),
    "enum": (
        {"enum": [1, "a", None, True, [1, {"b": 2}], {"c": []}]},
        [1, "a", None, True, [1, {"b": 2}], {"c": []}],
        [0, False, "b", [], [1], {"c": [1]}, {}],
    ),
    "enum beside type": ({"type": "string", "enum": ["a", 1, None]}, ["a"], [1, None]),
    "enum beside bounds": ({"enum": [1, 5, 10, "x"], "minimum": 5}, [5, 10, "x"], [1]),
    "enum beside a pattern": ({"enum": ["ab", "b", 3], "pattern": "^a"}, ["ab", 3], ["b"]),
    "enum beside a length": ({"enum": ["a", "aaa"], "minLength": 2}, ["aaa"], ["a"]),
    "enum beside a format": ({"enum": ["2024-02-30", "2024-02-29"], "format": "date"}, ["2024-02-29"], ["2024-02-30"]),
    "enum of objects": (
        {"enum": [{"x": 1}, {"y": 1}, {"x": "1"}, 5], **_POINT},
        [{"x": 1}],
        [{"y": 1}, {"x": "1"}, 5],
    ),
    "enum of arrays": (
        {"enum": [[1], [1, 1], [1, 2], ["a"], [2]], "uniqueItems": True, "contains": {"const": 1}},
        [[1], [1, 2]],
        [[1, 1], ["a"], [2]],
    ),
    "enum of objects beside patterns": (
        {"enum": [{"xa": 1}, {"xa": "s"}, {}], "patternProperties": {"^x": {"type": "integer"}}, "minProperties": 1},
        [{"xa": 1}],
        [{"xa": "s"}, {}],
    ),
    "enum of objects beside names": (
        {"enum": [{"a": 1}, {"bb": 1}], "propertyNames": {"maxLength": 1}, "maxProperties": 1},
        [{"a": 1}],
        [{"bb": 1}],
    ),
    "const": ({"const": {"a": [1, "é"]}}, [{"a": [1, "é"]}], [{"a": [1]}, {}]),
    "const 0 is not false": ({"const": 0}, [0], [False, None]),
    "const 1.0 is an integer": ({"const": 1.0, "type": "integer"}, [1.0], [1.5]),
    "const meets enum": ({"const": 2, "enum": [1, 2.0]}, [2], [1]),
    "minimum": ({"type": "integer", "minimum": 3}, [3, 4, 1000], [2, 0, -3]),
    "maximum": ({"type": "integer", "maximum": 3}, [3, 0, -1000], [4, 30]),
    "exclusive bounds": ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 4}, [2, 3], [1, 4, 0, -2]),
    "both kinds of bounds": ({"type": "integer", "minimum": 1, "exclusiveMinimum": 1, "maximum": 9}, [2, 9], [1]),
    "bounds without a type": ({"minimum": 1.5}, [1.5, 2], [1, 1.25]),
    "fractional bounds of integers": ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, [1, 2], [0, 3]),
    "multipleOf": ({"type": "integer", "multipleOf": 7}, [0, 7, -14, 7**10], [1, 13, -1]),
    "multipleOf of a number": ({"type": "number", "multipleOf": 3}, [0, 3, 33], [1, 1.5, 3.5]),
    "multipleOf one half": ({"type": "number", "multipleOf": 0.5}, [0, 0.5, -1.5, 12], [0.25, 0.51]),
    "two multipleOf": ({"allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "type": "integer"}, [0, 12, 24], [4, 6, 8]),
    "lengths": ({"type": "string", "minLength": 1, "maxLength": 2}, ["a", "é😀", "\n\n"], ["", "abc"]),
    "pattern is a search": ({"type": "string", "pattern": "b+"}, ["b", "abba", "é\nb"], ["", "aca"]),
    "pattern with anchors": ({"type": "string", "pattern": "^b+$"}, ["b", "bb"], ["ab", "", "b\nb"]),
    "pattern and lengths": (
        {"type": "string", "pattern": "^[ab]+$", "minLength": 2, "maxLength": 3},
        ["ab", "bbb"],
        ["a", "abab", "ac"],
    ),
    "two patterns": ({"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"}, ["ab", "xbxa"], ["a", "b"]),
    "properties": (
        {**_POINT, "additionalProperties": False},
        [{"x": 1}, {"x": 1, "y": 2}],
        [{}, {"y": 2}, {"x": "1"}, {"x": 1, "z": 1}, {"x": None}],
    ),
    "required without properties": (
        {"required": ["a"], "additionalProperties": {"type": "integer"}},
        [{"a": 1}, {"a": 1, "b": 2}],
        [{}, {"b": 1}, {"a": "x"}],
    ),
    "a property that is false": ({"properties": {"a": False, "b": {"type": "null"}}}, [{}, {"b": None}], [{"a": 1}]),
    "additionalProperties": (
        {"properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}},
        [{}, {"a": None}, {"a": None, "b": 1, "aa": 2}, {"": 0}],
        [{"b": None}, {"a": 1}],
    ),
    "patternProperties": (
        {"patternProperties": {"^n_": {"type": "integer"}, "s$": {"minimum": 5}}, "additionalProperties": False},
        [{}, {"n_a": 1}, {"n_s": 7}, {"xs": 9}],
        [{"n_a": "1"}, {"n_s": 1}, {"a": 1}],
    ),
    "patternProperties and properties": (
        {"properties": {"n_a": {"minimum": 3}}, "patternProperties": {"^n_": {"type": "integer"}}},
        [{"n_a": 3, "n_b": 1}],
        [{"n_a": 1}, {"n_a": 3.5}],
    ),
    "propertyNames": (
        {"additionalProperties": {"type": "integer"}, "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 2}},
        [{}, {"a": 1, "bb": 2}],
        [{"A": 1}, {"abc": 1}, {"a": "x"}],
    ),
    "propertyNames with an enum": (
        {"additionalProperties": {"type": "integer"}, "propertyNames": {"enum": ["a", "b"]}, "minProperties": 2},
        [{"a": 1, "b": 2}],
        [{"a": 1}, {"c": 1}],
    ),
    "propertyNames against properties": (
        {"properties": {"aaa": {"type": "null"}, "b": {"type": "null"}}, "propertyNames": {"maxLength": 1}},
        [{}, {"b": None}],
        [{"aaa": None}],
    ),
    "minProperties": (
        {"properties": {name: {"type": "null"} for name in "abc"}, "minProperties": 2, "additionalProperties": False},
        [{"a": None, "c": None}, {"a": None, "b": None, "c": None}],
        [{}, {"b": None}],
    ),
    "maxProperties": (
        {"properties": {name: {"type": "null"} for name in "abc"}, "required": ["c"], "maxProperties": 2},
        [{"c": None}, {"a": None, "c": None}],
        [{}, {"a": None, "b": None, "c": None}],
    ),
    "maxProperties of additional ones": (
        {"additionalProperties": {"type": "null"}, "minProperties": 1, "maxProperties": 2},
        [{"a": None}, {"a": None, "b": None}],
        [{}, {"a": None, "b": None, "c": None}],
    ),
    "maxProperties 0": ({"type": "object", "maxProperties": 0}, [{}], [{"a": 1}]),
    "dependentRequired": (
        {**_POINT, "required": [], "dependentRequired": {"x": ["y"]}},
        [{}, {"y": 1}, {"x": 1, "y": 1}],
        [{"x": 1}],
    ),
    "dependentSchemas": (
        {**_POINT, "required": [], "dependentSchemas": {"x": {"properties": {"y": {"minimum": 5}}}}},
        [{}, {"y": 1}, {"x": 1}, {"x": 1, "y": 5}],
        [{"x": 1, "y": 1}],
    ),
    "unevaluatedProperties": (
        {"allOf": [_POINT], "properties": {"z": {"type": "null"}}, "unevaluatedProperties": False},
        [{"x": 1}, {"x": 1, "y": 2}, {"x": 1, "z": None}],
        [{"x": 1, "w": 1}],
    ),
    "unevaluatedProperties of listed values": (
        {
            "allOf": [{"enum": [{"a": 1}, {"b": 1}, [1], []]}, {"properties": {"a": {"type": "integer"}}}],
            "unevaluatedProperties": False,
            "unevaluatedItems": False,
        },
        [{"a": 1}, []],
        [{"b": 1}, [1]],
    ),
    "unevaluatedProperties with a schema": (
        {"properties": {"a": {"type": "null"}}, "unevaluatedProperties": {"type": "integer"}},
        [{"a": None, "b": 1}],
        [{"b": None}],
    ),
    "unevaluatedProperties beside parts that describe nothing": (
        {
            "type": "object",
            "properties": {"q": _INTEGER},
            "anyOf": [{"required": ["f"]}, {}],
            "allOf": [{"minProperties": 0}],
            "dependentRequired": {"q": []},
            "unevaluatedProperties": False,
        },
        [{}, {"q": 1}],
        [{"f": 1}, {"q": 1, "f": 1}],
    ),
    "unevaluatedProperties beside anyOf": (
        {
            "type": "object",
            "anyOf": [{"properties": {"a": _INTEGER}}, {"properties": {"b": _INTEGER}}, {}],
            "unevaluatedProperties": False,
        },
        [{}, {"a": 1}, {"b": 1}, {"a": 1, "b": 2}],
        [{"c": 1}, {"a": "x"}],
    ),
    "unevaluatedProperties beside if alone": (
        {"type": "object", "if": {"properties": {"a": _INTEGER}}, "unevaluatedProperties": False},
        [{}, {"a": 1}],
        [{"a": "x"}, {"b": 1}],
    ),
    "unevaluatedProperties beside if, then and else": (
        {
            "type": "object",
            "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
            "then": {"properties": {"b": _INTEGER}},
            "else": {"properties": {"c": _INTEGER}, "required": ["c"]},
            "unevaluatedProperties": False,
        },
        [{"a": 1}, {"a": 1, "b": 2}, {"c": 3}],
        [{"a": 1, "c": 3}, {"b": 2, "c": 3}, {"a": 2, "c": 3}, {"a": 2}],
    ),
    "unevaluatedProperties beside dependentSchemas": (
        {
            "type": "object",
            "properties": {"a": _INTEGER},
            "dependentSchemas": {"a": {"properties": {"b": _INTEGER}}},
            "unevaluatedProperties": False,
        },
        [{}, {"a": 1}, {"a": 1, "b": 2}],
        [{"b": 2}, {"a": 1, "c": 2}],
    ),
    "unevaluatedProperties beside dependentRequired": (
        {
            "type": "object",
            "properties": {"a": _INTEGER, "b": _INTEGER},
            "allOf": [{"dependentRequired": {"a": ["c"]}}],
            "unevaluatedProperties": False,
        },
        [{}, {"b": 1}],
        [{"a": 1}, {"a": 1, "c": 1}, {"c": 1}],
    ),
    "unevaluatedProperties beside a reference": (
        {
            "type": "object",
            "$ref": "#/$defs/a",
            "required": ["a"],
            "unevaluatedProperties": _INTEGER,
            "$defs": {"a": {"properties": {"a": {"type": "null"}}}},
        },
        [{"a": None}, {"a": None, "c": 1}],
        [{"c": 1}, {"a": None, "c": None}],
    ),
    "unevaluatedProperties beside not": (
        {
            "type": "object",
            "properties": {"b": _INTEGER},
            "not": {"not": {"properties": {"a": _INTEGER}, "required": ["a"]}},
            "anyOf": [True, {"properties": {"a": _INTEGER}}],
            "unevaluatedProperties": False,
        },
        [{"a": 1}],
        [{}, {"b": 1}, {"a": "x"}],
    ),
    "unevaluatedProperties that see only what is in the schema around them": (
        {
            "type": "object",
            "properties": {"a": _INTEGER, "b": _INTEGER},
            "allOf": [{"properties": {"b": True}, "unevaluatedProperties": False}],
        },
        [{}, {"b": 1}],
        [{"a": 1}],
    ),
    "unevaluatedProperties beside those of a schema within": (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}},
            "allOf": [{"properties": {"a": True}, "unevaluatedProperties": _INTEGER}],
            "unevaluatedProperties": False,
        },
        [{}, {"a": None, "b": 1}],
        [{"b": None}],
    ),
    "unevaluatedItems beside parts that describe nothing": (
        {"type": "array", "allOf": [True], "unevaluatedItems": False},
        [[]],
        [["foo"]],
    ),
    "unevaluatedItems beside anyOf": (
        {
            "type": "array",
            "anyOf": [{"prefixItems": [_INTEGER]}, {"prefixItems": [True, _INTEGER], "minItems": 2}, {}],
            "prefixItems": [{"type": ["integer", "null"]}],
            "unevaluatedItems": False,
        },
        [[], [1], [None], [None, 2], [1, 2]],
        [[None, None], [1, 2, 3]],
    ),
    "unevaluatedItems beside if": (
        {
            "type": "array",
            "if": {"prefixItems": [{"const": 1}], "minItems": 1},
            "then": {"items": _INTEGER},
            "unevaluatedItems": {"type": "null"},
        },
        [[], [1], [1, 2, 3], [None], [None, None]],
        [[2], [1, None]],
    ),
    "unevaluatedItems beside contains": (
        {"type": "array", "contains": {"const": 1}, "minItems": 2, "unevaluatedItems": {"type": "null"}},
        [[1, 1], [None, 1], [1, None, None]],
        [[], [1], [None, None], [1, 2]],
    ),
    "unevaluatedItems": (
        {"prefixItems": [{"type": "null"}], "unevaluatedItems": {"type": "integer"}},
        [[], [None], [None, 1, 2]],
        [[1], [None, None]],
    ),
    "items": ({"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], [1, None]]),
    "counts of items": (
        {"items": {"type": "null"}, "minItems": 1, "maxItems": 2},
        [[None], [None, None]],
        [[], [None, None, None]],
    ),
    "prefixItems": (
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": {"type": "null"}, "minItems": 1},
        [[1], [1, "a"], [1, "a", None, None]],
        [[], ["a"], [1, 2], [1, "a", 3]],
    ),
    "prefixItems and no more": (
        {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2},
        [[1, "a"]],
        [[], [1], [1, "a", None]],
    ),
    "an item that is false": (
        {"prefixItems": [{"type": "null"}, False], "items": {"type": "null"}},
        [[], [None]],
        [[None, None]],
    ),
    "items false": ({"type": "array", "items": False}, [[]], [[1]]),
    "contains": (
        {"items": {"type": "integer"}, "contains": {"minimum": 5}},
        [[5], [1, 7, 1]],
        [[], [1], [1, 2]],
    ),
    "minContains and maxContains": (
        {"items": {"type": "integer"}, "contains": {"minimum": 5}, "minContains": 2, "maxContains": 3, "maxItems": 4},
        [[5, 5], [1, 5, 6], [5, 5, 5, 1]],
        [[5], [5, 1], [5, 5, 5, 5], [1, 1, 1, 5, 5]],
    ),
    "maxContains 0": (
        {"items": {"type": "integer"}, "contains": {"minimum": 5}, "minContains": 0, "maxContains": 0},
        [[], [1, 2]],
        [[5], [1, 6]],
    ),
    "minContains 0": (
        {"items": {"type": "null"}, "contains": {"type": "integer"}, "minContains": 0},
        [[], [None]],
        [[1]],
    ),
    "uniqueItems": (
        {"items": {"enum": ["a", "b", 1]}, "uniqueItems": True, "minItems": 1},
        [["a"], ["b", "a"], [1, "a", "b"]],
        [[], ["a", "a"], ["a", "b", "a"], ["c"]],
    ),
    "uniqueItems of booleans and null": (
        {"items": {"type": ["boolean", "null"]}, "uniqueItems": True},
        [[], [None, True, False]],
        [[True, True]],
    ),
    "uniqueItems of a tuple": (
        {"prefixItems": [{"const": 1}, {"enum": [2, 3]}], "items": False, "uniqueItems": True},
        [[], [1, 3]],
        [[1, 1]],
    ),
    "uniqueItems of one": ({"items": {"type": "integer"}, "uniqueItems": True, "maxItems": 1}, [[], [4]], [[4, 4]]),
    "true and false": ({"properties": {"a": False}, "additionalProperties": False}, [{}], [{"a": 1}, {"b": 1}]),
    "annotations": (
        {
            "title": "T",
            "description": "d",
            "default": 3,
            "examples": [1],
            "deprecated": True,
            "readOnly": False,
            "$comment": "c",
            "x-mine": 1,
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:a",
            "contentMediaType": "text/plain",
            "type": "integer",
        },
        [1],
        ["a"],
    ),
    "then without if": ({"type": "integer", "then": False, "else": False, "minContains": 3}, [1], ["a"]),
}


@pytest.mark.parametrize("name", CASES)
def test_keyword(name: str):
    schema, outputs, others = CASES[name]
    automaton = automaton_of(schema)
    for value in outputs:
        assert is_valid(schema, value), value
        assert automaton.matches(compact(value)), value
    for value in others:
        assert not is_valid(schema, value), value
        assert not automaton.matches(compact(value)), value


LEFT_OUT: dict[str, tuple[Any, list[str]]] = {
    "properties in another order": (_POINT, ['{"y":1,"x":1}']),
    "properties that are not described": (_POINT, ['{"x":1,"z":1}']),
    "items that are not described": ({"prefixItems": [{"type": "null"}]}, ["[null,1]"]),
    "classes of values that no keyword is about": ({"minimum": 1}, ['"a"', "null"]),
    "an integer with a fraction or an exponent": ({"type": "integer"}, ["1.0", "1e2", "-0"]),
    "an exponent beside bounds": ({"type": "number", "minimum": 0}, ["1e2"]),
    "an exponent of three digits": ({"type": "number"}, ["1e100"]),
    "another spelling of a number in an enum": ({"enum": [1, 0.5]}, ["1.0", "0.50"]),
    "escapes that are not needed where there is a pattern": (
        {"type": "string", "pattern": "a"},
        ['"\\u0061"', '"a\\/"'],
    ),
    "a key with escapes that are not needed": ({"properties": {"a": {"type": "null"}}}, ['{"\\u0061":null}']),
    "a long list without repetitions in another order": (
        {"items": {"enum": list(range(9))}, "uniqueItems": True},
        ["[1,0]"],
    ),
    "a line break at the end, which Python's $ allows": ({"type": "string", "pattern": "^b$"}, ['"b\\n"']),
    "numbers beyond a format of OpenAPI": ({"type": "integer", "format": "int32"}, [str(2**31), str(-(2**31) - 1)]),
    "white space": ({"items": {"type": "null"}}, ["[ ]", "[null, null]", " []"]),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_valid_and_left_out(name: str):
    schema, outputs = LEFT_OUT[name]
    automaton = automaton_of(schema)
    for output in outputs:
        assert not automaton.matches(output.encode()), output
