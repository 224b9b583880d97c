"""The order in which requests leave under the limits of a target, in a loop whose time passes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Place
from lmc.runtime.remote.limits import RateLimits

WINDOW = 10.0


class HastyLoop(asyncio.SelectorEventLoop):
    """A loop that waits for nothing: its time is that of the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        loop: Any = self
        if not loop._ready and loop._scheduled:
            self.now = max(self.now, loop._scheduled[0]._when)
        once: Any = super()
        once._run_once()


def hastily(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=HastyLoop) as runner:
        runner.run(work)


@dataclass(eq=False)
class Asked:
    """A request: when it comes, for how long it is under way, and when it is cancelled."""

    at: int
    place: Place | None
    tokens: int
    seconds: int
    cancelled_after: int | None
    used: int | None
    came: int = -1
    left: float | None = None
    is_over: bool = False

    @property
    def run(self) -> int | None:
        return None if self.place is None else self.place.run

    @property
    def key(self) -> tuple[int, int]:
        return (0 if self.place is None else self.place.rank, self.came)


places = st.none() | st.builds(Place, st.sampled_from([0, 0, 0, 1]), st.integers(0, 5))
asked = st.builds(
    Asked,
    st.integers(0, 5),
    places,
    st.integers(1, 50),
    st.integers(0, 15),
    st.none() | st.none() | st.integers(0, 20),
    st.none() | st.integers(0, 50),
)


@dataclass
class Model:
    """The requests that came, and what limits them."""

    concurrency: int
    requests: int | None
    tokens: int | None
    limits: RateLimits
    waiting: list[Asked] = field(default_factory=list[Asked])
    window: list[tuple[float, Asked]] = field(default_factory=list[tuple[float, Asked]])
    running: int = 0

    def leaves(self, request: Asked) -> None:
        """Check a request that leaves now."""
        now = asyncio.get_running_loop().time()
        self.waiting.remove(request)
        self.running += 1
        assert self.running <= self.concurrency
        others = [each for at, each in self.window if at + WINDOW > now]
        used = sum(each.tokens for each in others)
        assert self.requests is None or len(others) < self.requests
        assert self.tokens is None or not others or not used or used + request.tokens <= self.tokens
        before = [each for each in self.waiting if each.key < request.key]
        first = min(before, key=lambda each: each.key) if before and self.is_one_run(request) else None
        earliest = None if first is None else self.earliest(first, now)
        self.window.append((now, request))
        if first is not None and earliest is not None:
            assert earliest > now, "it could leave"
            assert self.earliest(first, now) <= earliest, "it is delayed"

    def is_one_run(self, request: Asked) -> bool:
        """Return True if all that wait are of one run: runs take turns."""
        return all(each.run == request.run for each in self.waiting)

    def earliest(self, request: Asked, now: float) -> float:
        """Return when a request may leave, if no other one does."""
        for at in sorted({now, *(at + WINDOW for at, _ in self.window if at + WINDOW > now)}):
            others = [each for left, each in self.window if left + WINDOW > at]
            used = sum(each.tokens for each in others)
            has_room = self.tokens is None or not used or used + request.tokens <= self.tokens
            if has_room and (self.requests is None or len(others) < self.requests):
                return at
        raise AssertionError("the window is empty in the end")


async def one(model: Model, request: Asked) -> None:
    await asyncio.sleep(request.at)
    request.came = sum(each.came >= 0 for each in ALL)
    model.waiting.append(request)
    try:
        async with model.limits.under_way(request.tokens, 1, request.place) as charge:
            model.leaves(request)
            request.left = asyncio.get_running_loop().time()
            model.limits.sent(charge)
            try:
                await asyncio.sleep(request.seconds)
                if request.used is not None and request.used < request.tokens:
                    model.limits.correct(charge, request.used)
                    request.tokens = request.used
            finally:
                model.running -= 1
    finally:
        if request in model.waiting:
            model.waiting.remove(request)
        request.is_over = True


ALL: list[Asked] = []


@given(
    st.lists(asked, min_size=2, max_size=12),
    st.integers(1, 4),
    st.sampled_from([None, None, 2, 5]),
    st.sampled_from([None, 40, 50, 60]),
)
def test_requests_leave_in_turns_within_the_limits_and_none_is_delayed_by_one_behind_it(
    requests: list[Asked], concurrency: int, most_requests: int | None, most_tokens: int | None
) -> None:
    ALL[:] = requests

    async def main() -> None:
        limits = RateLimits(concurrency, most_requests, most_tokens, window=WINDOW)
        model = Model(concurrency, most_requests, most_tokens, limits)
        tasks = [asyncio.ensure_future(one(model, each)) for each in requests]
        for task, each in zip(tasks, requests, strict=True):
            if each.cancelled_after is not None:
                asyncio.get_running_loop().call_later(each.cancelled_after, task.cancel)
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10_000)
        for each, end in zip(requests, found, strict=True):
            assert end is None or (isinstance(end, asyncio.CancelledError) and each.cancelled_after is not None), end
        async with asyncio.timeout(3 * WINDOW), limits.under_way(1, 1):
            pass

    hastily(main())


async def leaving(limits: RateLimits, name: str, order: list[str], tokens: int, rank: int, seconds: float) -> None:
    async with limits.under_way(tokens, 1, Place(0, rank)) as charge:
        order.append(name)
        limits.sent(charge)
        await asyncio.sleep(seconds)


def test_a_request_that_waits_for_a_place_is_passed_by_one_of_a_lower_rank() -> None:
    order: list[str] = []

    async def main() -> None:
        limits = RateLimits(1)
        async with asyncio.TaskGroup() as group:
            for name, rank in (("first", 0), ("late", 9), ("early", 1)):
                group.create_task(leaving(limits, name, order, 1, rank, 5.0))
                await asyncio.sleep(1)

    hastily(main())
    assert order == ["first", "early", "late"]


def test_small_requests_do_not_wait_for_a_large_one_and_do_not_delay_it() -> None:
    order: list[str] = []

    async def main() -> None:
        limits = RateLimits(9, tokens=100, window=WINDOW)
        begun = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for rank, (name, tokens) in enumerate((("a", 60), ("large", 70), ("small", 20), ("other", 15))):
                group.create_task(leaving(limits, name, order, tokens, rank, 0.0))
                await asyncio.sleep(1)
        assert order == ["a", "small", "large", "other"]
        assert asyncio.get_running_loop().time() - begun <= 2 * WINDOW + 2

    hastily(main())


def test_a_place_is_free_again_where_waiting_for_a_limit_fails() -> None:
    async def main() -> None:
        limits = RateLimits(1, requests=1)
        async with limits.under_way(1, 1):
            pass

        def refused() -> None:
            raise ConnectionRefusedError

        for _ in range(3):
            try:
                async with limits.under_way(1, 1, None, refused):
                    raise AssertionError("the window is full")
            except ConnectionRefusedError:
                pass
        async with limits.under_way(1, 1):
            pass

    hastily(main())
