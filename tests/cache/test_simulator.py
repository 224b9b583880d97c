"""Requests without a model: counts by hand and by a little model, and what must hold of every run."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.cache.sequence import Sequence
from lmc.cache.simulation.report import CostModel, Report
from lmc.cache.simulation.simulator import OPTIMAL, POLICIES, Simulation, simulate
from lmc.cache.trace import TraceRequest
from lmc.ir.errors import InputError, Location
from tests.cache.simulations import at_most, evicted_of, one_at_a_time, run, trace_of, traces

EXAMPLES = 2000 if os.environ.get("LMC_TEST_FULL") == "1" else 60


def longest(requests: list[TraceRequest]) -> int:
    return max(request.cached_length for request in requests)


def served(requests: list[TraceRequest], kv_tokens: int, batch: int = 1, prefill_tokens: int = 512) -> Report:
    return simulate(requests, policy="fcfs", kv_tokens=kv_tokens, batch=batch, prefill_tokens=prefill_tokens)


def test_seconds_are_those_of_steps_rows_and_keys() -> None:
    cost = CostModel(step=1, row=0.1, attended=0.01)
    report = simulate(trace_of({"tokens": [1, 2, 3], "output": 2}), policy="fcfs", kv_tokens=10, batch=1, cost=cost)
    # A step of three rows, which attend to 1, 2 and 3 keys, and one of the row of the first generated token.
    assert report.first_token_seconds == pytest.approx((1 + 0.3 + 0.06,))
    assert report.predicted_seconds == pytest.approx(1.36 + 1 + 0.1 + 0.04)
    assert (report.steps, report.rows, report.generated_tokens) == (2, 4, 2)


def test_a_prompt_is_computed_in_chunks() -> None:
    report = served(trace_of({"tokens": list(range(10)), "output": 1}), 10, prefill_tokens=4)
    assert (report.steps, report.rows) == (3, 10)


def test_a_prefix_is_found_again_but_for_the_last_token_of_a_prompt() -> None:
    requests = trace_of({"tokens": [1, 2, 3]}, {"tokens": [1, 2, 3]}, {"tokens": [1, 2, 9, 9]})
    report = served(requests, 20)
    assert (report.prompt_tokens, report.hit_tokens) == (10, 2 + 2)
    assert report.hit_rate == 0.4
    assert (report.evicted_tokens, report.preemptions, report.depth) == (0, 0, 1)


def test_an_answer_is_found_again_by_what_goes_on_from_it() -> None:
    requests = trace_of(
        {"tokens": [1, 2], "output": 3},
        {"tokens": [1, 2, 7, 8, 9, 5], "after": [0]},
        {"tokens": [4], "after": [1, 0]},
    )
    report = served(requests, 20)
    # The keys of the last token generated are never computed.
    assert (report.hit_tokens, report.depth) == (4, 3)


def test_the_least_recently_used_goes_first() -> None:
    a, b, c = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]
    report = served(trace_of(*({"tokens": tokens} for tokens in (a, b, a, c, a, b))), 8)
    assert (report.hit_tokens, report.evicted_tokens) == (3 + 0 + 3, 4 + 4)


@pytest.mark.parametrize(
    ("policy", "hits"),
    [
        ("fcfs", 0),  # each has gone when it comes again
        ("lpm", 3 * 3),  # what was asked just now is asked again at once
        ("next-use", 3 + 3),  # c takes the place of b, which comes after a; b that of a, which never comes again
        ("lmc", 3 * 3),  # each twice in a row
        ("lru", 3 * 3),
        ("lfu", 3 * 3),
        ("optimal", 3 * 3),
    ],
)
def test_policies_differ_in_what_they_find(policy: str, hits: int) -> None:
    a, b, c = [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]
    requests = trace_of(*({"tokens": tokens} for tokens in (a, b, c, a, b, c)))
    assert simulate(requests, policy=policy, kv_tokens=8, batch=1).hit_tokens == hits


def test_optimal_has_the_hits_of_the_best_eviction_for_what_lmc_does() -> None:
    # Nothing is known of a prompt before those that it comes after have ended: that a comes again, nobody foresees.
    a, b, c = [1] * 6, [2] * 6, [3] * 6
    rows = [
        {"tokens": tokens, "known": 0, "after": [number - 1] if number else []}
        for number, tokens in enumerate((a, b, c, a))
    ]
    requests = trace_of(*rows)
    lmc, best = (simulate(requests, policy=policy, kv_tokens=12, batch=1) for policy in ("lmc", "optimal"))
    assert (lmc.hit_tokens, best.hit_tokens) == (0, 5)
    assert (lmc.steps, lmc.evicted_tokens, lmc.policy) == (best.steps, best.evicted_tokens, "lmc")
    assert best.policy == "optimal"


def test_requests_run_together_and_share_what_is_being_computed() -> None:
    requests = trace_of({"tokens": [1, 2, 3, 4], "output": 3}, {"tokens": [1, 2, 3, 5], "output": 3})
    report = served(requests, 20, batch=2)
    assert (report.hit_tokens, report.steps, report.rows) == (3, 3, 5 + 2 + 2)
    first, second = report.timeline.uses
    assert (first.start, second.start, first.end, second.end) == (0, 1, 2, 3)
    assert (first.shared, first.cached, second.shared, second.cached) == (0, 0, 3, 3)
    # Each gets two more pages for what it generates, before the first of them ends.
    assert report.timeline.pages_in_use.tolist() == [4, 5 + 4, 6, 0]


def test_a_preempted_request_is_admitted_again_with_what_it_had() -> None:
    requests = trace_of({"tokens": [1] * 10, "output": 30}, {"tokens": [2] * 10, "output": 30})
    report = served(requests, 60, batch=2)
    assert report.preemptions == 1
    assert report.hit_tokens == 0
    old, young, again = report.timeline.uses
    assert [old.readmitted, young.readmitted, again.readmitted] == [False, False, True]
    assert (young.prompt_length, again.prompt_length) == (10, young.tokens.size + 1)
    assert young.tokens.tolist() == again.tokens[: young.tokens.size].tolist()
    assert young.end < old.end < again.start
    assert (old.tokens.size, again.tokens.size) == (39, 39)
    assert report.rows == 78 + young.tokens.size - again.cached


def test_what_comes_later_waits_and_time_passes_meanwhile() -> None:
    cost = CostModel(step=1, row=0, attended=0)
    requests = trace_of(
        {"tokens": [1, 2], "output": 2},
        {"tokens": [3], "output": 1, "arrival": 100},
        {"tokens": [4], "output": 1, "after": [0]},
        {"tokens": [5], "output": 1, "after": [0], "arrival": 50},
    )
    report = simulate(requests, policy="fcfs", kv_tokens=10, batch=4, cost=cost)
    assert report.predicted_seconds == 101
    assert report.first_token_seconds == (1, 1, 1, 1)
    assert [use.tokens[0] for use in report.timeline.uses] == [1, 4, 5, 3]


def test_whoever_waits_for_a_place_waits_for_its_first_token() -> None:
    cost = CostModel(step=1, row=0, attended=0)
    requests = trace_of({"tokens": [1], "output": 5}, {"tokens": [2], "output": 1})
    report = simulate(requests, policy="fcfs", kv_tokens=10, batch=1, cost=cost)
    assert report.first_token_seconds == (1, 6)


def test_a_pool_larger_than_memory_is_a_pool_in_which_all_stays() -> None:
    requests = trace_of({"tokens": [1, 2, 3], "output": 4}, {"tokens": [1, 2, 4], "output": 4})
    large, enough = served(requests, 10**15), served(requests, 100)
    assert large.kv_tokens == 10**15
    assert (large.hit_tokens, large.rows, large.evicted_tokens) == (enough.hit_tokens, enough.rows, 0) == (2, 10, 0)


def test_no_requests_take_no_time() -> None:
    report = served([], 10)
    assert (report.requests, report.steps, report.predicted_seconds, report.depth) == (0, 0, 0, 0)
    assert report.hit_rate == 0
    assert report.timeline.uses == ()


@settings(max_examples=EXAMPLES)
@given(traces(arrivals=False), st.integers(0, 30), st.sampled_from([1, 3, 512]))
def test_one_at_a_time_finds_what_a_set_of_prefixes_holds(
    requests: list[TraceRequest], room: int, prefill_tokens: int
) -> None:
    pool = longest(requests) + room
    report = served(requests, pool, prefill_tokens=prefill_tokens)
    evicted = evicted_of(report.timeline)
    assert (report.hit_tokens, evicted) == one_at_a_time(requests, pool)
    assert report.evicted_tokens == evicted.total()


@settings(max_examples=EXAMPLES)
@given(
    requests=traces(),
    policy=st.sampled_from(POLICIES),
    room=st.integers(0, 40),
    batch=st.sampled_from([1, 2, 5]),
    prefill_tokens=st.sampled_from([1, 3, 64]),
)
def test_every_request_ends_and_nothing_is_lost(
    requests: list[TraceRequest], policy: str, room: int, batch: int, prefill_tokens: int
) -> None:
    simulation = Simulation(
        requests, policy=policy, kv_tokens=longest(requests) + room, batch=batch, prefill_tokens=prefill_tokens
    )
    run(simulation)
    report = simulation.report()
    uses = report.timeline.uses
    last = {(*use.tokens.tolist(),): use for use in uses}
    for request in requests:
        assert (*[*request.tokens.tolist(), *request.generated.tolist()][: request.cached_length],) in last
    assert len(uses) == len(requests) + report.preemptions
    found = sum(use.cached for use in uses if not use.readmitted)
    assert found <= at_most(requests)
    assert found == report.hit_tokens or (policy == OPTIMAL and found < report.hit_tokens)
    needed = sum(request.cached_length for request in requests) - found
    assert report.rows >= needed
    assert report.preemptions or report.rows == needed
    assert simulation.memory.radix.pinned_tokens == 0
    assert simulation.memory.pool.used_count == simulation.memory.radix.total_tokens
    evicted = evicted_of(report.timeline)
    assert report.evicted_tokens == evicted.total()
    assert {*evicted} <= {tokens[: end + 1] for tokens in last for end in range(len(tokens))}


@settings(max_examples=EXAMPLES)
@given(traces(), st.sampled_from(POLICIES), st.integers(0, 40), st.sampled_from([1, 2, 5]))
def test_nothing_runs_before_it_has_come_and_what_it_waits_for_has_ended(
    requests: list[TraceRequest], policy: str, room: int, batch: int
) -> None:
    entered: list[str | int] = []
    ended: set[str | int] = set()

    class Watched(Simulation):
        def _enter(self, ready: float, position: int) -> None:
            assert requests[position].arrival <= ready <= self.clock
            assert ended.issuperset(requests[position].after)
            entered.append(requests[position].id)
            super()._enter(ready, position)

        def _end(self, sequence: Sequence) -> None:
            ended.add(requests[self._services[sequence].position].id)
            super()._end(sequence)

    simulation = Watched(requests, policy=policy, kv_tokens=longest(requests) + room, batch=batch)
    clock = -1.0
    while simulation.step():
        assert len(simulation.scheduler.running) <= batch
        assert clock < simulation.clock
        clock = simulation.clock
    assert sorted(entered) == sorted(ended) == [request.id for request in requests]


@settings(max_examples=EXAMPLES)
@given(traces(), st.sampled_from(POLICIES), st.integers(0, 40), st.sampled_from([1, 2, 5]))
def test_the_timeline_counts_the_pages_of_those_that_run(
    requests: list[TraceRequest], policy: str, room: int, batch: int
) -> None:
    pool = longest(requests) + room
    simulation = Simulation(requests, policy=policy, kv_tokens=pool, batch=batch, prefill_tokens=5)
    while simulation.step():
        running = simulation.scheduler.running
        pages = {page for each in running for page in each.pages[: each.page_count].tolist()}
        in_use = simulation.memory._pages_in_use
        assert simulation.memory.held_pages == len(pages) <= in_use[-1] <= pool
    timeline = simulation.report().timeline
    events = [event for use in timeline.uses for event in (use.start, use.end)]
    assert sorted(events) == list(range(len(timeline.pages_in_use)))
    assert all(use.start < use.end and use.shared >= 0 for use in timeline.uses)
    assert all(use.cached < use.prompt_length for use in timeline.uses)
    if events:
        assert timeline.pages_in_use[-1] == 0


@pytest.mark.parametrize("sizes", [{"kv_tokens": 0}, {"batch": 0}, {"prefill_tokens": -1}])
def test_sizes_start_at_one(sizes: dict[str, int]) -> None:
    (name,) = sizes
    with pytest.raises(InputError, match=f"{name} is {sizes[name]}") as raised:
        served([], **{"kv_tokens": 1, **sizes})
    assert raised.value.remedy == "give at least 1"


def test_a_policy_has_to_be_known() -> None:
    with pytest.raises(InputError, match="there is no policy 'best'") as raised:
        simulate([], policy="best", kv_tokens=1, batch=1)
    assert "fcfs" in (raised.value.remedy or "")


def test_a_request_longer_than_the_pool_is_refused_before_anything_runs() -> None:
    requests = trace_of({"tokens": [1], "output": 1}, {"tokens": [1, 2, 3], "output": 4})
    object.__setattr__(requests[1], "location", Location("t.jsonl", 7))
    assert served(requests, 6).steps > 0
    with pytest.raises(
        InputError, match="request 1 needs 6 pages, for 3 tokens of its prompt and 4 generated"
    ) as found:
        served(requests, 5)
    assert str(found.value.location) == "t.jsonl:7"
    assert found.value.remedy == "simulate a pool of 6 tokens or more"


def test_a_part_of_a_trace_without_what_it_waits_for_is_refused() -> None:
    requests = trace_of({"tokens": [1]}, {"tokens": [1], "after": [0]})
    with pytest.raises(InputError, match="request 1 comes after 0, which is not before it") as raised:
        served(requests[1:], 10)
    assert "in its order" in (raised.value.remedy or "")
