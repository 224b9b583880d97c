"""Runs one stage of a plan for one instance: its frames, one for each body that is under way, and their requests.

A frame starts each instruction of its body as soon as those it waits for are finished; the machine runs the frames by
turns, and hands them what engines and host functions answer. Everything here happens in one thread, that of the event
loop, to which answers from other threads are handed over. An instruction costs a few dictionary operations and no task
of its own.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from lmc.cache.batch_order.ranks import rank_of
from lmc.ir.builtins.statements import RAISING
from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import FreeOp, KeepOp, PrefillOp, PyCallOp, SampleOp, SamplingOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.engine.hosts import Answer, can_be_resumed
from lmc.ir.engine.observing import AskedRequest
from lmc.ir.engine.protocol import Place, PrefixCaching
from lmc.ir.errors import LmcError, RequestCancelledError, located
from lmc.ir.profile import OpProfile, Recording
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.context import Context
from lmc.runtime.batch_context import BatchContext
from lmc.runtime.events import TokenEvent, branch_of
from lmc.runtime.hints.lookahead import LookaheadWalk, UpcomingCalls
from lmc.runtime.hints.pinned_prefixes import HeldPrefixes
from lmc.runtime.hints.retention import KeptContexts
from lmc.runtime.host_calls import HostRun
from lmc.runtime.observed import asked_now, outcome_of
from lmc.runtime.prepared_body import PreparedBody, Stage
from lmc.runtime.speculative_calls import BegunCalls, EarlyCalls

_FOR_THE_ENGINE = (PrefillOp, KeepOp, FreeOp)
_SLICE = 500
"""Instructions that are started before the event loop has a turn."""


@dataclass(frozen=True, slots=True)
class ProgramExit:
    """The program, or its captured part, ends at ``op``; ``environment`` holds what that names."""

    op: Op
    environment: Mapping[Value, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """``op`` raised ``error``."""

    op: Op
    error: BaseException

    def located(self) -> BaseException:
        """The error, with the user's line."""
        return located(self.error, self.op.location)


Ending = ProgramExit | Failed
"""The early end of a body: the end of the program, or a failure."""


class Activity(Protocol):
    """The pending work of an instruction."""

    def cancel(self) -> None:
        """Cancel it: its result is not needed any more."""
        ...


class Owner(Protocol):
    """The run of an op with regions, as a frame of one of its regions sees it."""

    def aborting(self, frame: Frame) -> None:
        """``frame`` will end early; what comes before that in it is still under way."""
        ...

    def over(self, frame: Frame) -> None:
        """``frame`` has come to its end."""
        ...


