"""Bounds checks of the arrays of a token index from any source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.tables import END, NEVER
from lmc.grammar.native.library import library

Numbers = NDArray[np.integer]


def check_index(index: TokenIndex, eos_ids: tuple[int, ...]) -> None:
    """Raise ``ValueError`` unless every number in the arrays is one that may stand there.

    What has passed can be asked anything.
    """
    shapes = [array.ndim == 1 and array.dtype.kind in "iu" for array in index.arrays().values()]
    _require(all(shapes) and index.bits_of_block.dtype == np.uint32, "arrays of integers")
    _require(len(index.row_of_state) > 0, "no state")
    for starts, of in ((index.target_starts, index.deltas), (index.block_starts, index.blocks)):
        _require(len(starts) > 0 and starts[0] == 0 and starts[-1] == len(of), "bounds")
        _require(bool((starts[1:] >= starts[:-1]).all()), "bounds that fall")
    _require(_all_below(index.row_of_state, index.row_count), "a row that is not there")
    _require(_all_below(index.shape_of_row, len(index.mask_of_shape)), "a shape that is not there")
    _require(_all_below(index.blocks, len(index.bits_of_block)), "a block that is not there")
    _require(len(index.target_starts) == index.row_count + 1, "rows")
    _require(len(index.block_starts) == len(index.mask_of_shape) + 1, "shapes")
    _require(_all_below(index.mask_of_shape, len(index.mask_of_shape)), "a mask that is not there")
    _require(bool(np.bincount(index.mask_of_shape).all()), "a mask that no shape has")
    _check_classes(index, eos_ids)
    _check_shapes(index)
    _check_targets(index)


def _check_classes(index: TokenIndex, eos_ids: tuple[int, ...]) -> None:
    limit = len(index.class_of_token) + 2
    _require(len(index.column_of_block) == len(index.bits_of_block), "columns")
    _require(bool(index.bits_of_block.all()), "a block without classes")
    _require(_all_below(index.column_of_block, limit), "a class that is not there")
    _require(index.highest_class < limit, "a class that is not there")
    first = index.bits_of_block[index.column_of_block == 0]
    _require(not (first & 1 << NEVER).any(), "tokens that are never allowed")
    _require(_all_below(index.class_of_token, limit), "a class that is not there")
    _require(np.array_equal(np.flatnonzero(index.class_of_token == END), eos_ids), "other EOS tokens")


def _check_shapes(index: TokenIndex) -> None:
    _require(int(index.place_starts[-1]) == len(index.places), "places")
    _require(int(index.places.min(initial=0)) >= 0, "a place that is not there")
    # Of each shape how many targets all rows have that have it.
    limits = np.full(len(index.mask_of_shape), 1 + len(index.deltas), np.int64)
    np.minimum.at(limits, index.shape_of_row, np.diff(index.target_starts.astype(np.int64)))
    native = library()
    if native is None:
        highest = np.maximum.reduceat(index.places, index.place_starts[:-1]) if len(index.places) else index.places
        counts = np.diff(index.block_starts.astype(np.int64))
        ascend = _ascend(index.column_of_block[index.blocks], index.block_starts)
        within = bool((highest[index.blocks] < np.repeat(limits, counts)).all())
    else:
        arrays = (
            *(index.places.astype(np.uint32), index.place_starts, index.column_of_block.astype(np.uint32)),
            *(index.blocks.astype(np.uint32), index.block_starts.astype(np.int64), limits),
            np.empty(len(index.bits_of_block), np.uint32),
        )
        found: int = native.lmc_shapes_hold(
            *(array.ctypes.data for array in arrays), len(index.bits_of_block), len(limits)
        )
        ascend, within = bool(found & 1), bool(found & 2)
    _require(ascend, "blocks that are not ascending")
    _require(within, "a place that is not there")


def _check_targets(index: TokenIndex) -> None:
    count = len(index)
    states = np.arange(count, dtype=np.int64)
    _require(_ascend(index.deltas, index.target_starts), "targets that are not ascending")
    lowest, highest = (np.zeros(index.row_count, np.int64) for _ in range(2))
    (filled,) = np.nonzero(index.target_starts[1:] > index.target_starts[:-1])
    lowest[filled] = index.deltas[index.target_starts[filled].astype(np.intp)]
    highest[filled] = index.deltas[index.target_starts[filled + 1].astype(np.intp) - 1]
    _require(bool((states + lowest[index.row_of_state] >= 0).all()), "a state below 0")
    _require(bool((states + highest[index.row_of_state] < count).all()), "a state that is not there")
    _require(len(index.forced_byte) == len(index.forced_delta) == count, "forced bytes")
    _require(_all_below(index.forced_byte.astype(np.int64) + 1, 257), "a byte that is none")
    _require(_all_below(states + index.forced_delta, count), "a state that is not there")


def _all_below(array: Numbers, bound: int) -> bool:
    return not array.size or (int(array.min()) >= 0 and int(array.max()) < bound)


def _ascend(values: Numbers, starts: Numbers) -> bool:
    """Return True if numbers ascend from each start to the next."""
    falls = values[1:] <= values[:-1]
    falls[starts[(starts > 0) & (starts < len(values))].astype(np.intp) - 1] = False
    return not falls.any()


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"not a token index: {what}")
