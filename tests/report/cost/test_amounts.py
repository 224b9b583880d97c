"""Numbers as short texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.report.cost.amounts import number

_SIZES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@given(st.one_of(st.integers(0, 10**14), st.floats(0, 2e6)))
def test_a_number_is_short_and_near_and_not_0_where_it_is_not(value: float) -> None:
    shown = number(value)
    digits, size = (shown[:-1], _SIZES[shown[-1]]) if shown[-1] in _SIZES else (shown, 1.0)
    read = float(digits) * size
    assert float(digits) < 1000 or size == 1e12
    assert abs(read - value) <= max(0.05 * value, 0.05)
    assert (read == 0) == (value == 0)


@pytest.mark.parametrize(
    ("value", "shown"), [(999_999, "1M"), (9960, "10k"), (0.04, "0.04"), (812, "812"), (9130, "9.1k")]
)
def test_units_are_chosen_by_the_rounded_number(value: float, shown: str) -> None:
    assert number(value) == shown