class Frame:
    """One run of a body, for one instance. ``environment`` holds the values known before and takes the results.

    Where several instructions would end it early, the first in program order counts, as in plain Python: once one is
    known (``abort_after``), everything after it is cancelled, but earlier instructions continue, since one of them may
    end it still earlier. ``end`` is the one that did, once the frame is over.

    ``place`` is its position in the order of requests (``in_flight.Priority``), ``rounds`` are the numbers of the
    rounds and elements around it.
    """

    def __init__(
        self,
        machine: StageRun,
        body: PreparedBody,
        environment: dict[Value, Any],
        *,
        stage: Stage,
        place: tuple[int, ...],
        owner: Owner | None = None,
        rounds: tuple[int, ...] = (),
    ) -> None:
        self.machine = machine
        self.body = body
        self.environment = environment
        self.place = place
        self.owner = owner
        self.rounds = rounds
        self.end: Ending | None = None
        self.is_awake = False
        self.is_over = False
        self._waits = dict(stage.waits)
        self._ready = list(stage.first)
        self._active: dict[int, Activity] = {}
        self._limit = len(body.ops)  # instructions before it may start
        engine = machine.prefix_engine if body.prefill_ids else None
        self.prefixes = None if engine is None else HeldPrefixes(body, engine, machine.around.budget)
        self.early: EarlyCalls | None = None
        if stage.early_waits:
            self.early = EarlyCalls(
                body.early,
                stage,
                machine.begun,
                machine.around,
                environment=environment,
                rounds=rounds,
                row=machine.row,
            )

    @property
    def is_idle(self) -> bool:
        """True if nothing is ready and nothing under way: all that could be finished is."""
        return not self._ready and not self._active

    def step(self) -> bool:
        """Start the first instruction that is ready. False where none is."""
        while self._ready:
            index = heapq.heappop(self._ready)
            if index < self._limit:
                self._start(index)
                return True
        if self.early is not None:
            self.early.start_ready()
        return False

    def begin(self, index: int, activity: Activity) -> None:
        """The instruction at ``index`` is under way until ``finish``, ``fail`` or ``stop``."""
        self._active[index] = activity

    def has_begun(self, index: int) -> bool:
        """Return True if the instruction at ``index`` is under way, finished, or has no results to tell by."""
        results = self.body.ops[index].results
        return index in self._active or not results or results[0] in self.environment

    def finish(self, index: int, results: tuple[Any, ...]) -> None:
        """Take the results of an instruction, and see who was waiting for them."""
        self._active.pop(index, None)
        op = self.body.ops[index]
        self.environment.update(zip(op.results, results, strict=True))
        for dependent in self.body.dependents[index]:
            waits = self._waits.get(dependent)
            if waits is None:  # it belongs to another stage
                continue
            self._waits[dependent] = waits - 1
            if waits == 1:
                heapq.heappush(self._ready, dependent)
        if self.prefixes is not None:
            self.prefixes.finished(index)
        if self.early is not None:
            self.early.finished(index)
        if isinstance(op, RegionOp):
            self.machine.upcoming.over(op, self.rounds)
        self.machine.wake(self)

    def fail(self, index: int, error: BaseException) -> None:
        """The instruction at ``index`` raises ``error``."""
        self.stop(index, Failed(self.body.ops[index], error))

    def stop(self, index: int, end: Ending) -> None:
        """The instruction at ``index`` ends the frame, unless one before it does."""
        self._active.pop(index, None)
        self.abort_after(index)
        if index == self._limit:
            self.end = end
        self.machine.wake(self)

    def abort_after(self, index: int) -> None:
        """Abort everything after ``index``: the instruction there, or one before it, will end the frame."""
        if index >= self._limit:
            return
        is_first = self._limit == len(self.body.ops)
        self._limit = index
        for later in [other for other in self._active if other > index]:
            self._active.pop(later).cancel()
        if self.early is not None:
            self.early.abort_after(index)
        if is_first and self.owner is not None:
            self.owner.aborting(self)

    def cancel(self) -> None:
        """Stop all that is under way."""
        if self.is_over:
            return
        self.is_over = True
        self._ready.clear()
        for activity in self._active.values():
            activity.cancel()
        self._active.clear()
        self.release()

    def release(self) -> None:
        """Release everything that is held for it."""
        self.release_prefixes()
        self.machine.kept.frame_is_over(self)
        if self.early is not None:
            self.early.release()

    def release_prefixes(self) -> None:
        """Unpin every prefix that is still held."""
        if self.prefixes is not None:
            self.prefixes.release()

    def _start(self, index: int) -> None:
        op = self.body.ops[index]
        if self.early is not None:
            self.early.reached(index)
        try:
            if isinstance(op, LEAVING):
                self.stop(index, ProgramExit(op, self.environment))
            elif op.IS_TERMINATOR:
                self.finish(index, ())
            elif semantics.is_local(op) and not isinstance(op, _FOR_THE_ENGINE):
                self._evaluate(index, op)
            else:
                self.machine.ask(self, index, op)
        except BaseException as error:  # the user's expressions raise what they like
            if not isinstance(error, Exception) and not (isinstance(op, PyCallOp) and op.function in RAISING):
                raise
            self.fail(index, error)

    def _evaluate(self, index: int, op: Op) -> None:
        around = self.machine.around
        results = semantics.evaluate(op, self.environment, around.engine.tokenizer, around.constraints)
        if isinstance(op, SamplingOp):
            report_forced(self.machine, op, self.environment)
        self.finish(index, results)


Ask = Callable[[Frame, int, Op], None]
"""Starts the instruction of a frame at an index, whose op is given."""


@dataclass(eq=False)
class Call:
    """An instruction that waits for answers from outside. ``finish`` makes its results of them.

    If it is dropped, ``cancels`` are called, and ``unwanted`` with each answer that is there or comes all the same.
    ``waiting`` are the answers that are still to come.
    ``failed`` is called with each error in place of an answer.
    With ``may_fail`` an ``LmcError`` in place of an answer is the answer None.
    """

    frame: Frame
    index: int
    answers: list[Any]
    missing: int
    finish: Callable[[list[Any]], tuple[Any, ...]]
    cancels: list[Callable[[], object]] = field(default_factory=list)
    waiting: list[asyncio.Future[Any]] = field(default_factory=list[asyncio.Future[Any]])
    unwanted: Callable[[Any], object] | None = None
    failed: Callable[[BaseException], object] | None = None
    may_fail: bool = False
    dropped: bool = False

    @classmethod
    def begin(cls, frame: Frame, index: int, count: int, finish: Callable[[list[Any]], tuple[Any, ...]]) -> Call:
        """Let an instruction wait for ``count`` answers; ``finish`` makes its results of them."""
        call = cls(frame, index, [None] * count, count, finish)
        frame.begin(index, call)
        return call

    def cancel(self) -> None:
        """Drop it: its answers are not needed any more."""
        self.dropped = True
        if not self.frame.machine.lets_finish(self):
            for cancel in self.cancels:
                cancel()
        for answer in self.answers:
            self.take_unwanted(answer)

    def take_unwanted(self, answer: Any) -> None:
        """Take an unused answer, None for none."""
        if answer is not None and self.unwanted is not None:
            self.unwanted(answer)


