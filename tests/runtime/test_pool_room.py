"""Instances that wait for room in a KV pool: never more than fit, in their order, and none waits for ever."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.schedule.schedule import Room, schedule_batch
from lmc.cache.batch_order.live import LiveTokens
from lmc.cache.batch_order.ranks import Layout
from lmc.driver.run.execute import put_in_order
from lmc.ir.engine.protocol import OnDelta, Request
from lmc.ir.tokens.tokens import common_length
from lmc.runtime.executor import Executor, Instance, Resources
from lmc.runtime.in_flight import PoolRoom
from tests.backend.programs import JUDGE, plan_of
from tests.runtime.engines import LateEngine, LateHandle

PROMPTS = st.lists(st.text("ab", min_size=1, max_size=8), max_size=12)


def sizes_of(prompts: Sequence[str]) -> list[LiveTokens]:
    """Prompts of a token for each character, in their order."""
    found: list[LiveTokens] = []
    for before, prompt in pairwise(["", *prompts]):
        found.append(LiveTokens(len(prompt), len(prompt) - common_length(before, prompt), 0, 0))
    return found


def held(prompts: Iterable[str]) -> int:
    """The prefixes that a pool holds of some prompts."""
    return len({prompt[: end + 1] for prompt in prompts for end in range(len(prompt))})


@given(PROMPTS, st.integers(1, 30), st.integers(0, 1 << 16))
def test_instances_run_together_as_far_as_they_fit(asked: list[str], tokens: int, seed: int):
    asked.sort()
    random = Random(seed)  # tasks draw from it, in which Hypothesis can't end an example
    room = PoolRoom(tokens)
    running: set[int] = set()
    begun: list[int] = []

    async def work(position: int, size: LiveTokens) -> None:
        async with room.running(position, size):
            begun.append(position)
            running.add(position)
            try:
                assert len(running) == 1 or held(asked[place] for place in running) <= tokens
                for _ in range(random.randint(0, 3)):
                    await asyncio.sleep(0)
            finally:
                running.remove(position)

    async def main() -> None:
        tasks = [asyncio.ensure_future(work(place, size)) for place, size in enumerate(sizes_of(asked))]
        cancelled = [task for task in tasks if random.random() < 0.2]
        for task in cancelled:
            for _ in range(random.randint(0, 3)):
                await asyncio.sleep(0)
            task.cancel()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        for task, end in zip(tasks, ends, strict=True):
            assert end is None or (task in cancelled and isinstance(end, asyncio.CancelledError)), end

    asyncio.run(main())
    assert begun == sorted(begun)
    assert not running


@given(PROMPTS, st.integers(1, 30))
def test_what_fits_beside_those_that_run_starts_at_once(asked: list[str], tokens: int):
    asked.sort()

    async def main() -> None:
        room = PoolRoom(tokens)
        waiting = [room.running(place, size) for place, size in enumerate(sizes_of(asked))]
        tasks = [asyncio.ensure_future(each.__aenter__()) for each in waiting]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        started = sum(task.done() for task in tasks)
        fitting = [count for count in range(1, len(asked) + 1) if count == 1 or held(asked[:count]) <= tokens]
        assert started == max(fitting, default=0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(main())


class WatchedEngine(LateEngine):
    """Notes the most instances whose requests ran at once."""

    def __init__(self, kv_tokens: int | None) -> None:
        super().__init__(kv_tokens=kv_tokens)
        self.most_instances = 0
        self._of_instance: Counter[int] = Counter()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> LateHandle:
        self._of_instance[request.instance] += 1
        self.most_instances = max(self.most_instances, len(+self._of_instance))
        handle = super().submit(request, on_delta)
        handle.future.add_done_callback(lambda _: self._of_instance.subtract([request.instance]))
        return handle


def outcomes(engine: WatchedEngine, rows: Sequence[Mapping[str, Any]], window: int = 512, text: str = JUDGE) -> Any:
    """Run a batch as the driver does, window by window: in the order, and with the room, that it finds."""
    plan = plan_of(text)
    found: dict[int, Any] = {}

    async def main() -> None:
        resources = Resources(engine)
        executor = Executor(engine, plan, {"look": lambda _: "seen"})

        async def run(first: int) -> None:
            inputs = rows[first : first + window]
            placed = await put_in_order(plan, inputs, engine, 64, None)
            assert placed.layout == Layout()
            await executor.run_batch(
                [Instance(first + number, each) for number, each in enumerate(inputs)],
                placed.order,
                lambda number, end: found.update({first + number: end.error or (end.outcome and end.outcome.value)}),
                resources=resources,
                first_position=first,
                live=placed.live,
            )

        try:
            await asyncio.gather(*(run(first) for first in range(0, len(rows), window)))
        finally:
            resources.close()

    asyncio.run(main())
    return [found[number] for number in range(len(rows))]


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=8), st.integers(1, 3000), st.integers(1, 8))
def test_a_batch_on_a_server_has_no_more_rows_under_way_than_its_pool_holds(
    lengths: list[int], tokens: int, window: int
):
    rows = [{"essay": f"{number}" * length} for number, length in enumerate(lengths)]
    roomy, tight = WatchedEngine(None), WatchedEngine(tokens)
    assert outcomes(tight, rows, window) == outcomes(roomy, rows, window)
    parts = [rows[first : first + window] for first in range(0, len(rows), window)]
    room = Room.of(tight, 64)
    assert room is not None
    waiting = [schedule_batch(plan_of(JUDGE), part, room, Layout()).waiting(room, 1) for part in parts]
    if all(each is not None for each in waiting):
        assert tight.most_instances <= max(1, tokens // min(size.new for part in waiting for size in part or ()))


@pytest.mark.parametrize("window", [1, 2, 6])
def test_long_rows_in_a_small_pool_wait(window: int):
    rows = [{"essay": f"{number}" * 4000} for number in range(6)]
    engine = WatchedEngine(9000)
    outcomes(engine, rows, window)
    assert engine.most_instances == 2


WITH_A_TOOL = (
    JUDGE.replace("  func @judge", '  host @look = "program:look" sha256 "01" reads\n  func @judge')
    .replace('["Views: ", %a, %b]', '["Views: ", %seen, %b]')
    .replace("    %10 = ", '    %seen = host.call @look (%a) {id = "judge/look"} : !text\n    %10 = ')
)


def test_rows_with_tools_do_not_wait():
    """A row would keep its room while it is in a tool, whose time is not known."""
    rows = [{"essay": f"{number}" * 4000} for number in range(6)]
    engine = WatchedEngine(9000)
    placed = [asyncio.run(put_in_order(plan_of(text), rows, engine, 64, None)) for text in (JUDGE, WITH_A_TOOL)]
    assert [each.live is None for each in placed] == [False, True]
    assert not any(isinstance(end, Exception) for end in outcomes(engine, rows, text=WITH_A_TOOL))
