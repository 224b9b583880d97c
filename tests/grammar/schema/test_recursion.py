import json
import os
import random
from collections import Counter
from typing import Any

import jsonschema
import pytest

from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import TREE, of_schema, random_schema, random_value, walked
from tests.grammar.schema.sampling import draw

CASES = 1_000 if os.environ.get("LMC_TEST_FULL") == "1" else 60


def _is_valid(validator: Any, text: bytes) -> bool:
    try:
        return validator.is_valid(json.loads(text))
    except RecursionError:  # of the validator, in a schema that says nothing but that it is itself
        return True


def test_nothing_is_accepted_that_jsonschema_does_not():
    """Random recursive schemas: what masks lead to, derived texts, and random values."""
    counts: Counter[str] = Counter()
    for seed in range(CASES):
        chance = random.Random(seed)
        schema = {**random_schema(chance), "$defs": {name: random_schema(chance) for name in "AB"}}
        validator: Any = jsonschema.Draft202012Validator(schema)
        try:
            constraint = of_schema(schema, chance.choice(["compact", "flexible"]))
        except ConstraintError:
            counts["refused"] += 1
            continue
        for _ in range(3):
            text = walked(constraint, chance)
            if text is not None:
                assert constraint.matches(text), (schema, text)
                assert _is_valid(validator, text), (schema, text)
                counts["walked"] += 1
        for text in (constraint.automaton.shortest(), draw(constraint.automaton, chance)):
            assert text is not None
            assert _is_valid(validator, text), (schema, text)
            assert constraint.matches(text), (schema, text)
            counts["drawn"] += 1
        for _ in range(20):
            value = random_value(chance)
            text = json.dumps(value, separators=(",", ":")).encode()
            if constraint.matches(text):
                assert _is_valid(validator, text), (schema, text)
                counts["accepted"] += 1
    assert counts["refused"] < CASES / 3
    assert counts["walked"] > CASES
    assert counts["accepted"] > CASES / 2
    assert counts["drawn"] > CASES


def test_a_tree():
    constraint = of_schema(TREE)
    deep = '{"name":"a","kids":[' * 40 + '{"name":"b"}' + "]}" * 40
    for text in ('{"name":"a"}', '{"name":"b","kids":[]}', '{"name":"a","kids":[{"name":"a"},{"name":"b"}]}', deep):
        assert constraint.matches(text)
    for text in ("{}", '{"kids":[],"name":"a"}', '{"name":"c"}', '{"name":"a","kids":[1]}', '{"name":"a"} ', deep[:-1]):
        assert not constraint.matches(text)
    flexible = of_schema(TREE, "flexible")
    assert flexible.matches(' { "name" : "a" ,\n  "kids" : [ {"name":"a"}\n\t]} ')
    assert not flexible.matches('{"name":"a",\n\n"kids":[]}')


def test_alternatives_may_begin_alike():
    expression = {
        "$defs": {
            "sum": {
                "type": "object",
                "properties": {
                    "kind": {"const": "sum"},
                    "left": {"$ref": "#/$defs/any"},
                    "right": {"$ref": "#/$defs/any"},
                },
                "required": ["kind", "left", "right"],
            },
            "leaf": {
                "type": "object",
                "properties": {"kind": {"const": "leaf"}, "value": {"type": "integer"}},
                "required": ["kind", "value"],
            },
            "any": {"oneOf": [{"$ref": "#/$defs/sum"}, {"$ref": "#/$defs/leaf"}, {"type": "integer"}]},
        },
        "$ref": "#/$defs/any",
    }
    constraint = of_schema(expression)
    leaf = '{"kind":"leaf","value":-12}'
    assert constraint.matches(leaf)
    assert constraint.matches(f'{{"kind":"sum","left":{leaf},"right":{{"kind":"sum","left":1,"right":{leaf}}}}}')
    assert not constraint.matches('{"kind":"leaf","left":1,"right":2}')


def test_any_value_is_any_json():
    for schema in ({}, True, {"type": ["object", "array", "string", "number", "boolean", "null"]}):
        constraint = of_schema(schema)
        for text in ('{"a":[1,{"b":null}],"é":"x"}', "[]", "-1.5e3", '"\\u001f"'):
            assert constraint.matches(text), (schema, text)
        for text in ("", "nan", "[1,]", "{1:2}", "[1 ,2]"):
            assert not constraint.matches(text), (schema, text)
    open_parts = of_schema({"type": "object", "properties": {"a": {"type": "array"}}, "additionalProperties": True})
    assert open_parts.matches('{"a":[[1],{}],"b":{"c":2}}')
    assert not open_parts.matches('{"a":1}')


