"""Items that have to differ: out of lists, between bounds, by place, by class."""

from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import accepts, automaton_of, compact, is_valid

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
