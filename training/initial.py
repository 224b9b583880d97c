"""Starting weights: random, but with one circuit for copying laid in.

Small networks spend most of a short run before they discover the induction circuit (Olsson et al., 2022: a head that
notes the former token, then a head that finds where the current token came up before and copies what followed).
Laying it in (mimetic initialization, Trockman & Kolter, 2023) saves that time; training is free to change it.
Projections that write into the residual stream start at zero otherwise, so that tokens are readable in every layer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from training.model import Llama

EMBEDDING_SCALE = 0.02
_SLOW_RADIANS = 0.0013
_FORMER_SHARPNESS = 0.6
_FORMER_GAIN = 0.1
_MATCH_SHARPNESS = 1.75
_COPY_GAIN = 0.15


@torch.no_grad()
def initialize(model: Llama, seed: int) -> None:
    """Fill the weights of `model` in place."""
    generator = torch.Generator().manual_seed(seed)
    hidden = model.shape.hidden_size
    model.embedding.normal_(0.0, EMBEDDING_SCALE, generator=generator)
    model.qkv.normal_(0.0, hidden**-0.5, generator=generator)
    model.gate_up.normal_(0.0, hidden**-0.5, generator=generator)
    model.output.zero_()
    model.down.zero_()
    for norm in (model.attention_norm, model.mlp_norm, model.final_norm):
        norm.fill_(1.0)
    if model.shape.num_hidden_layers > 1:
        _lay_copying(model, generator)


def _orthonormal(rows: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Return `rows` orthonormal vectors of `columns` entries."""
    return torch.linalg.qr(torch.randn(columns, rows, generator=generator)).Q.T


def _lay_copying(model: Llama, generator: torch.Generator) -> None:
    """Head 0 of layer 0 notes the former token; heads 0 and 1 of layers 1, 3, … copy what followed a match."""
    shape = model.shape
    hidden, size = shape.hidden_size, shape.head_size
    half = size // 2
    angles = shape.rope_theta ** (-torch.arange(half).float() / half)
    slow = int((angles > _SLOW_RADIANS).sum())
    slow_rows = torch.cat((torch.arange(slow, half), torch.arange(slow + half, size)))
    basis = _orthonormal(min(hidden, 1 + 2 * size), hidden, generator)
    common, copied = basis[0], basis[1 : 1 + 2 * size]
    noted = copied[: len(slow_rows)]
    stored = _orthonormal(len(slow_rows) + 1, hidden, generator)[: len(slow_rows)]

    # Every token shares one direction, from which layer 0 makes the same query everywhere: only position decides.
    model.embedding.add_(common * EMBEDDING_SCALE * math.sqrt(hidden))
    fast = min(10, half)
    query = torch.zeros(size)
    query[:fast] = 1.0
    key = torch.zeros(size)
    key[:fast] = angles[:fast].cos()
    key[half : half + fast] = angles[:fast].sin()
    first = slice(0, size)
    model.qkv[0, 0, first] = _FORMER_SHARPNESS * torch.outer(query, common)
    model.qkv[0, 1, first] = _FORMER_SHARPNESS * torch.outer(key, common)
    model.qkv[0, 2, first] = 0.0
    model.qkv[0, 2, slow_rows] = noted
    model.output[0][:, slow_rows] = _FORMER_GAIN * stored.T

    # Matching uses only the dimensions that rotary embedding turns slowly, so that distance does not matter.
    for layer in range(1, shape.num_hidden_layers, 2):
        for head in range(min(2, shape.num_attention_heads)):
            rows = slice(head * size, (head + 1) * size)
            model.qkv[layer, 0, rows] = 0.0
            model.qkv[layer, 1, rows] = 0.0
            model.qkv[layer, 0, head * size + slow_rows] = _MATCH_SHARPNESS * noted
            model.qkv[layer, 1, head * size + slow_rows] = _MATCH_SHARPNESS * stored
            own = copied[head * size : (head + 1) * size]
            model.qkv[layer, 2, head * size : head * size + len(own)] = own
            model.output[layer][:, head * size : head * size + len(own)] = _COPY_GAIN * own.T
