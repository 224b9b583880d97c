import time

import numpy as np
import pytest

from lmc.cache import InvariantError, PagePool, RadixCache, radix
from lmc.cache.eviction import Eviction, LeastFrequentlyUsed, LeastRecentlyUsed, NextUse
from lmc.cache.node import Tokens, common_prefix_length


def cache_with(*sequences: list[int], num_pages: int = 64) -> RadixCache:
    cache = RadixCache(PagePool(num_pages))
    for sequence in sequences:
        put(cache, sequence)
    return cache


def put(cache: RadixCache, sequence: list[int], extra_key: str | None = None):
    return cache.insert(sequence, cache.pool.allocate(len(sequence)), extra_key)


@pytest.mark.parametrize(
    ("right", "shared"), [([], 0), ([1], 1), ([1, 2, 3], 3), ([1, 2, 3, 4], 3), ([1, 9, 3], 1), ([9], 0)]
)
@pytest.mark.parametrize("width", [np.int32, np.int64])
def test_prefixes_are_compared_as_numbers(right: list[int], shared: int, width: type) -> None:
    assert common_prefix_length(np.array([1, 2, 3], np.int32), np.array(right, width)) == shared


def test_match_finds_the_longest_prefix_and_splits_there() -> None:
    cache = cache_with([1, 2, 3, 4])
    match = cache.match_prefix([1, 2, 9])
    assert match.length == 2
    assert match.node.tokens.tolist() == [1, 2]
    assert [node.tokens.tolist() for node in cache.nodes()] == [[1, 2], [3, 4]]
    assert cache.match_prefix([7]).length == 0
    assert cache.match_prefix([]).length == 0
    cache.check_invariants()


def test_insert_keeps_the_trees_pages_and_frees_duplicates() -> None:
    cache = cache_with([1, 2, 3])
    first = cache.match_prefix([1, 2, 3]).pages
    again = put(cache, [1, 2, 3, 4])
    assert again.pages[:3].tolist() == first.tolist()
    assert cache.total_tokens == cache.pool.used_count == 4
    cache.check_invariants()


def test_extra_keys_do_not_share() -> None:
    cache = cache_with([1, 2])
    assert cache.match_prefix([1, 2], extra_key="adapter").length == 0
    other = put(cache, [1, 2], extra_key="adapter")
    assert not np.isin(other.pages, cache.match_prefix([1, 2]).pages).any()
    cache.check_invariants()


def test_evict_cuts_the_least_recently_used_leaf_from_its_end() -> None:
    cache = cache_with([1, 2, 3], [1, 5, 6])
    cache.match_prefix([1, 2, 3])
    assert cache.evict(1) == 1
    assert cache.match_prefix([1, 5, 6]).length == 2
    assert cache.match_prefix([1, 2, 3]).length == 3
    assert cache.evict(100) == 4
    assert (cache.total_tokens, cache.evicted_tokens, cache.pool.used_count) == (0, 5, 0)
    cache.check_invariants()


def test_pins_protect_a_prefix_through_splits_and_count() -> None:
    cache = cache_with([1, 2, 3, 4])
    node = cache.match_prefix([1, 2, 3, 4]).node
    cache.pin(node)
    cache.pin(node)
    put(cache, [1, 2, 8])
    assert (cache.pinned_tokens, cache.evictable_tokens) == (4, 1)
    assert cache.evict(100) == 1
    cache.unpin(node)
    assert cache.evict(100) == 0
    cache.unpin(node)
    assert cache.evict(100) == 4
    with pytest.raises(InvariantError, match="not pinned"):
        cache.unpin(put(cache, [1]).node)
    cache.check_invariants()


def test_a_node_that_was_evicted_cannot_be_pinned() -> None:
    cache = cache_with([1, 2])
    node = cache.match_prefix([1, 2]).node
    cache.evict(2)
    with pytest.raises(InvariantError, match="was evicted"):
        cache.pin(node)


def test_insert_checks_its_arguments() -> None:
    cache = cache_with()
    with pytest.raises(ValueError, match="2 tokens need 2 pages, got 1"):
        cache.insert([1, 2], cache.pool.allocate(1))
    with pytest.raises(InvariantError, match="not allocated"):
        cache.insert([1], np.array([63]))


def test_a_cut_or_split_edge_does_not_keep_the_whole_edge_in_memory() -> None:
    cache = cache_with(list(range(60)))
    cache.match_prefix([0, 1])
    cache.evict(10)
    assert all(node.tokens.base is None and node.pages.base is None for node in cache.nodes())


def test_a_branch_is_removed_with_all_that_is_below_it() -> None:
    cache = cache_with([1, 2, 3, 4], [1, 2, 3, 5], [1, 7])
    branch = cache.branch_after(1, [1, 2, 3, 9])
    assert branch is not None
    assert branch.tokens.tolist() == [2, 3]
    cache.remove(branch)
    assert (cache.total_tokens, cache.pool.used_count, cache.evicted_tokens) == (2, 2, 0)
    assert cache.match_prefix([1, 2]).length == 1
    cache.check_invariants()
    assert cache.branch_after(1, [1]) is None
    assert cache.branch_after(2, [1, 8, 9]) is None
    with pytest.raises(InvariantError, match="was evicted"):
        cache.remove(branch)


