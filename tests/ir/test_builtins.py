from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmc.ir.builtins import builtins
from lmc.ir.errors import CaptureError, InputError
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, ListType, Type, json_of, list_of, type_of

texts = st.text(st.sampled_from("ab1 ,é\n{}%s"), max_size=6)
numbers = st.integers(-5, 20)
floats = st.floats(-10, 10)
lists = st.one_of(st.lists(texts, max_size=3), st.lists(numbers, max_size=3))
values = st.one_of(st.none(), st.booleans(), numbers, floats, texts, lists)


RAISED = (
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    NameError,
    AssertionError,
    CaptureError,
    InputError,
)


def fits(value: Any, kind: Type) -> bool:
    """Whether a value is of a type. A tuple counts as a list, and a bool as an int, as Python has it."""
    if kind == ANY:
        return True
    if isinstance(kind, ListType):
        return isinstance(value, list | tuple) and all(fits(entry, kind.element) for entry in value)
    expected = {TEXT: str, INT: int, FLOAT: float, BOOL: bool, NONE: type(None)}.get(kind)
    return expected is not None and isinstance(value, expected)


# How many arguments those take that may be safe; any number where it is not said.
UNARY = ("str", "repr", "ascii", "bool", "not", "neg", "pos", "abs", "len")
BINARY = ("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "is", "is_not", "add", "sub")
ARITIES = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2), "choose": 3}


def arguments_for(name: str) -> st.SearchStrategy[list[Any]]:
    if name.startswith("str."):
        rest = st.one_of(texts, numbers, lists) if name in ("str.join", "str.format") else st.one_of(texts, numbers)
        return st.builds(lambda text, more: [text, *more], texts, st.lists(rest, max_size=2))
    arity = ARITIES.get(name)
    return st.lists(values, min_size=arity or 0, max_size=3 if arity is None else arity)


