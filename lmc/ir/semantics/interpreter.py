"""The reference semantics: runs a module op by op over any Engine, in program order, one at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmc.ir.builtins import structure
from lmc.ir.builtins.live import Live
from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import BreakOp, HostCallOp, ReturnOp, SamplingOp, SelectOp, UnreachableOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp, TryOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.engine.protocol import Engine, Generation, Request, Score, ScoreRequest
from lmc.ir.errors import InputError, LmcError, PlanMismatchError, RequestCancelledError, located
from lmc.ir.module import Module
from lmc.ir.profile import FallbackProfile, OpProfile, Profile, Recording, length_bins
from lmc.ir.semantics import control_flow, selection
from lmc.ir.semantics import ops as semantics
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Attempt, Usage


@dataclass(frozen=True)
class Outcome:
    """The result of running a module.

    ``value``, ``variables`` and ``text`` are the program's result, its names on the root context and its transcript,
    ``messages`` the roles and contents of a chat. ``broken_at`` is the ``lm.break`` that ended the run, if one did; the
    eager continuation starts from ``live``. ``profile`` holds the cost of each op, and the branches taken.
    """

    value: Any
    variables: dict[str, Any]
    text: str
    profile: Profile
    messages: Sequence[Mapping[str, str]] = ()
    broken_at: BreakOp | None = None
    live: Live | None = None

    @property
    def usage(self) -> Usage:
        """Tokens and calls of all ops together."""
        return self.profile.usage


def interpret(
    module: Module,
    inputs: Mapping[str, Any],
    engine: Engine,
    *,
    hosts: Mapping[str, Callable[..., Any]] | None = None,
    run_seed: int = 0,
    instance: int = 0,
    constraints: Constraints | None = None,
) -> Outcome:
    """Run ``module`` on ``inputs`` (by parameter name).

    ``hosts`` holds its host functions by symbol, ``constraints`` its constraints, compiled for the engine's vocabulary.
    """
    body = module.main.body
    environment = bind_parameters(body.parameters, inputs)
    found = constraints or semantics.NO_CONSTRAINTS
    machine = _Machine(engine, environment, dict(hosts or {}), run_seed, instance, found)
    try:
        machine.run_ops(body)
        end = body.terminator
    except control_flow.ProgramLeft as left:
        end = left.op
    except Exception as error:
        if machine.failed is not None:
            located(error, machine.failed.location)
        raise
    try:
        return outcome(end, environment, machine.recording.profile(module.name))
    except Exception as error:  # a transcript that the template refuses, say
        located(error, end.location)
        raise


def bind_parameters(parameters: Sequence[Value], inputs: Mapping[str, Any]) -> dict[Value, Any]:
    """The environment a body starts with. Raises ``InputError`` for missing and unknown names."""
    missing = [parameter.name for parameter in parameters if parameter.name not in inputs]
    unknown = sorted(set(inputs) - {parameter.name for parameter in parameters})
    if missing or unknown:
        raise InputError(
            f"inputs don't fit the program: missing {missing}, unknown {unknown}",
            remedy=f"give exactly {[parameter.name for parameter in parameters]}",
        )
    return {parameter: inputs[parameter.name] for parameter in parameters}


def outcome(terminator: Op, environment: Mapping[Value, Any], profile: Profile) -> Outcome:
    """Return the outcome of a run that ended at ``terminator``."""
    if isinstance(terminator, ReturnOp):
        leaves = [environment[value] for value in terminator.values]
        names = zip(terminator.variable_names, terminator.variables, strict=True)
        flags = dict(zip(terminator.present_names, terminator.present, strict=True))
        return Outcome(
            value=structure.build(terminator.structure, leaves),
            variables={
                name: environment[value] for name, value in names if name not in flags or environment[flags[name]]
            },
            text=environment[terminator.context].transcript(),
            profile=profile,
            messages=environment[terminator.context].message_list(),
        )
    if isinstance(terminator, BreakOp):
        live = Live(terminator.record, tuple(environment[value] for value in terminator.values))
        return Outcome(None, {}, "", profile, broken_at=terminator, live=live)
    if isinstance(terminator, UnreachableOp):
        raise InputError(
            f"the run came to {terminator.NAME}, but no run should",
            remedy="end the block with lm.return, or let the op before it leave the program on every way",
            location=terminator.location,
        )
    raise TypeError(f"{terminator.NAME} ends no program")


def generation_profile(
    tokenizer: Tokenizer, requests: Sequence[Request], generations: Sequence[Generation], seconds: float
) -> OpProfile:
    """Return what one ``lm.gen`` or ``lm.sample`` cost. ``requests`` are those that ``generations`` answer."""
    outputs = [(generation.finish_reason, generation.generated_tokens) for generation in generations]
    failed = [attempt.usage.generated_tokens for generation in generations for attempt in generation.failed]
    outputs += [("failed", count) for count in failed if count]
    reasons = Counter(reason for reason, _ in outputs)
    usage = sum((generation.usage for generation in generations), Usage())
    longest = max(count for _, count in outputs)
    lengths = length_bins(count for _, count in outputs)
    sent = _sent(tokenizer, requests, (each.attempts for each in generations))
    return OpProfile(usage, seconds, longest, tuple(sorted(reasons.items())), lengths, _fallbacks(generations), *sent)


def score_profile(
    tokenizer: Tokenizer, requests: Sequence[ScoreRequest], scores: Sequence[Score], seconds: float
) -> OpProfile:
    """Return what one ``lm.select`` cost. ``requests`` are those that ``scores`` answer."""
    usage = sum((score.usage for score in scores), Usage())
    generated = usage.generated_tokens  # by attempts that failed: some servers count one for each text that they score
    reasons, lengths = ((("failed", 1),), length_bins([generated])) if generated else ((), ())
    sent = _sent(tokenizer, requests, (each.attempts for each in scores))
    return OpProfile(usage, seconds, generated, reasons, lengths, _fallbacks(scores), *sent)


def failed_profile(
    tokenizer: Tokenizer, request: Request | ScoreRequest, error: BaseException | None, seconds: float
) -> OpProfile | None:
    """Return what one ``request`` cost that failed with ``error``; None: nothing is known, or it was cancelled.

    An output that failed has a length as any other, and "failed" as its finish reason.
    """
    usage = error.usage if isinstance(error, LmcError) and not isinstance(error, RequestCancelledError) else None
    if usage is None:
        return None
    assert isinstance(error, LmcError)
    fallbacks = _parts_of_fallbacks(error.attempts, ())
    sent = _sent(tokenizer, [request], [error.attempts or (Attempt(usage),)])
    length = usage.generated_tokens
    reasons, lengths = ((("failed", 1),), length_bins([length])) if length else ((), ())
    return OpProfile(usage, seconds, length, reasons, lengths, fallbacks, *sent)


def _sent(
    tokenizer: Tokenizer, requests: Sequence[Request | ScoreRequest], attempts: Iterable[Sequence[Attempt]]
) -> tuple[int, int]:
    """Return the bytes of all contexts whose tokens were counted, and these; none where the tokenizer is known."""
    if tokenizer.is_of_model:
        return 0, 0
    counted = [
        (len(request.prompt), attempt.usage.prompt_tokens)
        for request, tried in zip(requests, attempts, strict=True)
        for attempt in tried
        if attempt.usage.prompt_tokens
    ]
    return sum(length for length, _ in counted), sum(tokens for _, tokens in counted)


def _fallbacks(results: Sequence[Generation | Score]) -> tuple[tuple[str, FallbackProfile], ...]:
    """Return the parts of fallbacks in the cost of results."""
    attempts = [attempt for result in results for attempt in result.attempts]
    return _parts_of_fallbacks(attempts, [result.fallback for result in results])


def _parts_of_fallbacks(
    attempts: Sequence[Attempt], answered: Sequence[str | None]
) -> tuple[tuple[str, FallbackProfile], ...]:
    found: dict[str, FallbackProfile] = {}
    for attempt in attempts:
        if attempt.fallback is not None:
            found[attempt.fallback] = found.get(attempt.fallback, FallbackProfile()) + FallbackProfile(attempt.usage)
    return tuple((name, replace(found[name], answers=answered.count(name))) for name in sorted(found))


@dataclass
class _Machine:
    """Runs ops one after the other. All blocks share one environment, since names are unique in a function.

    ``failed`` is the op that raised ``failure``, the innermost one.

    Recursion is as deep as regions are nested, which the verifier has bounded.
    """

    engine: Engine
    environment: dict[Value, Any]
    hosts: dict[str, Callable[..., Any]]
    run_seed: int
    instance: int
    constraints: Constraints = semantics.NO_CONSTRAINTS
    recording: Recording = field(default_factory=Recording)
    failure: Exception | None = None
    failed: Op | None = None

    def run_ops(self, block: Block) -> None:
        """Run the ops of a block, but for its terminator."""
        for op in block.ops[:-1]:
            self.run(op)

    def run(self, op: Op) -> None:
        """Run one op and bind its results."""
        try:
            results = self._results(op)
        except Exception as error:
            if error is not self.failure:
                self.failure, self.failed = error, op
            raise
        self.environment.update(zip(op.results, results, strict=True))

    def _region(self, block: Block, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return what a region's terminator lists. Raises ``ProgramLeft`` where it leaves the program."""
        self.environment.update(zip(block.parameters, arguments, strict=True))
        self.run_ops(block)
        end = block.terminator
        if isinstance(end, LEAVING):
            raise control_flow.ProgramLeft(end)
        return control_flow.region_results(end, self.environment)

    def _results(self, op: Op) -> tuple[Any, ...]:
        if isinstance(op, RegionOp):
            return self._run_regions(op)
        if semantics.is_local(op):
            return semantics.evaluate(op, self.environment, self.engine.tokenizer, self.constraints)
        if isinstance(op, SamplingOp):
            return self._generate(*self.constraints.defined(op, self.environment))
        if isinstance(op, SelectOp):
            return self._select(op)
        if isinstance(op, HostCallOp):
            return self._call_host(op)
        raise TypeError(f"the interpreter can't run {op.NAME}")

    def _run_regions(self, op: RegionOp) -> tuple[Any, ...]:
        recording = self.recording
        if isinstance(op, TryOp):
            return self._run_try(op)
        if isinstance(op, CondOp):
            recording.branch(op.id, then=control_flow.chosen_region(op, self.environment) is op.then)
        elif isinstance(op, MapOp | RaceOp):
            recording.repeat(op.id, len(control_flow.elements(op, self.environment)))
        else:
            recording.repeat(op.id)

        def region(block: Block, arguments: Sequence[Any], number: int | None) -> tuple[Any, ...]:
            if isinstance(op, LoopOp) and block is op.body and number is not None:
                recording.round(op.id, number + 1)
            return self._region(block, arguments)

        return control_flow.run(op, self.environment, region)

    def _run_try(self, op: TryOp) -> tuple[Any, ...]:
        results = control_flow.run(op, self.environment, lambda block, arguments, _: self._region(block, arguments))
        error = results[1]
        if error is not None:
            if error is self.failure and self.failed is not None:
                control_flow.caught_at(error, self.failed)
            self.failure = self.failed = None
        self.recording.branch(op.id, then=results[0])
        return results

    def _generate(self, op: SamplingOp, constraints: Constraints) -> tuple[Any, ...]:
        context = self.environment[op.context]
        start = time.perf_counter()
        op_id = semantics.runtime_id(op, self.environment)
        requests = semantics.generation_requests(
            op,
            context,
            op_id=op_id,
            run_seed=self.run_seed,
            instance=self.instance,
            info=self.engine.info,
            constraints=constraints,
        )
        generations = [self.engine.submit(request).future.result() for request in requests]
        self.recording.op(
            op_id, generation_profile(self.engine.tokenizer, requests, generations, time.perf_counter() - start)
        )
        return semantics.generation_results(op, context, generations, constraints)

    def _select(self, op: SelectOp) -> tuple[Any, ...]:
        context = self.environment[op.context]
        start = time.perf_counter()
        choices = selection.choices_of(op, self.environment)
        if selection.is_written(op, self.engine.info):
            results = self._generate(*selection.written_op(op, choices, self.constraints))
            return selection.written_results(results, choices)
        op_id = semantics.runtime_id(op, self.environment)
        requests = selection.requests_of(
            op, context, choices, op_id=op_id, instance=self.instance, info=self.engine.info
        )
        scores = [self.engine.score(request).future.result() for request in requests]
        self.recording.op(op_id, score_profile(self.engine.tokenizer, requests, scores, time.perf_counter() - start))
        return selection.results_of(op, context, requests, choices, scores)

    def _call_host(self, op: HostCallOp) -> tuple[Any, ...]:
        host = self.hosts.get(op.host)
        if host is None:
            raise PlanMismatchError(
                f"the host function @{op.host} is not there",
                remedy="pass the program that defines it",
                location=op.location,
            )
        positional, keyword = semantics.call_arguments(op.arguments, op.keywords, self.environment)
        return (host(*positional, **keyword),)
