"""Schemas of classes: whatever comes out is accepted by pydantic, and what can't be said is refused."""

import datetime
import os
import random
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from pydantic import BaseModel, Field

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.classes import UnsupportedTypeError, schema_of_class
from lmc.grammar.facts import Sampler
from tests.grammar.classes.class_cases import ACCEPTED, Box, Cat, Colour, Dog, Point, bounded
from tests.grammar.classes.refused_cases import REFUSED
from tests.grammar.schema.sampling import automaton_of, draw

DRAWN = 300 if os.environ.get("LMC_TEST_FULL") == "1" else 16


def _automaton(kind: Any) -> Automaton:
    return automaton_of(schema_of_class(pydantic.TypeAdapter(kind)))


@pytest.mark.parametrize("name", ACCEPTED)
def test_whatever_comes_out_is_accepted(name: str):
    adapter = pydantic.TypeAdapter[Any](ACCEPTED[name])
    automaton = _automaton(ACCEPTED[name])
    chance = random.Random(name)
    sampler = Sampler(automaton, chance)
    for index in range(DRAWN):
        output = sampler.sample() if index % 2 else draw(automaton, chance, steps=index * 3 % 90)
        if output is not None:
            adapter.validate_json(output)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_schema_describes_is_refused(name: str):
    kind, cause, remedy = REFUSED[name]
    with pytest.raises(UnsupportedTypeError) as caught:
        schema_of_class(pydantic.TypeAdapter(kind))
    assert cause in str(caught.value)
    assert remedy in caught.value.remedy


class Plain(BaseModel):
    name: str = Field(min_length=1, description="hers")
    age: int = Field(ge=0, lt=150)
    ratio: float | None = None
    colours: list[Colour]
    animal: Cat | Point


@pytest.mark.parametrize("kind", [Plain, Colour, dict[str, list[int]], int | None])
def test_where_nothing_has_to_be_added_it_is_the_schema_of_pydantic(kind: Any):
    adapter = pydantic.TypeAdapter[Any](kind)
    assert schema_of_class(adapter) == adapter.json_schema()


@pytest.mark.parametrize(
    ("kind", "inside", "outside"),
    [
        (set[int], ["[]", "[1,1,2]"], ["[1.5]"]),
        (bounded(set[int], min_length=1), ["[1]", "[1,1]"], ["[]"]),
        (bounded(Decimal, max_digits=5, decimal_places=2), ["12.50", '"12.50"', "-999.99", "0"], ["1000", "1.005"]),
        (bounded(Decimal, max_digits=3), ["123", "1.23", "0.01", '"0.5"'], ["1234", "12.34", "0.0001"]),
        (bounded(float, multiple_of=0.01), ["19.99", "-0.07"], ["19.999", "9000000"]),
        (bounded(datetime.date, ge=datetime.date(2020, 1, 31)), ['"2020-01-31"', '"2021-01-01"'], ['"2020-01-30"']),
        (bounded(datetime.date, gt=datetime.date(2020, 1, 31)), ['"2020-02-01"'], ['"2020-01-31"']),
        (pydantic.NaiveDatetime, ['"2020-01-31T12:00:00"'], ['"2020-01-31T12:00:00Z"']),
        (pydantic.PastDate, ['"1999-12-31"'], ['"2999-12-31"']),
        (
            bounded(datetime.timedelta, le=datetime.timedelta(hours=36)),
            ['"PT36H"', '"P1D"', '"PT0S"', '"PT129600S"', '"PT90M"'],
            ['"P2D"', '"PT37H"', '"P1M"'],
        ),
        (dict[int, bool], ['{"1":true,"-20":false}', "{}"], ['{"a":true}', '{"01":true}', '{"1.5":true}']),
        (dict[bool, int], ['{"true":1}'], ['{"yes":1}']),
        (pydantic.Json[list[int]], ['"[1,2]"'], ["[1,2]", '"1"']),
        (pydantic.Base64Str, ['"YWJj"', '""'], ['"//8="', '"YWJ"']),
        (pydantic.HttpUrl, ['"https://example.com/a?b"'], ['"ftp://example.com"', '"https:a"']),
        (pydantic.constr(strip_whitespace=True, min_length=2), ['"a b"'], ['" ab"', '"a"']),
        (Dog, ['{"kind":"dog","names":["a","a"]}', '{"names":[]}'], ['{"kind":"cat","names":[]}']),
        (Box[frozenset[int]], ['{"held":[1,1]}'], ['{"held":1}']),
    ],
    ids=str,
)
def test_what_is_meant_is_an_output(kind: Any, inside: list[str], outside: list[str]):
    automaton, adapter = _automaton(kind), pydantic.TypeAdapter[Any](kind)
    for text in inside:
        assert automaton.matches(text.encode()), text
        adapter.validate_json(text)
    for text in outside:
        assert not automaton.matches(text.encode()), text


def test_what_users_say_of_the_schema_goes_before():
    class Given(BaseModel):
        text: bytes = Field(json_schema_extra={"format": "date"})

    assert _automaton(Given).matches(b'{"text":"2020-01-31"}')
    assert not _automaton(Given).matches(b'{"text":"a"}')


def test_a_set_of_what_a_definition_says():
    class Leaf(BaseModel):
        value: int

    class Twice(BaseModel):
        leaves: set[Leaf]
        other: Leaf

    with pytest.raises(UnsupportedTypeError, match="field leaves: the items of a set need a hash"):
        schema_of_class(pydantic.TypeAdapter(Twice))
