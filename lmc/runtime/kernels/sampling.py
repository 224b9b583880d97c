"""One token for each row of logits: the row's mask first, then temperature, top-k, top-p and min-p.

Each acts on what the one before left. Of equally likely tokens those with lower ids are kept. The token is the first,
by ascending id, up to which the weights of what is kept are more than `uniform` of their sum. Rows are worked on one by
one: a row is drawn from alike in any batch and with any number of threads. R rows, V tokens of the vocabulary.

`reference` is the definition in numpy (weights in float32, sums in float64), `native` the version in C, and
`choose_tokens` the dispatch.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels.native.library import library, why_not

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Mask = NDArray[np.uint32]
Implementation = Literal["reference", "native"]

# Beyond these the weights in float32 are the same as at them.
_LEAST_TEMPERATURE = 1e-30
_MOST_TEMPERATURE = 1e30


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """How one row's token is chosen.

    Attributes:
        temperature: 0 for the likeliest token; then truncation has no effect.
        top_k: how many of the likeliest tokens are kept; 0 for all.
        top_p: the fewest of the likeliest tokens are kept that have this share of the probability; in (0, 1].
        min_p: tokens are kept that have this share of the likeliest one's probability; in [0, 1].
        uniform: the number in [0, 1) that decides the draw.
        logprobs: how many of the model's likeliest tokens to report; None: no log-probabilities either.
        changes: ids and their logits, [C] each, to draw from instead of the model's own; an id may stand there twice
            with the same logit.
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


def choose_tokens(
    logits: Floats, choices: Sequence[Choice], *, implementation: Implementation | None = None
) -> list[Chosen]:
    """Choose one token for each row of `logits` [R, V], which lie side by side.

    Without `implementation`, `native` where there is a compiler, else `reference`.
    """
    return _IMPLEMENTATIONS[implementation or _fastest()](logits, choices)


def token_weights(logits: Floats, choice: Choice, *, implementation: Implementation | None = None) -> Floats:
    """What each token of one finite row [V] is drawn with: 1 for the likeliest, 0 for what is cut off."""
    if (implementation or _fastest()) == "native":
        weights = np.zeros_like(logits)
        _run(logits[None], [choice], weights)
        return weights
    kept, own = _kept(_changed(logits, choice), choice)
    weights = np.zeros_like(logits)
    weights[slice(None) if kept is None else kept] = own
    return weights


def _fastest() -> Implementation:
    return "reference" if why_not() else "native"


def reference(logits: Floats, choices: Sequence[Choice]) -> list[Chosen]:
    """In numpy; see the module."""
    return [_choose(row, choice) for row, choice in zip(logits, choices, strict=True)]


def _choose(own: Floats, choice: Choice) -> Chosen:
    logits = _changed(own, choice)
    token = int(logits.argmax())
    highest = math.nan if np.isnan(own.max()) else float(logits[token])
    if not math.isfinite(highest):
        return Chosen(highest, 0)
    if choice.temperature > 0:
        kept, weights = _kept(logits, choice)
        reached = weights.cumsum(dtype=np.float64)
        # What comes after the last place with a weight is not reached, even where rounding lets the target be.
        last = reached.searchsorted(reached[-1])
        place = min(int(reached.searchsorted(choice.uniform * reached[-1], side="right")), int(last))
        token = place if kept is None else int(kept[place])
    if choice.logprobs is None:
        return Chosen(highest, token)
    logprobs = torch.log_softmax(torch.from_numpy(own).double(), -1).float().numpy()
    ids = _likeliest(own, min(choice.logprobs, own.size))
    ids = ids[np.argsort(-own[ids], kind="stable")]
    return Chosen(highest, token, float(logprobs[token]), tuple(zip(ids.tolist(), logprobs[ids].tolist(), strict=True)))


def _changed(own: Floats, choice: Choice) -> Floats:
    """What is drawn from: -inf for what the mask does not allow."""
    logits = own
    if choice.changes is not None:
        logits, (ids, values) = own.copy(), choice.changes
        logits[ids] = values
    return (
        logits if choice.mask is None else np.where(allowed_tokens(choice.mask, own.size), logits, np.float32(-np.inf))
    )


def allowed_tokens(mask: Mask, size: int) -> NDArray[np.bool_]:
    """A mask as one boolean for each of `size` tokens."""
    bits = np.unpackbits(mask.astype("<u4", copy=False).view(np.uint8), bitorder="little")[:size].astype(np.bool_)
    return np.pad(bits, (0, size - bits.size))


def _kept(logits: Floats, choice: Choice) -> tuple[Ids | None, Floats]:
    """Ids that truncation leaves, ascending (None: all), and their weights (1 for the likeliest), of one finite row."""
    ids = _likeliest(logits, choice.top_k) if 0 < choice.top_k < logits.size else None
    weights = (logits if ids is None else logits[ids]) - logits.max()
    with np.errstate(over="ignore"):
        weights /= np.float32(_bounded(choice.temperature))
    np.exp(weights, out=weights)
    if choice.top_p < 1.0:
        kept = _likeliest(weights, _nucleus_size(weights, choice.top_p))
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    if choice.min_p > 0.0:
        kept = np.flatnonzero(weights >= np.float32(choice.min_p))
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    return ids, weights


