import asyncio
import gc
import re
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmc.backend.plan import Plan
from lmc.backend.schedule.schedule import Room, Schedule, schedule_batch
from lmc.cache.batch_order.ranks import Layout
from lmc.driver.compile.compile import Variants
from lmc.driver.run.execute import Execution, Job, execute
from lmc.driver.run.result import Result, describe_error
from lmc.driver.targets.registry import load_tokenizer
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.ir.engine.protocol import OnDelta, Request
from lmc.ir.engine.target import Target
from lmc.ir.errors import RequestCancelledError
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.events import TokenEvent
from lmc.runtime.executor import Limits
from tests.driver import programs
from tests.runtime.engines import LateEngine, LateHandle

TOY = Target("toy")


def jobs_of(function: JittedFunction, *arguments: Mapping[str, object]) -> list[Job]:
    variants = Variants()
    jobs: list[Job] = []
    for number, entry in enumerate(arguments):
        bound = bind(function, (), dict(entry))
        jobs.append(
            Job(number, bound, *variants.find(function, bound, TOY, PipelineOptions("O2"), load_tokenizer(TOY)))
        )
    return jobs


def test_instances_with_common_prefixes_start_one_after_the_other():
    """Ants and birds alternate in the batch, not in the engine."""
    engine = LateEngine(most_seconds=0.0)
    essays = ["ants a", "birds a", "ants b", "birds b"]
    order: list[int] = []
    asyncio.run(
        execute(
            programs.judge,
            jobs_of(programs.judge, *({"essay": essay} for essay in essays)),
            engine,
            lambda number, _: order.append(number),
            seed=0,
            limits=Limits(requests=1),
        )
    )
    assert order == [0, 2, 1, 3]


def test_a_layout_goes_with_its_variant_and_with_no_later_one(monkeypatch: pytest.MonkeyPatch):
    """Variants are dropped while a batch runs; another one may then stand at the same place of the memory."""
    asked: list[Layout | None] = []

    def schedule(plan: Plan, inputs: Sequence[Mapping[str, Any]], room: Room | None, layout: Layout | None) -> Schedule:
        asked.append(layout)
        return schedule_batch(plan, inputs, room, layout or Layout(block=len(asked)))

    monkeypatch.setattr("lmc.driver.run.execute.schedule_batch", schedule)
    monkeypatch.setattr("lmc.driver.run.execute.id", lambda _: 7, raising=False)
    plans: list[weakref.ref[Plan]] = []

    async def run_windows(execution: Execution) -> None:
        jobs = jobs_of(programs.judge, {"essay": "a"}, {"essay": "b"})
        plans.append(weakref.ref(jobs[0].compiled.plan))
        await execution.run(jobs)
        await execution.run(jobs)

    async def run() -> None:
        execution = Execution(programs.judge, LateEngine(most_seconds=0.0), lambda *_: None, seed=0)
        await run_windows(execution)
        await run_windows(execution)
        gc.collect()
        assert [plan() for plan in plans] == [None, None]
        execution.close()

    asyncio.run(run())
    assert asked == [None, Layout(block=1), None, Layout(block=3)]


class TimedEngine(LateEngine):
    """Remembers how long each request may take, by op."""

    def __init__(self) -> None:
        super().__init__(most_seconds=0.0)
        self.timeouts: dict[str, float | None] = {}

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> LateHandle:
        self.timeouts[request.op_id] = request.timeout
        return super().submit(request, on_delta)


def test_the_captured_and_the_eager_part_have_the_same_timeout():
    engine = TimedEngine()
    found: dict[int, Result] = {}
    jobs = jobs_of(programs.breaks, {"topic": "a"})
    limits = Limits(request_timeout=7.0)
    asyncio.run(execute(programs.breaks, jobs, engine, found.__setitem__, seed=0, limits=limits))
    assert found[0].error is None
    assert len(engine.timeouts) >= 2
    assert "breaks/second" in engine.timeouts
    assert set(engine.timeouts.values()) == {7.0}


