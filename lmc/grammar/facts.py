"""Facts about a constraint: its size, the lengths of its outputs, an example.

Facts are exact, or (``longest_tokens``) a bound; None where they would take too long to compute. They do not depend on
the machine.
"""

from __future__ import annotations

import random
import string
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.index.states import TokenState
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError

T = TypeVar("T")

MAX_STEPS = 20_000_000  # of the search for the shortest output in an index
MAX_WALKS = 64  # of the vocabulary, where there is no index
MAX_ONLY = 1 << 16  # bytes of the only output
SEEDS = 8  # examples that are tried
MAX_WORK = 200_000  # see `Arena.work`; of all of them
MAX_WORK_OF_SHARE = 40_000  # likewise; of the steps along the example
MAX_WORK_OF_EXAMPLE = 40_000  # likewise; of the states on the way to one
_STEPS = 400  # to an example
_MAX_STATES = 20_000


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a constraint over one vocabulary. None is unknown unless noted otherwise.

    ``states``, ``token_classes``, ``masks`` (that differ) and ``table_bytes`` are those of the token index. Outputs
    have at least ``shortest_tokens`` and at most ``longest_tokens`` tokens; None for ``longest_tokens``: no bound is
    known. ``only`` is the output, where there is but one. ``example`` is some output; ``forced_share`` is the share of
    its tokens that were forced.
    """

    kind: Literal["regular", "context-free"]
    digest: str
    states: int | None = None
    token_classes: int | None = None
    masks: int | None = None
    table_bytes: int | None = None
    shortest_tokens: int | None = None
    longest_tokens: int | None = None
    only: str | None = None
    example: str | None = None
    forced_share: float | None = None


def regular_facts(
    automaton: Automaton, index: TokenIndex | None, vocabulary: Vocabulary, digest: str, start: TokenState
) -> Facts:
    """The facts of a regular constraint; more of them once it is built. The caller holds its lock."""
    only = if_quick(lambda: _only(automaton))
    example = only if only is not None else if_quick(lambda: _example(automaton))
    limit = automaton.work + MAX_WORK_OF_SHARE
    sizes = (None,) * 4
    if index is None:
        shortest = if_quick(lambda: _shortest_walk(automaton, vocabulary))
    else:
        shortest = shortest_in_index(index)
        sizes = (len(index), index.class_count, index.mask_count, index.nbytes)
    return Facts(
        "context-free" if automaton.is_recursive else "regular",
        digest,
        *sizes,
        shortest_tokens=shortest,
        longest_tokens=automaton.longest,  # a token has a byte at least
        only=decoded(only),
        example=decoded(example),
        forced_share=None
        if example is None
        else forced_share(start, vocabulary, example, lambda: automaton.work <= limit),
    )


def if_quick(find: Callable[[], T]) -> T | None:
    """Return what is found; None where a budget forbids."""
    try:
        return find()
    except ConstraintError:
        return None


def short_output(automaton: Automaton, vocabulary: Vocabulary) -> int:
    """Tokens of an output of the fewest bytes: a shortest one has no more. 0 where that takes too long to find out.

    Where the vocabulary has no token for one of its bytes, nothing is known: any number.
    """
    shortest = if_quick(automaton.shortest)
    if shortest is None:
        return 0
    tokens = if_quick(lambda: len(vocabulary.encode(shortest)))
    return sys.maxsize if tokens is None else tokens


def shortest_in_index(index: TokenIndex) -> int | None:
    """Tokens of a shortest output; None where that is not found within ``MAX_STEPS``. Breadth first, by levels."""
    seen = np.zeros(len(index), np.bool_)
    level: NDArray[np.int64] = np.zeros(1, np.int64)
    seen[0] = True
    steps = 0
    for depth in range(len(index)):
        rows = index.row_of_state[level]
        if index.is_end[index.shape_of_row[rows]].any():
            return depth
        found: list[NDArray[np.int64]] = []
        for row in np.unique(rows).tolist():
            states = level[rows == row]
            deltas = index.targets(row).astype(np.int64)
            steps += len(states) * len(deltas)
            if steps > MAX_STEPS:
                return None
            found.append((states[:, None] + deltas[None, :]).ravel())
        level = np.unique(np.concatenate(found))
        level = level[~seen[level]]
        seen[level] = True
    return None


def forced_share(
    start: TokenState, vocabulary: Vocabulary, output: bytes, goes_on: Callable[[], bool] = lambda: True
) -> float | None:
    """The part of an output's canonical tokens that had to follow what was before; None where it has no tokens.

    None, too, where ``goes_on`` says after some token that this takes too long.
    """
    try:
        ids = vocabulary.encode(output)
        forced = _forced_tokens(start, ids, goes_on) if ids else None
        return None if forced is None else forced / len(ids)
    except ConstraintError:  # a vocabulary that can't write it
        return None


def _forced_tokens(state: TokenState, ids: list[int], goes_on: Callable[[], bool]) -> int | None:
    forced = at = 0
    while at < len(ids):
        if not goes_on():
            return None
        draft = state.forced()
        taken = 0
        while taken < len(draft) and at + taken < len(ids) and draft[taken] == ids[at + taken]:
            taken += 1
        forced += taken
        for token_id in ids[at : at + max(taken, 1)]:
            state = state.advance(token_id)
        at += max(taken, 1)
    return forced


def _shortest_walk(automaton: Automaton, vocabulary: Vocabulary) -> int | None:
    """Tokens of a shortest output, without an index, where few states are on the way."""
    if not vocabulary.has_all_bytes:
        return None
    level, seen, walks, depth = [0], {0}, 0, 0
    while level:
        if any(map(automaton.accepting, level)):
            return depth
        following: list[int] = []
        for state in level:
            walks += 1
            if walks > MAX_WALKS:
                return None
            nexts = np.unique(vocabulary.trie.walk(automaton, state, with_nexts=True).nexts).tolist()
            following += [each for each in nexts if each not in seen]
            seen.update(following)
        level, depth = following, depth + 1
    return None


def _only(automaton: Automaton) -> bytes | None:
    """The output of an automaton that has but one."""
    written = bytearray()
    state = 0
    while len(written) <= MAX_ONLY:
        forced = automaton.forced_bytes(state)
        state = automaton.run(forced, state)
        written += forced
        if automaton.accepting(state):
            return None if automaton.arcs(state) else bytes(written)
        if not forced:
            return None
    return None


def _example(automaton: Automaton) -> bytes | None:
    """The longest of some outputs that fits into a line, or the shortest of those that do not."""
    found: list[bytes] = []
    worked = automaton.work
    for seed in range(SEEDS):
        if automaton.work - worked > MAX_WORK:
            break
        sample = Sampler(automaton, random.Random(seed)).sample()  # noqa: S311 - no secret
        if sample is not None:
            found.append(sample)
    return _best(found)


def _best(found: list[bytes]) -> bytes | None:
    fitting = [each for each in found if len(each) <= 80]
    return max(fitting, key=len) if fitting else min(found, key=len, default=None)


def decoded(data: bytes | None) -> str | None:
    """Return an output as text; None where there is none, or it is not UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _mask(characters: str) -> int:
    return sum(1 << ord(character) for character in characters)


