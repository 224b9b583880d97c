"""Each fault as the providers' SDKs see it, in front of the simulator and of ``lmc serve``."""

import json
import time
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from tests.runtime.remote.clients import anthropic_sdk, openai_sdk
from tests.runtime.remote.faults import (
    HARMLESS,
    ONLY_STREAMS,
    OTHER_MODEL,
    WITHOUT_SERVER,
    Fault,
    FaultProxy,
    Sent,
    listed,
    seeded,
)
from tests.runtime.remote.simulator import KEY, Simulator
from tests.runtime.server.servers import served

APIS = ("chat", "responses", "messages")
TIMEOUT = 0.3


def ask(proxy: FaultProxy, api: str, stream: bool, said: str = "Hi", timeout: float = 5.0) -> Any:
    """Return the answer, or the list of the events."""
    if api == "messages":
        claude = anthropic_sdk().copy(base_url=proxy.url, api_key=KEY, timeout=timeout)
        found: Any = claude.messages.create(
            model="claude-haiku-4-5", max_tokens=50, messages=[{"role": "user", "content": said}], stream=stream
        )
    else:
        client = openai_sdk().copy(base_url=f"{proxy.url}/v1", api_key=KEY, timeout=timeout)
        if api == "chat":
            found = client.chat.completions.create(
                model="gpt-4.1", messages=[{"role": "user", "content": said}], stream=stream
            )
        else:
            found = client.responses.create(model="gpt-5.6", input=said, stream=stream)
    if not stream:
        return found
    with found:
        return list(found)


def is_whole(api: str, events: list[Any]) -> bool:
    """Return True if a stream ended as the API ends it."""
    last = events[-1]
    if api == "chat":
        return bool(last.choices) and last.choices[0].finish_reason == "stop"
    return last.type == ("message_stop" if api == "messages" else "response.completed")


