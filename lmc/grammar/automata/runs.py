"""Runs: sets of bytes of which any so many may follow a place, in any order, whatever else may.

Within a word, a string of JSON or a counted repeat of a class, most tokens consist of bytes of one such set. A walk of
the vocabulary takes them a subtree at a time and needs no states for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from string import punctuation

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.nodes import ALL_BYTES, Kind, Node

UNBOUNDED = 1 << 30  # more than any token has
_MAX_PARTS = 16  # of a union, and in front of a concatenation, that are looked at
_MAX_DEPTH = 4

Run = tuple[int, int]
"""A set of bytes (bit b: byte b) and of how many of them."""


RUN = np.dtype([("groups", np.uint64), ("length", np.int32), ("next", np.int32)])
"""The run of a state, as in native/walk.c.

Any ``length`` bytes of ``groups``, a bit each, may follow; 0 where no run is known. Where ``next`` is not -1, the state
counts: it is the one after a byte of the run, only bytes of the run lead there, and but for these any byte leads from
all states of the run, the one after its end too, to the same.
"""
Runs = NDArray[np.void]


def no_runs(states: int) -> Runs:
    """Return what is known of the runs of states at first."""
    found = np.zeros(states, RUN)
    found["next"] = -1
    return found


def _groups() -> tuple[int, ...]:
    """Sets of bytes that patterns mostly hold or lack together, few enough for a word of 64 bits."""
    ranges = ((0x80, 0xFF), *(map(ord, pair) for pair in ("af", "gz", "AF", "GZ", "09")))
    found = [(1 << last + 1) - (1 << first) for first, last in ranges]
    found += [1 << byte for byte in (*b" \t\n\r", *punctuation.encode())]
    return (*found, ALL_BYTES & ~sum(found))


_GROUPS = _groups()
_NONE: Run = (0, 0)


def group_bits() -> NDArray[np.uint64]:
    """The bit of each byte's group, [256]."""
    bits = [1 << number for byte in range(256) for number, group in enumerate(_GROUPS) if group >> byte & 1]
    return np.array(bits, np.uint64)


@lru_cache(maxsize=4096)
def groups_inside(mask: int) -> int:
    """The groups whose bytes are all in a set, a bit each."""
    return sum(1 << number for number, group in enumerate(_GROUPS) if group & ~mask == 0)


def may_run(node: Node) -> bool:
    """False where it is clear at first sight that no run begins here."""
    head = node.parts[0] if node.kind is Kind.CONCAT else node
    return head.kind is not Kind.LITERAL and head.kind is not Kind.BYTE


def run_of(node: Node) -> Run:
    """The longest run that can be seen at the beginning of a node that has a string; (0, 0) where there is none."""
    return _run(node, _MAX_DEPTH)


def counted(node: Node) -> Run:
    """The run that a node counts: a repeat of one set of bytes, none of which what follows can begin with.

    The arcs of the node have been asked for, so those of the parts that it can begin with are known.
    """
    head, tail = node.parts if node.kind is Kind.CONCAT else (node, None)
    if head.kind is not Kind.REPEAT or head.low or head.high is None or head.parts[0].kind is not Kind.BYTE:
        return _NONE
    mask = head.parts[0].mask
    for part in () if tail is None else beginnings(tail):
        if part is None or part.derived is None or any(mask & other for other, _ in part.derived):
            return _NONE
    return mask, _times(head.high)


def _run(node: Node, depth: int) -> Run:
    if not depth:
        return _NONE
    match node.kind:
        case Kind.REPEAT:
            (part,) = node.parts
            inner = _run(part, depth - 1) if part.certain else _NONE
            byte = next((each for each in _alternatives(part) if each.kind is Kind.BYTE), None)
            return inner if byte is None else max(inner, (byte.mask, _times(node.high)), key=_length)
        case Kind.UNION:
            live = (each for each in _alternatives(node) if each.certain)
            return max((_run(each, depth - 1) for each in live), key=_length, default=_NONE)
        case Kind.CONCAT:
            parts = (each for each in beginnings(node) if each is not None)
            return max((_run(each, depth - 1) for each in parts), key=_length)
        case Kind.STATE:
            assert node.automaton is not None
            mask, length = node.automaton.loop(node.state, node.low, node.high)
            return mask, _times(length)
        case _:
            return _NONE


def _alternatives(node: Node) -> tuple[Node, ...]:
    return node.parts[:_MAX_PARTS] if node.kind is Kind.UNION else (node,)


def beginnings(node: Node) -> Iterator[Node | None]:
    """The parts that a node can begin with, up to the first that can't be empty; None in place of too many."""
    for _ in range(_MAX_PARTS):
        if node.kind is not Kind.CONCAT:
            yield node
            return
        yield node.parts[0]
        if not node.parts[0].nullable:
            return
        node = node.parts[1]
    yield None


def _times(high: int | None) -> int:
    return UNBOUNDED if high is None else min(high, UNBOUNDED)


def _length(run: Run) -> int:
    return run[1]
