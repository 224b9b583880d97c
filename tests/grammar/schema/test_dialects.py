"""Keywords of older drafts and of OpenAPI: what they mean there, and where it is unclear which dialect is meant."""

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmc.ir.errors import ConstraintError
from tests.grammar.schema import strategies
from tests.grammar.schema.sampling import accepts, automaton_of, compact, draw

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_6 = "http://json-schema.org/draft-06/schema#"
DRAFT_2019 = "https://json-schema.org/draft/2019-09/schema"
DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"
OPENAPI = "https://spec.openapis.org/oas/3.0/schema/2021-09-28"

_DRAFTS: dict[str, Any] = {
    DRAFT_4: jsonschema.Draft4Validator,
    DRAFT_6: jsonschema.Draft6Validator,
    DRAFT_7: jsonschema.Draft7Validator,
    DRAFT_2019: jsonschema.Draft201909Validator,
    DRAFT_2020: jsonschema.Draft202012Validator,
}
_A, _B = {"type": "integer"}, {"type": "string"}


def _older(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, max_size=3)
    names = st.lists(st.sampled_from(strategies.NAMES), max_size=2)
    dependencies = st.dictionaries(st.sampled_from(strategies.NAMES), names | inner, max_size=2)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": some},
            optional={"additionalItems": inner | st.booleans(), "minItems": strategies.counts},
        ),
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from(strategies.NAMES), inner, max_size=3),
                "dependencies": dependencies,
            },
            optional={
                "not": st.dictionaries(
                    st.just("dependencies"), st.dictionaries(st.sampled_from(strategies.NAMES), names)
                )
            },
        ),
    )


schemas = st.recursive(st.one_of(strategies.listed, st.sampled_from([_A, _B, True])), _older, max_leaves=5)


@given(schema=schemas, seed=st.integers(0, 2**32 - 1), values=st.lists(strategies.plain_values, min_size=4))
def test_nothing_that_draft_7_forbids(schema: Any, seed: int, values: list[Any]):
    oracle = jsonschema.Draft7Validator(schema)
    try:
        automaton = automaton_of(schema)
    except ConstraintError:
        assume(False)
        raise
    source = random.Random(seed)
    for _ in range(3 if not automaton.is_empty else 0):
        output = draw(automaton, source)
        assert oracle.is_valid(json.loads(output)), output
    for value in values:
        assert not automaton.matches(compact(value)) or oracle.is_valid(value), value


# Keywords of one draft or another, each beside others that mean something else there, or nothing.
_SOMETIMES: dict[str, st.SearchStrategy[Any]] = {
    "const": st.sampled_from([1, "a", None]),
    "contains": st.sampled_from([_A, _B]),
    "if": st.sampled_from([_A, {"minimum": 3}]),
    "then": st.sampled_from([{"maximum": 9}, False]),
    "else": st.sampled_from([_B, {"minLength": 1}]),
    "propertyNames": st.sampled_from([{"maxLength": 1}, {"enum": ["a"]}]),
    "dependencies": st.just({"a": ["b"]}),
    "dependentRequired": st.just({"a": ["b"]}),
    "prefixItems": st.just([_B]),
    "additionalItems": st.sampled_from([False, _A]),
    "unevaluatedItems": st.just(False),
    "id": st.just("http://a.example/x"),
    "format": st.sampled_from(["isbn", "date", "regex"]),
    "propertis": st.just(3),
    "nullable": st.just(True),
    "minLength": strategies.counts,
    "minimum": st.integers(0, 5),
}


def _sometimes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    typed = st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "string", ["integer", "string", "null"]])}, optional=_SOMETIMES
    )
    arrays = st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional=_SOMETIMES)
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2)},
        optional=_SOMETIMES,
    )
    references = st.fixed_dictionaries({"$ref": st.just("#/definitions/a")}, optional=_SOMETIMES)
    combined = st.fixed_dictionaries({}, optional={"not": inner, "oneOf": st.lists(inner, min_size=2, max_size=2)})
    return st.one_of(typed, arrays, objects, references, combined)


of_a_draft = st.builds(
    lambda schema, draft, target: {**schema, "$schema": draft, "definitions": {"a": target}},
    st.recursive(st.sampled_from([_A, _B]), _sometimes, max_leaves=4).filter(lambda schema: "$ref" not in schema),
    st.sampled_from([*_DRAFTS]),
    st.sampled_from([_A, {"enum": [1, "a"]}]),
)


@given(schema=of_a_draft, seed=st.integers(0, 2**32 - 1), values=st.lists(strategies.plain_values, min_size=4))
def test_nothing_that_the_draft_forbids(schema: Any, seed: int, values: list[Any]):
    kind = _DRAFTS[schema["$schema"]]
    oracle = kind(schema, format_checker=kind.FORMAT_CHECKER)
    try:
        automaton = automaton_of(schema)
    except ConstraintError:
        assume(False)
        raise
    source = random.Random(seed)
    for _ in range(3 if not automaton.is_empty else 0):
        output = draw(automaton, source)
        assert oracle.is_valid(json.loads(output)), output
    for value in values:
        assert not automaton.matches(compact(value)) or oracle.is_valid(value), value


