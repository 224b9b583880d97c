"""Generations share tables of states, each of which has a bound; what they may say never depends on that."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from lmc.grammar import regex
from lmc.grammar.automata.automaton import MAX_STATES, Automaton
from lmc.grammar.automata.building import MAX_NODES, Arena, WorkLimit
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.index.states import State
from lmc.grammar.schema import any_node
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import bits, byte_tokens

VOCABULARY = Vocabulary([*byte_tokens([b"ab", b"ba", b"aab", b"bbb"]), b"<end>"], (), 260)
LACKING = Vocabulary([b"a", b"b", b"ab", b"bbb", b"<end>"], (), 4)
# Each generation comes to states of its own: which of the last letters were an "a".
PATTERN = "(a|b)*a(a|b){10}"
LIMIT = 300


def maker(max_states: int = LIMIT, max_nodes: int = MAX_NODES, pattern: str = PATTERN) -> Callable[[], Automaton]:
    def make() -> Automaton:
        arena = Arena(WorkLimit(max_nodes))
        made = Automaton(regex.to_node(pattern, arena), arena, max_states=max_states)
        made.lift_limits()
        return made

    return make


def shared(make: Callable[[], Automaton], vocabulary: Vocabulary = VOCABULARY) -> RegularConstraint:
    return RegularConstraint(make(), vocabulary, "digest")


def generated(constraint: RegularConstraint, seed: int, tokens: int = 12) -> tuple[list[int], list[bytes], State]:
    """The tokens of a generation, the masks that it met and where it ended."""
    chance, state = random.Random(seed), constraint.start()
    taken: list[int] = []
    masks: list[bytes] = []
    for _ in range(tokens):
        masks.append(state.mask().tobytes())
        taken.append(chance.choice([each for each in bits(state.mask()) if constraint.vocabulary.tokens[each]]))
        state = state.advance(taken[-1])
    return taken, masks, state


@pytest.mark.parametrize(
    ("limits", "vocabulary", "pattern"),
    [
        ((LIMIT, MAX_NODES), VOCABULARY, PATTERN),
        ((MAX_STATES, LIMIT), VOCABULARY, PATTERN),
        ((LIMIT, MAX_NODES), LACKING, "(a|b)*a(a|b){8}"),
    ],
    ids=["states", "nodes", "a vocabulary that lacks bytes"],
)
def test_generations_say_the_same_whatever_the_bound_of_their_tables(
    limits: tuple[int, int], vocabulary: Vocabulary, pattern: str
) -> None:
    make = maker(*limits, pattern)
    constraint, free = shared(make, vocabulary), shared(maker(MAX_STATES, pattern=pattern), vocabulary)
    for seed in range(200):
        taken, masks, _ = generated(constraint, seed)
        assert constraint.matches(vocabulary.text(taken)) == free.matches(vocabulary.text(taken))
        assert (taken, masks) == generated(free, seed)[:2]
    assert constraint.automaton is not free.automaton
    assert len(constraint.automaton) < len(free.automaton)


@pytest.mark.parametrize("vocabulary", [VOCABULARY, LACKING], ids=["all bytes", "a vocabulary that lacks bytes"])
def test_a_budget_of_tokens_refuses_some_and_changes_none(vocabulary: Vocabulary) -> None:
    """A refusal leaves no trace: later generations get the masks of a constraint without a budget."""
    chance, refused, given = random.Random(5), 0, 0
    pieces = ["a", "b", "(a|b)*", "b{2,9}", "(ab)?"]
    for _ in range(60):
        parts = ["".join(chance.choices(pieces, k=chance.randint(1, 6))) for _ in range(5)]
        pattern = f"({'|'.join(parts)})+"
        arena = Arena(WorkLimit(work_of_token=chance.choice([1, 8, 30, 100])))
        limited = Automaton(regex.to_node(pattern, arena), arena)
        limited.lift_limits()
        try:
            constraint = RegularConstraint(limited, vocabulary, "digest")
        except ConstraintError:  # a vocabulary that lacks bytes is checked at once
            continue
        free = shared(maker(MAX_STATES, pattern=pattern), vocabulary)
        for _ in range(9):
            state, other = constraint.start(), free.start()
            try:
                for _ in range(12):
                    assert state.mask().tobytes() == other.mask().tobytes()
                    assert (state.complete, state.accepting) == (other.complete, other.accepting)
                    draft = other.forced()
                    assert state.forced() == draft[: len(state.forced())]
                    allowed = [each for each in bits(other.mask()) if vocabulary.tokens[each]]
                    if not allowed:
                        break
                    token = chance.choice(allowed)
                    state, other = state.advance(token), other.advance(token)
                    given += 1
            except ConstraintError:
                refused += 1
    assert refused > 20
    assert given > 500


def test_outputs_that_are_only_checked_never_use_up_the_budget() -> None:
    constraint, chance = shared(maker()), random.Random(0)
    for _ in range(300):
        text = "".join(chance.choices("ab", k=30))
        assert constraint.matches(text) == (text[-11] == "a")


@pytest.mark.parametrize(("max_states", "max_nodes"), [(LIMIT, MAX_NODES), (MAX_STATES, LIMIT)])
def test_a_generation_that_needs_more_alone_moves_to_other_tables(max_states: int, max_nodes: int) -> None:
    constraint, free = shared(maker(max_states, max_nodes)), shared(maker())
    first = weakref.ref(constraint.automaton)
    for seed in range(3):
        assert generated(constraint, seed, tokens=500)[:2] == generated(free, seed, tokens=500)[:2]
    assert len(constraint.automaton) < 2 * LIMIT
    gc.collect()
    assert first() is None


def test_a_long_output_is_checked_in_tables_of_bounded_size() -> None:
    constraint = shared(maker(pattern="(ab){5,20000}"))
    assert constraint.matches(b"ab" * 20_000)
    assert not constraint.matches(b"ab" * 20_000 + b"a")
    assert not constraint.matches(b"ab" * 10_000 + b"b")
    assert len(constraint.automaton) < 5_000


def test_generations_that_moved_go_on_when_the_index_comes() -> None:
    constraint = shared(maker(100, pattern="[a-z]{1,600}"))
    state = constraint.start()
    for _ in range(300):
        state = state.advance(97)
    assert state.table is not constraint.start().table or state.table.has_moved_in
    index = constraint.build()
    assert constraint.start().table.index is index
    for _ in range(300):
        assert bits(state.mask())
        state = state.advance(97)
    assert state.complete


def test_states_stay_what_they_are_when_others_begin_with_a_new_table() -> None:
    constraint = shared(maker())
    _, _, held = generated(constraint, 0)
    mask = held.mask().copy()
    first = weakref.ref(constraint.automaton)
    for seed in range(1, 100):
        generated(constraint, seed)
    assert constraint.automaton is not first()
    assert np.array_equal(held.mask(), mask)
    assert held.advance(97).table is constraint.start().table
    del held
    gc.collect()
    assert first() is None


def test_what_is_built_or_made_at_once_stays() -> None:
    make = maker(1_000, pattern="[a-z]{1,600}")
    constraint = shared(make)
    constraint.build()
    automaton = constraint.automaton
    assert automaton.is_half_full
    assert constraint.start() is constraint.start()
    assert constraint.automaton is automaton
    assert not Automaton.of_strings([bytes((a, b)) for a in range(256) for b in range(9)]).is_half_full


def test_a_state_of_an_older_table_stays_when_the_index_comes() -> None:
    make = maker(1_000, pattern="[a-z]{1,600}")
    constraint = shared(make)
    state = constraint.start()
    for _ in range(450):
        state = state.advance(97)
    while not constraint.automaton.is_half_full:
        constraint.automaton.expand(len(constraint.automaton) - 1)
    later = constraint.start()
    assert later.table is not state.table
    constraint.build()
    assert later.table.index is constraint.index
    assert state.table.index is None
    for _ in range(150):
        assert bits(state.mask())
        state = state.advance(97)
    assert state.complete


PARTS = {"array": "items", "object": "additionalProperties"}
NESTED = {"anyOf": [{"type": kind, word: {"$ref": "#"}} for kind, word in PARTS.items()]}
SOME = Vocabulary([b"[", b"]", b",", b"{", b"}", b'"', b"a", b'":', b"[[", b"]]", b"]}", b"<end>"], (), 11)


@pytest.mark.parametrize("vocabulary", [VOCABULARY, SOME], ids=["all bytes", "a vocabulary that lacks bytes"])
@pytest.mark.parametrize("limits", [(2 * LIMIT, MAX_NODES), (MAX_STATES, 900)], ids=["states", "nodes"])
def test_values_that_nest_ever_deeper_need_tables_of_bounded_size(
    vocabulary: Vocabulary, limits: tuple[int, int]
) -> None:
    def make(max_states: int, max_nodes: int) -> RegularConstraint:
        arena = Arena(WorkLimit(max_nodes))
        node = any_node(NESTED, arena)
        made = Automaton(node, arena, max_states=max_states)
        made.lift_limits()
        return RegularConstraint(made, vocabulary, "digest")

    constraint, free = make(*limits), make(MAX_STATES, MAX_NODES)
    first = weakref.ref(constraint.automaton)
    tables: set[int] = set()
    for count in (30, 3, 20):
        text = b'[[{"a":' * count + b"[],[]" + b"}],[[]]]" * count
        text = text.replace(b"[],[]}", b"[]}")
        assert constraint.matches(text)
        assert not constraint.matches(text[:-1])
        states = [constraint.start(), free.start()]
        for token_id in vocabulary.encode(text):
            assert states[0].mask().tobytes() == states[1].mask().tobytes()
            states = [state.advance(token_id) for state in states]
            tables.add(id(states[0].table))
            assert len(states[0].table.automaton) < 4 * LIMIT
        assert states[0].complete
    assert len(tables) > 2
    gc.collect()
    assert first() is None
