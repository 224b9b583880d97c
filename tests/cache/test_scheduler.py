"""Scheduler and memory without a model: random requests in small pools, checked at every step."""

import os
import random
import time
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.cache.eviction import Eviction, LeastFrequentlyUsed, LeastRecentlyUsed, NextUse
from lmc.cache.memory import SequenceMemory, Slice
from lmc.cache.scheduler import Scheduler
from lmc.cache.sequence import Sequence

SCRATCH = 1000
EXAMPLES = 2000 if os.environ.get("LMC_TEST_FULL") == "1" else 60


class FakeModel:
    """Instead of keys and values each page holds the prefix it was computed for; reading another one is an error."""

    def __init__(self) -> None:
        self.pages: dict[int, tuple[int, ...]] = {}

    def compute(self, slices: list[Slice]) -> None:
        for rows in slices:
            tokens = tuple(rows.sequence.tokens.tolist())
            for position, slot in zip(range(rows.start, rows.end), rows.slots.tolist(), strict=True):
                if slot != SCRATCH:
                    self.pages[slot] = tokens[: position + 1]
        for rows in slices:
            tokens = tuple(rows.sequence.tokens.tolist())
            for position in range(rows.end):
                assert self.pages[int(rows.sequence.pages[position])] == tokens[: position + 1]
            rows.sequence.computed = rows.end


class Simulation:
    """Requests of (prompt, tokens to generate) driven to their end; generated tokens are drawn from `rng`."""

    def __init__(
        self, kv_tokens: int, prefill_tokens: int, max_running: int, seed: int, eviction: Eviction | None = None
    ) -> None:
        self.memory = SequenceMemory(kv_tokens, scratch_page=SCRATCH, eviction=eviction)
        self.scheduler = Scheduler(self.memory, prefill_tokens=prefill_tokens, max_running=max_running)
        self.model = FakeModel()
        self.rng = random.Random(seed)
        self.finished: list[Sequence] = []

    def add(self, prompt: tuple[int, ...], generated: int, **attributes: Any) -> Sequence:
        sequence = Sequence(prompt, capacity=len(prompt) + generated, first_wanted_row=len(prompt) - 1)
        for name, value in attributes.items():
            setattr(sequence, name, value)
        self.scheduler.add(sequence)
        return sequence

    def step(self) -> list[Slice]:
        slices = self.scheduler.next_step()
        self.memory.check_invariants(self.scheduler.running)
        self.model.compute(slices)
        for rows in slices:
            if rows.sequence.pending:
                continue
            if rows.sequence.remaining_capacity:
                rows.sequence.append(self.rng.randint(0, 2))
            else:
                self.scheduler.finish(rows.sequence)
                self.finished.append(rows.sequence)
        self.memory.check_invariants(self.scheduler.running)
        return slices

    def run(self) -> None:
        for _ in range(10_000):
            if not self.scheduler.has_work:
                return
            assert self.step(), "a step without any progress"
        raise AssertionError("the requests do not end")


jobs = st.lists(
    st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=20).map(tuple), st.integers(0, 18)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=EXAMPLES)
