"""Fallbacks: the target of their settings is asked where the first one fails; its costs, limits and cancellation."""

import asyncio
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lmc.cli.app import main
from lmc.driver.run.result import result_row
from lmc.ir.errors import EngineError, RequestTimeoutError
from lmc.ir.usage import Usage
from lmc.runtime.remote.protocols import openai_responses
from tests.runtime.remote.faults import Fault, FaultProxy, listed
from tests.runtime.remote.hosted_runs import (
    KEY_NAME,
    PROGRAM,
    answer,
    broken_off,
    discussion,
    hosted,
    kept_ids,
    target,
)
from tests.runtime.remote.providers.replies import Asked, Reply, hashed
from tests.runtime.remote.simulator import Simulator

SECOND_KEY = "LMC_TEST_SECOND_KEY"
KEY_OF_SECOND = "sk-second-0123456789"
CASES = [("chat", "messages"), ("messages", "chat"), ("responses", "chat-reasoning")]
_SPECS = {
    "chat": ("openai", "gpt-4.1", "/v1"),
    "chat-reasoning": ("openai", "gpt-5.6", "/v1"),
    "responses": ("openai", "gpt-5.6", "/v1"),
    "messages": ("anthropic", "claude-haiku-4-5", ""),
}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"question": f"What is {number}?"} for number in range(count)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(SECOND_KEY, KEY_OF_SECOND)


def define(url: str, api: str, **settings: Any) -> None:
    """Define the target ``second`` in the project."""
    kind, model, path = _SPECS[api]
    table = {"kind": kind, "model": model, "base_url": f"{url}{path}", "api_key_env": SECOND_KEY, **settings}
    if api == "responses":
        table["api"] = api
    lines = [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    Path("pyproject.toml").write_text("[tool.lmc.targets.second]\n" + "\n".join(lines) + "\n")


def second_provider(reply: Any = hashed, **settings: Any) -> Simulator:
    return Simulator(reply, keys=[KEY_OF_SECOND], **settings)


@pytest.mark.parametrize(("api", "other"), CASES)
def test_a_fallback_answers_with_its_own_settings_and_both_are_paid_for(
    api: str, other: str, caplog: pytest.LogCaptureFixture
):
    """Half of the questions are refused by the first target, which is paid for."""

    def refuses(asked: Asked) -> Reply | str:
        return Reply(end="refusal") if int(asked.last.strip("What is?")) % 2 else hashed(asked)

    with hosted(), Simulator(refuses) as first, second_provider() as second:
        define(second.url, other)
        found = answer.on(target(first.url, api, fallback="second")).batch(rows(6))
        assert [each.error for each in found] == [None] * 6
        paid = {each.answer.asked.last: each.answer for each in first.arrivals if each.answer}
        then = {each.answer.asked.last: each.answer for each in second.arrivals if each.answer}
        assert len(paid) == 6
        assert set(then) == {f"What is {number}?" for number in (1, 3, 5)}
        assert {each.key for each in second.arrivals} == {KEY_OF_SECOND}
        for row, each in zip(rows(6), found, strict=True):
            answers = [paid[row["question"]], *([then[row["question"]]] if row["question"] in then else [])]
            assert each.value == answers[-1].reply.text
            assert each.usage.calls == len(answers)
            assert each.usage.prompt_tokens == sum(one.prompt_tokens for one in answers)
            assert each.usage.generated_tokens == sum(one.reply.output_tokens for one in answers)
            check_fallback(each, answers[1:], f"{_SPECS[other][0]}:{_SPECS[other][1]}")
        said = [each.getMessage() for each in caplog.records if each.name == "lmc.remote"]
        assert len(said) == 1
        assert said[0].endswith(f"its fallback {_SPECS[other][0]}:{_SPECS[other][1]} answers them")


def check_fallback(found: Any, answers: list[Any], name: str) -> None:
    """Compare the part of the fallback in a result with the answers that it gave."""
    if not answers:
        assert found.fallbacks == {}
        assert "fallbacks" not in result_row(0, found)
        return
    [told] = answers
    assert list(found.fallbacks) == [name]
    part = found.fallbacks[name]
    assert (part.answers, part.usage.calls) == (1, 1)
    assert (part.usage.prompt_tokens, part.usage.generated_tokens) == (told.prompt_tokens, told.reply.output_tokens)
    assert result_row(0, found)["fallbacks"][name]["answers"] == 1


def test_both_attempts_are_paid_for_where_the_fallback_fails_too():
    refused = Reply(end="refusal")
    with hosted(), Simulator(lambda _: refused) as first, second_provider(lambda _: refused) as second:
        define(second.url, "messages")
        [found] = answer.on(target(first.url, "chat", fallback="second")).batch(rows(1))
        assert isinstance(found.error, EngineError)
        assert "claude-haiku-4-5 refuses to answer" in str(found.error)
        paid = [each.answer for each in (*first.arrivals, *second.arrivals) if each.answer]
        assert found.usage.calls == len(paid) == 2
        assert found.usage.prompt_tokens == sum(each.prompt_tokens for each in paid)
        assert found.fallbacks["anthropic:claude-haiku-4-5"].usage.prompt_tokens == paid[1].prompt_tokens
        assert found.fallbacks["anthropic:claude-haiku-4-5"].answers == 0


def test_fallbacks_of_one_model_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch):
    """The second one of the chain is the first one's model at another address: it answers."""
    refused = Reply(end="refusal")
    with hosted(), Simulator(lambda _: refused) as first, second_provider(lambda _: refused) as second:
        with second_provider() as third:
            monkeypatch.setenv(KEY_NAME, KEY_OF_SECOND)
            define(second.url, "chat", fallback="third")
            table = Path("pyproject.toml").read_text()
            last = table.replace(second.url, third.url).replace(".second]", ".third]").replace('fallback = "third"', "")
            Path("pyproject.toml").write_text(table + last)
            first.keys.add(KEY_OF_SECOND)
            [found] = answer.on(target(first.url, "chat", fallback="second")).batch(rows(1))
        assert {name: each.answers for name, each in found.fallbacks.items()} == {
            "openai:gpt-4.1": 0,
            "openai:gpt-4.1 (2)": 1,
        }
        assert found.usage.calls == 3


