"""A step of constrained draws at random; what `lmc.runtime.kernels.masked_draw` does, in plain torch and one batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lmc.runtime.kernels.masked_draw import UNCONSTRAINED, ConstraintTables, Drawn, Draws, Tables
from tests.runtime.kernels.drawing import moved, some_draws, some_tables

STATES, CLASSES, CONSTRAINTS = 400, 400, 4
KINDS = {  # temperature, top-k, top-p
    "greedy": (0.0, 0, 1.0),
    "temperature": (0.8, 0, 1.0),
    "top-p 0.9": (0.8, 0, 0.9),
    "top-k 50": (0.8, 50, 1.0),
}
_WORDS = -(-CLASSES // 32)


@dataclass(frozen=True)
class Step:
    """Logits of a step, how its rows are drawn from, and the constraints they are under."""

    logits: torch.Tensor
    draws: Draws
    tables: ConstraintTables
    several: Sequence[Tables]

    @classmethod
    def of(cls, size: int, rows: int, dtype: torch.dtype, device: str, seed: int = 0) -> "Step":
        """Rows in states at random, one in eight under no constraint, with all kinds of sampling."""
        rng = np.random.default_rng((size, rows, seed))
        several = [some_tables(rng, size, states=STATES, most_classes=CLASSES) for _ in range(CONSTRAINTS)]
        states = rng.integers(0, STATES * CONSTRAINTS, rows)
        states[rng.random(rows) < 1 / 8] = UNCONSTRAINED
        logits = torch.from_numpy(rng.normal(0, 3, (rows, size)).astype(np.float32)).to(dtype)
        draws = moved(some_draws(rng, rows, states.tolist(), size), device)
        return cls(logits.to(device), draws, ConstraintTables.of(several, device), several)

    def sampled(self, kind: str, rows: int) -> "Step":
        """The first rows with one kind of sampling for all of them."""
        temperature, top_k, top_p = KINDS[kind]
        some = Draws(*(each[:rows] for each in self.draws))
        draws = some._replace(
            temperature=torch.full_like(some.temperature, temperature),
            top_k=torch.full_like(some.top_k, top_k),
            top_p=torch.full_like(some.top_p, top_p),
            min_p=torch.zeros_like(some.min_p),
        )
        return Step(self.logits[:rows], draws, self.tables, self.several)


def masks(step: Step) -> torch.Tensor:
    """Every state's mask as booleans, [states + 1, V]; the last is that of no constraint: what torch looks up."""
    device, size = step.logits.device, step.logits.shape[1]
    found = torch.ones(len(step.tables.first_word) + 1, size, dtype=torch.bool, device=device)
    first = 0
    for one in step.several:
        bits = np.unpackbits(one.masks.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
        of_mask = torch.from_numpy(bits[:, one.class_of_token]).to(device)
        states = len(one.mask_of_state)
        found[first : first + states] = of_mask[torch.from_numpy(one.mask_of_state).to(device)]
        first += states
    return found


def torch_step(step: Step, allowed: torch.Tensor, kind: str) -> Drawn:
    """Mask, draw and next state in torch, without asking the host."""
    draws, tables = step.draws, step.tables
    states = draws.states.long()
    logits = torch.where(allowed[states], step.logits.float(), -torch.inf)
    tokens = torch_draw(logits, draws, kind)
    held = states.clamp(min=0)
    own = tables.classes[tables.table_of_state[held].long(), tokens]
    at = tables.first_word[held].long()[:, None] + torch.arange(_WORDS, device=logits.device)
    words = tables.words[at.clamp(max=len(tables.words) - 1)]  # a mask may have fewer; what is read then counts nowhere
    place = torch.arange(32 * _WORDS, device=logits.device)
    bits = ((words[:, :, None] >> (place[:32])) & 1).flatten(1)
    below = (bits * (place < own[:, None])).sum(dim=1)
    following = states + tables.next[(tables.first_next[held] + below).long().clamp(max=len(tables.next) - 1)]
    following = torch.where(draws.states < 0, states, following)
    return Drawn(tokens.int(), logits.amax(dim=1), following.int())


def torch_draw(logits: torch.Tensor, draws: Draws, kind: str) -> torch.Tensor:
    """A token for each row of masked logits [R, V], of one kind of sampling."""
    temperature, top_k, top_p = KINDS[kind]
    if temperature == 0:
        return logits.argmax(dim=1)
    weights = torch.softmax(logits / temperature, dim=1)
    if top_k:
        least = weights.topk(min(top_k, logits.shape[1]), dim=1).values[:, -1:]
        weights = torch.where(weights >= least, weights, 0.0)
    if top_p < 1:
        ordered, order = weights.sort(dim=1, descending=True)
        before = ordered.cumsum(dim=1) - ordered
        weights = torch.zeros_like(weights).scatter(1, order, torch.where(before < top_p, ordered, 0.0))
    reached = weights.double().cumsum(dim=1)
    places = torch.searchsorted(reached, draws.uniform[:, None] * reached[:, -1:], right=True)
    return places[:, 0].clamp(max=logits.shape[1] - 1)


def bitmask(step: Step, allowed: torch.Tensor) -> torch.Tensor:
    """The tokens that each row allows as xgrammar packs them, [R, words]."""
    bits = np.packbits(allowed[step.draws.states.long()].cpu().numpy(), axis=1, bitorder="little")
    padded = np.zeros((len(bits), -(-step.logits.shape[1] // 32) * 4), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return torch.from_numpy(padded.view(np.int32)).to(step.logits.device)
