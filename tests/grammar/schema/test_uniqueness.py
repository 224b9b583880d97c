"""Items that have to differ: out of lists, between bounds, by place, by class."""

import json
import random
from itertools import product
from typing import Any

import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import accepts, automaton_of, compact, draw, is_valid

VALUES = [0, 1, 2, "a", True, None]
some = st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)
lists = some.map(lambda values: {"enum": values}) | st.sampled_from(
    [
        {"type": "integer", "minimum": 0, "maximum": 2},
        {"type": ["boolean", "null"]},
        {"type": "integer", "enum": [0, 1]},
    ]
)


@given(
    prefix=st.lists(lists, min_size=1, max_size=4),
    rest=st.none() | st.just(False) | lists,
    low=st.none() | st.integers(0, 4),
    high=st.none() | st.integers(0, 5),
)
def test_items_by_place_and_out_of_a_list(prefix: list[Any], rest: Any, low: int | None, high: int | None):
    bounds = {name: count for name, count in (("minItems", low), ("maxItems", high)) if count is not None}
    more = {} if rest is None else {"items": rest}
    schema = {"type": "array", "uniqueItems": True, "prefixItems": prefix, **more, **bounds}
    try:
        automaton = automaton_of(schema)
    except ConstraintError as error:
        assume("no value meets" in error.cause)
        automaton = None
    for count in range(5):
        for value in product(VALUES[:4] if count == 4 else VALUES, repeat=count):
            if rest is not None or count <= len(prefix):
                found = automaton is not None and automaton.matches(compact(value))
                assert found == is_valid(schema, list(value)), value


def test_few_integers_in_any_order():
    schema = {"items": {"type": "integer", "minimum": 1, "maximum": 6}, "uniqueItems": True, "minItems": 3}
    assert accepts(schema, [6, 1, 3])
    assert not accepts(schema, [6, 1, 6])
    assert not accepts(schema, [6, 1])
    even = {"items": {"type": "integer", "exclusiveMinimum": 0, "maximum": 300, "multipleOf": 2}, "uniqueItems": True}
    assert accepts(even, [2, 100, 300])
    assert not accepts(even, [100, 2])  # many keep the order of the list
    assert not accepts(even, [2, 3])
    some_left_out = {"items": {"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}}, "uniqueItems": True}
    assert accepts(some_left_out, [3, 1])
    assert not accepts(some_left_out, [2])


def test_what_no_other_item_can_equal_has_no_list():
    schema = {
        "prefixItems": [{"type": "string"}, {"type": "number"}, {"enum": [None, True]}, {"enum": [True, False]}],
        "items": False,
        "uniqueItems": True,
    }
    for value in ([], ["a"], ["a", 1.5], ["a", 1, True, False], ["a", 1, None, True]):
        assert accepts(schema, value), value
        assert is_valid(schema, value)
    assert not accepts(schema, ["a", 1, True, True])


@pytest.mark.parametrize(
    "schema",
    [
        {"prefixItems": [{"type": "string"}, {"const": "a"}]},
        {"prefixItems": [{"type": "integer"}, {"type": "number"}]},
        {"prefixItems": [{"type": "string"}], "items": {"enum": ["a"]}},
        {"prefixItems": [{"const": 1}], "items": {"type": "integer"}},
        {"items": {"type": "integer", "minimum": 0, "maximum": 10_000}},
        {"items": {"type": "integer", "minimum": 0}},
        {"items": {"type": "number", "minimum": 0, "maximum": 1}},
    ],
)
def test_an_endless_supply_is_refused(schema: Any):
    with pytest.raises(ConstraintError, match="only for items out of a list of values") as caught:
        automaton_of({"type": "array", "uniqueItems": True, **schema})
    assert caught.value.pointer == "/uniqueItems"


def test_too_many_sets_of_values_are_refused():
    for schema in (
        {"prefixItems": [{"enum": list(range(20))}] * 12},
        {"prefixItems": [{"const": 0}], "items": {"enum": list(range(300))}},
    ):
        with pytest.raises(ConstraintError, match="so many values in several places") as caught:
            automaton_of({"type": "array", "uniqueItems": True, **schema})
        assert caught.value.pointer == "/uniqueItems"
        assert "fewer values in common" in (caught.value.remedy or "")


_NAMED = {"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}, "required": ["name"]}
endless = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "pattern": "^[a-d]+$"},
        {"type": "string", "maxLength": 1},
        {"type": "string", "format": "uuid"},
        {"type": "string", "pattern": "^arn:"},
        _NAMED,
        {"$ref": "#/$defs/a"},
    ]
)
texts = st.text("abcdeé", max_size=2)


@given(
    item=endless,
    counts=st.fixed_dictionaries({}, optional={"minItems": st.integers(0, 3), "maxItems": st.integers(2, 5)}),
    values=st.lists(texts.map(lambda text: [text, {"name": text}]), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
def test_items_without_end_differ_in_the_kind_of_a_character(item: Any, counts: Any, values: list[Any], seed: int):
    schema = {"type": "array", "items": item, "uniqueItems": True, "$defs": {"a": {"anyOf": [_NAMED]}}, **counts}
    assume(counts.get("minItems", 0) <= counts.get("maxItems", 5))
    automaton = automaton_of(schema)
    source = random.Random(seed)
    for _ in range(4):
        assert is_valid(schema, json.loads(draw(automaton, source)))
    for index in (0, 1):
        value = [each[index] for each in values]
        assert not automaton.matches(compact(value)) or is_valid(schema, value), value


def test_items_without_end_in_any_order():
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    for value in ([], ["a"], ["one", "two", "six"], ["six", "two", "one"], ["axe", "bee"], list("hgfedcba")):
        assert accepts(schema, value)
    assert not accepts(schema, ["a", "b", "a"])
    named = {"type": "array", "items": _NAMED, "uniqueItems": True}
    for value in ([{"name": "a", "at": 1}, {"name": "b", "at": 1}], [{"name": "b"}, {"name": "a"}]):
        assert accepts(named, value)
    assert not accepts(named, [{"name": "a"}, {"name": "a"}])
    assert automaton_of(pydantic.TypeAdapter(set[str]).json_schema()).matches(b'["x","y"]')


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "integer"}},
        {"items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        {"items": {"type": ["string", "integer"]}},
        {"items": {"type": "string"}, "minItems": 9},
        {"items": {"type": "string"}, "contains": {"const": "a"}},
    ],
)
def test_items_without_end_that_nothing_tells_apart(schema: Any):
    with pytest.raises(ConstraintError, match="uniqueItems is supported only for items out of a list") as caught:
        automaton_of({"type": "array", "uniqueItems": True, **schema})
    assert caught.value.pointer == "/uniqueItems"
