import itertools

from lmc.runtime.local.drafting import DraftLength


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
