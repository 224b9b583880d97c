"""Attention on the CPU in C: every key is read once for all query rows that share it.

Shapes and the meaning of a step are those of `paged_attention.py`. A plan cuts the keys of a step's sequences into
segments: a prefix that several sequences have in the same pages is one segment, read by the rows of all of them; what
a sequence has alone is another. Segments are cut further into items of at most `ITEM_ROWS` rows × repeats, and along
their keys as far as threads need it to share them out; results of the items of a row are merged by log-sum-exp.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels.forms import AttentionForm, SequenceRows
from lmc.runtime.kernels.native.library import TYPES, library, why_not

ITEM_KEYS = 256  # fewer keys are not worth an item
THREAD_ITEMS = 8  # and one for each key head: more of them help no thread, but each item adds results to keep
_COMPARED = 1024  # pages of each sequence that are compared at once
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

_Item = tuple[int, int, int, int, int]


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


class Segment(NamedTuple):
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
    """What every layer of a step is given. Arrays are those of `Attention` in attention_call.h.

    The layers of a step run one after the other, so they share the memory for partial results.
    """

    pages: NDArray[np.int64]
    items: NDArray[np.void]
    item_rows: NDArray[np.int32]
    positions: NDArray[np.int32]
    row_starts: NDArray[np.int32]
    row_partials: NDArray[np.int32]
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
        most_rows = int(self.items["rows"].max()) if self.items.size else 0
        scratch_bytes = library().lmc_attention_scratch(most_rows, heads, key_heads, size)
        scratch = torch.empty(scratch_bytes * threads + 64, dtype=torch.uint8)
        partials = torch.empty(self.item_rows.size * heads * (size + 2), dtype=torch.float32)
        call = _Call(
            pages=self.pages.ctypes.data,
            items=self.items.ctypes.data,
            item_rows=self.item_rows.ctypes.data,
            positions=self.positions.ctypes.data,
            row_starts=self.row_starts.ctypes.data,
            row_partials=self.row_partials.ctypes.data,
            partials=partials.data_ptr(),
            item_count=self.items.size,
            row_count=self.positions.size,
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
    """Whether tensors of this kind can be given, and there is a compiled kernel."""
    return query.device.type == "cpu" and query.dtype in TYPES and why_not() is None


def plan_native(sequences: Sequence[SequenceRows], repeats: int, *, window: int = 0, share: bool = True) -> NativePlan:
    """Cut a step into items. `repeats` is query heads per key head; `window` 0 means that a row sees all before it.

    Without `share` the items of a sequence do not depend on the others, so that its result is bit for bit the same in
    any batch.
    """
    block = max(1, ITEM_ROWS // repeats)
    counts = np.array([each.rows for each in sequences], np.int64)
    lengths = np.array([each.length for each in sequences], np.int64)
    firsts = np.array([each.first_row for each in sequences], np.int64)
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.empty(within.size, np.int32)
    positions[np.repeat(firsts, counts) + within] = np.repeat(lengths - counts, counts) + within
    bases = (np.cumsum(lengths) - lengths).tolist()
    row_numbers = np.arange(within.size, dtype=np.int32)
    parts: list[tuple[Segment, NDArray[np.int32], NDArray[np.int32], int]] = []
    all_work = 0
    for segment in shared_segments(sequences) if share else alone(sequences):
        leader = sequences[segment.leader]
        if len(segment.members) == 1:
            part = slice(leader.first_row, leader.first_row + leader.rows)
            rows, seen = row_numbers[part], positions[part]
        else:
            rows = _packed_rows(counts, firsts, segment.members)
            seen = positions[rows]
        work = -(-rows.size // block) * (segment.end - segment.start)
        all_work += work
        parts.append((segment, rows, seen, work))
    items: list[_Item] = []
    row_lists: list[NDArray[np.int32]] = []
    first_row = 0
    for segment, rows, seen, work in parts:
        base, most_keys = bases[segment.leader], _item_keys(all_work if share else work)
        for some, last in reversed(_blocks(rows, seen, block)):  # the longest first
            for item, own in _cut(segment, base, some, last, window=window, most_keys=most_keys):
                items.append((*item, first_row, own.size))
                row_lists.append(own)
                first_row += own.size
    item_rows = np.concatenate([*row_lists, _EMPTY])
    partials = np.bincount(item_rows, minlength=positions.size)
    return NativePlan(
        np.concatenate([*(each.pages for each in sequences), np.empty(0, np.int64)]),
        _structured(items),
        item_rows,
        positions,
        np.concatenate(([0], np.cumsum(partials))).astype(np.int32),
        np.argsort(item_rows, kind="stable").astype(np.int32),
    )


def _blocks(
    rows: NDArray[np.int32], seen: NDArray[np.int32], size: int
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    if rows.size <= size:
        return [(rows, seen)]
    return [(rows[at : at + size], seen[at : at + size]) for at in range(0, rows.size, size)]


def _item_keys(work: int) -> int:
    """Keys of an item where row blocks × keys are `work`: a multiple of `ITEM_KEYS` that leaves threads enough items.

    A step's items are so at most `THREAD_ITEMS` a thread and one for each row block of each segment, however long the
    context.
    """
    return max(1, -(-work // (THREAD_ITEMS * torch.get_num_threads() * ITEM_KEYS))) * ITEM_KEYS


def _packed_rows(counts: NDArray[np.int64], firsts: NDArray[np.int64], members: tuple[int, ...]) -> NDArray[np.int32]:
    """Packed row numbers of some sequences, given how many rows each has and the number of its first."""
    chosen = list(members)
    sizes = counts[chosen]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return (np.repeat(firsts[chosen], sizes) + within).astype(np.int32)


def _cut(
    segment: Segment, base: int, rows: NDArray[np.int32], seen: NDArray[np.int32], *, window: int, most_keys: int
) -> list[tuple[tuple[int, int, int], NDArray[np.int32]]]:
    """(First key, keys, position) of each item of some rows of a segment, with its rows.

    `seen` is the last position that each row sees, `base` where the leader's pages start in the plan's.
    """
    least, most = (seen.item(0),) * 2 if seen.size == 1 else (int(seen.min()), int(seen.max()))
    lowest = max(segment.start, least - window + 1) if window else segment.start
    end = min(segment.end, most + 1)
    # Items start at multiples of their length from the segment's start, whatever the window.
    start = segment.start + (lowest - segment.start) // most_keys * most_keys
    return [
        ((base + key, min(most_keys, end - key), key), rows if least >= key else rows[seen >= key])
        for key in range(start, end, most_keys)
    ]


def _structured(items: list[_Item]) -> NDArray[np.void]:
    """Items as the C code reads them; column by column, which numpy does several times faster than row by row."""
    result = np.empty(len(items), _ITEM)
    columns = np.array(items, np.int64).reshape(-1, len(_ITEM.names or ()))
    for index, name in enumerate(_ITEM.names or ()):
        result[name] = columns[:, index]
    return result


def alone(sequences: Sequence[SequenceRows]) -> Iterator[Segment]:
    """One segment per sequence."""
    for index, sequence in enumerate(sequences):
        yield Segment((index,), 0, sequence.length)


def shared_segments(sequences: Sequence[SequenceRows]) -> Iterator[Segment]:
    """Cut sequences along the tree that their pages form; common parts of fewer than `LEAST_SHARED` keys stay apart."""
    pages = [each.pages for each in sequences]
    sizes = [each.size for each in pages]
    # (members, keys before `start` are done, members agree on the keys before `same`)
    stack = [(tuple(range(len(sequences))), 0, 0)]
    while stack:
        members, start, same = stack.pop()
        children: dict[int, list[int]] = {}
        for member in members:
            if sizes[member] > same:
                children.setdefault(pages[member].item(same), []).append(member)
            elif start < sizes[member]:
                yield Segment((member,), start, sizes[member])
        for group in children.values():
            if len(group) == 1:
                yield Segment((group[0],), start, sizes[group[0]])
                continue
            common = _agreement([pages[member] for member in group], same, min(sizes[member] for member in group))
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
    threads = torch.get_num_threads()
    call = plan.call(query.shape[1], key_cache.shape[1], query.shape[2], threads=threads, dtype=query.dtype, form=form)
    call.query, call.result = query.data_ptr(), result.data_ptr()
    call.keys, call.values = key_cache.data_ptr(), value_cache.data_ptr()
    library().lmc_attention(ctypes.byref(call), threads)
    return result


def _agreement(pages: Sequence[NDArray[np.int64]], start: int, end: int) -> int:
    """The position up to which page lists agree; they do up to `start`, and at `start`, and all reach `end`."""
    first = pages[0]
    for at in range(start, end, _COMPARED):
        until = min(at + _COMPARED, end)
        differs = (np.stack([each[at:until] for each in pages]) != first[at:until]).any(axis=0)
        where = int(differs.argmax())
        if differs[where]:
            return at + where
    return end


_EMPTY = np.empty(0, np.int32)
