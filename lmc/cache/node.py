"""One node of the radix tree: an edge's tokens with their pages."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmc.cache.pool import Pages

Tokens = NDArray[np.int32]


class RadixNode:
    """An edge of the tree together with the point where it ends.

    `tokens` and `pages` have the same length; only a root has none. `pin_count` is the number of pins at or below.
    `extra_key` is, at a root, the name of its tree.
    """

    __slots__ = ("children", "extra_key", "is_root", "last_access", "pages", "parent", "pin_count", "tokens")

    def __init__(
        self,
        tokens: Tokens,
        pages: Pages,
        parent: "RadixNode | None",
        last_access: int,
        *,
        is_root: bool = False,
        extra_key: Hashable = None,
    ) -> None:
        self.tokens = tokens
        self.pages = pages
        self.parent = parent
        self.children: dict[int, RadixNode] = {}
        self.pin_count = 0
        self.last_access = last_access
        self.is_root = is_root
        self.extra_key = extra_key

    @classmethod
    def root(cls, extra_key: Hashable) -> "RadixNode":
        """A node without tokens, the start of a tree."""
        return cls(np.empty(0, np.int32), np.empty(0, np.int64), None, 0, is_root=True, extra_key=extra_key)

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

    def begins_with(self, other: "RadixNode") -> bool:
        """Whether the way from the root to here goes through `other`."""
        return any(node is other for node in path_to_root(self))

    def detach(self) -> None:
        """Forget the tree, so that a stale reference to an evicted node is recognised as such."""
        self.parent = None
        self.children = {}
        self.tokens, self.pages = np.empty(0, np.int32), np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class PrefixMatch:
    """The longest cached prefix of a sequence.

    `node` is where it ends and is what to pin; unpinned, it is valid only until the next call that changes the tree.
    """

    pages: Pages
    node: RadixNode

    @property
    def length(self) -> int:
        """Length of the match in tokens."""
        return int(self.pages.size)


def as_tokens(tokens: Sequence[int] | Tokens) -> Tokens:
    """Token ids as the array the tree compares (no copy if they already are one)."""
    return np.asarray(tokens, dtype=np.int32)


def common_prefix_length(left: Tokens, right: Tokens) -> int:
    """Number of leading tokens that two sequences share."""
    length = min(left.size, right.size)
    different = left[:length] != right[:length]
    first = int(different.argmax()) if length else 0
    return first if length and different[first] else length


def concatenated_pages(path: Sequence[RadixNode]) -> Pages:
    """The pages along a path."""
    return np.concatenate([node.pages for node in path]) if path else np.empty(0, np.int64)


def path_to_root(node: RadixNode) -> Iterator[RadixNode]:
    """The nodes from `node` up to, but without, the root."""
    while node.parent is not None:
        yield node
        node = node.parent


def nodes_from(nodes: Iterable[RadixNode]) -> Iterator[RadixNode]:
    """These nodes and all below them, parents before children; one that was yielded may be detached at once."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        pending.extend(node.children.values())
        yield node
