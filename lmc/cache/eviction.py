"""Eviction policies: the choice of the leaf of the radix tree that loses its tail when pages are needed."""

import heapq
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from lmc.cache.expected import Expectation, ExpectedUses
from lmc.cache.node import RadixNode, Tokens, whole_path

_SLACK = 64  # outdated entries that a heap tolerates before they are dropped


class Eviction(ABC):
    """Ranks the leaves that may be evicted. The cache offers each leaf when it becomes one or was used.

    ``admissions`` counts the requests that were admitted; ages are measured by it.
    """

    def __init__(self) -> None:
        self.admissions = 0
        self._serial = 0

    def admitted(self, run: Hashable, rank: int) -> None:  # noqa: ARG002
        """A request was admitted, with its ``rank`` in a run of a plan (None: in none)."""
        self.admissions += 1

    def used(self, path: Sequence[RadixNode], run: Hashable) -> None:  # noqa: ARG002
        """A request used the nodes of a path. ``run`` is the run of a plan that it belongs to, None for none."""
        return

    def has_uses_of_new(self, node: RadixNode, run: Hashable) -> bool:  # noqa: ARG002
        """Return True if a leaf that a run uses now has the uses of tokens that this run adds now."""
        return not node.hits

    @abstractmethod
    def offer(self, node: RadixNode) -> None:
        """Take in a leaf that may be evicted, or look again at one whose use has changed."""

    @abstractmethod
    def victim(self) -> tuple[RadixNode, int] | None:
        """The leaf to cut next, and how many tokens of its end go before another one may come first; None if none."""

    def trimmed(self, node: RadixNode, count: int) -> None:  # noqa: ARG002
        """``count`` tokens were cut from the end of a leaf that ``victim`` gave, and some are left."""
        return

    @abstractmethod
    def candidates(self) -> Iterator[RadixNode]:
        """The leaves that were offered and may be evicted."""


class _Heap:
    """Leaves by a key, lowest first. Of several entries of a leaf only the latest counts, in whichever heap it is."""

    def __init__(self) -> None:
        self._entries: list[tuple[Any, int, RadixNode]] = []
        self._live = 0

    def push(self, key: Any, serial: int, node: RadixNode) -> None:
        if len(self._entries) > 2 * self._live + _SLACK:
            self._entries = [entry for entry in self._entries if _counts(entry)]
            self._live = len(self._entries)
            heapq.heapify(self._entries)
        heapq.heappush(self._entries, (key, serial, node))

    def top(self) -> tuple[Any, RadixNode] | None:
        while self._entries:
            if _counts(self._entries[0]):
                key, _, node = self._entries[0]
                return key, node
            heapq.heappop(self._entries)
        return None

    def nodes(self) -> Iterator[RadixNode]:
        return (entry[2] for entry in self._entries if _counts(entry))


def _counts(entry: tuple[Any, int, RadixNode]) -> bool:
    return entry[2].evictable and entry[2].offered == entry[1]


class _ByKey(Eviction):
    """The leaf with the lowest key goes, all of it."""

    def __init__(self) -> None:
        super().__init__()
        self._heap = _Heap()

    @abstractmethod
    def key(self, node: RadixNode) -> Any:
        """Return the sort key of a leaf; it changes only when the leaf is used."""

    def offer(self, node: RadixNode) -> None:
        self._serial += 1
        node.offered = self._serial
        self._heap.push(self.key(node), self._serial, node)

    def victim(self) -> tuple[RadixNode, int] | None:
        top = self._heap.top()
        return None if top is None else (top[1], top[1].length)

    def candidates(self) -> Iterator[RadixNode]:
        return self._heap.nodes()


class LeastRecentlyUsed(_ByKey):
    """The leaf that was used longest ago goes first (as in SGLang's RadixAttention, arXiv 2312.07104)."""

    def key(self, node: RadixNode) -> Any:
        return node.last_access

    def has_uses_of_new(self, node: RadixNode, run: Hashable) -> bool:  # noqa: ARG002
        return True


class LeastFrequentlyUsed(_ByKey):
    """The leaf that was found least often goes first, of those the one used longest ago."""

    def key(self, node: RadixNode) -> Any:
        return node.hits, node.last_access


