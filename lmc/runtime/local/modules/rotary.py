"""Rotary embedding whose frequencies follow the length of each request (longrope, dynamic NTK).

transformers takes the longest position of a *call*: one long sequence would change what the others of its batch get,
and a generation would change its own frequencies on the way while its cached keys keep the old ones. Here a request has
one length from beginning to end, the rows that it may compute at most, and every row of it is rotated by that length's
frequencies. That length is part of the cache key, so no page is ever read under frequencies other than its own.

longrope: https://arxiv.org/abs/2402.13753 (two sets of factors, up to the length of pretraining and beyond it).
dynamic NTK: the base grows with the length beyond `max_position_embeddings`.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

LENGTH_DEPENDENT = ("dynamic", "longrope")
_KEPT_FREQUENCIES = 1024  # sets; a dynamic model has one for each length beyond `max_position_embeddings`


def rope_type(config: Any) -> str:
    """Return the type in `rope_parameters` of a model; models with one for each kind of layer have "default"."""
    return (getattr(config, "rope_parameters", None) or {}).get("rope_type", "default")


def context_length(config: Any) -> Any:
    """Longest sequence of a model, in tokens; `config.max_position_embeddings` where no length is stretched.

    dynamic NTK starts where the model's own context ends: there `max_position_embeddings` is the length of
    pretraining, and `factor` says how far beyond it the model is meant to go.
    """
    length = getattr(config, "max_position_embeddings", None)
    if rope_type(config) == "dynamic" and isinstance(length, int):
        return int(length * config.rope_parameters["factor"])
    return length


def replace_rotary(model: Any) -> "RequestRotary | None":
    """Put a `RequestRotary` into a model whose frequencies depend on the length; None for any other model."""
    if rope_type(model.config) not in LENGTH_DEPENDENT:
        return None
    rotary = RequestRotary(model.config, model.device)
    model.get_decoder().rotary_emb = rotary
    return rotary


class RequestRotary(nn.Module):
    """Cosines and sines of packed rows, each by the frequencies of its own request."""

    def __init__(self, config: Any, device: torch.device) -> None:
        super().__init__()
        self._config = config
        self._device = device
        self._kind = rope_type(config)
        name = "original_max_position_embeddings"
        self._threshold: int = (
            config.rope_parameters[name] if self._kind == "longrope" else config.max_position_embeddings
        )
        self._frequencies = lru_cache(_KEPT_FREQUENCIES)(self._compute_frequencies)
        self._rows = torch.empty(0)
        self._scaling = 1.0

    def frequency_length(self, rows: int) -> int:
        """The length that stands for the frequencies of a request that computes up to `rows` rows.

        0 is that of every short request; requests share frequencies, and so cached pages, only where this is the same.
        """
        if rows <= self._threshold:
            return 0
        return rows if self._kind == "dynamic" else self._threshold + 1

    def choose(self, lengths: Sequence[int], counts: Sequence[int]) -> None:
        """Set the rows of the next call: `counts[i]` rows with the frequencies of `lengths[i]`."""
        distinct, numbers = np.unique(lengths, return_inverse=True)
        chosen = [self._frequencies(int(length)) for length in distinct]
        self._scaling = chosen[0][1]  # of the model, not of the length
        of_rows = torch.from_numpy(np.repeat(numbers, counts)).to(self._device)
        self._rows = torch.stack([frequencies for frequencies, _ in chosen])[of_rows]

    def forward(self, states: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and sines [1, T, R] at `position_ids` [1, T], in the type of `states`."""
        halves = position_ids[0].unsqueeze(1).float() * self._rows
        angles = torch.cat((halves, halves), dim=-1).unsqueeze(0)
        return (angles.cos() * self._scaling).to(states.dtype), (angles.sin() * self._scaling).to(states.dtype)

    def _compute_frequencies(self, length: int) -> tuple[torch.Tensor, float]:
        frequencies, scaling = ROPE_INIT_FUNCTIONS[self._kind](self._config, self._device, seq_len=length or None)
        return frequencies.float(), float(scaling)
