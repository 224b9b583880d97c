"""Vocabularies, automata and what they mean, by definition: for the tests of everything that is made of tokens."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.index.index import TokenIndex
from lmc.grammar.vocabulary.trie import packed
from lmc.grammar.vocabulary.vocabulary import Vocabulary

# Letters of one, two and three bytes that share bytes, and a byte that never begins a character.
PIECES = [b"a", b"b", b"c", "é".encode(), "è".encode(), "日".encode(), "本".encode(), b"\xa9", b"\xe6"]


def arranged(root_of, *arguments) -> Automaton:
    arena = Arena()
    return Automaton(root_of(arena, *arguments), arena)


def letters(text: str) -> int:
    return sum(1 << ord(letter) for letter in set(text))


def lower_case(low: int, high: int | None) -> Automaton:
    """[a-z]{low,high}."""
    return arranged(lambda arena: arena.repeat(arena.byte_set(letters("abcdefghijklmnopqrstuvwxyz")), low, high))


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """Of random expressions over ``PIECES``, with at least one output."""
    arena = Arena()
    leaves = st.sampled_from(PIECES).map(arena.literal)

    def grown(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        bounds = st.sampled_from([(0, None), (1, None), (2, None), (0, 1), (0, 3), (1, 2), (2, 2), (2, 5)])
        return st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: arena.concat(*parts)),
            st.lists(inner, min_size=1, max_size=4).map(arena.union),
            st.tuples(inner, bounds).map(lambda each: arena.repeat(each[0], *each[1])),
        )

    found = Automaton(draw(st.recursive(leaves, grown, max_leaves=8)), arena)
    found.expand_all(2_000)
    return found


@st.composite
def vocabularies(draw: st.DrawFn, *, complete: bool | None = None) -> Vocabulary:
    """Tokens of a few pieces, equal ones among them, special ones, EOS ids; all single bytes, or only some."""
    tokens = draw(st.lists(st.lists(st.sampled_from(PIECES), max_size=3).map(b"".join), max_size=12))
    if complete or (complete is None and draw(st.booleans())):
        tokens += [bytes((byte,)) for byte in range(256)]
    tokens += [b"<special>", b"<end>"]
    if draw(st.booleans()):
        random.Random(draw(st.integers(0, 9))).shuffle(tokens)
    eos = tokens.index(b"<end>")
    return Vocabulary(tokens, [tokens.index(b"<special>")], eos, size=len(tokens) + draw(st.sampled_from([0, 1, 40])))


class Definition:
    """What a constraint over tokens is: a token may come where some tokens after it lead to an end."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary) -> None:
        self.automaton = automaton
        self.vocabulary = vocabulary
        self.steps: dict[int, dict[int, int]] = {}
        queue = deque([0])
        while queue:
            state = queue.popleft()
            if state in self.steps:
                continue
            self.steps[state] = {}
            for token_id, token in enumerate(vocabulary.tokens):
                following = automaton.run(token, state) if token else -1
                if following >= 0:
                    self.steps[state][token_id] = following
                    queue.append(following)
        live = {state for state in self.steps if automaton.accepting(state)}
        while more := {state for state, steps in self.steps.items() if live.intersection(steps.values())} - live:
            live |= more
        self.live = live
        self.steps = {
            state: {token: following for token, following in steps.items() if following in live}
            for state, steps in self.steps.items()
            if state in live
        }

    def allowed(self, state: int) -> list[int]:
        ends = self.vocabulary.eos_ids if self.automaton.accepting(state) else ()
        return sorted([*self.steps[state], *ends])

    def words(self, state: int) -> np.ndarray:
        return packed(np.array(self.allowed(state), np.int32), self.vocabulary.size)


def complete_index(constraint: RegularConstraint) -> TokenIndex:
    """The index of a constraint that is not recursive."""
    made = constraint.build()
    assert made is not None
    return made


def bits(words: np.ndarray) -> list[int]:
    """The tokens of a mask."""
    return np.flatnonzero(np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")).tolist()


def random_rows(seed: int, states: int, targets: int, live: float, classes: int = 8) -> np.ndarray:
    """Complete rows of an automaton as arrays, not all of whose states can be reached or reach anything."""
    chance = np.random.default_rng(seed)
    narrow = np.where(chance.random((states, classes)) < live, chance.integers(0, targets, (states, classes)), -1)
    return np.ascontiguousarray(narrow[:, chance.integers(0, classes, 256)].astype(np.int32))


def funnel_rows(seed: int) -> np.ndarray:
    """Rows of a few hundred states, all of which are reached, that mostly go on alike, as within characters.

    One class of bytes leads through all states, the others to a few of them; most are nearly the same.
    """
    chance = np.random.default_rng(seed)
    states, targets = int(chance.integers(130, 300)), int(chance.integers(2, 20))
    columns = [np.append(np.arange(1, states), -1)]
    for _ in range(int(chance.integers(1, 4))):
        column = np.where(chance.random(states) < 0.8, chance.integers(0, targets, states), -1)
        for _ in range(int(chance.integers(1, 5))):
            changed = chance.random(states) < 0.02
            columns.append(np.where(changed, chance.integers(-1, targets, states), column))
    for _ in range(3):
        columns.append(np.where(np.arange(states) < targets, chance.integers(-1, targets, states), -1))
    return np.ascontiguousarray(np.stack(columns, axis=1)[:, chance.integers(0, len(columns), 256)].astype(np.int32))


def byte_tokens(tokens: Sequence[bytes] = ()) -> list[bytes]:
    """All single bytes and then some."""
    return [bytes((byte,)) for byte in range(256)] + list(tokens)
