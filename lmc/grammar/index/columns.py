"""A complete automaton by classes of bytes, its states renumbered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.index.trie import Ints
from lmc.grammar.native.library import library


class Columns(NamedTuple):
    """A complete automaton by classes of bytes that lead to the same state from every state.

    ``classes`` [256] is the class of each byte, by their lowest byte, -1 for bytes that lead nowhere. ``order`` [S] are
    the automaton's numbers of the states that can be reached, breadth first by ascending bytes, which is how they are
    numbered from here on. ``values`` [classes, S] is the state after a byte of the class, or -1.
    """

    classes: NDArray[np.int16]
    order: Ints
    values: Ints


def byte_columns(rows: Ints) -> Columns:
    """The columns of ``rows`` [S, 256], of which none is unknown."""
    native = library()
    if native is None:
        return _in_numpy(rows)
    rows = np.ascontiguousarray(rows)
    classes = np.empty(256, np.int16)
    count: int = native.lmc_byte_classes(rows.ctypes.data, len(rows), classes.ctypes.data)
    lowest = _lowest_bytes(classes, count)
    order, numbers = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    made: int = native.lmc_number_states(
        *(rows.ctypes.data, lowest.ctypes.data, count, len(rows), order.ctypes.data, numbers.ctypes.data)
    )
    values = np.empty((count, made), np.int32)
    native.lmc_columns(
        *(rows.ctypes.data, lowest.ctypes.data, count, order.ctypes.data, made),
        *(numbers.ctypes.data, values.ctypes.data),
    )
    return Columns(classes, order[:made], values)


def forced_bytes(columns: Columns, accepting: NDArray[np.bool_]) -> tuple[NDArray[np.int16], Ints]:
    """The only byte that may follow each state where the output may not end, or -1, and how far on that leads."""
    live = columns.values >= 0
    sizes = np.bincount(columns.classes[columns.classes >= 0], minlength=len(live))
    forced = (sizes @ live == 1) & ~accepting
    byte, delta = np.full(len(accepting), -1, np.int16), np.zeros(len(accepting), np.int32)
    if forced.any():
        (states,) = np.nonzero(forced)
        only = live[:, states].argmax(axis=0)
        byte[states] = _lowest_bytes(columns.classes, len(live))[only]
        delta[states] = columns.values[only, states] - states
    return byte, delta


def _lowest_bytes(classes: NDArray[np.int16], count: int) -> NDArray[np.uint8]:
    lowest = np.zeros(count, np.uint8)
    (live,) = np.nonzero(classes >= 0)
    lowest[classes[live[::-1]]] = live[::-1]
    return lowest


def _in_numpy(rows: Ints) -> Columns:
    known: dict[bytes, int] = {}
    classes = np.full(256, -1, np.int16)
    for byte in np.flatnonzero((rows >= 0).any(axis=0)).tolist():
        classes[byte] = known.setdefault(rows[:, byte].tobytes(), len(known))
    narrow = rows[:, _lowest_bytes(classes, len(known))]
    numbers = np.full(len(rows), -1, np.int32)
    numbers[0] = 0
    level = np.zeros(1, np.intp)
    levels = [level]
    made = 1
    while level.size:
        reached = narrow[level].ravel()
        reached = reached[reached >= 0]
        reached = reached[numbers[reached] < 0]
        level = reached[np.sort(np.unique(reached, return_index=True)[1])].astype(np.intp)
        numbers[level] = made + np.arange(len(level))
        made += len(level)
        levels.append(level)
    order = np.concatenate(levels)
    values = narrow[order].T
    return Columns(classes, order.astype(np.int32), np.where(values < 0, np.int32(-1), numbers[values]))
