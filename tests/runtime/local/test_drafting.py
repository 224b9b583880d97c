import itertools

import numpy as np
import pytest

from lmc import grammar
from lmc.runtime.local.sampling import drafting
from lmc.runtime.local.sampling.drafting import DraftLength, Paths, is_only

VOCABULARY = grammar.Vocabulary([bytes([byte]) for byte in range(256)] + [b"", b"ab", b"bc"], eos_id=256)


def test_drafts_that_are_kept_grow_up_to_the_most() -> None:
    length = DraftLength(200)
    tried = []
    for _ in range(5):
        tried.append(length.limit())
        length.took(tried[-1], tried[-1] - 1)  # the last token often belongs to what comes next
    assert tried == [32, 64, 128, 200, 200]
    assert DraftLength(7).limit() == 7


def test_drafts_that_are_refused_halfway_shrink_to_what_was_kept() -> None:
    length = DraftLength(200)
    length.took(32, 5)
    assert length.limit() == 10
    length.took(10, 9)
    assert length.limit() == 20


def test_drafts_that_fail_from_the_start_are_tried_less_and_less() -> None:
    length, tries = DraftLength(200), []
    for place in range(2000):
        drafted = length.limit()
        if drafted:
            tries.append(place)
            length.took(drafted, 0)
    gaps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert gaps[:6] == [2, 4, 8, 16, 32, 64]
    assert {*gaps[6:]} == {65}
    while not length.limit():
        pass
    length.took(32, 31)
    assert length.limit() > 0


def test_a_draft_of_one_token_teaches_nothing() -> None:
    length = DraftLength(200)
    for _ in range(9):
        length.took(1, 0)
        assert length.limit() == 32


def test_a_path_is_what_has_to_follow_with_its_states() -> None:
    state = grammar.compile(regex="xyabc[de]fgh", tokenizer=VOCABULARY).start()
    path = Paths(100).after(state, 3)
    assert b"".join(VOCABULARY.tokens[token] for token in path.tokens) == b"xyabc"
    assert len(path.tokens) == len(path.states) == 4
    for token, after in zip(path.tokens, path.states, strict=True):
        state = state.advance(token)
        assert state is after
    assert path.certain == (0, 1, 3)  # ab may also be a and bc
    assert Paths(100).after(state, 3).tokens == ()


def test_paths_of_states_that_are_shared_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "_PATHS_KEPT", 2)
    state = grammar.compile(regex="x{12}", tokenizer=VOCABULARY).start()
    later = state.advance(ord("x"))
    paths = Paths(4)
    short = paths.after(state, 3)
    assert len(short.tokens) == 4
    assert paths.after(state, 2) is short
    longer = paths.after(state, 6)
    assert len(longer.tokens) == 6
    whole = paths.after(state, 99)
    assert len(whole.tokens) == 12
    assert paths.after(state, 100) is whole
    assert paths.after(later, 99) is paths.after(later, 99)
    paths.after(later.advance(ord("x")), 99)
    assert paths.after(state, 99) is not whole  # it was asked for before the two others


@pytest.mark.parametrize("size", [1, 3])
def test_a_mask_allows_only_a_token(size: int) -> None:
    for token in (0, 31, 32 * size - 1):
        mask = np.zeros(size, np.uint32)
        mask[token // 32] = np.uint32(1 << token % 32)
        assert is_only(mask, token)
        assert not is_only(mask, (token + 1) % (32 * size))
        assert not is_only(mask, 32 * size)
        mask[0] |= 2
        assert not is_only(mask, token)
