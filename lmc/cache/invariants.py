"""Invariants of a radix tree over a page pool between any two calls."""

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from lmc.cache.node import RadixNode
from lmc.cache.pool import InvariantError, PagePool, Pages


def check_tree(roots: Mapping[Hashable, RadixNode], nodes: Sequence[RadixNode]) -> None:
    """Check edges, links, pin counts and timestamps.

    Raises:
        InvariantError: an edge is empty or has another number of pages than tokens; a child is filed under another
            token than its first or points to another parent; a parent is pinned less often than its children together;
            a parent was used before its child; a tree is empty or filed under another key.
    """
    for extra_key, root in roots.items():
        if root.extra_key != extra_key or not root.children:
            raise InvariantError("a root is filed under another key than its own, or kept though its tree is empty")
        if not root.is_root or root.length or root.parent is not None:
            raise InvariantError("a root holds tokens or hangs below a node")
        _check_children(root)
    for node in nodes:
        if node.is_root or not node.length or node.tokens.size != node.pages.size:
            raise InvariantError(f"an edge has {node.tokens.size} tokens and {node.pages.size} pages")
        _check_children(node)
        if node.pin_count < sum(child.pin_count for child in node.children.values()):
            raise InvariantError("a node is pinned less often than its children together")
        if any(child.last_access > node.last_access for child in node.children.values()):
            raise InvariantError("a child was used later than its parent")


def check_ownership(pool: PagePool, nodes: Sequence[RadixNode], held_pages: Iterable[Pages]) -> None:
    """Check that every allocated page is in exactly one place: one edge of the tree, or one holder.

    Raises:
        InvariantError: a page is owned twice, owned though free, or allocated without an owner.
    """
    parts = [node.pages for node in nodes] + [np.asarray(pages, np.int64) for pages in held_pages]
    owned = np.concatenate(parts) if parts else np.empty(0, np.int64)
    if np.unique(owned).size != owned.size:
        raise InvariantError("a page is owned twice")
    if not pool.is_allocated(owned):
        raise InvariantError("a page in use is marked free")
    if owned.size != pool.used_count:
        raise InvariantError(f"{pool.used_count - owned.size} allocated pages have no owner (leak)")


def check_counts(nodes: Sequence[RadixNode], count: int, tokens: int, pinned: int, clock: int) -> None:
    """Check what a tree has counted of its nodes.

    Raises:
        InvariantError: it has another number of nodes, of tokens, or of tokens under pins, or one used after `clock`.
    """
    if len(nodes) != count:
        raise InvariantError(f"{count} nodes counted, {len(nodes)} found")
    if sum(node.length for node in nodes) != tokens:
        raise InvariantError("total_tokens is not the number of tokens in the tree")
    if sum(node.length for node in nodes if node.pin_count) != pinned:
        raise InvariantError("pinned_tokens is not the number of tokens under pins")
    if any(node.last_access > clock for node in nodes):
        raise InvariantError("a node was used in the future")


def _check_children(node: RadixNode) -> None:
    for token, child in node.children.items():
        if child.parent is not node:
            raise InvariantError("a child points to another parent")
        if not child.length or child.first_token != token:
            raise InvariantError("a child is filed under a token that is not its first")
