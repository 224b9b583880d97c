"""RateLimits of requests and tokens in any minute, and of requests at the same time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

WINDOW = 61.0
"""Seconds: any 60 of the server lie within, as long as a request is under way for less than one before it counts."""


@dataclass(eq=False)
class Charge:
    """Tokens of a request in a window; ``tokens`` is corrected once the answer tells."""

    at: float
    tokens: int


class RateLimits:
    """Belongs to one event loop. Requests start in the order in which they come.

    ``window`` is in seconds. A request whose tokens exceed the limit by themselves waits for an empty window.
    """

    def __init__(
        self,
        concurrency: int,
        requests: int | None = None,
        tokens: int | None = None,
        *,
        window: float = WINDOW,
    ) -> None:
        self._places = asyncio.Semaphore(concurrency)
        self._requests = requests
        self._tokens = tokens
        self._window = window
        self._charges: deque[Charge] = deque()
        self._total = 0
        self._gate = asyncio.Lock()
        self._held_until = 0.0

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncGenerator[Charge]:
        """Wait until a request of so many planned tokens may leave; the block is the time in which it is under way."""
        async with self._places:
            async with self._gate:
                charge = await self._charge(tokens)
            yield charge

    def correct(self, charge: Charge, tokens: int) -> None:
        """Count ``tokens`` for a request, as its answer tells."""
        if charge in self._charges:
            self._total += tokens - charge.tokens
        charge.tokens = tokens

    def hold(self, seconds: float) -> None:
        """Let no further request leave for ``seconds``: the provider asks for it."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    async def _charge(self, tokens: int) -> Charge:
        while (pause := self._pause(tokens)) > 0:
            await asyncio.sleep(pause)
        charge = Charge(time.monotonic(), tokens)
        if self._requests is not None or self._tokens is not None:
            self._charges.append(charge)
            self._total += tokens
        return charge

    def _pause(self, tokens: int) -> float:
        """Return the seconds until the next look; 0: now."""
        now = time.monotonic()
        if now < self._held_until:
            return self._held_until - now
        while self._charges and self._charges[0].at + self._window <= now:
            self._total -= self._charges.popleft().tokens
        if not self._charges:
            return 0.0
        is_full = self._requests is not None and len(self._charges) >= self._requests
        is_heavy = self._tokens is not None and self._total + tokens > self._tokens
        return max(self._charges[0].at + self._window - now, 0.001) if is_full or is_heavy else 0.0
