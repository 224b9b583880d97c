"""The parts of a decoder layer between its matrix products, each in one pass over its data.

RMS normalization, rotary embedding with the store of keys and values, the gate of the feed-forward part. `*_reference`
are the definitions in torch, the functions without suffix run them in C (CPU, float32 and bfloat16). T rows of a step,
H query heads, KH key heads, D head size, P pages.
"""

import ctypes
from typing import Literal

import torch

from lmc.runtime.kernels.native.library import TYPES, library

Activation = Literal["silu", "gelu_tanh"]
ACTIVATIONS: dict[Activation, int] = {"silu": 0, "gelu_tanh": 1}


class NormCall(ctypes.Structure):
    """As `Norm` in layers.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("input", "weight", "residual", "output")),
        ("rows", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("size", "type", "plus_one")),
        ("epsilon", ctypes.c_float),
    )


class RotateCall(ctypes.Structure):
    """As `Rotate` in layers.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("projected", "cosines", "sines", "query_norm", "key_norm", "slots")),
        *((name, ctypes.c_void_p) for name in ("query", "keys", "values")),
        ("rows", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("heads", "key_heads", "size", "rotated", "type", "plus_one")),
        ("epsilon", ctypes.c_float),
    )


class _Gate(ctypes.Structure):
    """As `Gate` in layers.h."""

    _fields_ = (
        ("input", ctypes.c_void_p),
        ("output", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("size", "type", "activation")),
    )


def rms_norm(states: torch.Tensor, weight: torch.Tensor, epsilon: float, *, plus_one: bool = False) -> torch.Tensor:
    """Normalize the last dimension of `states` by its root mean square and scale it by `weight`.

    With `plus_one` the weight is stored less one (Gemma). The weight is taken in the type of the states.
    """
    states, weight = states.contiguous(), _like(states, weight)
    result = torch.empty_like(states)
    size = states.shape[-1]
    call = NormCall(
        states.data_ptr(),
        weight.data_ptr(),
        None,
        result.data_ptr(),
        states.numel() // size,
        size,
        TYPES[states.dtype],
        plus_one,
        epsilon,
    )
    library().lmc_rms_norm(ctypes.byref(call), torch.get_num_threads())
    return result


def _like(states: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Convert a second operand of the C code: the element type of `states`, contiguous."""
    return other.to(states.dtype).contiguous()


def rms_norm_reference(
    states: torch.Tensor, weight: torch.Tensor, epsilon: float, *, plus_one: bool = False
) -> torch.Tensor:
    """As transformers computes it."""
    wide = states.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    if plus_one:
        return (normed * (1.0 + weight.float())).to(states.dtype)
    return weight * normed.to(states.dtype)


def rotate_and_store(
    projected: torch.Tensor,
    angles: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    *,
    heads: int,
    query_norm: torch.Tensor | None = None,
    key_norm: torch.Tensor | None = None,
    epsilon: float = 0.0,
    plus_one: bool = False,
) -> torch.Tensor:
    """Return the rotated queries [T, H, D]; write rotated keys and plain values to their pages.

    Angles and norms are taken in the type of `projected`, which the caches must have.

    Args:
        projected: [T, (H + 2 KH) D], queries, keys and values side by side.
        angles: cosines and sines, [T, R] each, of the first R elements of a head, which are rotated in halves.
        slots: [T], int64, the page of each row.
        key_cache: [P, KH, D].
        value_cache: [P, KH, D].
        heads: H.
        query_norm: [D]; queries of each head are normalized with it first.
        key_norm: [D], likewise for keys.
        epsilon: of the norms.
        plus_one: see `rms_norm`.

    Raises:
        ValueError: a cache has another type, or its elements don't lie side by side.
    """
    for name, cache in (("key_cache", key_cache), ("value_cache", value_cache)):
        if cache.dtype != projected.dtype or not cache.is_contiguous():
            needed = f"{name} must be contiguous and {projected.dtype}, as the projected states are"
            raise ValueError(f"{needed}; it is {cache.dtype} with strides {cache.stride()}")
    rows = projected.shape[0]
    _, key_heads, size = key_cache.shape
    query = torch.empty((rows, heads, size), dtype=projected.dtype)
    projected, slots = projected.contiguous(), slots.to(torch.int64).contiguous()
    cosines, sines = (_like(projected, each) for each in angles)
    query_norm, key_norm = (None if each is None else _like(projected, each) for each in (query_norm, key_norm))
    call = RotateCall(
        projected.data_ptr(),
        cosines.data_ptr(),
        sines.data_ptr(),
        None if query_norm is None else query_norm.data_ptr(),
        None if key_norm is None else key_norm.data_ptr(),
        slots.data_ptr(),
        query.data_ptr(),
        key_cache.data_ptr(),
        value_cache.data_ptr(),
        rows,
        heads,
        key_heads,
        size,
        cosines.shape[-1],
        TYPES[projected.dtype],
        plus_one,
        epsilon,
    )
    library().lmc_rotate_and_store(ctypes.byref(call), torch.get_num_threads())
    return query


def rotate_and_store_reference(
    projected: torch.Tensor,
    angles: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    *,
    heads: int,
    query_norm: torch.Tensor | None = None,
    key_norm: torch.Tensor | None = None,
    epsilon: float = 0.0,
    plus_one: bool = False,
) -> torch.Tensor:
    """As transformers computes it."""
    _, key_heads, size = key_cache.shape
    query, key, value = projected.view(len(projected), -1, size).split((heads, key_heads, key_heads), dim=1)
    if query_norm is not None:
        query = rms_norm_reference(query, query_norm, epsilon, plus_one=plus_one)
    if key_norm is not None:
        key = rms_norm_reference(key, key_norm, epsilon, plus_one=plus_one)
    key_cache[slots] = _rotated(key, *angles)
    value_cache[slots] = value
    return _rotated(query, *angles)


def _rotated(states: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    turned, rest = states.split((cosines.shape[-1], states.shape[-1] - cosines.shape[-1]), dim=-1)
    low, high = turned.chunk(2, dim=-1)
    turned = turned * cosines.unsqueeze(1) + torch.cat((-high, low), dim=-1) * sines.unsqueeze(1)
    return torch.cat((turned, rest), dim=-1)


def gate(gate_up: torch.Tensor, activation: Activation) -> torch.Tensor:
    """activation(gate) × up of [T, 2 I], gate and up side by side; [T, I]."""
    gate_up = gate_up.contiguous()
    rows, width = gate_up.shape
    result = torch.empty((rows, width // 2), dtype=gate_up.dtype)
    call = _Gate(gate_up.data_ptr(), result.data_ptr(), rows, width // 2, TYPES[gate_up.dtype], ACTIVATIONS[activation])
    library().lmc_gate(ctypes.byref(call), torch.get_num_threads())
    return result


def gate_reference(gate_up: torch.Tensor, activation: Activation) -> torch.Tensor:
    """As transformers computes it."""
    left, right = gate_up.chunk(2, dim=-1)
    if activation == "silu":
        return torch.nn.functional.silu(left) * right
    return torch.nn.functional.gelu(left, approximate="tanh") * right
