"""Limits of requests and tokens in any minute, and of requests at the same time."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from lmc.ir.engine.protocol import Place

WINDOW = 61.0
"""Seconds: any 60 of the server lie within, as long as what was sent arrives within one."""
_NEXT_LOOK = 0.25
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


@dataclass(eq=False)
class _Waiting:
    """A request that waits. ``came`` counts the requests; ``check`` raises what makes its waiting vain."""

    run: int | None
    rank: int
    came: int
    tokens: int
    most_bytes: int
    check: Callable[[], None]
    leaves: asyncio.Future[Charge]

    def __lt__(self, other: _Waiting) -> bool:
        return (self.rank, self.came) < (other.rank, other.came)


class _Turns:
    """Requests that wait. Runs take turns; within a run the lowest rank is first, then the one that came first."""

    def __init__(self) -> None:
        self._by_run: dict[int | None, list[_Waiting]] = {}

    def add(self, waiting: _Waiting) -> None:
        """Let a request wait."""
        heapq.heappush(self._by_run.setdefault(waiting.run, []), waiting)

    def first(self) -> _Waiting | None:
        """Return the request whose turn it is; None: none waits."""
        while self._by_run:
            run, requests = next(iter(self._by_run.items()))
            while requests and requests[0].leaves.done():  # cancelled
                heapq.heappop(requests)
            if requests:
                return requests[0]
            del self._by_run[run]
        return None

    def take(self, first: _Waiting) -> None:
        """Remove the request whose turn it is: its run is the last one now."""
        requests = self._by_run.pop(first.run)
        heapq.heappop(requests)
        if requests:
            self._by_run[first.run] = requests


class RateLimits:
    """Belongs to one event loop. Requests leave run by run in turns, those of a run in the order of their plan.

    The next one is chosen when it can leave, not before. Where it has too many tokens for the window, all wait until it
    has left: what passed it would take the tokens that it waits for. ``window`` is in seconds. A request whose tokens
    exceed the limit by themselves waits for an empty window.
    """

    def __init__(
        self,
        concurrency: int,
        requests: int | None = None,
        tokens: int | None = None,
        *,
        window: float = WINDOW,
    ) -> None:
        self._free = concurrency
        self._most_requests = requests
        self._most_tokens = tokens
        self._window = window
        self._sent: deque[Charge] = deque()
        self._requests = self._tokens = 0  # of the charges, sent or not
        self._turns = _Turns()
        self._came = 0
        self._held_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

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
            charge = await self._charged(tokens, most_bytes, place, check)
        token = UNDER_WAY.set(charge)
        try:
            yield charge
        finally:
            UNDER_WAY.reset(token)
            self.sent(charge)  # where it has failed before
            self._free += 1
            self._look()

    def sent(self, charge: Charge) -> None:
        """Let a charge count from now on: its request has left."""
        if charge.at is None:
            charge.at = _now()
            self._sent.append(charge)

    def correct(self, charge: Charge, tokens: int) -> None:
        """Count ``tokens`` for a request, as its answer tells."""
        if charge.counts:
            self._tokens += tokens - charge.tokens
        charge.tokens = tokens
        self._look()

    def hold(self, seconds: float) -> None:
        """Let no further request leave for ``seconds``: the provider asks for it."""
        self._held_until = max(self._held_until, _now() + seconds)

    async def _charged(self, tokens: int, most_bytes: int, place: Place | None, check: Callable[[], None]) -> Charge:
        """Wait until a request may leave. It has a place then, and a charge in the window."""
        run, rank = (None, 0) if place is None else (place.run, place.rank)
        self._came += 1
        leaves: asyncio.Future[Charge] = asyncio.get_running_loop().create_future()
        self._turns.add(_Waiting(run, rank, self._came, tokens, most_bytes, check, leaves))
        self._look()
        try:
            return await leaves
        except asyncio.CancelledError:
            if not leaves.cancelled() and leaves.exception() is None:  # it could leave meanwhile
                self._forget(leaves.result())
                self._free += 1
            self._look()
            raise

    def _look(self) -> None:
        """Let all leave that may, and look again when more may."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = _now()
        while self._sent and (self._sent[0].at or 0.0) + self._window <= now:
            self._forget(self._sent.popleft())
        while (first := self._turns.first()) is not None:
            try:
                first.check()
            except Exception as error:
                self._turns.take(first)
                first.leaves.set_exception(error)
                continue
            if not self._free or now < self._held_until or not self._fits(first.tokens):
                self._timer = asyncio.get_running_loop().call_later(self._pause(now), self._look)
                return
            self._turns.take(first)
            self._free -= 1
            self._requests += 1
            self._tokens += first.tokens
            first.leaves.set_result(Charge(self, first.tokens, first.most_bytes))

    def _forget(self, charge: Charge) -> None:
        """Take a charge out of the window."""
        charge.counts = False
        self._requests -= 1
        self._tokens -= charge.tokens

    def _fits(self, tokens: int) -> bool:
        """Return True if the window has room for a request of so many tokens."""
        if self._most_requests is not None and self._requests >= self._most_requests:
            return False
        return self._most_tokens is None or not 0 < self._tokens > self._most_tokens - tokens

    def _pause(self, now: float) -> float:
        """Return the seconds until the next look; the end of a request comes with a look of its own."""
        if now < self._held_until:
            return min(self._held_until - now, _NEXT_LOOK)
        oldest = (self._sent[0].at or 0.0) + self._window - now if self._sent else _NEXT_LOOK
        return min(max(oldest, 0.001), _NEXT_LOOK)


def _now() -> float:
    return asyncio.get_running_loop().time()
