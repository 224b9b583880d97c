"""What is known of requests that are still to come, and since when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cache import policies
from lmc.cache.expected import ExpectedUses
from lmc.cache.simulation.lookahead import as_they_come
from lmc.cache.simulation.report import CostModel
from lmc.cache.simulation.simulator import Simulation
from lmc.cache.trace import TraceRequest
from tests.cache.simulations import trace_of, traces

COST = CostModel(step=1, row=0, attended=0)


class Told(ExpectedUses):
    """Writes down what is expected; what is withdrawn is taken off."""

    def __init__(self) -> None:
        super().__init__()
        self.now: list[tuple[int, list[int]]] = []

    def expect(self, tokens, rank, extra_key=None, run=None):
        found = super().expect(tokens, rank, extra_key, run)
        self.now.append((rank, found.tokens.tolist()))
        return found

    def withdraw(self, expectation):
        if not expectation.withdrawn:
            self.now.remove((expectation.rank, expectation.tokens.tolist()))
        super().withdraw(expectation)


def watched(requests: list[TraceRequest], monkeypatch: pytest.MonkeyPatch, policy: str, **sizes: int):
    told = Told()
    made = policies.POLICIES[policy]
    monkeypatch.setitem(
        policies.POLICIES, policy, policies.Policy(lambda: policies.NextUse(told), made.order, made.turns)
    )
    kv_tokens, batch = sizes.get("kv_tokens", 100), sizes.get("batch", 1)
    return Simulation(requests, policy=policy, cost=COST, kv_tokens=kv_tokens, batch=batch), told


def test_known_prefixes_are_expected_at_first_and_prompts_when_they_can_be_served(monkeypatch) -> None:
    requests = trace_of(
        {"tokens": [1, 2], "output": 2},
        {"tokens": [1, 2, 7, 7, 7], "output": 1, "after": [0]},
        {"tokens": [1, 2, 7, 7, 7, 8, 9], "output": 1, "after": [1]},
        {"tokens": [3, 3], "output": 1},
    )
    simulation, told = watched(requests, monkeypatch, "lmc")
    simulation.step()  # the first prompt is computed
    assert sorted(told.now) == [(1, [1, 2]), (2, [1, 2]), (3, [3, 3])]
    simulation.step()  # its second token is drawn: it ends, and all that follows it is known to begin as it did
    assert sorted(told.now) == [(1, [1, 2, 7, 7]), (2, [1, 2]), (3, [3, 3])]
    simulation.step()  # its follower is admitted and ends, too
    assert sorted(told.now) == [(2, [1, 2, 7, 7, 7, 8]), (3, [3, 3])]
    while simulation.step():
        pass
    assert told.now == []


def test_a_join_is_known_as_far_as_it_begins_like_one_that_has_ended(monkeypatch) -> None:
    requests = trace_of(
        {"tokens": [1], "output": 2},
        {"tokens": [2], "output": 5},
        {"tokens": [1, 5, 5, 6], "output": 1, "after": [0, 1]},
    )
    simulation, told = watched(requests, monkeypatch, "lmc", batch=2)
    simulation.step()
    assert told.now == [(2, [1])]
    simulation.step()
    assert told.now == [(2, [1, 5, 5])]


def test_nothing_is_said_of_instances_before_they_come(monkeypatch) -> None:
    requests = trace_of(
        {"tokens": [1], "output": 1},
        {"tokens": [2], "output": 1, "arrival": 50},
        {"tokens": [1, 4, 5], "output": 1, "after": [0], "arrival": 90},
        {"tokens": [2, 4], "output": 1, "after": [1]},
    )
    simulation, told = watched(requests, monkeypatch, "lmc")
    simulation.step()
    assert [tokens for _, tokens in told.now] == [[1, 4]]
    simulation.step()
    assert simulation.clock == 51
    assert sorted(tokens for _, tokens in told.now) == [[1, 4], [2, 4]]


def test_instances_that_come_together_are_one_run_with_one_lane(monkeypatch) -> None:
    requests = trace_of(
        {"tokens": [1], "output": 9, "expected": 4, "priority": 2},
        {"tokens": [2], "output": 9, "arrival": 1},
        {"tokens": [3], "output": 9, "expected": 5},
    )
    simulation, _ = watched(requests, monkeypatch, "lmc", batch=3)
    simulation.step()
    simulation.step()
    first, second, late = simulation.scheduler.running
    assert (first.run, second.run, late.run) == (first.lane, second.lane, late.lane) == (0, 0, 1)
    assert (first.rank, second.rank, late.rank) == (0, 1, 0)
    assert (first.expected_length, second.expected_length, late.expected_length) == (5, 6, 10)
    assert (first.priority, second.priority) == (2, 0)


@pytest.mark.parametrize("policy", ["fcfs", "lpm"])
def test_servers_that_plan_nothing_are_told_nothing(policy: str) -> None:
    simulation = Simulation(trace_of({"tokens": [1], "output": 3}), policy=policy, kv_tokens=9, batch=1)
    simulation.step()
    (running,) = simulation.scheduler.running
    assert (running.run, running.lane, running.expected_length) == (None, None, None)


def test_what_comes_as_it_comes_is_ranked_by_what_it_waits_for() -> None:
    requests = trace_of(
        {"tokens": [1]},
        {"tokens": [1], "after": [0]},
        {"tokens": [1], "after": [1, 0]},
        {"tokens": [1]},
        {"tokens": [1], "after": [3]},
    )
    assert as_they_come(requests) == [0, 2, 4, 1, 3]


@given(traces(), st.sampled_from(["lmc", "next-use"]), st.sampled_from([1, 3]))
def test_all_that_was_expected_is_withdrawn_in_the_end(requests: list[TraceRequest], policy: str, batch: int) -> None:
    longest = max(request.cached_length for request in requests)
    simulation = Simulation(requests, policy=policy, kv_tokens=longest + 9, batch=batch)
    eviction = simulation.memory.radix.eviction
    assert isinstance(eviction, policies.NextUse)
    while simulation.step():
        eviction.expected.check_invariants()
    assert len(eviction.expected) == 0
    assert not eviction._under_way
