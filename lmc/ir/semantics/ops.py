"""Semantics of each op, given an engine's answers.

The functions here are pure: they build requests from operand values and results from an engine's answers. Interpreter,
eager mode and executor differ only in how they wait for the engine, so they can't differ in meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmc.ir.builtins import builtins, object_builtins
from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import (
    AssumeOp,
    BeginOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    FreeOp,
    KeepOp,
    LocalCallOp,
    MessagesOp,
    PrefillOp,
    PyCallOp,
    SampleOp,
    SamplingOp,
    SelectOp,
    TranscriptOp,
)
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.ir.engine.protocol import EngineInfo, Generation, Request, derive_seed
from lmc.ir.engine.stopping import Stopper
from lmc.ir.errors import LmcError, PlanMismatchError
from lmc.ir.ids import fill_holes
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.requirements import check_request
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.tokens.tokens import token_texts

NO_CONSTRAINTS = Constraints()
Environment = Mapping[Value, Any]


def evaluate(
    op: Op, environment: Environment, tokenizer: Tokenizer, constraints: Constraints = NO_CONSTRAINTS
) -> tuple[Any, ...]:
    """Results of an op that needs no engine and no host function. Raises what the user's expression raises."""
    if isinstance(op, SamplingOp) and op.forced is not None:
        return _forced(op, environment[op.context], tokenizer, constraints)
    evaluator = _EVALUATORS.get(type(op))
    if evaluator is None:
        raise TypeError(f"{op.NAME} needs an engine or a host function")
    return evaluator(op, environment, tokenizer)


def is_local(op: Op) -> bool:
    """Return whether ``evaluate`` can run the op."""
    return type(op) in _EVALUATORS or (isinstance(op, SamplingOp) and op.forced is not None)


def runtime_id(op: SamplingOp | SelectOp, environment: Environment) -> str:
    """Return the id under which this run of the op draws and reports: ``op.id`` with its holes filled."""
    if not op.occurrences:
        return op.id
    return fill_holes(op.id, [environment[value] for value in op.occurrences])


def join_text(text: Sequence[str | Value], environment: Environment) -> str:
    """The text of a ``parts()`` field."""
    return "".join(part if isinstance(part, str) else environment[part] for part in text)


