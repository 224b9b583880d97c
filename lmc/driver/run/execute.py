"""Executes compiled instances on an engine, the code after a break in threads. Runs in the background loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from lmc.backend.plan import Plan
from lmc.backend.schedule.schedule import Room, schedule_batch
from lmc.cache.batch_order.live import LiveTokens
from lmc.cache.batch_order.ranks import Layout
from lmc.driver.compile.compiled import Compiled
from lmc.driver.options import Options
from lmc.driver.run.ending import OnResult, RunEnd
from lmc.driver.run.estimation import RowEstimator
from lmc.driver.run.money import RunMoney
from lmc.driver.run.result import Result, stopped
from lmc.driver.targets.cancelling import CancellableEngine, error_of
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession, OnText
from lmc.frontend.program.arguments import Bound
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.source.locations import raised_at
from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import BreakOp, HostCallOp
from lmc.ir.engine.hosts import CallScope, Cancellation, calling_in, cancelled_by, run_id
from lmc.ir.engine.observing import Observer
from lmc.ir.engine.protocol import Engine, Place, Planned
from lmc.ir.errors import LmcError
from lmc.ir.profile import Profile
from lmc.ir.semantics.constraint_runtime import Compile
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import Outcome
from lmc.runtime.events import OnEvent, TokenEvent, branch_of
from lmc.runtime.executor import Executor, Finished, Instance, Limits, Resources
from lmc.runtime.journal.calls import JournaledCalls
from lmc.runtime.journal.journal import RunJournal
from lmc.runtime.threads import DaemonPool

EAGER_THREADS = 32
_LOGGER = logging.getLogger("lmc.remote")


@dataclass(frozen=True)
class Job:
    """One instance: its number in the batch, its arguments, and the variant that its arguments fit."""

    number: int
    bound: Bound
    compiled: Compiled
    inputs: Mapping[str, Any]


async def execute(
    function: JittedFunction,
    jobs: Sequence[Job],
    engine: Engine,
    on_result: OnResult,
    *,
    seed: int,
    compile: Compile | None = None,
    limits: Limits | None = None,
    on_event: OnEvent | None = None,
    journal: RunJournal | None = None,
    money: RunMoney | None = None,
) -> None:
    """Run ``jobs``; ``on_result`` gets each one's number and result as soon as it is there, in the loop's thread.

    Jobs of one variant run in the order of their schedule, variants in the order of their first job, all under one
    bound. Cancelling cancels every request.
    """
    execution = Execution(
        function,
        engine,
        on_result,
        seed=seed,
        compile=compile,
        limits=limits,
        on_event=on_event,
        journal=journal,
        money=money,
    )
    try:
        await execution.run(jobs)
    finally:
        execution.close()


def limits_of(options: Options) -> Limits:
    """Return the bounds that the executor keeps under ``options``."""
    limits = Limits(request_timeout=options.timeout, priority=options.priority, lane=options.lane)
    return limits if options.requests is None else replace(limits, requests=options.requests)


class BatchOrder(NamedTuple):
    """The instances of a batch in their order, its layout, and the tokens that each uses of a KV pool.

    ``live`` is None where no instance waits for room: the engine plans for its pool itself, nothing is known of the
    pool, or it takes less time to start all of them.
    """

    order: Sequence[int]
    layout: Layout
    live: Sequence[LiveTokens] | None = None


async def put_in_order(
    plan: Plan, inputs: Sequence[Mapping[str, Any]], engine: Engine, requests: int, layout: Layout | None
) -> BatchOrder:
    """``schedule_batch`` for an engine that up to ``requests`` are sent to at once.

    It runs in a thread, as others share this loop: a daemon, for which no process waits at its end. An engine that does
    not plan gets one instance after the other: what it keeps is what it used last.
    """
    room, plans = Room.of(engine, requests), isinstance(engine, Planned)
    waits = room is not None and not plans and not _leaves_engine(plan)
    if len(inputs) == 1 and not waits:
        return BatchOrder((0,), Layout() if layout is None else layout)
    if layout is None and room is not None and not plans:
        layout = Layout()

    def work() -> BatchOrder:
        schedule = schedule_batch(plan, inputs, room, layout)
        live = schedule.waiting(room, engine.info.page_tokens) if waits and room is not None else None
        return BatchOrder(schedule.order, schedule.layout, live)

    pool = DaemonPool(1, "lmc-schedule")
    try:
        placed = await asyncio.get_running_loop().run_in_executor(pool, work)
    finally:
        pool.shutdown(wait=False)
    if placed.live is not None:
        _LOGGER.info("rows of %s wait for room in the KV pool of %s", plan.name, engine.info.name)
    return placed


def _leaves_engine(plan: Plan) -> bool:
    """Return True if an instance may be long without a request: in a tool, or in Python behind a break."""
    return any(isinstance(op, HostCallOp | BreakOp) for op in walk([plan.module.main.body]))


class Execution:
    """The shared state of the instances of a batch, whether they are run all at once or window by window.

    Belongs to the background loop. ``run`` may be called again while an earlier call is under way: the later instances
    take turns behind the earlier ones, all under one bound. ``on_stopped`` gets the instances that had begun when they
    were cancelled, with their cost. An instance that ends with ``KeyboardInterrupt`` ends the run, with
    ``RunInterruptedError``. With a ``layout`` instances start as they come, in its blocks. ``observer`` takes requests,
    calls and steps, ``journal`` records requests and calls of tools, ``money`` is their cost and its bound. ``end`` is
    the end of the run before all of its instances.
    """

    def __init__(
        self,
        function: JittedFunction,
        engine: Engine,
        on_result: OnResult,
        *,
        seed: int,
        compile: Compile | None = None,
        limits: Limits | None = None,
        on_event: OnEvent | None = None,
        on_stopped: OnResult | None = None,
        layout: Layout | None = None,
        observer: Observer | None = None,
        journal: RunJournal | None = None,
        money: RunMoney | None = None,
    ) -> None:
        self._function = function
        self._observer = observer
        self._money = money = money or RunMoney()
        self._engine = engine = money.layered(engine, journal)
        self._calls = None if journal is None else JournaledCalls(journal)
        self._journal = journal
        self._on_result = on_result
        self._seed = seed
        self._compile = compile
        self._on_event = on_event
        self._on_stopped = on_stopped
        self._position = 0
        self._layout = layout
        self._layouts: WeakKeyDictionary[Plan, Layout] = WeakKeyDictionary()
        self._limits = limits or Limits()
        self.end = RunEnd(money.budget)
        self._resources = Resources(engine, self._limits, observer, self._calls, self.end.refusal)
        # What is left of an instance that has begun goes before what others have to come to.
        place = Place(self._resources.run, 0, self._limits.lane)
        self._eager_engine = CancellableEngine(engine, place, self._limits.priority, observer)
        self._cancellation = Cancellation()
        self._eager_pool = DaemonPool(EAGER_THREADS, "lmc-eager")

    async def run(self, jobs: Sequence[Job]) -> None:
        """Run ``jobs`` to their ends. Cancelling cancels their requests."""
        variants: dict[Plan, list[Job]] = {}
        for job in jobs:
            variants.setdefault(job.compiled.plan, []).append(job)
        try:
            async with asyncio.TaskGroup() as group:
                for members in variants.values():
                    group.create_task(self._run_variant(members, self._position, group))
                    self._position += len(members)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def close(self) -> None:
        """Stop eager execution, and release the threads."""
        self._cancellation.cancel()
        self._eager_engine.cancel()
        self._eager_pool.shutdown(wait=False, cancel_futures=True)
        self._resources.close()

    async def _run_variant(self, jobs: Sequence[Job], position: int, group: asyncio.TaskGroup) -> None:
        compiled = jobs[0].compiled
        placed = await self._order(compiled, jobs)
        constraints = compiled.constraints(self._compile)
        executor = Executor(self._engine, compiled.prepared, compiled.hosts, constraints=constraints)
        await executor.run_batch(
            [Instance(job.number, job.inputs) for job in jobs],
            placed.order,
            lambda index, end: self._finished(jobs[index], end, group),
            block=placed.layout.block,
            live=placed.live,
            run_seed=self._seed,
            on_event=self._on_event,
            resources=self._resources,
            first_position=position,
            on_cancelled=lambda index, cost: self._stopped(jobs[index].number, cost),
        )

    async def _order(self, compiled: Compiled, jobs: Sequence[Job]) -> BatchOrder:
        """The order of instances and its layout: later windows are laid out as the first one was."""
        if self._layout is not None:
            return BatchOrder(range(len(jobs)), self._layout)
        inputs, layout = [job.inputs for job in jobs], self._layouts.get(compiled.plan)
        placed = await put_in_order(compiled.plan, inputs, self._engine, self._limits.requests, layout)
        if len(jobs) > 1:
            self._layouts.setdefault(compiled.plan, placed.layout)
        return placed

    def _finished(self, job: Job, end: Finished, group: asyncio.TaskGroup) -> None:
        if end.error is not None:
            self._deliver(job, Result.failed(end.error, end.profile))
            return
        outcome = end.outcome
        assert outcome is not None
        if outcome.broken_at is None:
            self._deliver(job, Result.of(outcome))
            return
        work = asyncio.get_running_loop().run_in_executor(self._eager_pool, partial(self._continue, job, outcome))
        group.create_task(self._report(job, work, outcome.profile))

    async def _report(self, job: Job, work: asyncio.Future[Result], before: Profile) -> None:
        try:
            result = await work
        except asyncio.CancelledError:
            self._stopped(job.number, before)  # later events of the thread are dropped
            raise
        self._deliver(job, result)

    def _deliver(self, job: Job, result: Result) -> None:
        prices = self._money.prices
        if prices is not None:
            estimator = RowEstimator(job.compiled, job.inputs, prices)
            result = replace(result, spending=self._money.spent_by(job.number), estimator=estimator)
        self.end.deliver(job.number, result, self._on_result, self._on_stopped)

    def _stopped(self, number: int, cost: Profile) -> None:
        if self._on_stopped is not None:
            self._on_stopped(number, stopped(cost, self._money.spent_by(number)))

    def _continue(self, job: Job, captured_part: Outcome) -> Result:
        """The rest of the program, as plain Python, in a thread of its own."""
        before = captured_part.profile
        broken_at = captured_part.broken_at
        if self._journal is not None and broken_at is not None:
            self._journal.note(f"{broken_at.location}: plain Python runs again from here: {broken_at.cause}")
        calls = self._calls
        run = run_id(self._resources.run) if calls is None else calls.run
        scope = CallScope(calls, run, job.number, f"{self._function.name}/@after")
        session = EagerSession(
            self._eager_engine,
            run_seed=self._seed,
            instance=job.number,
            on_text=self._on_text(job.number),
            timeout=self._limits.request_timeout,
            compile=self._compile,
            order_sections=job.compiled.options.order_sections,
            observer=self._observer,
        )
        try:
            with cancelled_by(self._cancellation), calling_in(scope):
                assert captured_part.live is not None
                outcome = go_on(job.compiled.captured, job.bound, captured_part.live, session)
        except BaseException as raised:  # SystemExit of one instance must not end the batch
            error = error_of(raised)
            _name_line(error)
            return Result.failed(error, Profile.merge(before.program, [before, self._profile(session)]))
        profile = Profile.merge(before.program, [before, self._profile(session)])
        return Result.of(outcome, profile)

    def _profile(self, session: EagerSession) -> Profile:
        return Profile(self._function.name, session.profile)

    def _on_text(self, instance: int) -> OnText | None:
        """Return a callback for the text that an instance gets after its break."""
        on_event = self._on_event
        if on_event is None:
            return None

        def report(op_id: str, name: str | None, sample: int, text: str, context: Context) -> None:
            on_event(TokenEvent(instance, branch_of(op_id), op_id, name, sample, text, context))

        return report


def _name_line(error: BaseException) -> None:
    """Add to an error the line of the user's program where it arose, as the captured part does."""
    location = raised_at(error.__traceback__)
    if location is None:
        return
    if isinstance(error, LmcError):
        error.location = error.location or location
    else:
        error.add_note(f"in the program at {location}")
