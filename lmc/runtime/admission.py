"""How many instances of a batch are under way at once: a bound, and no more than the engine's KV pool has room for."""

from __future__ import annotations

import asyncio
from collections import deque


class Admission:
    """Lets instances in, first come first served. Belongs to one event loop.

    An instance that is under way comes back to its prefixes until it ends. With more of them than the pool holds they
    push out each other's, and a schedule that puts like beside like is for nothing. How much one needs shows as it
    runs: the largest seen so far stands for all, twice over until the first has ended. ``kv_tokens`` is the size of
    the pool (None: no bound known).
    """

    def __init__(self, limit: int, kv_tokens: int | None) -> None:
        self._limit = limit
        self._kv_tokens = kv_tokens
        self._active = 0
        self._largest = 0
        self._ended = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def counts_tokens(self) -> bool:
        """Whether ``seen`` makes a difference."""
        return self._kv_tokens is not None

    async def enter(self) -> None:
        """Wait for a place."""
        if not self._waiting and self._has_room:
            self._active += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give the place back."""
        self._active -= 1
        self._ended = True
        self._let_in()

    def seen(self, tokens: int) -> None:
        """An instance holds ``tokens`` of the pool by now."""
        self._largest = max(self._largest, tokens)

    @property
    def _has_room(self) -> bool:
        if self._active == 0:
            return True
        needed = (self._active + 1) * self._largest * (1 if self._ended else 2)
        return self._active < self._limit and (self._kv_tokens is None or needed <= self._kv_tokens)

    def _let_in(self) -> None:
        """Let one in, and look again once it has started and shown its first prompts."""
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        if self._waiting and self._has_room:
            self._active += 1
            self._waiting.popleft().set_result(None)
            asyncio.get_running_loop().call_soon(self._let_in)
