"""The order in which requests leave under the limits of a target."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import Place
from lmc.runtime.remote.limits import RateLimits, Turns

_places = st.none() | st.builds(Place, st.integers(0, 2), st.integers(0, 5))


@given(st.lists(st.tuples(_places, st.booleans()), max_size=20))
def test_turns_are_held_by_one_and_given_by_run_and_rank(requests: list[tuple[Place | None, bool]]) -> None:
    """Cancelled ones, as they wait or as they hold it, lose no turn."""
    served: list[tuple[int | None, int, int]] = []

    async def main() -> None:
        turns = Turns()
        held = 0

        async def one(number: int, place: Place | None) -> None:
            nonlocal held
            async with turns.turn(place):
                held += 1
                assert held == 1
                try:
                    served.append((None, 0, number) if place is None else (place.run, place.rank, number))
                    await asyncio.sleep(0)
                finally:
                    held -= 1

        async with turns.turn(None):
            tasks = [asyncio.ensure_future(one(number, place)) for number, (place, _) in enumerate(requests)]
            await asyncio.sleep(0)
        for task, (_, is_cancelled) in zip(tasks, requests, strict=True):
            if is_cancelled:
                task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        async with asyncio.timeout(60), turns.turn(None):
            pass

    asyncio.run(main())
    kept = {number for number, (_, is_cancelled) in enumerate(requests) if not is_cancelled}
    assert kept <= {number for *_, number in served}
    by_run: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for run, rank, number in served:
        by_run[run].append((rank, number))
    assert all(found == sorted(found) for found in by_run.values())
    if kept == set(range(len(requests))):  # no run is served twice while another waits
        left = {run: len(found) for run, found in by_run.items()}
        for (run, *_), (following, *_) in pairwise(served):
            left[run] -= 1
            assert following != run or not any(count for other, count in left.items() if other != run)


def test_a_place_is_free_again_where_waiting_for_a_limit_fails() -> None:
    async def main() -> None:
        limits = RateLimits(1, requests=1)
        async with limits.under_way(1, 1):
            pass

        def refused() -> None:
            raise ConnectionRefusedError

        for _ in range(3):
            try:
                async with asyncio.timeout(60), limits.under_way(1, 1, None, refused):
                    raise AssertionError("the window is full")
            except ConnectionRefusedError:
                pass

    asyncio.run(main())
