"""Whether JSON read by a type is what ``json.loads`` makes of it: what is called plain is."""

import datetime
import enum
import json
from typing import Annotated, Any, Literal

import pydantic
import pytest
from pydantic import BaseModel, ConfigDict, StringConstraints
from typing_extensions import TypedDict

from lmc.frontend.schemas.plain_json import is_plain, keeps_texts


class Pair(TypedDict):
    a: str
    b: list[int]


class Colour(enum.StrEnum):
    RED = "red"


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    a: str


class Nested(BaseModel):
    a: dict[str, Annotated[str, StringConstraints(to_upper=True)]]


class Model(BaseModel):
    a: str


def core_of(kind: Any) -> Any:
    return pydantic.TypeAdapter(kind).core_schema


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (str, '" a"'),
        (int, "7"),
        (bool, "true"),
        (list[str], '["a"]'),
        (dict[str, int], '{"a":1}'),
        (Pair, '{"a":"x","b":[1]}'),
        (list[Pair] | None, '[{"a":"x","b":[]}]'),
        (Literal["a", 1] | None, "null"),
        (int | str, '"7"'),
        (Any, '{"a":[1,2.5]}'),
    ],
)
def test_plain_types_give_the_data(kind: Any, text: str):
    assert is_plain(core_of(kind))
    value = pydantic.TypeAdapter(kind).validate_json(text)
    assert (repr(value), value) == (repr(json.loads(text)), json.loads(text))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (float, "7"),
        (list[float], "[7]"),
        (dict[int, str], '{"1":"a"}'),
        (set[str], '["a"]'),
        (tuple[int, str], '[1,"a"]'),
        (datetime.date, '"2024-01-01"'),
        (Colour, '"red"'),
        (Annotated[str, StringConstraints(strip_whitespace=True)], '" a"'),
        (Model, '{"a":"x"}'),
    ],
)
def test_other_types_are_not_plain(kind: Any, text: str):
    assert not is_plain(core_of(kind))
    value = pydantic.TypeAdapter(kind).validate_json(text)
    assert repr(value) != repr(json.loads(text))


def test_texts_that_change():
    assert keeps_texts(core_of(Model))
    for kind in (Stripped, Nested, list[Stripped]):
        assert not keeps_texts(core_of(kind))
