"""Attention on the CPU in C: every key is read once for all query rows that share it.

Shapes and the meaning of a step are those of `paged_attention.py`. A plan cuts the keys of a step's sequences into
segments: a prefix that several sequences have in the same pages is one segment, read by the rows of all of them; what
a sequence has alone is another. Segments are cut further into items of at most `ITEM_KEYS` keys and `ITEM_ROWS` rows ×
repeats, so that threads share them out; results of the items of a row are merged by log-sum-exp.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.native.library import TYPES, library, why_not

ITEM_KEYS = 256
ITEM_ROWS = 96
LEAST_SHARED = 16  # a shorter common prefix is not worth an item of its own
_ITEM = np.dtype(
    [
        ("first_key", np.int64),
        ("keys", np.int32),
        ("position", np.int32),
        ("first_row", np.int32),
        ("rows", np.int32),
    ]
)


class _Call(ctypes.Structure):
    """As `Call` in attention.c."""

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
class Segment:
    """Keys `start … end-1`, taken from the pages of the first of `members`, for the rows of all of them."""

    members: tuple[int, ...]
    start: int
    end: int

    @property
    def leader(self) -> int:
        """Whose pages are read."""
        return self.members[0]


@dataclass(frozen=True, slots=True)
class NativePlan:
    """What every layer of a step is given. Arrays are those of `Call` in attention.c."""

    pages: NDArray[np.int64]
    items: NDArray[np.void]
    item_rows: NDArray[np.int32]
    positions: NDArray[np.int32]
    row_starts: NDArray[np.int32]
    row_partials: NDArray[np.int32]


def supports(query: torch.Tensor) -> bool:
    """Whether tensors of this kind can be given, and there is a compiled kernel."""
    return query.device.type == "cpu" and query.dtype in TYPES and why_not() is None


def plan_native(sequences: Sequence[SequenceRows], repeats: int, *, window: int = 0, share: bool = True) -> NativePlan:
    """Cut a step into items. `repeats` is query heads per key head; `window` 0 means that a row sees all before it.

    Without `share` the items of a sequence do not depend on the others, so that its result is bit for bit the same in
    any batch.
    """
    block = max(1, ITEM_ROWS // repeats)
    offsets = np.concatenate(([0], np.cumsum([each.pages.size for each in sequences])))
    items: list[tuple[int, int, int, int, int]] = []
    row_lists: list[NDArray[np.int32]] = []
    first_row = 0
    rows_of = [np.arange(each.first_row, each.first_row + each.rows, dtype=np.int32) for each in sequences]
    ends = [np.arange(each.length - each.rows, each.length, dtype=np.int32) for each in sequences]
    positions = np.concatenate([*ends, _EMPTY])
    by_row = np.empty_like(positions)
    by_row[np.concatenate([*rows_of, _EMPTY])] = positions
    segments = shared_segments(sequences) if share else alone(sequences)
    for segment in segments:
        rows = np.concatenate([rows_of[member] for member in segment.members])
        base = int(offsets[segment.leader])
        for at in range(0, rows.size, block):
            some = rows[at : at + block]
            seen = by_row[some]
            lowest = max(segment.start, int(seen.min()) - window + 1) if window else segment.start
            end = min(segment.end, int(seen.max()) + 1)
            # Items start at multiples of ITEM_KEYS from the segment's start, whatever the window.
            start = segment.start + (lowest - segment.start) // ITEM_KEYS * ITEM_KEYS
            for key in range(start, end, ITEM_KEYS):
                own = some if int(seen.min()) >= key else some[seen >= key]
                items.append((base + key, min(ITEM_KEYS, end - key), key, first_row, own.size))
                row_lists.append(own)
                first_row += own.size
    item_rows = np.concatenate(row_lists) if row_lists else _EMPTY
    counts = np.bincount(item_rows, minlength=by_row.size)
    return NativePlan(
        np.concatenate([each.pages for each in sequences] or [np.empty(0, np.int64)]),
        np.array(items, dtype=_ITEM),
        item_rows,
        by_row,
        np.concatenate(([0], np.cumsum(counts))).astype(np.int32),
        np.argsort(item_rows, kind="stable").astype(np.int32),
    )


def alone(sequences: Sequence[SequenceRows]) -> Iterator[Segment]:
    """One segment per sequence."""
    for index, sequence in enumerate(sequences):
        yield Segment((index,), 0, sequence.length)


def shared_segments(sequences: Sequence[SequenceRows]) -> Iterator[Segment]:
    """Cut sequences along the tree that their pages form; common parts of fewer than `LEAST_SHARED` keys stay apart."""
    # (members, keys before `start` are done, members agree on the keys before `same`)
    stack = [(tuple(range(len(sequences))), 0, 0)]
    while stack:
        members, start, same = stack.pop()
        children: dict[int, list[int]] = {}
        for member in members:
            pages = sequences[member].pages
            if pages.size > same:
                children.setdefault(int(pages[same]), []).append(member)
            elif start < pages.size:
                yield Segment((member,), start, pages.size)
        for group in children.values():
            first = sequences[group[0]]
            if len(group) == 1:
                yield Segment((group[0],), start, first.length)
                continue
            common = min(_agreement(first.pages, sequences[other].pages, same) for other in group[1:])
            if common - start >= LEAST_SHARED:
                yield Segment(tuple(group), start, common)
                stack.append((tuple(group), common, common))
            else:
                stack.append((tuple(group), start, common))


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
    _, heads, size = query.shape
    key_heads = key_cache.shape[1]
    native, threads = library(), torch.get_num_threads()
    most_rows = int(plan.items["rows"].max()) if plan.items.size else 0
    scratch_bytes = native.lmc_attention_scratch(most_rows, heads, key_heads, size)
    scratch = torch.empty(scratch_bytes * threads + 64, dtype=torch.uint8)
    partials = torch.empty(plan.item_rows.size * heads * (size + 2), dtype=torch.float32)
    call = _Call(
        query.data_ptr(),
        key_cache.data_ptr(),
        value_cache.data_ptr(),
        result.data_ptr(),
        *(array.ctypes.data for array in (plan.pages, plan.items, plan.item_rows, plan.positions)),
        *(array.ctypes.data for array in (plan.row_starts, plan.row_partials)),
        partials.data_ptr(),
        plan.items.size,
        plan.positions.size,
        heads,
        key_heads,
        size,
        TYPES[query.dtype],
        form.window,
        form.scaling,
        form.softcap,
        scratch.data_ptr() + (-scratch.data_ptr()) % 64,
        scratch_bytes,
    )
    native.lmc_attention(ctypes.byref(call), threads)
    return result


def _agreement(one: NDArray[np.int64], other: NDArray[np.int64], start: int) -> int:
    """The position up to which two page lists agree; they do up to `start`, and at `start`."""
    end = min(one.size, other.size)
    differs = one[start:end] != other[start:end]
    first = int(differs.argmax())
    return start + first if differs[first] else end


_EMPTY = np.empty(0, np.int32)
