from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.engine.protocol import DoneHandle, SamplingParams, derive_seed
from lmc.ir.tokens.tokens import common_prefix_length

sequences = st.lists(st.lists(st.integers(0, 2), max_size=5).map(tuple), max_size=4)


@given(sequences)
def test_the_common_prefix_is_the_longest(rows: list[tuple[int, ...]]):
    length = common_prefix_length(rows)
    assert len({row[:length] for row in rows}) <= 1
    assert all(len(row) >= length for row in rows)
    if rows and all(len(row) > length for row in rows):
        assert len({row[length] for row in rows}) > 1
    if not rows:
        assert length == 0


def test_seeds_differ_by_everything_they_are_made_of():
    seeds = {
        derive_seed(0, 0, "a"),
        derive_seed(1, 0, "a"),
        derive_seed(0, 1, "a"),
        derive_seed(0, 0, "b"),
        derive_seed(0, 0, "a", 1),
        derive_seed(0, 0, "a", 0, 1),
        derive_seed(0, 0, "\ud800"),
    }
    assert len(seeds) == 7
    assert all(0 <= seed < 2**64 for seed in seeds)


def test_seeds_are_the_same_on_every_machine():
    assert derive_seed(0, 0, "judge/verdict") == 15739404832951834163


def test_greedy_is_temperature_zero():
    assert SamplingParams().greedy
    assert not SamplingParams(temperature=0.1).greedy


def test_done_handles():
    assert DoneHandle.of(1).future.result() == 1
    error = ValueError("no")
    handle = DoneHandle[int].failed(error)
    handle.cancel()
    assert handle.future.exception() is error
