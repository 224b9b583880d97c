"""Lookahead for a trace: the cache's knowledge of its requests before they can be served."""

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from lmc.cache.expected import Expectation
from lmc.cache.memory import SequenceMemory
from lmc.cache.node import Tokens, common_prefix_length
from lmc.cache.sequence import Namespace
from lmc.cache.sequence import Sequence as TokenSequence
from lmc.cache.trace import TraceRequest

Ranking = Callable[[Sequence[TraceRequest]], Sequence[int]]


class Foresight:
    """Says of each request that is still to come when that will be, and how it begins.

    The instances that come at one time (that of the first request of each) are one run; nothing is said of it before.
    Then the prefixes that are known at first are expected, each at its rank; of a request that comes after others, what
    it shares with each of these and its answer once that has ended; and all of its prompt when it can be served. How
    long an answer is stays unknown; only its expected length is known.
    """

    def __init__(
        self,
        requests: Sequence[TraceRequest],
        followers: Sequence[Sequence[int]],
        memory: SequenceMemory,
        rank: Ranking,
    ) -> None:
        self._requests = requests
        self._followers = followers
        self._memory = memory
        self._rank = rank
        self._places: dict[int, tuple[int, int]] = {}
        self._expected: dict[int, Expectation | None] = {}
        self._runs = 0
        earliest: dict[str | int, float] = {}
        starts: dict[int, float] = {}
        for request in requests:
            earliest[request.id] = at = max([request.arrival, *(earliest[each] for each in request.after)])
            starts[request.instance] = min(at, starts.get(request.instance, at))
        when = [starts[request.instance] for request in requests]
        order = sorted(range(len(requests)), key=lambda position: when[position], reverse=True)
        # The next one to come is last; in each, positions are in the order of the trace.
        self._to_come = [(start, list(positions)) for start, positions in groupby(order, key=when.__getitem__)]

    def advance(self, clock: float) -> None:
        """Send the hints of all runs that have arrived."""
        while self._to_come and self._to_come[-1][0] <= clock:
            _, positions = self._to_come.pop()
            ranks = self._rank([self._requests[position] for position in positions])
            for position, rank in zip(positions, ranks, strict=True):
                self._places[position] = self._runs, rank
                self._expect(position, self._requests[position].known)
            self._runs += 1

    def place(self, sequence: TokenSequence, position: int) -> None:
        """Give the sequence of a request its place in its run, and the length that is expected."""
        sequence.run, sequence.rank = self._places[position]
        sequence.lane = sequence.run
        sequence.expected_length = sequence.length + self._requests[position].expected

    def enters(self, position: int) -> None:
        """A request waits at the scheduler, who expects it from now on."""
        self._memory.withdraw(self._expected.pop(position))

    def ends(self, position: int) -> None:
        """Handle the end of a request: its successors are now known to begin as it did, where they do."""
        whole: Tokens | None = None
        for follower in self._followers[position]:
            expectation = self._expected.get(follower)
            if expectation is None:
                continue  # the policy does not use it
            if whole is None:
                request = self._requests[position]
                whole = np.concatenate([request.tokens, request.generated])
            length = common_prefix_length(self._requests[follower].tokens, whole)
            if length > expectation.tokens.size:
                self._expect(follower, length)
                self._memory.withdraw(expectation)

    def _expect(self, position: int, length: int) -> None:
        run, rank = self._places[position]
        tokens = self._requests[position].tokens[:length]
        self._expected[position] = self._memory.expect(tokens, Namespace(), run, rank)


def as_they_come(requests: Sequence[TraceRequest]) -> list[int]:
    """Ranks of requests that are served first come, first served: by how many come before each in its longest chain."""
    depths: dict[str | int, int] = {}
    for request in requests:
        depths[request.id] = 1 + max((depths.get(each, 0) for each in request.after), default=0)
    order = sorted(range(len(requests)), key=lambda place: (depths[requests[place].id], place))
    ranks = [0] * len(requests)
    for rank, place in enumerate(order):
        ranks[place] = rank
    return ranks
