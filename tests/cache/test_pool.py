import numpy as np
import pytest

from lmc.cache import InvariantError, PagePool, PoolExhaustedError


def test_allocate_and_free_count_pages() -> None:
    pool = PagePool(4)
    pages = pool.allocate(3)
    assert pages.tolist() == [0, 1, 2]
    assert (pool.free_count, pool.used_count) == (1, 3)
    pool.free(pages[1:])
    assert pool.free_count == 3
    assert set(pool.allocate(3).tolist()) == {1, 2, 3}
    pool.check_invariants()


def test_exhausted_pool_says_so_and_stays_unchanged() -> None:
    pool = PagePool(2)
    pool.allocate(1)
    with pytest.raises(PoolExhaustedError, match="2 pages asked for, 1 of 2 are free"):
        pool.allocate(2)
    assert pool.free_count == 1


@pytest.mark.parametrize(
    ("pages", "message"),
    [([0, 0], "same page twice"), ([3], "double free"), ([7], "outside"), ([-1], "outside")],
)
def test_wrong_frees_are_refused(pages: list[int], message: str) -> None:
    pool = PagePool(4)
    pool.allocate(2)
    with pytest.raises(InvariantError, match=message):
        pool.free(pages)
    assert pool.used_count == 2
    pool.check_invariants()


def test_sizes_must_make_sense() -> None:
    with pytest.raises(ValueError, match="at least one page"):
        PagePool(0)
    with pytest.raises(ValueError, match="cannot allocate -1"):
        PagePool(1).allocate(-1)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda pool: pool._free_stack.__setitem__(0, pool._free_stack[1]), "twice on the free stack"),
        (lambda pool: pool._is_free.__setitem__(3, False), "marked as allocated"),
        (lambda pool: pool._is_free.__setitem__(0, True), "missing from the free stack"),
    ],
)
def test_check_invariants_finds_damage(damage, message: str) -> None:
    pool = PagePool(4)
    pool.allocate(1)
    damage(pool)
    with pytest.raises(InvariantError, match=message):
        pool.check_invariants()


def test_is_allocated() -> None:
    pool = PagePool(3)
    pages = pool.allocate(2)
    assert pool.is_allocated(pages)
    assert not pool.is_allocated(np.array([0, 2]))
