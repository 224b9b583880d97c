"""Transition tables of an automaton over classes of tokens; equal parts are stored once."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.index.trie import Ints
from lmc.grammar.native.library import library
from lmc.ir.errors import ConstraintError

NEVER = 0  # the class of tokens that no state allows
END = 1  # the class of EOS tokens, allowed where the output may end
COLUMN = 32  # classes that are kept together, as in native/table.c
MAX_WORK = 1 << 28  # entries of the rows of all states
MAX_ENTRIES = 1 << 24  # of what differs in them


class TransitionTable(NamedTuple):
    """The parts of a ``TokenIndex``; ``class_of_token`` [V] is ``NEVER`` for EOS tokens."""

    class_of_token: Ints
    row_of_state: Ints
    shape_of_row: Ints
    target_starts: NDArray[np.int64]
    deltas: Ints
    mask_of_shape: Ints
    block_starts: NDArray[np.int64]
    blocks: Ints
    column_of_block: Ints
    bits_of_block: NDArray[np.uint32]
    places: Ints


def native_table(
    functions: int, class_of_token: Ints, function_of_class: Ints, accepting: NDArray[np.bool_]
) -> TransitionTable:
    """The table of functions of tokens, as native/functions.c keeps them.

    ``function_of_class`` is -1 where no function belongs to a class. Raises ``ConstraintError``.
    """
    native = library()
    assert native is not None
    accepts, status = accepting.astype(np.uint8), np.zeros(1, np.int32)
    table: int | None = native.lmc_table(
        *(functions, function_of_class.ctypes.data, len(function_of_class), END, accepts.ctypes.data),
        *(MAX_WORK, MAX_ENTRIES, status.ctypes.data),
    )
    check(status)
    try:
        sizes = np.empty(6, np.int64)
        native.lmc_table_sizes(table, sizes.ctypes.data)
        rows, targets, shapes, parts, blocks, places = sizes.tolist()
        made = TransitionTable(
            class_of_token,
            row_of_state=np.empty(len(accepting), np.int32),
            shape_of_row=np.empty(rows, np.int32),
            target_starts=np.empty(rows + 1, np.int64),
            deltas=np.empty(targets, np.int32),
            mask_of_shape=np.empty(shapes, np.int32),
            block_starts=np.empty(shapes + 1, np.int64),
            blocks=np.empty(parts, np.int32),
            column_of_block=np.empty(blocks, np.int32),
            bits_of_block=np.empty(blocks, np.uint32),
            places=np.empty(places, np.int32),
        )
        pointers = (ctypes.c_void_p * (len(made) - 1))(*(array.ctypes.data for array in made[1:]))
        native.lmc_table_copy(table, len(accepting), ctypes.byref(pointers))
    finally:
        native.lmc_table_free(table)
    return made


class _Numbers:
    """Sequences of numbers, equal ones with one number of their own, as in native/intern.c."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], int] = {}
        self.entries = 0

    def of(self, sequence: tuple[int, ...]) -> int:
        number = self.known.setdefault(sequence, len(self.known))
        if number == len(self.known) - 1:
            self.entries += len(sequence)
        return number

    def starting(self, at: int) -> tuple[NDArray[np.int64], Ints]:
        """Return the sequences from ``at`` on, one behind the other: bounds and numbers."""
        starts = np.zeros(len(self.known) + 1, np.int64)
        np.cumsum([len(each) - at for each in self.known], out=starts[1:])
        return starts, np.fromiter((number for each in self.known for number in each[at:]), np.int32, int(starts[-1]))

    def at(self, at: int) -> NDArray[np.int64]:
        """The number at one place of each sequence."""
        return np.fromiter((each[at] for each in self.known), np.int64, len(self.known))


def tabulated(class_of_token: Ints, classes: Ints, deltas: Ints, starts: NDArray[np.int64]) -> TransitionTable:
    """The table of states whose classes and deltas lie one state's behind the other's, as native/table.c makes it."""
    blocks, shapes, masks, rows = (_Numbers() for _ in range(4))
    mask_of_shape: list[int] = []
    row_of_state: list[int] = []
    for low, high in pairwise(starts.tolist()):
        targets, places = np.unique(deltas[low:high], return_inverse=True)
        held: dict[int, list[int]] = {}
        for number, place in zip(classes[low:high].tolist(), places.tolist(), strict=True):
            block = held.setdefault(number // COLUMN, [number // COLUMN, 0])
            block[1] |= 1 << number % COLUMN
            block.append(place)
        shape = shapes.of(tuple(blocks.of(tuple(block)) for block in held.values()))
        if shape == len(mask_of_shape):
            mask_of_shape.append(masks.of(tuple(number for block in held.values() for number in block[:2])))
        row_of_state.append(rows.of((shape, *targets.tolist())))
        if high > MAX_WORK or rows.entries + shapes.entries + blocks.entries > MAX_ENTRIES:
            raise too_large()
    target_starts, deltas = rows.starting(1)
    block_starts, of_shapes = shapes.starting(0)
    return TransitionTable(
        class_of_token,
        row_of_state=np.array(row_of_state, np.int32),
        shape_of_row=rows.at(0).astype(np.int32),
        target_starts=target_starts,
        deltas=deltas,
        mask_of_shape=np.array(mask_of_shape, np.int32),
        block_starts=block_starts,
        blocks=of_shapes,
        column_of_block=blocks.at(0).astype(np.int32),
        bits_of_block=blocks.at(1).astype(np.uint32),
        places=blocks.starting(2)[1],
    )


def check(status: Ints) -> None:
    """Raise what the status of a native function says."""
    if status[0] == 1:
        raise too_large()
    if status[0]:
        raise MemoryError


def too_large() -> ConstraintError:
    """Return the error for a constraint whose token index would not fit."""
    return ConstraintError(
        "the token index of the constraint would be too large",
        remedy="use it without building the index, or give smaller bounds, ASCII classes, or fewer alternatives",
    )
