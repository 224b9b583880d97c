"""Arguments that functions of the program change behind its back are seen changed, however the program runs."""

import dataclasses
from typing import Any

import pydantic
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import lmc
from lmc.frontend.program.arguments import bind
from tests.frontend.argument_strategies import ARGUMENTS_HEADER, NAMES, argument_programs, given_arguments
from tests.frontend.harness import at_the_end, check
from tests.frontend.strategies import load

SHARED = st.frozensets(st.sampled_from(NAMES))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arguments")


@settings(max_examples=max(20, settings.default.max_examples // 2))  # type: ignore[union-attr]
@given(source=argument_programs(), shared=SHARED, other=SHARED, alias=st.booleans(), ends=st.booleans())
def test_changed_arguments_are_seen_in_every_way_of_running(folder, source, shared, other, alias, ends):
    note(source)
    module = load(ARGUMENTS_HEADER + "@jit\n" + source, folder)
    stop_before = at_the_end if ends else None
    captured = check(module.program, lambda: given_arguments(module, shared, alias), stop_before=stop_before)
    note(str(captured.breaks))
    if captured.matches(bind(module.program, given_arguments(module, other, alias), {})):
        check(module.program, lambda: given_arguments(module, other, alias), captured=captured)


@dataclasses.dataclass
class Notes:
    lines: list


class Page(pydantic.BaseModel):
    lines: list[str]


SHELF = {}
DEFAULT = ["d"]


@lmc.tool
def write_down(text: str) -> str:
    SHELF["lines"].append(text)
    return text


@lmc.tool
def write_default(text: str) -> str:
    DEFAULT.append(text)
    return text


@lmc.tool
def append_to(lines: list) -> None:
    lines.append("new")


@lmc.jit
def of_a_list(s, text: str, given: list[str]):
    s += text
    write_down(s.gen("x", max_tokens=2))
    return len(given), list(given)


@lmc.jit
def of_a_dict(s, text: str, given: dict):
    s += text
    write_down(s.gen("x", max_tokens=2))
    return len(given["lines"]), list(given["lines"])


@lmc.jit
def of_a_record(s, text: str, given):
    s += text
    write_down(s.gen("x", max_tokens=2))
    return len(given.lines), list(given.lines)


SHARED_KINDS: dict[str, tuple[Any, Any]] = {
    "a list": (of_a_list, lambda lines: lines),
    "a list in a dict": (of_a_dict, lambda lines: {"lines": lines}),
    "a list in a dataclass": (of_a_record, Notes),
    "a list in a pydantic instance": (of_a_record, lambda lines: Page.model_construct(lines=lines)),
}


@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_what_a_tool_appends_to_an_argument_is_seen(kind):
    program, make = SHARED_KINDS[kind]

    def shared():
        SHELF["lines"] = ["a", "b"]
        return ("Hi", make(SHELF["lines"]))

    def apart():
        SHELF["lines"] = []
        return ("Hi", make(["a", "b"]))

    (reason,) = check(program, shared).breaks
    assert "write_down() may change an argument of the program" in reason.cause
    assert "list(x)" in reason.remedy
    alone = check(program, apart)
    assert not alone.breaks
    assert not alone.matches(bind(program, shared(), {}))
    for level in ("O0", "O2"):
        on = program.on("toy", level=level)
        assert [on.run(*apart()).value[0], on.run(*shared()).value[0], on.run(*apart()).value[0]] == [2, 3, 2]


@lmc.jit
def two_names(s, text: str, first: list, second: list):
    append_to(first)
    return len(first), len(second), s.gen("x", max_tokens=2)


def test_two_arguments_that_are_one_list_are_changed_together():
    def one():
        lines = ["a"]
        return ("Hi", lines, lines)

    check(two_names, one)
    assert [two_names.on("toy", level=level).run(*one()).value[:2] for level in ("O0", "O2")] == [(2, 2), (2, 2)]


@lmc.jit
def with_default(s, text: str, lines: list = DEFAULT):
    s += text
    write_default(text)
    return len(lines), s.gen("x", max_tokens=2)


def test_a_default_that_a_tool_changes_is_seen():
    def fresh():
        DEFAULT[:] = ["d"]
        return ("Hi",)

    assert check(with_default, fresh).breaks
    fresh()
    runs = [with_default.on("toy", level=level).run("Hi").value[0] for level in ("O0", "O2")]
    assert [*runs, with_default.on("toy").eager("Hi").value[0]] == [2, 3, 4]


class Agent:
    def __init__(self):
        self.log = []

    def note(self, text):
        self.log.append(text)

    @lmc.jit
    def run(self, s, text: str, seen: list):
        s += text
        self.note(text)
        return len(seen), s.gen("x", max_tokens=2)


def test_a_method_that_changes_an_argument_is_seen():
    agent = Agent()
    results = [agent.run.on("toy", level=level).run("Hi", agent.log).value[0] for level in ("O0", "O2")]
    assert [*results, agent.run.on("toy").eager("Hi", agent.log).value[0]] == [1, 2, 3]
