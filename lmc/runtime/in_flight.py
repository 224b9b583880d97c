"""A bound on the requests that run at the same time; who waits is served in the order of the schedule."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Priority = tuple[int, ...]
"""Position of the instance in the schedule, rank of the instruction, number of the request: lowest first.

For an instruction in a region, the ranks of those around it come before its own, each with the number of the round or
element where there are several.
"""


class InFlight:
    """At most ``limit`` requests at a time. Belongs to one event loop and one batch.

    ``start`` callbacks may end at once and ask for more from within: requests are started by one loop, never by
    recursion.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._free = limit
        self._waiting: list[tuple[Priority, int, Callable[[], bool]]] = []
        self._count = 0
        self._starting = False

    @property
    def is_full(self) -> bool:
        """True if a request would have to wait."""
        return self._free <= 0

    def request(self, priority: Priority, start: Callable[[], bool]) -> None:
        """Call ``start`` as soon as there is room. It gives False where nothing was started after all."""
        self._count += 1
        heapq.heappush(self._waiting, (priority, self._count, start))
        self._start_waiting()

    def release(self) -> None:
        """A request that was started has ended."""
        self._free += 1
        self._start_waiting()

    def _start_waiting(self) -> None:
        if self._starting:
            return
        self._starting = True
        try:
            while self._free > 0 and self._waiting:
                _, _, start = heapq.heappop(self._waiting)
                self._free -= 1
                if not start():
                    self._free += 1
        finally:
            self._starting = False
