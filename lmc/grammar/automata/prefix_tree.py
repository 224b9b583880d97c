"""The automaton of a finite set of strings: a tree of their prefixes, made level by level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lmc.ir.errors import ConstraintError

MAX_STATES = 500_000  # of 1 kB each
MAX_LENGTH = 20_000  # bytes of a string


def prefix_tree(strings: Sequence[bytes]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Rows [S, 256] (next state, -1 for none) and acceptance [S] of the tree of sorted, distinct strings.

    States are numbered breadth first, in the order of the bytes that lead to them. Raises ``ConstraintError`` where
    they would be too many.
    """
    lengths = np.array([len(each) for each in strings], np.int64)
    depth = int(lengths.max(initial=0))
    common = np.array([0, *map(_common_length, strings, strings[1:])], np.int64)[: len(strings)]
    states_at_most = 1 + int((lengths - common).sum())
    _check_size(states_at_most, depth)
    rows = np.full((states_at_most, 256), -1, np.int32)
    accepting = np.zeros(len(rows), np.bool_)
    flat = np.frombuffer(b"".join(strings), np.uint8)
    firsts = np.cumsum(lengths) - lengths  # where each begins in `flat`
    alive = np.arange(len(strings))  # strings that reach this level
    states = np.zeros(len(strings), np.int64)  # and their states on it
    made = 1
    for level in range(depth + 1):
        ends = lengths[alive] == level
        accepting[states[ends]] = True
        alive, parents = alive[~ends], states[~ends]
        if not alive.size:
            break
        begins = common[alive] <= level  # differs from the one before in this byte or earlier
        begins[0] = True
        states = made - 1 + np.cumsum(begins)
        rows[parents, flat[firsts[alive] + level]] = states
        made = int(states[-1]) + 1
    return rows[:made], accepting[:made]


def _check_size(states: int, depth: int) -> None:
    if states > MAX_STATES:
        raise ConstraintError(
            f"the choices have {states} different beginnings, more than {MAX_STATES}",
            remedy="give fewer or shorter ones, or a regex for what they have in common",
        )
    if depth > MAX_LENGTH:
        raise ConstraintError(
            f"a choice of {depth} bytes, more than {MAX_LENGTH}", remedy="let the model choose a short name for it"
        )


def _common_length(left: bytes, right: bytes) -> int:
    shared = min(len(left), len(right))
    difference = int.from_bytes(left[:shared]) ^ int.from_bytes(right[:shared])
    return shared - (difference.bit_length() + 7) // 8
