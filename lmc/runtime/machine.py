"""Runs one stage of a plan for one instance: each instruction as soon as those it depends on are finished.

Everything here happens in one thread, that of the event loop; what engines and host functions answer from theirs is
handed over to it. An instruction costs a few dictionary operations and no task of its own.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Mapping
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lmc.backend.schedule import common_length
from lmc.ir import semantics
from lmc.ir.constraints import Constraints
from lmc.ir.context import Context
from lmc.ir.core import Op, Value
from lmc.ir.engine import Engine, PrefixCaching
from lmc.ir.errors import LmcError, RequestCancelledError
from lmc.ir.ops import PrefillOp, SampleOp, SamplingOp
from lmc.ir.profile import OpProfile
from lmc.runtime.admission import Admission
from lmc.runtime.events import OnEvent, TokenEvent, branch_of
from lmc.runtime.in_flight import InFlight
from lmc.runtime.prefixes import HeldPrefixes, PinBudget
from lmc.runtime.prepared import PreparedPlan, Stage

Ask = Callable[["Machine", int, Op], None]
"""Starts the instruction at an index, whose op is given."""


@dataclass(frozen=True)
class Surroundings:
    """What all instances of a batch have in common while they run."""

    prepared: PreparedPlan
    engine: Engine
    hosts: Mapping[str, Callable[..., Any]]
    host_pool: Pool
    in_flight: InFlight
    budget: PinBudget
    admission: Admission
    run_seed: int
    on_event: OnEvent | None
    request_timeout: float | None = None
    constraints: Constraints = semantics.NO_CONSTRAINTS


@dataclass(eq=False)
class Call:
    """An instruction that waits for answers from outside. ``finish`` makes its results of them.

    ``cancels`` are called if it is dropped, ``unwanted`` with an answer that comes too late then. With ``may_fail`` an
    ``LmcError`` in place of an answer is the answer None.
    """

    index: int
    answers: list[Any]
    missing: int
    finish: Callable[[list[Any]], tuple[Any, ...]]
    cancels: list[Callable[[], object]] = field(default_factory=list)
    unwanted: Callable[[Any], object] | None = None
    may_fail: bool = False
    dropped: bool = False


class Machine:
    """One run of a stage. ``environment`` holds the values known before and takes the results.

    ``ask`` starts what can't be evaluated on the spot (``lmc.runtime.operations``).
    """

    def __init__(
        self,
        around: Surroundings,
        stage: Stage,
        environment: dict[Value, Any],
        *,
        ask: Ask,
        instance: int,
        position: int,
    ) -> None:
        self.environment = environment
        self.profile: dict[str, OpProfile] = {}
        self.failure: tuple[int, BaseException] | None = None
        self.around = around
        self._ask = ask
        self._ops = around.prepared.ops
        self.instance = instance
        self._position = position
        self._waits = dict(stage.waits)
        self._ready = [index for index in stage.instructions if not stage.waits[index]]
        self._calls: dict[int, Call] = {}
        self._prompt: tuple[int, ...] = ()
        self._tokens = 0
        self._advancing = False
        self._over: asyncio.Event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        engine = around.engine
        self.prefixes = (
            HeldPrefixes(around.prepared, engine, around.budget) if isinstance(engine, PrefixCaching) else None
        )

    async def run(self) -> None:
        """Run to the end, or to the failure plain Python would have met first: then ``failure`` is set.

        Cancelling cancels every request in flight.
        """
        try:
            self._advance()
            await self._over.wait()
        finally:
            for index in list(self._calls):
                self._drop(index)

    def let_go_of_prefixes(self) -> None:
        """Unpin every prefix that is still held."""
        if self.prefixes is not None:
            self.prefixes.let_go_of_all()

    def _advance(self) -> None:
        """Start what is ready, lowest first. Instructions that end at once are followed here, never by recursion."""
        if self._advancing:
            return
        self._advancing = True
        try:
            while self._ready:
                index = heapq.heappop(self._ready)
                if self.failure is None or index < self.failure[0]:
                    self._start(index)
        finally:
            self._advancing = False
        if not self._calls:
            self._over.set()

    def _start(self, index: int) -> None:
        op = self._ops[index]
        try:
            if op.IS_TERMINATOR:
                self.finish(index, ())
            elif semantics.is_local(op) and not isinstance(op, PrefillOp):
                self._evaluate(index, op)
            else:
                self._ask(self, index, op)
        except Exception as error:  # the user's expressions raise what they like
            self._fail(index, error)

    def _evaluate(self, index: int, op: Op) -> None:
        around = self.around
        results = semantics.evaluate(op, self.environment, around.engine.tokenizer, around.constraints)
        if isinstance(op, SamplingOp) and around.on_event is not None and op.forced:
            text = semantics.forced_generation(op, op.forced, around.engine.tokenizer).text
            for sample in range(op.n if isinstance(op, SampleOp) else 1):
                self.report(op.id, op.name, sample, text, self.environment[op.context])
        self.finish(index, results)

    def finish(self, index: int, results: tuple[Any, ...]) -> None:
        """Take the results of an instruction, and see who was waiting for them."""
        self.environment.update(zip(self._ops[index].results, results, strict=True))
        for dependent in self.around.prepared.dependents[index]:
            waits = self._waits.get(dependent)
            if waits is None:
                continue
            self._waits[dependent] = waits - 1
            if waits == 1:
                heapq.heappush(self._ready, dependent)
        if self.prefixes is not None:
            self.prefixes.finished(index)

    def _fail(self, index: int, error: BaseException) -> None:
        """Keep the failure that comes first in program order, and stop all that comes after it."""
        if self.failure is not None and self.failure[0] < index:
            return
        self.failure = (index, _located(error, self._ops[index]))
        for later in [other for other in self._calls if other > index]:
            self._drop(later)

    def call(self, index: int, count: int, finish: Callable[[list[Any]], tuple[Any, ...]]) -> Call:
        """Let an instruction wait for ``count`` answers, of which ``finish`` makes its results."""
        call = Call(index, [None] * count, count, finish)
        self._calls[index] = call
        return call

    def request(self, call: Call, number: int, submit: Callable[[], Any]) -> None:
        """Put one engine request in the queue."""
        priority = (self._position, self.around.prepared.ranks[call.index], number)
        self.around.in_flight.request(priority, partial(self._submit, call, number, submit))

    def count_tokens(self, prompt: tuple[int, ...], more: int) -> None:
        """Say what this instance holds of the KV pool: every prompt as far as it differs from the one before."""
        if self.around.admission.counts_tokens:
            self._tokens += len(prompt) - common_length(self._prompt, prompt) + more
            self._prompt = prompt
            self.around.admission.seen(self._tokens)

    def _submit(self, call: Call, number: int, submit: Callable[[], Any]) -> bool:
        if call.dropped:
            return False
        try:
            handle = submit()
        except Exception as error:  # an engine should answer through its handle; one that does not fails alone
            self._answer(call, number, None, error)
            return False
        if handle.future.done():
            self._engine_answer(call, number, handle.future)
            return True
        call.cancels.append(handle.cancel)
        waiting = asyncio.wrap_future(handle.future, loop=self._loop)
        waiting.add_done_callback(partial(self._engine_answer, call, number))
        return True

    def _engine_answer(self, call: Call, number: int, future: Future[Any] | asyncio.Future[Any]) -> None:
        self.around.in_flight.release()
        error = RequestCancelledError("the request was cancelled") if future.cancelled() else future.exception()
        answer = future.result() if error is None else None
        if call.dropped:
            if answer is not None and call.unwanted is not None:
                call.unwanted(answer)
            return
        if call.may_fail and isinstance(error, LmcError):
            error = None
        self._answer(call, number, answer, error)

    def run_in_thread(self, call: Call, work: Callable[[], tuple[Any, BaseException | None]]) -> None:
        """Run ``work`` in the batch's threads; it gives the only answer of ``call``, or its error."""
        future = self.around.host_pool.submit(work)
        call.cancels.append(future.cancel)
        waiting = asyncio.wrap_future(future, loop=self._loop)
        waiting.add_done_callback(lambda done: None if call.dropped else self._answer(call, 0, *done.result()))

    def _answer(self, call: Call, number: int, answer: Any, error: BaseException | None) -> None:
        if call.dropped:
            return
        if error is not None:
            self._drop(call.index)
            self._fail(call.index, error)
            self._advance()
            return
        call.answers[number] = answer
        call.missing -= 1
        if call.missing:
            return
        del self._calls[call.index]
        try:
            self.finish(call.index, call.finish(call.answers))
        except Exception as failure:  # results that can't be made of the answers: an engine's fault, or the user's
            self._fail(call.index, failure)
        self._advance()

    def _drop(self, index: int) -> None:
        call = self._calls.pop(index)
        call.dropped = True
        for cancel in call.cancels:
            cancel()

    def report(self, op_id: str, name: str | None, sample: int, text: str, context: Context) -> None:
        """Tell about new text after ``context``. From any thread."""
        if self.around.on_event is not None:
            event = TokenEvent(self.instance, branch_of(op_id), op_id, name, sample, text, context)
            self.around.on_event(event)

    def record(self, op_id: str, entry: OpProfile) -> None:
        """Count what an op cost."""
        known = self.profile.get(op_id)
        self.profile[op_id] = entry if known is None else known + entry


def _located(error: BaseException, op: Op) -> BaseException:
    """The error, with the user's line where it has none yet."""
    if op.location is None:
        return error
    if isinstance(error, LmcError):
        error.location = error.location or op.location
        return error
    note = f"in the program at {op.location}"
    if note not in getattr(error, "__notes__", ()):  # one exception may be raised for several instances
        error.add_note(note)
    return error