def test_events_of_the_eager_part_carry_instance_and_branch():
    events: list[TokenEvent] = []
    found: dict[int, Result] = {}
    jobs = jobs_of(programs.breaks, {"topic": "a"}, {"topic": "b"})
    asyncio.run(execute(programs.breaks, jobs, LateEngine(), found.__setitem__, seed=0, on_event=events.append))
    second = [event for event in events if event.name == "second"]
    assert {event.instance for event in second} == {0, 1}
    assert {event.branch for event in second} == {"breaks"}
    for number, result in found.items():
        said = "".join(event.text for event in second if event.instance == number)
        assert said == result.variables["second"]


def test_cancelling_stops_the_eager_part():
    engine = LateEngine()
    engine.stuck = {"breaks/second"}

    async def main() -> None:
        jobs = jobs_of(programs.breaks, {"topic": "a"})
        task = asyncio.ensure_future(execute(programs.breaks, jobs, engine, lambda *_: None, seed=0))
        while "breaks/second" not in engine.order:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not engine.cancels:
            await asyncio.sleep(0.002)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_cancelled_program_does_not_try_again():
    engine = LateEngine()
    engine.stuck = {"retries/answer"}
    found: dict[int, Result] = {}

    async def main() -> None:
        jobs = jobs_of(programs.retries, {"card": "a"})
        task = asyncio.ensure_future(execute(programs.retries, jobs, engine, found.__setitem__, seed=0))
        while "retries/answer" not in engine.order:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while "tidied up" not in programs.SIDE_EFFECTS:
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(main(), 20))
    assert programs.SIDE_EFFECTS == ["tidied up"]
    assert engine.order == ["retries/answer"]
    assert not found


def test_a_continuation_that_is_cancelled_has_a_request_cancelled_error():
    engine = LateEngine()
    found: dict[int, Result] = {}
    execution = Execution(programs.retries, engine, found.__setitem__, seed=0)
    execution._eager_engine.cancel()
    asyncio.run(execution.run(jobs_of(programs.retries, {"card": "a"})))
    execution.close()
    error = found[0].error
    assert isinstance(error, RequestCancelledError)
    assert re.search(r"programs\.py:\d+: the run was cancelled", str(error))
    assert programs.SIDE_EFFECTS == ["tidied up"]


def test_what_a_user_raises_in_the_eager_part_ends_its_instance_only():
    found: dict[int, Result] = {}
    jobs = jobs_of(programs.breaks, {"topic": "a", "limit": 13}, {"topic": "a"})
    asyncio.run(execute(programs.breaks, jobs, LateEngine(), found.__setitem__, seed=0))
    assert isinstance(found[0].error, ValueError)
    assert re.search(r"in the program at .*programs\.py:\d+", describe_error(found[0].error))
    assert found[0].usage.calls == 1
    assert found[1].error is None
    assert found[1].usage.calls == 2


def test_what_runs_eagerly_has_the_place_and_the_priority_of_its_batch(monkeypatch: pytest.MonkeyPatch):
    engine = LateEngine()
    seen: dict[str, Request] = {}
    submit = LateEngine.submit

    def record(self: LateEngine, request: Request, on_delta: OnDelta | None = None) -> LateHandle:
        seen[request.op_id] = request
        return submit(self, request, on_delta)

    monkeypatch.setattr(LateEngine, "submit", record)
    jobs = jobs_of(programs.breaks, {"topic": "a"}, {"topic": "b"})
    asyncio.run(execute(programs.breaks, jobs, engine, lambda *_: None, seed=0, limits=Limits(priority=3)))
    assert len(seen) >= 2
    assert {request.priority for request in seen.values()} == {3}
    places = [request.place for request in seen.values()]
    assert len({place.run for place in places if place is not None}) == 1
    assert None not in places
