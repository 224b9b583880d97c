"""The scores that ``lm.select`` asks an engine for, and the winning choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmc.ir.builtins.checks import checked_choices
from lmc.ir.core import Value
from lmc.ir.dialects.core_ops import SelectOp
from lmc.ir.engine.protocol import Score, ScoreRequest
from lmc.ir.semantics.context import Context
from lmc.ir.tokens.tokens import token_texts


def choices_of(op: SelectOp, environment: Mapping[Value, Any]) -> list[str]:
    """The choices as texts. Raises ``CaptureError`` where there is none, or one that can't be scored."""
    choices: list[Any] = []
    for choice in op.choices:
        value = environment[choice] if isinstance(choice, Value) else choice
        choices.extend(value if isinstance(value, list | tuple) else [value])
    return checked_choices(choices, op.location)


def requests_of(
    op: SelectOp, context: Context, choices: Sequence[str], *, op_id: str, instance: int, context_length: int
) -> list[ScoreRequest]:
    """Return the requests: the choices after the context; for the unconditional method also after nothing.

    ``op_id`` is the op's ``runtime_id``, ``context_length`` the engine's, in tokens. Raises ``ContextLengthError`` for
    a prompt that is much longer than the context.
    """
    context.check_fits(context_length)
    prompt, continuations = context.choices(choices)
    requests = [ScoreRequest(prompt, continuations, op_id=op_id, instance=instance)]
    if op.method == "unconditional_likelihood_normalized":
        start = context.tokenizer.start_ids
        requests.append(ScoreRequest(start, continuations, op_id=op_id, instance=instance, number=1))
    return requests


def results_of(
    op: SelectOp, context: Context, requests: Sequence[ScoreRequest], choices: Sequence[str], scores: Sequence[Score]
) -> tuple[Context, str, dict[str, Any]]:
    """The new context, the winning choice (the first among equals) and the scores of all."""
    points = _METHODS[op.method](scores)
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
