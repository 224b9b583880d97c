"""Mask, draw and next state on a device: a token for each row of logits, under constraints whose tables lie there.

The token is chosen as `sampling.py` says (temperature, then top-k, top-p and min-p, each on what the one before left;
the first token, by ascending id, up to which the weights of what is kept are more than `uniform` of their sum), among
those that the row's state allows. Nothing of the size of the vocabulary leaves the device, and no step needs the host.
R rows, V tokens, K constraints.

`reference` is the definition in torch, `triton` the kernel (one program per row; what is cut off is found by bisection,
without sorting), `draw_masked` the dispatch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

Implementation = Literal["reference", "triton"]
Integers = NDArray[np.integer[Any]]

UNCONSTRAINED = -1
_LEAST_TEMPERATURE = 1e-30
_BLOCK = 4096


class Tables(NamedTuple):
    """The tables of a constraint's automaton over tokens, before they go to a device.

    A token's class decides its transitions: token `t` is allowed in state `s` where bit `class_of_token[t]` of mask
    `mask_of_state[s]` is set; then `next[first_next[s] + n] + s` is the state after it, `n` being the number of allowed
    classes below its own.

    Attributes:
        class_of_token: [V].
        masks: bit `c % 32` of word `c // 32` is class `c`, uint32 [M, W].
        mask_of_state: [S].
        first_next: [S].
        next: relative to the state, [N].
    """

    class_of_token: Integers
    masks: NDArray[np.uint32]
    mask_of_state: Integers
    first_next: Integers
    next: Integers


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintTables:
    """Tables of K constraints on one device, all int32. States are numbered through: `first_state[k] + state`.

    Attributes:
        classes: class of each token for each constraint, [K, V].
        words: masks of all of them, one after the other.
        first_word: where the mask of each state begins in `words`, [S].
        word_count: words of each of them, [S].
        first_next: where what follows on each state begins in `next`, [S].
        next: states after each allowed class, by class, relative to the state.
        table_of_state: which constraint each state belongs to, [S].
        first_state: number of the start of each constraint.
    """

    classes: torch.Tensor
    words: torch.Tensor
    first_word: torch.Tensor
    word_count: torch.Tensor
    first_next: torch.Tensor
    next: torch.Tensor
    table_of_state: torch.Tensor
    first_state: tuple[int, ...]

    @classmethod
    def of(cls, tables: Sequence[Tables], device: torch.device | str) -> "ConstraintTables":
        """Put the tables of several constraints over one vocabulary side by side."""
        sizes = np.array([len(each.mask_of_state) for each in tables])
        words = np.array([each.masks.size for each in tables])
        nexts = np.array([len(each.next) for each in tables])
        before = [np.cumsum(each) - each for each in (sizes, words, nexts)]

        def joined(parts: Sequence[Any]) -> torch.Tensor:
            return torch.from_numpy(np.concatenate(parts).astype(np.int32)).to(device)

        widths = [each.masks.shape[1] for each in tables]
        masks = [each.mask_of_state for each in tables]
        return cls(
            torch.from_numpy(np.stack([each.class_of_token for each in tables]).astype(np.int32)).to(device),
            torch.from_numpy(np.concatenate([each.masks.ravel() for each in tables]).view(np.int32)).to(device),
            joined([at + width * mask for at, width, mask in zip(before[1], widths, masks, strict=True)]),
            joined([np.full(size, width) for size, width in zip(sizes, widths, strict=True)]),
            joined([at + each.first_next for at, each in zip(before[2], tables, strict=True)]),
            joined([each.next for each in tables]),
            joined([np.full(size, at) for at, size in enumerate(sizes)]),
            tuple(before[0].tolist()),
        )


class Draws(NamedTuple):
    """Parameters of each row's draw; see `sampling.Choice`. Tensors of [R] on the device of the logits.

    `states` (int32, `UNCONSTRAINED` for none) index `ConstraintTables`; `uniform` is float64, `top_k` int32, the
    others float32.
    """

    states: torch.Tensor
    temperature: torch.Tensor
    top_k: torch.Tensor
    top_p: torch.Tensor
    min_p: torch.Tensor
    uniform: torch.Tensor


class Drawn(NamedTuple):
    """Tokens (int32), the largest logit that was allowed (float32; NaN where any logit is), next states (int32); [R].

    Token and next state mean something only where `highest` is finite.
    """

    tokens: torch.Tensor
    highest: torch.Tensor
    states: torch.Tensor


def draw_masked(
    logits: torch.Tensor, draws: Draws, tables: ConstraintTables, *, implementation: Implementation | None = None
) -> Drawn:
    """Draw a token from each row of `logits` [R, V], whose elements of a row lie side by side.

    Without `implementation`, `triton` on CUDA, else `reference`.
    """
    return _IMPLEMENTATIONS[implementation or ("triton" if logits.is_cuda else "reference")](logits, draws, tables)


def reference(logits: torch.Tensor, draws: Draws, tables: ConstraintTables) -> Drawn:
    """In torch, row by row; see the module."""
    tokens, highest, states = [], [], []
    for row, own in enumerate(logits.float()):
        state = int(draws.states[row])
        allowed = None if state < 0 else _allowed_tokens(state, tables)
        masked = own if allowed is None else own.masked_fill(~allowed, -torch.inf)
        largest = float("nan") if bool(own.isnan().any()) else float(masked.max())
        token = _choose(masked, row, draws) if np.isfinite(largest) else 0
        tokens.append(token)
        highest.append(largest)
        states.append(state if state < 0 or not np.isfinite(largest) else _following(state, token, tables))
    device = logits.device
    return Drawn(
        torch.tensor(tokens, dtype=torch.int32, device=device),
        torch.tensor(highest, dtype=torch.float32, device=device),
        torch.tensor(states, dtype=torch.int32, device=device),
    )


def _allowed_classes(state: int, tables: ConstraintTables) -> torch.Tensor:
    first, count = int(tables.first_word[state]), int(tables.word_count[state])
    bits = torch.arange(32, device=tables.words.device)
    return ((tables.words[first : first + count, None] >> bits) & 1).bool().ravel()


def _allowed_tokens(state: int, tables: ConstraintTables) -> torch.Tensor:
    return _allowed_classes(state, tables)[tables.classes[int(tables.table_of_state[state])].long()]


def _following(state: int, token: int, tables: ConstraintTables) -> int:
    own = int(tables.classes[int(tables.table_of_state[state]), token])
    place = int(tables.first_next[state]) + int(_allowed_classes(state, tables)[:own].sum())
    return state + int(tables.next[place])


def _choose(masked: torch.Tensor, row: int, draws: Draws) -> int:
    temperature, top_k = float(draws.temperature[row]), int(draws.top_k[row])
    if temperature == 0:
        return int(masked.argmax())
    order = masked.argsort(descending=True, stable=True)
    kept = torch.zeros_like(masked, dtype=torch.bool)
    kept[order[: top_k if 0 < top_k < len(masked) else len(masked)]] = True
    weights = ((masked - masked.max()) / max(temperature, _LEAST_TEMPERATURE)).exp() * kept
    top_p = float(draws.top_p[row])
    if top_p < 1:
        order = weights.argsort(descending=True, stable=True)
        reached = weights[order].double().cumsum(0)
        count = int(torch.searchsorted(reached, top_p * reached[-1])) + 1
        weights[order[count:]] = 0
    weights[weights < float(draws.min_p[row])] = 0
    reached = weights.double().cumsum(0)
    place = int(torch.searchsorted(reached, float(draws.uniform[row]) * reached[-1], right=True))
    return min(place, int(weights.nonzero().max()))


def with_triton(logits: torch.Tensor, draws: Draws, tables: ConstraintTables) -> Drawn:
    """One launch of the kernel of `masked_draw_triton.py`."""
    from lmc.runtime.kernels.masked_draw_triton import masked_draw_kernel

    rows, size = logits.shape
    tokens = torch.empty(rows, dtype=torch.int32, device=logits.device)
    highest = torch.empty(rows, dtype=torch.float32, device=logits.device)
    states = torch.empty(rows, dtype=torch.int32, device=logits.device)
    if rows:
        masked_draw_kernel[(rows,)](
            *(logits, logits.stride(0), size, *draws),
            *(tables.classes, tables.words, tables.first_word, tables.word_count),
            *(tables.first_next, tables.next, tables.table_of_state, tokens, highest, states),
            BLOCK=min(_BLOCK, 1 << (size - 1).bit_length()),
            num_warps=8,
        )
    return Drawn(tokens, highest, states)


_IMPLEMENTATIONS: dict[Implementation, Callable[[torch.Tensor, Draws, ConstraintTables], Drawn]] = {
    "reference": reference,
    "triton": with_triton,
}
