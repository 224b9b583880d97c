"""Making the token index of a constraint: every state of its automaton, every token.

A token is a partial function: it maps each state that allows it to the state after it. The function of a node of the
trie is that of its parent followed by one byte, and equal functions are one. So there is one composition for each
function and each class of bytes that are alike in all states, where a walk takes a step for each node and state; tokens
with one function are a class. These functions are the part of the transition monoid of the automaton that the
vocabulary reaches. Equal parts of the table that follows are stored once.
"""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.automaton import MAX_STATES, Automaton
from lmc.grammar.automata.dfa import ranges
from lmc.grammar.index.index import COLUMN, END, NEVER, TokenIndex, smallest
from lmc.grammar.native.library import library
from lmc.grammar.vocabulary.trie import Ints, Trie
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError


class Columns(NamedTuple):
    """A complete automaton by classes of bytes that lead to the same state from every state.

    ``classes`` [256] is the class of each byte, by their lowest byte, -1 for bytes that lead nowhere. ``order`` [S] are
    the automaton's numbers of the states that can be reached, breadth first by ascending bytes, which is how they are
    numbered from here on. ``values`` [classes, S] is the state after a byte of the class, or -1.
    """

    classes: NDArray[np.int16]
    order: Ints
    values: Ints


def byte_columns(rows: Ints) -> Columns:
    """The columns of ``rows`` [S, 256], of which none is unknown."""
    native = library()
    if native is None:
        return _columns_in_numpy(rows)
    rows = np.ascontiguousarray(rows)
    classes = np.empty(256, np.int16)
    count: int = native.lmc_byte_classes(rows.ctypes.data, len(rows), classes.ctypes.data)
    lowest = _lowest_bytes(classes, count)
    order, numbers = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
    made: int = native.lmc_number_states(
        *(rows.ctypes.data, lowest.ctypes.data, count, len(rows), order.ctypes.data, numbers.ctypes.data)
    )
    values = np.empty((count, made), np.int32)
    native.lmc_columns(
        *(rows.ctypes.data, lowest.ctypes.data, count, order.ctypes.data, made),
        *(numbers.ctypes.data, values.ctypes.data),
    )
    return Columns(classes, order[:made], values)


def forced_bytes(columns: Columns, accepting: NDArray[np.bool_]) -> tuple[NDArray[np.int16], Ints]:
    """The only byte that may follow each state where the output may not end, or -1, and how far on that leads."""
    live = columns.values >= 0
    sizes = np.bincount(columns.classes[columns.classes >= 0], minlength=len(live))
    forced = (sizes @ live == 1) & ~accepting
    byte, delta = np.full(len(accepting), -1, np.int16), np.zeros(len(accepting), np.int32)
    if forced.any():
        (states,) = np.nonzero(forced)
        only = live[:, states].argmax(axis=0)
        byte[states] = _lowest_bytes(columns.classes, len(live))[only]
        delta[states] = columns.values[only, states] - states
    return byte, delta


def _lowest_bytes(classes: NDArray[np.int16], count: int) -> NDArray[np.uint8]:
    lowest = np.zeros(count, np.uint8)
    (live,) = np.nonzero(classes >= 0)
    lowest[classes[live[::-1]]] = live[::-1]
    return lowest


def _columns_in_numpy(rows: Ints) -> Columns:
    known: dict[bytes, int] = {}
    classes = np.full(256, -1, np.int16)
    for byte in np.flatnonzero((rows >= 0).any(axis=0)).tolist():
        classes[byte] = known.setdefault(rows[:, byte].tobytes(), len(known))
    narrow = rows[:, _lowest_bytes(classes, len(known))]
    numbers = np.full(len(rows), -1, np.int32)
    numbers[0] = 0
    level = np.zeros(1, np.intp)
    levels = [level]
    made = 1
    while level.size:
        reached = narrow[level].ravel()
        reached = reached[reached >= 0]
        reached = reached[numbers[reached] < 0]
        level = reached[np.sort(np.unique(reached, return_index=True)[1])].astype(np.intp)
        numbers[level] = made + np.arange(len(level))
        made += len(level)
        levels.append(level)
    order = np.concatenate(levels)
    values = narrow[order].T
    return Columns(classes, order.astype(np.int32), np.where(values < 0, np.int32(-1), numbers[values]))