@settings(max_examples=max(10, settings().max_examples // 5))  # of each of about a hundred builtins
@given(st.data())
@pytest.mark.parametrize("name", builtins.names())
def test_what_a_builtin_gives_is_of_its_result_type(name: str, data: st.DataObject):
    builtin = builtins.lookup(name)
    assert builtin is not None
    arguments = data.draw(arguments_for(name))
    types = [type_of(argument) for argument in arguments]
    expected = builtin.result_type(types)
    if not builtin.may_raise(types):
        assert fits(builtin.run(*arguments), expected)
        return
    try:
        found = builtin.run(*arguments)
    except RAISED:
        return
    assert fits(found, expected), (arguments, found, expected)


@pytest.mark.parametrize("name", ["min_by", "max_by"])
def test_what_is_given_for_no_elements_may_be_of_another_type(name: str):
    builtin = builtins.lookup(name)
    assert builtin is not None
    assert builtin.result_type([TEXT, list_of(INT)]) == TEXT
    assert builtin.result_type([TEXT, list_of(INT), TEXT]) == TEXT
    assert builtin.result_type([TEXT, list_of(INT), NONE]) == ANY
    assert builtin.run("", [], None) is None


@dataclasses.dataclass
class Point:
    x: int

    def moved(self) -> int:
        return self.x + 1


@pytest.mark.parametrize("name", ["moved", "__class__", "y", "upper"])
def test_fields_alone_can_be_read(name: str):
    field = builtins.lookup("field")
    assert field is not None
    for owner in (Point(1), "text", [1], Point):
        with pytest.raises(AttributeError, match=f"has no field '{name}'"):
            field.run(owner, name, name)
    with pytest.raises(KeyError):
        field.run({}, name, name)


class Array:
    """A value that Python can't do with what it can with its own, as arrays of other packages."""

    def __bool__(self) -> bool:
        raise ValueError("no truth value")

    def __eq__(self, other: object) -> bool:
        raise ValueError("of another shape")

    def __repr__(self) -> str:
        raise ValueError("no text")

    __hash__ = None  # type: ignore[assignment]


def deep(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


# Values that their types let through, and that as many builtins as possible raise on.
HARD: dict[Type, list[Any]] = {
    TEXT: ["", "a\ud800"],
    INT: [0, 10**5000],
    FLOAT: [0.0, float("nan"), float("inf")],
    BOOL: [False],
    NONE: [None],
    list_of(TEXT): [[], ["a"]],
    list_of(INT): [[], [10**5000]],
    list_of(ANY): [[Array()], deep(100_000)],
    json_of("s"): [{}, deep(100_000)],
    ANY: [Array()],
}


@pytest.mark.parametrize("name", builtins.names())
def test_what_is_said_never_to_raise_never_does(name: str):
    builtin = builtins.lookup(name)
    assert builtin is not None
    for count in range(4):
        for types in itertools.product(HARD, repeat=count):
            if builtin.may_raise(types):
                continue
            for arguments in itertools.product(*(HARD[kind] for kind in types)):
                builtin.run(*arguments)


@pytest.mark.parametrize(
    ("name", "types", "raises"),
    [
        ("str", (TEXT,), False),
        ("str", (INT,), True),
        ("repr", (list_of(TEXT),), False),
        ("repr", (list_of(INT),), True),
        ("ascii", (json_of("s"),), True),
        ("str", (), True),
        ("eq", (INT, TEXT), False),
        ("eq", (list_of(list_of(INT)), list_of(INT)), False),
        ("eq", (INT, ANY), True),
        ("eq", (INT,), True),
        ("not", (list_of(ANY),), False),
        ("bool", (ANY,), True),
        ("and", (TEXT, ANY), False),
        ("or", (ANY, TEXT), True),
        ("choose", (BOOL, ANY, ANY), False),
        ("choose", (ANY, TEXT, TEXT), True),
        ("is", (ANY, ANY), False),
        ("is", (ANY,), True),
        ("list", (ANY,) * 9, False),
        ("set", (ANY,), True),
        ("int", (TEXT,), True),
        ("lt", (INT, FLOAT), False),
        ("ge", (TEXT, TEXT), False),
        ("le", (TEXT, INT), True),
        ("gt", (list_of(INT), list_of(INT)), True),
        ("add", (INT, BOOL), False),
        ("add", (INT, FLOAT), True),
        ("add", (list_of(INT), list_of(TEXT)), False),
        ("sub", (FLOAT, FLOAT), False),
        ("sub", (TEXT, TEXT), True),
        ("neg", (INT,), False),
        ("abs", (TEXT,), True),
        ("len", (list_of(ANY),), False),
        ("len", (ANY,), True),
        ("str.upper", (TEXT,), False),
        ("str.strip", (TEXT, TEXT), False),
        ("str.split", (TEXT,), False),
        ("str.split", (TEXT, TEXT), True),
        ("str.index", (TEXT, TEXT), True),
        ("str.startswith", (TEXT,), True),
    ],
)
def test_which_types_may_raise(name: str, types: tuple[Type, ...], raises: bool):
    builtin = builtins.lookup(name)
    assert builtin is not None
    assert builtin.may_raise(types) is raises
    assert builtin.may_raise(types, ("key",))


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("eq", ("a", "a"), True),
        ("lt", (1, 2), True),
        ("str.upper", ("a",), "A"),
        ("str.split", ("a b",), ["a", "b"]),
        ("str.join", (", ", ["a", "b"]), "a, b"),
        ("str.format", ("{}-{:.1f}", "a", 0.25), "a-0.2"),
        ("percent", ("%s-%d", "a", 3), "a-3"),
        ("format", (0.5, ".2f"), "0.50"),
        ("contains", ("abc", "b"), True),
        ("slice", ("abcdef", 1, None, 2), "bdf"),
        ("getitem", (["a", "b"], -1), "b"),
        ("field", ({"k": 1}, "name", "k"), 1),
        ("field", ({}, "name", "k", 2), 2),
        ("field", (Point(3), "x", "k"), 3),
        ("and", ("", "b"), ""),
        ("or", ("", "b"), "b"),
        ("choose", (True, "a", "b"), "a"),
        ("choose", (False, "a", "b"), "b"),
        ("not", ([],), True),
        ("list", (1, 2), [1, 2]),
        ("tuple", (1, 2), (1, 2)),
        ("set", (1, 1), {1}),
        ("dict", ("a", 1, "b", 2), {"a": 1, "b": 2}),
        ("enumerate", (["a"], 1), [(1, "a")]),
        ("zip", ([1, 2], "ab"), [(1, "a"), (2, "b")]),
        ("reversed", ([1, 2],), [2, 1]),
        ("is", (None, None), True),
        ("is_not", (1, None), True),
        ("text", ("a",), "a"),
    ],
)
def test_results(name: str, arguments: tuple[Any, ...], result: Any):
    builtin = builtins.lookup(name)
    assert builtin is not None
    found = builtin.run(*arguments)
    assert found == result
    assert type(found) is type(result)


def test_keywords():
    ordered = builtins.lookup("sorted")
    zipped = builtins.lookup("zip")
    assert ordered is not None
    assert zipped is not None
    assert ordered.run([1, 2], reverse=True) == [2, 1]
    with pytest.raises(ValueError, match="shorter"):
        zipped.run([1, 2], [1], strict=True)


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("add", (INT, INT), INT),
        ("add", (INT, FLOAT), FLOAT),
        ("add", (BOOL, BOOL), INT),
        ("add", (TEXT, TEXT), TEXT),
        ("add", (list_of(INT), list_of(INT)), list_of(INT)),
        ("add", (TEXT, ANY), ANY),
        ("mul", (TEXT, INT), TEXT),
        ("mul", (INT, FLOAT), FLOAT),
        ("mul", (TEXT, ANY), ANY),
        ("truediv", (INT, INT), FLOAT),
        ("truediv", (ANY, INT), ANY),
        ("mod", (TEXT, ANY), TEXT),
        ("mod", (INT, INT), INT),
        ("getitem", (list_of(FLOAT), INT), FLOAT),
        ("getitem", (TEXT, INT), TEXT),
        ("getitem", (), ANY),
        ("slice", (list_of(FLOAT), INT, INT, INT), list_of(FLOAT)),
        ("neg", (BOOL,), ANY),
        ("abs", (FLOAT,), FLOAT),
        ("max", (list_of(INT),), INT),
        ("max", (INT, INT), INT),
        ("max", (INT, FLOAT), ANY),
        ("sorted", (TEXT,), list_of(TEXT)),
        ("sorted", (ANY,), list_of(ANY)),
        ("list", (INT, INT), list_of(INT)),
        ("list", (INT, TEXT), list_of(ANY)),
        ("choose", (BOOL, TEXT, TEXT), TEXT),
        ("choose", (BOOL, TEXT, INT), ANY),
    ],
)
def test_result_types(name: str, types: tuple[Type, ...], result: Type):
    builtin = builtins.lookup(name)
    assert builtin is not None
    assert builtin.result_type(types) == result


