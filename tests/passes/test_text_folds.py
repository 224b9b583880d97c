"""Folds of texts and values."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.builtins import builtins
from lmc.ir.core import Value
from lmc.ir.types import ANY, BOOL, INT, TEXT, Type
from lmc.passes.canonicalize import text_folds
from lmc.passes.canonicalize.text_folds import Folded, Rope, fold_call

VALUES = [Value(name, TEXT) for name in "xyz"]
leaves = st.sampled_from(["", "a", "bc", *VALUES])
ropes = st.recursive(leaves.map(lambda leaf: Rope((leaf,))), lambda inner: st.lists(inner, max_size=4).map(Rope))


def _flat(rope: Rope) -> list[str | Value]:
    return [leaf for piece in rope.pieces for leaf in (_flat(piece) if isinstance(piece, Rope) else [piece])]


@given(ropes)
def test_parts_are_the_leaves_with_adjacent_literals_joined(rope: Rope):
    flat = _flat(rope)
    parts = rope.parts()
    assert "".join(map(str, parts)) == "".join(map(str, flat))
    assert [part for part in parts if isinstance(part, Value)] == [leaf for leaf in flat if isinstance(leaf, Value)]
    assert all(isinstance(one, Value) or isinstance(other, Value) for one, other in pairwise(parts))
    assert "" not in parts


@given(ropes)
def test_what_a_rope_knows_of_itself(rope: Rope):
    flat = _flat(rope)
    assert rope.size == len(rope.parts())
    assert rope.characters == sum(len(leaf) for leaf in flat if isinstance(leaf, str))
    assert rope.is_literal == (not any(isinstance(leaf, Value) for leaf in flat))
    assert rope.is_empty == (not flat)
    assert list(rope.values()) == [leaf for leaf in flat if isinstance(leaf, Value)]
    if rope.is_literal:
        assert rope.text() == "".join(map(str, flat))


def test_a_long_chain_of_joins_is_written_without_recursion():
    rope = Rope(("a",))
    for _ in range(100_000):
        rope = Rope((rope, "b"))
    assert rope.parts() == ("a" + "b" * 100_000,)


@pytest.mark.parametrize(
    ("function", "arguments", "result", "value"),
    [
        ("add", (1, 2), INT, 3),
        ("add", ("a", "b"), TEXT, "ab"),
        ("eq", (1, True), BOOL, True),
        ("str", (True,), TEXT, "True"),
        ("mul", ("ab", 3), TEXT, "ababab"),
        ("format", (3.14159, ".2f"), TEXT, "3.14"),
        ("getitem", ("abc", 1), TEXT, "b"),
        ("pow", (2, 10), ANY, 1024),
    ],
)
def test_calls_that_fold(function: str, arguments: tuple[Any, ...], result: Type, value: Any):
    assert fold_call(function, arguments, (), result) == Folded(value)


def test_keywords_name_the_last_arguments():
    assert fold_call("int", ("ff", 16), ("base",), INT) == Folded(255)
    assert fold_call("round", (2.345, 1), ("ndigits",), ANY) == Folded(2.3)


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        ("int", ("x",), INT),  # raises
        ("getitem", ("abc", 9), TEXT),  # raises
        ("nothing", (), ANY),  # no builtin
        ("list", ("a",), ANY),  # gives no literal
        ("str.split", ("a b",), ANY),  # gives no literal
        ("add", (1, 2), TEXT),  # is not of the type the module says
        ("mul", ("x", 10**9), TEXT),
        ("mul", ("x", 65), TEXT),
        ("pow", (10, 10**9), ANY),
        ("pow", (2, 2000), ANY),
        ("round", (5, -(10**9)), ANY),
        ("str.center", ("x", 10**9), TEXT),
        ("format", ("x", "1000000000"), TEXT),
        ("percent", ("%1000000000d", 1), TEXT),
        ("mod", ("%1000000000d", 1), TEXT),
        ("str.format", ("{0:1000000000}", "x"), TEXT),
        ("str.format", ("{0:{1}{1}{1}{1}{1}}", "x", 64), TEXT),  # a width of 6464646464
        ("str.format", ("{0:{1}{1}}", "x", "9"), TEXT),
        ("str.format", ("{0.__len__}", "x"), TEXT),  # holds an address
        ("str.format", ("{0.upper}", "x"), TEXT),  # holds one too
        ("str.format", ("{", "x"), TEXT),
        ("str.format", ("{:n}", 5), TEXT),  # as the machine's locale has it
        ("format", (5, "n"), TEXT),
        ("format", ("x", 5), TEXT),
        ("str.upper", ("x" * 5000,), TEXT),  # too large to stand in a module
        ("int", ("9" * 4000,), INT),
        ("add", (2**2000, 1), INT),
    ],
)
def test_calls_that_are_left_for_run_time(function: str, arguments: tuple[Any, ...], result: Type):
    assert fold_call(function, arguments, (), result) is None


literals = st.none() | st.booleans() | st.integers(-200, 200) | st.floats() | st.text(max_size=6)


@given(st.sampled_from(builtins.names()), st.lists(literals, max_size=3))
def test_what_is_folded_is_what_running_it_gives(function: str, arguments: list[Any]):
    folded = fold_call(function, arguments, (), ANY)
    if folded is not None:
        builtin = builtins.lookup(function)
        assert builtin is not None
        assert repr(folded.value) == repr(builtin.run(*arguments))


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("str.format", ("{0!r}" * 200, "\U000e0001" * 1024)),
        ("str.replace", ("a" * 1024, "a", "b" * 1024)),
        ("str.expandtabs", ("\t" * 1024, 64)),
        ("str.expandtabs", ("\t" * 4096, 64)),
        ("percent", ("%99d" * 1000, 1)),
        ("mod", ("%r" * 1000, "\U000e0001" * 1000)),
        ("mul", ("x" * 4096, 64)),
        ("str.zfill", ("x" * 4096, 64)),
        ("pow", (64, 64, 63)),
        ("ascii", ("\U000e0001" * 4096,)),
        ("int", ("9" * 4096,)),
        ("str", (2**1024 - 1,)),
    ],
)
def test_folding_is_cheap_whatever_it_gives(function: str, arguments: tuple[Any, ...]):
    start = time.process_time()
    tracemalloc.start()
    fold_call(function, arguments, (), ANY)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400_000
    assert time.process_time() - start < 0.5


def test_the_tables_name_builtins():
    assert set(builtins.names()) >= text_folds._LINEAR | text_folds._GROWING
