"""From logits to tokens. A draw is a function of logits, parameters, history, seed and position, and of nothing else.

Rows are worked on one by one, so that a row is drawn from alike in any batch; each step is one pass over the
vocabulary, and only what a truncation leaves is sorted.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.ir.engine import SamplingParams
from lmc.ir.errors import EngineError

Ids = NDArray[np.int64]

ROWS_AT_ONCE = 64  # widened to float32 together: bounds the memory beside the logits themselves
BLOCK = 128  # entries summed up before a cumulative sum is looked into
PARTS = 512  # parts of a row whose largest logits bound the largest of the row
LEAST_TEMPERATURE = 1e-30  # what is colder is the same in float32
NO_IDS: Ids = np.empty(0, np.int64)
ALL = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """One token to be drawn: the `position`-th of its generation (from 0).

    `forbidden` ids can't be drawn. `prompt` holds the distinct ids of the prompt and `generated` what was drawn so far;
    both are read only where `sampling` penalizes.
    """

    sampling: SamplingParams
    seed: int
    position: int
    forbidden: tuple[int, ...] = ()
    prompt: Ids = field(default_factory=lambda: NO_IDS)
    generated: Sequence[int] = ()

    @property
    def adjusts(self) -> bool:
        """Whether the logits are changed before the choice."""
        return bool(self.forbidden or self.sampling.logit_bias or self.sampling.penalizes)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A token with its log-probability and the likeliest tokens, best first (where they were asked for)."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


def draw_tokens(logits: torch.Tensor, draws: Sequence[Draw]) -> list[Drawn | EngineError]:
    """Draw one token from each row of `logits` [R, vocabulary]; a row that can't be drawn from gives its error.

    Log-probabilities are those of the model itself: before bias, penalties, temperature and truncation.
    """
    results: list[Drawn | EngineError] = []
    for first in range(0, len(draws), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        results += _draw_part(logits[part].float(), draws[part])
    return results


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that is a function of seed and position (BLAKE2b as a counter-based generator)."""
    message = (seed % 2**64).to_bytes(8, "little") + position.to_bytes(8, "little")
    word = int.from_bytes(hashlib.blake2b(message, digest_size=8).digest(), "little")
    return (word >> 11) * 2.0**-53


def adjusted(logits: NDArray[np.float32], draw: Draw) -> NDArray[np.float32]:
    """A copy of one row with bias, penalties and forbidden ids applied, in the order that `SamplingParams` gives."""
    logits, sampling = logits.copy(), draw.sampling
    if sampling.logit_bias:
        ids, biases = zip(*sampling.logit_bias, strict=True)
        logits[list(ids)] += np.array(biases, np.float32)
    generated = np.asarray(draw.generated, np.int64)
    if sampling.repetition_penalty != 1.0:
        seen = np.concatenate((draw.prompt, generated))  # an id that is there twice gets the same logit twice
        own, penalty = logits[seen], np.float32(sampling.repetition_penalty)
        logits[seen] = np.where(own < 0, own * penalty, own / penalty)
    if sampling.frequency_penalty or sampling.presence_penalty:
        said, counts = np.unique(generated, return_counts=True)
        penalties = sampling.frequency_penalty * counts + sampling.presence_penalty
        logits[said] -= penalties.astype(np.float32)
    logits[list(draw.forbidden)] = -np.inf
    return logits


def token_probabilities(logits: NDArray[np.float32], sampling: SamplingParams) -> NDArray[np.float64]:
    """The distribution a token is drawn from, over the whole vocabulary (0 for what is cut off).

    Temperature comes first, then top-k, top-p and min-p, each on what the one before left. Of equally likely tokens
    those with lower ids are kept.
    """
    ids, weights = _kept(logits, sampling, np.empty(logits.size, np.float32))
    probabilities = np.zeros(logits.size)
    probabilities[ALL if ids is None else ids] = weights / weights.sum(dtype=np.float64)
    return probabilities


