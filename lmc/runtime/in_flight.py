"""Bounds on what runs at the same time: requests, and instances. Who waits is served in the order of the schedule."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from lmc.cache.batch_order.live import LiveTokens

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


class PoolRoom:
    """At most as many instances at a time as a KV pool of so many ``tokens`` holds together, and at least one.

    For an engine that does not admit requests by its memory itself, as a server that serves them as they come: with
    more instances, each finds its contexts evicted by the others. Belongs to one event loop and one batch.
    """

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._running: dict[int, LiveTokens] = {}
        self._shared: dict[int, int] = {}
        """Tokens that each one shares with the one that runs before it."""
        self._ended: int | None = None
        """The least that those share that ended behind the last one that runs; None: there are none."""
        self._last = -1
        """The last position that has begun, or was cancelled."""
        self._waiting: list[tuple[int, LiveTokens, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def running(self, position: int, size: LiveTokens) -> AsyncGenerator[None]:
        """Wait until there is room for the instance at a position of the schedule; it runs inside of the block."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (position, size, turn))
        self._start_waiting()
        try:
            await turn
            yield
        finally:
            turn.cancel()  # where it still waits
            self._end(position)
            self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting:
            position, size, turn = self._waiting[0]
            before = self._ended
            self._start(position, size)
            if turn.cancelled():  # those behind it share with it, and not all of that with those before it
                self._end(position)
            else:
                if len(self._running) > 1 and self._used() > self._tokens:
                    del self._running[position], self._shared[position]
                    self._ended = before
                    return
                turn.set_result(None)
            self._last = max(self._last, position)
            heapq.heappop(self._waiting)

    def _start(self, position: int, size: LiveTokens) -> None:
        # With the one before it in the schedule, if that has begun.
        shared = size.whole - size.new if position == self._last + 1 else 0
        if position > max(self._running, default=-1):
            shared, self._ended = shared if self._ended is None else min(shared, self._ended), None
        self._running[position], self._shared[position] = size, shared

    def _end(self, position: int) -> None:
        if self._running.pop(position, None) is None:
            return
        shared = self._shared.pop(position)
        behind = min((each for each in self._running if each > position), default=None)
        if behind is not None:
            self._shared[behind] = min(self._shared[behind], shared)
        else:
            self._ended = shared if self._ended is None else min(self._ended, shared)

    def _used(self) -> int:
        """Return the tokens of those that run, together."""
        first = min(self._running)
        return sum(size.whole - self._shared[place] * (place != first) for place, size in self._running.items())
