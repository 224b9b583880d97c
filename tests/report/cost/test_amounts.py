"""Numbers as short texts."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.report.cost.amounts import dollars, number
from lmc.report.cost.changes import arrow

_SIZES = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_values = st.one_of(st.integers(0, 10**14), st.floats(0, 2e6))


def _read(shown: str) -> Decimal:
    """Return the number that a text shows."""
    digits, size = (shown[:-1], _SIZES[shown[-1]]) if shown[-1] in _SIZES else (shown, 1)
    assert float(digits) < 1000 or size == 10**12
    return Decimal(digits) * size


@given(_values)
def test_a_number_is_short_and_near_and_not_0_where_it_is_not(value: float) -> None:
    read = float(_read(number(value)))
    assert abs(read - value) <= max(0.05 * value, 0.05)
    assert (read == 0) == (value == 0)


@given(_values)
def test_a_bound_is_not_shown_as_less_than_it_is(value: float) -> None:
    shown = number(value, ROUND_CEILING)
    read = Decimal(shown) if shown == "1000" else _read(shown.replace("1000k", "1M").replace("1000M", "1G"))
    assert Decimal(str(value)) <= read.max(Decimal(0))
    assert float(read) - value <= max(0.1 * value, 0.1)


@given(st.decimals(0, 1000, places=9))
def test_dollars_have_two_digits_that_count_and_bounds_are_rounded_up(value: Decimal) -> None:
    near, bound = (
        Decimal(shown.lstrip("$").replace(",", "")) for shown in (dollars(value), dollars(value, ROUND_CEILING))
    )
    step = Decimal("0.0001") if Decimal("0.0001") <= value < Decimal("0.001") else max(value / 10, Decimal("1e-9"))
    assert abs(near - value) <= step / 2
    assert value <= bound <= near + step
    assert (near == 0) == (value == 0)


@pytest.mark.parametrize(
    ("value", "shown"), [(999_999, "1M"), (9960, "10k"), (0.04, "0.04"), (812, "812"), (9130, "9.1k")]
)
def test_units_are_chosen_by_the_rounded_number(value: float, shown: str) -> None:
    assert number(value) == shown


@pytest.mark.parametrize(
    ("change", "before", "shown"),
    [
        ("0.5", "0", "▲ (+$0.50)"),
        ("0.5", "1", "▲50 % (+$0.50)"),
        ("-0.5", "1", "▼50 % (−$0.50)"),
        ("0.004", "1", "▲0.4 % (+$0.0040)"),
        ("0", "0", "±0 %"),
    ],
)
def test_a_change_has_a_share_where_there_was_something_before(change: str, before: str, shown: str) -> None:
    assert arrow(Decimal(change), Decimal(before)) == shown