def _draw_part(logits: torch.Tensor, draws: Sequence[Draw]) -> list[Drawn | EngineError]:
    best, tokens = _best(logits)
    asking = [row for row, draw in enumerate(draws) if draw.sampling.logprobs is not None]
    logprobs = dict(zip(asking, torch.log_softmax(logits[asking], dim=-1).cpu().numpy(), strict=True)) if asking else {}
    rows = None if all(map(_is_plain, draws)) else logits.cpu().numpy()
    scratch = np.empty(logits.shape[-1], np.float32)
    results: list[Drawn | EngineError] = []
    for row, draw in enumerate(draws):
        highest, token = float(best[row]), int(tokens[row])
        if rows is not None and not _is_plain(draw) and not np.isnan(highest):
            highest, token = _choose(rows[row], draw, token, scratch)
        if not np.isfinite(highest):
            results.append(_undrawable(draw, highest))
            continue
        results.append(_with_logprobs(token, draw, logprobs.get(row)))
    return results


def _is_plain(draw: Draw) -> bool:
    """Whether the token is the likeliest one, whatever else."""
    return draw.sampling.greedy and not draw.adjusts


def _best(logits: torch.Tensor) -> tuple[NDArray[np.float32], Ids]:
    """The largest logit of each row, NaN where there is one, and the first place where it stands. One pass."""
    if logits.device.type != "cpu":
        values, places = logits.max(dim=-1)
        return values.cpu().numpy(), places.cpu().numpy()
    rows = logits.numpy()
    tokens = rows.argmax(axis=1)
    return rows[np.arange(len(rows)), tokens], tokens


def _choose(logits: NDArray[np.float32], draw: Draw, greedy: int, scratch: NDArray[np.float32]) -> tuple[float, int]:
    """The largest logit after adjustment, and the token (of no meaning where that logit is not finite)."""
    if draw.adjusts:
        logits = adjusted(logits, draw)
        greedy = int(logits.argmax())
    highest = float(logits[greedy])
    if draw.sampling.greedy or not np.isfinite(highest):
        return highest, greedy
    ids, weights = _kept(logits, draw.sampling, scratch)
    place = _Cumulative(weights).place(uniform(draw.seed, draw.position))
    return highest, place if ids is None else int(ids[place])


def _kept(
    logits: NDArray[np.float32], sampling: SamplingParams, scratch: NDArray[np.float32]
) -> tuple[Ids | None, NDArray[np.float32]]:
    """Ids that truncation leaves, ascending (None: all), and their weights (1 for the likeliest), of one finite row.

    `scratch` has the size of the row and may hold the weights.
    """
    highest = logits.max()
    ids = None
    if 0 < sampling.top_k < logits.size:
        ids = _likeliest(logits, sampling.top_k)
    elif sampling.min_p > 0.0 and sampling.top_p == 1.0:
        # A generous bound, so that nothing is lost to rounding: what it lets in too much goes at the end.
        bound = float(highest) + 1.001 * sampling.temperature * math.log(sampling.min_p) - 0.001
        ids = np.flatnonzero(logits >= np.float32(bound))
    if ids is not None:
        logits, scratch = logits[ids], scratch[: ids.size]
    weights = np.subtract(logits, highest, out=scratch)
    if sampling.temperature != 1.0:
        with np.errstate(over="ignore"):
            weights /= np.float32(max(sampling.temperature, LEAST_TEMPERATURE))
    np.exp(weights, out=weights)
    if sampling.top_p < 1.0:
        kept = _nucleus(weights, sampling.top_p)
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    if sampling.min_p > 0.0:
        kept = np.flatnonzero(weights >= np.float32(sampling.min_p))
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    return ids, weights


def _likeliest(logits: NDArray[np.float32], count: int) -> Ids:
    """The places of the `count` largest logits, ascending; of equal ones the first."""
    if count > PARTS // 2 or logits.size < PARTS:
        return _largest(logits, count)
    places = np.flatnonzero(logits >= _bound(logits, count))
    return places[_largest(logits[places], count)]


