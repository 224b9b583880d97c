import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.index import indexing
from lmc.grammar.index.index import COLUMN, END, NEVER
from lmc.grammar.index.indexing import TransitionTable, byte_columns, token_table
from lmc.grammar.native.library import library
from lmc.grammar.vocabulary.trie import Trie
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import byte_tokens, funnel_rows, random_rows

NATIVE = [pytest.param(True, marks=pytest.mark.skipif(library() is None, reason="no C compiler")), False]


def random_trie(seed: int, count: int) -> Trie:
    chance = np.random.default_rng(seed)
    words = [chance.integers(0, 256, chance.integers(1, 5)).astype(np.uint8).tobytes() for _ in range(count)]
    return Trie([*words, *byte_tokens(), *words[: count // 4]])


def made(trie: Trie, rows: np.ndarray, accepting: np.ndarray, native: bool) -> TransitionTable:
    columns = byte_columns(rows)
    with pytest.MonkeyPatch.context() as patch:
        if not native:
            patch.setattr(indexing, "library", lambda: None)
        return token_table(trie, columns, accepting[columns.order], all_bytes=True)


def without_dead_ends(rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and acceptance in which each state that is reached can accept in the end, as in an automaton."""
    accepting = np.random.default_rng(seed + 1).random(len(rows)) < 0.2
    accepting[0] = True
    alive = accepting.copy()
    while (more := ((rows >= 0) & alive[rows]).any(axis=1) & ~alive).any():
        alive |= more
    return np.where(alive[rows] & (rows >= 0), rows, -1).astype(np.int32), accepting


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Trie]:
    seed = draw(st.integers(0, 2**32))
    if draw(st.booleans()):
        rows = funnel_rows(seed)
    else:
        states = draw(st.integers(1, 60))
        rows = random_rows(seed, states, states, draw(st.floats(0.05, 1)), draw(st.integers(1, 14)))
    return *without_dead_ends(rows, seed), random_trie(seed, 60)


@pytest.mark.parametrize("native", NATIVE)
@given(cases())
def test_the_table_says_where_every_token_leads(native: bool, case: tuple[np.ndarray, np.ndarray, Trie]) -> None:
    rows, accepting, trie = case
    table = made(trie, rows, accepting, native)
    order = byte_columns(rows).order
    numbers = np.full(len(rows) + 1, -1)
    numbers[order] = np.arange(len(order))
    columns = {}
    for token, text in spelled(trie).items():
        column = np.arange(len(rows))
        for byte in text:
            column = np.where(column >= 0, rows[column, byte], -1)
        columns[token] = numbers[column[order]]
    for new, old in enumerate(order.tolist()):
        steps = dict(entries(table, int(table.row_of_state[new])))
        assert list(steps) == sorted(steps)
        assert (END in steps) == bool(accepting[old])
        assert steps.get(END, 0) == 0
        for token, column in columns.items():
            step = steps.get(int(table.class_of_token[token]))
            assert column[new] == (-1 if step is None else new + step)
    by_column: dict[bytes, int] = {}
    for token in trie.sorted_ids.tolist():
        expected = NEVER if (columns[token] < 0).all() else None
        if expected is None:
            expected = by_column.setdefault(columns[token].tobytes(), len(by_column) + END + 1)
        assert table.class_of_token[token] == expected


def sliced(starts: np.ndarray, data: np.ndarray, at: int) -> tuple[int, ...]:
    return tuple(data[int(starts[at]) : int(starts[at + 1])].tolist())


def entries(table: TransitionTable, row: int) -> list[tuple[int, int]]:
    """The classes that a row allows, in its order, each with where it leads."""
    places = np.concatenate([[0], np.cumsum([int(bits).bit_count() for bits in table.bits_of_block])])
    targets = sliced(table.target_starts, table.deltas, row)
    found: list[tuple[int, int]] = []
    for block in sliced(table.block_starts, table.blocks, int(table.shape_of_row[row])):
        bits, first = int(table.bits_of_block[block]), int(table.column_of_block[block]) * COLUMN
        numbers = [first + bit for bit in range(COLUMN) if bits >> bit & 1]
        found += [
            (number, targets[at]) for number, at in zip(numbers, sliced(places, table.places, block), strict=True)
        ]
    return found


@pytest.mark.parametrize("native", NATIVE)
@given(cases())
def test_what_is_equal_is_kept_once(native: bool, case: tuple[np.ndarray, np.ndarray, Trie]) -> None:
    table = made(case[2], *case[:2], native)
    places = np.concatenate([[0], np.cumsum([int(bits).bit_count() for bits in table.bits_of_block])])
    shapes = [sliced(table.block_starts, table.blocks, at) for at in range(len(table.mask_of_shape))]
    held = list(zip(table.column_of_block.tolist(), table.bits_of_block.tolist(), strict=True))
    for many in (
        shapes,
        [(held[at], sliced(places, table.places, at)) for at in range(len(held))],
        [
            (table.shape_of_row[at], sliced(table.target_starts, table.deltas, at))
            for at in range(len(table.shape_of_row))
        ],
    ):
        assert len(set(many)) == len(many)
    masks = {
        tuple(held[block] for block in shape): number for shape, number in zip(shapes, table.mask_of_shape, strict=True)
    }
    assert sorted(masks.values()) == list(range(len(masks)))
    for array, count in (
        (table.row_of_state, len(table.shape_of_row)),
        (table.shape_of_row, len(shapes)),
        (table.blocks, len(held)),
    ):
        numbers = list(dict.fromkeys(array.tolist()))
        assert numbers == list(range(count))  # in the order in which they are met


def spelled(trie: Trie) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    path = b""
    for _, first, label in trie.nodes.tolist():
        path = path[: max((label >> 9) - 1, 0)] + bytes((label & 0xFF,)) * (label > 0x1FF)
        token = first
        while token >= 0:
            found[token] = path
            token = int(trie.same[token])
    return found


@pytest.mark.skipif(library() is None, reason="no C compiler")
@given(cases())
def test_the_table_is_the_same_without_a_compiler(case: tuple[np.ndarray, np.ndarray, Trie]) -> None:
    rows, accepting, trie = case
    for one, other in zip(*(made(trie, rows, accepting, native) for native in (True, False)), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("native", NATIVE)
def test_tokens_that_come_to_the_same_by_different_ways_are_one_class(native: bool) -> None:
    states = np.arange(200)
    rows = np.full((200, 256), -1, np.int32)
    rows[:-1, ord("a")] = states[1:]
    rows[:, ord("x")] = np.where(states < 100, 0, 1)
    rows[:, ord("y")] = np.where(states < 100, 0, np.where(states == 150, 2, 1))
    rows[0, ord("z")] = 5
    table = made(Trie([b"xz", b"yz", b"x", b"y", b"xzx"]), rows, np.ones(200, np.bool_), native)
    assert table.class_of_token.tolist() == [END + 2, END + 2, END + 1, END + 4, END + 3]


@pytest.mark.parametrize("native", NATIVE)
@pytest.mark.parametrize("budget", ["MAX_WORK", "MAX_ROWS", "MAX_ENTRIES"])
def test_a_table_that_is_too_large_is_refused(native: bool, budget: str, monkeypatch) -> None:
    rows, accepting = without_dead_ends(random_rows(5, 50, 50, 0.9, 5), 5)
    monkeypatch.setattr(indexing, budget, 100)
    with pytest.raises(ConstraintError, match=r"too large\n  remedy: use it without building the index"):
        made(random_trie(5, 40), rows, accepting, native)