def test_keywords_of_other_drafts_restrict_nothing():
    schema = {"type": "array", "items": _A, "contains": {"const": 3}, "prefixItems": [_B]}
    assert accepts({"$schema": DRAFT_4, **schema}, [1])
    assert not accepts({"$schema": DRAFT_7, **schema}, [1])
    assert accepts({"$schema": DRAFT_7, **schema}, [1, 3])
    assert accepts(
        {"$schema": DRAFT_2020, "type": "object", "properties": {"a": _A}, "dependencies": {"a": ["b"]}}, {"a": 1}
    )
    assert accepts({"$schema": DRAFT_4, "type": "integer", "not": {"type": "string", "const": 1}}, 1)


def test_siblings_of_a_reference_mean_nothing_up_to_draft_7():
    schema = {"$ref": "#/definitions/a", "minimum": 9, "definitions": {"a": _A}}
    for draft in (DRAFT_4, DRAFT_6, DRAFT_7):
        assert accepts({"$schema": draft, **schema}, 1)
        negated = {
            "type": "integer",
            "not": {"$ref": "#/definitions/a", "minimum": 9},
            "definitions": {"a": {"maximum": 3}},
        }
        assert not accepts({"$schema": draft, **negated}, 1)
        assert accepts({"$schema": draft, **negated}, 4)
    for draft in (DRAFT_2019, DRAFT_2020):
        assert not accepts({"$schema": draft, **schema}, 1)
        assert accepts({"$schema": draft, **schema}, 9)


def test_additional_items_without_a_list_mean_nothing():
    for dialect in ({}, {"$schema": DRAFT_4}, {"$schema": DRAFT_7}, {"$schema": DRAFT_2020}):
        assert accepts({**dialect, "type": "array", "items": _A, "additionalItems": False}, [1, 2])


def test_parts_with_a_uri_of_their_own():
    parts = {
        "whole": {"$id": "http://a.example/whole", "type": "array", "items": {"$ref": "part"}},
        "part": {"$id": "http://a.example/part", "$ref": "#/$defs/x", "$defs": {"x": _A}},
    }
    schema = {
        "$id": "http://b.example/",
        "$defs": {**parts, "x": _B},
        "properties": {
            "a": {"$ref": "http://a.example/whole"},
            "b": {"$ref": "#/$defs/x"},
            "c": {"$ref": "http://b.example/#/$defs/x"},
        },
    }
    assert accepts(schema, {"a": [1], "b": "x", "c": "y"})
    for value in ({"a": ["x"]}, {"b": 1}, {"c": 1}):
        assert not accepts(schema, value)
    old = {
        "$schema": DRAFT_4,
        "id": "http://b.example/",
        "definitions": {"x": {"id": "y", "type": "integer"}, "z": {"id": "#w", "type": "string"}},
        "properties": {"id": {"$ref": "y"}, "b": {"$ref": "#w"}},
    }
    assert accepts(old, {"id": 1, "b": "x"})
    assert not accepts(old, {"id": "x"})
    assert not accepts(old, {"b": 1})


def test_a_dynamic_reference_to_the_only_anchor_of_its_name():
    schema = {
        "$schema": DRAFT_2020,
        "$defs": {"a": {"$dynamicAnchor": "t", **_A}},
        "properties": {"p": {"$dynamicRef": "#t"}},
    }
    assert accepts(schema, {"p": 1})
    assert not accepts(schema, {"p": "a"})
    negated = {"$schema": DRAFT_2020, "$defs": schema["$defs"], "enum": [1, "a"], "not": {"$dynamicRef": "#t"}}
    assert accepts(negated, "a")
    assert not accepts(negated, 1)
    recursive = {
        "$schema": DRAFT_2019,
        "$defs": {"a": _A},
        "type": "array",
        "maxItems": 0,
        "items": {"$recursiveRef": "#"},
    }
    assert accepts(recursive, [])


def test_a_schema_of_no_named_draft():
    assert accepts({"$schema": "https://json-schema.org/schema", "type": "object", "properties": {"a": _A}}, {"a": 1})
    assert accepts({"$schema": "http://json-schema.org/schema#", "enum": [1]}, 1)


def test_a_list_of_items():
    schema: dict[str, Any] = {"type": "array", "items": [_A, _B], "additionalItems": {"type": "null"}}
    for value in ([], [1], [1, "a"], [1, "a", None, None]):
        assert accepts(schema, value)
    for value in (["a"], [1, 2], [1, "a", 3]):
        assert not accepts(schema, value)
    assert accepts({"items": [], "additionalItems": _A, "type": "array"}, [1, 2])
    assert not accepts({**schema, "additionalItems": False}, [1, "a", None])
    assert not accepts({"items": [_A], "type": "array", "unevaluatedItems": False}, [1, 2])
    assert accepts({**schema, "unevaluatedItems": False}, [1, "a", None])


