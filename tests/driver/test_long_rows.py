"""Rows that are much longer than the engine's context: they fail alone, and nobody pays for their length."""

from collections.abc import Callable
from typing import Any

import pytest

import lmc
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.engines import adopt_engine
from lmc.frontend.program.function import JittedFunction
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import ContextLengthError
from lmc.ir.tokens.tokenizer import Tokenizer

CONTEXT = 512
LONG = "some words of it, " * 60_000
SEEN: list[int] = []


class SmallEngine(ToyEngine):
    """A toy with a pool of which batches are laid out."""

    def __init__(self) -> None:
        super().__init__(context_length=CONTEXT)
        self._info = EngineInfo("small", CONTEXT, kv_tokens=4096)


@lmc.tool
def note(size: int) -> int:
    SEEN.append(size)
    return size


@lmc.jit
def grade(s: lmc.State, essay: str) -> str:
    s += lmc.user(f"Essay: {essay}")
    s.gen("a", max_tokens=4)
    s += lmc.user("Why?")
    return s.gen("b", max_tokens=4)


@lmc.jit
def choose(s: lmc.State, essay: str) -> str:
    note(len(essay))
    s += lmc.user(f"Essay: {essay}")
    return s.select("a", ["yes", "no"])


@lmc.jit
def skips(s: lmc.State, essay: str) -> str:
    if len(essay) > 1000:
        return "long"
    s += lmc.user(essay)
    return s.gen("a", max_tokens=4)


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of all texts that were encoded."""
    lengths: list[int] = []
    encode: Callable[[Any, str], Any] = Tokenizer._encoding

    def counting(self: Tokenizer, text: str) -> Any:
        lengths.append(len(text))
        return encode(self, text)

    monkeypatch.setattr(Tokenizer, "_encoding", counting)
    return lengths


def runner(function: JittedFunction) -> Runner:
    return Runner(function, Options(adopt_engine(SmallEngine())))


@pytest.mark.parametrize("function", [grade, choose])
@pytest.mark.parametrize("place", [0, 2])
def test_a_row_that_exceeds_the_context_fails_alone_and_is_not_encoded(
    function: JittedFunction, place: int, encoded: list[int]
):
    SEEN.clear()
    rows = [{"essay": "one"}, {"essay": "two"}]
    rows.insert(place, {"essay": LONG})
    results = runner(function).batch([((), row) for row in rows])
    error = results.pop(place).error
    assert isinstance(error, ContextLengthError)
    assert error.cause == f"the prompt has more than {CONTEXT} tokens, the model's context"
    assert error.location is not None
    assert error.location.file == __file__
    assert [result.error for result in results] == [None, None]
    assert sum(encoded) < 100 * CONTEXT
    assert len(LONG) > 1_000_000
    if function is choose:
        assert sorted(SEEN) == [3, 3, len(LONG)]


@pytest.mark.parametrize("function", [grade, choose])
def test_an_eager_run_refuses_it_too(function: JittedFunction, encoded: list[int]):
    with pytest.raises(ContextLengthError, match=f"more than {CONTEXT} tokens"):
        runner(function).eager(((), {"essay": LONG}))
    assert sum(encoded) < 20 * CONTEXT


def test_a_long_row_that_no_prompt_takes_does_not_fail():
    results = runner(skips).batch([((), {"essay": essay}) for essay in (LONG, "short")])
    assert [result.error for result in results] == [None, None]
    assert results[0].value == "long"
