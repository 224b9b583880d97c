"""Instances that wait for room in a KV pool: never more than fit, in their order, and none waits for ever."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.schedule.schedule import Room, schedule_batch
from lmc.cache.batch_order.live import LiveTokens
from lmc.cache.batch_order.ranks import Layout
from lmc.driver.run.execute import put_in_order
from lmc.ir.engine.protocol import OnDelta, Request
from lmc.runtime.executor import Executor, Instance
from lmc.runtime.in_flight import PoolRoom
from tests.backend.programs import JUDGE, plan_of
from tests.runtime.engines import LateEngine, LateHandle

SIZES = st.integers(0, 12).flatmap(lambda whole: st.builds(LiveTokens, st.just(whole), st.integers(0, whole)))


@given(st.lists(st.tuples(SIZES, st.integers(0, 3), st.booleans()), max_size=12), st.integers(1, 30), st.randoms())
def test_instances_run_together_as_far_as_they_fit(asked: Any, tokens: int, random: Any):
    room = PoolRoom(tokens)
    running: dict[int, LiveTokens] = {}
    begun: list[int] = []

    async def work(position: int, size: LiveTokens, turns: int) -> None:
        async with room.running(position, size):
            begun.append(position)
            running[position] = size
            try:
                first = min(running)
                used = running[first].whole + sum(each.new for place, each in running.items() if place != first)
                assert len(running) == 1 or used <= tokens
                for _ in range(turns):
                    await asyncio.sleep(0)
            finally:
                del running[position]

    async def main() -> None:
        tasks = [asyncio.ensure_future(work(place, size, turns)) for place, (size, turns, _) in enumerate(asked)]
        for task, (_, turns, is_cancelled) in zip(tasks, asked, strict=True):
            if is_cancelled:
                for _ in range(random.randint(0, turns)):
                    await asyncio.sleep(0)
                task.cancel()
        ends = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
        for end, (_, _, is_cancelled) in zip(ends, asked, strict=True):
            assert end is None or (is_cancelled and isinstance(end, asyncio.CancelledError)), end

    asyncio.run(main())
    assert begun == sorted(begun)
    assert not running


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


def outcomes(engine: WatchedEngine, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Run a batch as the driver does: in the order, and with the room, that it finds for the engine."""
    plan = plan_of(JUDGE)
    found: dict[int, Any] = {}

    async def main() -> None:
        placed = await put_in_order(plan, rows, engine, 64, None)
        assert placed.layout == Layout()
        await Executor(engine, plan, {}).run_batch(
            [Instance(number, inputs) for number, inputs in enumerate(rows)],
            placed.order,
            lambda number, end: found.update({number: end.outcome and end.outcome.value}),
            live=placed.live,
        )

    asyncio.run(main())
    return [found[number] for number in range(len(rows))]


@given(st.lists(st.integers(1, 2000), min_size=1, max_size=8), st.integers(1, 3000))
def test_a_batch_on_a_server_has_no_more_rows_under_way_than_its_pool_holds(lengths: list[int], tokens: int):
    rows = [{"essay": f"{number}" * length} for number, length in enumerate(lengths)]
    roomy, tight = WatchedEngine(None), WatchedEngine(tokens)
    assert outcomes(tight, rows) == outcomes(roomy, rows)
    waiting = schedule_batch(plan_of(JUDGE), rows, Room.of(tight, 64), Layout()).waiting(Room(tokens), 1)
    if waiting is not None:
        assert tight.most_instances <= max(1, tokens // min(each.new for each in waiting))


def test_long_rows_in_a_small_pool_wait():
    rows = [{"essay": f"{number}" * 4000} for number in range(6)]
    engine = WatchedEngine(9000)
    outcomes(engine, rows)
    assert engine.most_instances == 2