def test_dependencies_are_names_or_a_schema():
    properties = dict.fromkeys("abc", _A)
    schema = {"type": "object", "properties": properties, "dependencies": {"a": ["b"], "b": {"required": ["c"]}}}
    for value in ({}, {"c": 1}, {"b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}):
        assert accepts(schema, value)
    for value in ({"a": 1}, {"b": 1}, {"a": 1, "b": 1}):
        assert not accepts(schema, value)
    both = {**schema, "dependentRequired": {"c": ["a"]}}
    assert not accepts(both, {"c": 1})
    assert not accepts(both, {"b": 1, "c": 1})
    negated = {
        "type": "object",
        "properties": properties,
        "not": {"dependencies": {"a": ["b"], "c": {"required": ["a"]}}},
    }
    assert accepts(negated, {"a": 1})
    assert accepts(negated, {"b": 1, "c": 1})
    assert not accepts(negated, {"b": 1})


def test_bounds_that_are_true_where_the_dialect_has_them():
    schema = {"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 5, "exclusiveMaximum": False}
    for dialect in (DRAFT_4, OPENAPI):
        automaton = automaton_of({"$schema": dialect, **schema})
        assert [number for number in range(9) if automaton.matches(compact(number))] == [4, 5]
        assert all(jsonschema.Draft4Validator(schema).is_valid(number) for number in (4, 5))
        automaton = automaton_of({"$schema": dialect, "type": "integer", "not": schema})
        assert [number for number in range(9) if automaton.matches(compact(number))] == [0, 1, 2, 3, 6, 7, 8]
    assert accepts({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, 4)
    assert not accepts({"type": "integer", "minimum": 3, "exclusiveMinimum": True}, 3)


def test_nullable_of_openapi():
    assert accepts({"$schema": OPENAPI, "type": "string", "nullable": True}, None)
    negated = {"$schema": OPENAPI, "enum": ["a", None, 1], "not": {"type": "string", "nullable": True}}
    assert accepts(negated, 1)
    assert not accepts(negated, None)
    assert not accepts({"$schema": OPENAPI, "enum": ["a"], "nullable": True}, None)
    assert not accepts({"type": "string", "nullable": True}, None)
    assert accepts({"type": "string", "nullable": True}, "a")
    assert accepts({"$schema": OPENAPI, "type": "string", "nullable": True}, "a")
    assert not accepts({"$schema": OPENAPI, "type": "string", "nullable": True, "enum": ["a"]}, None)
    for schema in ({"type": "string", "nullable": False}, {"$schema": OPENAPI, "type": "string", "nullable": False}):
        assert not accepts(schema, None)
        assert accepts(schema, "a")
    assert accepts({"type": ["string", "null"], "not": {"type": "string", "nullable": False}}, None)


def test_references_into_definitions_and_lists_of_items():
    schema = {
        "$schema": DRAFT_7,
        "items": [{"$ref": "#/definitions/a"}, {"$ref": "#/items/0", "title": "says nothing"}],
        "type": "array",
        "definitions": {"a": {"enum": [1]}},
    }
    assert accepts(schema, [1, 1])
    assert not accepts(schema, [1, 2])


# name → schema, pointer, part of the cause, part of the remedy
CASES: dict[str, tuple[Any, str, str, str]] = {
    "nullable that is no flag": (
        {"$schema": OPENAPI, "nullable": "yes"},
        "/nullable",
        "has to be true or false",
        "OpenAPI",
    ),
    "both kinds of lists": (
        {"prefixItems": [_A], "items": [_B]},
        "/items",
        "a list of schemas beside prefixItems",
        "the others",
    ),
    "a negated list of items": (
        {"type": "array", "items": _A, "not": {"items": [_A]}},
        "/not/items",
        "items would have to be negated",
        "say what is allowed",
    ),
    "dependencies of another kind": ({"dependencies": {"a": 1}}, "/dependencies", "an object of schemas and lists", ""),
    "a flag without a bound": (
        {"$schema": DRAFT_4, "exclusiveMinimum": True},
        "/exclusiveMinimum",
        "has to be a number",
        "in place of minimum",
    ),
    "a flag of a later dialect": (
        {"$schema": DRAFT_7, "minimum": 1, "exclusiveMinimum": True},
        "/exclusiveMinimum",
        "has to be a number",
        "name the older dialect",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusal(name: str):
    schema, pointer, cause, remedy = CASES[name]
    with pytest.raises(ConstraintError, match=cause) as caught:
        automaton_of(schema)
    assert caught.value.pointer == pointer
    assert remedy in (caught.value.remedy or "")
