"""What `schema=` takes, and what is known of its values."""

import dataclasses
import datetime
import enum
import json
from typing import Annotated, Any, Generic, Literal, NotRequired, TypeVar

import pydantic
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from lmc.frontend.schemas.schemas import Part, UnknownSchemaError, schema_of
from lmc.ir.types import ANY, BOOL, FLOAT, INT, TEXT, Type, json_of, list_of

T = TypeVar("T")


class Inner(BaseModel):
    word: str


class Model(BaseModel):
    zeta: int = Field(ge=0)
    alpha: str = "x"
    ratio: float
    sure: bool
    kind: Literal["a", "b"]
    inner: Inner
    tags: list[str]
    maybe: int | None = None
    odd: int = None  # type: ignore[assignment] - pydantic does not look at defaults
    many: list[Inner] = Field(default_factory=list)
    when: datetime.date
    renamed: int = Field(alias="otherName")


@dataclasses.dataclass
class Point:
    x: int
    names: list[str] = dataclasses.field(default_factory=list)


class Shape(TypedDict):
    sides: int
    name: NotRequired[str]


class Colour(enum.Enum):
    RED = "red"


class Box(BaseModel, Generic[T]):
    held: T


class Node(BaseModel):
    next: "Node | None" = None


def test_keys_stay_in_the_order_in_which_they_are_written():
    assert list(json.loads(schema_of(Model).text)["properties"])[:3] == ["zeta", "alpha", "ratio"]
    assert schema_of({"b": 1, "a": {"d": 1, "c": 2}}).text == '{"b":1,"a":{"d":1,"c":2}}'


@pytest.mark.parametrize(
    ("given", "name", "kind"),
    [
        (Model, "Model", json_of("Model")),
        (Point, "Point", json_of("Point")),
        (Shape, "Shape", json_of("Shape")),
        (Colour, "Colour", json_of("Colour")),
        (Box[int], "Box[int]", json_of("Box[int]")),
        (list[Model], "list[Model]", json_of("list[Model]")),
        (Literal["a"], "Literal['a']", json_of("Literal['a']")),
        (int | str, "int | str", json_of("int | str")),
        (int, "int", INT),
        (float, "float", FLOAT),
        (bool, "bool", BOOL),
        (str, "str", json_of("str")),
        ({"type": "object", "title": "T"}, "T", json_of("T")),
        ({"title": 3}, "schema", json_of("schema")),
        ({}, "schema", json_of("schema")),
    ],
)
def test_names_and_types(given: Any, name: str, kind: Type):
    found = schema_of(given)
    assert (found.name, found.type, found.runs_code) == (name, kind, False)


def test_the_fields_of_a_class():
    assert {name: dataclasses.astuple(part) for name, part in schema_of(Model).attributes.items()} == {
        name: dataclasses.astuple(part)
        for name, part in {
            "zeta": Part("zeta", INT),
            "alpha": Part("alpha", TEXT, required=False, default="x"),
            "ratio": Part("ratio", FLOAT),
            "sure": Part("sure", BOOL),
            "kind": Part("kind", TEXT),
            "inner": Part("inner", ANY, Inner),
            "tags": Part("tags", list_of(TEXT)),
            "maybe": Part("maybe", ANY, required=False),
            "odd": Part("odd", ANY, required=False),
            "many": Part("many", ANY),
            "when": Part("when", ANY),
            "renamed": Part("otherName", INT),
        }.items()
    }
    assert {name: part.type for name, part in schema_of(Point).attributes.items()} == {"x": INT, "names": ANY}
    assert list(schema_of(Node).attributes) == ["next"]


def test_the_items_of_an_object():
    assert {name: part.type for name, part in schema_of(Shape).items.items()} == {"sides": INT, "name": TEXT}
    assert schema_of(Shape).attributes == {}
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {}, "d": True}}
    assert {name: part.type for name, part in schema_of(schema).items.items()} == {"a": TEXT}
    assert schema_of({"type": "array", "properties": {"a": {"type": "string"}}}).items == {}
    properties = {"a": {"type": "string", "nullable": True}, "b": {"type": "string", "$ref": "#/$defs/x"}}
    assert schema_of({"type": "object", "properties": properties}).items == {}
    assert schema_of({"$ref": "#/$defs/x", "type": "object", "properties": {"a": {"type": "string"}}}).items == {}


def test_json_becomes_what_the_class_says():
    text = (
        '{"zeta":1,"ratio":3,"sure":true,"kind":"a","inner":{"word":"w"},"tags":[],"when":"2024-02-29","otherName":5}'
    )
    read = schema_of(Model).read
    assert read is not None
    found = read(text)
    assert (type(found), found.ratio, found.inner, found.when) == (
        Model,
        3.0,
        Inner(word="w"),
        datetime.date(2024, 2, 29),
    )
    assert schema_of({}).read is None


def test_what_pydantic_says_is_told_in_short():
    read = schema_of(Model).read
    assert read is not None
    with pytest.raises(
        ValueError, match="zeta: Input should be greater than or equal to 0; ratio: Field required"
    ) as e:
        read('{"zeta":-1,"sure":"?"}')
    assert "; sure: Input should be a valid boolean" in str(e.value)
    assert str(e.value).endswith(" more")
    assert "https://" not in str(e.value)


def test_types_that_have_no_hash_are_types():
    assert schema_of(Annotated[list[int], pydantic.FailFast()]).text == '{"items":{"type":"integer"},"type":"array"}'
    with pytest.raises(UnknownSchemaError):
        schema_of({1, 2})


def test_a_type_whose_values_no_schema_describes_is_told_with_what_to_use_instead():
    class Plan(BaseModel):
        due: pydantic.FutureDate

    with pytest.raises(UnknownSchemaError, match="field due: what is in the future") as caught:
        schema_of(Plan)
    assert caught.value.remedy == "use a date or datetime with Field(gt=...)"


def test_one_class_has_one_schema():
    assert schema_of(Model) is schema_of(Model)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        (3, "it is no class"),
        ("Model", "it is no class"),
        ([Model], "it is no class"),
        (Model.model_validate, "it is no class"),
        (type("Plain", (), {}), "Unable to generate pydantic-core schema"),
        ({"a": {1}}, "it is no JSON"),
        ({"a": float("inf")}, "it is no JSON"),
        (Annotated[int, pydantic.PlainValidator(lambda value: value)], None),
    ],
)
def test_what_stands_for_no_schema(given: Any, cause: str | None):
    if cause is None:  # it has one, though what comes out is anybody's guess
        assert schema_of(given).runs_code
        return
    with pytest.raises(UnknownSchemaError, match=cause):
        schema_of(given)
