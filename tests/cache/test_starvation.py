"""Nobody starves: adversarial streams of long shared prefixes, and a mixed stream beside first come, first served."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from benchmarks.latency import by_population, stated
from lmc.cache.eviction import NextUse
from lmc.cache.fair_queue import AGE, MINIMUM, QUANTUM
from lmc.cache.memory import SequenceMemory
from lmc.cache.scheduler import Scheduler
from lmc.cache.sequence import Sequence
from lmc.cache.simulation.simulator import simulate
from lmc.cache.trace import TraceRequest, read_trace

POOL = 6000
PREFIX = tuple(range(1, 1501))
RUNNING = 4


class Server:
    """A scheduler without a model; notes what it admits, and what that counts with."""

    def __init__(self) -> None:
        self.memory = SequenceMemory(POOL, scratch_page=POOL, eviction=NextUse())
        self.scheduler = Scheduler(self.memory, prefill_tokens=256, max_running=RUNNING)
        self.admitted: list[Sequence] = []
        self.charges: list[int] = []
        self.seen: set[Sequence] = set()

    def add(self, prompt: tuple[int, ...], output: int = 8, logits: int = 1, **attributes: Any) -> Sequence:
        made = Sequence(prompt, capacity=len(prompt) + output, first_wanted_row=len(prompt) - logits)
        for name, value in attributes.items():
            setattr(made, name, value)
        self.scheduler.add(made)
        return made

    def step(self) -> list[Sequence]:
        """One step; gives what ended in it."""
        ended: list[Sequence] = []
        slices = self.scheduler.next_step()
        for each in self.scheduler.running:
            if each not in self.seen:
                self.seen.add(each)
                self.admitted.append(each)
                self.charges.append(max(each.capacity - each.computed, MINIMUM))
        for rows in slices:
            rows.sequence.computed = rows.end
            if rows.sequence.pending:
                continue
            if rows.sequence.remaining_capacity:
                rows.sequence.append(7)
            else:
                self.scheduler.finish(rows.sequence)
                ended.append(rows.sequence)
        return ended

    def passed(self, waiting: Sequence, since: int) -> list[int]:
        """What those count with that were admitted from a moment on, until this one was."""
        return self.charges[since : self.admitted.index(waiting)]


@pytest.mark.parametrize(("priority", "bound"), [(0, QUANTUM), (-3, AGE)])
@pytest.mark.parametrize("large", [False, True])
def test_an_endless_stream_with_a_long_shared_prefix_starves_nobody(priority: int, bound: int, large: bool) -> None:
    """The stream is a run of a plan, all of whose prompts begin alike and are cached, and whose ranks are low."""
    server, rng = Server(), random.Random(0)

    def more(count: int) -> None:
        for _ in range(count):
            server.add((*PREFIX, *(rng.randint(2000, 3000) for _ in range(60))), lane="stream", run="stream", rank=0)

    more(20)
    for _ in range(30):
        more(len(server.step()))
    prompt = tuple(range(5000, 5000 + (POOL - 200 if large else 20)))
    waiting = server.add(prompt, lane="other", priority=priority)
    since = len(server.admitted)
    for _ in range(40_000):
        more(len(server.step()))
        if waiting in server.seen:
            break
    longest = len(PREFIX) + 60 + 8
    assert sum(server.passed(waiting, since)) <= bound + 2 * longest


@pytest.mark.parametrize(("priority", "bound"), [(0, QUANTUM), (-3, AGE)])
@pytest.mark.parametrize("logits", [1, 0])
def test_an_endless_stream_of_what_is_cached_to_its_end_starves_nobody(priority: int, bound: int, logits: int) -> None:
    """The prompts of scores, of which a row is computed, and prefills, of which none is."""
    server = Server()
    server.add(PREFIX, lane="stream")
    while not server.step():
        pass

    def more(count: int) -> None:
        for _ in range(count):
            server.add(PREFIX, output=0, logits=logits, lane="stream")

    more(20)
    waiting = server.add((9, 8, 7), lane="other", priority=priority)
    since = len(server.admitted)
    while waiting not in server.seen:
        more(len(server.step()))
        assert len(server.admitted) - since <= bound // MINIMUM + RUNNING
    passed = server.passed(waiting, since)
    assert len(passed) == bound // MINIMUM
    assert sum(passed) == bound


def test_a_batch_makes_progress_beside_an_endless_stream_of_higher_priority() -> None:
    """Of every two admissions one is the batch's, once it has aged."""
    server, rng = Server(), random.Random(1)
    batch = [server.add((9, number, 4), lane="batch", run="batch", rank=number) for number in range(4)]
    for _ in range(60_000):
        while len(server.scheduler._waiting) < 40:
            server.add((*PREFIX, *(rng.randint(2000, 3000) for _ in range(60))), lane=rng.random(), priority=2)
        server.step()
        if server.seen.issuperset(batch):
            break
    places = [server.admitted.index(each) for each in batch]
    assert places == sorted(places)
    longest = len(PREFIX) + 60 + 8
    assert all(sum(server.charges[first:second]) <= AGE + 2 * longest for first, second in pairwise([0, *places]))


def mixed() -> list[TraceRequest]:
    """A batch of 60 instances of two requests at the start, and a request of somebody else every 0.3 seconds."""
    rng = random.Random(3)
    rows: list[dict[str, Any]] = []
    for number in range(60):
        prompt = [*range(1, 600), *(rng.randint(1000, 9000) for _ in range(100))]
        rows.append({"id": f"b{number}", "tokens": prompt, "output": 40, "instance": f"b{number}"})
        said = [rng.randint(20_000, 30_000) for _ in range(40)]
        rows.append(
            {
                "id": f"c{number}",
                "tokens": [*prompt, *said, 5],
                "known": len(prompt),
                "output": 20,
                "after": [f"b{number}"],
                "instance": f"b{number}",
            }
        )
    for number in range(60):
        prompt = [rng.randint(40_000, 50_000) for _ in range(rng.randint(20, 400))]
        rows.append({"id": f"other {number}", "tokens": prompt, "output": 10, "arrival": 0.3 * (number + 1)})
    return read_trace((None, row) for row in rows)


def test_first_tokens_of_others_come_no_later_than_in_order_of_arrival_but_for_the_bound() -> None:
    """Requests of a batch pass each other by the order of its plan, which is what it asked for; and it ends sooner."""
    requests = mixed()
    reports = {policy: simulate(requests, policy=policy, kv_tokens=8000, batch=8) for policy in ("lmc", "fcfs")}
    ours, theirs = (by_population(requests, reports[policy]) for policy in ("lmc", "fcfs"))
    bound = stated(requests, 8)
    assert (ours["others"] <= theirs["others"] + bound).all()
    for share in (0.5, 0.99):
        assert np.quantile(ours["others"], share) <= np.quantile(theirs["others"], share)
    # The batch's own: most come sooner, those at the end of its plan later.
    own = "the batch's own"
    assert np.median(ours[own]) < np.median(theirs[own])
    assert ours[own].max() <= theirs[own].max() + bound
    assert ours["all"].mean() < theirs["all"].mean()
    assert reports["lmc"].predicted_seconds <= 1.02 * reports["fcfs"].predicted_seconds
