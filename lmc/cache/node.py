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
    `extra_key` is, at a root, the name of its tree. `hits` counts how often it was found; the fields after it are the
    eviction's notes (see `NextUse`).
    """

    __slots__ = (
        "children",
        "episode",
        "extra_key",
        "hits",
        "is_root",
        "judged",
        "last_access",
        "offered",
        "pages",
        "parent",
        "pin_count",
        "tokens",
        "used_at",
        "used_by_others_at",
    )

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
        self.hits = 0
        self.episode: int | None = None
        self.used_at = 0
        self.used_by_others_at: int | None = None
        self.offered = 0
        self.judged: tuple[int, int | None, int] = (-1, None, 0)
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
        """True for a leaf of a tree that nothing pins."""
        return self.parent is not None and not self.children and self.pin_count == 0

    def begins_with(self, other: "RadixNode") -> bool:
        """Return True if the path from the root to here goes through `other`."""
        return any(node is other for node in path_to_root(self))

    def split(self, length: int) -> "RadixNode":
        """Cut the edge after `length` tokens; the new upper node is returned, this one keeps the rest.

        This is the lower part, so that pins held on it still mean the same prefix. Both parts are copies: a view would
        keep the whole edge in memory after one part is evicted.
        """
        parent = self.parent
        assert parent is not None
        upper = RadixNode(self.tokens[:length].copy(), self.pages[:length].copy(), parent, self.last_access)
        upper.pin_count = self.pin_count
        upper.copy_uses(self)
        self.tokens, self.pages = self.tokens[length:].copy(), self.pages[length:].copy()
        self.parent = upper
        upper.children[self.first_token] = self
        parent.children[upper.first_token] = upper
        return upper

    def copy_uses(self, other: "RadixNode") -> None:
        """Take over when and by whom another node was used."""
        self.hits = other.hits
        self.episode, self.used_at, self.used_by_others_at = other.episode, other.used_at, other.used_by_others_at

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
    left, right = left[:length], right[:length]
    if left.tobytes() == right.tobytes():  # faster than to compare numbers, and mostly so
        return length
    different = left != right
    first = int(different.argmax())
    return first if different[first] else length


def concatenated_pages(path: Sequence[RadixNode]) -> Pages:
    """The pages along a path."""
    return np.concatenate([node.pages for node in path]) if path else np.empty(0, np.int64)


def path_to_root(node: RadixNode) -> Iterator[RadixNode]:
    """The nodes from `node` up to, but without, the root."""
    while node.parent is not None:
        yield node
        node = node.parent


def whole_path(node: RadixNode) -> tuple[Tokens, Hashable]:
    """All tokens from the root to the end of `node`, and the name of its tree."""
    path = [node.tokens]
    while node.parent is not None:
        node = node.parent
        path.append(node.tokens)
    path.reverse()
    return np.concatenate(path), node.extra_key


def nodes_from(nodes: Iterable[RadixNode]) -> Iterator[RadixNode]:
    """These nodes and all below them, parents before children; one that was yielded may be detached at once."""
    pending = list(nodes)
    while pending:
        node = pending.pop()
        pending.extend(node.children.values())
        yield node
