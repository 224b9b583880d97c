"""The scores that ``lm.select`` asks an engine for, and the winning choice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmc.ir.builtins.checks import checked_choices
from lmc.ir.core import Constraint, Value
from lmc.ir.dialects.core_ops import GenOp, SelectOp
from lmc.ir.dialects.model_ops import DEFAULT_METHOD
from lmc.ir.engine.protocol import EngineInfo, Score, ScoreRequest
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.context import Context
from lmc.ir.semantics.requirements import check_request, written_tokens
from lmc.ir.tokens.tokens import token_texts


def choices_of(op: SelectOp, environment: Mapping[Value, Any]) -> list[str]:
    """The choices as texts. Raises ``CaptureError`` where there is none, or one that can't be scored."""
    choices: list[Any] = []
    for choice in op.choices:
        value = environment[choice] if isinstance(choice, Value) else choice
        choices.extend(value if isinstance(value, list | tuple) else [value])
    return checked_choices(choices, op.location)


def requests_of(
    op: SelectOp, context: Context, choices: Sequence[str], *, op_id: str, instance: int, info: EngineInfo
) -> list[ScoreRequest]:
    """Return the requests: the choices after the context; for the unconditional method also after nothing.

    ``op_id`` is the op's ``runtime_id``, ``info`` the engine's. Raises ``ContextLengthError`` for a prompt that is much
    longer than the context, ``LoweringError`` for what the engine can't do.
    """
    check_request(op, context, info)
    context.check_fits(info.context_length)
    prompt, continuations = context.choices(choices)
    requests = [ScoreRequest(prompt, continuations, op_id=op_id, instance=instance)]
    if op.method == "unconditional_likelihood_normalized":
        start = context.tokenizer.start_ids
        requests.append(ScoreRequest(start, continuations, op_id=op_id, instance=instance, number=1))
    return requests


def is_written(op: SelectOp, info: EngineInfo) -> bool:
    """Return True if the model writes one of the choices, since the engine scores no texts."""
    return op.method is None and not info.capabilities.scores


def written_op(op: SelectOp, choices: Sequence[str], constraints: Constraints) -> tuple[GenOp, Constraints]:
    """Return the generation that makes the choice, and its constraint."""
    symbol = Constraint("choices", "choices", json.dumps(list(choices)))
    make: type[Any] = GenOp  # pyright does not see that its decorator makes it a dataclass
    generation: GenOp = make(
        context=op.context,
        id=op.id,
        occurrences=op.occurrences,
        name=op.name,
        max_tokens=written_tokens(choices),
        constraint=symbol.name,
        results=op.results[:2],
        location=op.location,
    )
    return generation, replace(constraints, symbols={symbol.name: symbol})


def written_results(results: tuple[Any, ...], choices: Sequence[str]) -> tuple[Context, str, dict[str, Any]]:
    """Return the results of the select from those of its ``written_op``: there are no scores."""
    context, choice = results
    return context, choice, {"choices": list(choices)}


def results_of(
    op: SelectOp, context: Context, requests: Sequence[ScoreRequest], choices: Sequence[str], scores: Sequence[Score]
) -> tuple[Context, str, dict[str, Any]]:
    """The new context, the winning choice (the first among equals) and the scores of all."""
    points = _METHODS[op.method or DEFAULT_METHOD](scores)
    best = max(range(len(choices)), key=lambda index: (points[index], -index))
    token_ids = [list(continuation) for continuation in requests[0].continuations]
    meta = {
        "choices": list(choices),
        "scores": points,
        "logprobs": [list(row) for row in scores[0].logprobs],
        "token_ids": token_ids,
        "tokens": [token_texts(row, context.tokenizer) for row in token_ids],
    }
    return context.text(choices[best]), choices[best], meta


def _token_length_normalized(scores: Sequence[Score]) -> list[float]:
    """Mean log-probability per token."""
    return [sum(row) / len(row) for row in scores[0].logprobs]


def _greedy_token(scores: Sequence[Score]) -> list[float]:
    """Rank by the first token, then the second …, as greedy decoding among the choices would go.

    The score of a choice is minus its rank. A choice that ends where another goes on counts as the mean of what it has.
    """
    rows = [tuple(row) for row in scores[0].logprobs]
    width = max(len(row) for row in rows)
    padded = [row + (sum(row) / len(row),) * (width - len(row)) for row in rows]
    order = sorted(set(padded), reverse=True)
    return [float(-order.index(row)) for row in padded]


def _unconditional_likelihood_normalized(scores: Sequence[Score]) -> list[float]:
    """Log-probability given the context minus that given nothing (pointwise mutual information)."""
    conditional, unconditional = scores
    return [sum(given) - sum(alone) for given, alone in zip(conditional.logprobs, unconditional.logprobs, strict=True)]


_METHODS: dict[str, Callable[[Sequence[Score]], list[float]]] = {
    "token_length_normalized": _token_length_normalized,
    "greedy_token": _greedy_token,
    "unconditional_likelihood_normalized": _unconditional_likelihood_normalized,
}
