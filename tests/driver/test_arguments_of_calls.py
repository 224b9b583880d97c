import dataclasses
from typing import Annotated, Any, TypedDict

import pydantic
import pytest

import lmc
from lmc.frontend.program.arguments import bind


class Item(pydantic.BaseModel):
    title: str


@dataclasses.dataclass
class Point:
    x: int


class Data(TypedDict):
    title: str


@lmc.jit(target="toy")
def program(
    s: lmc.State,
    item: Item | None = None,
    point: Annotated[Point, "where"] | None = None,
    items: list[Item] = [],  # noqa: B006 - never changed
    data: Data | None = None,
    either: Item | dict[str, str] | None = None,
    free: Any = None,
) -> str:
    s += item.title if item is not None else "none"
    return s.gen("a", max_tokens=2)


@pytest.mark.parametrize(
    ("arguments", "cause", "remedy"),
    [
        ({"item": {"title": "x"}}, "argument item is a dict, {'title': 'x'}", "Item.model_validate(…)"),
        ({"point": {"x": 1}}, "argument point is a dict, {'x': 1}", "Point(**…)"),
        ({"items": [Item(title="x"), {"title": "y"}]}, r"argument items\[1\] is a dict", "Item.model_validate(…)"),
        ({"item": {"title": "x" * 500}}, "argument item is a dict, .{60}; it is annotated", "Item.model_validate(…)"),
    ],
)
def test_a_dict_is_not_an_object_of_a_class(arguments: dict[str, Any], cause: str, remedy: str):
    with pytest.raises(lmc.InputError, match=cause) as caught:
        program.run(**arguments)
    assert caught.value.remedy is not None
    assert remedy in caught.value.remedy
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    with pytest.raises(lmc.InputError, match=cause):
        program.eager(**arguments)
    [result] = program.batch([arguments])
    assert isinstance(result.error, lmc.InputError)


def test_dicts_are_taken_where_the_annotation_allows_them():
    arguments = {"data": {"title": "x"}, "either": {"title": "x"}, "free": {"title": "x"}, "items": [Item(title="x")]}
    assert bind(program, (), arguments).values.items() >= arguments.items()


def test_what_python_is_given_is_not_converted():
    item = Item(title="x")
    assert bind(program, (item,), {}).values["item"] is item
