"""Tools that may be called early, in every way of running: same results and errors, and once where they are needed."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import stamina

import lmc
from lmc.driver.saved.artifacts import plan_text
from lmc.frontend.capture import capture
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.tools.tools import tool
from tests.driver.levels import LEVELS, run_at
from tests.frontend.harness import Run, run_captured, run_plain

CALLS: Counter[str] = Counter()
_LOCK = threading.Lock()
INPUTS = ("ants", "birds", "the sea", "e", "t", "x y z")


def note(call: str) -> int:
    with _LOCK:
        CALLS[call] += 1
        return CALLS[call]


@pytest.fixture(autouse=True)
def nothing_called() -> Iterator[None]:
    CALLS.clear()
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@tool(effect="reads", early=True)
def look(word: str) -> str:
    note(f"look {word}")
    return f"<{word}>"


@tool(effect="reads", early=True)
async def fetch(word: str) -> str:
    note(f"fetch {word}")
    await asyncio.sleep(0)
    return f"({word})"


@tool(effect="reads", early=True, retries=3)
def flaky(word: str) -> str:
    if note(f"flaky {word}") % 3:
        raise ConnectionError
    return f"at last {word}"


@tool(effect="reads", early=True)
def fails(word: str) -> str:
    note(f"fails {word}")
    raise LookupError(f"no {word}")


@tool(effect="reads", early=True, timeout=0.01)
async def never(word: str) -> str:
    note(f"never {word}")
    await asyncio.sleep(20)
    return word


@tool
def save(word: str) -> int:
    note(f"save {word}")
    return len(word)


@lmc.jit
def both_ways(s: lmc.State, a: str) -> str:
    s += a
    x = s.gen("x", max_tokens=4)
    if "e" in x:
        s += look(f"about {a}")
    else:
        s += fetch(f"not {a}")
    return s.gen("y", max_tokens=2)


@lmc.jit
def between_writes(s: lmc.State, a: str) -> list[Any]:
    save(a)
    s += a
    x = s.gen("x", max_tokens=4)
    found = ""
    if "e" in x:
        found = look(a)
        save("found " + found)
        found += look("after " + a)
    save(x)
    return [found, s.gen("y", max_tokens=2)]


@lmc.jit
def in_rounds(s: lmc.State, a: str) -> str:
    s += a
    rounds = 0
    while rounds < 3 and "z" not in s.gen("more", max_tokens=2):
        rounds += 1
        if "e" in s.gen("which", max_tokens=3):
            s += look(a)
        elif "t" in s.gen("other", max_tokens=3):
            s += fetch(f"{a}!")
    return s.gen("y", max_tokens=2)


@lmc.jit
def tried_again(s: lmc.State, a: str) -> str:
    s += a
    if "e" in s.gen("x", max_tokens=4):
        s += flaky(a)
    return s.gen("y", max_tokens=2)


@lmc.jit
def raises(s: lmc.State, a: str) -> str:
    s += a
    if "e" in s.gen("x", max_tokens=4):
        s += fails(a)
    return s.gen("y", max_tokens=2)


@lmc.jit
def is_late(s: lmc.State, a: str) -> str:
    s += a
    if "e" in s.gen("x", max_tokens=4):
        s += never(a)
    return s.gen("y", max_tokens=2)


@lmc.jit
def goes_on_eagerly(s: lmc.State, a: str) -> list[Any]:
    s += a
    x = s.gen("x", max_tokens=4)
    found = look(a) if "e" in x else fetch(a)
    known = sorted(locals())
    return [found, known, look(a), s.gen("y", max_tokens=2)]


PROGRAMS = [both_ways, between_writes, in_rounds, tried_again, raises, is_late, goes_on_eagerly]


def function_of(program: lmc.Program) -> JittedFunction:
    return JittedFunction(program.function)


def counted(run: Run) -> tuple[tuple[Any, ...], Counter[str]]:
    found = Counter(CALLS)
    CALLS.clear()
    return run.end, found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
@pytest.mark.parametrize("text", INPUTS)
def test_every_way_of_running_gives_the_same(program: lmc.Program, text: str):
    function = function_of(program)
    plain, needed = counted(run_plain(function, (text,), {}))
    captured = capture(function, bind(function, (text,), {}))
    CALLS.clear()
    assert counted(run_captured(captured, (text,), {})) == (plain, needed)
    for level in LEVELS:
        end, calls = counted(run_at(level, captured, (text,), {}))
        assert end == plain
        if level == "O0":
            assert calls == needed
            continue
        assert needed <= calls
        if program not in (in_rounds, goes_on_eagerly):  # there, what one place needs another may call in vain
            assert {call: calls[call] for call in needed} == dict(needed)
        assert all(call.split()[0] != "save" for call in calls - needed)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_inputs_lead_to_different_calls(program: lmc.Program):
    runs = (counted(run_plain(function_of(program), (text,), {}))[1] for text in INPUTS)
    called = {frozenset(call.split()[0] for call in calls) - {"save"} for calls in runs}
    assert len(called) > 1


def test_what_may_start_early_is_in_the_plan_and_said():
    compiled = both_ways.on("toy").compile("ants")
    assert plan_text(compiled.plan).count('"early": true') == 2
    said = [str(remark) for remark in compiled.remarks if remark.pass_name == "start-reads-early"]
    assert len(said) == 2
    line = both_ways.function.__code__.co_firstlineno
    assert f"{__file__}:{line + 5}: start-reads-early: 'both_ways/@look' may start before" in said[0]


def test_a_tool_in_a_class_may_be_called_early_too():
    class Library:
        @lmc.tool(effect="reads", early=True)
        def find(self, word: str) -> str:
            return word

        @lmc.jit
        def ask(self, s: lmc.State, a: str) -> str:
            s += a
            if "e" in s.gen("x", max_tokens=4):
                s += self.find(a)  # pyright: ignore[reportCallIssue]  bound as any method
            return s.gen("y", max_tokens=2)

    assert '"early": true' in plan_text(Library().ask.on("toy").compile("ants").plan)