@given(
    jobs=jobs,
    kv_tokens=st.integers(40, 120),
    prefill_tokens=st.sampled_from([1, 3, 8, 64]),
    max_running=st.sampled_from([1, 2, 5, 50]),
    cancelled=st.sets(st.integers(0, 11)),
    seed=st.integers(0, 1000),
    eviction=st.sampled_from([LeastRecentlyUsed, LeastFrequentlyUsed, NextUse]),
    places=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2), st.integers(-1, 1)), min_size=12),
)
def test_every_request_ends_and_reads_only_its_own_prefix(
    jobs,
    kv_tokens: int,
    prefill_tokens: int,
    max_running: int,
    cancelled: set[int],
    seed: int,
    eviction: type[Eviction],
    places: list[tuple[int, int, int]],
) -> None:
    simulation = Simulation(kv_tokens, prefill_tokens, max_running, seed, eviction())
    sequences = [
        simulation.add(
            prompt,
            generated,
            run=lane or None,
            rank=rank,
            lane=lane,
            priority=priority,
            expected_length=len(prompt) + 5,
        )
        for (prompt, generated), (rank, lane, priority) in zip(jobs, places, strict=False)
    ]
    for index in sorted(cancelled):
        simulation.step()
        if index < len(sequences) and sequences[index] not in simulation.finished:
            simulation.scheduler.drop(sequences[index])
            simulation.finished.append(sequences[index])
        if not simulation.scheduler.has_work:
            break
    simulation.run()
    assert len(simulation.finished) == len(sequences)
    assert simulation.memory.pool.used_count == simulation.memory.radix.total_tokens
    assert simulation.memory.radix.pinned_tokens == 0
    if isinstance(planned := simulation.memory.radix.eviction, NextUse):
        assert len(planned.expected) == 0
        assert not planned._under_way


def test_pages_are_never_written_twice_while_they_are_cached() -> None:
    simulation = Simulation(200, 64, 10, 0)
    simulation.add((1, 2, 1, 2, 1), 3)
    simulation.run()
    simulation.add((1, 2, 1, 2, 1), 0)
    (rows,) = simulation.scheduler.next_step()
    assert (rows.start, rows.end, rows.slots.tolist()) == (4, 5, [SCRATCH])


def test_the_youngest_is_preempted_and_goes_on_from_the_cache() -> None:
    simulation = Simulation(60, 64, 10, 0)
    old, young = simulation.add((0,) * 10, 30), simulation.add((1,) * 10, 30)
    for _ in range(25):
        simulation.step()
        if simulation.scheduler.preemptions:
            break
    assert simulation.scheduler.preemptions == 1
    assert young.node is None
    # What it generated is cached, but for the one page that the other sequence needed at once.
    assert (
        simulation.memory.radix.match_prefix(young.tokens, young.cache_key).length
        == young.length - 2
        > young.prompt_length
    )
    simulation.run()
    assert simulation.finished == [old, young]
    assert young.length == 40


def test_a_lane_that_holds_all_places_gives_some_up() -> None:
    simulation = Simulation(2000, 64, 4, 0)
    wave = [simulation.add((1, number), 60, lane="first") for number in range(8)]
    for _ in range(10):
        simulation.step()
    short = [simulation.add((2, number), 5, lane="second") for number in range(3)]
    late = simulation.add((3, 3), 5, lane="third")
    simulation.run()
    assert simulation.finished == [*short, late, *wave]  # whoever gave up a place is not passed
    assert all(each.length == 62 for each in wave)


def test_a_lane_that_holds_all_pages_gives_some_up() -> None:
    simulation = Simulation(150, 64, 50, 0)
    wave = [simulation.add((1, number), 60, lane="first") for number in range(8)]
    for _ in range(20):
        simulation.step()
    short = simulation.add((2,) * 20, 5, lane="second")
    simulation.run()
    assert simulation.finished[0] is short
    assert {*simulation.finished[1:]} == {*wave}


def test_a_lane_alone_and_lanes_of_higher_priority_keep_their_places() -> None:
    simulation = Simulation(2000, 64, 4, 0)
    wave = [simulation.add((1, number), 30, lane="first", priority=1) for number in range(6)]
    simulation.step()
    low = simulation.add((2, 2), 1, lane="second")
    high = simulation.add((3, 3), 1, lane="first", priority=2)  # of the same client
    simulation.run()
    assert simulation.scheduler.preemptions == 0
    assert simulation.finished == [*wave[:4], high, low, *wave[4:]]


