from benchmarks.files_visited import one_capture, one_condition, short, walked


def test_a_condition_takes_more_than_none():
    without, with_one = one_capture(short), one_capture(one_condition)
    assert len(without.files) < len(with_one.files)
    assert without.moves < without.calls < with_one.calls


def test_only_functions_of_lmc_count():
    with walked() as walk:
        sorted([3, 1])
    assert (walk.calls, walk.moves, walk.files) == (0, 0, set())
