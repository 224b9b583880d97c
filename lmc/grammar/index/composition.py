"""The functions of tokens on the states of a complete automaton.

A token is a partial function: it maps each state that allows it to the state after it. The function of a node of the
trie is that of its parent followed by one byte, and equal functions are one. So there is one composition for each
function and each class of bytes that are alike in all states, where a walk takes a step for each node and state; tokens
with one function are a class. These functions are the part of the transition monoid of the automaton that the
vocabulary reaches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.spans import ranges
from lmc.grammar.index.columns import Columns
from lmc.grammar.index.tables import END, NEVER, TransitionTable, check, native_table, tabulated, too_large
from lmc.grammar.index.trie import Ints, Trie
from lmc.grammar.native.library import library
from lmc.ir.errors import ConstraintError

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
        return _in_numpy(trie, columns, accepting)
    of_token, status = np.full(trie.size, -1, np.int32), np.zeros(1, np.int32)
    path = np.empty(trie.longest + 1, np.int32)
    functions: int | None = native.lmc_functions(
        *(array.ctypes.data for array in (trie.nodes, trie.same, columns.classes, columns.values)),
        *(len(columns.order), MAX_WORK),
        *(array.ctypes.data for array in (path, of_token, status)),
    )
    check(status)
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


def _in_numpy(trie: Trie, columns: Columns, accepting: NDArray[np.bool_]) -> TransitionTable:
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
