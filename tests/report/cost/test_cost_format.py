"""The format ``lmc-cost``: read back as written, valid by its schema, the same bytes for the same report."""

import json
from decimal import Decimal
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.cost.ranges import CostRange
from lmc.ir.errors import InputError
from lmc.report.cost.model import (
    CallFigures,
    CostFigures,
    CostPlace,
    CostReport,
    CountRange,
    LongestChain,
    MoneyRange,
    PriceRate,
    PriceUsed,
    ProgramCost,
    RowsUsed,
    from_json,
    schema_text,
    to_json,
)
from tests.report.golden import COST_SCHEMA

MONEY = st.decimals(0, 10**9, allow_nan=False, allow_infinity=False, places=15)
NUMBERS = st.integers(0, 10**15) | st.floats(0, 10**9)


@st.composite
def ranges(draw: st.DrawFn) -> CountRange:
    """Return ranges, some without a bound."""
    least, expected, most = sorted(draw(st.tuples(NUMBERS, NUMBERS, NUMBERS)))
    return CountRange.of(CostRange(least, expected, draw(st.sampled_from([most, None]))))


@st.composite
def money_ranges(draw: st.DrawFn) -> MoneyRange | None:
    """Return ranges of money, some without a bound, and none."""
    least, expected, most = sorted(draw(st.tuples(MONEY, MONEY, MONEY)))
    found = MoneyRange.of(CostRange(least, expected, draw(st.sampled_from([most, None]))))
    return draw(st.sampled_from([found, None]))


def figures() -> dict[str, Any]:
    """Return strategies for the fields of figures."""
    names = ("calls", "prompt", "cached", "cache_written", "output", "reasoning")
    return {**{name: ranges() for name in names}, "usd": money_ranges(), "seconds": st.none() | ranges()}


CALLS = st.builds(
    CallFigures, **figures(), op=st.text(), place=st.none() | st.builds(CostPlace, file=st.text(), line=st.integers(1))
)
RATES = st.builds(PriceRate, base=MONEY, tiers=st.lists(st.tuples(st.integers(1), MONEY), max_size=2).map(tuple))
PRICES = st.builds(PriceUsed, entry=st.text(), source=st.text(), input=RATES, output=RATES, cached=st.none() | RATES)
PROGRAMS = st.builds(
    ProgramCost,
    program=st.text(),
    model=st.text(),
    rows=st.builds(RowsUsed, file=st.none() | st.text(), digest=st.text(), count=st.integers(0)),
    level=st.sampled_from(["O0", "O1", "O2"]),
    price=st.none() | PRICES,
    tokens=st.sampled_from(["exact", "estimated"]),
    calls=st.lists(CALLS, max_size=2).map(tuple),
    total=st.builds(CostFigures, **figures()),
    critical_path=st.builds(LongestChain, calls=ranges(), seconds=st.none() | ranges()),
    is_whole=st.booleans(),
)


@given(st.lists(PROGRAMS, max_size=2))
def test_reports_are_read_back_as_written_and_are_valid(programs: list[ProgramCost]) -> None:
    report = CostReport.of(programs, lmc="1.0", prices="0.2.3")
    text = to_json(report)
    again = from_json(text, "cost.json")
    assert again == report
    assert to_json(again) == text
    assert text.isascii()
    assert not set("<>&") & set(text)
    jsonschema.validate(json.loads(text), json.loads(schema_text()))


def test_the_published_schema_is_that_of_the_format() -> None:
    assert COST_SCHEMA.read_text(encoding="utf-8") == schema_text(), "python -m tests.report.golden writes it"


def test_money_has_all_its_digits_and_no_exponent() -> None:
    found = MoneyRange(least=Decimal("1E-9"), expected=Decimal("0.10"), most=Decimal("1E+3"))
    assert json.loads(found.model_dump_json()) == {"least": "0.000000001", "expected": "0.1", "most": "1000"}


def test_a_figure_without_a_bound_is_null_and_not_left_out() -> None:
    found = CountRange.of(CostRange(0.0, 1.5, None))
    assert found.model_dump(mode="json", exclude_defaults=True) == {"least": 0, "expected": 1.5, "most": None}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{", "not JSON"),
        ("[]", "does not have the format lmc-cost"),
        ('{"format": "lmc-view", "version": 1}', "does not have the format lmc-cost"),
        ('{"format": "lmc-cost", "version": 1}', "version: Input should be 2"),
        ('{"format": "lmc-cost", "version": 3}', "has version 3"),
        ('{"format": "lmc-cost", "version": 2, "lmc": "1", "programs": 3}', "programs"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_report_is_an_error_with_the_name_of_the_file(text: str, cause: str) -> None:
    with pytest.raises(InputError, match=r"cost\.json") as raised:
        from_json(text, "cost.json")
    assert cause in raised.value.cause


def test_money_as_a_float_is_refused() -> None:
    with pytest.raises(ValueError, match="decimal number in a string"):
        MoneyRange.model_validate({"least": 0.1, "expected": "1", "most": None})
