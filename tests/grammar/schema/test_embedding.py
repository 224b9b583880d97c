"""JSON within a string: `contentSchema` of `application/json`."""

import json
import random
from typing import Any

import pydantic
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmc.grammar.classes import schema_of_class
from lmc.grammar.schema import RecursiveSchemaError
from lmc.ir.errors import ConstraintError
from tests.grammar.schema import strategies
from tests.grammar.schema.sampling import accepts, automaton_of, compact, draw, is_valid

_JSON = {"type": "string", "contentMediaType": "application/json"}


def _text(schema: Any, **more: Any) -> dict[str, Any]:
    return {**_JSON, "contentSchema": schema, **more}


@given(
    schema=strategies.schemas,
    seed=st.integers(0, 2**32 - 1),
    values=st.lists(strategies.plain_values, min_size=4, max_size=8),
)
def test_what_a_string_holds_is_json_of_the_schema(schema: Any, seed: int, values: list[Any]):
    try:
        inner = automaton_of(schema)
        outer = automaton_of(_text(schema))
    except ConstraintError:
        assume(False)
        raise
    source = random.Random(seed)
    for _ in range(3 if not outer.is_empty else 0):
        output = draw(outer, source)
        text = json.loads(output)
        assert is_valid(schema, json.loads(text)), output
        assert inner.matches(text.encode())
    for value in values:
        text = compact(value).decode()
        assert outer.matches(compact(text)) == inner.matches(text.encode()), text


def test_strings_in_strings():
    schema = _text(_text({"enum": ['a"\\\n', 1]}))
    for value in ('a"\\\n', 1):
        assert accepts(schema, compact(compact(value).decode()).decode())
    assert not accepts(schema, compact("1").decode() + " ")


def test_beside_other_keywords_and_as_a_key():
    assert accepts(_text({"type": "integer"}, maxLength=2, pattern="^1"), "17")
    assert not accepts(_text({"type": "integer"}, maxLength=2), "170")
    assert not accepts(_text({"type": "integer"}, pattern="^1"), "27")
    keys = {"additionalProperties": {"type": "null"}, "propertyNames": _text({"type": "integer", "minimum": 3})}
    assert accepts(keys, {"3": None, "40": None})
    assert not accepts(keys, {"2": None})
    assert accepts(_text({"type": "integer"}, enum=["1", "a", "02"]), "1")
    assert not accepts(_text({"type": "integer"}, enum=["1", "a", "02"]), "02")


def test_text_that_is_any_json_nests_to_some_depth():
    for schema in ({}, True, {"title": "restricts nothing"}):
        automaton = automaton_of(_text(schema))
        for value in (1, "a", None, [], {}, [1, ["a"]], {"a": {"b": None}, "c": [True]}):
            assert automaton.matches(compact(compact(value).decode())), value
        assert not automaton.matches(compact("a"))
        assert not automaton.matches(compact("[[[1]]]"))
    assert accepts(_text({"type": "array", "items": {}}), '[1,{"a":[]}]')


class _Holder(pydantic.BaseModel):
    parsed: pydantic.Json
    listed: pydantic.Json[list]


def test_json_of_pydantic_without_parameters():
    source = random.Random(5)
    automaton = automaton_of(schema_of_class(pydantic.TypeAdapter(_Holder)))
    for _ in range(30):
        _Holder.model_validate_json(draw(automaton, source))


@pytest.mark.parametrize(
    ("schema", "pointer", "cause"),
    [
        (_text(3), "/contentSchema", "contentSchema has to be a schema"),
        (_text({"type": "array"}), "/contentSchema", "the array may hold any JSON value"),
        (_text({"items": {"$ref": "#/contentSchema"}}), "/contentSchema", "refers to itself"),
        (_text({"minimum": "1"}), "/contentSchema/minimum", "has to be a number"),
        ({"type": "string", "not": _text({"type": "null"})}, "/not/contentSchema", "would have to be negated"),
    ],
)
def test_what_can_not_be_enforced(schema: Any, pointer: str, cause: str):
    with pytest.raises(ConstraintError, match=cause) as caught:
        automaton_of(schema)
    assert not isinstance(caught.value, RecursiveSchemaError)
    assert caught.value.pointer == pointer
    assert caught.value.remedy
