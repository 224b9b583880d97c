"""The masks that states hand out: equal ones are one array, all together within a bound of memory."""

from __future__ import annotations

import weakref
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
MAX_MASK_BYTES = 1 << 27


class Holder(Protocol):
    """Hands out its mask while it has one."""

    words: Words | None


class Masks:
    """Masks by content. The caller holds a lock around every method.

    Where they take more than ``limit`` bytes, those kept longest are taken from their holders; a holder that asks again
    gets the same array as long as anything else still has it.
    """

    def __init__(self, limit: int = MAX_MASK_BYTES) -> None:
        self.nbytes = 0
        self._limit = limit
        self._kept: dict[int, list[Holder]] = {}
        self._arrays: weakref.WeakValueDictionary[int, Words] = weakref.WeakValueDictionary()

    def give(self, words: Words, holder: Holder) -> Words:
        """The read-only array equal to ``words``, which the holder now has."""
        key = hash(words.tobytes())
        while (shared := self._arrays.get(key)) is not None and not np.array_equal(shared, words):
            key += 1
        if shared is None:
            shared = words
            shared.flags.writeable = False
            self._arrays[key] = shared
        if key not in self._kept:
            self._kept[key] = []
            self.nbytes += shared.nbytes
        self._kept[key].append(holder)
        holder.words = shared
        while self.nbytes > self._limit and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            for each in self._kept.pop(oldest):
                each.words = None
            self.nbytes -= shared.nbytes
        return shared
