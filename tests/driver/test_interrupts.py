"""A tool that raises ``KeyboardInterrupt`` ends the run, in every form of running."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import lmc
from lmc.driver.runner import BatchInterruptedError
from lmc.ir.errors import RequestCancelledError

DONE = threading.Event()
LONG = 20.0


@lmc.tool
def quits(word: str) -> str:
    """Ends the run at "stop", once "first" is done."""
    if word == "stop":
        assert DONE.wait(LONG)
        raise KeyboardInterrupt("enough")
    return word


@lmc.tool
async def quits_async(word: str) -> str:
    if word == "stop":
        await asyncio.to_thread(DONE.wait, LONG)
    return quits(word)


@lmc.tool
def waits(word: str) -> str:
    """Takes long for "slow"."""
    if word == "slow":
        threading.Event().wait(2 * LONG)
    return word


@lmc.tool
def is_done(word: str) -> None:
    if word == "first":
        DONE.set()


@lmc.jit(target="toy")
def plain(s: lmc.State, word: str) -> str:
    s += waits(quits(word))
    text = s.gen("a", max_tokens=3)
    is_done(word)
    return text


@lmc.jit(target="toy")
def with_async(s: lmc.State, word: str) -> str:
    s += waits(quits_async(word))
    text = s.gen("a", max_tokens=3)
    is_done(word)
    return text


@lmc.jit(target="toy")
def behind_a_break(s: lmc.State, word: str) -> str:
    s += word
    text = s.gen("a", max_tokens=3)
    eval("0")
    s += waits(quits(word))
    is_done(word)
    return text


programs = pytest.mark.parametrize("program", [plain, with_async, behind_a_break], ids=lambda each: each.name)


@pytest.fixture(autouse=True)
def not_done() -> None:
    DONE.clear()


@programs
@pytest.mark.parametrize("form", ["call", "run", "eager", "arun", "stream"])
def test_one_run_raises_it(program: lmc.Program, form: str):
    DONE.set()
    forms: dict[str, Callable[[], Any]] = {
        "call": lambda: program("stop"),
        "run": lambda: program.run("stop"),
        "eager": lambda: program.eager("stop"),
        "arun": lambda: asyncio.run(program.arun("stop")),
        "stream": lambda: list(program.stream("stop")),
    }
    with pytest.raises(KeyboardInterrupt, match="enough"):
        forms[form]()


@programs
@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_batch_ends_with_what_is_finished(program: lmc.Program, is_lazy: bool):
    words = ["first", "stop", "slow"]
    rows = ({"word": word} for word in words)
    with pytest.raises(BatchInterruptedError, match=r"1 of 3 instances finished") as caught:
        program.batch(rows if is_lazy else list(rows))
    first, *others = caught.value.results
    assert first.error is None
    assert first.value == program("first")
    assert {type(result.error) for result in others} == {RequestCancelledError}


@programs
def test_an_async_batch_ends(program: lmc.Program):
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(program.abatch([{"word": word} for word in ("first", "stop", "slow")]))


def test_a_program_goes_on_after_an_interrupted_run():
    DONE.set()
    with pytest.raises(KeyboardInterrupt):
        plain("stop")
    assert plain("word") == plain("word")
