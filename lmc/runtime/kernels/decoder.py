"""Decoder layers in one call to C (`native/decoder.c`): norms, products, rotation, attention, gate, residuals.

The parts and their definitions are those of `layers.py`, `products.py` and `native_attention.py`; what this saves is
the time between them, which is as long as the products themselves where a step has few rows.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lmc.runtime.kernels.forms import AttentionForm
from lmc.runtime.kernels.layers import NormCall, RotateCall
from lmc.runtime.kernels.native.library import TYPES, library
from lmc.runtime.kernels.paged_attention import AttentionBatch
from lmc.runtime.kernels.products import PackedWeight, ProductCall

_SCRATCH = ("spare", "normed", "middle", "projected", "query", "mixed", "gated")


class _Layer(ctypes.Structure):
    """As `Layer` in decoder.c."""

    _fields_ = (
        ("input_norm", NormCall),
        ("projection", ProductCall),
        ("rotate", RotateCall),
        ("output", ProductCall),
        ("attention_norm", NormCall),
        ("feed_norm", NormCall),
        ("gate_up", ProductCall),
        ("down", ProductCall),
        ("last_norm", NormCall),
    )


class _Cache(ctypes.Structure):
    """As `Cache` in decoder.c."""

    _fields_ = (("keys", ctypes.c_void_p), ("values", ctypes.c_void_p))


class _Decoder(ctypes.Structure):
    """As `Decoder` in decoder.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("layers", "caches", "attentions", "input", "result")),
        *((name, ctypes.c_void_p) for name in ("cosines", "sines", "slots", *_SCRATCH)),
        ("rows", ctypes.c_int64),
        ("count", ctypes.c_int32),
        ("rotated", ctypes.c_int32),
    )


@dataclass(frozen=True, slots=True)
class NormPart:
    """An RMS norm: see `layers.rms_norm`; the weight is in the layer's type."""

    weight: torch.Tensor
    epsilon: float
    plus_one: bool


@dataclass(frozen=True, slots=True)
class LayerParts:
    """A decoder layer with H query and KH key heads of D elements.

    y = x + attention_norm(output(attention(rotate(projection(input_norm(x)))))), then y + last_norm(down(gate_up(
    feed_norm(y)))); a norm that is None is left out. `query_norm` and `key_norm` are None together, or alike.
    """

    input_norm: NormPart
    projection: PackedWeight
    query_norm: NormPart | None
    key_norm: NormPart | None
    heads: int
    form: AttentionForm
    output: PackedWeight
    attention_norm: NormPart | None
    feed_norm: NormPart
    gate_up: PackedWeight
    down: PackedWeight
    last_norm: NormPart | None


class StepMemory:
    """The shared memory of the layers of one step: the rows' pages, and room for intermediate results.

    Args:
        slots: [T], int64, the page of each row.
    """

    def __init__(self, slots: torch.Tensor) -> None:
        self.slots = slots.contiguous()
        self._rooms: dict[tuple[tuple[int, ...], torch.dtype], list[torch.Tensor]] = {}

    def room(self, widths: tuple[int, ...], dtype: torch.dtype) -> list[torch.Tensor]:
        """[T, width] for each of the widths, filled with anything."""
        found = self._rooms.get((widths, dtype))
        if found is None:
            found = [torch.empty((self.slots.numel(), width), dtype=dtype) for width in widths]
            self._rooms[widths, dtype] = found
        return found


class NativeLayers:
    """Decoder layers of one shape, one after the other.

    Args:
        layers: all with the same widths and numbers of heads.
        key_heads: KH.
        size: D.
    """

    def __init__(self, layers: Sequence[LayerParts], key_heads: int, size: int) -> None:
        first = layers[0]
        self._parts = tuple(layers)  # the structures point into their tensors
        self._key_heads, self._size = key_heads, size
        self._dtype = first.projection.dtype
        hidden, mixed = first.projection.inputs, first.heads * size
        self._widths = (hidden, hidden, hidden, first.projection.width, mixed, mixed, first.gate_up.width)
        self._layers = (_Layer * len(layers))(*(self._structure(parts) for parts in layers))

    def run(
        self,
        states: torch.Tensor,
        angles: tuple[torch.Tensor, torch.Tensor],
        caches: Sequence[tuple[torch.Tensor, torch.Tensor]],
        batch: AttentionBatch,
        memory: StepMemory,
    ) -> torch.Tensor:
        """Compute [T, hidden] → [T, hidden] and write the rows' keys and values to their pages.

        Args:
            states: [T, hidden], contiguous, in the type of the weights.
            angles: cosines and sines, [T, R] each, contiguous, in that type: see `layers.rotate_and_store`.
            caches: keys and values of each layer, [P, KH, D] each.
            batch: the step's attention.
            memory: shared by all layers of the step.
        """
        result = torch.empty_like(states)
        threads = torch.get_num_threads()
        count = len(self._parts)
        attentions, _calls = self._attentions(batch, threads)
        pages = (_Cache * count)(*((keys.data_ptr(), values.data_ptr()) for keys, values in caches))
        room = memory.room(self._widths, self._dtype)
        call = _Decoder(
            ctypes.addressof(self._layers),
            ctypes.addressof(pages),
            ctypes.addressof(attentions),
            states.data_ptr(),
            result.data_ptr(),
            angles[0].data_ptr(),
            angles[1].data_ptr(),
            memory.slots.data_ptr(),
            *(tensor.data_ptr() for tensor in room),
            states.shape[0],
            count,
            angles[0].shape[-1],
        )
        library().lmc_decoder_layers(ctypes.byref(call), threads)
        return result

    def _attentions(self, batch: AttentionBatch, threads: int) -> tuple[Any, dict[AttentionForm, Any]]:
        """Addresses of each layer's call, and the calls."""
        calls: dict[AttentionForm, Any] = {}
        for parts in self._parts:
            if parts.form not in calls:
                plan = batch.plan(parts.heads // self._key_heads, parts.form.window)
                shape = (parts.heads, self._key_heads, self._size)
                calls[parts.form] = plan.call(*shape, threads=threads, dtype=self._dtype, form=parts.form)
        addresses = (ctypes.addressof(calls[parts.form]) for parts in self._parts)
        return (ctypes.c_void_p * len(self._parts))(*addresses), calls

    def _structure(self, parts: LayerParts) -> _Layer:
        dtype = self._dtype
        rotate = RotateCall(heads=parts.heads, key_heads=self._key_heads, size=self._size, type=TYPES[dtype])
        if parts.query_norm is not None and parts.key_norm is not None:
            rotate.query_norm, rotate.key_norm = parts.query_norm.weight.data_ptr(), parts.key_norm.weight.data_ptr()
            rotate.epsilon, rotate.plus_one = parts.query_norm.epsilon, parts.query_norm.plus_one
        return _Layer(
            _norm(parts.input_norm, dtype),
            parts.projection.call(),
            rotate,
            parts.output.call(),
            _norm(parts.attention_norm, dtype),
            _norm(parts.feed_norm, dtype),
            parts.gate_up.call(),
            parts.down.call(),
            _norm(parts.last_norm, dtype),
        )


def _norm(part: NormPart | None, dtype: torch.dtype) -> NormCall:
    if part is None:
        return NormCall()
    return NormCall(
        weight=part.weight.data_ptr(),
        size=part.weight.numel(),
        type=TYPES[dtype],
        plus_one=part.plus_one,
        epsilon=part.epsilon,
    )
