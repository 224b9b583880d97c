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
OPENAPI = "https://spec.openapis.org/oas/3.0/schema/2021-09-28"

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
        with pytest.raises(ConstraintError, match="minimum would have to be negated") as caught:
            automaton_of({"$schema": dialect, "type": "integer", "not": schema})
        assert caught.value.pointer == "/not/minimum"


def test_nullable_of_openapi():
    assert accepts({"$schema": OPENAPI, "type": "string", "nullable": True}, None)
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
    "nullable without a dialect": (
        {"type": "string", "nullable": True},
        "/nullable",
        "in JSON Schema null stays forbidden",
        '"$schema": "https://spec.openapis.org/oas/3.0',
    ),
    "nullable without a type": (
        {"$schema": OPENAPI, "anyOf": [_A], "nullable": True},
        "/nullable",
        "says nothing without a type",
        "anyOf",
    ),
    "nullable that is no flag": ({"nullable": "yes"}, "/nullable", "has to be true or false", "OpenAPI"),
    "nullable that is negated": (
        {"$schema": OPENAPI, "type": "integer", "not": {"type": "string", "nullable": True}},
        "/not/nullable",
        "nullable would have to be negated",
        "say what is allowed",
    ),
    "additionalItems alone": (
        {"type": "array", "additionalItems": False},
        "/additionalItems",
        "says nothing unless items is a list",
        "prefixItems",
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
