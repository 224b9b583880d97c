"""Generated schemas and values against `jsonschema`: nothing invalid is ever an output."""

import json
import random
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lmc.ir.errors import ConstraintError
from tests.grammar.schema import strategies
from tests.grammar.schema.sampling import automaton_of, compact, draw, is_valid

seeds = st.integers(0, 2**32 - 1)


@given(schema=strategies.schemas, seed=seeds, whitespace=st.sampled_from(["compact", "flexible"]))
@example(schema={"type": "array", "items": {"type": "string"}, "not": {"enum": [[]]}}, seed=0, whitespace="compact")
@example(
    schema={"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 1},
    seed=1,
    whitespace="compact",
)
def test_every_output_is_json_that_validates(schema: Any, seed: int, whitespace: str):
    try:
        automaton = automaton_of(schema, whitespace)
    except ConstraintError:
        assume(False)
        raise
    source = random.Random(seed)
    for _ in range(5 if not automaton.is_empty else 0):
        output = draw(automaton, source)
        assert is_valid(schema, json.loads(output)), output


@given(schema=strategies.schemas, values=st.lists(strategies.values, min_size=5, max_size=10))
def test_a_value_that_does_not_validate_is_no_output(schema: Any, values: list[Any]):
    try:
        automaton = automaton_of(schema)
    except ConstraintError:
        assume(False)
        raise
    for value in values:
        if automaton.matches(compact(value)):
            assert is_valid(schema, value), value


@given(schema=strategies.exact_schemas, values=st.lists(strategies.plain_values, min_size=5, max_size=10), seed=seeds)
def test_where_nothing_is_left_out_exactly_the_valid_values_are_outputs(schema: Any, values: list[Any], seed: int):
    try:
        automaton = automaton_of(schema)
    except ConstraintError:
        with pytest.raises(ConstraintError, match="no value meets this schema"):
            automaton_of(schema)
        assert not any(is_valid(schema, value) for value in values)
        return
    source = random.Random(seed)
    drawn = [json.loads(draw(automaton, source)) for _ in range(3 if not automaton.is_empty else 0)]
    for value in [*values, *(change for each in drawn for change in _changes(each))]:
        assert automaton.matches(compact(value)) == is_valid(schema, value), value


def _changes(value: Any) -> list[Any]:
    """Values that differ from one in one place, and are spelled as outputs are."""
    if isinstance(value, list):
        inner = [[*value[:at], change, *value[at + 1 :]] for at, each in enumerate(value) for change in _changes(each)]
        return [*inner, value[:-1], [*value, None], [*value, *value]]
    if isinstance(value, dict):
        inner = [{**value, name: change} for name, each in value.items() for change in _changes(each)]
        fewer = [{key: each for key, each in value.items() if key != name} for name in value]
        more = [dict(sorted({**value, name: None}.items())) for name in strategies.NAMES]
        return [*inner, *fewer, *more]
    if isinstance(value, str):
        return [value[1:], value + "a", value + "é", None]
    if isinstance(value, bool) or value is None:
        return [not value, 0]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 0.5 if abs(value) < 1000 else 0.5]
    return []


@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
def test_what_a_validator_rejects_for_a_duplicate_key_is_no_output(whitespace: str):
    schema = {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}
    automaton = automaton_of(schema, whitespace)
    assert automaton.matches(b'{"a":1,"b":"x","b":"y"}')
    assert not automaton.matches(b'{"a":1,"a":"x"}')
    assert not automaton.matches(b'{"a":1,"\\u0061":"x"}')
