"""Ranges of numbers in arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def ranges(starts: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.intp]:
    """The numbers ``start`` to ``start + count`` of each pair, one after the other."""
    total = int(counts.sum())
    return np.repeat(starts - (np.cumsum(counts) - counts), counts).astype(np.intp) + np.arange(total)
