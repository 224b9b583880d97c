import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.index import indexing as module
from lmc.grammar.index.indexing import Columns, byte_columns, forced_bytes
from lmc.grammar.native.library import library
from tests.grammar.token_cases import random_rows

NATIVE = [pytest.param(True, marks=pytest.mark.skipif(library() is None, reason="no C compiler")), False]
SHAPES = st.tuples(st.integers(0, 2**32), st.integers(1, 30), st.floats(0, 1), st.integers(1, 12))


def columns_of(rows: np.ndarray, native: bool) -> Columns:
    with pytest.MonkeyPatch.context() as patch:
        if not native:
            patch.setattr(module, "library", lambda: None)
        return byte_columns(rows)


@pytest.mark.parametrize("native", NATIVE)
@given(SHAPES)
def test_columns_say_what_the_rows_do(native: bool, shape: tuple[int, int, float, int]) -> None:
    seed, states, live, classes = shape
    rows = random_rows(seed, states, states, live, classes)
    columns = columns_of(rows, native)
    numbers = {old: new for new, old in enumerate(columns.order.tolist())}
    for new, old in enumerate(columns.order.tolist()):
        for byte in range(256):
            each = columns.classes[byte]
            found = -1 if each < 0 else columns.values[each, new]
            assert found == numbers.get(int(rows[old, byte]), -1)


@pytest.mark.parametrize("native", NATIVE)
@given(SHAPES)
def test_bytes_are_a_class_where_their_columns_are_equal(native: bool, shape: tuple[int, int, float, int]) -> None:
    seed, states, live, classes = shape
    rows = random_rows(seed, states, states, live, classes)
    columns = columns_of(rows, native)
    known: dict[bytes, int] = {}
    for byte in range(256):
        column = rows[:, byte]
        expected = -1 if (column < 0).all() else known.setdefault(column.tobytes(), len(known))
        assert columns.classes[byte] == expected


@pytest.mark.parametrize("native", NATIVE)
@given(SHAPES)
def test_states_are_numbered_breadth_first_by_bytes(native: bool, shape: tuple[int, int, float, int]) -> None:
    seed, states, live, classes = shape
    rows = random_rows(seed, states, states, live, classes)
    order = [0]
    for state in order:
        for following in rows[state].tolist():
            if following >= 0 and following not in order:
                order.append(following)
    assert columns_of(rows, native).order.tolist() == order


@given(SHAPES)
def test_forced_bytes_are_the_only_ones(shape: tuple[int, int, float, int]) -> None:
    seed, states, live, classes = shape
    rows = random_rows(seed, states, states, live, classes)
    if seed % 2:
        rows[:, 1:] = np.where(np.random.default_rng(seed).random((states, 255)) < 0.01, rows[:, 1:], -1)
    columns = byte_columns(rows)
    accepting = np.random.default_rng(seed).random(len(columns.order)) < 0.3
    found, deltas = forced_bytes(columns, accepting)
    numbers = {old: new for new, old in enumerate(columns.order.tolist())}
    for new, old in enumerate(columns.order.tolist()):
        (possible,) = np.nonzero(rows[old] >= 0)
        if accepting[new] or len(possible) != 1:
            assert found[new] == -1
        else:
            assert found[new] == possible[0]
            assert new + deltas[new] == numbers[int(rows[old, possible[0]])]
