"""From logits to tokens. A draw is a function of logits, parameters, history, seed and position, and of nothing else.

The choice itself is a kernel's (`lmc.runtime.kernels.sampling`, on a GPU where possible `masked_draw`); here is what
changes logits before it.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.ir.engine.constraint_protocol import TokenState
from lmc.ir.engine.protocol import SamplingParams
from lmc.ir.errors import EngineError
from lmc.runtime.kernels.choices import Choice, Chosen, Mask
from lmc.runtime.kernels.sampling import choose_tokens, token_weights

Ids = NDArray[np.int64]

ROWS_AT_ONCE = 64  # widened to float32 together: bounds the memory beside the logits themselves
NO_IDS: Ids = np.empty(0, np.int64)


@dataclass(slots=True, eq=False)
class Draw:
    """One token to be drawn: the `position`-th of its generation (from 0). Not to be changed.

    `forbidden` ids can't be drawn, nor what a constraint's `mask` does not allow (None: there is none), which is that
    of `state` where that is given. `prompt` holds the distinct ids of the prompt and `generated` what was drawn so far;
    both are read only where `sampling` penalizes.
    """

    sampling: SamplingParams
    seed: int
    position: int
    forbidden: tuple[int, ...] = ()
    prompt: Ids = field(default_factory=lambda: NO_IDS)
    generated: Sequence[int] = ()
    mask: Mask | None = None
    state: TokenState | None = None

    @property
    def adjusts(self) -> bool:
        """True if the logits are changed before the choice."""
        return bool(self.forbidden or self.sampling.logit_bias or self.sampling.penalizes)


class DrawnToken(NamedTuple):
    """A token with its log-probability and the likeliest tokens, best first (where they were asked for)."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


class OnDevice(Protocol):
    """Draws where the logits are, if it can (`device_draws.py`)."""

    def choose(self, logits: torch.Tensor, draws: Sequence[Draw]) -> list[Chosen] | None: ...


def draw_tokens(
    logits: torch.Tensor, draws: Sequence[Draw], on_device: OnDevice | None = None
) -> list[DrawnToken | EngineError]:
    """Draw one token from each row of `logits` [R, vocabulary]; a row that can't be drawn from gives its error.

    With `on_device` nothing of the size of the vocabulary leaves the device where all draws can be made there.
    Log-probabilities are those of the model itself: before bias, penalties, temperature and truncation.
    """
    results: list[DrawnToken | EngineError] = []
    for first in range(0, len(draws), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        results += _draw_part(logits[part].float(), draws[part], on_device)
    return results


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that is a function of seed and position (BLAKE2b as a counter-based generator)."""
    message = (seed % 2**64).to_bytes(8, "little") + position.to_bytes(8, "little")
    word = int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "little")
    return (word >> 11) * 2.0**-53


def adjusted(own: NDArray[np.float32], draw: Draw) -> tuple[Ids, NDArray[np.float32]]:
    """Ids whose logits bias, penalties and `forbidden` change, and what these become.

    They act in the order that `SamplingParams` gives. An id may come twice, with the same logit.
    """
    sampling = draw.sampling
    forbidden, impossible = _forbidden(draw.forbidden)
    if not (sampling.logit_bias or sampling.penalizes):
        return forbidden, impossible
    logits, touched = own.copy(), [forbidden]
    if sampling.logit_bias:
        ids, biases = zip(*sampling.logit_bias, strict=True)
        touched.append(np.array(ids, np.int64))
        logits[touched[-1]] += np.array(biases, np.float32)
    generated = np.asarray(draw.generated, np.int64)
    if sampling.penalizes:
        touched.append(generated)
    if sampling.repetition_penalty != 1.0:
        touched.append(draw.prompt)
        seen = np.concatenate((draw.prompt, generated))  # an id that is there twice gets the same logit twice
        scores, penalty = logits[seen], np.float32(sampling.repetition_penalty)
        logits[seen] = np.where(scores < 0, scores * penalty, scores / penalty)
    if sampling.frequency_penalty or sampling.presence_penalty:
        said, counts = np.unique(generated, return_counts=True)
        penalties = sampling.frequency_penalty * counts + sampling.presence_penalty
        logits[said] -= penalties.astype(np.float32)
    logits[forbidden] = -np.inf
    changed = np.concatenate(touched)
    return changed, logits[changed]


@lru_cache(maxsize=64)
def _forbidden(ids: tuple[int, ...]) -> tuple[Ids, NDArray[np.float32]]:
    """Ids with what their logits become: the same ones before `min_tokens`, token after token."""
    return np.array(ids, np.int64), np.full(len(ids), -np.inf, np.float32)


def token_probabilities(logits: NDArray[np.float32], sampling: SamplingParams) -> NDArray[np.float64]:
    """The distribution a token is drawn from, over the whole vocabulary (0 for what is cut off).

    Temperature comes first, then top-k, top-p and min-p, each on what the one before left. Of equally likely tokens
    those with lower ids are kept.
    """
    weights = token_weights(logits, _choice(sampling))
    return weights / weights.sum(dtype=np.float64)


def _draw_part(
    logits: torch.Tensor, draws: Sequence[Draw], on_device: OnDevice | None
) -> list[DrawnToken | EngineError]:
    return [
        DrawnToken(token, logprob, top) if math.isfinite(highest) else _undrawable(draw, highest)
        for (highest, token, logprob, top), draw in zip(_choose(logits, draws, on_device), draws, strict=True)
    ]


def _choose(logits: torch.Tensor, draws: Sequence[Draw], on_device: OnDevice | None) -> list[Chosen]:
    if on_device is not None and all(map(_is_plain, draws)):
        highest, tokens = logits.max(dim=-1)
        return list(map(Chosen, highest.tolist(), tokens.tolist()))
    chosen = None if on_device is None else on_device.choose(logits, draws)
    if chosen is not None:
        return chosen
    rows = logits.cpu().contiguous().numpy()
    return choose_tokens(rows, [_choice_of(row, draw) for row, draw in zip(rows, draws, strict=True)])


def _is_plain(draw: Draw) -> bool:
    """Return True if only the likeliest token is asked for."""
    return draw.sampling.greedy and draw.sampling.logprobs is None and not draw.adjusts and draw.mask is None


def _choice_of(logits: NDArray[np.float32], draw: Draw) -> Choice:
    sampling = draw.sampling
    number = 0.0 if sampling.greedy else uniform(draw.seed, draw.position)
    return _choice(sampling, number, adjusted(logits, draw) if draw.adjusts else None, draw.mask)


def _choice(
    sampling: SamplingParams,
    number: float = 0.0,
    changes: tuple[Ids, NDArray[np.float32]] | None = None,
    mask: Mask | None = None,
) -> Choice:
    truncation = sampling.temperature or 0.0, sampling.top_k, sampling.top_p, sampling.min_p
    return Choice(*truncation, number, sampling.logprobs, changes, mask)


def _undrawable(draw: Draw, highest: float) -> EngineError:
    if math.isnan(highest):
        return EngineError(
            f"the model gave NaN logits for token {draw.position}",
            remedy="check the model's weights; a model made for bfloat16 may overflow in another dtype",
        )
    return EngineError(
        f"no token can be drawn at position {draw.position}: the largest logit is infinite",
        remedy="check the model's weights; with min_tokens, some token must be left that ends nothing, and with a "
        "constraint some allowed one that the model and logit_bias leave possible",
    )