class StageRun:
    """One run of a stage of a plan. ``environment`` holds the values known before and takes the results.

    ``ask`` starts what can't be evaluated on the spot (``lmc.runtime.operations``).
    """

    def __init__(
        self,
        around: BatchContext,
        stage: Stage,
        environment: dict[Value, Any],
        *,
        ask: Ask,
        instance: int,
        position: int,
    ) -> None:
        self.recording = Recording()
        self.around = around
        self.ask = ask
        self.instance = instance
        self.row = None if stage is around.prepared.shared else instance
        self.prefix_engine = around.engine if isinstance(around.engine, PrefixCaching) else None
        self.begun = BegunCalls()
        self.kept = KeptContexts(around.engine, self._place_at)
        self._can_be_resumed = False
        self._finishing: list[Call] = []
        self._awake: deque[Frame] = deque()
        self.position = position
        self._advancing = False
        self._resting = False
        self._over: asyncio.Event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        steps = around.prepared.steps_to_come if stage is not around.prepared.shared else ()
        walk = LookaheadWalk(around.engine.tokenizer, around.constraints, around.in_flight.limit)
        self.upcoming = UpcomingCalls(around.lookahead, steps, self._place_at, walk)
        self._root = Frame(self, around.prepared.main, environment, stage=stage, place=(position,))

    @property
    def environment(self) -> dict[Value, Any]:
        """The values of the program's own body."""
        return self._root.environment

    @property
    def end(self) -> Ending | None:
        """The end of the run: the end of the program, or the failure that plain Python would have met first."""
        return self._root.end

    async def run(self) -> None:
        """Run to ``end``. Cancelling cancels every request in flight."""
        try:
            self.upcoming.expect(self._root.environment, self._root.has_begun)
            self.start([self._root])
            self._advance()
            await self._over.wait()
        finally:
            self._root.cancel()
            self.begun.drop_all()
            self.kept.withdraw_all()
            self.upcoming.withdraw_all()
            self._over.set()
        if self._finishing:
            await self._finish_others()

    def lets_finish(self, call: Call) -> bool:
        """Return True if a dropped call comes to its end: the run can be resumed, and the journal keeps its answer."""
        if self._can_be_resumed and call.waiting:
            self._finishing.append(call)
            return True
        return False

    async def _finish_others(self) -> None:
        """Wait for the calls that are paid for. Cancelling cancels them."""
        try:
            await asyncio.wait([each for call in self._finishing for each in call.waiting])
        except asyncio.CancelledError:
            for call in self._finishing:
                for cancel in call.cancels:
                    cancel()
            raise

    def release_prefixes(self) -> None:
        """Unpin every prefix that is still held."""
        self._root.release_prefixes()

    def start(self, frames: Sequence[Frame]) -> None:
        """Let new frames run before other ready ones: so a program keeps its own order where it can."""
        for frame in frames:
            frame.is_awake = True
        self._awake.extendleft(reversed(frames))

    def wake(self, frame: Frame) -> None:
        """Let a frame run, behind what else is ready."""
        if not frame.is_awake:
            frame.is_awake = True
            self._awake.append(frame)

    def place(self, frame: Frame, index: int) -> Place:
        """Return the position of an instruction's requests in the order of the batch."""
        return self._place_at(frame.body.stages[index])

    def _place_at(self, stage: int) -> Place:
        around = self.around
        rank = rank_of(self.position, stage, stages=around.prepared.stages, block=around.block)
        return Place(around.run, rank, around.lane)

    def _advance(self) -> None:
        """Start what is ready. What ends at once is followed here, never by recursion.

        After a slice of that the event loop has its turn: a program may have loops that wait for nothing. Answers that
        come meanwhile don't make another slice of it.
        """
        if self._advancing or self._resting or self._over.is_set():
            return
        self._advancing = True
        try:
            for _ in range(_SLICE):
                if not self._awake:
                    return
                frame = self._awake[0]
                if frame.step():
                    continue
                self._awake.popleft()
                frame.is_awake = False
                if frame.is_idle and not frame.is_over:
                    self._end(frame)
            self._resting = True
            self._loop.call_soon(self._go_on)
        finally:
            self._advancing = False
            if not self._awake:
                self.kept.withdraw_loose()

    def _go_on(self) -> None:
        self._resting = False
        self._advance()

    def _end(self, frame: Frame) -> None:
        frame.is_over = True
        if frame.owner is None:
            self._over.set()
            return
        frame.release()
        frame.owner.over(frame)

    def request(self, call: Call, number: int, submit: Callable[[], Any]) -> None:
        """Put one engine request in the queue."""
        frame, block = call.frame, self.around.block
        priority = (*frame.place, frame.body.ranks[call.index], number)
        if block > 1:
            priority = (self.position // block, frame.body.stages[call.index], *priority)
        asked, in_flight = None, self.around.in_flight
        if self.around.observer is not None:
            held, environment = in_flight.is_full, frame.environment
            asked = asked_now(frame.body, call.index, environment, row=self.row, number=number, held=held)
        in_flight.request(priority, partial(self._submit, call, number, submit, asked))

    def _submit(self, call: Call, number: int, submit: Callable[[], Any], asked: AskedRequest | None) -> bool:
        if call.dropped:
            return False
        observer = self.around.observer
        ended = None if observer is None or asked is None else observer.begin_request(asked)
        try:
            handle = submit()
        except Exception as error:  # an engine should answer through its handle; one that does not fails alone
            if ended is not None:
                ended(error)
            self._answer(call, number, None, error)
            return False
        outcome = outcome_of(handle.future) if handle.future.done() else None
        if ended is not None and outcome is not None:
            ended(outcome)
        elif ended is not None:
            handle.future.add_done_callback(lambda future: ended(outcome_of(future)))
        if number == len(call.answers) - 1:
            self.upcoming.begun(call.frame.body.ops[call.index], call.frame.rounds)
        if outcome is not None:
            self._engine_answer(call, number, outcome)
            return True
        call.cancels.append(handle.cancel)
        waiting = asyncio.wrap_future(handle.future, loop=self._loop)
        call.waiting.append(waiting)
        waiting.add_done_callback(lambda future: self._engine_answer(call, number, outcome_of(future)))
        return True

    def _engine_answer(self, call: Call, number: int, outcome: Any) -> None:
        answer, error = (None, outcome) if isinstance(outcome, BaseException) else (outcome, None)
        if error is not None and call.failed is not None:
            call.failed(error)
        if call.dropped:
            call.take_unwanted(answer)
        elif call.may_fail and isinstance(error, LmcError):
            self._answer(call, number, None, None)
        else:
            self._answer(call, number, answer, error)
        self.around.in_flight.release()  # now that what follows is in the queue too

    def wait_for_host(self, call: Call, run: HostRun) -> None:
        """Let ``run`` give the only answer of ``call``, or its error."""
        call.cancels += run.cancels
        waiting = asyncio.wrap_future(run.future, loop=self._loop)
        call.waiting.append(waiting)
        waiting.add_done_callback(partial(self._host_answer, call))

    def _host_answer(self, call: Call, done: asyncio.Future[Answer]) -> None:
        if call.dropped:
            return
        if done.cancelled():
            self._answer(call, 0, None, RequestCancelledError("the call of a tool was cancelled"))
        else:
            self._answer(call, 0, *done.result())

    def _answer(self, call: Call, number: int, answer: Any, error: BaseException | None) -> None:
        if call.dropped:
            return
        if error is not None:
            self._can_be_resumed = self._can_be_resumed or (self.around.journal is not None and can_be_resumed(error))
            call.cancel()
            call.frame.fail(call.index, error)
            self._advance()
            return
        call.answers[number] = answer
        call.missing -= 1
        if call.missing:
            return
        try:
            call.frame.finish(call.index, call.finish(call.answers))
        except Exception as failure:  # results that can't be made of the answers: an engine's fault, or the user's
            call.frame.fail(call.index, failure)
        self._advance()

    def report(self, op_id: str, name: str | None, sample: int, text: str, context: Context) -> None:
        """Report new text after ``context``. From any thread."""
        if self.around.on_event is not None:
            event = TokenEvent(self.instance, branch_of(op_id), op_id, name, sample, text, context)
            self.around.on_event(event)

    def record(self, op_id: str, entry: OpProfile) -> None:
        """Count the cost of an op; costs after the end of the run are ignored."""
        if self._over.is_set():
            return
        self.recording.op(op_id, entry)


def report_forced(machine: StageRun, op: SamplingOp, environment: Mapping[Value, Any]) -> None:
    """Report the text of an op whose tokens are known without a model."""
    around = machine.around
    if around.on_event is None or not op.forced:
        return
    text = semantics.forced_generation(op, op.forced, around.engine.tokenizer).text
    op_id = semantics.runtime_id(op, environment)
    for sample in range(op.n if isinstance(op, SampleOp) else 1):
        machine.report(op_id, op.name, sample, text, environment[op.context])