MAX_ROWS = 1 << 28  # entries of the rows of all states
MAX_ENTRIES = 1 << 24  # of what differs in them


class TransitionTable(NamedTuple):
    """The parts of a ``TokenIndex``; ``class_of_token`` [V] is ``NEVER`` for EOS tokens."""

    class_of_token: Ints
    row_of_state: Ints
    shape_of_row: Ints
    target_starts: NDArray[np.int64]
    deltas: Ints
    mask_of_shape: Ints
    block_starts: NDArray[np.int64]
    blocks: Ints
    column_of_block: Ints
    bits_of_block: NDArray[np.uint32]
    places: Ints


def native_table(
    functions: int, class_of_token: Ints, function_of_class: Ints, accepting: NDArray[np.bool_]
) -> TransitionTable:
    """The table of functions of tokens, as native/functions.c keeps them.

    ``function_of_class`` is -1 where no function belongs to a class. Raises ``ConstraintError``.
    """
    native = library()
    assert native is not None
    accepts, status = accepting.astype(np.uint8), np.zeros(1, np.int32)
    table: int | None = native.lmc_table(
        *(functions, function_of_class.ctypes.data, len(function_of_class), END, accepts.ctypes.data),
        *(MAX_ROWS, MAX_ENTRIES, status.ctypes.data),
    )
    _check_status(status)
    try:
        sizes = np.empty(6, np.int64)
        native.lmc_table_sizes(table, sizes.ctypes.data)
        rows, targets, shapes, parts, blocks, places = sizes.tolist()
        made = TransitionTable(
            class_of_token,
            row_of_state=np.empty(len(accepting), np.int32),
            shape_of_row=np.empty(rows, np.int32),
            target_starts=np.empty(rows + 1, np.int64),
            deltas=np.empty(targets, np.int32),
            mask_of_shape=np.empty(shapes, np.int32),
            block_starts=np.empty(shapes + 1, np.int64),
            blocks=np.empty(parts, np.int32),
            column_of_block=np.empty(blocks, np.int32),
            bits_of_block=np.empty(blocks, np.uint32),
            places=np.empty(places, np.int32),
        )
        pointers = (ctypes.c_void_p * (len(made) - 1))(*(array.ctypes.data for array in made[1:]))
        native.lmc_table_copy(table, len(accepting), ctypes.byref(pointers))
    finally:
        native.lmc_table_free(table)
    return made