def _nucleus_size(weights: Floats, share: float) -> int:
    """How many of the largest weights make up `share` of all."""
    reached = np.sort(weights)[::-1].cumsum(dtype=np.float64)
    return min(int(reached.searchsorted(share * reached[-1])) + 1, weights.size)


def _likeliest(values: Floats, count: int) -> Ids:
    """The places of the `count` largest values, ascending; of equal ones the first."""
    if count == 0:
        return np.empty(0, np.int64)
    bound = np.partition(values, values.size - count)[values.size - count]
    places = np.flatnonzero(values >= bound)
    ties = np.flatnonzero(values[places] == bound)
    return np.delete(places, ties[ties.size - (places.size - count) :])


def _bounded(temperature: float) -> float:
    return min(max(temperature, _LEAST_TEMPERATURE), _MOST_TEMPERATURE)


_ROW = np.dtype(
    [
        ("own", np.uintp),
        ("changed_ids", np.uintp),
        ("changed", np.uintp),
        ("weights", np.uintp),
        ("mask", np.uintp),
        ("mask_words", np.int64),
        ("changes", np.int64),
        ("uniform", np.float64),
        ("top_p", np.float64),
        ("temperature", np.float32),
        ("min_p", np.float32),
        ("top_k", np.int32),
        ("top", np.int32),
        ("first_top", np.int32),
        ("token", np.int32),
        ("highest", np.float32),
        ("logprob", np.float32),
    ]
)  # as `Row` in sampling.c


class _Sample(ctypes.Structure):
    """As `Sample` in sampling.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("rows", "top_ids", "top_logprobs", "scratch")),
        *((name, ctypes.c_int64) for name in ("row_count", "size", "scratch_bytes")),
    )


def native(logits: Floats, choices: Sequence[Choice]) -> list[Chosen]:
    """In C; see the module."""
    rows, top_ids, top_logprobs = _run(logits, choices)
    highest, tokens, logprobs = (rows[name].tolist() for name in ("highest", "token", "logprob"))
    if not top_ids.size and all(choice.logprobs is None for choice in choices):
        return list(map(Chosen, highest, tokens))
    tops = list(zip(top_ids.tolist(), top_logprobs.tolist(), strict=True))
    return [
        Chosen(highest[row], tokens[row])
        if choice.logprobs is None
        else Chosen(highest[row], tokens[row], logprobs[row], tuple(tops[first : first + count]))
        for row, (choice, first, count) in enumerate(
            zip(choices, rows["first_top"].tolist(), rows["top"].tolist(), strict=True)
        )
    ]


def _run(
    logits: Floats, choices: Sequence[Choice], weights: Floats | None = None
) -> tuple[NDArray[np.void], NDArray[np.int32], Floats]:
    """Rows with their results; ids and log-probabilities of the likeliest. `weights` is for a single row."""
    count, size = logits.shape
    rows = np.zeros(count, _ROW)
    rows["own"] = logits.ctypes.data + 4 * size * np.arange(count, dtype=np.uintp)
    for row, choice in enumerate(choices):
        if choice.changes is not None:
            ids, values = choice.changes
            rows["changed_ids"][row], rows["changed"][row] = ids.ctypes.data, values.ctypes.data
            rows["changes"][row] = ids.size
        if choice.mask is not None:
            rows["mask"][row], rows["mask_words"][row] = choice.mask.ctypes.data, choice.mask.size
    if weights is not None:
        rows["weights"] = weights.ctypes.data
    for name in ("uniform", "top_p", "min_p"):
        rows[name] = [getattr(choice, name) for choice in choices]
    rows["top_k"] = [min(choice.top_k, size) for choice in choices]
    rows["temperature"] = [choice.temperature and _bounded(choice.temperature) for choice in choices]
    rows["top"] = [-1 if choice.logprobs is None else min(choice.logprobs, size) for choice in choices]
    reported = np.maximum(rows["top"], 0)
    rows["first_top"] = reported.cumsum() - reported
    top_ids = np.zeros(reported.sum(), np.int32)
    top_logprobs = np.full(top_ids.size, np.nan, np.float32)
    threads = torch.get_num_threads()
    scratch_bytes = library().lmc_sample_scratch(size)
    scratch = np.empty(scratch_bytes * threads, np.uint8)
    call = _Sample(
        rows.ctypes.data,
        top_ids.ctypes.data,
        top_logprobs.ctypes.data,
        scratch.ctypes.data,
        count,
        size,
        scratch_bytes,
    )
    library().lmc_sample(ctypes.byref(call), threads)
    return rows, top_ids, top_logprobs


_IMPLEMENTATIONS: dict[Implementation, Callable[[Floats, Sequence[Choice]], list[Chosen]]] = {
    "reference": reference,
    "native": native,
}
