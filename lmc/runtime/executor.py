"""Executes a Plan over an Engine: one instance, or a batch in the order of its Schedule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from lmc.backend.plan import Plan
from lmc.cache.batch_order.live import LiveTokens
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.engine.hosts import CallJournal
from lmc.ir.engine.observing import Observable, Observer
from lmc.ir.engine.protocol import Engine, Place, Planned, new_run
from lmc.ir.errors import InputError, LmcError, located
from lmc.ir.profile import Profile, Recording
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.interpreter import Outcome, bind_parameters, outcome
from lmc.ir.semantics.ops import NO_CONSTRAINTS
from lmc.runtime.batch_context import BatchContext
from lmc.runtime.events import OnEvent
from lmc.runtime.hints.lookahead import LookaheadHints
from lmc.runtime.hints.pinned_prefixes import PinBudget
from lmc.runtime.in_flight import InFlight, PoolRoom
from lmc.runtime.machine import ProgramExit, StageRun, report_forced
from lmc.runtime.operations import ask
from lmc.runtime.prepared import PreparedPlan, prepare
from lmc.runtime.prepared_body import Stage
from lmc.runtime.threads import DaemonPool


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on concurrency: engine requests (and instances) of a batch, and threads for host functions.

    ``request_timeout``: seconds that each request may take in the engine (None: any number). Requests of higher
    ``priority`` go before those of others (see ``lmc.ir.engine.protocol.Request``). ``lane``: see ``Place``.
    """

    requests: int = 256
    host_threads: int = 64
    request_timeout: float | None = None
    priority: int = 0
    lane: int | None = None


class Resources:
    """The resources that the instances of a batch share, whatever their plans. Belongs to one event loop.

    ``observer`` takes the requests and calls of the instances, and the steps of an ``Observable`` engine. ``journal``
    records the calls of tools; requests are recorded by the engine, if it is a ``JournaledEngine``. ``refusal`` returns
    the error of an instance that would start now, once the run is over (None: it may start).
    """

    def __init__(
        self,
        engine: Engine,
        limits: Limits | None = None,
        observer: Observer | None = None,
        journal: CallJournal | None = None,
        refusal: Callable[[], LmcError | None] = lambda: None,
    ) -> None:
        limits = limits or Limits()
        self.refusal = refusal
        self.observer = observer
        self.journal = journal
        self._end_observing = None
        if observer is not None and isinstance(engine, Observable):
            self._end_observing = engine.observe(observer.begin_steps())
        self.in_flight = InFlight(limits.requests)
        self.run = new_run()
        self.window = limits.requests
        pool = None if isinstance(engine, Planned) else engine.info.kv_tokens
        self.room = None if pool is None else PoolRoom(pool)
        """The instances that fit into the pool of an engine that does not plan for them itself."""
        self.request_timeout = limits.request_timeout
        self.priority = limits.priority
        self.lane = limits.lane
        self._engine = engine if isinstance(engine, Planned) else None
        self._open = None if self._engine is None else self._engine.expect((), Place(self.run, 0))
        self.budget = PinBudget.of(engine)
        self.lookahead = LookaheadHints(engine)
        self.host_pool = DaemonPool(limits.host_threads, "lmc-host")

    def close(self) -> None:
        """Release the threads (busy ones end with their calls), and notify the engine of the end of the run."""
        self.host_pool.shutdown(wait=False, cancel_futures=True)
        if self._end_observing is not None:
            self._end_observing()
            self._end_observing = None
        if self._engine is not None and self._open is not None:
            self._engine.withdraw(self._open)
            self._open = None


@dataclass(frozen=True)
class Finished:
    """The end of one instance: its outcome or its error, and what it cost in either case."""

    outcome: Outcome | None
    error: BaseException | None
    profile: Profile


@dataclass(frozen=True)
class Instance:
    """One instance of a batch. ``number`` is what its random draws are keyed by."""

    number: int
    inputs: Mapping[str, Any]


OnFinished = Callable[[int, Finished], None]
OnCancelled = Callable[[int, Profile], None]


