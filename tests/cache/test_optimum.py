"""The offline optima beside what they stand for, tried out in full: every choice of what to keep, every order."""

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from lmc.cache.node import common_prefix_length
from lmc.cache.simulation.best_order import MOST_REQUESTS, best_order
from lmc.cache.simulation.optimum import computed_tokens, distinct_tokens, found_hits, optimal_hits, order_free_hits
from lmc.cache.simulation.recording import Timeline, Use
from lmc.cache.trace import TraceRequest, read_trace

Prefix = tuple[int, ...]


def prefixes(tokens: Sequence[int]) -> list[Prefix]:
    return [tuple(tokens[: end + 1]) for end in range(len(tokens))]


def random_requests(rng: random.Random, count: int) -> list[TraceRequest]:
    """Prompts that begin with one of four heads; some go on from the answer of another."""
    heads = [[head, *rng.choices(range(2), k=rng.randint(1, 3))] for head in range(4)]
    rows: list[dict[str, object]] = []
    prompts: list[list[int]] = []
    for number in range(count):
        after = [rng.randrange(number)] if number and rng.random() < 0.35 else []
        begin = [*prompts[after[0]], *rng.choices(range(2), k=2)] if after and rng.random() < 0.8 else rng.choice(heads)
        prompts.append([*begin, *rng.choices(range(2), k=rng.randint(1, 2))])
        rows.append({"id": number, "tokens": prompts[-1], "output": rng.randint(0, 2), "after": after})
    return read_trace((None, row) for row in rows)


def orders(requests: Sequence[TraceRequest]) -> Iterator[tuple[int, ...]]:
    for order in itertools.permutations(range(len(requests))):
        place = {requests[each].id: at for at, each in enumerate(order)}
        if all(place[before] < at for at, each in enumerate(order) for before in requests[each].after):
            yield order


def hits_that_keep_all(requests: Sequence[TraceRequest], order: Sequence[int]) -> int:
    seen: set[Prefix] = set()
    hits = 0
    for each in order:
        hits += sum(prefix in seen for prefix in prefixes(requests[each].tokens[:-1].tolist()))
        seen.update(prefixes(computed_tokens(requests[each]).tolist()))
    return hits


