"""Parameters and results of a draw."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Mask = NDArray[np.uint32]

# Beyond these the weights in float32 are the same as at them.
_LEAST_TEMPERATURE = 1e-30
_MOST_TEMPERATURE = 1e30


@dataclass(slots=True, eq=False)
class Choice:
    """The parameters of one row's draw. Not to be changed; making frozen ones would take most of the time of a draw.

    Attributes:
        temperature: 0 for the likeliest token; then truncation has no effect.
        top_k: number of the likeliest tokens that are kept; 0 for all.
        top_p: the fewest of the likeliest tokens are kept that have this share of the probability; in (0, 1].
        min_p: tokens are kept that have this share of the likeliest one's probability; in [0, 1].
        uniform: the number in [0, 1) that decides the draw.
        logprobs: number of the model's likeliest tokens to report; None: no log-probabilities either.
        changes: ids and their logits, [C] each, to draw from instead of the model's own; an id may occur twice with the
            same logit.
        mask: tokens that may be drawn, bit i % 32 of word i // 32 for token i, [W] side by side; those beyond its words
            may not. None: every token may.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    uniform: float = 0.0
    logprobs: int | None = None
    changes: tuple[Ids, Floats] | None = None
    mask: Mask | None = None


class Chosen(NamedTuple):
    """A row's token, of meaning only where `highest` is finite: the largest logit to draw from, NaN if any is NaN.

    `logprob` and `top`, ids with log-probabilities, best first, are those of the model's own logits.
    """

    highest: float
    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


def bounded(temperature: float) -> float:
    """A temperature above 0 that float32 can divide by, and gives the same weights."""
    return min(max(temperature, _LEAST_TEMPERATURE), _MOST_TEMPERATURE)