def test_properties_that_have_to_be_there_may_be_any():
    for schema in (
        {"properties": {"a": {}}, "minProperties": 2},
        {"properties": {"a": {}, "c": False}, "patternProperties": {"^[ac]$": True}, "minProperties": 2},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "minProperties": 2},
        {"properties": {"a": True}, "not": {"properties": {"a": {}}, "additionalProperties": False}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"maxProperties": 1}},
    ):
        constraint = of_schema(schema)
        assert constraint.matches('{"a":1,"b":2}'), schema
        for text in ("{}", '{"a":1}', '{"a":1,"a":2}', "[]"):
            assert not constraint.matches(text), (schema, text)


def test_an_array_that_contains_something_may_have_a_length():
    constraint = of_schema({"type": "array", "contains": {"type": "integer"}, "minItems": 2, "maxItems": 3})
    for text in ("[1,1]", '[{"a":[]},1]', "[1,[],null]"):
        assert constraint.matches(text), text
    for text in ("[]", "[1]", "[null,null]", "[1,2,3,4]"):
        assert not constraint.matches(text), text


def test_what_is_counted_twice_is_refused_where_values_nest():
    schema = {"type": "array", "allOf": [{"contains": {"type": "integer"}}, {"contains": {"type": "array"}}]}
    with pytest.raises(ConstraintError, match="counted in two ways at once") as caught:
        of_schema(schema)
    assert caught.value.pointer == "/allOf/0/contains"


def test_references_of_any_form_are_followed():
    by_name = {"$ref": "#node", "$defs": {"x": {"$anchor": "node", "type": "array", "items": {"$ref": "#node"}}}}
    assert of_schema(by_name).matches("[[],[[]]]")
    mutual = {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/b"}},
            "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
        },
    }
    assert of_schema(mutual).matches('[{"a":[{}]},{}]')
    assert not of_schema(mutual).matches("[[]]")


def test_branches_whose_overlap_depends_on_themselves():
    inner = [{"anyOf": [{"type": "string"}, {"$ref": "#"}]}, {"oneOf": [{"type": "integer"}, {"$ref": "#"}]}]
    constraint = of_schema({"type": "object", "properties": {"d": {"oneOf": inner}}, "required": ["d"]})
    assert constraint.matches('{"d":"a"}')
    assert constraint.matches('{"d":1}')
    assert not constraint.matches('{"d":{"d":1}}')  # met by both
    larger = {"type": "object", "properties": {"next": {"$ref": "#"}, "x": {"type": "null"}}, "required": ["next", "x"]}
    with pytest.raises(ConstraintError, match="combinations of alternatives") as caught:
        of_schema({"oneOf": [{**larger, "required": ["next"]}, larger, {"type": "null"}]})
    assert (caught.value.pointer or "").endswith("/properties/next")
    assert "const of its own" in (caught.value.remedy or "")


def test_optional_parts_that_can_have_no_value_are_left_out():
    endless = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/e"}},
        "$defs": {"e": {"type": "array", "items": {"$ref": "#/$defs/e"}, "minItems": 1}},
    }
    assert of_schema(endless).matches("{}")
    assert not of_schema(endless).matches('{"a":[]}')


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array", "items": {"$ref": "#"}, "uniqueItems": True}, "/uniqueItems"),
        ({"properties": {"a": {"$ref": "#"}}, "type": "strin"}, "/type"),
        ({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "other.json"}}}, "/properties/b/$ref"),
        (
            {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "string", "pattern": "(a"}}},
            "/properties/b/pattern",
        ),
        ({"$ref": "#"}, "/$ref"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_pointer(schema, pointer):
    with pytest.raises(ConstraintError) as caught:
        of_schema(schema)
    assert caught.value.pointer == pointer
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("schema", "pointer", "cause"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "", "without end"),
        (
            {
                "properties": {"x": {"$ref": "#/$defs/e"}, "y": {"type": "string"}},
                "required": ["x"],
                "$defs": {"e": {"type": "array", "items": {"$ref": "#/$defs/e"}, "minItems": 1}},
            },
            "/$defs/e",
            "without end",
        ),
        (
            {
                "properties": {"x": {"items": {}}, "y": {"type": "string", "format": "email", "maxLength": 5}},
                "required": ["y"],
            },
            "/properties/y",
            "none of the values that can be produced meets this schema",
        ),
    ],
)
def test_the_part_that_no_value_meets_is_named(schema: Any, pointer: str, cause: str):
    with pytest.raises(ConstraintError, match=cause) as caught:
        of_schema(schema)
    assert caught.value.pointer == pointer
    assert caught.value.remedy


