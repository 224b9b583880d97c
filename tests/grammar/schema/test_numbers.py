"""Numbers: bounds of any size and precision digit by digit, multiples, values that are out."""

import json
import random
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import automaton_of, draw, is_valid

integers = st.one_of(st.integers(-25, 125), st.integers(), st.integers(10**18, 10**24))
any_bounds = st.one_of(
    st.integers(-100, 100),
    st.sampled_from([0.1, -0.5, 99.99, 1e12, 1e6, -1e9, 0.000001, 1e15, 2**53 - 1, 2**53 + 1, 1e22, -1e22, 1e-10]),
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)),
)
decimals = st.one_of(
    st.decimals(-3, 3, places=2), st.decimals(0, 1, places=4), st.decimals(-200, 200, places=1), st.integers(-99, 99)
).map(lambda value: Decimal(value) + 0)


def _schema(low: Any, high: Any, opened: tuple[bool, bool], **more: Any) -> dict[str, Any]:
    names = ("exclusiveMinimum" if opened[0] else "minimum", "exclusiveMaximum" if opened[1] else "maximum")
    return {**more, **{name: bound for name, bound in zip(names, (low, high), strict=True) if bound is not None}}


def _float(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _automaton(schema: Any) -> Automaton | None:
    """None for a schema that no value meets, or only numbers with too many digits."""
    try:
        return automaton_of(schema)
    except ConstraintError as error:
        if "no value meets" not in error.cause and "more than 120 digits" not in error.cause:
            raise
        return None


@given(st.none() | integers, st.none() | integers, st.tuples(st.booleans(), st.booleans()), st.data())
def test_integers_between_bounds(low: Any, high: Any, opened: tuple[bool, bool], data: st.DataObject):
    assume(low is not None or high is not None)
    schema = _schema(low, high, opened, type="integer")
    automaton = _automaton(schema)
    near = st.integers(-12, 12).map(lambda step: step + data.draw(st.sampled_from([0, low or 0, high or 0])))
    for value in data.draw(st.lists(near | integers, min_size=10, max_size=10)):
        assert (automaton is not None and automaton.matches(str(value).encode())) == is_valid(schema, value), value


@given(st.none() | decimals, st.none() | decimals, st.tuples(st.booleans(), st.booleans()), st.data())
@example(Decimal("0.7"), Decimal("0.3"), (False, False), None)
def test_decimals_between_bounds(low: Any, high: Any, opened: tuple[bool, bool], data: st.DataObject | None):
    assume(low is not None or high is not None)
    automaton = _automaton(_schema(_float(low), _float(high), opened, type="number"))
    steps = st.decimals(-2, 2, places=3)
    bases = [Decimal(0), low or Decimal(1), high or Decimal(1)]
    drawn = [] if data is None else data.draw(st.lists(st.tuples(st.sampled_from(bases), steps), max_size=12))
    for value in [*bases, *(base + step for base, step in drawn)]:
        text = f"{value:f}".removeprefix("-") if not value else f"{value:f}"
        inside = (low is None or value > low or (value == low and not opened[0])) and (
            high is None or value < high or (value == high and not opened[1])
        )
        for spelling in (text, text + "00" if "." in text else text + ".00"):
            assert (automaton is not None and automaton.matches(spelling.encode())) == inside, spelling


@given(
    st.floats(allow_nan=False, allow_infinity=False) | st.none(),
    st.floats(allow_nan=False, allow_infinity=False) | st.none(),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from(["number", "integer"]),
    st.integers(0, 2**32),
)
@example(None, 1e23, (False, True), "integer", 0)
@example(1e23, None, (True, False), "number", 0)
@example(0.30000000000000004, 0.30000000000000004, (False, False), "number", 0)
@example(5e-324, None, (True, False), "number", 0)
def test_bounds_hold_for_numbers_read_as_floats(low: Any, high: Any, opened: tuple[bool, bool], kind: str, seed: int):
    schema = _schema(low, high, opened, type=kind)
    automaton = _automaton(schema)
    source = random.Random(seed)
    for _ in range(5 if automaton is not None else 0):
        assert automaton is not None
        output = draw(automaton, source)
        assert is_valid(schema, json.loads(output)), output
        exact = Fraction(output.decode())
        assert low is None or exact > Fraction(repr(low)) or (exact == Fraction(repr(low)) and not opened[0])
        assert high is None or exact < Fraction(repr(high)) or (exact == Fraction(repr(high)) and not opened[1])


def test_numbers_below_a_large_bound_have_any_fraction():
    automaton = automaton_of({"type": "number", "minimum": 0, "maximum": 1e12})
    for text in ("3.14159265", "0.1", "0.30000000000000004", "999999999999.5", "1000000000000", "1000000000000.0"):
        assert automaton.matches(text.encode()), text
    automaton = automaton_of({"type": "number", "minimum": -0.5, "maximum": 1e22})
    for text in ("8.5", "-0.5", "0.000001", "1234567890.5", "9999999999999999999999", "10000000000000000000000"):
        assert automaton.matches(text.encode()), text
    for text in ("-0.500001", "-0.50000000000000000001", "10000000000000000000001", "10000000000000000000000.5"):
        assert not automaton.matches(text.encode()), text


@given(
    st.none() | any_bounds,
    st.none() | any_bounds,
    st.tuples(st.booleans(), st.booleans()),
    st.lists(st.sampled_from(["low", "high"]) | st.integers(-(10**15) + 1, 10**15 - 1), max_size=3),
    st.lists(st.tuples(st.integers(-(10**15) + 1, 10**15 - 1), st.integers(0, 15)), min_size=12, max_size=12),
)
@example(0, 1e12, (False, False), [], [(314159265, 8)])
@example(0, None, (True, False), [5], [(500000000000001, 14)])
@example(1, None, (False, False), ["low"], [])
def test_every_decimal_of_15_digits_between_bounds(
    low: Any, high: Any, opened: tuple[bool, bool], out: list[Any], numbers: list[tuple[int, int]]
):
    assume(low is not None or high is not None)
    excluded = [{"low": low, "high": high}.get(value, value) for value in out]
    schema = _schema(low, high, opened, type="number", **({"not": {"enum": excluded}} if excluded else {}))
    automaton = _automaton(schema)
    given_values = [Decimal(str(value)) + 0 for value in (low, high, *excluded) if value is not None]
    for value in [*given_values, *(Decimal(digits).scaleb(-places) for digits, places in numbers)]:
        text = f"{value or Decimal(0):f}"
        is_exact = all(bound is None or abs(bound) < 2**53 for bound in (low, high))
        matches = automaton is not None and automaton.matches(text.encode())
        assert matches == is_valid(schema, json.loads(text)) or not (matches or is_exact), text


def test_bounds_that_leave_only_numbers_which_need_an_exponent():
    for bounds in ({"minimum": 1e-300, "maximum": 2e-300}, {"exclusiveMinimum": 0, "maximum": 1e-200}):
        with pytest.raises(ConstraintError, match="more than 120 digits behind the point"):
            automaton_of({"type": "number", **bounds})
    assert automaton_of({"type": "number", "minimum": 1e-300}).matches(b"0.5")
    assert automaton_of({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-30}).matches(b"0." + b"0" * 30 + b"5")


def test_a_bound_with_many_digits_is_an_output():
    schema = {"type": "number", "minimum": 0.30000000000000004, "maximum": 0.30000000000000004}
    assert automaton_of(schema).shortest() == b"0.30000000000000004"


@pytest.mark.parametrize("step", [2, 3, 4, 5, 6, 7, 8, 12, 15, 20, 25, 60, 64, 100, 125, 128, 250, 365, 1000, 3600])
def test_multiples(step: int):
    automaton = automaton_of({"type": "integer", "multipleOf": step})
    for number in [*range(3 * step + 30), *range(10**5, 10**5 + 2 * step), *range(-3 * step, 0)]:
        assert automaton.matches(str(number).encode()) == (number % step == 0)
    assert not automaton.matches(b"0" + str(step).encode())
    assert not automaton.matches(b"-0")


@settings(max_examples=max(8, settings.default.max_examples // 3))  # type: ignore[union-attr]
@given(
    st.one_of(
        st.decimals("0.001", 20, places=3), st.decimals("0.1", 400, places=1), st.sampled_from([Decimal("1e-9")])
    ),
    st.lists(st.tuples(st.integers(-(10**6), 10**6), st.sampled_from(["0", "0.1", "0.01", "0.0005"])), min_size=20),
    st.sampled_from([{}, {"minimum": -3}, {"exclusiveMaximum": 1000.5}]),
)
@example(Decimal("0.01"), [(1999, "0")], {})
def test_multiples_are_those_of_decimals(step: Decimal, near: list[tuple[int, str]], bounds: dict[str, Any]):
    schema = {"type": "number", "multipleOf": float(step), **bounds}
    values = [float(factor * step + Decimal(more)) for factor, more in near]
    try:
        automaton = automaton_of(schema)
        for value in values:
            text = f"{Decimal(repr(value)):f}"
            if len(text.strip("-").replace(".", "")) <= 15 and value:
                assert automaton.matches(text.removesuffix(".0").encode()) == is_valid(schema, value), text
    except ConstraintError as error:  # its rows are made as they are needed: some steps cost more than is allowed
        if not re.search("too many steps at one place$|too large an automaton|steps to combine$", error.cause):
            raise


def test_zeros_may_end_a_multiple():
    automaton = automaton_of({"type": "number", "multipleOf": 0.01})
    for text in ("19.99", "19.9", "19.90", "19.00", "19", "0", "0.00", "-0.07"):
        assert automaton.matches(text.encode()), text
    for text in ("19.999", "19.990", "-0", "-0.00", "019.9", "1e2", "19."):
        assert not automaton.matches(text.encode()), text


@pytest.mark.parametrize("step", [0.5, 1.5, 0.01])
def test_whole_multiples_of_a_fraction_can_be_divided_by_a_float(step: float):
    automaton = automaton_of({"type": "integer", "multipleOf": step})
    assert automaton.matches(b"999999999999999")
    assert not automaton.matches(b"1" + b"0" * 400)


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (997, "dividing by 997 leaves 997 remainders after each of 15 digits"),
        (86400, "dividing by 86400 leaves 86400 remainders"),
        (1e-12, "they have more than 10 digits behind the point"),
    ],
)
def test_multiples_that_need_too_many_nodes(step: float, why: str):
    with pytest.raises(ConstraintError, match=f"need too large an automaton: {why}") as caught:
        automaton_of({"type": "number", "multipleOf": step})
    assert caught.value.pointer == "/multipleOf"
    few = automaton_of({"type": "number", "multipleOf": step, "minimum": 0, "maximum": 9 * step})
    assert few.matches(f"{Decimal(repr(step)):f}".encode())


@given(
    st.integers(1, 40),
    st.none() | st.integers(-300, 300),
    st.none() | st.integers(-300, 5000),
    st.lists(st.integers(-400, 6000), min_size=20, max_size=20),
)
def test_multiples_between_bounds(step: int, low: int | None, high: int | None, numbers: list[int]):
    schema = _schema(low, high, (False, False), type="integer", multipleOf=step)
    automaton = _automaton(schema)
    for number in numbers:
        for each in (number, number - number % step):
            assert (automaton is not None and automaton.matches(str(each).encode())) == is_valid(schema, each), each


@pytest.mark.parametrize("step", [0.5, 0.25, 0.125, 1.5])
@pytest.mark.parametrize("bounds", [(-3, 3), (0.3, 700.1), (-0.5, 0.5)])
def test_multiples_of_a_binary_fraction(step: float, bounds: tuple[float, float]):
    schema = {"type": "number", "multipleOf": step, "minimum": bounds[0], "maximum": bounds[1]}
    automaton = automaton_of(schema)
    for eighths in [*range(-40, 200), *range(200, 6000, 13)]:
        value = eighths / 8
        text = str(int(value)) if value.is_integer() else str(value)
        assert automaton.matches(text.encode()) == is_valid(schema, value), value


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_excluded_numbers_are_out_in_every_spelling(kind: str):
    automaton = automaton_of({"type": kind, "not": {"enum": [0, 5, -2.5, 5.0]}})
    for text in ("0", "-0", "0.0", "-0.0", "5", "5.0", "5.00", "-2.5", "-2.50", "5e0", "0.5e1", "50e-1"):
        assert not automaton.matches(text.encode()), text
    for text in ("1", "-5", "55", "50") if kind == "integer" else ("0.1", "-5.0", "2.5", "5.01", "-2.05", "25"):
        assert automaton.matches(text.encode()), text


def test_numbers_that_are_not_whole():
    automaton = automaton_of({"type": "number", "not": {"type": "integer"}, "minimum": -1})
    for text in ("0.5", "-0.25", "12.50", "3.000001"):
        assert automaton.matches(text.encode()), text
    for text in ("1", "1.0", "-0.0", "1e2", "3.0000000000000000000001", "-1.5"):
        assert not automaton.matches(text.encode()), text


def test_what_is_no_json_number_is_never_an_output():
    for schema in ({"type": "number"}, {"type": "integer"}, {"type": "number", "minimum": -5}):
        automaton = automaton_of(schema)
        for text in ("", "-", "01", "-01", "1.", ".5", "+1", "1e", "0x1", "NaN", "Infinity", "1,5", "--1", " 1"):
            assert not automaton.matches(text.encode()), text