_PREFERRED = tuple(map(_mask, (string.ascii_lowercase, string.digits, string.ascii_uppercase, " ", string.punctuation)))
"""Byte sets in the order in which a byte is looked for."""


# A backslash begins what is escaped, and so is none of them.
_READABLE = _mask(string.ascii_letters + string.digits + string.punctuation.replace("\\", "") + " \n")


class Sampler:
    """Walks an automaton by ``chance``; makes the states that it comes to."""

    def __init__(self, automaton: Automaton, chance: random.Random) -> None:
        self._automaton = automaton
        self._chance = chance

    def sample(self) -> bytes | None:
        """An output, at some length of its own; None where none was found within bounds."""
        automaton, chance = self._automaton, self._chance
        written = bytearray()
        visits: dict[int, int] = {}
        state, worked = 0, automaton.work
        for _ in range(_STEPS):
            if automaton.work - worked > MAX_WORK_OF_EXAMPLE:
                return None
            arcs = automaton.arcs(state)
            visits[state] = visits.get(state, 0) + 1
            if automaton.accepting(state) and (not arcs or chance.random() < _stopping(len(written))):
                return bytes(written)
            # Wide sets rather than signs, and what was not taken yet: loops are left, and options come up.
            weights = [
                (0.01 + (mask & _READABLE).bit_count() ** 0.5) / (1 + visits.get(target, 0)) ** 2
                for mask, target in arcs
            ]
            mask, state = chance.choices(arcs, weights)[0]
            written.append(self._byte(mask))
        try:
            rest = automaton.shortest(state) if len(automaton) < _MAX_STATES else None
        except ConstraintError:
            return None
        return None if rest is None else bytes(written) + rest

    def _byte(self, mask: int) -> int:
        for preferred in _PREFERRED:
            if mask & preferred:
                mask &= preferred
                break
        return self._chance.choice([byte for byte in range(256) if mask >> byte & 1])


def _stopping(length: int) -> float:
    """Return the probability that an output ends where it may, by its length so far."""
    return 0.0 if length < 2 else min(0.15 + length / 100, 0.8)