UNREADABLE = (
    openai.APIConnectionError,
    anthropic.APIConnectionError,
    httpx2.HTTPError,
    json.JSONDecodeError,
    openai.APIResponseValidationError,
)
TIMED_OUT = (openai.APITimeoutError, anthropic.APITimeoutError, httpx2.TimeoutException)
OVERLOADED = (openai.InternalServerError, anthropic.OverloadedError)
ERRORS: dict[Fault, tuple[type[BaseException], ...]] = {
    Fault.RATE_LIMIT: (openai.RateLimitError, anthropic.RateLimitError),
    Fault.RATE_LIMIT_WITH_DELAY: (openai.RateLimitError, anthropic.RateLimitError),
    Fault.SERVER_ERROR: (openai.InternalServerError, anthropic.InternalServerError),
    Fault.OVERLOADED: OVERLOADED,
    Fault.UNAVAILABLE: (openai.InternalServerError, anthropic.APIStatusError),
    Fault.REFUSED_CONNECTION: UNREADABLE,
    Fault.RESET_BEFORE_ANSWER: UNREADABLE,
    Fault.RESET_WITHIN_ANSWER: UNREADABLE,
    Fault.CUT: UNREADABLE,
    Fault.SLOW_FIRST_TOKEN: TIMED_OUT,
    Fault.IDLE: TIMED_OUT,
    Fault.MALFORMED_JSON: UNREADABLE,
}
"""Faults that the SDKs notice. Of the others a caller has to take care."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("fault", Fault)
def test_a_fault_happens_once_and_the_next_request_is_answered(fault: Fault, api: str, stream: bool):
    if fault in ONLY_STREAMS and not stream:
        return
    with Simulator() as simulator, FaultProxy(simulator.url, listed([fault]), slow=2, idle=2, large=3000) as proxy:
        timeout = TIMEOUT if fault in (Fault.SLOW_FIRST_TOKEN, Fault.IDLE) else 5.0
        if fault in ERRORS:
            with pytest.raises(ERRORS[fault]):
                ask(proxy, api, stream, timeout=timeout)
        else:
            check(fault, api, stream, ask(proxy, api, stream))
        assert proxy.counts() == {fault: 1}
        if fault is Fault.RESET_AFTER_ANSWER:
            time.sleep(0.1)
        found = ask(proxy, api, stream)
        assert not stream or is_whole(api, found)
        assert proxy.counts() == {fault: 1}
        assert len(simulator.arrivals) == (1 if fault in WITHOUT_SERVER else 2)
        assert proxy.injected[0].sent.path == simulator.arrivals[-1].path


def check(fault: Fault, api: str, stream: bool, found: Any) -> None:
    """Check an answer with a fault that the SDK does not notice."""
    if fault in HARMLESS or fault is Fault.TOO_LARGE:
        assert not stream or is_whole(api, found)
    elif fault is Fault.WRONG_MODEL:
        if stream:
            found = found[0] if api == "chat" else getattr(found[0], "message" if api == "messages" else "response")
        assert found.model == OTHER_MODEL
    elif fault is Fault.CUT_CLEANLY:
        assert not is_whole(api, found)
    else:
        assert fault is Fault.MALFORMED_EVENT
        assert any(getattr(each, "choices", 7) == 7 for each in (found if stream else [found])) or not stream


def test_retry_after_is_in_the_headers():
    plan = listed([Fault.RATE_LIMIT_WITH_DELAY, Fault.RATE_LIMIT])
    with Simulator() as simulator, FaultProxy(simulator.url, plan, retry_after=3) as proxy:
        found: list[str | None] = []
        for _ in range(2):
            with pytest.raises(openai.RateLimitError) as caught:
                ask(proxy, "chat", False)
            found.append(caught.value.response.headers.get("retry-after"))
        assert found == ["3", None]


def test_large_answers_are_large():
    with Simulator() as simulator, FaultProxy(simulator.url, lambda _: Fault.TOO_LARGE, large=100_000) as proxy:
        for stream in (False, True):
            body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
            headers = {"authorization": f"Bearer {KEY}"}
            found = httpx2.post(f"{proxy.url}/v1/chat/completions", json=body, headers=headers)
            assert len(found.content) > 100_000


def test_errors_of_the_server_pass():
    with Simulator() as simulator, FaultProxy(simulator.url, lambda _: Fault.WRONG_MODEL) as proxy:
        client = openai_sdk().copy(base_url=f"{proxy.url}/v1", api_key="wrong")
        with pytest.raises(openai.AuthenticationError):
            client.responses.create(model="gpt-5.6", input="Hi")
        with pytest.raises(openai.AuthenticationError):
            client.models.list()
        assert proxy.injected == []


def seen(plan: Callable[[Sent], Fault | None], order: list[int]) -> dict[int, list[Fault | None]]:
    """Return the faults of three attempts of each request, in an order of requests."""
    found: dict[int, list[Fault | None]] = {number: [] for number in order}
    for attempt in range(4):
        for number in order:
            found[number].append(plan(Sent(0, "/v1/x", f"digest {number}", attempt, number % 2 == 0)))
    return found


def test_a_seeded_plan_is_the_same_in_any_order():
    plan = seeded(7, 0.6)
    first, again = seen(plan, list(range(300))), seen(plan, list(reversed(range(300))))
    assert first == again
    assert first != seen(seeded(8, 0.6), list(range(300)))
    faults = [fault for each in first.values() for fault in each]
    assert set(Fault) <= set(faults)
    assert 0.35 < sum(fault is not None for fault in faults) / len(faults) < 0.55  # no fourth attempt is broken
    assert all(each[3] is None for each in first.values())
    assert not any(first[number].count(Fault.CUT_CLEANLY) for number in range(1, 300, 2))


def test_faults_in_front_of_lmc_serve():
    """The toy engine behind the proxy: whole, as a stream, and with faults between."""
    faults = [None, Fault.CUT, None, Fault.MALFORMED_JSON, Fault.OVERLOADED, None]
    with served("--model", "toy") as server, FaultProxy(server.url, listed(faults)) as proxy:
        client = openai_sdk().copy(base_url=f"{proxy.url}/v1", api_key="none")
        texts: list[str | None] = []
        for number in range(len(faults)):
            try:
                with client.completions.create(model=server.model, prompt="Hi", temperature=0, stream=True) as stream:
                    texts.append("".join(each.choices[0].text for each in stream))
            except (openai.APIError, httpx2.HTTPError, json.JSONDecodeError):
                texts.append(None)
            assert len(proxy.sent) == number + 1
        assert texts[0]
        assert texts == [texts[0], None, texts[0], None, None, texts[0]]
        assert list(proxy.counts().elements()) == [Fault.CUT, Fault.MALFORMED_JSON, Fault.OVERLOADED]


def test_a_slow_answer_comes():
    plan = listed([Fault.SLOW_FIRST_TOKEN])
    with Simulator() as simulator, FaultProxy(simulator.url, plan, slow=0.2) as proxy:
        started = time.monotonic()
        assert is_whole("chat", ask(proxy, "chat", True))
        assert time.monotonic() - started >= 0.2
