"""Deterministic kernels: the bits of a token do not depend on the rest of the batch.

A matrix product may add up in another order when it has another number of rows, and attention when a row shares its
keys. So the model is called with exactly `BLOCK_ROWS` rows each time, padded where there are fewer, and every row
attends alone, over all keys before it. What a row gives is then a function of the tokens up to it, on one machine with
one number of threads: in any batch, under any cut of the prompt, from the cache or computed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from lmc.ir.errors import EngineError
from lmc.runtime.kernels.forms import SequenceRows
from lmc.runtime.kernels.native.library import TYPES, why_not
from lmc.runtime.local.modules.fused_modules import FusedExperts

BLOCK_ROWS = 32


def prepare(model: Any) -> None:
    """Change a model, in place, so that a row of a call of `BLOCK_ROWS` rows doesn't depend on the other rows.

    Raises:
        EngineError: device, compiler or model don't allow it.
    """
    reason = _reason_against(model)
    if reason is not None:
        raise EngineError(f"deterministic=True can't be kept here: {reason}", remedy="leave deterministic=True out")
    for module in model.modules():
        if isinstance(module, FusedExperts):
            module.gate_up = nn.ModuleList(map(FixedRows, module.gate_up))
            module.down = nn.ModuleList(map(FixedRows, module.down))


class FixedRows(nn.Module):
    """A product [T, in] → [T, out] of up to `BLOCK_ROWS` rows, computed with `BLOCK_ROWS` rows."""

    def __init__(self, product: nn.Module) -> None:
        super().__init__()
        self.product = product

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Multiply."""
        padded = functional.pad(states, (0, 0, 0, BLOCK_ROWS - len(states)))
        return self.product(padded)[: len(states)]


def row_by_row(pages: Sequence[NDArray[np.int64]], null_page: int) -> list[SequenceRows]:
    """Each row of a block as a sequence of its own: `pages` of all keys it sees; the rest of the block sees nothing."""
    padding = [np.array([null_page])] * (BLOCK_ROWS - len(pages))
    return [SequenceRows(row, 1, seen) for row, seen in enumerate([*pages, *padding])]


def padded(values: NDArray[np.int64], filler: int) -> NDArray[np.int64]:
    """Values of a block's rows, filled up."""
    return np.pad(values, (0, BLOCK_ROWS - values.size), constant_values=filler)


def _reason_against(model: Any) -> str | None:
    if model.device.type != "cpu" or model.dtype not in TYPES:
        return f"only the kernels for CPUs do it, in float32 and bfloat16, not those for {model.device.type}"
    missing = why_not()
    if missing is not None:
        return f"it needs the compiled CPU kernels, and {missing}"
    for module in model.modules():
        if type(module).__name__.endswith("Experts") and not isinstance(module, FusedExperts):
            return f"{type(module).__name__} runs as transformers made it, with as many rows as choose an expert"
    return None
