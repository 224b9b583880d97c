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
    passed: dict[int | None, set[int | None]] = field(default_factory=dict[int | None, set[int | None]])

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
        self.window.append((now, request))
        waiting = [each for each in self.waiting if not each.is_over]
        assert all(request.key < each.key for each in waiting if each.run == request.run)
        self.passed.pop(request.run, None)
        for run in {each.run for each in waiting} - {request.run}:
            assert request.run not in self.passed.setdefault(run, set()), "it has passed this run before"
            self.passed[run].add(request.run)

    def ends(self, request: Asked) -> None:
        """Note that a request waits no more."""
        request.is_over = True
        if request in self.waiting:
            self.waiting.remove(request)
        if all(each.is_over or each.run != request.run for each in self.waiting):
            self.passed.pop(request.run, None)


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
        model.ends(request)


def cancel(model: Model, request: Asked, task: asyncio.Task[None]) -> None:
    if task.cancel():
        model.ends(request)


ALL: list[Asked] = []


@given(
    st.lists(asked, min_size=2, max_size=12),
    st.integers(1, 4),
    st.sampled_from([None, None, 2, 5]),
    st.sampled_from([None, 40, 50, 60]),
)
def test_requests_leave_in_turns_within_the_limits(
    requests: list[Asked], concurrency: int, most_requests: int | None, most_tokens: int | None
) -> None:
    ALL[:] = requests

    async def main() -> None:
        limits = RateLimits(concurrency, most_requests, most_tokens, window=WINDOW)
        model = Model(concurrency, most_requests, most_tokens, limits)
        tasks = [asyncio.ensure_future(one(model, each)) for each in requests]
        for task, each in zip(tasks, requests, strict=True):
            if each.cancelled_after is not None:
                asyncio.get_running_loop().call_later(each.cancelled_after, cancel, model, each, task)
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10_000)
        for each, end in zip(requests, found, strict=True):
            assert end is None or (isinstance(end, asyncio.CancelledError) and each.cancelled_after is not None), end
        async with asyncio.timeout(3 * WINDOW), limits.under_way(1, 1):
            pass

    hastily(main())


async def leaving(
    limits: RateLimits, name: str, order: list[str], tokens: int, rank: int, seconds: float, run: int = 0
) -> None:
    async with limits.under_way(tokens, 1, Place(run, rank)) as charge:
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


def test_a_large_request_is_not_delayed_by_those_behind_it() -> None:
    """Neither by small ones of its own run nor by those of another."""
    order: list[str] = []

    async def main() -> None:
        limits = RateLimits(99, tokens=100, window=WINDOW)
        begun = asyncio.get_running_loop().time()
        left: list[float] = []

        async def large() -> None:
            async with limits.under_way(90, 1, Place(0, 1)) as charge:
                left.append(asyncio.get_running_loop().time())
                limits.sent(charge)

        async with asyncio.TaskGroup() as group:
            group.create_task(leaving(limits, "a", order, 60, 0, 0.0))
            await asyncio.sleep(1)
            group.create_task(large())
            for rank in range(2, 40):
                for run in (0, 1):
                    group.create_task(leaving(limits, f"{run}", order, 10, rank, 0.0, run))
                await asyncio.sleep(0.2)
        assert left[0] - begun <= 2 * WINDOW

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
