"""Making instances of the user's classes, and what the result of a call may hold of its arguments."""

from dataclasses import dataclass, field

import pydantic
import pytest

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.frontend.harness import check, effect


def made():
    effect("made")
    return 1


@dataclass
class Factory:
    text: str
    number: int = field(default_factory=made)


@dataclass
class Written:
    text: str

    def __init__(self, text):
        effect("init")
        self.text = text


@dataclass
class After:
    text: str

    def __post_init__(self):
        effect("post")


@dataclass
class Inherited(Written):
    pass


@dataclass
class Setting:
    text: str

    def __setattr__(self, name, value):
        effect("set", name)
        object.__setattr__(self, name, value)


class Validated(pydantic.BaseModel):
    text: str

    @pydantic.field_validator("text")
    @classmethod
    def checked(cls, value):
        effect("validated")
        return value


class Later(pydantic.BaseModel):
    text: str

    def model_post_init(self, context):
        effect("later")


class Deep(pydantic.BaseModel):
    text: str
    inner: Validated = pydantic.Field(default_factory=lambda: Validated(text="x"))


class Private(pydantic.BaseModel):
    text: str
    _number: int = pydantic.PrivateAttr(default_factory=made)


@dataclass(frozen=True)
class Plain:
    text: str
    more: list[str] = field(default_factory=list)


class PlainModel(pydantic.BaseModel):
    text: str


@dataclass
class Box:
    items: list


@pytest.mark.parametrize(
    "kind",
    [Factory, Written, After, Inherited, Setting, Validated, Later, Deep, Private, Plain, PlainModel],
    ids=lambda kind: kind.__name__,
)
def test_code_of_a_class_runs_in_order(kind):
    @JittedFunction
    def program(s, a: str):
        kind(text=a)
        kept = kind(text=a)
        return kept.text

    assert not check(program, ("w",)).breaks


@tool(effect="pure")
def same(items: list[str]) -> list[str]:
    return items


@tool(effect="reads")
def count(items: list[str]) -> int:
    return len(items)


def box_of_own(s, words):
    items = ["a"]
    box = Box(items)
    items.append("z")
    return box.items


def list_of_tool(s, words):
    items = ["a"]
    found = same(items)
    items.append("z")
    return found


def box_of_argument(s, words):
    box = Box(words)
    return box.items, words


def box_of_inner(s, words):
    items = ["a"]
    box = Box([items])
    items.append("z")
    return box.items


@pytest.mark.parametrize("body", [box_of_own, box_of_inner])
def test_an_object_of_the_program_holds_its_lists(body):
    assert not check(JittedFunction(body), lambda: (["p", "q"],)).breaks


def test_what_a_tool_may_have_given_back_is_not_changed_in_the_graph():
    (found,) = check(JittedFunction(list_of_tool), lambda: (["p", "q"],)).breaks
    assert "a tool was given, whose result may be or hold it" in found.cause
    assert "copy" in found.remedy


def test_an_argument_in_an_object_is_given_back_itself():
    assert "it is an argument" in check(JittedFunction(box_of_argument), lambda: (["p", "q"],)).breaks[0].cause


def test_a_number_holds_nothing_and_a_new_list_has_no_other_name():
    @JittedFunction
    def program(s, a: str):
        items = [a]
        n = count(items)
        items.append("z")
        return n, Box([a, "y"]).items, same([a])

    assert check(program, ("w",)).breaks == ()
