"""Batches on hosted models with faults on the way: no row is lost or doubled, and limits hold."""

import math
import os
from collections import Counter
from typing import Any

import pytest

from tests.runtime.remote.faults import HARMLESS, WITHOUT_SERVER, Fault, FaultProxy, seeded
from tests.runtime.remote.hosted_runs import REQUESTS, answer, discussion, hosted, target
from tests.runtime.remote.providers.limits import most_in_any
from tests.runtime.remote.simulator import Simulator

FULL = os.environ.get("LMC_TEST_FULL") == "1"
FAULTS = 1000 if FULL else 100
"""Of all cases together."""
RATE = 0.5
SECONDS = 2.0
"""Of timeouts: more than a request takes on a busy machine."""
RETRIED = [fault for fault in Fault if fault is not Fault.TOO_LARGE]
CASES = [("chat", False), ("chat", True), ("responses", True), ("messages", False), ("messages", True)]


def rows(count: int) -> list[dict[str, Any]]:
    return [{"question": f"What is {number}?"} for number in range(count)]


@pytest.mark.parametrize(("api", "stream"), CASES)
def test_faults_cost_attempts_and_nothing_else(api: str, stream: bool):
    faults = FAULTS // len(CASES)
    count = math.ceil(1.5 * faults / REQUESTS)  # a request meets 0.875 of them in the mean
    timeouts = {"first_token_timeout": SECONDS, "idle_timeout": SECONDS} if stream else {"timeout": SECONDS}
    with hosted(), Simulator() as simulator:
        expected = [each.value for each in discussion.on(target(simulator.url, api)).batch(rows(count))]
        assert len({tuple(each) for each in expected}) == count
        simulator.arrivals.clear()
        plan = seeded(11, RATE, RETRIED)
        with FaultProxy(simulator.url, plan, slow=4 * SECONDS, idle=4 * SECONDS) as proxy:
            found = discussion.on(target(proxy.url, api, **timeouts)).batch(rows(count))
            assert [each.error for each in found] == [None] * count
            assert [each.value for each in found] == expected
            assert len(proxy.injected) >= faults
            # Each request arrived once, and again for each fault that it met.
            sent = Counter(each.digest for each in proxy.sent)
            met = Counter(each.sent.digest for each in proxy.injected)
            whole = Counter(each.sent.digest for each in proxy.injected if each.fault in HARMLESS)
            assert all(1 + met[each] - whole[each] <= sent[each] <= 1 + met[each] for each in sent)
            assert len(sent) == REQUESTS * count
            assert len(simulator.arrivals) == len(proxy.sent) - sum(
                each.fault in WITHOUT_SERVER for each in proxy.injected
            )


@pytest.mark.parametrize("api", ["chat", "messages"])
@pytest.mark.parametrize("concurrency", [4, 64])
def test_limits_hold_in_any_window(api: str, concurrency: int):
    minute, limit = 1.0, 30
    count = 300 if FULL else 75
    with hosted(minute=minute), Simulator(requests_per_minute=limit, minute=minute, latency=0.05) as simulator:
        plan = seeded(5, 0.2, [Fault.RATE_LIMIT, Fault.OVERLOADED, Fault.CUT, Fault.REFUSED_CONNECTION])
        with FaultProxy(simulator.url, plan) as proxy:
            settings = {"requests_per_minute": limit, "concurrency": concurrency}
            found = answer.on(target(proxy.url, api, **settings)).batch(rows(count))
            assert [each.error for each in found] == [None] * count
            assert most_in_any(minute, ((each.at, 1) for each in proxy.sent)) <= limit
        assert not [each for each in simulator.arrivals if each.status == 429]


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_limits_of_tokens_hold_in_any_window(api: str):
    minute, limit = 1.0, 3000
    count = 200 if FULL else 60
    with hosted(minute=minute), Simulator(tokens_per_minute=limit, minute=minute, latency=0.05) as simulator:
        found = answer.on(target(simulator.url, api, tokens_per_minute=limit)).batch(rows(count))
        assert [each.error for each in found] == [None] * count
        provider = "anthropic" if api == "messages" else "openai"
        assert simulator.most_tokens(provider) <= limit
        assert not [each for each in simulator.arrivals if each.status == 429]
