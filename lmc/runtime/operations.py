"""Implementations of ops: their requests to the engine or the user's functions, and their waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from lmc.ir.core import Op
from lmc.ir.dialects.core_ops import FreeOp, HostCallOp, KeepOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.engine.protocol import Engine, OnDelta, Pin, Request, ScoreRequest, TokenDelta
from lmc.ir.errors import LmcError, PlanMismatchError
from lmc.ir.profile import OpProfile
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics import selection
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.interpreter import failed_profile, generation_profile, score_profile
from lmc.runtime.host_calls import begin
from lmc.runtime.machine import Call, Frame, StageRun
from lmc.runtime.observed import observed_call
from lmc.runtime.region_runs import run_regions

R = TypeVar("R", Request, ScoreRequest)


def ask(frame: Frame, index: int, op: Op) -> None:
    """Start an instruction that can't be evaluated on the spot. Raises what making its requests raises."""
    if isinstance(op, SamplingOp):
        generate(frame, index, *frame.machine.around.constraints.defined(op, frame.environment))
    elif isinstance(op, SelectOp):
        select(frame, index, op)
    elif isinstance(op, PrefillOp):
        prefill(frame, index, op)
    elif isinstance(op, KeepOp):
        keep(frame, index, op)
    elif isinstance(op, FreeOp):
        free(frame, index, op)
    elif isinstance(op, HostCallOp):
        call_host(frame, index, op)
    elif isinstance(op, RegionOp):
        run_regions(frame, index, op)
    else:
        raise TypeError(f"the executor can't run {op.NAME}")


def generate(
    frame: Frame, index: int, op: SamplingOp, constraints: Constraints, made: Callable[[Any], Any] = tuple
) -> None:
    """One request for ``lm.gen``, ``n`` for ``lm.sample``. ``made`` gives the instruction's results from the op's."""
    machine, around = frame.machine, frame.machine.around
    context = frame.environment[op.context]
    op_id = semantics.runtime_id(op, frame.environment)
    requests = semantics.generation_requests(
        op,
        context,
        op_id=op_id,
        run_seed=around.run_seed,
        instance=machine.instance,
        info=around.engine.info,
        constraints=constraints,
    )
    start, cost = time.perf_counter(), partial(generation_profile, around.engine.tokenizer)

    def finish(generations: list[Any]) -> tuple[Any, ...]:
        machine.record(op_id, cost(requests, generations, time.perf_counter() - start))
        return made(semantics.generation_results(op, context, generations, constraints))

    def unwanted(generation: Any) -> None:
        """It was paid for all the same."""
        machine.record(op_id, cost(requests[:1], [generation], time.perf_counter() - start))

    call = Call.begin(frame, index, len(requests), finish)
    call.unwanted = unwanted
    call.failed = partial(_record_failed, machine, op_id, requests[0], start)
    machine.kept.begun(frame, index, requests[0].prompt)
    machine.around.lookahead.asks(requests)
    for number, request in enumerate(_placed(frame, index, requests)):
        machine.request(
            call, number, partial(around.engine.submit, request, _on_delta(machine, op_id, op.name, number, context))
        )


def select(frame: Frame, index: int, op: SelectOp) -> None:
    """One scoring request, two for the unconditional method."""
    machine, engine = frame.machine, frame.machine.around.engine
    context = frame.environment[op.context]
    choices = selection.choices_of(op, frame.environment)
    if selection.is_written(op, engine.info):
        written = selection.written_op(op, choices, machine.around.constraints)
        generate(frame, index, *written, lambda results: selection.written_results(results, choices))
        return
    op_id = semantics.runtime_id(op, frame.environment)
    requests = selection.requests_of(op, context, choices, op_id=op_id, instance=machine.instance, info=engine.info)
    start = time.perf_counter()

    def finish(scores: list[Any]) -> tuple[Any, ...]:
        machine.record(op_id, score_profile(engine.tokenizer, requests, scores, time.perf_counter() - start))
        results = selection.results_of(op, context, requests, choices, scores)
        machine.report(op_id, op.name, 0, results[1], context)
        return results

    def unwanted(score: Any) -> None:
        machine.record(op_id, score_profile(engine.tokenizer, requests[:1], [score], time.perf_counter() - start))

    call = Call.begin(frame, index, len(requests), finish)
    call.unwanted = unwanted
    call.failed = partial(_record_failed, machine, op_id, requests[0], start)
    machine.kept.begun(frame, index, requests[0].prompt)
    machine.around.lookahead.asks(requests)
    for number, request in enumerate(_placed(frame, index, requests)):
        machine.request(call, number, partial(engine.score, request))


