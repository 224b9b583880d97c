"""Journals of runs that a program starts by itself, and idempotency keys of tools."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import lmc
from lmc.driver.commands import journal as journals
from lmc.ir.engine.protocol import Engine, OnDelta, Request
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, InputError, JournalError, UnknownOutcomeError
from lmc.runtime.journal import journal as in_use

ROWS: list[Mapping[str, Any]] = [{"topic": f"topic {number}"} for number in range(6)]
SAVED: list[str] = []
KEYS: list[str] = []


@lmc.tool(effect="writes")
def save(text: str) -> int:
    SAVED.append(text)
    return len(text)


@lmc.tool(effect="writes")
async def send(text: str) -> int:
    SAVED.append(text)
    await asyncio.sleep(0)
    return len(text)


@lmc.tool(effect="writes", key=True)
def pay(text: str, *, key: str = "") -> str:
    KEYS.append(key)
    return text


@lmc.tool(effect="writes", key=True)
async def pay_later(text: str, key: str = "") -> str:
    KEYS.append(key)
    return text


@lmc.jit(target="toy")
def talk(s: lmc.State, topic: str) -> str:
    s += topic
    s.gen("a", max_tokens=4)
    s += f"{save(topic)}{send(topic)}"
    drawn = s.gen("b", n=2, max_tokens=4, temperature=1.0)
    return s.select("c", ["yes", "no"]) + "".join(drawn)


@lmc.jit(target="toy")
def breaks(s: lmc.State, topic: str) -> str:
    s += topic
    s.gen("a", max_tokens=4)
    eval("0")
    s += f"{save(topic)}{send(topic)}"
    return s.gen("b", max_tokens=4)


@lmc.jit(target="toy")
def retries(s: lmc.State, topic: str) -> str:
    s += topic
    eval("0")
    for _ in range(3):
        try:
            save(topic)
            return s.gen("b", max_tokens=4)
        except Exception:
            s += "again"
    return "gave up"


@lmc.jit(target="toy")
def pays(s: lmc.State, topic: str) -> str:
    s += topic + pay(topic) + pay_later(topic)
    for _ in range(2):
        s += pay(topic)
    return s.gen("a", max_tokens=4)


@pytest.fixture(autouse=True)
def path(tmp_path: Path) -> str:
    SAVED.clear()
    KEYS.clear()
    return str(tmp_path / "j")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    sent: list[str] = []

    def counted(name: str) -> None:
        real: Callable[..., Any] = getattr(ToyEngine, name)

        def call(engine: Engine, request: Any, *more: Any) -> Any:
            sent.append(f"{request.instance} {request.op_id}")
            return real(engine, request, *more)

        monkeypatch.setattr(ToyEngine, name, call)

    counted("submit")
    counted("score")
    return sent


def described(results: list[lmc.Result[Any]]) -> list[Any]:
    return [(result.value, result.text, dict(result.variables), result.usage) for result in results]


def test_a_batch_is_recorded_and_answered(path: str, sent: list[str]):
    plain, count = described(talk.batch(ROWS)), len(sent)
    assert described(talk.on(journal=path).batch(ROWS)) == plain
    assert len(sent) == 2 * count
    assert described(talk.on(journal=path, resume=True).batch(ROWS)) == plain
    assert (len(sent), len(SAVED)) == (2 * count, 24)
    found = journals.summary(path)
    assert (found.state, found.rows, found.requests.finished) == ("finished", 6, count)
    assert found.usage.generated_tokens == sum(result[3].generated_tokens for result in plain)


def test_rows_of_a_generator_are_recorded_too(path: str, sent: list[str]):
    def rows() -> Iterator[Mapping[str, Any]]:
        yield from ROWS

    first = described(talk.on(journal=path).batch(rows()))
    count = len(sent)
    assert described(talk.on(journal=Path(path), resume=True).batch(rows())) == first
    assert len(sent) == count
    assert journals.summary(path).rows == 6


@pytest.mark.parametrize("program", [talk, breaks])
def test_every_way_to_run_is_answered(program: lmc.Program[..., str], path: str, sent: list[str]):
    topic = "a topic"
    plain = program.on(journal=path).run(topic)
    count, saved = len(sent), len(SAVED)
    again = program.on(journal=path, resume=True)
    with again.stream(topic) as events:
        texts = [event.text for event in events]
    results = [again.run(topic), events.result, asyncio.run(again.arun(topic)), asyncio.run(_streamed(again, topic))]
    assert described(results) == described([plain] * len(results))
    assert any(texts)
    assert (len(sent), len(SAVED)) == (count, saved)


async def _streamed(program: lmc.Program[..., str], topic: str) -> lmc.Result[str]:
    stream = program.astream(topic)
    async for _ in stream:
        pass
    return stream.result


def test_an_eager_run_is_recorded_and_answered(path: str, sent: list[str]):
    first = talk.on(journal=path).eager("a topic")
    count = len(sent)
    again = talk.on(journal=path, resume=True).eager("a topic")
    assert described([again]) == described([first])
    assert (len(sent), len(SAVED)) == (count, 2)


def test_what_a_run_left_is_a_warning_and_is_sent_again(
    path: str, sent: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    with monkeypatch.context() as patch:
        _break_off(patch, after=9)
        with pytest.raises(JournalError, match="can't be written any further"):
            breaks.on(journal=path).batch(ROWS)
    open_requests = journals.summary(path).in_flight
    with pytest.raises(InputError, match="not finished"):
        breaks.on(journal=path).batch(ROWS)
    count = len(sent)
    with caplog.at_level(logging.WARNING, "lmc.journal"):
        results = breaks.on(journal=path, resume=True).batch(ROWS)
    assert all(result.error is None or isinstance(result.error, UnknownOutcomeError) for result in results)
    assert bool(open_requests) == ("in flight" in caplog.text)
    assert len(sent) > count


def test_a_program_cannot_catch_that_its_row_is_stopped(path: str, monkeypatch: pytest.MonkeyPatch):
    """``except Exception`` in a loop of retries must not go on without the tool."""
    with monkeypatch.context() as patch:
        _break_off(patch, after=3)
        with pytest.raises(JournalError):
            retries.on(journal=path).run("a topic")
    with pytest.raises(UnknownOutcomeError, match=r"the tool save \(row 0, line .*test_journals\.py:\d+\) writes"):
        retries.on(journal=path, resume=True).run("a topic")
    assert journals.summary(path).state == "running"


def test_failed_requests_are_asked_again(path: str, sent: list[str], monkeypatch: pytest.MonkeyPatch):
    real = ToyEngine.submit

    def failing(engine: ToyEngine, request: Request, on_delta: OnDelta | None = None) -> Any:
        if request.instance == 3:
            raise EngineError("overloaded", remedy="wait")
        return real(engine, request, on_delta)

    with monkeypatch.context() as patch:
        patch.setattr(ToyEngine, "submit", failing)
        results = talk.on(journal=path).batch(ROWS)
    assert [type(result.error) for result in results if result.error] == [EngineError]
    assert journals.summary(path).failed_rows == 1
    count = len(sent)
    results = talk.on(journal=path, resume=True).batch(ROWS)
    assert all(result.error is None for result in results)
    assert {line.split()[0] for line in sent[count:]} == {"3"}
    assert described(results) == described(talk.batch(ROWS))


def test_another_program_or_row_is_not_answered(path: str):
    talk.on(journal=path).batch(ROWS)
    with pytest.raises(InputError, match="can't be resumed: the program is 'breaks'"):
        breaks.on(journal=path, resume=True).batch(ROWS)
    with pytest.raises(InputError, match="can't be resumed: the input rows"):
        talk.on(journal=path, resume=True).batch(ROWS[:2])
    with pytest.raises(InputError, match="can't be resumed: level is O0, and was O2"):
        talk.on(journal=path, resume=True, level="O0").batch(ROWS)
    with pytest.raises(InputError, match="there is no journal"):
        talk.on(resume=True).batch(ROWS)
    with pytest.raises(InputError, match="journal is 3"):
        talk.on(journal=3)  # type: ignore[arg-type]


def test_keys_of_calls_differ_and_stay_the_same_when_the_row_runs_again(path: str):
    pays.on(journal=path).batch(ROWS[:2])
    first = sorted(KEYS)
    assert len(set(first)) == len(first) == 8
    pays.on(journal=path, resume=True).batch(ROWS[:2])
    assert sorted(KEYS) == first, "all were answered"
    for run in (lambda: pays.run("t"), lambda: pays.eager("t"), lambda: pays.run("t")):
        KEYS.clear()
        run()
        assert len(set(KEYS)) == 4
        assert not set(KEYS) & set(first)


def test_a_key_needs_a_parameter_and_a_tool_that_writes():
    with pytest.raises(lmc.CaptureError, match="key=True and no parameter"):

        @lmc.tool(effect="writes", key=True)
        def save(text: str) -> int:
            return len(text)

    with pytest.raises(lmc.CaptureError, match="key is True"):

        @lmc.tool(effect="reads", key=True)
        def look(text: str, key: str) -> int:
            return len(text)

    assert pay.function("a", key="own") == "a"
    assert pay("a", key="own") == "a"
    assert KEYS == ["own", "own"]


def _break_off(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let journals fail after so many steps, each of them committed."""
    left = [after]
    commit = in_use.RunJournal._commit

    def limited(journal: Any, steps: list[Any]) -> None:
        for step in steps:
            left[0] -= 1
            if left[0] < 0 and journal._error is None:
                journal._error = JournalError("the journal can't be written any further", remedy="resume")
            commit(journal, [step])

    monkeypatch.setattr(in_use.RunJournal, "_commit", limited)