def timeline_of(requests: Sequence[TraceRequest], order: Sequence[int], rng: random.Random, most: int) -> Timeline:
    """Requests in this order, up to `most` at once; nothing is kept of those that ended, as in the smallest pool."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    shared: dict[int, int] = {}
    pages: list[int] = []
    running: list[int] = []
    done: set[str | int] = set()
    waiting = list(order)
    for event in itertools.count():
        if not waiting and not running:
            break
        blocked = waiting and not all(before in done for before in requests[waiting[0]].after)
        if not waiting or blocked or len(running) == most or (running and rng.random() < 0.5):
            done.add(requests[each := running.pop(rng.randrange(len(running)))].id)
            ends[each] = event
        else:
            new = waiting.pop(0)
            prompt = requests[new].tokens
            shared[new] = max((common_prefix_length(prompt, requests[each].tokens) for each in running), default=0)
            starts[new] = event
            running.append(new)
        prompts = {prefix for each in running for prefix in prefixes(requests[each].tokens.tolist())}
        pages.append(len(prompts) + sum(max(requests[each].generated.size - 1, 0) for each in running))
    uses: list[Use] = []
    for each in order:
        request, found = requests[each], shared[each]
        uses.append(Use(computed_tokens(request), request.tokens.size, starts[each], ends[each], False, found, found))
    return Timeline(tuple(uses), np.array(pages, np.int64))


def intervals_of(timeline: Timeline) -> tuple[int, list[range]]:
    """Hits that are there anyway, and for each other possible hit the slots over which its token has to be kept."""
    free = 0
    intervals: list[range] = []
    for use in timeline.uses:
        for depth, prefix in enumerate(prefixes(use.tokens[: use.prompt_length - 1].tolist())):
            left = [
                each.end for each in timeline.uses if each.end < use.start and prefix in prefixes(each.tokens.tolist())
            ]
            if depth < use.shared:
                free += 1
            elif left:
                intervals.append(range(max(left), use.start))
    return free, intervals


def most_by_every_choice(intervals: list[range], room: list[int]) -> int:
    """The most intervals that fit, by trying each of them in and out."""
    if not intervals:
        return 0
    first, *rest = intervals
    best = most_by_every_choice(rest, room)
    if all(room[slot] for slot in first):
        fewer = [pages - (slot in first) for slot, pages in enumerate(room)]
        best = max(best, 1 + most_by_every_choice(rest, fewer))
    return best


def test_min_is_the_best_of_all_choices_of_what_to_keep():
    lacked_room = 0
    for seed in range(400):
        rng = random.Random(seed)
        requests = random_requests(rng, rng.randint(4, 7))
        timeline = timeline_of(requests, range(len(requests)), rng, most=rng.randint(1, 3))
        free, intervals = intervals_of(timeline)
        if len(intervals) > 12:  # too many choices
            continue
        pool = int(timeline.pages_in_use.max()) + rng.randint(0, 1)
        best = free + most_by_every_choice(intervals, (pool - timeline.pages_in_use).tolist())
        lacked_room += best < free + len(intervals)
        assert optimal_hits(timeline, pool) == best
        assert optimal_hits(timeline, 10**6) == free + len(intervals)
        assert found_hits(timeline) == free
    assert lacked_room > 50


@pytest.mark.parametrize("seed", range(60))
def test_the_order_free_bound_is_what_the_best_order_hits_if_all_is_kept(seed: int):
    rng = random.Random(seed)
    requests = random_requests(rng, 6)
    alone = [request for request in requests if not request.after]
    bound = order_free_hits(alone)
    assert bound == max(hits_that_keep_all(alone, order) for order in itertools.permutations(range(len(alone))))
    # Who waits for another may have to come behind it, though it would have made a last token: one for each at most.
    best = max(hits_that_keep_all(requests, order) for order in orders(requests))
    assert best <= order_free_hits(requests) <= best + len(requests)


@pytest.mark.parametrize("seed", range(40))
def test_distinct_tokens_are_the_prefixes_that_are_computed(seed: int):
    requests = random_requests(random.Random(seed), 8)
    assert distinct_tokens(requests) == len(
        {each for one in requests for each in prefixes(computed_tokens(one).tolist())}
    )


def test_branch_and_bound_finds_the_best_of_all_orders():
    lacked_room = 0
    for seed in range(30):
        rng = random.Random(seed)
        requests = random_requests(rng, rng.randint(3, 6))
        pool = max(request.cached_length for request in requests) + rng.randint(0, 1)
        found = best_order(requests, pool)
        hits = {order: optimal_hits(timeline_of(requests, order, rng, most=1), pool) for order in orders(requests)}
        assert hits[found.order] == found.hits == max(hits.values())
        lacked_room += len({*hits.values()}) > 1
    assert lacked_room > 10


def test_depth_first_order_is_best_where_the_longest_request_fits():
    """SGLang's Theorem 3.1: with room for one request, groups one after the other hit all that can be hit."""
    rows = [{"id": each, "tokens": [each % 3] * 20 + [9, each], "output": 1} for each in range(9)]
    requests = read_trace((None, row) for row in rows)
    found = best_order(requests, pool=22)
    assert found.hits == order_free_hits(requests) == 6 * 20 + 6
    assert len([1 for one, other in itertools.pairwise(found.order) if one % 3 != other % 3]) == 2


def test_a_token_that_a_running_request_holds_costs_no_room():
    tokens = np.arange(10, dtype=np.int32)
    uses = tuple(Use(tokens, 10, at, 5 - at, False, 10 if at else 0, 10 if at else 0) for at in range(3))
    timeline = Timeline(uses, np.array([10, 10, 10, 10, 10, 0]))
    assert optimal_hits(timeline, 10) == found_hits(timeline) == 18


def test_a_long_trace_takes_seconds():
    rng = np.random.default_rng(0)
    heads = rng.integers(0, 1000, (20, 1000), dtype=np.int32)
    uses: list[Use] = []
    for number in range(2000):
        tokens = np.concatenate([heads[number % 20], rng.integers(0, 1000, 1000, dtype=np.int32)])
        uses.append(Use(tokens, 1900, 2 * number, 2 * number + 1, False, 0, 0))
    timeline = Timeline(tuple(uses), np.full(4000, 2000))
    # Pages for 10 heads beside the running request; of 20 that come in turn, Belady keeps 10 less the one that runs.
    hits = optimal_hits(timeline, 12_000)
    assert 0.45 < hits / (2000 * 1000) < 0.55


def test_what_does_not_fit_is_refused():
    use = Use(np.arange(4, dtype=np.int32), 3, 0, 1, False, 0, 0)
    with pytest.raises(ValueError, match="held 4 pages, of a pool of 3"):
        optimal_hits(Timeline((use,), np.array([4, 0])), 3)
    rows = [{"id": each, "tokens": [1, 2, 3], "output": 2} for each in range(MOST_REQUESTS + 1)]
    requests = read_trace((None, row) for row in rows)
    with pytest.raises(ValueError, match="11 requests have too many orders to try: at most 10"):
        best_order(requests, 100)
    with pytest.raises(ValueError, match="a request of 4 tokens does not fit a pool of 3 pages"):
        best_order(requests[:2], 3)