def prefill(frame: Frame, index: int, op: PrefillOp) -> None:
    """Compute and pin a stable prefix. A hint: where that can't be done, generations compute what they need.

    It costs seconds and no tokens: each token is counted in the prompts of the calls that build on it. One of a batch
    is computed by what its instances share; an instance that runs without that leaves it to its calls, unless they wait
    for other results meanwhile.
    """
    context = frame.environment[op.context]
    prefixes, budget = frame.prefixes, frame.machine.around.budget
    prefix = _stable_prefix(context, frame.machine.around.engine)
    is_left = op.scope == "batch" and not op.ahead and frame.machine.row is not None
    if is_left or prefixes is None or not prefix or not budget.allows(len(prefix)):
        frame.finish(index, (context,))
        return
    start = time.perf_counter()

    def finish(answers: list[Any]) -> tuple[Any, ...]:
        budget.give_back(len(prefix))
        if isinstance(answers[0], Pin):
            prefixes.hold(index, answers[0])
            entry = OpProfile(seconds=time.perf_counter() - start)
            frame.machine.record(frame.body.prefill_ids[index], entry)
        return (context,)

    call = Call.begin(frame, index, 1, finish)
    call.may_fail = True
    call.unwanted = prefixes.engine.unpin
    budget.take(len(prefix))
    call.cancels.append(partial(budget.give_back, len(prefix)))
    place, priority = frame.machine.place(frame, index), frame.machine.around.priority
    frame.machine.request(call, 0, partial(prefixes.engine.prefill, prefix, place, priority))


def keep(frame: Frame, index: int, op: KeepOp) -> None:
    """Send the engine the next use of the context, unless it is pinned."""
    kept = frame.machine.kept
    is_pinned = frame.prefixes is not None and frame.prefixes.holds(op.context)
    if kept.engine is not None and not is_pinned:
        context = frame.environment[op.context]
        kept.expect(frame, index, context.computed or _stable_prefix(context, kept.engine))
    frame.finish(index, ())


def free(frame: Frame, index: int, op: FreeOp) -> None:
    """Release the context and its pin."""
    frame.machine.kept.withdraw(frame, op.context)
    if frame.prefixes is not None:
        frame.prefixes.let_go_of(op.context)
    frame.finish(index, ())


def call_host(frame: Frame, index: int, op: HostCallOp) -> None:
    """Call a function of the user's program, or take over a call that has begun early."""
    host = frame.machine.around.hosts.get(op.host)
    if host is None:
        raise PlanMismatchError(
            f"the host function @{op.host} is not there",
            remedy="pass the program that defines it",
            location=op.location,
        )
    positional, keyword = semantics.call_arguments(op.arguments, op.keywords, frame.environment)
    call = Call.begin(frame, index, 1, tuple)
    run = frame.machine.begun.take((op, frame.rounds))
    if run is None:
        around = frame.machine.around
        observe = observed_call(around, op, frame.machine.row)
        scope = around.scope_of(op, frame.machine.instance, frame.rounds)
        run = begin(host, positional, keyword, around.host_pool, scope=scope, observe=observe)
    frame.machine.wait_for_host(call, run)


def _record_failed(
    machine: StageRun, op_id: str, request: Request | ScoreRequest, start: float, error: BaseException
) -> None:
    """Count what was computed for a request that failed."""
    entry = failed_profile(machine.around.engine.tokenizer, request, error, time.perf_counter() - start)
    if entry is not None:
        machine.record(op_id, entry)


def _placed(frame: Frame, index: int, requests: Sequence[R]) -> list[R]:
    """The requests of an instruction, with what the engine is to know of the batch that they belong to."""
    around = frame.machine.around
    place = frame.machine.place(frame, index)
    return [
        replace(request, timeout=around.request_timeout, place=place, priority=around.priority) for request in requests
    ]


def _stable_prefix(context: Any, engine: Engine) -> tuple[int, ...]:
    try:
        context.check_fits(engine.info.context_length)
        return context.stable_prefix
    except LmcError:  # the generation that needs this prompt says so, with its own line
        return ()


def _on_delta(machine: StageRun, op_id: str, name: str | None, sample: int, context: Context) -> OnDelta | None:
    if machine.around.on_event is None:
        return None

    def report(delta: TokenDelta) -> None:
        machine.report(op_id, name, sample, delta.text, context)

    return report
