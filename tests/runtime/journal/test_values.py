"""Results of tools as JSON: equal when they are read back, or not kept."""

import dataclasses
import datetime
import enum
import math
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.errors import EngineError, InputError, JournalError, LmcError, Location, ParseError, ToolTimeoutError
from lmc.ir.usage import Usage
from lmc.runtime.journal.values import (
    NotKeptError,
    arguments_text,
    error_in,
    error_text,
    value_of,
    value_text,
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=20)
keys = st.none() | st.booleans() | st.integers() | st.text() | st.tuples(st.integers(), st.text())
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.sets(st.integers() | st.text(), max_size=4)
        | st.frozensets(st.text(), max_size=4)
    ),
    max_leaves=12,
)


class Point(pydantic.BaseModel):
    x: int
    tags: tuple[str, ...] = ()


@dataclasses.dataclass
class Pair:
    left: str
    right: list[float]


class Colour(enum.Enum):
    RED = "red"


class MyList(list[int]):
    pass


class OwnError(Exception):
    pass


def shape(value: Any) -> Any:
    """A value with its types, in which NaN equals itself."""
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else repr(value)
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape(entry) for entry in value]
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(entry)) for key, entry in value.items()]
    return type(value).__name__, value


@given(plain)
def test_plain_values_are_read_back_as_they_were(value: Any):
    assert shape(value_of(value_text(value, None), None)) == shape(value)


@pytest.mark.parametrize(
    ("value", "returns"),
    [
        (Point(x=1, tags=("a",)), Point),
        (Pair("a", [1.5]), Pair),
        ([Point(x=1)], list[Point]),
        (Colour.RED, Colour),
        (datetime.date(2026, 1, 2), datetime.date),
        (None, Point | None),
    ],
)
def test_instances_of_the_annotation_are_read_back(value: Any, returns: Any):
    again = value_of(value_text(value, returns), returns)
    assert (type(again), again) == (type(value), value)


@pytest.mark.parametrize(
    ("value", "returns"),
    [
        (object(), None),
        (object(), object),
        (Point(x=1), None),
        (Point(x=1), Pair),
        (MyList([1]), None),
        (MyList([1]), MyList),
        ([(1, 2), Point(x=1)], Any),
        (lambda: 0, None),
        (10**5000, None),
        ("x" * (1 << 25), str),
    ],
    ids=range(10),
)
def test_values_that_would_not_be_the_same_are_not_kept(value: Any, returns: Any):
    with pytest.raises(NotKeptError):
        value_text(value, returns)


def test_a_value_that_holds_itself_is_not_kept():
    value: list[Any] = []
    value.append(value)
    with pytest.raises(NotKeptError):
        value_text(value, None)
    assert arguments_text((value,), {})


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a"),
        KeyError("a"),
        ValueError(),
        ZeroDivisionError("x", 3),
        FileNotFoundError(2, "gone", "file"),
        ConnectionRefusedError(111, "refused"),
        ToolTimeoutError("late", remedy="wait", location=Location("a.py", 3, 7)),
        InputError("wrong"),
    ],
)
def test_exceptions_of_python_and_of_lmc_are_raised_again(error: Exception):
    again = error_in(error_text(error))
    assert (type(again), again.args, str(again)) == (type(error), error.args, str(error))
    assert vars(again) == vars(error)


def with_usage(error: LmcError) -> LmcError:
    error.usage = Usage(calls=1)
    return error


@pytest.mark.parametrize(
    "error",
    [
        OwnError("a"),
        ValueError(object()),
        OSError(18, "other device", "file", None, "file 2"),
        JournalError("closed"),
        with_usage(EngineError("busy")),
        ParseError("wrong", remedy="", location=Location("a", 1), column=1, excerpt=""),
    ],
)
def test_other_exceptions_are_not_kept(error: Exception):
    with pytest.raises(NotKeptError):
        raise ValueError(error_text(error))


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "eval", "arguments": []}',
        '{"error": "SystemExit", "arguments": []}',
        '{"error": "Location", "arguments": ["a", 1]}',
        '{"error": "JournalError", "arguments": ["a", null]}',
        '{"error": "InputError", "arguments": []}',
        "[]",
        '{"error": 1}',
        "{",
        "[" * 10**5,
    ],
)
def test_other_names_than_those_of_exceptions_are_refused(text: str):
    with pytest.raises(ValueError, match=r".*"):
        error_in(text)


@pytest.mark.parametrize(
    "text", ['{"$":"class","of":1}', '{"$":"typed","of":1}', '{"$":"bytes","of":1}', '{"$":"dict"}', "["]
)
def test_texts_that_no_value_has_are_refused(text: str):
    with pytest.raises(ValueError, match=r".*"):
        value_of(text, None)


def test_arguments_that_differ_have_other_texts():
    assert arguments_text((1,), {}) != arguments_text((True,), {}) != arguments_text((1.0,), {})
    assert arguments_text(([1],), {"a": Point(x=1)}) == arguments_text(([1],), {"a": Point(x=1)})
    assert arguments_text((Point(x=1),), {}) != arguments_text((Point(x=2),), {})
    assert arguments_text((object(),), {}) == arguments_text((object(),), {})
