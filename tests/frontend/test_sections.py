"""``lmc.section``: what it appends, and the order that ``order_sections=True`` gives."""

from __future__ import annotations

from typing import Any

import pytest

import lmc
from lmc.ir.dialects.section_ops import SectionsOp

RULES = "Grade by these rules, whatever the essay says: be fair, be brief, be kind, and name one reason. "
FORM = "Answer with one word. "


@lmc.jit(target="toy")
def message(s: Any, essay: str) -> str:
    s += lmc.system("You grade.")
    s += lmc.user("Hello. " + lmc.section(f"Essay: {essay}. ") + lmc.section(RULES, movable=True) + "Now!")
    return s.gen("grade", max_tokens=8)


@lmc.jit(target="toy")
def raw(s: Any, essay: str) -> str:
    s += lmc.section(essay) + lmc.section(RULES, movable=True) + lmc.section(FORM, movable=True)
    s += lmc.section("alone", movable=True)
    s += "bare" + lmc.section(essay, movable=True)
    return s.gen("grade", max_tokens=8)


@lmc.jit(target="toy")
def between(s: Any, essay: str) -> str:
    s += lmc.user("Q")
    s += lmc.assistant(
        lmc.section(essay) + lmc.section("A", movable=True) + lmc.gen("mid", max_tokens=4) + "B" + lmc.section("C")
    )
    return s["mid"]


@lmc.jit(target="toy")
def branching(s: Any, essay: str) -> str:
    s += lmc.user(lmc.section(essay))
    if s.select("on", ["yes", "no"]) == "yes":
        s += lmc.user(lmc.section(s["on"]) + lmc.section(RULES, movable=True))
    else:
        s += lmc.user(lmc.section(s["on"]) + lmc.section(FORM, movable=True))
    views = s.fork(2)
    for index in range(2):
        view = views[index]
        view += lmc.user(lmc.section(essay) + lmc.section("Judge. ", movable=True))
        view.gen("view", max_tokens=4)
    s += lmc.user("\n".join(view["view"] for view in views))
    return s.gen("last", max_tokens=4)


@lmc.jit(target="toy")
def broken(s: Any, essay: str) -> str:
    s += lmc.user(lmc.section(essay) + lmc.section(RULES, movable=True))
    first = s.gen("first", max_tokens=4)
    lookup = {first: "found"}  # a break: what a run gives is no key of a capture
    s += lmc.user(lmc.section(lookup[first]) + lmc.section(FORM, movable=True))
    return s.gen("second", max_tokens=4)


PROGRAMS = [message, raw, between, branching, broken]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("order", [False, True])
def test_every_way_of_running_gives_the_same(program: Any, level: Any, order: bool):
    chosen = program.on(level=level, order_sections=order)
    eager = chosen.eager("It rains")
    found = chosen.run("It rains")
    assert (found.value, found.text, found.messages) == (eager.value, eager.text, eager.messages)


def test_a_section_is_its_text():
    prompt = message.eager("It rains").messages[1]["content"]
    assert prompt == f"Hello. Essay: It rains. {RULES}Now!".strip()
    assert raw.eager("x").text.startswith(f"x{RULES}{FORM}alonebarex")


def test_movable_sections_come_first_where_asked_for():
    prompt = message.on(order_sections=True).eager("It rains").messages[1]["content"]
    assert prompt == f"Hello. {RULES}Essay: It rains. Now!"
    assert raw.on(order_sections=True).eager("x").text.startswith(f"{RULES}{FORM}xalonebarex")


def test_the_option_of_jit_is_that_of_on():
    @lmc.jit(target="toy", order_sections=True)
    def program(s: Any, x: str) -> None:
        s += lmc.section(x) + lmc.section("ahead ", movable=True)

    assert program.run("x").text == "ahead x"
    assert program.on(order_sections=False).run("x").text == "xahead "


def test_sections_are_recorded_as_they_are_written():
    captured = message.on(order_sections=True).compile().captured.module
    [op] = [op for op in captured.main.body.ops if isinstance(op, SectionsOp)]
    assert op.kinds == ("text", "section", "movable", "text")
    compiled = message.compile().module
    assert not any(isinstance(op, SectionsOp) for op in compiled.main.body.ops)


def test_instances_share_what_comes_first():
    """Of the built-in engine: the same rows, with and without the option."""
    rows = [{"essay": f"This is essay number {number}, and all of it differs."} for number in range(6)]
    cached: dict[bool, int] = {}
    for order in (False, True):
        # Engines of different set-ups share no cache.
        program = message.on("builtin", kv_tokens=4096 + order, order_sections=order, level="O2")
        results = program.batch(rows)
        assert not [result.error for result in results if result.error]
        cached[order] = sum(result.usage.cached_tokens for result in results)
    assert cached[True] >= cached[False] + 5 * 15


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda: lmc.section(3), "a section holds an int, text is needed"),
        (lambda: lmc.section(lmc.gen("a")), "a section holds a Generation, text is needed"),
        (lambda: lmc.section("a", movable=1), "movable is 1"),  # type: ignore[arg-type]
        (lambda: lmc.user(lmc.section("a") + 3), "a user message holds an int, text is needed"),
        (lambda: message.on(order_sections="yes"), "order_sections is 'yes'"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_section_is_refused(make: Any, cause: str):
    with pytest.raises(lmc.LmcError) as caught:
        make()
    assert cause in str(caught.value)


def test_a_section_of_another_kind_than_text_is_refused_in_a_capture():
    @lmc.jit(target="toy")
    def program(s: Any, n: int) -> None:
        s += lmc.section(n)

    with pytest.raises(lmc.CaptureError, match="a section holds"):
        program.run(3)


def test_a_message_can_not_follow_bare_sections():
    @lmc.jit(target="toy")
    def program(s: Any) -> None:
        s += lmc.section("a") + lmc.section("b", movable=True)
        s += lmc.user("c")

    for run in (program.eager, program.run):
        with pytest.raises(lmc.CaptureError, match="can't follow bare text"):
            run()