@pytest.mark.parametrize("keyword", ["maxLength", "maxItems", "maxProperties"])
def test_counts_of_any_size_are_understood(keyword: str):
    inner = {"maxLength": {"type": "string"}, "maxItems": {"type": "array", "items": {"$ref": "#"}}}
    part = {**inner.get(keyword, {"type": "object", "additionalProperties": {"$ref": "#"}}), keyword: 2**40}
    constraint = of_schema({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, part]})
    for text in ("[]", "[[]]"):
        assert constraint.matches(text)
    least = of_schema({"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 2**40}]})
    assert least.matches("null")
    assert not least.matches("[null]")


def test_a_meta_schema():
    schema: Any = jsonschema.Draft7Validator.META_SCHEMA
    constraint = of_schema(schema)
    for seed in range(10):
        text = walked(constraint, random.Random(seed), 200)
        assert text is None or jsonschema.Draft7Validator(schema).is_valid(json.loads(text)), text
    assert constraint.matches('{"enum":["a",1],"type":["string","null"]}')
    assert not constraint.matches('{"type":"text"}')


def test_an_object_that_holds_itself_is_refused():
    with pytest.raises(ConstraintError, match="holds another one, without end"):
        of_schema({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]})


ENDLESS: dict[str, Any] = {"e": {"type": "array", "items": {"$ref": "#/$defs/e"}, "minItems": 1}}
NEEDS_ONE: dict[str, Any] = {"$defs": ENDLESS, "type": "object", "minProperties": 1}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}, "minProperties": 1}, '{"a":{"b":1}}'),
        ({**NEEDS_ONE, "properties": {"b": {"$ref": "#/$defs/e"}}, "unevaluatedProperties": True}, '{"a":1}'),
        ({**NEEDS_ONE, "properties": {"b": {"$ref": "#/$defs/e"}}, "unevaluatedProperties": {}}, '{"a":1}'),
        ({**NEEDS_ONE, "patternProperties": {"^a": {"$ref": "#/$defs/e"}}}, '{"b":1}'),
    ],
)
def test_a_property_without_a_finite_value_is_none_of_those_that_are_asked_for(schema: Any, text: str):
    constraint = of_schema(schema)
    assert constraint.matches(text)
    assert not constraint.matches("{}")
    for seed in range(5):
        made = walked(constraint, random.Random(seed), 200)
        assert made is None or jsonschema.Draft202012Validator(schema).is_valid(json.loads(made)), made


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "array", "contains": {"$ref": "#"}}, "/contains"),
        (
            {
                "type": "object",
                "properties": {"p": {"type": "array", "contains": {"$ref": "#/properties/p"}}},
                "required": ["p"],
            },
            "/properties/p/contains",
        ),
    ],
)
def test_values_without_end_are_named_where_the_schema_asks_for_them(schema: Any, pointer: str):
    with pytest.raises(ConstraintError, match="without end") as caught:
        of_schema(schema)
    assert caught.value.pointer == pointer


def test_states_are_shared_and_masks_are_one_array():
    constraint = of_schema(TREE)
    one, two = constraint.start().advance(ord("{")), constraint.start().advance(ord("{"))
    assert one is two
    assert one.mask() is one.mask()
    assert not one.mask().flags.writeable


def test_text_that_has_to_follow_comes_in_canonical_tokens():
    constraint = of_schema(TREE)
    tokens, state = constraint.vocabulary, constraint.start()
    for forced, chosen in ((b'{"name":"', b'a",'), (b'"kids":[', b'{"'), (b'name":"', b"")):
        draft = state.forced()
        assert tokens.text(draft) == forced
        assert draft == tokens.encode(forced)
        for token_id in [*draft, *chosen]:
            state = state.advance(token_id)
    assert state.forced() == []  # either name