class _Numbers:
    """Sequences of numbers, equal ones with one number of their own, as in native/intern.c."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], int] = {}
        self.entries = 0

    def of(self, sequence: tuple[int, ...]) -> int:
        number = self.known.setdefault(sequence, len(self.known))
        if number == len(self.known) - 1:
            self.entries += len(sequence)
        return number

    def starting(self, at: int) -> tuple[NDArray[np.int64], Ints]:
        """Return the sequences from ``at`` on, one behind the other: bounds and numbers."""
        starts = np.zeros(len(self.known) + 1, np.int64)
        np.cumsum([len(each) - at for each in self.known], out=starts[1:])
        return starts, np.fromiter((number for each in self.known for number in each[at:]), np.int32, int(starts[-1]))

    def at(self, at: int) -> NDArray[np.int64]:
        """The number at one place of each sequence."""
        return np.fromiter((each[at] for each in self.known), np.int64, len(self.known))


def tabulated(class_of_token: Ints, classes: Ints, deltas: Ints, starts: NDArray[np.int64]) -> TransitionTable:
    """The table of states whose classes and deltas lie one state's behind the other's, as native/table.c makes it."""
    blocks, shapes, masks, rows = (_Numbers() for _ in range(4))
    mask_of_shape: list[int] = []
    row_of_state: list[int] = []
    for low, high in pairwise(starts.tolist()):
        targets, places = np.unique(deltas[low:high], return_inverse=True)
        held: dict[int, list[int]] = {}
        for number, place in zip(classes[low:high].tolist(), places.tolist(), strict=True):
            block = held.setdefault(number // COLUMN, [number // COLUMN, 0])
            block[1] |= 1 << number % COLUMN
            block.append(place)
        shape = shapes.of(tuple(blocks.of(tuple(block)) for block in held.values()))
        if shape == len(mask_of_shape):
            mask_of_shape.append(masks.of(tuple(number for block in held.values() for number in block[:2])))
        row_of_state.append(rows.of((shape, *targets.tolist())))
        if high > MAX_ROWS or rows.entries + shapes.entries + blocks.entries > MAX_ENTRIES:
            raise too_large()
    target_starts, deltas = rows.starting(1)
    block_starts, of_shapes = shapes.starting(0)
    return TransitionTable(
        class_of_token,
        row_of_state=np.array(row_of_state, np.int32),
        shape_of_row=rows.at(0).astype(np.int32),
        target_starts=target_starts,
        deltas=deltas,
        mask_of_shape=np.array(mask_of_shape, np.int32),
        block_starts=block_starts,
        blocks=of_shapes,
        column_of_block=blocks.at(0).astype(np.int32),
        bits_of_block=blocks.at(1).astype(np.uint32),
        places=blocks.starting(2)[1],
    )


def _check_status(status: Ints) -> None:
    """Raise what the status of a native function says."""
    if status[0] == 1:
        raise too_large()
    if status[0]:
        raise MemoryError


def too_large() -> ConstraintError:
    """Return the error for a constraint whose token index would not fit."""
    return ConstraintError(
        "the token index of the constraint would be too large",
        remedy="use it without building the index, or give smaller bounds, ASCII classes, or fewer alternatives",
    )


MAX_WORK = 1 << 28  # pairs of states looked at to compute functions


def token_table(trie: Trie, columns: Columns, accepting: NDArray[np.bool_], *, all_bytes: bool) -> TransitionTable:
    """Return the tokens allowed in each state.

    Args:
        trie: the tokens.
        columns: the automaton.
        accepting: whether the output may end, by state (their numbers are those of ``columns``).
        all_bytes: whether each byte is a token, so that no step leads where tokens can't go on to an end.

    Raises:
        ConstraintError: the table would be too large, or no output can be written in these tokens.
    """
    native = library()
    if native is None or not all_bytes:
        return _table_in_numpy(trie, columns, accepting)
    of_token, status = np.full(trie.size, -1, np.int32), np.zeros(1, np.int32)
    path = np.empty(trie.longest + 1, np.int32)
    functions: int | None = native.lmc_functions(
        *(array.ctypes.data for array in (trie.nodes, trie.same, columns.classes, columns.values)),
        *(len(columns.order), MAX_WORK),
        *(array.ctypes.data for array in (path, of_token, status)),
    )
    _check_status(status)
    try:
        count: int = native.lmc_functions_count(functions)
        used, equal = np.zeros(count, np.uint8), np.empty(count, np.int32)
        used[of_token[of_token >= 0]] = 1
        if not native.lmc_functions_equal(functions, used.ctypes.data, equal.ctypes.data):
            raise MemoryError
        class_of_token, function_of_class = _classes(np.where(of_token < 0, -1, equal[of_token]), count, trie)
        assert functions is not None
        return native_table(functions, class_of_token, function_of_class, accepting)
    finally:
        native.lmc_functions_free(functions)


def unwritable() -> ConstraintError:
    """Return the error for a constraint whose outputs the tokens can't write."""
    return ConstraintError(
        "no output of this constraint can be written with this vocabulary",
        remedy="use a vocabulary with a token for each byte, or allow other texts",
    )