class Executor:
    """Runs a plan over ``engine``.

    ``hosts`` holds its host functions by symbol, ``constraints`` its constraints, compiled for the engine's vocabulary.

    Safe to use for several runs at the same time. Host functions run in threads: those of one instance in the order
    that their effects demand, those of different instances possibly at the same time.
    """

    def __init__(
        self,
        engine: Engine,
        plan: Plan | PreparedPlan,
        hosts: Mapping[str, Callable[..., Any]],
        limits: Limits | None = None,
        constraints: Constraints | None = None,
    ) -> None:
        self._engine = engine
        self._constraints = constraints or NO_CONSTRAINTS
        self._prepared = prepare(plan) if isinstance(plan, Plan) else plan
        self._hosts = hosts
        self._limits = limits

    async def run(
        self, inputs: Mapping[str, Any], *, run_seed: int = 0, instance: int = 0, on_event: OnEvent | None = None
    ) -> Outcome:
        """Run one instance. Raises its error."""
        found: list[Finished] = []
        instances = [Instance(instance, inputs)]
        await self.run_batch(instances, [0], lambda _, end: found.append(end), run_seed=run_seed, on_event=on_event)
        if found[0].error is not None:
            raise found[0].error
        assert found[0].outcome is not None
        return found[0].outcome

    async def run_batch(
        self,
        instances: Sequence[Instance],
        order: Sequence[int],
        on_finished: OnFinished,
        *,
        run_seed: int = 0,
        on_event: OnEvent | None = None,
        resources: Resources | None = None,
        first_position: int = 0,
        block: int = 1,
        live: Sequence[LiveTokens] | None = None,
        on_cancelled: OnCancelled | None = None,
    ) -> None:
        """Run ``instances``, starting them in ``order`` (positions in ``instances``, each once).

        ``on_finished`` is called with a position and its end, in the event loop's thread, as soon as it is there; an
        instance that fails does not touch the others. Cancelling cancels what runs; what was reported stays true, and
        ``on_cancelled`` is called with the position of each one that had begun, and with what it had cost.
        In blocks of ``block`` instances requests are served kind by kind. ``live`` are the tokens that instances use
        of a KV pool, in this order: those that do not fit into it wait, where the engine does not see to that itself.
        Several plans that make up one batch share its ``resources``, and take turns by ``first_position``.
        """
        if sorted(order) != list(range(len(instances))):
            raise InputError("the schedule does not fit the batch", remedy="schedule the same inputs that are run")
        shared = resources or Resources(self._engine, self._limits)
        around = BatchContext(
            prepared=self._prepared,
            engine=self._engine,
            hosts=self._hosts,
            host_pool=shared.host_pool,
            in_flight=shared.in_flight,
            budget=shared.budget,
            lookahead=shared.lookahead,
            run_seed=run_seed,
            on_event=on_event,
            request_timeout=shared.request_timeout,
            constraints=self._constraints,
            run=shared.run,
            block=block,
            priority=shared.priority,
            lane=shared.lane,
            observer=shared.observer,
            journal=shared.journal,
        )
        if shared.observer is not None:
            shared.observer.begin_plan(self._prepared.plan)
        try:
            batch = _Batch(
                around,
                shared,
                instances,
                order,
                on_finished=on_finished,
                first_position=first_position,
                live=live,
                on_cancelled=on_cancelled,
            )
            await batch.run()
        finally:
            if resources is None:
                shared.close()