def test_appending_what_is_no_text_is_refused():
    builtin = builtins.lookup("text")
    assert builtin is not None
    with pytest.raises(CaptureError, match="the program appends an int, text is needed"):
        builtin.run(1)


def test_names_are_sorted_and_found():
    assert list(builtins.names()) == sorted(builtins.names())
    assert builtins.lookup("eval") is None


@pytest.mark.parametrize(
    ("count", "cause"),
    [(-1, "fork(-1)"), (-2, "fork(-2)"), ("two", "fork('two'): n is a str"), (True, "fork(True): n is a bool")],
)
def test_branches_are_a_whole_number_of_them(count: Any, cause: str):
    builtin = builtins.lookup("branch_count")
    assert builtin is not None
    assert [builtin.run(0), builtin.run(2)] == [0, 2]
    with pytest.raises(CaptureError) as caught:
        builtin.run(count)
    assert caught.value.cause == cause
    assert caught.value.remedy == "fork into a whole number of branches, at least 0"


def test_a_branch_is_found_from_both_ends():
    builtin = builtins.lookup("branch_index")
    assert builtin is not None
    assert [builtin.run(3, index) for index in (0, 2, -1, -3)] == [0, 2, 2, 0]
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"the fork has 3 branches, none at {index}"):
            builtin.run(3, index)
    with pytest.raises(CaptureError, match=r"branches\[1.5\]"):
        builtin.run(3, 1.5)


def test_lengths_are_checked_as_zip_does():
    builtin = builtins.lookup("check_lengths")
    assert builtin is not None
    builtin.run(2, 2, 2)
    for lengths in ((1, 2), (3, 2), (2, 2, 5)):
        with pytest.raises(ValueError, match="zip") as caught:
            builtin.run(*lengths)
        with pytest.raises(ValueError, match="zip") as expected:
            list(zip(*map(range, lengths), strict=True))
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("choices", ("a", "ü", "a"), '["a","ü"]'),
        ("regex", "[ab]+", "[ab]+"),
        ("grammar", 'start: "a"', 'start: "a"'),
        ("choices", [], "choices is [] (a list)"),
        ("choices", ("a", ""), "choices is ['a', ''] (a list)"),
        ("choices", {"a": 1}, "choices is {'a': 1} (a dict)"),
        ("regex", "", "regex is '' (a str)"),
        ("regex", 3, "regex is 3 (an int)"),
        ("grammar", " ", "grammar is ' ' (a str)"),
    ],
)
def test_a_definition_is_the_text_of_a_constraint(kind: str, value: Any, expected: str):
    builtin = builtins.lookup("definition")
    assert builtin is not None
    try:
        found = builtin.run(kind, value)
    except CaptureError as error:
        found = error.cause
    assert found == expected


def test_choices_are_a_list_of_texts():
    builtin = builtins.lookup("choices")
    assert builtin is not None
    assert builtin.run(["a", "b"]) == ["a", "b"]
    for value, cause in ((3, "choices is 3 (an int)"), ([], "select has no choices"), ([1], "a choice is no text")):
        with pytest.raises(CaptureError) as caught:
            builtin.run(value)
        assert cause in caught.value.cause