def test_what_is_pinned_is_not_removed() -> None:
    cache = cache_with([1, 2, 3])
    cache.pin(cache.match_prefix([1, 2, 3]).node)
    branch = cache.branch_after(1, [1, 2])
    assert branch is not None
    with pytest.raises(InvariantError, match="is pinned"):
        cache.remove(branch)
    with pytest.raises(InvariantError, match="is pinned"):
        cache.remove_tree(None)


def test_a_tree_goes_with_its_last_token() -> None:
    cache = cache_with()
    for key in ("evicted", "removed"):
        put(cache, [1, 2, 3], key)
        put(cache, [1, 4], key)
        put(cache, [5], key)
    cache.remove_tree("removed")
    cache.remove_tree("never there")
    assert list(cache._roots) == ["evicted"]
    cache.evict(100)
    assert (cache._roots, cache.pool.used_count) == ({}, 0)
    cache.match_prefix([1], "matched only")
    assert cache._roots == {}
    cache.check_invariants()


def test_evicting_costs_the_same_with_many_trees() -> None:
    cache = cache_with(num_pages=60_000)
    for number in range(30_000):
        put(cache, [1, 2], str(number))
    start = time.process_time()
    for _ in range(2000):
        cache.evict(1)
    assert time.process_time() - start < 1  # looking through all trees each time takes seconds
    cache.check_invariants()


def test_eviction_heap_stays_bounded() -> None:
    cache = cache_with([1, 2, 3])
    for _ in range(10_000):
        cache.match_prefix([1, 2, 3])
    assert isinstance(cache.eviction, LeastRecentlyUsed)
    assert len(cache.eviction._heap._entries) < 200
    cache.check_invariants()


def test_long_prompts_match_fast() -> None:
    length = 200_000
    cache = RadixCache(PagePool(length))
    tokens = np.arange(length, dtype=np.int32)
    cache.insert(tokens, cache.pool.allocate(length))
    start = time.perf_counter()
    for _ in range(20):
        assert cache.match_prefix(tokens).length == length
    assert time.perf_counter() - start < 10  # 20 ms where measured; what grows with the square takes hours


def test_a_prompt_that_is_inserted_part_by_part_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counting(left: np.ndarray, right: np.ndarray) -> int:
        nonlocal compared
        compared += min(left.size, right.size)
        return common_prefix_length(left, right)

    monkeypatch.setattr("lmc.cache.radix.common_prefix_length", counting)
    cache = RadixCache(PagePool(64 * 200))
    for _ in range(2):  # the second prompt finds each part in the tree
        node = cache.pin_prefix([], None).node
        for start in range(0, 64 * 100, 64):
            tokens = np.arange(start, start + 64, dtype=np.int32)
            node = cache.extend(node, tokens, cache.pool.allocate(64)).node
    cache.check_invariants()
    assert compared == 64 * 100


def test_prompts_that_begin_together_in_an_empty_tree_share_it() -> None:
    cache = RadixCache(PagePool(8))
    first, second = (cache.pin_prefix([1, 2], "k").node for _ in range(2))
    for root in (first, second):
        inserted = cache.extend(root, np.array([1, 2], np.int32), cache.pool.allocate(2))
        assert inserted.pages.tolist() == [0, 1]
    assert cache.total_tokens == 2
    cache.check_invariants()


@pytest.mark.parametrize(
    ("eviction", "nodes"), [(LeastRecentlyUsed(), 1), (NextUse(), 1), (LeastFrequentlyUsed(), 200)]
)
def test_a_chain_of_requests_walks_no_node_again(
    monkeypatch: pytest.MonkeyPatch, eviction: Eviction, nodes: int
) -> None:
    """Each request begins with all of the one before: the nodes that are compared do not add up to their square.

    Where the new tokens have the uses of those before, all is one leaf.
    """
    compared: list[int] = []
    compare = radix.common_prefix_length

    def counted(left: Tokens, right: Tokens) -> int:
        compared.append(1)
        return compare(left, right)

    monkeypatch.setattr(radix, "common_prefix_length", counted)
    pool = PagePool(4_000)
    cache = RadixCache(pool, eviction)
    tokens = np.arange(4_000, dtype=np.int32)
    requests = 200
    for number in range(requests):
        found = cache.pin_prefix(tokens[: number * 20])
        assert found.length == number * 20
        node = found.node
        for start in range(number * 20, number * 20 + 20, 5):  # parts of the prompt, and the answer
            node = cache.extend(node, tokens[start : start + 5], pool.allocate(5)).node
        cache.unpin(node)
        cache.check_invariants()
    assert len(list(cache.nodes())) == nodes
    assert len(compared) < 10 * requests