def _classes(of_token: Ints, count: int, trie: Trie) -> tuple[Ints, Ints]:
    """The class of each token, and the function of each class (-1 for the two that have none).

    ``of_token`` has for each token one of ``count`` functions, or -1.
    """
    met = of_token[trie.sorted_ids]
    met = met[met >= 0]
    firsts = np.full(count, len(met), np.int64)
    firsts[met[::-1]] = np.arange(len(met))[::-1]
    functions = np.argsort(firsts, kind="stable")[: int((firsts < len(met)).sum())]
    numbers = np.full(count + 1, NEVER, np.int32)  # the last one for tokens without a function
    numbers[functions] = END + 1 + np.arange(len(functions))
    return numbers[of_token], np.concatenate([np.full(END + 1, -1), functions]).astype(np.int32)


class _Functions(NamedTuple):
    """Function f maps ``states[i]`` to ``nexts[i]`` for i from ``starts[f]`` to ``starts[f + 1]``."""

    of_token: Ints
    starts: NDArray[np.int64]
    states: Ints
    nexts: Ints


def _table_in_numpy(trie: Trie, columns: Columns, accepting: NDArray[np.bool_]) -> TransitionTable:
    functions = _without_dead_ends(_functions(trie, columns), accepting)
    class_of_token, chosen = _classes(functions.of_token, len(functions.starts) - 1, trie)
    chosen = chosen[END + 1 :]
    bounds, positions = chosen_slices(functions.starts, chosen)
    # Every pair of a state and a class that it allows, by state and then class.
    (ends,) = np.nonzero(accepting)
    states = np.concatenate([ends, functions.states[positions]])
    numbers = np.repeat(np.arange(len(chosen)) + END + 1, np.diff(bounds))
    order = np.argsort(states, kind="stable")
    classes = np.concatenate([np.full(len(ends), END), numbers])[order].astype(np.int32)
    deltas = (np.concatenate([ends, functions.nexts[positions]]) - states)[order].astype(np.int32)
    starts = np.zeros(len(accepting) + 1, np.int64)
    np.cumsum(np.bincount(states, minlength=len(accepting)), out=starts[1:])
    return tabulated(class_of_token, classes, deltas, starts)


def _functions(trie: Trie, columns: Columns) -> _Functions:
    identity = np.arange(len(columns.order), dtype=np.int32)
    made: list[tuple[Ints, Ints]] = [(identity, identity)]
    known = {(identity.tobytes(), identity.tobytes()): 0}
    of_token = np.full(trie.size, -1, np.int32)
    work = 0
    nodes, functions = np.zeros(1, np.int32), np.zeros(1, np.int64)
    while nodes.size:
        counts, children = trie.children(nodes)
        classes = columns.classes[trie.bytes[children]]
        keys, inverse = np.unique(np.repeat(functions, counts) << 8 | np.maximum(classes, 0), return_inverse=True)
        used = np.zeros(len(keys), np.bool_)
        used[inverse[classes >= 0]] = True
        results = np.full(len(keys), -1, np.int64)
        for at in np.flatnonzero(used).tolist():
            states, nexts = made[keys[at] >> 8]
            nexts = columns.values[keys[at] & 0xFF, nexts]
            work += len(states)
            states, nexts = states[nexts >= 0], nexts[nexts >= 0]
            if work > MAX_WORK:
                raise too_large()
            if not len(states):
                continue
            results[at] = known.setdefault((states.tobytes(), nexts.tobytes()), len(made))
            if results[at] == len(made):
                made.append((states, nexts))
        found = np.where(classes >= 0, results[inverse], -1)
        nodes, functions = children[found >= 0], found[found >= 0]
        for tokens, values in trie.ending(nodes, functions):
            of_token[tokens] = values
    starts = np.zeros(len(made) + 1, np.int64)
    np.cumsum([len(states) for states, _ in made], out=starts[1:])
    return _Functions(of_token, starts, *(np.concatenate(parts) for parts in zip(*made, strict=True)))


