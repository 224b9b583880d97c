"""Radix tree over token sequences: finds, shares and evicts cached prefixes.

The structure is RadixAttention's (SGLang, arXiv 2312.07104, section 3): edges are labelled with token sequences, every
token of an edge has one page of keys and values. Pages inside the tree belong to the tree; a request that reads them
holds a pin on the node where its prefix ends. The unit of eviction is one token, from the tail of the leaf that the
`Eviction` names, so a cut leaf keeps the part that a later request is more likely to share.
"""

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lmc.cache.eviction import Eviction, LeastRecentlyUsed
from lmc.cache.invariants import check_counts, check_ownership, check_tree
from lmc.cache.node import (
    PrefixMatch,
    RadixNode,
    Tokens,
    as_tokens,
    common_prefix_length,
    concatenated_pages,
    nodes_from,
    path_to_root,
    whole_path,
)
from lmc.cache.pool import InvariantError, PagePool, Pages


@dataclass(frozen=True, slots=True, eq=False)
class _KnownPath:
    """Nodes from a root on, with their tokens: node ``i`` ends at token ``ends[i]``.

    Valid while ``shape`` is the tree's.
    """

    root: RadixNode
    nodes: list[RadixNode]
    ends: list[int]
    tokens: Tokens
    shape: int


class RadixCache:
    """Cached prefixes over one `PagePool`, evicted by `eviction` (None: least recently used). Not thread-safe."""

    def __init__(self, pool: PagePool, eviction: Eviction | None = None) -> None:
        self.pool = pool
        self.eviction = LeastRecentlyUsed() if eviction is None else eviction
        self._roots: dict[Hashable, RadixNode] = {}
        self._clock = 0
        self._total_tokens = 0
        self._pinned_tokens = 0
        self._evicted_tokens = 0
        self._newly_pinned_tokens = 0
        self._node_count = 0
        self._shape = 0  # counts the nodes that were split, cut or removed
        self._known: _KnownPath | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens (= pages) in the tree."""
        return self._total_tokens

    @property
    def evictable_tokens(self) -> int:
        """Tokens that `evict` could free now: those on no path to a pinned node."""
        return self._total_tokens - self._pinned_tokens

    @property
    def pinned_tokens(self) -> int:
        """Tokens on a path to a pinned node."""
        return self._pinned_tokens

    @property
    def newly_pinned_tokens(self) -> int:
        """Tokens that got their first pin, summed since the cache was made. No prefix gains a pin without a change."""
        return self._newly_pinned_tokens

    @property
    def evicted_tokens(self) -> int:
        """Tokens evicted since the cache was made."""
        return self._evicted_tokens

    def match_prefix(
        self, tokens: Sequence[int] | Tokens, extra_key: Hashable = None, *, run: Hashable = None
    ) -> PrefixMatch:
        """Find the longest cached prefix of `tokens` and mark it as used now, by a run of a plan (None: by none).

        An edge that matches in part is split, so that the returned node ends exactly where the match ends.
        `extra_key` names the tree: sequences with different keys share nothing (adapter, RoPE variant, image content).
        """
        match = self._match(as_tokens(tokens), extra_key, run)
        self._offer(match.node)
        return match

    def pin_prefix(
        self, tokens: Sequence[int] | Tokens, extra_key: Hashable = None, *, run: Hashable = None
    ) -> PrefixMatch:
        """`match_prefix`, and `pin` of what it finds."""
        match = self._match(as_tokens(tokens), extra_key, run)
        self.pin(match.node)
        return match

    def insert(
        self, tokens: Sequence[int] | Tokens, pages: Pages, extra_key: Hashable = None, *, run: Hashable = None
    ) -> PrefixMatch:
        """Put a sequence with its pages into the tree; the tree then owns one page for each token.

        Where the tree already holds a token, it keeps its own page and the caller's page is freed if it differs.
        The match returned covers the whole sequence with the tree's pages: the caller must use those from now on.
        """
        inserted, path = self._insert(self._root(extra_key), as_tokens(tokens), pages)
        self._touch(path, run)
        self._offer(inserted.node)
        return inserted

    def extend(self, pinned: RadixNode, tokens: Tokens, pages: Pages, *, run: Hashable = None) -> PrefixMatch:
        """`insert` of the tokens that follow a pinned prefix; one pin on that prefix moves to the end.

        The match returned covers these tokens alone. The prefix is not compared again, so a prompt that is inserted
        part by part is compared once. A leaf grows where the new tokens have the same uses, so that the tree stays as
        flat as its branches allow, and a long chain of calls is one leaf.
        """
        before = list(path_to_root(pinned))
        is_own_leaf = bool(before) and not pinned.children and pinned.pin_count == 1
        if is_own_leaf and self.eviction.has_uses_of_new(pinned, run):
            self._grow_leaf(pinned, tokens, pages)
            self._touch(before[::-1], run)
            return PrefixMatch(pages.astype(np.int64), pinned)
        start = self._root(pinned.extra_key) if pinned.is_root else pinned  # an empty tree's root may be another by now
        inserted, path = self._insert(start, tokens, pages)
        self._touch([*reversed(before), *path], run)
        self._pin_each(path)
        return inserted

    def pin(self, node: RadixNode) -> None:
        """Protect the prefix that ends at `node` from eviction, until as many calls of `unpin`.

        Raises:
            InvariantError: the node was evicted since it was returned.
        """
        if node.parent is None and not node.is_root:
            raise InvariantError("pin of a prefix that was evicted")
        self._pin_each(path_to_root(node))

    def unpin(self, node: RadixNode) -> None:
        """Take one pin off the prefix that ends at `node`.

        Raises:
            InvariantError: the prefix is not pinned.
        """
        step = node
        while step.parent is not None:
            if step.pin_count == 0:
                raise InvariantError("unpin of a prefix that is not pinned")
            step.pin_count -= 1
            if step.pin_count == 0:
                self._pinned_tokens -= step.tokens.size
                if not step.children:
                    self._offer(step)
            step = step.parent

    def evict(self, count: int) -> int:
        """Free up to `count` tokens, in the order of the eviction, and return how many were freed."""
        freed = 0
        while freed < count and (victim := self.eviction.victim()) is not None:
            node, length = victim
            freed += self._cut_tail(node, min(count - freed, length))
        self._evicted_tokens += freed
        return freed

    def reconsider(self, tokens: Sequence[int] | Tokens, extra_key: Hashable = None) -> None:
        """Have the eviction look again at what is cached of `tokens`: something else is known of its next use."""
        rest = as_tokens(tokens)
        node = self._root(extra_key)
        passed, matched = self._known_part(node, rest)
        node, rest = passed[-1] if passed else node, rest[matched:]
        while rest.size and (child := node.children.get(int(rest[0]))) is not None:
            node = child
            if common_prefix_length(node.tokens, rest) < node.length:
                break
            rest = rest[node.length :]
        self._offer(node)

    def branch_after(self, length: int, tokens: Sequence[int] | Tokens, extra_key: Hashable = None) -> RadixNode | None:
        """Return the node that continues `tokens` after their first `length`; None if there is none.

        The edge is split there if need be: node and what is below hold no token of the first `length`.
        """
        key = as_tokens(tokens)
        node, path = self._walk(self._root(extra_key), key[:length])
        if length >= key.size or sum(step.length for step in path) < length:
            return None
        return node.children.get(int(key[length]))

    def remove(self, node: RadixNode) -> None:
        """Free a node's tokens and everything below it.

        Raises:
            InvariantError: a part of it is pinned, or was evicted since the node was returned.
        """
        if node.pin_count or node.parent is None:
            raise InvariantError("removal of a prefix that is pinned or was evicted")
        parent = self._unlink(node)
        for each in nodes_from([node]):
            self.pool.free(each.pages)
            self._total_tokens -= each.length
            self._node_count -= 1
            each.detach()
        self._offer(parent)

    def remove_tree(self, extra_key: Hashable) -> None:
        """Free everything under an `extra_key`. Raises like `remove`."""
        for child in tuple(self._root(extra_key).children.values()):
            self.remove(child)

    def nodes(self) -> Iterator[RadixNode]:
        """Every node that holds tokens, parents before children."""
        return nodes_from(child for root in self._roots.values() for child in root.children.values())

    def check_invariants(self, held_pages: Iterable[Pages] = ()) -> None:
        """Check the whole structure against the pool; `held_pages` are those that running requests own.

        Raises:
            InvariantError: naming what is wrong. See `lmc.cache.invariants` for the list.
        """
        self.pool.check_invariants()
        nodes = list(self.nodes())
        check_tree(self._roots, nodes)
        check_ownership(self.pool, nodes, held_pages)
        offered = set(self.eviction.candidates())
        if any(node.evictable and node not in offered for node in nodes):
            raise InvariantError("an evictable leaf was not offered for eviction")
        check_counts(nodes, self._node_count, self._total_tokens, self._pinned_tokens, self._clock)
        known = self._known
        if known is not None and known.shape == self._shape and known.nodes:
            held, _ = whole_path(known.nodes[-1])
            if not np.array_equal(held, known.tokens[: known.ends[-1]]):
                raise InvariantError("the last path is not that of the tree")

    def _root(self, extra_key: Hashable) -> RadixNode:
        """The start of a tree; one that is new is kept from its first token on, until its last is gone."""
        return self._roots.get(extra_key) or RadixNode.root(extra_key)

    def _walk(self, node: RadixNode, key: Tokens) -> tuple[RadixNode, list[RadixNode]]:
        """Follow `key` down from a node: the node where the match ends (split if need be) and the nodes passed.

        The last path from a root is known: calls of a chain, and branches of a prompt, begin with most of it.
        """
        start = node
        path, matched = self._known_part(start, key)
        ends = [] if self._known is None else self._known.ends[: len(path)]
        node = path[-1] if path else node
        while matched < key.size:
            child = node.children.get(int(key[matched]))
            if child is None:
                break
            common = common_prefix_length(child.tokens, key[matched:])
            node = child if common == child.length else child.split(common)
            path.append(node)
            matched += common
            ends.append(matched)
            if node is not child:
                self._node_count += 1
                self._shape += 1
                break
        if start.is_root:
            self._known = _KnownPath(start, path.copy(), ends, key[:matched].copy(), self._shape)
        return node, path

    def _known_part(self, root: RadixNode, key: Tokens) -> tuple[list[RadixNode], int]:
        """Return the nodes of the last path that `key` passes from a root on, and how many tokens they have."""
        known = self._known
        if known is None or known.root is not root or known.shape != self._shape:
            return [], 0
        count = bisect_right(known.ends, common_prefix_length(known.tokens, key))
        return known.nodes[:count], known.ends[count - 1] if count else 0

    def _add_leaf(self, parent: RadixNode, tokens: Tokens, pages: Pages) -> RadixNode:
        leaf = RadixNode(tokens, pages, parent, last_access=-1)
        parent.children[leaf.first_token] = leaf
        if parent.is_root:
            self._roots[parent.extra_key] = parent
        self._node_count += 1
        self._total_tokens += leaf.length
        return leaf

    def _grow_leaf(self, leaf: RadixNode, tokens: Tokens, pages: Pages) -> None:
        """Append tokens with their pages to a leaf that has one pin."""
        self._check_insertion(tokens, pages)
        if self._known is not None and self._known.nodes[-1:] == [leaf]:
            self._known = None
        leaf.tokens, leaf.pages = np.concatenate([leaf.tokens, tokens]), np.concatenate([leaf.pages, pages])
        self._total_tokens += tokens.size
        self._pinned_tokens += tokens.size
        self._newly_pinned_tokens += tokens.size

    def _check_insertion(self, tokens: Tokens, pages: Pages) -> None:
        if tokens.size != pages.size:
            raise ValueError(f"{tokens.size} tokens need {tokens.size} pages, got {pages.size}")
        if not self.pool.is_allocated(pages):
            raise InvariantError("inserting pages that are not allocated")

    def _cut_tail(self, node: RadixNode, count: int) -> int:
        """Free the last `count` tokens of a leaf, or all of it."""
        self._shape += 1
        kept = max(0, node.length - count)
        freed = node.length - kept
        self.pool.free(node.pages[kept:])
        self._total_tokens -= freed
        if kept:
            node.tokens, node.pages = node.tokens[:kept].copy(), node.pages[:kept].copy()
            self.eviction.trimmed(node, freed)
            return freed
        parent = self._unlink(node)
        node.detach()
        self._node_count -= 1
        self._offer(parent)
        return freed

    def _unlink(self, node: RadixNode) -> RadixNode:
        """Take a node off its parent, which is returned; a root goes with its last child."""
        parent = node.parent
        assert parent is not None
        self._shape += 1
        del parent.children[node.first_token]
        if parent.is_root and not parent.children:
            del self._roots[parent.extra_key]
        return parent

    def _match(self, key: Tokens, extra_key: Hashable, run: Hashable) -> PrefixMatch:
        node, path = self._walk(self._root(extra_key), key)
        for step in path:
            step.hits += 1
        self._touch(path, run)
        return PrefixMatch(concatenated_pages(path), node)

    def _insert(self, start: RadixNode, key: Tokens, pages: Pages) -> tuple[PrefixMatch, list[RadixNode]]:
        """Put tokens with their pages below a node; gives their match and the nodes passed."""
        self._check_insertion(key, pages)
        node, path = self._walk(start, key)
        matched = sum(step.length for step in path)
        if matched < key.size:
            node = self._add_leaf(node, key[matched:].copy(), pages[matched:].astype(np.int64))
            path.append(node)
        kept = concatenated_pages(path)
        self.pool.free(pages[pages != kept])
        return PrefixMatch(kept, node), path

    def _pin_each(self, nodes: Iterable[RadixNode]) -> None:
        for node in nodes:
            if node.pin_count == 0:
                count = node.tokens.size
                self._pinned_tokens += count
                self._newly_pinned_tokens += count
            node.pin_count += 1

    def _touch(self, path: list[RadixNode], run: Hashable) -> None:
        self._clock += 1
        clock = self._clock
        for node in path:
            node.last_access = clock
        self.eviction.used(path, run)

    def _offer(self, node: RadixNode) -> None:
        if node.evictable:
            self.eviction.offer(node)
