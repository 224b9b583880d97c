"""From logits to tokens. A draw is a function of logits, parameters, seed and position, and of nothing else."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.ir.engine import SamplingParams
from lmc.ir.errors import EngineError


@dataclass(frozen=True, slots=True)
class Draw:
    """One token to be drawn: the `position`-th of its generation (from 0). `forbidden` ids can't be drawn."""

    sampling: SamplingParams
    seed: int
    position: int
    forbidden: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token with its log-probability and the likeliest tokens, best first (where they were asked for)."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


def draw_tokens(logits: torch.Tensor, draws: Sequence[Draw]) -> list[Drawn | EngineError]:
    """Draw one token from each row of `logits` [R, vocabulary]; a row that can't be drawn from gives its error.

    Log-probabilities are those of the model itself: before temperature, truncation and forbidden ids.
    """
    finite = logits.isnan().any(dim=-1).logical_not_().tolist()
    logprob_rows = {
        row: torch.log_softmax(logits[row].float(), dim=-1)
        for row, draw in enumerate(draws)
        if draw.sampling.logprobs is not None and finite[row]
    }
    logits = _without_forbidden(logits, draws)
    best, greedy = logits.max(dim=-1)  # the first index of equal maxima: ties go to the lowest id
    drawable = best.isfinite().tolist()
    tokens: list[int] = greedy.tolist()
    results: list[Drawn | EngineError] = []
    for row, draw in enumerate(draws):
        if not (finite[row] and drawable[row]):
            results.append(_undrawable(draw, finite=finite[row]))
            continue
        token = tokens[row] if draw.sampling.greedy else _draw_seeded(logits[row], draw)
        results.append(_with_logprobs(token, draw, logprob_rows.get(row)))
    return results


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that is a function of seed and position (BLAKE2b as a counter-based generator)."""
    message = (seed % 2**64).to_bytes(8, "little") + position.to_bytes(8, "little")
    word = int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "little")
    return (word >> 11) * 2.0**-53


def token_probabilities(logits: NDArray[np.float64], sampling: SamplingParams) -> NDArray[np.float64]:
    """The distribution a token is drawn from, over the whole vocabulary (0 for what is cut off).

    Temperature comes first, then top-k, top-p and min-p, each on what the one before left. Of equally likely tokens
    those with lower ids are kept.
    """
    scaled = (logits - logits.max()) / sampling.temperature
    weights = np.exp(scaled)
    order = np.argsort(-weights, kind="stable")
    if sampling.top_k:
        order = order[: sampling.top_k]
    kept = weights[order]
    if sampling.top_p < 1.0:
        reached = np.cumsum(kept) / kept.sum()
        kept = kept[: int(np.searchsorted(reached, sampling.top_p, side="left")) + 1]
    kept = kept[kept >= sampling.min_p * kept[0]]
    probabilities = np.zeros_like(weights)
    probabilities[order[: kept.size]] = kept / kept.sum()
    return probabilities


def _draw_seeded(logits: torch.Tensor, draw: Draw) -> int:
    """Invert the cumulative distribution in token order, in float64 on the CPU."""
    probabilities = token_probabilities(logits.double().cpu().numpy(), draw.sampling)
    cumulative = np.cumsum(probabilities)
    target = uniform(draw.seed, draw.position) * cumulative[-1]
    token = int(np.searchsorted(cumulative, target, side="right"))
    return min(token, int(np.flatnonzero(probabilities)[-1]))


def _without_forbidden(logits: torch.Tensor, draws: Sequence[Draw]) -> torch.Tensor:
    if not any(draw.forbidden for draw in draws):
        return logits
    logits = logits.clone()
    for row, draw in enumerate(draws):
        logits[row, list(draw.forbidden)] = float("-inf")
    return logits


def _with_logprobs(token: int, draw: Draw, logprobs: torch.Tensor | None) -> Drawn:
    if logprobs is None or draw.sampling.logprobs is None:
        return Drawn(token)
    values, ids = logprobs.topk(min(draw.sampling.logprobs, logprobs.numel()))
    top = sorted(zip(ids.tolist(), values.tolist(), strict=True), key=lambda entry: (-entry[1], entry[0]))
    return Drawn(token, float(logprobs[token]), tuple(top))


def _undrawable(draw: Draw, *, finite: bool) -> EngineError:
    if not finite:
        return EngineError(
            f"the model gave NaN logits for token {draw.position}",
            remedy="check the model's weights; a model made for bfloat16 may overflow in another dtype",
        )
    return EngineError(
        f"no token can be drawn at position {draw.position}: the largest logit is infinite",
        remedy="check the model's weights; with min_tokens, some token must be left that ends nothing",
    )