def test_the_command_counts_the_answers_of_a_fallback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    Path("hosted_program.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(3)))
    with hosted(), Simulator(lambda _: Reply(end="refusal")) as first, second_provider() as second:
        define(second.url, "messages")
        place = target(first.url, "chat", fallback="second")
        settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in place.settings.items())
        with Path("pyproject.toml").open("a") as file:
            file.write(f'[tool.lmc.targets.first]\nkind = "openai"\nmodel = "gpt-4.1"\n{settings}')
        monkeypatch.setattr(
            sys, "argv", ["lmc", "run", "hosted_program.py", "--input", "rows.jsonl", "-o", "o", "--model", "first"]
        )
        with suppress(SystemExit):
            main()
    assert "3 requests answered by the fallback anthropic:claude-haiku-4-5" in capsys.readouterr().err
    assert json.loads(Path("o").read_text().splitlines()[0])["fallbacks"]["anthropic:claude-haiku-4-5"]["answers"] == 1


@pytest.mark.parametrize("fails", ["slowly", "at once"])
def test_the_timeout_of_a_request_bounds_its_fallback_too(fails: str):
    delay = 0.5 if fails == "slowly" else 0.0
    with hosted(), Simulator(lambda _: Reply(end="refusal"), latency=delay) as first:
        with second_provider() as second:
            define(second.url, "messages")
            place = target(first.url, "chat", fallback="second")
            answer.on(place).batch(rows(1))  # compiles it, and loads the SDKs
            second.latency = 20.0
            second.arrivals.clear()
            begun = time.monotonic()
            [found] = answer.on(place, timeout=1.0).batch(rows(1))
            assert 0.9 < time.monotonic() - begun < 1.4
        assert isinstance(found.error, RequestTimeoutError)
        assert len(second.arrivals) == 1
        assert [each.is_whole for each in found.error.attempts] == [True, False]
        assert [each.fallback for each in found.error.attempts] == [None, "anthropic:claude-haiku-4-5"]


def test_a_target_that_can_not_be_reached_costs_nothing():
    with hosted(), second_provider() as second:
        define(second.url, "messages")
        [found] = answer.on(target("http://127.0.0.1:1", "chat", attempts=3, fallback="second")).batch(rows(1))
        assert found.usage.calls == len(second.arrivals) == 1
        [alone] = answer.on(target("http://127.0.0.1:1", "chat", attempts=3)).batch(rows(1))
        assert isinstance(alone.error, EngineError)
        assert (alone.error.usage, alone.error.attempts) == (Usage(), ())


def test_a_stored_answer_is_fetched_where_it_is(tmp_path: Path):
    """The fallback has it: its id means nothing to the target."""
    path = str(tmp_path / "j")
    with hosted(), Simulator(lambda _: Reply(end="refusal")) as first, second_provider() as second:
        with FaultProxy(second.url, listed([Fault.IDLE]), idle=60.0) as proxy:
            define(proxy.url, "responses", store=True)
            program = answer.on(target(first.url, "responses", store=True, fallback="second"))
            broken_off(program, path)
            [name] = kept_ids(path)
            [stored] = second.stored
            assert name == f"{stored}@1"
            found = program.on(journal=path, resume=True).run("What?")
        assert second.fetched == [stored]
        assert first.fetched == []
        assert (len(first.arrivals), len(second.arrivals)) == (1, 1)
        assert found.fallbacks["openai:gpt-5.6"].answers == 1
        replayed = program.on(journal=path, resume=True).run("What?")
        assert (replayed.fallbacks, replayed.usage) == (found.fallbacks, found.usage)