def call_arguments(
    arguments: Sequence[Any], keywords: Sequence[str], environment: Environment
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of ``py.call`` and ``host.call``."""
    values = [environment[entry] if isinstance(entry, Value) else entry for entry in arguments]
    split = len(values) - len(keywords)
    return values[:split], dict(zip(keywords, values[split:], strict=True))


def generation_requests(
    op: SamplingOp,
    context: Context,
    *,
    op_id: str,
    run_seed: int,
    instance: int,
    info: EngineInfo,
    constraints: Constraints = NO_CONSTRAINTS,
) -> list[Request]:
    """Return what to submit for ``lm.gen`` (one request) or ``lm.sample`` (``n`` requests over one prompt).

    ``op_id`` is the op's ``runtime_id``, ``info`` the engine's.
    Raises ``ConstraintError`` where the op's constraint can't be compiled, ``ContextLengthError`` for a prompt that is
    much longer than the context, ``LoweringError`` for what the engine can't do.
    """
    check_request(op, context, info)
    context.check_fits(info.context_length)
    count = op.n if isinstance(op, SampleOp) else 1
    constraint = constraints.find(op)
    jump_forward: Any = op.jump_forward  # one of JUMP_FORWARD, says the verifier
    seed = run_seed if op.seed is None else op.seed
    return [
        Request(
            prompt=context.prompt,
            sampling=op.sampling,
            seed=derive_seed(seed, instance, op_id, 0, sample),
            op_id=op_id,
            instance=instance,
            constraint=constraint,
            jump_forward=jump_forward,
            expected_tokens=op.expected_tokens,
            number=sample,
        )
        for sample in range(count)
    ]


def generation_results(
    op: SamplingOp, context: Context, generations: Sequence[Generation], constraints: Constraints = NO_CONSTRAINTS
) -> tuple[Any, ...]:
    """Results of ``lm.gen`` or ``lm.sample`` from what the engine gave.

    Raises ``ConstraintError`` where that is not what the op's constraint allows, or its class does not take it.
    """
    wants_meta = op.logprobs is not None
    values = [constraints.value(op, generation) for generation in generations]
    if isinstance(op, SampleOp):
        metas = [_meta(generation, context.tokenizer) for generation in generations] if wants_meta else []
        return (values, metas) if wants_meta else (values,)
    (generation,) = generations
    results = (context.generated(generation), values[0])
    return (*results, _meta(generation, context.tokenizer)) if wants_meta else results


def forced_generation(op: SamplingOp, token_ids: Sequence[int], tokenizer: Tokenizer) -> Generation:
    """Return an engine's result, in its visible parts, under a constraint that allows only ``token_ids``."""
    if not token_ids:
        return Generation((), "", "eos")
    endless = replace(op.sampling, max_tokens=len(token_ids), min_tokens=0, stop=(), stop_token_ids=())
    stopper = Stopper(tokenizer, endless)
    for token_id in token_ids:
        stopper.append(token_id)
    return Generation(tuple(token_ids), stopper.generation().text, "eos")


def _forced(op: SamplingOp, context: Context, tokenizer: Tokenizer, constraints: Constraints) -> tuple[Any, ...]:
    """Results of an op whose tokens are known."""
    generation = forced_generation(op, op.forced or (), tokenizer)
    count = op.n if isinstance(op, SampleOp) else 1
    return generation_results(op, context, [generation] * count, constraints)


def _meta(generation: Generation, tokenizer: Tokenizer) -> dict[str, Any]:
    logprobs = generation.logprobs or ()
    return {
        "token_ids": list(generation.token_ids),
        "tokens": token_texts(generation.token_ids, tokenizer),
        "logprobs": [entry.logprob for entry in logprobs],
        "top_logprobs": [[list(pair) for pair in entry.top] for entry in logprobs],
        "top_tokens": [token_texts([token_id for token_id, _ in entry.top], tokenizer) for entry in logprobs],
        "finish_reason": generation.finish_reason,
    }


def _context(_op: Op, _environment: Environment, tokenizer: Tokenizer) -> tuple[Any, ...]:
    return (Context.empty(tokenizer),)


def _extend(op: ExtendOp | SectionsOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    context: Context = environment[op.context]
    text = join_text(op.text, environment)
    return (context.text(text) if op.role is None else context.message(op.role, text),)


def _begin(op: BeginOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    return (environment[op.context].begin(op.role),)


def _end(op: EndOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    return (environment[op.context].end(),)


def _prefill(op: PrefillOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    return (environment[op.context],)


def _hint(_op: Op, _environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    return ()


def _transcript(op: TranscriptOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    context: Context = environment[op.context]
    return tuple(context.added_since(environment[before]) for before in op.since) or (context.transcript(),)


def _messages(op: MessagesOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    return (environment[op.context].message_list(),)


def _concat(op: ConcatOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    return (join_text(op.text, environment),)


def _py_call(op: PyCallOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    builtin = builtins.lookup(op.function)
    if builtin is None:
        raise LmcError(f"no pure builtin is called {op.function!r}", location=op.location)
    positional, keyword = call_arguments(op.arguments, op.keywords, environment)
    return (builtin.run(*positional, **keyword),)


def _local_call(op: LocalCallOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    builtin = object_builtins.lookup(op.function)
    if builtin is None:
        raise LmcError(f"no builtin for objects is called {op.function!r}", location=op.location)
    positional, keyword = call_arguments(op.arguments, op.keywords, environment)
    return (builtin.run(*positional, **keyword),)


def _assume(op: AssumeOp, environment: Environment, _tokenizer: Tokenizer) -> tuple[Any, ...]:
    found = environment[op.value]
    if found != op.expected or type(found) is not type(op.expected):
        raise PlanMismatchError(
            f"the program was compiled for {op.expected!r} here, but the input gives {found!r}",
            remedy="compile it with inputs of this shape, or call the program itself, which compiles a variant",
            location=op.location,
        )
    return ()


_EVALUATORS: dict[type[Op], Callable[[Any, Environment, Tokenizer], tuple[Any, ...]]] = {
    ContextOp: _context,
    ExtendOp: _extend,
    SectionsOp: _extend,
    BeginOp: _begin,
    EndOp: _end,
    PrefillOp: _prefill,
    KeepOp: _hint,
    FreeOp: _hint,
    TranscriptOp: _transcript,
    MessagesOp: _messages,
    ConcatOp: _concat,
    PyCallOp: _py_call,
    LocalCallOp: _local_call,
    AssumeOp: _assume,
}
