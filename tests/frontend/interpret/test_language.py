"""Parts of Python that programs of the corpora do not use: each program is captured whole, and is plain Python."""

# Programs as users write them.
# pyright: basic, reportCallIssue=false, reportAttributeAccessIssue=false, reportOperatorIssue=false

import dataclasses
import functools
from typing import Any

import pytest

from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured
from lmc.frontend.tools.tools import tool
from tests.frontend.harness import check

PROGRAMS: dict[str, tuple[JittedFunction, tuple[Any, ...]]] = {}


def program(*args: Any) -> Any:
    """Put a program and its arguments into the table."""

    def add(function: Any) -> Any:
        PROGRAMS[function.__name__] = (JittedFunction(function), args)
        return function

    return add


@dataclasses.dataclass
class Item:
    title: str
    count: int = 3
    tags: list[str] = dataclasses.field(default_factory=list)


class Words:
    def ended(self, text, end):
        return text + end

    loud = functools.partialmethod(ended, end="!")


WORDS = Words()


@tool
def found(word: str):
    return {"word": word} if "e" in word else [word]


@program("w")
def data_of_a_dataclass(s, a: str):
    item = Item(a)
    item.tags.append(s.gen("x", max_tokens=2))
    data = dataclasses.asdict(item)
    item.tags.append("later")
    return data, dataclasses.replace(item, title="other").title, item.title


@program("w")
def fields_of_a_dataclass(s, a: str):
    item = Item(a, tags=[s.gen("x", max_tokens=2)])
    return [field.name for field in dataclasses.fields(Item)], [
        getattr(item, field.name) for field in dataclasses.fields(item)
    ]


@program("w")
def partial_methods(s, a: str):
    return Words().loud(s.gen("x", max_tokens=2)), WORDS.loud(a)


@program(5)
def operators_of_bits(s, n: int):
    x = s.gen("x", dtype=int)
    return x << 2 | n & 3, ~x, n >> 1, 5 ^ x


@program("w")
def classes_that_only_a_run_knows(s, a: str):
    value = found(s.gen("x", max_tokens=3))
    if isinstance(value, dict):
        s += value["word"]
    elif isinstance(value, (list, tuple)):
        s += value[0]
    return type(value).__name__, s.text()


@program("w")
def items_of_a_named_generator(s, a: str):
    seen = []
    words = (seen.append(x) or x + a for x in ["1", "2", "3"] if x != "2")
    first = next(words)
    before = list(seen)
    s += first + s.gen("x", max_tokens=2)
    return first, before, list(words), next(words, "done")


@program("w")
def a_named_generator_that_raised(s, a: str):
    numbers = (int(x) for x in ["1", "b", "3"])
    first = next(numbers)
    try:
        next(numbers)
    except ValueError as error:
        s += str(error)
    return first, next(numbers, "done"), s.gen("x", max_tokens=2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_is_whole_and_equal(name: str):
    function, args = PROGRAMS[name]
    captured = capture(function, bind(function, args, {}))
    assert isinstance(captured, Captured), captured
    check(function, args, captured=captured)
