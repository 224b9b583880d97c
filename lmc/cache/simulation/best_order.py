"""The best order of a few requests, by branch and bound: what any scheduler could reach, one request at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmc.cache.simulation.optimum import Run, computed_tokens
from lmc.cache.trace import TraceRequest

MOST_REQUESTS = 10


@dataclass(frozen=True, slots=True)
class BestOrder:
    """Positions of the requests in an order that hits the most tokens, and how many these are."""

    order: tuple[int, ...]
    hits: int


def best_order(requests: Sequence[TraceRequest], pool: int) -> BestOrder:
    """The order of a whole small trace that hits the most tokens, by exact MIN, among those that respect `after`.

    Requests run one at a time, with a pool of so many pages; arrivals are left out of account. Orders are tried
    depth-first, and left where even keeping all that was computed could not make up for what was lost so far.

    Raises:
        ValueError: more than `MOST_REQUESTS`, or one that does not fit the pool.
    """
    if len(requests) > MOST_REQUESTS:
        raise ValueError(f"{len(requests)} requests have too many orders to try: at most {MOST_REQUESTS}")
    largest = max((request.cached_length for request in requests), default=0)
    if largest > pool:
        raise ValueError(f"a request of {largest} tokens does not fit a pool of {pool} pages")
    search = _Search(requests, pool)
    search.go_on(_State((), 0, [], [-1] * search.lengths.size))
    return search.best


@dataclass(slots=True)
class _State:
    """Requests that ran one after the other: pages left while each did, and who used a run last (by its place)."""

    order: tuple[int, ...]
    hits: int
    room: list[int]
    last: list[int]


class _Search:
    def __init__(self, requests: Sequence[TraceRequest], pool: int) -> None:
        trie = Run(np.empty(0, np.int32))
        for request in requests:
            trie.inserted(request.tokens[:-1])
            trie.inserted(computed_tokens(request))
        number = {id(run): index for index, run in enumerate(trie.below())}
        runs = sorted(trie.below(), key=lambda run: number[id(run)])
        self.lengths = np.array([run.tokens.size for run in runs], np.int64)
        self.asked = [[number[id(run)] for run in trie.inserted(each.tokens[:-1])] for each in requests]
        self.used = [[number[id(run)] for run in trie.inserted(computed_tokens(each))] for each in requests]
        self.pages = [pool - int(self.lengths[used].sum()) for used in self.used]
        place = {request.id: index for index, request in enumerate(requests)}
        self.after = [{place[each] for each in request.after} for request in requests]
        self.limits: dict[frozenset[int], int] = {}
        self.best = BestOrder((), -1)

    def go_on(self, state: _State) -> None:
        """Try all that can follow, the one that hits most first."""
        if len(state.order) == len(self.asked):
            self.best = max(self.best, BestOrder(state.order, state.hits), key=lambda found: found.hits)
            return
        done = set(state.order)
        ready = [each for each in range(len(self.asked)) if each not in done and self.after[each] <= done]
        following = [self._then(state, each) for each in ready]
        for after in sorted(following, key=lambda each: each.hits, reverse=True):
            if after.hits + self.limit(frozenset(after.order)) > self.best.hits:
                self.go_on(after)

    def _then(self, state: _State, request: int) -> _State:
        """A request after others: each run it asks for is a hit where it had room since its last use (`_Room.keep`)."""
        now = len(state.order)
        room = state.room.copy()
        last = state.last.copy()
        hits = state.hits
        for run in self.asked[request]:
            if last[run] < 0:
                break
            between = range(last[run] + 1, now)
            kept = min((room[slot] for slot in between), default=int(self.lengths[run]))
            kept = min(kept, int(self.lengths[run]))
            for slot in between:
                room[slot] -= kept
            hits += kept
        for run in self.used[request]:
            last[run] = now
        return _State((*state.order, request), hits, [*room, self.pages[request]], last)

    def limit(self, done: frozenset[int]) -> int:
        """Return an upper bound on the hits of the rest, as if each token used before were kept for ever."""
        if done not in self.limits:
            asked = np.zeros_like(self.lengths)
            there = np.zeros(asked.size, np.bool_)
            for request in range(len(self.asked)):
                there[self.used[request]] |= request in done
                if request not in done:
                    asked[self.asked[request]] += 1
                    there[self.used[request][len(self.asked[request]) :]] = True
            self.limits[done] = int(self.lengths @ np.maximum(asked - ~there, 0))
        return self.limits[done]
