"""Automata in arrays against the strings that they take, all of up to some letters."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.dfa import Dfa, Lengths, Product, intersection, of_arcs
from lmc.ir.errors import ConstraintError

LONGEST = 6
STRINGS = [bytes(each) for size in range(LONGEST + 1) for each in itertools.product(b"abc", repeat=size)]
SPEND = Arena().spend


@st.composite
def dfas(draw: st.DrawFn) -> Dfa:
    """Of random arcs, with states that are dead or can't be reached taken out by a product with everything."""
    states = draw(st.integers(1, 5))
    targets = st.integers(-1, states - 1)
    rows = draw(st.lists(st.tuples(targets, targets, targets), min_size=states, max_size=states))
    ends = draw(st.lists(st.booleans(), min_size=states, max_size=states))
    arcs = [[(1 << 97 + at, target) for at, target in enumerate(row) if target >= 0] for row in rows]
    letters = of_arcs([[(7 << 97, 0)]], [True])
    made = Product((of_arcs(arcs, ends), letters), SPEND).dfa
    assume(made is not None)
    assert made is not None
    return made


def run(dfa: Dfa, data: bytes) -> int:
    state = 0
    for byte in data:
        number = int(dfa.class_of_byte[byte])
        state = int(dfa.rows[state, number]) if number >= 0 and state >= 0 else -1
    return state


def takes(dfa: Dfa | None, data: bytes) -> bool:
    state = -1 if dfa is None else run(dfa, data)
    return dfa is not None and state >= 0 and bool(dfa.accepting[state])


@given(st.lists(dfas(), min_size=1, max_size=4))
def test_an_intersection_takes_what_all_take(parts: list[Dfa]) -> None:
    made = intersection(parts, SPEND)
    for data in STRINGS:
        assert takes(made, data) == all(takes(part, data) for part in parts)


@given(dfas(), dfas())
def test_every_state_of_a_product_can_be_reached_and_can_end(left: Dfa, right: Dfa) -> None:
    product = Product((left, right), SPEND)
    if product.dfa is None:
        return
    reached = {run(product.dfa, data) for data in STRINGS} - {-1}
    for state in reached:
        assert _can_end(product.dfa, state)
    for data in STRINGS:
        state = run(product.dfa, data)
        if state >= 0:
            assert (product.places(0)[state], product.places(1)[state]) == (run(left, data), run(right, data))


def _can_end(dfa: Dfa, state: int) -> bool:
    """Whether an accepting state can be reached; in a product that may take more letters than were tried."""
    seen, stack = {state}, [state]
    while stack:
        following = {int(target) for target in dfa.rows[stack.pop()] if target >= 0} - seen
        seen |= following
        stack += following
    return bool(dfa.accepting[list(seen)].any())


def _from(dfa: Dfa, state: int) -> Dfa:
    order = np.arange(len(dfa))
    order[[0, state]] = order[[state, 0]]
    return Dfa(np.where(dfa.rows < 0, -1, order[dfa.rows])[order], dfa.class_of_byte, dfa.accepting[order])


@given(dfas())
def test_a_complement_takes_the_others_and_a_minimised_one_the_same(dfa: Dfa) -> None:
    complement, least = dfa.complement(SPEND), dfa.minimised()
    assert takes(complement, b"x")
    languages = {frozenset(each for each in STRINGS if takes(_from(least, state), each)) for state in range(len(least))}
    assert len(languages) == len(least) <= len(dfa)
    for data in STRINGS:
        assert takes(complement, data) != takes(dfa, data) == takes(least, data)


@given(dfas(), st.integers(0, 5), st.one_of(st.none(), st.integers(0, LONGEST)))
def test_lengths_that_states_reach(dfa: Dfa, low: int, high: int | None) -> None:
    everywhere = np.ones(len(dfa), np.bool_)
    lengths = Lengths(dfa, everywhere, low, high, SPEND)
    for state in range(len(dfa)):
        found = {len(data) for data in STRINGS if takes(_from(dfa, state), data)}
        for least in range(low + 1):
            for most in (None,) if high is None else range(high + 1):
                known = any(least <= each <= (LONGEST if most is None else most) for each in found)
                # What is beyond the strings that were tried may be known for an endless range only.
                assert lengths.reaches(state, least, most) == known or (most is None and not known)
        if high is None and not _is_finite(dfa, state):
            assert lengths.reaches(state, low, None)


def _is_finite(dfa: Dfa, state: int) -> bool:
    """Whether no string of a state is longer than it has states."""
    longer = itertools.chain.from_iterable(
        itertools.product(b"abc", repeat=size) for size in range(len(dfa), min(len(dfa) + 2, LONGEST) + 1)
    )
    return not any(takes(_from(dfa, state), bytes(each)) for each in longer)


def test_lengths_count_characters_and_not_bytes() -> None:
    # é or a, any number of times; the second byte of é is not an end.
    dfa = of_arcs([[(1 << 97, 0), (1 << 0xC3, 1)], [(1 << 0xA9, 0)]], [True, False])
    lengths = Lengths(dfa, np.array([True, False]), 2, 4, SPEND)
    assert lengths.shortest.tolist() == [0, 1]
    assert [lengths.reaches(1, low, 4) for low in range(3)] == [True] * 3
    assert [lengths.reaches(1, 0, high) for high in range(3)] == [False, True, True]


def test_what_takes_too_many_steps_is_refused() -> None:
    several = [of_arcs([[(3 << 97, (at + 1) % size)] for at in range(size)], [True] * size) for size in (251, 257, 263)]
    with pytest.raises(ConstraintError, match=r"take more than \d+ steps to combine\n  remedy: combine fewer of them"):
        intersection(several, Arena().spend)
