"""A dict where the annotation promises an object: refused at the call, in every mode and for programs inside too."""

# Calls that a type checker would refuse.
# pyright: reportArgumentType=false

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pydantic
import pytest

from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import InputError
from tests.frontend.harness import check


@dataclass
class Item:
    name: str
    count: int = 1


class Model(pydantic.BaseModel):
    name: str


class Fields(TypedDict):
    name: str


ROW = {"name": "x"}


def taking(annotation):
    def program(s, item=None, *rest, **more):
        return item

    program.__annotations__ = {"item": annotation, "rest": annotation, "more": annotation}
    return JittedFunction(program)


@pytest.mark.parametrize(
    ("annotation", "value", "path", "remedy"),
    [
        (Item, ROW, "item", "Item(**…)"),
        (Model, ROW, "item", "Model.model_validate(…)"),
        (Item | None, ROW, "item", "Item(**…)"),
        (Item | str, ROW, "item", "Item(**…)"),
        (Annotated[Model, "x"], ROW, "item", "Model.model_validate(…)"),
        (list[Item], [Item("a"), ROW], "item[1]", "Item(**…)"),
        (tuple[str, Item], ("a", ROW), "item[1]", "Item(**…)"),
        (tuple[Item, ...], (ROW,), "item[0]", "Item(**…)"),
        (dict[str, Item], {"k": ROW}, "item['k']", "Item(**…)"),
        (list[list[Model]], [[ROW]], "item[0][0]", "Model.model_validate(…)"),
    ],
)
def test_a_dict_in_place_of_an_object_is_refused(annotation, value, path, remedy):
    with pytest.raises(InputError) as caught:
        bind(taking(annotation), (value,), {})
    assert f"program(): argument {path} is a dict, {{'name': 'x'}}; it is annotated " in caught.value.cause
    assert remedy in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Item, Item("x")),
        (Item, None),
        (Item, [ROW]),
        (Item | dict, ROW),
        (Item | Mapping[str, str], ROW),
        (Item | Fields, ROW),
        (Item | object, ROW),
        (Fields, ROW),
        (Any, ROW),
        (dict, ROW),
        (dict[str, str], ROW),
        (list[dict], [ROW]),
        (tuple[Item, str], (ROW,)),
        ("nowhere", ROW),
    ],
)
def test_anything_else_is_left_to_python(annotation, value):
    assert bind(taking(annotation), (value,), {}).values["item"] is value


def test_further_arguments_are_looked_at_too():
    with pytest.raises(InputError, match=r"argument rest\[1\] is a dict"):
        bind(taking(Item), (None, Item("a"), ROW), {})
    with pytest.raises(InputError, match=r"argument more\['k'\] is a dict"):
        bind(taking(Item), (), {"k": ROW})


def test_a_default_is_not_looked_at():
    def program(s, item: Item = ROW):
        return item

    assert bind(JittedFunction(program), (), {}).values["item"] is ROW


@JittedFunction
def titled(s, item: Item):
    s += item.name
    return s.gen("x", max_tokens=3)


def test_a_program_inside_refuses_it_alike():
    @JittedFunction
    def program(s, name: str):
        s += "x"
        try:
            return titled({"name": name})
        except InputError as error:
            return error.cause

    @JittedFunction
    def failing(s, name: str):
        s += "x"
        return titled({"name": name, "a": 1, "b": 2, "c": 3, "d": 4})

    assert check(program, ("a",)).breaks
    captured = check(failing, ("a",))
    assert "titled(): argument item is a dict, of name, a, b, c, d; it is annotated " in captured.breaks[0].cause


def test_an_object_made_in_the_program_is_taken():
    @JittedFunction
    def program(s, name: str):
        return titled(Item(name)), titled(Item(name, 3))

    check(program, ("a",))
