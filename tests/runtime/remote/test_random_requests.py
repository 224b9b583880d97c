"""Random requests under narrow limits, with timeouts, fallbacks and cancellations: the report of each of them."""

import os
import random
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from lmc.driver.targets.hosted import hosted_target
from lmc.ir.engine.protocol import Handle, Request, SamplingParams
from lmc.ir.engine.target import Target
from lmc.ir.errors import LmcError, RequestCancelledError, RequestTimeoutError
from lmc.ir.tokens.messages import message_tokenizer
from lmc.ir.usage import Attempt
from lmc.runtime.remote.engine import RemoteEngine
from tests.runtime.remote.hosted_runs import KEY_NAME, hosted
from tests.runtime.remote.providers.replies import Asked, Reply, hashed
from tests.runtime.remote.simulator import Simulator

FULL = os.environ.get("LMC_TEST_FULL") == "1"
SPECS = [("openai:gpt-4.1", "/v1"), ("anthropic:claude-haiku-4-5", ""), ("openai:gpt-5.6", "/v1")]
TIMEOUT = 1.5
"""Seconds of requests that have a timeout; an answer takes a part of them, or more."""
FAST, SLOW = 0.06, 60.0


@dataclass
class Planned:
    """A request, and what happens to it at each target of the chain: it is refused, slow, or answered."""

    name: str
    ends: tuple[str, ...]
    timeout: float | None
    cancelled_after: float | None


@dataclass
class Chain:
    """An engine with its fallbacks, and the simulator of each."""

    engine: RemoteEngine
    simulators: list[Simulator]

    def arrived(self, name: str) -> list[int]:
        """Return how often a request arrived at each target."""
        return [sum(name in str(each.body) for each in simulator.arrivals) for simulator in self.simulators]


def place(number: int, url: str, concurrency: int) -> Target:
    spec, path = SPECS[number]
    settings = {"base_url": url + path, "api_key_env": KEY_NAME, "attempts": 1, "concurrency": concurrency}
    return hosted_target(spec, settings)


@contextmanager
def chain(requests: list[Planned], length: int, concurrency: int) -> Generator[Chain]:
    """Start simulators for the targets, which answer as planned."""
    planned = {each.name: each for each in requests}

    def end(number: int, asked: Asked) -> str:
        return planned[asked.last].ends[number]

    with ExitStack() as stack:
        stack.enter_context(hosted())
        simulators: list[Simulator] = []
        for number in range(length):

            def reply(asked: Asked, number: int = number) -> Reply | str:
                return Reply(end="refusal") if end(number, asked) == "refused" else hashed(asked)

            def latency(asked: Asked, number: int = number) -> float:
                return SLOW if end(number, asked) == "slow" else FAST

            simulators.append(stack.enter_context(Simulator(reply, latency=latency)))

        def made(number: int) -> RemoteEngine:
            following = None if number + 1 == length else lambda: made(number + 1)
            target = place(number, simulators[number].url, concurrency)
            return RemoteEngine(target, message_tokenizer(), following, fallback_name=str(number + 1), place=number)

        engine = made(0)
        stack.callback(engine.close)
        yield Chain(engine, simulators)


def drawn_requests(rng: random.Random, length: int) -> list[Planned]:
    found: list[Planned] = []
    for number in range(rng.randint(4, 14)):
        *refused, last = rng.choices(["answered", "refused", "slow"], weights=[3, 4, 1], k=length)
        timeout = rng.choice([None, TIMEOUT])
        ends = tuple("refused" if each == "slow" and timeout is None else each for each in (*refused, last))
        after = rng.uniform(0.0, 0.4) if rng.random() < 0.4 else None
        found.append(Planned(f"Question {number:03}", ends, timeout, after))
    return found


def submitted(engine: RemoteEngine, request: Planned) -> Handle[Any]:
    prompt = (256, *f"user\n{request.name}".encode(), 257, 256, *b"assistant\n")
    handle = engine.submit(Request(prompt, SamplingParams(max_tokens=20), op_id="a", timeout=request.timeout))
    if request.cancelled_after is not None:
        timer = threading.Timer(request.cancelled_after, handle.cancel)
        timer.daemon = True
        timer.start()
    return handle


def ended(handle: Handle[Any]) -> Any:
    error = handle.future.exception(60.0)
    return handle.future.result() if error is None else error


@pytest.mark.parametrize("seed", range(60 if FULL else 8))
def test_each_request_reports_its_attempts_and_has_its_time(seed: int):
    """Waiting for a place takes none of its time, and no attempt is missing, however it ends."""
    rng = random.Random(seed)
    length = rng.randint(1, 3)
    requests = drawn_requests(rng, length)
    with chain(requests, length, rng.randint(1, 3)) as found:
        handles = [submitted(found.engine, each) for each in requests]
        ends = [ended(handle) for handle in handles]
        for request, result in zip(requests, ends, strict=True):
            check(request, result, found.arrived(request.name))


def check(request: Planned, result: Any, arrived: list[int]) -> None:
    if isinstance(result, LmcError):
        assert result.usage is not None, "its cost is known"
    attempts: tuple[Attempt, ...] = result.attempts
    told = Counter(int(each.fallback or 0) for each in attempts)
    for number, count in enumerate(arrived):
        assert count <= told[number] <= 1, (request, result, arrived, attempts)
    if isinstance(result, RequestCancelledError):
        assert request.cancelled_after is not None
        return
    expected = next((end for end in request.ends if end != "refused"), "refused")
    if expected == "slow":
        assert isinstance(result, RequestTimeoutError), (request, result)
    elif expected == "answered":
        assert not isinstance(result, Exception), (request, result)
    reached = request.ends.index(expected) + 1 if expected != "refused" else len(request.ends)
    assert arrived == [1] * reached + [0] * (len(arrived) - reached)
