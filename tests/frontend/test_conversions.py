"""Names of the types of JSON values, and what classes that run code make of texts."""

import inspect

import pytest
from pydantic import BaseModel, field_validator

from lmc.frontend.schemas.conversions import Conversion, JsonTypes
from lmc.frontend.schemas.schemas import schema_of
from lmc.ir.errors import ConstraintError


class Plain(BaseModel):
    n: int


class Checked(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def check(cls, value: int) -> int:
        if value < 0:
            raise ValueError("it is negative")
        if value == 7:
            raise LookupError("seven")
        return value + 1


def test_a_name_stands_for_one_class_or_one_schema():
    types = JsonTypes()
    other = type("Plain", (BaseModel,), {"__annotations__": {"m": str}})
    assert types.name(schema_of(Plain)) == "Plain"
    assert types.name(schema_of(other)) == "Plain_1"
    assert types.name(schema_of({"title": "Plain"})) == "Plain_2"
    assert [types.name(schema_of(Plain)), types.name(schema_of(other))] == ["Plain", "Plain_1"]
    assert types.name(schema_of({"type": "object"})) == "schema"
    assert types.name(schema_of({"type": "array"})) == "schema_1"
    assert types.name(schema_of({"type": "object"})) == "schema"
    assert types.schema("Plain_1") is schema_of(other)
    assert types.schema("nothing") is None


def test_readers_are_those_of_classes_that_run_no_code():
    types = JsonTypes()
    for given in (Plain, Checked, {"type": "object"}):
        types.name(schema_of(given))
    assert list(types.readers) == ["Plain"]
    assert types.readers["Plain"]('{"n":3}') == Plain(n=3)


def test_a_conversion_makes_values_of_one_text_or_several():
    types = JsonTypes()
    conversion = types.conversion(schema_of(Checked))
    assert types.conversion(schema_of(Checked)) is conversion
    assert conversion('{"n":3}', "f/a") == Checked.model_construct(n=4)
    assert [value.n for value in conversion(['{"n":3}', '{"n":5}'], "f/a")] == [4, 6]


def test_what_the_class_does_not_take_names_the_generation_and_the_cause():
    conversion = Conversion(schema_of(Checked))
    with pytest.raises(ConstraintError) as caught:
        conversion('{"n":-1}', "f/a")
    assert caught.value.cause == (
        "generation 'f/a' gave '{\"n\":-1}', which is no Checked: n: Value error, it is negative"
    )
    assert "say in the schema what the class demands" in (caught.value.remedy or "")
    with pytest.raises(LookupError, match="seven"):
        conversion('{"n":7}', "f/a")


def test_a_conversion_is_named_and_known_by_its_class():
    conversion = Conversion(schema_of(Checked))
    assert (conversion.__name__, conversion.__module__, conversion.__qualname__) == ("Checked", __name__, "Checked")
    assert conversion.source == inspect.getsource(Checked)
    made = type("Made", (Checked,), {"__module__": "nowhere"})
    assert Conversion(schema_of(made)).source == schema_of(made).text
