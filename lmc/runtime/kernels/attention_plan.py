"""The plan of the attention kernel in C: it reads every key once for all query rows that share it.

A plan cuts the keys of a step's sequences into segments: a prefix that several sequences have in the same pages is one
segment, read by the rows of all of them; the rest of a sequence is another. Segments are cut further into items of at
most `ITEM_ROWS` rows × repeats, and along their keys to occupy all threads; results of the items of a row are merged by
log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from lmc.runtime.kernels.forms import SequenceRows

ITEM_KEYS = 256  # fewer keys are not worth an item
THREAD_ITEMS = 8  # and one for each key head: more of them help no thread, but each item adds results to keep
_COMPARED = 1024  # pages of each sequence that are compared at once
ITEM_ROWS = 96
_MANY = 8  # so many sequences that decode are worked on together, fewer one by one
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


class Segment(NamedTuple):
    """Keys `start … end-1`, taken from the pages of the first of `members`, for the rows of all of them."""

    members: tuple[int, ...]
    start: int
    end: int

    @property
    def leader(self) -> int:
        """Whose pages are read."""
        return self.members[0]


class PlannedItems(NamedTuple):
    """Arrays of `Attention` in attention_call.h."""

    pages: NDArray[np.int64]
    items: NDArray[np.void]
    item_rows: NDArray[np.int32]
    positions: NDArray[np.int32]
    row_starts: NDArray[np.int32]
    row_partials: NDArray[np.int32]


def plan_items(sequences: Sequence[SequenceRows], repeats: int, *, window: int, share: bool) -> PlannedItems:
    """Cut a step into items; see `native_attention.plan_native`."""
    numbers = [(each.rows, each.length, each.first_row) for each in sequences]
    counts, lengths, firsts = np.array(numbers, np.int64).reshape(-1, 3).T
    within, packed = _numbered(counts)
    positions = np.empty(within.size, np.int32)
    positions[firsts[packed] + within] = (lengths - counts)[packed] + within
    bases = lengths.cumsum() - lengths
    segments, starts = shared_segments(sequences) if share else ([], [0] * len(numbers))
    alone = [index for index, start in enumerate(starts) if start < numbers[index][1]]
    single = [index for index in alone if numbers[index][0] == 1]  # a row of a sequence that decodes
    if len(single) < _MANY:
        single = []
    others = alone if not single else [index for index in alone if numbers[index][0] > 1]
    segments += [Segment((index,), starts[index], numbers[index][1]) for index in others]
    block = max(1, ITEM_ROWS // repeats)
    rows_of = [_packed_rows(counts, firsts, segment.members) for segment in segments]
    blocks = zip(segments, (-(-rows.size // block) for rows in rows_of), strict=True)
    work = [count * (segment.end - segment.start) for segment, count in blocks]
    work += [numbers[index][1] - starts[index] for index in single]
    most_keys = [_item_keys(sum(work))] * len(work) if share else [*map(_item_keys, work)]
    items: list[_Item] = []
    row_lists: list[NDArray[np.int32]] = []
    first_row = 0
    for segment, rows, most in zip(segments, rows_of, most_keys[: len(segments)], strict=True):
        for some, seen in reversed(_blocks(rows, positions[rows], block)):  # the longest first
            for cut, own in _cut(segment, int(bases[segment.leader]), some, seen, window=window, most_keys=most):
                items.append((*cut, first_row, own.size))
                row_lists.append(own)
                first_row += own.size
    columns = np.array(items, np.int64).reshape(-1, len(_ITEM.names or ())).T
    if single:
        cuts = np.array([(starts[index], numbers[index][1]) for index in single], np.int64).T
        added, item_of = _single_items(
            bases[single], *cuts, window=window, most_keys=np.array(most_keys[len(segments) :])
        )
        added[3] = np.arange(first_row, first_row + item_of.size)
        columns = np.concatenate((columns, added), axis=1)
        row_lists.append(firsts[single][item_of].astype(np.int32))
    item_rows = np.concatenate([*row_lists, np.empty(0, np.int32)])
    partials = np.bincount(item_rows, minlength=positions.size)
    return PlannedItems(
        np.concatenate([*(each.pages for each in sequences), np.empty(0, np.int64)]),
        _structured(columns),
        item_rows,
        positions,
        np.concatenate(([0], np.cumsum(partials))).astype(np.int32),
        np.argsort(item_rows, kind="stable").astype(np.int32),
    )


def _single_items(
    bases: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    *,
    window: int,
    most_keys: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items of segments that a single row sees to their end, all at once: their columns [5, items], and whose they are.

    The column of the first row is left to the caller.
    """
    if window:
        starts = starts + np.maximum(0, ends - window - starts) // most_keys * most_keys
    within, item_of = _numbered(-(-(ends - starts) // most_keys))
    most = most_keys[item_of]
    position = starts[item_of] + within * most
    keys = np.minimum(most, ends[item_of] - position)
    return np.stack((bases[item_of] + position, keys, position, position, np.ones_like(keys))), item_of


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
    if len(members) == 1:
        first = firsts[members[0]]
        return np.arange(first, first + counts[members[0]], dtype=np.int32)
    chosen = np.array(members)
    within, packed = _numbered(counts[chosen])
    return (firsts[chosen][packed] + within).astype(np.int32)


def _numbered(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of things in groups of some sizes, one group after the other: the number of each in its group, and its group."""
    group = np.arange(sizes.size).repeat(sizes)
    return np.arange(group.size) - (sizes.cumsum() - sizes)[group], group


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


def _structured(columns: NDArray[np.int64]) -> NDArray[np.void]:
    """Items as the C code reads them; column by column, which numpy does several times faster than row by row."""
    result = np.empty(columns.shape[1], _ITEM)
    for name, column in zip(_ITEM.names or (), columns, strict=True):
        result[name] = column
    return result


def shared_segments(sequences: Sequence[SequenceRows]) -> tuple[list[Segment], list[int]]:
    """Cut sequences along the tree that their pages form; common parts of fewer than `LEAST_SHARED` keys stay apart.

    Returns:
        The segments of several sequences, and where what each sequence has alone begins.
    """
    pages = [each.pages for each in sequences]
    sizes = [each.size for each in pages]
    shared: list[Segment] = []
    alone = [0] * len(pages)
    # (members, keys before `start` are done, members agree on the keys before `same`)
    stack = [(tuple(range(len(sequences))), 0, 0)]
    while stack:
        members, start, same = stack.pop()
        children: dict[int, list[int]] = {}
        for member in members:
            if sizes[member] > same:
                children.setdefault(pages[member].item(same), []).append(member)
            else:
                alone[member] = start
        for group in children.values():
            if len(group) == 1:
                alone[group[0]] = start
                continue
            common = _agreement([pages[member] for member in group], same, min(sizes[member] for member in group))
            if common - start >= LEAST_SHARED:
                shared.append(Segment(tuple(group), start, common))
                stack.append((tuple(group), common, common))
            else:
                stack.append((tuple(group), start, common))
    return shared, alone


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
