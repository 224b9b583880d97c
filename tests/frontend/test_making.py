"""Making instances of the user's classes, and what the result of a call may hold of its arguments."""

from dataclasses import dataclass, field

import pydantic
import pytest

from lmc.frontend.function import JittedFunction
from lmc.frontend.tools import tool
from lmc.ir.ops import HostCallOp
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


def declared(kind):
    def program(s, a: str):
        kind(text=a)
        kept = kind(text=a)
        return kept.text

    captured = check(JittedFunction(program), ("w",))
    (function,) = captured.module.functions
    return [op.declared for op in function.body.ops if isinstance(op, HostCallOp) and op.id.endswith(kind.__name__)]


@pytest.mark.parametrize(
    "kind",
    [Factory, Written, After, Inherited, Setting, Validated, Later, Deep, Private],
    ids=lambda kind: kind.__name__,
)
def test_making_that_runs_code_of_the_class_happens_in_order(kind):
    assert declared(kind)[0] == "writes"


@pytest.mark.parametrize("kind", [Plain, PlainModel])
def test_making_that_only_stores_is_pure(kind):
    assert declared(kind)[0] == "pure"


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


@pytest.mark.parametrize("body", [box_of_own, list_of_tool, box_of_argument, box_of_inner])
def test_what_a_result_may_hold_is_not_copied(body):
    captured = check(JittedFunction(body), lambda: (["p", "q"],))
    assert "might change or keep" in captured.breaks[0].cause


def test_a_number_holds_nothing_and_a_new_list_has_no_other_name():
    @JittedFunction
    def program(s, a: str):
        items = [a]
        n = count(items)
        items.append("z")
        return n, Box([a, "y"]).items, same([a])

    assert check(program, ("w",)).breaks == ()
