import asyncio
from typing import Any

import pytest

from lmc.frontend.tools.tools import Tool, tool
from lmc.ir.core import Effect
from lmc.ir.errors import CaptureError, InputError
from lmc.ir.types import ANY, TEXT


@tool(effect="reads")
def word_count(text: str) -> int:
    """Words."""
    return len(text.split())


def test_a_tool_is_the_function_outside_of_programs():
    assert word_count("a b") == 2
    assert (word_count.__name__, word_count.__doc__, word_count.effect) == ("word_count", "Words.", Effect.READS)
    assert repr(word_count) == "<lmc tool word_count (reads)>"


def test_the_undeclared_effect_is_writes():
    @tool
    def act():
        return None

    assert isinstance(act, Tool)
    assert act.effect is Effect.WRITES
    assert act.result_type == ANY


def test_unknown_effects_are_refused():
    with pytest.raises(CaptureError, match="unknown effect 'read'") as caught:
        tool(effect="read")
    assert "pure, reads or writes" in str(caught.value).replace('"', "")
    assert caught.value.location is not None


def test_an_async_tool_is_awaited_outside_of_programs():
    @tool(effect="pure")
    async def later(text: str) -> str:
        return text + "!"

    assert later.is_async
    assert later.result_type == TEXT
    assert asyncio.run(later("a")) == "a!"  # type: ignore[arg-type]  in a program it is a text


def test_only_tools_that_change_nothing_may_be_called_early():
    @tool(effect="reads", early=True)
    def look(text: str) -> str:
        return text

    assert look.early
    assert not word_count.early
    with pytest.raises(CaptureError, match="early is True, but a tool that writes is never called for a way") as caught:
        tool(early=True)
    assert 'effect="reads"' in str(caught.value)
    assert caught.value.location is not None
    with pytest.raises(CaptureError, match="early is 1") as caught:
        tool(effect="pure", early=1)  # type: ignore[arg-type]  what a user may write
    assert "True or False" in str(caught.value)


def test_async_generators_are_refused():
    async def several():
        yield 1

    with pytest.raises(CaptureError, match="the tool 'several' is an async generator") as caught:
        tool(several)
    assert "return a list" in str(caught.value)
    assert caught.value.location is not None


def test_a_coroutine_that_nothing_awaits_is_refused():
    async def later():
        return 1

    @tool(effect="pure")
    def now() -> Any:
        return later()

    with pytest.raises(InputError, match="the tool 'now' gave a coroutine") as caught:
        now()
    assert "async def" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "cause", "remedy"),
    [
        ({"retries": -1}, "retries is -1", "between 0 and 1000"),
        ({"retries": True}, "retries is True", "whole number"),
        ({"timeout": 0}, "timeout is 0", "greater than 0"),
        ({"timeout": float("inf")}, "timeout is inf", "or None"),
        ({"timeout": "1"}, "timeout is '1'", "number of seconds"),
        ({"retries": 1, "retry_on": "OSError"}, "retry_on is 'OSError'", "an exception class"),
        ({"retries": 1, "retry_on": ()}, "retry_on is ()", "a tuple of them"),
        ({"retries": 1, "retry_on": KeyboardInterrupt}, "retry_on is <class 'KeyboardInterrupt'>", "exception class"),
        ({"retry_on": OSError, "effect": "reads"}, "but retries is 0", "give retries"),
        ({"retries": 2}, "a tool that writes is called again only after errors that are named", "retry_on=(Conn"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_their_line(options: dict[str, Any], cause: str, remedy: str):
    with pytest.raises(CaptureError) as caught:
        tool(**options)
    assert cause in caught.value.cause
    assert remedy in (caught.value.remedy or "")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("value", "annotation"),
    [(1, str), (True, int), ("x", int), (1, bool), ([1], list[str]), ((), list[str]), (0, None)],
)
def test_a_broken_promise_is_an_input_error(value, annotation):
    def give():
        return value

    give.__annotations__["return"] = annotation
    with pytest.raises(InputError, match="the tool 'give' is annotated to give") as caught:
        tool(give)()
    assert "return annotation" in str(caught.value)
    assert caught.value.location is not None


def test_annotations_that_name_nothing_promise_nothing():
    def give() -> "Missing":  # type: ignore[name-defined]  # noqa: F821
        return 1

    assert tool(give).result_type == ANY
    assert tool(give)() == 1
