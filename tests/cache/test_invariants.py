"""Each structure here is broken in one way that `check_invariants` must name."""

from collections.abc import Callable

import numpy as np
import pytest

from lmc.cache import InvariantError, PagePool, RadixCache, RadixNode


def sample() -> RadixCache:
    cache = RadixCache(PagePool(16))
    for tokens in ([1, 2, 3], [1, 2, 4, 5]):
        match = cache.insert(tokens, cache.pool.allocate(len(tokens)))
    cache.pin(match.node)
    cache.check_invariants()
    return cache


def node(cache: RadixCache, *tokens: int) -> RadixNode:
    return next(node for node in cache.nodes() if tuple(node.tokens.tolist()) == tokens)


def drop_page(cache: RadixCache) -> None:
    node(cache, 4, 5).pages = node(cache, 4, 5).pages[:1]


def misfile(cache: RadixCache) -> None:
    parent = node(cache, 1, 2)
    parent.children[9] = parent.children.pop(3)


def adopt(cache: RadixCache) -> None:
    node(cache, 3).parent = node(cache, 4, 5)


def lose_pin(cache: RadixCache) -> None:
    node(cache, 1, 2).pin_count = 0


def age_parent(cache: RadixCache) -> None:
    node(cache, 1, 2).last_access = 0


def use_in_future(cache: RadixCache) -> None:
    for each in cache.nodes():
        each.last_access = 10**6


def share_page(cache: RadixCache) -> None:
    node(cache, 3).pages = node(cache, 4, 5).pages[:1]


def free_page(cache: RadixCache) -> None:
    cache.pool.free(node(cache, 3).pages)


def leak_page(cache: RadixCache) -> None:
    cache.pool.allocate(1)


def forget_leaf(cache: RadixCache) -> None:
    node(cache, 3).offered = 0


def miscount_total(cache: RadixCache) -> None:
    cache._total_tokens += 1


def miscount_pinned(cache: RadixCache) -> None:
    cache._pinned_tokens += 1


def miscount_nodes(cache: RadixCache) -> None:
    cache._node_count += 1


def misfile_root(cache: RadixCache) -> None:
    cache._roots["adapter"] = cache._roots.pop(None)


def keep_empty_tree(cache: RadixCache) -> None:
    cache._roots["adapter"] = RadixNode.root("adapter")


def give_root_tokens(cache: RadixCache) -> None:
    cache._roots[None].tokens = np.array([1], np.int32)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_page, "2 tokens and 1 pages"),
        (misfile, "filed under a token"),
        (adopt, "another parent"),
        (lose_pin, "pinned less often"),
        (age_parent, "used later than its parent"),
        (use_in_future, "in the future"),
        (share_page, "owned twice"),
        (free_page, "in use is marked free"),
        (leak_page, "have no owner"),
        (forget_leaf, "not offered for eviction"),
        (miscount_total, "total_tokens"),
        (miscount_pinned, "pinned_tokens"),
        (miscount_nodes, "nodes counted"),
        (misfile_root, "under another key"),
        (keep_empty_tree, "its tree is empty"),
        (give_root_tokens, "a root holds tokens"),
    ],
)
def test_damage_is_named(damage: Callable[[RadixCache], None], message: str) -> None:
    cache = sample()
    damage(cache)
    with pytest.raises(InvariantError, match=message):
        cache.check_invariants()


def test_pages_of_requests_count_as_owned() -> None:
    cache = sample()
    held = cache.pool.allocate(2)
    cache.check_invariants(held_pages=[held])
    with pytest.raises(InvariantError, match="owned twice"):
        cache.check_invariants(held_pages=[held, held])