@pytest.mark.parametrize("state", ["in_progress", "unreadable"])
def test_no_fallback_is_paid_for_an_answer_that_is_stored(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = str(tmp_path / "j")
    monkeypatch.setattr(openai_responses, "_LOOK_SECONDS", 0.001)
    with (
        hosted(),
        Simulator() as first,
        second_provider() as second,
        FaultProxy(first.url, listed([Fault.IDLE]), idle=60.0) as proxy,
    ):
        define(second.url, "responses")
        program = answer.on(target(proxy.url, "responses", store=True, attempts=2, fallback="second"))
        broken_off(program, path)
        [name] = kept_ids(path)
        whole = first.stored[name]
        first.stored[name] = {"x": 1} if state == "unreadable" else {**whole, "status": state}
        with pytest.raises(EngineError):
            program.on(journal=path, resume=True).run("What?")
        assert kept_ids(path) == [name]
        first.stored[name] = whole
        assert not program.on(journal=path, resume=True).run("What?").fallbacks
        assert (len(first.arrivals), len(second.arrivals)) == (1, 0)


@pytest.mark.parametrize(("api", "other"), CASES)
def test_limits_of_a_fallback_are_its_own(api: str, other: str):
    minute, limit, count = 1.0, 20, 12
    with (
        hosted(minute=minute),
        Simulator() as first,
        second_provider(requests_per_minute=limit, minute=minute) as second,
    ):
        with second_provider() as free:
            define(free.url, other)
            expected = [
                each.value
                for each in discussion.on(target("http://127.0.0.1:1", api, attempts=1, fallback="second")).batch(
                    rows(count)
                )
            ]
        define(second.url, other, requests_per_minute=limit, concurrency=3)
        with FaultProxy(first.url, lambda _: Fault.SERVER_ERROR) as proxy:
            begun = time.monotonic()
            wanted = target(proxy.url, api, attempts=1, requests_per_minute=1000, fallback="second")
            found = discussion.on(wanted).batch(rows(count))
            assert [each.error for each in found] == [None] * count
            assert [each.value for each in found] == expected
            assert time.monotonic() - begun < 30
        provider = "anthropic" if other == "messages" else "openai"
        assert second.most_requests(provider) <= limit
        assert second.peak <= 3
        assert not [each for each in second.arrivals if each.status == 429]


def test_cancelling_reaches_the_request_of_a_fallback():
    async def cancelled(program: Any, second: Simulator) -> None:
        task = asyncio.create_task(program.arun(question="What?"))
        while not second.arrivals:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with hosted(), Simulator(lambda _: Reply(end="refusal")) as first, second_provider(latency=20.0) as second:
        define(second.url, "messages")
        asyncio.run(cancelled(answer.on(target(first.url, "chat", fallback="second")), second))
        deadline = time.monotonic() + 5
        while second.arrivals[0].ended_at is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert second.arrivals[0].ended_at is not None
        assert not second.arrivals[0].finished


def test_a_stream_of_a_fallback_is_shown():
    with hosted(), Simulator(lambda _: Reply(end="refusal")) as first, second_provider() as second:
        define(second.url, "chat")
        stream = answer.on(target(first.url, "messages", fallback="second")).stream(question="What?")
        shown = "".join(event.text for event in stream)
        assert shown == stream.result.value


def test_a_fallback_answers_where_the_target_asks_to_wait_for_long():
    with hosted(), second_provider() as second, Simulator() as first:
        define(second.url, "messages")
        with FaultProxy(first.url, lambda _: Fault.UNAVAILABLE, retry_after=3600.0) as proxy:
            found = answer.on(target(proxy.url, "chat", fallback="second"), timeout=30.0).batch(rows(3))
        assert [each.error for each in found] == [None] * 3
        assert len(second.arrivals) == 3


@pytest.mark.parametrize("quota", [None, 0])
def test_a_fallback_that_can_not_be_made_is_named_in_each_error(quota: int | None, monkeypatch: pytest.MonkeyPatch):
    """Its key is not set: users see that beside the error of the target."""
    monkeypatch.delenv(SECOND_KEY)
    with hosted(), second_provider() as second, Simulator(quota=quota) as first:
        define(second.url, "messages")
        with FaultProxy(first.url, lambda _: None if quota == 0 else Fault.SERVER_ERROR) as proxy:
            found = answer.on(target(proxy.url, "chat", fallback="second", attempts=1)).batch(rows(4))
        for each in found:
            assert str(each.error).count("its fallback anthropic:claude-haiku-4-5 can't be asked") == 1
            assert f"needs a key, and {SECOND_KEY} is not set" in str(each.error)
        assert not second.arrivals
