"""Attention on the CPU in C: every key is read once for all query rows that share it (`attention_plan.py`).

Shapes and the meaning of a step are those of `paged_attention.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from lmc.runtime.kernels.attention_plan import PlannedItems, plan_items
from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.native.library import TYPES, library, why_not


class _Call(ctypes.Structure):
    """As `Attention` in attention_call.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("query", "keys", "values", "result", "pages", "items", "item_rows")),
        *((name, ctypes.c_void_p) for name in ("positions", "row_starts", "row_partials", "partials")),
        ("item_count", ctypes.c_int64),
        ("row_count", ctypes.c_int64),
        *((name, ctypes.c_int32) for name in ("heads", "key_heads", "size", "type", "window")),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("scratch", ctypes.c_void_p),
        ("scratch_bytes", ctypes.c_int64),
    )


@dataclass(frozen=True, slots=True)
class NativePlan:
    """The attention plan of a step. Its layers run one after the other, so they share memory for partial results."""

    arrays: PlannedItems
    _prepared: dict[tuple[int, int, int, int], _Prepared] = field(default_factory=dict, compare=False, repr=False)

    def call(
        self, heads: int, key_heads: int, size: int, *, threads: int, dtype: torch.dtype, form: AttentionForm
    ) -> _Call:
        """The call of layers of this shape and form, filled in but for their tensors; it points into this plan."""
        shape = (heads, key_heads, size, threads)
        found = self._prepared.get(shape)
        if found is None:
            found = self._prepared[shape] = self._prepare(*shape)
        call = _Call.from_buffer_copy(found.call)
        call.type = TYPES[dtype]
        call.window, call.scale, call.softcap = form.window, form.scaling, form.softcap
        return call

    def _prepare(self, heads: int, key_heads: int, size: int, threads: int) -> _Prepared:
        most_rows = int(self.arrays.items["rows"].max()) if self.arrays.items.size else 0
        scratch_bytes = library().lmc_attention_scratch(most_rows, heads, key_heads, size)
        scratch = torch.empty(scratch_bytes * threads + 64, dtype=torch.uint8)
        partials = torch.empty(self.arrays.item_rows.size * heads * (size + 2), dtype=torch.float32)
        call = _Call(
            pages=self.arrays.pages.ctypes.data,
            items=self.arrays.items.ctypes.data,
            item_rows=self.arrays.item_rows.ctypes.data,
            positions=self.arrays.positions.ctypes.data,
            row_starts=self.arrays.row_starts.ctypes.data,
            row_partials=self.arrays.row_partials.ctypes.data,
            partials=partials.data_ptr(),
            item_count=self.arrays.items.size,
            row_count=self.arrays.positions.size,
            heads=heads,
            key_heads=key_heads,
            size=size,
            scratch=scratch.data_ptr() + (-scratch.data_ptr()) % 64,
            scratch_bytes=scratch_bytes,
        )
        return _Prepared(call, scratch, partials)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A call and the memory it points to."""

    call: _Call
    scratch: torch.Tensor
    partials: torch.Tensor


def supports(query: torch.Tensor) -> bool:
    """Return True if tensors of this kind are supported, and there is a compiled kernel."""
    return query.device.type == "cpu" and query.dtype in TYPES and why_not() is None


def plan_native(sequences: Sequence[SequenceRows], repeats: int, *, window: int = 0, share: bool = True) -> NativePlan:
    """Cut a step into items. `repeats` is query heads per key head; `window` 0 means that a row sees all before it.

    Without `share` the items of a sequence do not depend on the others, so that its result is bit for bit the same in
    any batch.
    """
    return NativePlan(plan_items(sequences, repeats, window=window, share=share))


def attend(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    plan: NativePlan,
    form: AttentionForm,
) -> torch.Tensor:
    """Attention of a step's packed rows [T, H, D]; the plan must be one for the form's window."""
    query = query.contiguous()
    result = torch.empty_like(query)
    threads = torch.get_num_threads()
    call = plan.call(query.shape[1], key_cache.shape[1], query.shape[2], threads=threads, dtype=query.dtype, form=form)
    call.query, call.result = query.data_ptr(), result.data_ptr()
    call.keys, call.values = key_cache.data_ptr(), value_cache.data_ptr()
    library().lmc_attention(ctypes.byref(call), threads)
    return result