class _Batch:
    """One run of a batch."""

    def __init__(
        self,
        around: BatchContext,
        resources: Resources,
        instances: Sequence[Instance],
        order: Sequence[int],
        *,
        on_finished: OnFinished,
        first_position: int,
        live: Sequence[LiveTokens] | None,
        on_cancelled: OnCancelled | None,
    ) -> None:
        self._around = around
        self._resources = resources
        self._instances = instances
        self._order = order
        self._on_finished = on_finished
        self._first_position = first_position
        self._live = live
        self._on_cancelled = on_cancelled
        self._stage: Stage = around.prepared.main.whole
        self._values: dict[Value, Any] = {}
        self._recording = Recording()

    async def run(self) -> None:
        """First what all instances share, then as many of them at a time as the window allows.

        An instance that is alone shares nothing: a step that computes its prefix ahead would only come before its own.
        """
        if len(self._instances) == 1:
            await self._work(iter((0,)))
            return
        quiet = replace(self._around, on_event=None)  # each instance tells of its text itself
        machine = self._machine(quiet, self._around.prepared.shared, {}, instance=0, position=self._first_position)
        try:
            if self._resources.refusal() is None:
                await machine.run()
            if machine.end is None:
                self._stage = self._around.prepared.own
                self._values, self._recording = machine.environment, machine.recording
            positions = iter(range(len(self._order)))
            workers = [asyncio.ensure_future(self._work(positions)) for _ in self._order[: self._resources.window]]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        finally:
            machine.release_prefixes()

    async def _work(self, positions: Iterator[int]) -> None:
        for position in positions:
            index = self._order[position]
            async with self._room(position):
                refused = self._resources.refusal()
                end = await self._run_one(position, index) if refused is None else self._refused(refused)
            self._on_finished(index, end)
            await asyncio.sleep(0)  # an engine that answers at once would keep the loop from being told to stop

    def _room(self, position: int) -> AbstractAsyncContextManager[None]:
        """Return the block in which the instance at a position of the order has room in the engine's pool."""
        room = self._resources.room
        if room is None or self._live is None:
            return nullcontext()
        return room.running(self._first_position + position, self._live[position])

    def _refused(self, error: LmcError) -> Finished:
        """Return the end of an instance that does not start, at the line of its first request."""
        prepared = self._around.prepared
        ops = [op for op in prepared.main.ops if isinstance(op, SamplingOp | SelectOp)] or prepared.main.ops
        return Finished(None, located(error, ops[0].location), Profile(prepared.plan.name))

    async def _run_one(self, position: int, index: int) -> Finished:
        instance = self._instances[index]
        plan = self._around.prepared.plan
        try:
            values = {**self._values, **_bind(plan, instance.inputs)}
        except LmcError as error:
            return Finished(None, error, Profile(plan.name))
        place = self._first_position + position
        machine = self._machine(self._around, self._stage, values, instance=instance.number, position=place)
        if position == 0:
            machine.recording.add(self._recording)
        try:
            self._report_shared(machine)
            await machine.run()
        except asyncio.CancelledError:
            if self._on_cancelled is not None:
                self._on_cancelled(index, machine.recording.profile(plan.name))
            raise
        finally:
            machine.release_prefixes()
        profile = machine.recording.profile(plan.name)
        end = machine.end
        if not isinstance(end, ProgramExit):
            return Finished(None, None if end is None else end.located(), profile)
        try:
            return Finished(outcome(end.op, end.environment, profile), None, profile)
        except Exception as error:  # a transcript that the template refuses, say
            return Finished(None, located(error, end.op.location), profile)

    def _report_shared(self, machine: StageRun) -> None:
        """Report the text that was computed once for all instances."""
        if self._around.on_event is None or self._stage is not self._around.prepared.own:
            return
        for index in self._around.prepared.shared.instructions:
            op = self._around.prepared.main.ops[index]
            if isinstance(op, SamplingOp):
                report_forced(machine, op, machine.environment)

    def _machine(
        self, around: BatchContext, stage: Stage, values: dict[Value, Any], *, instance: int, position: int
    ) -> StageRun:
        return StageRun(around, stage, values, ask=ask, instance=instance, position=position)


def _bind(plan: Plan, inputs: Mapping[str, Any]) -> dict[Value, Any]:
    """The inputs by slot. Raises ``InputError`` for missing and unknown names."""
    named = [Value(parameter.name, parameter.value.type) for parameter in plan.parameters]
    bound = bind_parameters(named, inputs)
    return {parameter.value: bound[name] for parameter, name in zip(plan.parameters, named, strict=True)}
