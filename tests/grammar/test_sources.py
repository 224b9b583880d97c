"""The canonical form of what a user constrains a generation by."""

import json

import pydantic
import pytest

from lmc.grammar.compiling import Source
from lmc.ir.errors import ConstraintError


class Pair(pydantic.BaseModel):
    second: int
    first: str


def test_each_kind_has_its_text():
    assert Source.of(regex="a+") == Source("regex", "a+")
    assert Source.of(choices=["b", "a", "b"]) == Source("choices", '["b","a"]')
    assert Source.of(grammar='start: "a"') == Source("grammar", 'start: "a"')
    assert Source.of(schema={"type": "null"}, whitespace="flexible") == Source("schema", '{"type":"null"}', "flexible")


def test_a_schema_may_be_a_dict_a_text_a_truth_value_or_a_class():
    schema = Pair.model_json_schema()
    assert Source.of(schema=Pair) == Source.of(schema=schema) == Source.of(schema=json.dumps(schema))
    assert Source.of(schema=True).data is True


def test_any_type_that_pydantic_knows_is_a_schema():
    assert Source.of(schema=set[int]) == Source.of(schema={"items": {"type": "integer"}, "type": "array"})


def test_the_order_of_properties_is_kept():
    assert list(Source.of(schema=Pair).data["properties"]) == ["second", "first"]


def test_digests_tell_contents_apart():
    sources = [
        Source("regex", "a"),
        Source("choices", "a"),
        Source("schema", "{}"),
        Source("schema", "{}", "flexible"),
        Source("regex", "\ud800"),
    ]
    assert len({source.digest for source in sources}) == len(sources)
    assert Source("regex", "a").digest == Source.of(regex="a").digest


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing given as a constraint"),
        ({"regex": "a", "choices": ["a"]}, "regex and choices given as a constraint"),
        ({"regex": 5}, "regex is of type int"),
        ({"grammar": b"a"}, "grammar is of type bytes"),
        ({"choices": "abc"}, "choices is no list of texts"),
        ({"choices": ["a", 1]}, "choices is no list of texts"),
        ({"schema": "{"}, "the schema is no JSON"),
        ({"schema": 5}, "schema is of type int"),
        ({"schema": {"const": {1, 2}}}, "the schema is no JSON"),
        ({"schema": pydantic.FutureDate}, "what is in the future"),
        ({"schema": "5"}, "schema is of type int"),
        ({"schema": {}, "whitespace": "none"}, "whitespace is 'none'"),
        ({"regex": "a", "whitespace": "flexible"}, "whitespace is given for a regex"),
    ],
)
def test_what_is_no_constraint_is_refused(given, message):
    with pytest.raises(ConstraintError, match=message) as error:
        Source.of(**given)
    assert error.value.remedy
