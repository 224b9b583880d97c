import gc

import numpy as np
import pytest

from lmc.grammar.index import states as module
from lmc.grammar.index.states import Masks, Words


class Holding:
    def __init__(self) -> None:
        self.words: Words | None = None


def words(number: int) -> Words:
    return np.full(4, number, np.uint32)


def test_equal_masks_are_one_array_that_nobody_can_change() -> None:
    masks, one, other = Masks(), Holding(), Holding()
    given = masks.give(words(1), one)
    assert masks.give(words(1), other) is given is one.words is other.words
    assert masks.nbytes == given.nbytes
    with pytest.raises(ValueError, match="read-only"):
        given[0] = 2


def test_the_oldest_are_taken_back_beyond_the_bound() -> None:
    masks, holders = Masks(limit=32), [Holding() for _ in range(4)]
    for number, holder in enumerate(holders):
        masks.give(words(number // 2 if number < 2 else number), holder)
    assert [holder.words is None for holder in holders] == [True, True, False, False]
    assert masks.nbytes == 32


def test_a_mask_larger_than_the_bound_is_kept_alone() -> None:
    masks, one, other = Masks(limit=1), Holding(), Holding()
    masks.give(words(1), one)
    masks.give(words(2), other)
    assert one.words is None
    assert other.words is not None


def test_a_mask_that_is_still_used_is_given_again() -> None:
    masks, one, other = Masks(limit=16), Holding(), Holding()
    used = masks.give(words(1), one)
    masks.give(words(2), other)
    assert one.words is None
    assert masks.give(words(1), one) is used
    del used
    masks.give(words(2), other)
    gc.collect()
    assert masks.nbytes == 16


def test_masks_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hash", lambda _: 7, raising=False)
    masks, holders = Masks(), [Holding() for _ in range(4)]
    given = [masks.give(words(number % 2), holder) for number, holder in enumerate(holders)]
    assert given[0] is given[2]
    assert given[1] is given[3]
    assert [int(each[0]) for each in given] == [0, 1, 0, 1]
