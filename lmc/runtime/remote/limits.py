"""Limits of requests and tokens in any minute, and of requests at the same time."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from lmc.ir.engine.protocol import Place

WINDOW = 61.0
"""Seconds: any 60 of the server lie within, as long as what was sent arrives within one."""
_NEXT_LOOK = 0.05
"""Seconds between looks where all that fills a window waits for a connection."""


_NEXT_CHECK = 0.25
"""Seconds after which what makes the waiting vain is noticed."""


@dataclass(eq=False)
class Charge:
    """A request in a window.

    ``tokens`` is corrected once the answer tells. ``at`` is when it was sent: None: not yet, but it counts.
    ``may_have_arrived``: there was a connection, and a part of it was sent. ``most_bytes`` its answer may have.
    ``counts``: it is in the window. ``counts_plan``: the provider counts what was planned, not what was used.
    """

    limits: RateLimits
    tokens: int
    most_bytes: int
    at: float | None = None
    may_have_arrived: bool = False
    counts: bool = True
    counts_plan: bool = False


UNDER_WAY: ContextVar[Charge | None] = ContextVar("UNDER_WAY", default=None)
"""The charge of the request that this task has sent, or is about to."""


class Turns:
    """A lock whose holders come run by run in turns; within a run the lowest rank is first, then who came first."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: dict[int | None, list[tuple[int, int, asyncio.Future[None]]]] = {}
        self._came = 0

    @asynccontextmanager
    async def turn(self, place: Place | None) -> AsyncGenerator[None]:
        """Wait for the turn of a request; the block is the time in which no other has one."""
        await self._wait(place)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, place: Place | None) -> None:
        if not self._is_held:
            self._is_held = True
            return
        run, rank = (None, 0) if place is None else (place.run, place.rank)
        came = asyncio.get_running_loop().create_future()
        self._came += 1
        heapq.heappush(self._waiting.setdefault(run, []), (rank, self._came, came))
        try:
            await came
        except asyncio.CancelledError:
            if came.done() and not came.cancelled():  # its turn has come meanwhile
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            run = next(iter(self._waiting))
            requests = self._waiting.pop(run)
            _, _, came = heapq.heappop(requests)
            if requests:
                self._waiting[run] = requests  # behind the others
            if not came.done():
                came.set_result(None)
                return
        self._is_held = False


class RateLimits:
    """Belongs to one event loop. Requests leave run by run in turns, those of a run in the order of their plan.

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
        self._most_requests = requests
        self._most_tokens = tokens
        self._window = window
        self._sent: deque[Charge] = deque()
        self._requests = self._tokens = 0  # of the charges, sent or not
        self._turns = Turns()
        self._held_until = 0.0

    @asynccontextmanager
    async def under_way(
        self,
        tokens: int,
        most_bytes: int,
        place: Place | None = None,
        check: Callable[[], None] = lambda: None,
        waits: AbstractContextManager[None] | None = None,
    ) -> AsyncGenerator[Charge]:
        """Wait until a request of so many planned tokens may leave; the block is the time in which it is under way.

        ``place`` is that in the plan. ``check`` raises what makes the waiting vain. It waits inside of ``waits``.
        """
        with waits or nullcontext():
            async with self._turns.turn(place):
                await self._places.acquire()
                try:
                    charge = await self._charge(tokens, most_bytes, check)
                except BaseException:
                    self._places.release()
                    raise
        token = UNDER_WAY.set(charge)
        try:
            yield charge
        finally:
            UNDER_WAY.reset(token)
            self.sent(charge)  # where it has failed before
            self._places.release()

    def sent(self, charge: Charge) -> None:
        """Let a charge count from now on: its request has left."""
        if charge.at is None:
            charge.at = time.monotonic()
            self._sent.append(charge)

    def correct(self, charge: Charge, tokens: int) -> None:
        """Count ``tokens`` for a request, as its answer tells."""
        if charge.counts:
            self._tokens += tokens - charge.tokens
        charge.tokens = tokens

    def hold(self, seconds: float) -> None:
        """Let no further request leave for ``seconds``: the provider asks for it."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    async def _charge(self, tokens: int, most_bytes: int, check: Callable[[], None]) -> Charge:
        check()
        while (pause := self._pause(tokens)) > 0:
            await asyncio.sleep(min(pause, _NEXT_CHECK))
            check()
        self._requests += 1
        self._tokens += tokens
        return Charge(self, tokens, most_bytes)

    def _pause(self, tokens: int) -> float:
        """Return the seconds until the next look; 0: now."""
        now = time.monotonic()
        if now < self._held_until:
            return self._held_until - now
        while self._sent and (self._sent[0].at or 0.0) + self._window <= now:
            self._requests -= 1
            gone = self._sent.popleft()
            gone.counts = False
            self._tokens -= gone.tokens
        is_full = self._most_requests is not None and self._requests >= self._most_requests
        is_heavy = self._most_tokens is not None and 0 < self._tokens > self._most_tokens - tokens
        if not is_full and not is_heavy:
            return 0.0
        return max((self._sent[0].at or 0.0) + self._window - now, 0.001) if self._sent else _NEXT_LOOK