def _without_dead_ends(functions: _Functions, accepting: NDArray[np.bool_]) -> _Functions:
    """Without steps to states from which no tokens lead to an end: a vocabulary may lack the bytes for it."""
    owners = np.repeat(np.arange(len(functions.starts) - 1), np.diff(functions.starts))
    used = np.zeros(len(functions.starts) - 1, np.bool_)
    used[functions.of_token[functions.of_token >= 0]] = True
    steps = used[owners]  # of tokens, not only of their beginnings
    alive = accepting.copy()
    while True:
        reaching = functions.states[alive[functions.nexts] & steps]
        if alive[reaching].all():
            break
        alive[reaching] = True
    if not alive[0]:
        raise unwritable()
    kept = alive[functions.nexts]
    starts = np.zeros(len(functions.starts), np.int64)
    np.cumsum(np.bincount(owners[kept], minlength=len(starts) - 1), out=starts[1:])
    states, nexts = functions.states[kept], functions.nexts[kept]
    # Functions that differed only in removed parts are equal now.
    pairs = np.stack([states, nexts], axis=1).ravel()
    numbers, firsts = _unique_slices(pairs, starts * 2, np.zeros(len(starts) - 1, np.int32))
    bounds, positions = chosen_slices(starts, firsts)
    of_function = np.append(np.where(np.diff(starts) > 0, numbers, -1), -1).astype(np.int32)
    return _Functions(of_function[functions.of_token], bounds, states[positions], nexts[positions])


def _unique_slices(data: Ints, starts: NDArray[np.int64], keys: Ints) -> tuple[Ints, Ints]:
    """Slices ``data[starts[i] : starts[i + 1]]`` by content and ``keys[i]``: numbers, the first of each number."""
    numbers: list[int] = []
    firsts: list[int] = []
    known: dict[tuple[bytes, int], int] = {}
    bounds = starts.tolist()
    for at, key in enumerate(keys.tolist()):
        content = (data[bounds[at] : bounds[at + 1]].tobytes(), key)
        number = known.setdefault(content, len(known))
        if number == len(firsts):
            firsts.append(at)
        numbers.append(number)
    return np.array(numbers, np.int32), np.array(firsts, np.int32)


def chosen_slices(starts: NDArray[np.int64], chosen: Ints) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Bounds [chosen + 1] of some slices put one after the other, and the positions of what is in them."""
    counts = starts[chosen + 1] - starts[chosen]
    bounds = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds, ranges(starts[chosen], counts)


def build_index(automaton: Automaton, vocabulary: Vocabulary, *, max_states: int = MAX_STATES) -> TokenIndex:
    """The index of a constraint, whose automaton becomes complete on the way. The caller holds the automaton's lock.

    Raises:
        ConstraintError: there are more than ``max_states`` states, the index would be too large, or no output can be
            written with the tokens of this vocabulary.
    """
    automaton.expand_all(max_states)
    columns = byte_columns(automaton.rows[: len(automaton)])
    accepting = np.array([automaton.accepting(state) for state in columns.order.tolist()], np.bool_)
    table = token_table(vocabulary.trie, columns, accepting, all_bytes=vocabulary.has_all_bytes)
    table.class_of_token[list(vocabulary.eos_ids)] = END
    forced_byte, forced_delta = forced_bytes(columns, accepting)
    return TokenIndex(
        **{name: smallest(array) for name, array in table._asdict().items() if name != "bits_of_block"},
        bits_of_block=table.bits_of_block,
        forced_byte=forced_byte,
        forced_delta=smallest(forced_delta),
    )
