"""The order in which the waiting sequences of one lane are admitted."""

import heapq
from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import ClassVar

from lmc.cache.radix import RadixCache
from lmc.cache.sequence import Sequence

MATCHED_AT_MOST = 128
"""With more sequences waiting, `LongestPrefix` takes them as they came: to match all in each step costs too much."""


class LaneOrder(ABC):
    """Waiting sequences, and which of them is first. The first stays so until it is taken out or one is added.

    ``FOLLOWS_CACHE`` where the order hangs on what is cached: then ``begin_step`` is called at every step.
    """

    FOLLOWS_CACHE: ClassVar[bool] = False

    def __init__(self) -> None:
        self._arrived: OrderedDict[Sequence, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._arrived)

    def __contains__(self, sequence: Sequence) -> bool:
        return sequence in self._arrived

    @property
    def oldest(self) -> Sequence:
        """The sequence that came first."""
        return next(iter(self._arrived))

    @property
    @abstractmethod
    def first(self) -> Sequence:
        """The sequence to admit next; there is one."""

    def add(self, sequence: Sequence) -> None:
        """Take in a sequence."""
        self._arrived[sequence] = None

    def remove(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it stands. Raises ``KeyError`` where it is not here."""
        del self._arrived[sequence]

    def begin_step(self) -> None:
        """A step is planned: what was cached may have changed."""
        return


class Arrival(LaneOrder):
    """First come, first served."""

    @property
    def first(self) -> Sequence:
        return self.oldest


class ByRank(LaneOrder):
    """In the order of the plan: lowest rank first, of equal ones as they came."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int, Sequence]] = []
        self._serial = 0

    @property
    def first(self) -> Sequence:
        while self._heap[0][2] not in self._arrived:
            heapq.heappop(self._heap)
        return self._heap[0][2]

    def add(self, sequence: Sequence) -> None:
        super().add(sequence)
        self._serial += 1
        heapq.heappush(self._heap, (sequence.rank, self._serial, sequence))

    def remove(self, sequence: Sequence) -> None:
        super().remove(sequence)
        if len(self._heap) > 2 * len(self) + MATCHED_AT_MOST:
            self._heap = [entry for entry in self._heap if entry[2] in self._arrived]
            heapq.heapify(self._heap)


class LongestPrefix(LaneOrder):
    """Longest cached prefix first, then as they came; matched once a step (SGLang, arXiv 2312.07104, section 3)."""

    FOLLOWS_CACHE: ClassVar[bool] = True

    def __init__(self, radix: RadixCache) -> None:
        super().__init__()
        self._radix = radix
        self._sorted: list[Sequence] | None = None

    @property
    def first(self) -> Sequence:
        if len(self) > MATCHED_AT_MOST:
            return self.oldest
        if self._sorted is None:
            lengths = {each: self._match(each) for each in self._arrived}
            # The best is last, and of equal ones the oldest: sorting is stable.
            self._sorted = sorted(lengths, key=lengths.__getitem__, reverse=True)[::-1]
        while self._sorted and self._sorted[-1] not in self._arrived:
            self._sorted.pop()
        return self._sorted[-1] if self._sorted else self.oldest

    def begin_step(self) -> None:
        self._sorted = None

    def _match(self, sequence: Sequence) -> int:
        found = self._radix.match_prefix(sequence.settled_tokens, sequence.cache_key).length
        return min(found, sequence.first_wanted_row)  # as many as it need not compute
