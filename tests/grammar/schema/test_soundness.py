"""Generated schemas and values against `jsonschema`: nothing invalid is ever an output."""

import json
import os
import random
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.schema import any_node
from lmc.ir.errors import ConstraintError
from tests.grammar.schema import strategies
from tests.grammar.schema.combined_schemas import NESTED_VALUES, SMALL_VALUES, SchemaMaker, orders_of
from tests.grammar.schema.sampling import VALIDATOR, automaton_of, compact, draw, is_valid

COMBINED = 10_000 if os.environ.get("LMC_TEST_FULL") == "1" else 50

_EXPONENT = re.compile(rb"[0-9]e\+[0-9]")

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
        text = compact(value)
        if not _EXPONENT.search(text):  # Python writes large numbers so; lmc does not where there are bounds
            assert automaton.matches(text) == is_valid(schema, value), value


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


def _try_to_compile(schema: Any) -> Automaton | str:
    """The automaton of a schema, recursive or not, or the cause why the schema is refused."""
    try:
        arena = Arena()
        node = any_node(schema, arena)
        return Automaton(node, arena)
    except ConstraintError as error:
        return error.cause


@pytest.mark.parametrize("is_recursive", [False, True])
@pytest.mark.parametrize("is_open", [False, True])
def test_keywords_that_depend_on_each_other(is_open: bool, is_recursive: bool):
    """Outputs are valid; a schema that some value meets is not said to have none.

    Where all parts of values are described (``is_open`` is false), every valid value is an output in some order of its
    properties.
    """
    counts: Counter[str] = Counter()
    for seed in range(COMBINED // (4 if is_recursive else 2 if is_open else 1)):
        chance = random.Random(seed)
        schema = SchemaMaker(chance, is_open=is_open, is_recursive=is_recursive).schema()
        validator = VALIDATOR(schema)
        candidates = [*SMALL_VALUES, *NESTED_VALUES] if is_recursive else SMALL_VALUES
        values = [(value, validator.is_valid(value)) for value in candidates]
        automaton = _try_to_compile(schema)
        if isinstance(automaton, str):
            is_empty = "no value meets" in automaton or "every value that meets" in automaton
            assert not is_empty or not any(valid for _, valid in values), (schema, automaton)
            counts["empty" if is_empty else "refused"] += 1
            continue
        invalid = [value for value, valid in values if not valid]
        valid = [value for value, valid in values if valid]
        for value in chance.sample(invalid, min(len(invalid), 40)):
            assert not any(automaton.matches(compact(order)) for order in orders_of(value)), (schema, value)
        for value in chance.sample(valid, min(len(valid), 40)):
            is_output = any(automaton.matches(compact(order)) for order in orders_of(value))
            assert is_output or is_open, (schema, value)
            counts["valid"] += 1
            counts["left out"] += not is_output
        for _ in range(4):
            text = draw(automaton, chance)
            assert validator.is_valid(json.loads(text)), (schema, text)
            counts["drawn"] += 1
        counts["compiled"] += 1
    total = counts["compiled"] + counts["empty"] + counts["refused"]
    assert counts["refused"] < total / 4, counts
    assert counts["compiled"] > total / 3, counts
    assert counts["drawn"] > 2 * counts["compiled"], counts
    assert counts["valid"] > counts["compiled"], counts
