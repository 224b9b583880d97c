"""Schemas of pydantic models: what comes out is read back by the model, and what a model writes is an output."""

import enum
import json
import random
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from lmc.grammar.schema import RecursiveSchemaError
from tests.grammar.schema.sampling import automaton_of, draw, is_valid


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Address(BaseModel):
    street: str
    zip_code: str = Field(pattern=r"^\d{5}$")
    country: Literal["DE", "US"] = "DE"


class Person(BaseModel):
    """A description."""

    name: str = Field(min_length=1, max_length=40, description="her name")
    age: int = Field(ge=0, lt=150)
    height: float | None = Field(default=None, gt=0, le=2.5)
    addresses: list[Address] = Field(max_length=3)
    favourite: Colour
    level: Level = Level.LOW
    friend: Address | None = None


class Kinds(BaseModel):
    born: date
    seen: datetime
    at: time
    took: timedelta
    key: UUID
    data: bytes
    file: Path
    secret: pydantic.SecretStr
    url: pydantic.AnyUrl
    address: pydantic.IPvAnyAddress


class Containers(BaseModel):
    pair: tuple[int, str]
    many: tuple[bool, ...]
    scores: dict[str, int]
    by_number: dict[Annotated[str, Field(pattern="^[0-9]+$")], bool]
    by_name: dict[Literal["a", "b"], int] = Field(min_length=1)
    colours: set[Colour]
    flags: frozenset[Literal[1, 2, 3]] = Field(min_length=2)
    nothing: None
    nested: list[list[int]] = Field(min_length=1)


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    pet: Cat | Dog = Field(discriminator="kind")
    either: Cat | Dog | None
    several: list[int | str]


class Named(BaseModel):
    model_config = ConfigDict(extra="forbid")
    value: int = Field(alias="theValue")
    step: int = Field(multiple_of=5, ge=-50, le=50)
    half: float = Field(multiple_of=0.5)


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, int]  # pyright: ignore[reportIncompatibleVariableOverride]
    a: int


class Point(NamedTuple):
    x: int
    y: float = 0.0


class Movie(TypedDict, total=False):
    title: str
    year: int


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    following: int | None = None


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


TYPES: list[Any] = [
    Person, Kinds, Containers, Owner, Named, Extra, Point, Movie, Page[Address], list[Person], int | None, Colour,
    dict[str, list[Dog]], Literal[1, "a", None, True], Annotated[str, Field(min_length=2)], tuple[Point, Point],
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
def test_whatever_comes_out_is_read_by_the_model(kind: Any, whitespace: str):
    adapter = pydantic.TypeAdapter(kind)
    schema = adapter.json_schema()
    automaton = automaton_of(schema, whitespace)
    source = random.Random(11)
    for index in range(12):
        output = draw(automaton, source, steps=40 * index)
        assert is_valid(schema, json.loads(output)), output
        adapter.validate_json(output)


_ADDRESS = Address(street='Am Hang 3 "é"\n', zip_code="01234")
VALUES: list[Any] = [
    Person(
        name="Ada", age=36, height=1.7, addresses=[_ADDRESS] * 3, favourite=Colour.RED, level=Level.HIGH, friend=None
    ),
    Containers(
        pair=(1, "a"),
        many=(True, False),
        scores={"x": 1, "": 2, "\t": 3},
        by_number={"12": True},
        by_name={"b": 1},
        colours={Colour.GREEN},
        flags=frozenset({1, 2}),
        nothing=None,
        nested=[[], [1, 2]],
    ),
    Owner(pet=Dog(kind="dog", name="Rex"), either=Cat(lives=9), several=[1, "a"]),
    Page[Address](items=[_ADDRESS], following=3),
    Kinds(
        born=date(2024, 2, 29),
        seen=datetime(2024, 2, 29, 12, 30, 1, 250, tzinfo=UTC),
        at=time(12, 30, tzinfo=UTC),
        took=timedelta(days=3, hours=2),
        key=UUID(int=5),
        data=b"abc",
        file=Path("a/b"),
        secret=pydantic.SecretStr("x"),
        url=pydantic.AnyUrl("https://example.com/a"),
        address="10.0.0.1",  # pyright: ignore[reportArgumentType]
    ),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_what_a_model_writes_is_an_output(value: BaseModel):
    schema = type(value).model_json_schema()
    assert automaton_of(schema).matches(value.model_dump_json().encode())


def test_decimals_are_numbers_or_texts_as_pydantic_writes_them():
    # Its schema says nothing of digits, so neither do the outputs.
    schema = pydantic.TypeAdapter(Annotated[Decimal, Field(max_digits=6, decimal_places=2)]).json_schema()
    automaton = automaton_of(schema)
    assert automaton.matches(b'"12.50"')
    assert automaton.matches(b"12.50")


def test_aliases_and_forbidden_extras():
    automaton = automaton_of(Named.model_json_schema())
    assert automaton.matches(b'{"theValue":1,"step":5,"half":1.5}')
    assert not automaton.matches(b'{"value":1,"step":5,"half":1.5}')
    assert not automaton.matches(b'{"theValue":1,"step":5,"half":1.5,"more":1}')


def test_the_property_that_tells_branches_apart_is_written_even_with_a_default():
    automaton = automaton_of(Owner.model_json_schema())
    assert not automaton.matches(b'{"pet":{"lives":9},"either":null,"several":[]}')
    assert automaton.matches(b'{"pet":{"kind":"cat","lives":9},"either":{"lives":9},"several":[]}')


@pytest.mark.parametrize("kind", [Tree, dict[str, Any], list[Any], Any])
def test_models_that_nest_without_bound(kind: Any):
    with pytest.raises(RecursiveSchemaError):
        automaton_of(pydantic.TypeAdapter(kind).json_schema())
