"""One node of the radix tree: an edge's tokens with their pages."""

import numpy as np
from numpy.typing import NDArray

from lmc.cache.pool import Pages


class RadixNode:
    """An edge of the tree together with the point where it ends.

    `tokens` and `pages` have the same length; only a root has none. `pin_count` is the number of pins at or below.
    """

    __slots__ = ("children", "is_root", "last_access", "pages", "parent", "pin_count", "tokens")

    def __init__(
        self,
        tokens: NDArray[np.int32],
        pages: Pages,
        parent: "RadixNode | None",
        last_access: int,
        *,
        is_root: bool = False,
    ) -> None:
        self.tokens = tokens
        self.pages = pages
        self.parent = parent
        self.children: dict[int, RadixNode] = {}
        self.pin_count = 0
        self.last_access = last_access
        self.is_root = is_root

    @classmethod
    def root(cls) -> "RadixNode":
        """A node without tokens, the start of a tree."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int64), None, 0, is_root=True)

    @property
    def length(self) -> int:
        """Tokens on the edge into this node."""
        return int(self.tokens.size)

    @property
    def first_token(self) -> int:
        """The token under which the parent finds this node."""
        return int(self.tokens[0])

    @property
    def evictable(self) -> bool:
        """Whether this is a leaf that nothing pins (and that is still in a tree)."""
        return self.parent is not None and not self.children and self.pin_count == 0

    def detach(self) -> None:
        """Forget the tree, so that a stale reference to an evicted node is recognised as such."""
        self.parent = None
        self.tokens, self.pages = np.empty(0, np.int32), np.empty(0, np.int64)