@settings(max_examples=EXAMPLES)
@given(
    arrivals=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 4), st.integers(0, 30)), min_size=1, max_size=40),
    max_running=st.integers(4, 9),
    seed=st.integers(0, 1000),
)
def test_no_lane_waits_long_beside_one_that_runs_several(
    arrivals: list[tuple[int, int, int]], max_running: int, seed: int
) -> None:
    """Lanes that run nothing get the places of one that runs four, one a step, if no other is free."""
    simulation = Simulation(1500, 500, max_running, seed)
    left = sorted(range(len(arrivals)), key=lambda number: arrivals[number][0])
    added: list[Sequence] = []
    patience: Counter[Hashable] = Counter()
    step = 0
    while left or simulation.scheduler.has_work:
        while left and arrivals[left[0]][0] <= step:
            _, lane, generated = arrivals[left.pop(0)]
            added.append(simulation.add((lane, len(added) % 3, 1), generated, lane=lane))
        running = Counter(each.lane for each in simulation.scheduler.running)
        if running.total() == max_running and max(running.values()) >= 4:
            patience.update({each.lane for each in added if each not in simulation.finished} - {*running})
        if simulation.scheduler.has_work:
            simulation.step()
        for each in simulation.scheduler.running:
            del patience[each.lane]
        assert max(patience.values(), default=0) <= 4
        step += 1
    assert len(simulation.finished) == len(arrivals)
    assert all(not each.remaining_capacity for each in simulation.finished)


def test_rows_that_another_sequence_put_into_the_tree_meanwhile_are_not_written() -> None:
    memory = SequenceMemory(40, scratch_page=SCRATCH)
    first, second = (Sequence((1, 2, 3, last), capacity=4, first_wanted_row=3) for last in (4, 5))
    assert memory.try_admit(first, headroom=0)
    assert memory.try_admit(second, headroom=0)
    written = memory.take_shared_rows(first, 4).slots
    own_last = int(second.pages[3])
    assert memory.take_shared_rows(second, 4).slots.tolist() == [SCRATCH] * 3 + [own_last]
    assert second.pages[:3].tolist() == written[:3].tolist()
    memory.check_invariants([first, second])


def test_prefill_goes_on_while_others_decode() -> None:
    simulation = Simulation(200, 8, 10, 0)
    simulation.add((0, 1), 30)
    simulation.step()
    long = simulation.add(tuple([2] * 40), 1)
    for _ in range(5):
        rows = {(each.sequence is long): each.end - each.start for each in simulation.step()}
        assert rows == {False: 1, True: 8}


def test_held_prefixes_are_let_go_only_where_nothing_else_helps() -> None:
    simulation = Simulation(40, 64, 10, 0)
    held = Sequence((1,) * 15, capacity=15, first_wanted_row=15)
    simulation.scheduler.add(held)
    simulation.model.compute(simulation.scheduler.next_step())
    key = simulation.scheduler.hold(held)
    simulation.add((0,) * 20, 2)
    simulation.run()
    assert simulation.memory.radix.pinned_tokens == 15
    simulation.add((2,) * 30, 5)
    simulation.run()
    assert simulation.memory.radix.pinned_tokens == 0
    simulation.memory.release_held(key)
    assert not simulation.memory.release_oldest_held()


def test_a_request_that_was_not_checked_to_fit_is_a_bug_that_is_named() -> None:
    simulation = Simulation(10, 64, 10, 0)
    simulation.add((0,) * 11, 1)
    with pytest.raises(AssertionError, match="does not fit"):
        simulation.scheduler.next_step()


def test_ten_thousand_waiting_requests_cost_little_each_to_cancel() -> None:
    memory = SequenceMemory(100, scratch_page=SCRATCH)
    scheduler = Scheduler(memory, prefill_tokens=64, max_running=4)
    sequences = [Sequence((1, 2, number), capacity=4, first_wanted_row=2) for number in range(10_000)]
    for sequence in sequences:
        scheduler.add(sequence)
    scheduler.next_step()
    start = time.process_time()
    for sequence in reversed(sequences):
        scheduler.drop(sequence)
    assert time.process_time() - start < 2  # a list would take a minute
    assert not scheduler.has_work
    assert memory.pool.used_count == memory.radix.total_tokens


