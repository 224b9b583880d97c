"""Products with weights laid out once for them, on the CPU in C (`native/products.c`), in float32 and bfloat16.

Unlike oneDNN's they need no Python between one and the next (`decoder.py`), read weights at the speed of memory for few
rows, and apply gate, bias and residual before anything is stored. M rows, K inputs, N outputs.
"""

import ctypes
from dataclasses import dataclass

import torch

from lmc.runtime.kernels.layers import ACTIVATIONS, Activation, gate_reference
from lmc.runtime.kernels.native.library import TYPES, library, why_not

_ALIGNMENT = 64  # bytes: a cache line, and the widest vector


class ProductCall(ctypes.Structure):
    """As `Product` in products.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("input", "weight", "bias", "residual", "output")),
        ("rows", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("inputs", "outputs", "type", "output_type", "activation")),
    )


class _Pack(ctypes.Structure):
    """As `Pack` in products.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("weight", "packed")),
        *((name, ctypes.c_int32) for name in ("inputs", "outputs", "type", "gated")),
    )


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """The weights [N, K] of a product, in panels; with an activation the first N/2 outputs are gates of the others.

    The result is then [M, N/2]: activation(first half) × second half.
    """

    words: torch.Tensor
    bias: torch.Tensor | None
    dtype: torch.dtype
    inputs: int
    outputs: int
    activation: Activation | None
    result_dtype: torch.dtype

    @property
    def width(self) -> int:
        """Elements of a row of the result."""
        return self.outputs // 2 if self.activation else self.outputs

    def call(self) -> ProductCall:
        """Return the C argument for a product, without its rows; it points into this object's tensors."""
        return ProductCall(
            weight=_aligned(self.words),
            bias=None if self.bias is None else self.bias.data_ptr(),
            inputs=self.inputs,
            outputs=self.outputs,
            type=TYPES[self.dtype],
            output_type=TYPES[self.result_dtype],
            activation=-1 if self.activation is None else ACTIVATIONS[self.activation],
        )


def pays(weight: torch.Tensor) -> bool:
    """Return True if there is a kernel for such weights [N, K] here, and it is the fastest on this processor."""
    return (
        weight.device.type == "cpu"
        and weight.dtype in TYPES
        and (weight.dtype == torch.float32 or weight.shape[1] % 2 == 0)
        and why_not() is None
        and bool(library().lmc_products_pay())
    )


def pack(
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: Activation | None = None,
    *,
    wide: bool = False,
) -> PackedWeight:
    """Lay out the weights [N, K] of a product, bias [N]; with `wide` its results are float32, whatever the weights are.

    Raises:
        ValueError: an odd K in bfloat16, an odd N with an activation, or a wide result with one.
    """
    outputs, inputs = weight.shape
    if weight.dtype == torch.bfloat16 and inputs % 2:
        raise ValueError(f"weights in bfloat16 are packed in pairs of inputs; there are {inputs}")
    if activation is not None and outputs % 2:
        raise ValueError(f"gates and what they open are as many; there are {outputs} outputs")
    if activation is not None and wide:
        raise ValueError("results of gated products have the type of the weights")
    weight = weight.detach().contiguous()
    shape = (inputs, outputs, TYPES[weight.dtype], activation is not None)
    words = torch.empty(library().lmc_packed_words(*shape) + _ALIGNMENT // 4, dtype=torch.int32)
    library().lmc_pack(ctypes.byref(_Pack(weight.data_ptr(), _aligned(words), *shape)), torch.get_num_threads())
    result_dtype = torch.float32 if wide else weight.dtype
    own_bias = None if bias is None else bias.detach().to(weight.dtype).contiguous()
    return PackedWeight(words, own_bias, weight.dtype, inputs, outputs, activation, result_dtype)


def product(states: torch.Tensor, weight: PackedWeight, residual: torch.Tensor | None = None) -> torch.Tensor:
    """Multiply [M, K], in the type of the weights, to [M, `weight.width`].

    Args:
        states: [M, K].
        weight: what to multiply by.
        residual: [M, N], added to the rounded product; not with an activation or a wide result.
    """
    states = states.contiguous()
    result = torch.empty((states.shape[0], weight.width), dtype=weight.result_dtype)
    call = weight.call()
    call.input, call.output, call.rows = states.data_ptr(), result.data_ptr(), states.shape[0]
    if residual is not None:
        residual = residual.contiguous()
        call.residual = residual.data_ptr()
    library().lmc_product(ctypes.byref(call), torch.get_num_threads())
    return result


def product_reference(
    states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    activation: Activation | None = None,
    residual: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same by torch, from weights [N, K] as they come."""
    result = torch.nn.functional.linear(states, weight, bias)
    if activation is not None:
        result = gate_reference(result, activation)
    return result if residual is None else result + residual


def _aligned(words: torch.Tensor) -> int:
    address = words.data_ptr()
    return address + -address % _ALIGNMENT
