"""Runs one stage of a plan for one instance: each instruction as soon as those it depends on are finished.

Everything here happens in one thread, that of the event loop; what engines and host functions answer from theirs is
handed over to it. An instruction costs a few dictionary operations and no task of its own.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor as Pool
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lmc.backend.schedule import common_length
from lmc.ir import semantics
from lmc.ir.core import Op, Value
from lmc.ir.engine import Engine, OnDelta, Pin, PrefixCaching, TokenDelta
from lmc.ir.errors import InputError, LmcError, RequestCancelledError
from lmc.ir.interpreter import generation_profile, score_profile
from lmc.ir.ops import HostCallOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.profile import OpProfile, Usage
from lmc.runtime.admission import Admission
from lmc.runtime.events import OnEvent, TokenEvent, branch_of
from lmc.runtime.in_flight import InFlight
from lmc.runtime.prefixes import HeldPrefixes, PinBudget
from lmc.runtime.prepared import PreparedPlan, Stage


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


@dataclass(eq=False)
class _Call:
    """An instruction that waits for answers from outside. ``finish`` makes its results of them."""

    index: int
    answers: list[Any]
    missing: int
    finish: Callable[[list[Any]], tuple[Any, ...]]
    cancels: list[Callable[[], object]] = field(default_factory=list)
    dropped: bool = False


class Machine:
    """One run of a stage. ``environment`` holds the values known before and takes the results."""

    def __init__(
        self, around: Surroundings, stage: Stage, environment: dict[Value, Any], *, instance: int, position: int
    ) -> None:
        self.environment = environment
        self.profile: dict[str, OpProfile] = {}
        self.failure: tuple[int, BaseException] | None = None
        self._around = around
        self._ops = around.prepared.ops
        self._instance = instance
        self._position = position
        self._waits = dict(stage.waits)
        self._ready = [index for index in stage.instructions if not stage.waits[index]]
        self._calls: dict[int, _Call] = {}
        self._prompt: tuple[int, ...] = ()
        self._tokens = 0
        self._advancing = False
        self._over: asyncio.Event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        engine = around.engine
        self._prefixes = (
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
        if self._prefixes is not None:
            self._prefixes.let_go_of_all()

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
                self._finish(index, ())
            elif isinstance(op, PrefillOp):
                self._prefill(index, op)
            elif semantics.is_local(op):
                self._finish(index, semantics.evaluate(op, self.environment, self._around.engine.tokenizer))
            elif isinstance(op, SamplingOp):
                self._generate(index, op)
            elif isinstance(op, SelectOp):
                self._select(index, op)
            elif isinstance(op, HostCallOp):
                self._call_host(index, op)
            else:
                raise TypeError(f"the executor can't run {op.NAME}")
        except Exception as error:  # the user's expressions raise what they like
            self._fail(index, error)

    def _finish(self, index: int, results: tuple[Any, ...]) -> None:
        self.environment.update(zip(self._ops[index].results, results, strict=True))
        for dependent in self._around.prepared.dependents[index]:
            waits = self._waits.get(dependent)
            if waits is None:
                continue
            self._waits[dependent] = waits - 1
            if waits == 1:
                heapq.heappush(self._ready, dependent)
        if self._prefixes is not None:
            self._prefixes.finished(index)

    def _fail(self, index: int, error: BaseException) -> None:
        """Keep the failure that comes first in program order, and stop all that comes after it."""
        if self.failure is not None and self.failure[0] < index:
            return
        self.failure = (index, _located(error, self._ops[index]))
        for later in [other for other in self._calls if other > index]:
            self._drop(later)

    def _generate(self, index: int, op: SamplingOp) -> None:
        around = self._around
        context = self.environment[op.context]
        requests = semantics.generation_requests(op, context, run_seed=around.run_seed, instance=self._instance)
        start = time.perf_counter()

        def finish(generations: list[Any]) -> tuple[Any, ...]:
            self._record(op.id, generation_profile(generations, time.perf_counter() - start))
            return semantics.generation_results(op, context, generations)

        call = self._call(index, len(requests), finish)
        for number, request in enumerate(requests):
            self._count_tokens(request.prompt, op.max_tokens)
            self._request(call, number, partial(around.engine.submit, request, self._on_delta(op, number)))

    def _select(self, index: int, op: SelectOp) -> None:
        context = self.environment[op.context]
        choices = semantics.select_choices(op, self.environment)
        requests = semantics.select_requests(op, context, choices, instance=self._instance)
        start = time.perf_counter()

        def finish(scores: list[Any]) -> tuple[Any, ...]:
            self._record(op.id, score_profile(scores, time.perf_counter() - start))
            results = semantics.select_results(op, context, choices, scores)
            self._report(op.id, op.name, 0, results[1])
            return results

        call = self._call(index, len(requests), finish)
        for number, request in enumerate(requests):
            self._count_tokens(request.prompt, sum(map(len, request.continuations)))
            self._request(call, number, partial(self._around.engine.score, request))

    def _prefill(self, index: int, op: PrefillOp) -> None:
        """Compute and pin a stable prefix. A hint: where that can't be done, generations compute what they need."""
        context = self.environment[op.context]
        prefix = self._pinnable(context)
        if self._prefixes is None or not prefix:
            self._finish(index, (context,))
            return
        start = time.perf_counter()
        prefixes, budget = self._prefixes, self._around.budget

        def finish(answers: list[Any]) -> tuple[Any, ...]:
            budget.give_back(len(prefix))
            pin = answers[0]
            if isinstance(pin, Pin):
                prefixes.hold(index, pin)
                usage = Usage(prompt_tokens=pin.length, cached_tokens=pin.cached_tokens)
                self._record(self._around.prepared.prefill_ids[index], OpProfile(usage, time.perf_counter() - start))
            return (context,)

        call = self._call(index, 1, finish)
        budget.take(len(prefix))
        call.cancels.append(partial(budget.give_back, len(prefix)))
        self._request(call, 0, partial(prefixes.engine.prefill, prefix))

    def _pinnable(self, context: Any) -> tuple[int, ...]:
        try:
            prefix = context.stable_prefix
        except LmcError:  # the generation that needs this prompt says so, with its own line
            return ()
        return prefix if self._around.budget.allows(len(prefix)) else ()

    def _call_host(self, index: int, op: HostCallOp) -> None:
        host = self._around.hosts.get(op.host)
        if host is None:
            raise InputError(
                f"the host function @{op.host} is not there",
                remedy="pass the program that defines it",
                location=op.location,
            )
        positional, keyword = semantics.call_arguments(op.arguments, op.keywords, self.environment)
        call = self._call(index, 1, tuple)
        future = self._around.host_pool.submit(_caught, host, positional, keyword)
        call.cancels.append(future.cancel)
        waiting = asyncio.wrap_future(future, loop=self._loop)
        waiting.add_done_callback(partial(self._host_answer, call))

    def _host_answer(self, call: _Call, future: asyncio.Future[tuple[Any, BaseException | None]]) -> None:
        if not call.dropped:
            self._answer(call, 0, *future.result())

    def _call(self, index: int, count: int, finish: Callable[[list[Any]], tuple[Any, ...]]) -> _Call:
        call = _Call(index, [None] * count, count, finish)
        self._calls[index] = call
        return call

    def _request(self, call: _Call, number: int, submit: Callable[[], Any]) -> None:
        """Put one engine request in the queue."""
        priority = (self._position, self._around.prepared.ranks[call.index], number)
        self._around.in_flight.request(priority, partial(self._submit, call, number, submit))

    def _count_tokens(self, prompt: tuple[int, ...], more: int) -> None:
        """Say what this instance holds of the KV pool: every prompt as far as it differs from the one before."""
        if self._around.admission.counts_tokens:
            self._tokens += len(prompt) - common_length(self._prompt, prompt) + more
            self._prompt = prompt
            self._around.admission.seen(self._tokens)

    def _submit(self, call: _Call, number: int, submit: Callable[[], Any]) -> bool:
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

    def _engine_answer(self, call: _Call, number: int, future: Future[Any] | asyncio.Future[Any]) -> None:
        self._around.in_flight.release()
        error = RequestCancelledError("the request was cancelled") if future.cancelled() else future.exception()
        answer = future.result() if error is None else None
        if call.dropped:
            if isinstance(answer, Pin) and self._prefixes is not None:
                self._prefixes.engine.unpin(answer)
            return
        if error is not None and isinstance(self._ops[call.index], PrefillOp) and isinstance(error, LmcError):
            error = None
        self._answer(call, number, answer, error)

    def _answer(self, call: _Call, number: int, answer: Any, error: BaseException | None) -> None:
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
            self._finish(call.index, call.finish(call.answers))
        except Exception as failure:  # results that can't be made of the answers: an engine's fault, or the user's
            self._fail(call.index, failure)
        self._advance()

    def _drop(self, index: int) -> None:
        call = self._calls.pop(index)
        call.dropped = True
        for cancel in call.cancels:
            cancel()

    def _on_delta(self, op: SamplingOp, sample: int) -> OnDelta | None:
        if self._around.on_event is None:
            return None

        def report(delta: TokenDelta) -> None:
            self._report(op.id, op.name, sample, delta.text)

        return report

    def _report(self, op_id: str, name: str | None, sample: int, text: str) -> None:
        if self._around.on_event is not None:
            event = TokenEvent(self._instance, branch_of(op_id), op_id, name, sample, text)
            self._around.on_event(event)

    def _record(self, op_id: str, entry: OpProfile) -> None:
        known = self.profile.get(op_id)
        self.profile[op_id] = entry if known is None else known + entry


def _caught(
    host: Callable[..., Any], positional: list[Any], keyword: dict[str, Any]
) -> tuple[Any, BaseException | None]:
    """Call a host function in its thread. What it raises comes back as a value: futures don't carry every exception."""
    try:
        return host(*positional, **keyword), None
    except BaseException as error:  # SystemExit of one instance must not end a worker of the batch
        return None, error


def _located(error: BaseException, op: Op) -> BaseException:
    """The error, with the user's line where it has none yet."""
    if op.location is None:
        return error
    if isinstance(error, LmcError):
        error.location = error.location or op.location
    else:
        error.add_note(f"in the program at {op.location}")
    return error