def test_a_request_that_waits_for_room_is_not_matched_again_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(60, 64, 10, 0)
    running = simulation.add((0,) * 8, 40)
    simulation.step()
    asked: list[int] = []
    pin_prefix = simulation.memory.radix.pin_prefix
    monkeypatch.setattr(
        simulation.memory.radix, "pin_prefix", lambda *of, **by: asked.append(0) or pin_prefix(*of, **by)
    )
    waiting = simulation.add((1,) * 40, 2)
    for _ in range(30):
        simulation.step()
    assert len(asked) == 1
    assert (running.page_count, waiting.node) == (38, None)
    # Room came free: it is looked at again.
    simulation.scheduler.drop(running)
    simulation.run()
    assert simulation.finished == [waiting]


def test_a_request_that_waits_gets_in_as_soon_as_others_hold_enough_of_its_prefix() -> None:
    memory = SequenceMemory(40, scratch_page=SCRATCH)
    holder = Sequence((1,) * 20 + (2,), capacity=21, first_wanted_row=20)
    sharer = Sequence((1,) * 20 + (3,), capacity=21, first_wanted_row=20)
    assert memory.try_admit(holder, headroom=0)
    for _ in range(3):
        assert not memory.try_admit(sharer, headroom=0)
    memory.take_shared_rows(holder, 1)
    assert not memory.try_admit(sharer, headroom=0)
    holder.computed = 1
    memory.take_shared_rows(holder, 19)
    assert memory.try_admit(sharer, headroom=0)
    memory.check_invariants([holder, sharer])


class _Counted(LeastRecentlyUsed):
    asked = 0

    def victim(self):
        self.asked += 1
        return super().victim()


def test_a_step_makes_room_for_all_sequences_at_once() -> None:
    eviction = _Counted()
    simulation = Simulation(60, 64, 4, 0, eviction)
    simulation.add((9,) * 50, 0)
    simulation.run()
    for first in range(3, 7):
        simulation.add((first,) * 2, 9)
    simulation.run()
    assert simulation.memory.radix.evicted_tokens > 25
    assert eviction.asked <= 11  # one of the four prompts, ten of steps; four times as often for one page at a time


def test_sequences_that_cannot_all_grow_stay_as_they_are() -> None:
    memory = SequenceMemory(10, scratch_page=SCRATCH)
    sequences = [Sequence((token,) * 4, capacity=8, first_wanted_row=3) for token in (1, 2)]
    for sequence in sequences:
        assert memory.try_admit(sequence, headroom=0)
        sequence.rewrite(4, [3, 3])
    assert not memory.try_grow(sequences)
    assert [sequence.page_count for sequence in sequences] == [4, 4]
    sequences[1].rewrite(4, [])
    assert memory.try_grow(sequences)
    assert [sequence.page_count for sequence in sequences] == [6, 4]
    memory.check_invariants(sequences)


def test_an_admitted_sequence_knows_what_held_it_up():
    batch = Simulation(kv_tokens=1000, prefill_tokens=64, max_running=1, seed=0)
    first, second = batch.add((1,), 3), batch.add((2,), 1)
    memory = Simulation(kv_tokens=30, prefill_tokens=64, max_running=9, seed=0)
    large, small = memory.add((1,) * 20, 4), memory.add((2,) * 20, 2)
    budget = Simulation(kv_tokens=1000, prefill_tokens=8, max_running=9, seed=0)
    long, short = budget.add((1,) * 16, 2), budget.add((2,) * 4, 2)
    for simulation in (batch, memory, budget):
        while simulation.scheduler.has_work:
            simulation.step()
    assert [each.obstacle for each in (first, large, long)] == [None] * 3
    assert (second.obstacle, small.obstacle, short.obstacle) == ("batch", "memory", "budget")
    late = batch.add((3,), 1)
    batch.step()
    assert late.obstacle is None
