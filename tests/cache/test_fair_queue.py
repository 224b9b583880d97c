import random
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cache.fair_queue import AGE, QUANTUM, FairQueue
from lmc.cache.memory import SequenceMemory
from lmc.cache.order import LongestPrefix
from lmc.cache.scheduler import Scheduler
from lmc.cache.sequence import Namespace, Sequence


def sequence(instance: int, capacity: int = 100) -> Sequence:
    made = Sequence((1, 2, 3), capacity=capacity, first_wanted_row=2)
    made.lane = instance
    return made


def test_one_instance_is_served_in_the_order_of_its_requests() -> None:
    queue = FairQueue()
    asked = [sequence(0) for _ in range(200)]
    for each in asked:
        queue.add(each)
    assert [queue.take() for _ in asked] == asked
    assert len(queue) == 0


def test_a_turn_is_a_quantum_of_tokens_and_debts_are_paid() -> None:
    queue = FairQueue()
    for _ in range(4):
        queue.add(sequence(0, capacity=QUANTUM * 2))
    for _ in range(8):
        queue.add(sequence(1, capacity=QUANTUM // 2))
    # 0 takes two turns' worth at once and has to wait while 1 has two turns.
    assert [queue.take().lane for _ in range(12)] == [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0]


def test_preempted_sequences_go_first_and_do_not_count_again() -> None:
    queue = FairQueue()
    early, late = sequence(0), sequence(0)
    queue.add(sequence(1))
    queue.put_back(late)
    queue.put_back(early)
    assert [queue.take(), queue.take()] == [early, late]
    assert queue.take().lane == 1


def test_the_first_stays_first_while_others_come_and_go() -> None:
    queue = FairQueue()
    first, second, other = sequence(0), sequence(0), sequence(1)
    for each in (first, second, other):
        queue.add(each)
    assert queue.first() is first
    queue.remove(second)
    queue.add(sequence(2))
    assert queue.first() is first
    queue.remove(first)
    assert queue.first() is other
    with pytest.raises(KeyError):
        queue.remove(first)


@given(
    requests=st.lists(st.tuples(st.integers(0, 4), st.integers(3, 3 * QUANTUM)), min_size=1, max_size=60),
    seed=st.integers(0, 1000),
)
def test_nobody_waits_longer_than_the_bound(requests: list[tuple[int, int]], seed: int) -> None:
    """While an instance waits, no other is served more than a quantum and one sequence beyond its fair share."""
    rng = random.Random(seed)
    queue = FairQueue()
    served: dict[Hashable, int] = dict.fromkeys(range(5), 0)
    waiting: dict[Hashable, int] = dict.fromkeys(range(5), 0)
    since: dict[int, dict[Hashable, int]] = {}  # what each had been served when an instance began to wait
    largest = max(capacity for _, capacity in requests)
    pending = list(requests)
    while pending or len(queue):
        if pending and (not len(queue) or rng.random() < 0.5):
            instance, capacity = pending.pop()
            queue.add(sequence(instance, capacity))
            if not waiting[instance]:
                since[instance] = dict(served)
            waiting[instance] += 1
            continue
        taken = queue.take()
        served[taken.lane] += taken.capacity
        waiting[taken.lane] -= 1
        for instance, before in since.items():
            if waiting[instance] and served[instance] == before[instance]:
                turns = 1 + largest // QUANTUM  # a debt of its own is at most one sequence: those turns it sits out
                assert served[taken.lane] - before[taken.lane] <= turns * QUANTUM + largest


def test_an_instance_that_asks_for_five_hundred_does_not_starve_one_that_asks_later() -> None:
    """The adversary's stream never ends; the other's request is admitted within a turn of it."""
    memory = SequenceMemory(3000, scratch_page=3000)
    scheduler = Scheduler(memory, prefill_tokens=64, max_running=8)
    rng = random.Random(0)

    def adversary() -> Sequence:
        made = Sequence([rng.randint(0, 9) for _ in range(20)], capacity=60, first_wanted_row=19)
        made.lane = 7
        return made

    for _ in range(500):
        scheduler.add(adversary())
    mine: Sequence | None = None
    finished = before = 0
    for step in range(3000):
        if step == 30:
            mine, before = sequence(8, 10), finished
            scheduler.add(mine)
        for rows in scheduler.next_step():
            rows.sequence.computed = rows.end
            if rows.sequence.pending:
                continue
            if rows.sequence.remaining_capacity:
                rows.sequence.append(rng.randint(0, 9))
                continue
            scheduler.finish(rows.sequence)
            finished += 1
            scheduler.add(adversary())
            if rows.sequence is mine:
                # It waited for the rest of the adversary's turn, and for those that ran already.
                assert finished - before <= QUANTUM // 60 + 2 + 2 * 8
                return
    raise AssertionError("it never finished")


def test_higher_priority_goes_first_and_lower_ones_are_served_once_they_have_aged() -> None:
    """The high priority's stream never ends, and shares a long prefix. No low one is passed by more than stated."""
    queue = FairQueue()
    lows = [sequence(lane, 50) for lane in (1, 2, 3)]
    for each in lows:
        queue.add(each)
    served: list[Sequence] = []
    passed = 0
    while any(each not in served for each in lows):
        high = sequence(9, 5000)
        high.priority, high.shared = 1, 4000
        queue.add(high)
        taken = queue.take()
        served.append(taken)
        passed += taken.capacity - taken.shared
        assert passed <= AGE + 2 * len(lows) * 1000
    places = [served.index(each) for each in lows]
    assert places == sorted(places)
    assert places[0] >= AGE // 1000
    assert [served[place + 1].lane for place in places[:-1]] == [9, 9]  # every second one stays with the high priority


def test_an_aged_sequence_keeps_its_place_until_it_is_taken() -> None:
    queue = FairQueue()
    large = sequence(1, 20_000)
    queue.add(large)
    for _ in range(AGE // 1000 + 1):
        high = sequence(2, 1000)
        high.priority = 5
        queue.add(high)
        assert queue.take() is high
    newer = sequence(3, 10)
    newer.priority = 7
    queue.add(newer)
    assert queue.first() is large
    assert queue.take() is large
    assert queue.take() is newer


def test_a_lane_is_served_in_the_order_of_its_ranks() -> None:
    queue = FairQueue()
    ranked = [sequence(0) for _ in range(6)]
    for each, rank in zip(ranked, (3, 1, 1, 0, 5, 0), strict=True):
        each.rank = rank
        queue.add(each)
    taken = [queue.take() for _ in ranked]
    assert taken == [ranked[index] for index in (3, 5, 1, 2, 0, 4)]


def test_longest_prefix_first_is_matched_once_a_step() -> None:
    memory = SequenceMemory(100, scratch_page=100)
    radix = memory.radix
    radix.insert([1, 2, 3], memory.pool.allocate(3), Namespace())
    queue = FairQueue(lambda: LongestPrefix(radix))
    short = Sequence((1, 9), capacity=4, first_wanted_row=1)
    none = Sequence((7, 8, 9), capacity=4, first_wanted_row=2)
    long = Sequence((1, 2, 3, 4), capacity=6, first_wanted_row=3)
    also_short = Sequence((1, 8, 8), capacity=4, first_wanted_row=2)
    for each in (none, short, also_short, long):
        queue.add(each)
    queue.begin_step()
    assert [queue.take() for _ in range(4)] == [long, short, also_short, none]
