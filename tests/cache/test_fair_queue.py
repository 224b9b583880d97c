import random
from collections import Counter
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cache.fair_queue import AGE, MINIMUM, QUANTUM, FairQueue
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


def test_the_poorest_lane_is_favored_once_and_who_gave_way_goes_first_in_its_lane() -> None:
    queue = FairQueue()
    rich, poor, low = sequence(0), sequence(1), sequence(2)
    low.priority = -1
    for each in (rich, poor, low):
        queue.add(each)
    assert queue.poorest({(0, 0): 3, (0, 1): 1}) == (0, 1)
    assert queue.poorest({(0, 1): 1}) == (0, 0)
    gone = sequence(0)
    queue.give_back(gone)
    queue.put_back(preempted := sequence(0))
    queue.favor((0, 1))
    assert len(queue) == 5
    assert [queue.take() for _ in range(5)] == [poor, preempted, gone, rich, low]
    assert queue.poorest({}) is None
    queue.add(poor)
    queue.favor((0, 1))
    queue.remove(poor)
    queue.add(rich)
    assert queue.take() is rich


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


def charge(taken: Sequence) -> int:
    """What a sequence counts with, as the module says."""
    return max(taken.capacity - taken.computed, MINIMUM)


@st.composite
def requests(draw: st.DrawFn, priorities: int = 0) -> list[Sequence]:
    """Sequences of five lanes; some are small, some need several turns, some are cached to their end or nearly."""
    made: list[Sequence] = []
    for _ in range(draw(st.integers(1, 60))):
        each = sequence(draw(st.integers(0, 4)), draw(st.integers(3, 30) | st.integers(3, 3 * QUANTUM)))
        each.computed = draw(st.sampled_from([0, 0, each.capacity - 1, each.capacity]))
        each.priority = draw(st.integers(0, priorities))
        made.append(each)
    return made


@given(pending=requests(), seed=st.integers(0, 1000))
def test_nobody_waits_for_more_than_the_turns_of_others(pending: list[Sequence], seed: int) -> None:
    """Neither in tokens nor in sequences; and who comes later, goes later."""
    rng = random.Random(seed)
    queue = FairQueue()
    waiting: Counter[Hashable] = Counter()
    over: Counter[Hashable] = Counter()  # what a lane may have used beyond its last turn
    passed: dict[Hashable, dict[Hashable, list[int]]] = {}  # what others were served while a lane waits
    largest = max(map(charge, pending))
    while pending or len(queue):
        if pending and (not len(queue) or rng.random() < 0.5):
            new = pending.pop()
            queue.add(new)
            if not waiting[new.lane]:
                over[new.lane] = 0
                passed[new.lane] = {lane: [] for lane in waiting if waiting[lane]}
            waiting[new.lane] += 1
            continue
        taken = queue.take()
        waiting[taken.lane] -= 1
        for lane, others in passed.items():
            if waiting[lane] and lane != taken.lane:
                assert taken.lane in others or over[lane] >= QUANTUM
                served = others.setdefault(taken.lane, [])
                served.append(charge(taken))
                turns = 1 + over[lane] // QUANTUM
                assert sum(served) < turns * QUANTUM + largest
                assert len(served) <= turns * QUANTUM // MINIMUM
        over[taken.lane] = charge(taken)
        passed[taken.lane] = {lane: [] for lane in waiting if waiting[lane]}


@given(pending=requests(priorities=3), seed=st.integers(0, 1000))
def test_whatever_the_priorities_nobody_is_passed_by_more_than_is_stated(pending: list[Sequence], seed: int) -> None:
    rng = random.Random(seed)
    queue = FairQueue()
    waiting: Counter[Hashable] = Counter()
    passed: dict[Hashable, list[int]] = {}  # by lane, whoever was served longest ago first
    older: dict[Hashable, int] = {}  # of an aged lane: how many had waited longer than it, and what passed it since
    since: Counter[Hashable] = Counter()
    while pending or len(queue):
        if pending and (not len(queue) or rng.random() < 0.6):
            new = pending.pop()
            queue.add(new)
            waiting[new.priority, new.lane] += 1
            passed.setdefault((new.priority, new.lane), [])
            continue
        taken = queue.take()
        key = (taken.priority, taken.lane)
        waiting[key] -= 1
        del passed[key]
        older.pop(key, None)
        since.pop(key, None)
        for each, before in older.items():
            since[each] += 1
            assert since[each] <= 1 + 2 * before
        for place, (each, tokens) in enumerate(passed.items()):
            if each not in older:
                tokens.append(charge(taken))
                assert sum(tokens[:-1]) < AGE
                if sum(tokens) >= AGE:
                    older[each] = place
        if waiting[key]:
            passed[key] = []


@pytest.mark.parametrize(("priority", "most"), [(0, QUANTUM // MINIMUM), (1, AGE // MINIMUM)])
def test_an_endless_stream_of_what_is_cached_to_its_end_is_not_free(priority: int, most: int) -> None:
    queue = FairQueue()
    passed = 0

    def cached(lane: int, priority: int) -> Sequence:
        made = sequence(lane, 3)
        made.computed, made.priority = 3, priority
        return made

    queue.add(cached(7, priority))
    queue.add(waiting := cached(8, 0))
    while True:
        queue.add(cached(7, priority))
        if queue.take() is waiting:
            break
        passed += 1
        assert passed <= most
    assert passed == most


def test_one_that_used_too_much_sits_out_its_turn_also_where_the_one_before_it_is_cancelled() -> None:
    queue = FairQueue()
    for capacity in (2 * QUANTUM, 100):
        queue.add(sequence(0, capacity))
    queue.add(before := sequence(1))
    assert queue.take().lane == 0
    queue.add(sequence(2))
    assert queue.first() is before
    queue.remove(before)
    # 0 stands before 2, and has used its turn already.
    assert [queue.take().lane for _ in range(2)] == [2, 0]


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
        high.priority, high.computed = 1, 4000
        queue.add(high)
        taken = queue.take()
        served.append(taken)
        passed += charge(taken)
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
