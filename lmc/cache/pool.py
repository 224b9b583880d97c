"""Accounting of a fixed pool of key/value pages: which are free, which are in use."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Pages = NDArray[np.int64]


class PoolExhaustedError(RuntimeError):
    """More pages were asked for than are free; nothing was allocated."""


class InvariantError(AssertionError):
    """The accounting contradicts itself: always a bug of the code that uses or implements the cache."""


class PagePool:
    """A fixed set of pages `0 … num_pages-1`, each holding the keys and values of one token.

    Every page is free or allocated. Who holds an allocated page (a running request or the radix tree) is the
    holder's own knowledge; `RadixCache.check_invariants` combines both and finds pages held twice or leaked.
    """

    def __init__(self, num_pages: int) -> None:
        if num_pages < 1:
            raise ValueError(f"a pool needs at least one page, got num_pages={num_pages}")
        self._num_pages = num_pages
        self._free_stack: Pages = np.arange(num_pages - 1, -1, -1, dtype=np.int64)
        self._free_count = num_pages
        self._is_free = np.ones(num_pages, dtype=np.bool_)

    @property
    def num_pages(self) -> int:
        """Size of the pool in pages (tokens)."""
        return self._num_pages

    @property
    def free_count(self) -> int:
        """Pages that `allocate` can hand out now."""
        return self._free_count

    @property
    def used_count(self) -> int:
        """Pages that are allocated."""
        return self._num_pages - self._free_count

    def allocate(self, count: int) -> Pages:
        """Take `count` pages out of the pool.

        Raises:
            PoolExhaustedError: fewer than `count` pages are free; the pool is unchanged.
        """
        if count < 0:
            raise ValueError(f"cannot allocate {count} pages")
        if count > self._free_count:
            raise PoolExhaustedError(f"{count} pages asked for, {self._free_count} of {self._num_pages} are free")
        self._free_count -= count
        pages = self._free_stack[self._free_count : self._free_count + count][::-1].copy()
        self._is_free[pages] = False
        return pages

    def free(self, pages: Pages | Sequence[int]) -> None:
        """Give allocated pages back.

        Raises:
            InvariantError: a page is named twice, is free already, or is no page of this pool; nothing was freed.
        """
        returned = np.asarray(pages, dtype=np.int64)
        if returned.size == 0:
            return
        ascending = np.sort(returned)
        if ascending[0] < 0 or ascending[-1] >= self._num_pages:
            raise InvariantError(f"freeing a page outside 0…{self._num_pages - 1}")
        if self._is_free[returned].any():
            raise InvariantError(f"double free of pages {returned[self._is_free[returned]][:8].tolist()}")
        if (ascending[1:] == ascending[:-1]).any():
            raise InvariantError("one call frees the same page twice")
        self._is_free[returned] = True
        self._free_stack[self._free_count : self._free_count + returned.size] = returned[::-1]
        self._free_count += returned.size

    def is_allocated(self, pages: Pages) -> bool:
        """Return True if every one of `pages` is in use."""
        return not self._is_free[pages].any()

    def check_invariants(self) -> None:
        """Check that the free stack and the per-page state tell the same story.

        Raises:
            InvariantError: they do not.
        """
        stack = self._free_stack[: self._free_count]
        if np.unique(stack).size != stack.size:
            raise InvariantError("a page is twice on the free stack")
        if not self._is_free[stack].all():
            raise InvariantError("a page on the free stack is marked as allocated")
        if int(self._is_free.sum()) != self._free_count:
            raise InvariantError("pages marked free are missing from the free stack")
