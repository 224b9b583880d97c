"""One token for each row of logits: the row's mask first, then temperature, top-k, top-p and min-p.

Each acts on what the one before left. Of equally likely tokens those with lower ids are kept. The token is the first,
by ascending id, up to which the weights of what is kept are more than `uniform` of their sum. Rows are worked on one by
one: a row is drawn from alike in any batch and with any number of threads. R rows, V tokens of the vocabulary.

`reference` is the definition in numpy (weights in float32, sums in float64), `native` the version in C
(`native_sampling.py`), and `choose_tokens` the dispatch.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels.choices import Choice, Chosen, Floats, Ids, Mask, bounded
from lmc.runtime.kernels.native.library import why_not
from lmc.runtime.kernels.native_sampling import native, run_native

Implementation = Literal["reference", "native"]


def choose_tokens(
    logits: Floats, choices: Sequence[Choice], *, implementation: Implementation | None = None
) -> list[Chosen]:
    """Choose one token for each row of `logits` [R, V], which lie side by side.

    Without `implementation`, `native` where there is a compiler, else `reference`.
    """
    return _IMPLEMENTATIONS[implementation or _fastest()](logits, choices)


def token_weights(logits: Floats, choice: Choice, *, implementation: Implementation | None = None) -> Floats:
    """Return the weight of each token of one finite row [V] in the draw: 1 for the likeliest, 0 if it is cut off."""
    if (implementation or _fastest()) == "native":
        weights = np.zeros_like(logits)
        run_native(logits[None], [choice], weights)
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
    """Return the logits to draw from: -inf where the mask forbids."""
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
        weights /= np.float32(bounded(choice.temperature))
    np.exp(weights, out=weights)
    if choice.top_p < 1.0:
        kept = _likeliest(weights, _nucleus_size(weights, choice.top_p))
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    if choice.min_p > 0.0:
        kept = np.flatnonzero(weights >= np.float32(choice.min_p))
        ids, weights = kept if ids is None else ids[kept], weights[kept]
    return ids, weights


def _nucleus_size(weights: Floats, share: float) -> int:
    """Return the number of the largest weights that make up `share` of all."""
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


_IMPLEMENTATIONS: dict[Implementation, Callable[[Floats, Sequence[Choice]], list[Chosen]]] = {
    "reference": reference,
    "native": native,
}