def _bound(values: NDArray[np.float32], count: int) -> np.float32:
    """A number that at least `count` (up to `PARTS`) values reach, and not many more: as many parts hold one."""
    parts = values[: values.size // PARTS * PARTS].reshape(-1, PARTS).max(axis=0)
    return np.partition(parts, PARTS - count)[PARTS - count]


def _largest(values: NDArray[np.float32], count: int) -> Ids:
    """The places of the `count` largest values, ascending; of equal ones the first."""
    return _down_to(values, np.partition(values, values.size - count)[values.size - count], count)


def _down_to(values: NDArray[np.float32], bound: np.float32, count: int) -> Ids:
    """The places of the `count` largest values, of which the smallest is `bound`."""
    places = np.flatnonzero(values >= bound)
    if places.size == count:
        return places
    ties = np.flatnonzero(values[places] == bound)
    return np.delete(places, ties[count - places.size :])


def _nucleus(weights: NDArray[np.float32], share: float) -> Ids:
    """The places of the fewest of the largest weights that make up `share` of all, of equal ones the first."""
    wanted = share * _Cumulative(weights).total
    if weights.size < 4 * PARTS:
        return _reaching(weights, wanted)
    places = np.flatnonzero(weights >= _bound(weights, PARTS // 2))
    some = weights[places]
    if float(some.sum()) < wanted * (1.0 + 1e-6):
        # These few are not enough. What weighs less than this is together less than what may be left out.
        likely = weights >= np.float32((1.0 - share) / share * wanted / weights.size * (1.0 - 1e-6))
        if np.count_nonzero(likely) > weights.size // 4:
            return _reaching(weights, wanted)  # sorting all costs no more than picking so many
        places = np.flatnonzero(likely)
        some = weights[places]
    return places[_reaching(some, wanted)]


def _reaching(weights: NDArray[np.float32], wanted: float) -> Ids:
    """The places of the fewest of the largest weights that together are `wanted`, of equal ones the first."""
    descending = np.sort(weights)[::-1].copy()
    last = _Cumulative(descending).reaching(wanted)
    return _down_to(weights, descending[last], last + 1)


class _Cumulative:
    """The cumulative sum (float64) of weights, worked out by blocks, and within a block only where it is looked at."""

    def __init__(self, weights: NDArray[np.float32]) -> None:
        self._weights = weights
        self._size = BLOCK if weights.size > 4 * BLOCK else weights.size
        whole = weights.size // self._size * self._size
        # einsum adds in one fixed order and, unlike sum over an axis, without a call per block.
        sums = np.einsum("ij->i", weights[:whole].reshape(-1, self._size))
        if whole < weights.size:
            sums = np.append(sums, weights[whole:].sum())
        self._blocks = sums.cumsum(dtype=np.float64)
        self.total = float(self._blocks[-1])

    def reaching(self, target: float) -> int:
        """The first place up to which the sum is at least `target`; the last one where rounding leaves it below."""
        return self._find(target, "left")

    def place(self, share: float) -> int:
        """The first place with a weight up to which the sum is more than `share` of all."""
        return self._find(share * self.total, "right")

    def _find(self, target: float, side: Literal["left", "right"]) -> int:
        last = int(self._blocks.searchsorted(self.total))  # what comes after it weighs nothing
        block = min(int(self._blocks.searchsorted(target, side=side)), last)
        first = block * self._size
        own = self._weights[first : first + self._size]
        reached = own.cumsum(dtype=np.float64) + (self._blocks[block - 1] if block else 0.0)
        place = min(int(reached.searchsorted(target, side=side)), int(own.nonzero()[0][-1]))
        return first + place


def _with_logprobs(token: int, draw: Draw, logprobs: NDArray[np.float32] | None) -> Drawn:
    if logprobs is None or draw.sampling.logprobs is None:
        return Drawn(token)
    count = min(draw.sampling.logprobs, logprobs.size)
    ids = _likeliest(logprobs, count) if count else NO_IDS
    top = sorted(zip(ids.tolist(), logprobs[ids].tolist(), strict=True), key=lambda entry: (-entry[1], entry[0]))
    return Drawn(token, float(logprobs[token]), tuple(top))


def _undrawable(draw: Draw, highest: float) -> EngineError:
    if np.isnan(highest):
        return EngineError(
            f"the model gave NaN logits for token {draw.position}",
            remedy="check the model's weights; a model made for bfloat16 may overflow in another dtype",
        )
    return EngineError(
        f"no token can be drawn at position {draw.position}: the largest logit is infinite",
        remedy="check the model's weights; with min_tokens, some token must be left that ends nothing",
    )
