"""Fallbacks: the target of their settings is asked where the first one fails; its costs, limits and cancellation."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from lmc.ir.errors import EngineError
from tests.runtime.remote.faults import Fault, FaultProxy
from tests.runtime.remote.hosted_runs import answer, discussion, hosted, target
from tests.runtime.remote.providers.replies import Asked, Reply, hashed
from tests.runtime.remote.simulator import Simulator

SECOND_KEY = "LMC_TEST_SECOND_KEY"
KEY_OF_SECOND = "sk-second-0123456789"
CASES = [("chat", "messages"), ("messages", "chat"), ("responses", "chat-reasoning")]
_SPECS = {
    "chat": ("openai", "gpt-4.1", "/v1"),
    "chat-reasoning": ("openai", "gpt-5.6", "/v1"),
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
    lines = [f"{name} = {value!r}".replace("'", '"') for name, value in table.items()]
    Path("pyproject.toml").write_text("[tool.lmc.targets.second]\n" + "\n".join(lines) + "\n")


def second_provider(reply: Any = hashed, **settings: Any) -> Simulator:
    return Simulator(reply, keys=[KEY_OF_SECOND], **settings)


@pytest.mark.parametrize(("api", "other"), CASES)
def test_a_fallback_answers_with_its_own_settings_and_both_are_paid_for(api: str, other: str):
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
