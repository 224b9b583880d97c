"""A whole decoder layer in one call to C (`native/decoder.c`): norms, products, rotation, attention, gate, residuals.

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
from lmc.runtime.kernels.native_attention import NativePlan
from lmc.runtime.kernels.products import PackedWeight, ProductCall

_SCRATCH = ("normed", "middle", "projected", "query", "mixed", "gated")


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


class _Step(ctypes.Structure):
    """As `Step` in decoder.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("input", "result", "cosines", "sines", "slots", "keys", "values")),
        *((name, ctypes.c_void_p) for name in ("attention", *_SCRATCH)),
        ("rows", ctypes.c_int64),
    )


class _Call(ctypes.Structure):
    """As `LayerCall` in decoder.c."""

    _fields_ = (("layer", ctypes.c_void_p), ("step", ctypes.c_void_p))


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
    """What the layers of one step share: the rows' pages, and room for what a layer computes on its way.

    Args:
        slots: [T], int64, the page of each row.
    """

    def __init__(self, slots: torch.Tensor) -> None:
        self._slots = slots.contiguous()
        self._rooms: dict[tuple[int, ...], tuple[_Step, list[torch.Tensor]]] = {}

    def step(self, widths: tuple[int, ...], dtype: torch.dtype) -> Any:
        """The structure of a layer that computes rows of these widths on its way."""
        found = self._rooms.get(widths)
        if found is None:
            rows = self._slots.numel()
            tensors = [torch.empty((rows, width), dtype=dtype) for width in widths]
            pointers = {name: tensor.data_ptr() for name, tensor in zip(_SCRATCH, tensors, strict=True)}
            found = self._rooms[widths] = (_Step(rows=rows, slots=self._slots.data_ptr(), **pointers), tensors)
        return found[0]


class NativeLayer:
    """A decoder layer whose weights stay where they are: `parts` keeps them."""

    def __init__(self, parts: LayerParts, key_heads: int, size: int) -> None:
        self.parts = parts
        self._key_heads, self._size = key_heads, size
        dtype, hidden = parts.projection.dtype, parts.projection.inputs
        self._dtype = dtype
        mixed = parts.heads * size
        self._widths = (hidden, hidden, parts.projection.width, mixed, mixed, parts.gate_up.width)
        rotate = RotateCall(heads=parts.heads, key_heads=key_heads, size=size, type=TYPES[dtype])
        if parts.query_norm is not None and parts.key_norm is not None:
            rotate.query_norm, rotate.key_norm = parts.query_norm.weight.data_ptr(), parts.key_norm.weight.data_ptr()
            rotate.epsilon, rotate.plus_one = parts.query_norm.epsilon, parts.query_norm.plus_one
        self._layer = _Layer(
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

    def run(
        self,
        states: torch.Tensor,
        angles: tuple[torch.Tensor, torch.Tensor],
        caches: Sequence[torch.Tensor],
        plan: NativePlan,
        memory: StepMemory,
    ) -> torch.Tensor:
        """Compute [T, hidden] → [T, hidden] and write the rows' keys and values to their pages.

        Args:
            states: [T, hidden], contiguous, in the type of the weights.
            angles: cosines and sines, [T, R] each, contiguous, in that type: see `layers.rotate_and_store`.
            caches: keys and values, [P, KH, D] each.
            plan: of the step's attention, for this layer's window.
            memory: shared by the layers of the step.
        """
        result = torch.empty_like(states)
        threads = torch.get_num_threads()
        step = memory.step(self._widths, self._dtype)
        step.input, step.result = states.data_ptr(), result.data_ptr()
        step.cosines, step.sines = angles[0].data_ptr(), angles[1].data_ptr()
        step.keys, step.values = caches[0].data_ptr(), caches[1].data_ptr()
        self._layer.rotate.rotated = angles[0].shape[-1]
        attention = plan.prepared(self.parts.heads, self._key_heads, self._size, threads)
        attention.query, attention.result = step.query, step.mixed
        attention.keys, attention.values = step.keys, step.values
        attention.type = TYPES[self._dtype]
        form = self.parts.form
        attention.window, attention.scale, attention.softcap = form.window, form.scaling, form.softcap
        step.attention = ctypes.addressof(attention)
        call = _Call(ctypes.addressof(self._layer), ctypes.addressof(step))
        library().lmc_decoder_layer(ctypes.byref(call), threads)
        return result


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