class NextUse(Eviction):
    """Evicts the farthest next use: Belady's rule (IBM Systems Journal 5(2), 1966) on known uses.

    By the facts known about the end of a leaf:

    - *expected*: it is used again at a rank; its distance is that rank less ``now``, the highest rank admitted.
    - *dead*: no expected prompt reaches it, and only the run of a plan that is under way used it, which has
      no further use. It goes first, least recently used first.
    - *aged*: other requests used it, or a run that has ended. Its next use is unknown; the distance is taken to be its
      age, in admissions. If it is expected too, the shorter distance counts.

    Ranks are relative to the beginning of a run: its rank 0 is taken to come next.

    The farthest goes first, and only as much of a leaf as has the same next use as its end. A run is under way while it
    has expectations or sequences that hold pages.
    """

    def __init__(self, expected: ExpectedUses | None = None) -> None:
        super().__init__()
        self.expected = ExpectedUses() if expected is None else expected
        self.now = 0
        self._dead, self._aged, self._expected = _Heap(), _Heap(), _Heap()
        self._under_way: Counter[Hashable] = Counter()
        self._episodes: dict[Hashable, int] = {}
        self._starts: dict[int, int] = {}

    def begin(self, run: Hashable) -> None:
        """One more expectation or sequence of a run (None: of none)."""
        if run is None:
            return
        if not self._under_way[run]:
            self._serial += 1
            self._episodes[run] = self._serial
            self._starts[self._serial] = self.now
        self._under_way[run] += 1

    def end(self, run: Hashable) -> None:
        """One fewer. With the last one the run is over; if it goes on later, what it used before is others' to it."""
        if run is None:
            return
        self._under_way[run] -= 1
        if not self._under_way[run]:
            del self._under_way[run]
            del self._starts[self._episodes.pop(run)]

    def admitted(self, run: Hashable, rank: int) -> None:
        super().admitted(run, rank)
        if run is not None:
            self.now = max(self.now, self._start(run) + rank)

    def expect(self, tokens: Sequence[int] | Tokens, run: Hashable, rank: int, extra_key: Hashable) -> Expectation:
        """Note that a run will ask for tokens at a rank; where it is None, that somebody will after ``rank`` others."""
        self.begin(run)
        return self.expected.expect(tokens, self._start(run) + rank, extra_key, run)

    def withdraw(self, expectation: Expectation) -> None:
        """Take back what ``expect`` gave. The cache is to reconsider what it has of the tokens."""
        self.expected.withdraw(expectation)
        self.end(expectation.run)

    def _start(self, run: Hashable) -> int:
        """Return the offset of a run's ranks: the highest rank that was admitted when it began."""
        return self._starts.get(self._episodes.get(run, 0), self.now)

    def used(self, path: Sequence[RadixNode], run: Hashable) -> None:
        episode, now = self._episodes.get(run), self.admissions
        for node in path:
            if episode is None:
                node.used_by_others_at = now
            elif node.episode is not None and node.episode != episode:
                node.used_by_others_at = node.used_at
            node.episode, node.used_at = episode or 0, now

    def has_uses_of_new(self, node: RadixNode, run: Hashable) -> bool:
        episode = self._episodes.get(run)
        return episode is None or (node.episode == episode and node.used_by_others_at is None)

    def offer(self, node: RadixNode) -> None:
        rank, length = self._judge(node)
        self._serial += 1
        node.offered = self._serial
        node.judged = (self.expected.version, rank, length)
        since = self._since(node)
        if rank is not None and (since is None or rank - self.now <= self.admissions - since):
            self._expected.push((-rank, node.last_access), self._serial, node)
        elif since is not None:
            self._aged.push(since, self._serial, node)
        else:
            self._dead.push(node.last_access, self._serial, node)

    def victim(self) -> tuple[RadixNode, int] | None:
        node = self._first_dead()
        if node is None:
            aged, expected = self._farthest(self._aged), self._farthest(self._expected)
            node = max(aged, expected, key=lambda found: found[0])[1]
        return None if node is None else (node, min(node.judged[2], node.length))

    def trimmed(self, node: RadixNode, count: int) -> None:
        version, rank, length = node.judged
        if count < length and version == self.expected.version:
            node.judged = (version, rank, length - count)
        else:
            self.offer(node)

    def candidates(self) -> Iterator[RadixNode]:
        for heap in (self._dead, self._aged, self._expected):
            yield from heap.nodes()

    def _first_dead(self) -> RadixNode | None:
        while (top := self._dead.top()) is not None:
            rank = self._refreshed(top[1])
            if rank is None and self._since(top[1]) is None:
                return top[1]
            self.offer(top[1])
        return None

    def _farthest(self, heap: _Heap) -> tuple[float, RadixNode | None]:
        """The farthest leaf of a heap, and its distance.

        Where something else is known of the first one by now it is offered again. What became farther was offered when
        that happened, so entries are at most too far ahead.
        """
        while (top := heap.top()) is not None:
            key, node = top
            since, rank = self._since(node), self._refreshed(node)
            known = since == key if heap is self._aged else rank is not None and -rank == key[0]
            if known:
                age = math.inf if since is None else self.admissions - since
                distance = math.inf if rank is None else rank - self.now
                if heap is (self._aged if age < distance else self._expected):
                    return min(age, distance), node
            self.offer(node)
        return -math.inf, None

    def _refreshed(self, node: RadixNode) -> int | None:
        """Return the expected next use of the end of a leaf, up to date."""
        if node.judged[0] != self.expected.version:
            node.judged = (self.expected.version, *self._judge(node))
        return node.judged[1]

    def _judge(self, node: RadixNode) -> tuple[int | None, int]:
        """Return the next use of the end of a leaf, and the number of its tokens with the same use."""
        rank, length = self.expected.tail(*whole_path(node))
        return rank, min(length, node.length)

    def _since(self, node: RadixNode) -> int | None:
        """The admission of the last use of a leaf whose next use is unknown."""
        return node.used_by_others_at if node.episode in self._starts else node.used_at
