from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cost.ranges import CostRange, total

COUNTS = st.integers(0, 10**6)


@st.composite
def ranges(draw: st.DrawFn) -> CostRange[int]:
    least, expected, most = sorted(draw(st.tuples(COUNTS, COUNTS, COUNTS)))
    return CostRange(least, expected, draw(st.sampled_from([most, None])))


@st.composite
def within(draw: st.DrawFn, bounds: CostRange[int]) -> int:
    most = bounds.least + 10**6 if bounds.most is None else bounds.most
    return draw(st.integers(bounds.least, most))


@given(ranges(), ranges(), st.data())
def test_sums_and_products_hold_those_of_all_values(left: CostRange[int], right: CostRange[int], data: st.DataObject):
    x, y = data.draw(within(left)), data.draw(within(right))
    assert x + y in left + right
    assert x * y in left * right
    assert x in left.map(lambda value: value + 1).map(lambda value: value - 1)
    assert x in left.hull(right)
    assert y in left.hull(right)


@given(st.lists(ranges(), max_size=4))
def test_totals_are_additive_and_keep_missing_bounds(parts: list[CostRange[int]]):
    found = total(parts, 0)
    assert found.expected == sum(part.expected for part in parts)
    assert (found.most is None) == any(part.most is None for part in parts)


@given(ranges(), ranges(), st.integers(0, 8))
def test_a_probability_weighs_the_expected_value(left: CostRange[int], right: CostRange[int], eighths: int):
    expected = Fraction(left.expected * eighths + right.expected * (8 - eighths), 8)
    assert left.hull(right, eighths / 8).expected == expected


def test_nothing_times_an_unbounded_figure_is_nothing():
    assert CostRange.exactly(0) * CostRange(1, 2, None) == CostRange(0, 0, 0)
    assert (CostRange(0, 1, 1) * CostRange(1, 2, None)).most is None


@pytest.mark.parametrize("figures", [(2, 1, 3), (1, 4, 3), (-1, 0, 1)])
def test_other_figures_are_no_range(figures: tuple[int, int, int]):
    with pytest.raises(ValueError, match="is no range"):
        CostRange(*figures)
