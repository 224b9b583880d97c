"""Deadlines of requests."""

import heapq
import time
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)
SLACK = 64  # entries of ended requests tolerated before the heap is built again


class Deadlines(Generic[T]):
    """Requests with the moment (of `time.monotonic`) until which they may run. Belongs to one thread."""

    def __init__(self) -> None:
        self._timeouts: dict[T, float] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._timeouts)

    def watch(self, request: T, *, start: float, timeout: float) -> None:
        """The request may run until `timeout` seconds after `start`."""
        self._timeouts[request] = timeout
        self._count += 1
        heapq.heappush(self._heap, (start + timeout, self._count, request))  # the count: requests are never compared

    def forget(self, request: T) -> None:
        """A request ended; nothing where it had no deadline."""
        if self._timeouts.pop(request, None) is None:
            return
        if len(self._heap) > 2 * len(self._timeouts) + SLACK:
            self._heap = [entry for entry in self._heap if entry[2] in self._timeouts]
            heapq.heapify(self._heap)

    def expired(self) -> Iterator[tuple[T, float]]:
        """Yield expired requests with their timeouts, the longest overdue first; they are forgotten."""
        while self._heap and self._heap[0][0] <= time.monotonic():
            _, _, request = heapq.heappop(self._heap)
            timeout = self._timeouts.pop(request, None)
            if timeout is not None:
                yield request, timeout
