"""Intersections, complements and lengths in characters against the definition of each on sets of strings."""

import itertools
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Kind, Node
from lmc.ir.errors import ConstraintError
from tests.grammar.schema.sampling import automaton_of
from tests.grammar.test_automaton import STRINGS, defined, expressions

# Letters of one byte and of two.
WRITTEN = {ord("a"): b"a", ord("b"): "é".encode()}
bounds = st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3)))


def written(data: bytes) -> bytes:
    return b"".join(WRITTEN[letter] for letter in data)


def build(arena: Arena, expression: Any) -> Node:
    """The node of an expression of `test_automaton.py`, its letters as they are written here."""
    match expression:
        case ("literal", data):
            return arena.literal(written(data))
        case ("any",):
            return arena.union(map(arena.literal, WRITTEN.values()))
        case ("none",):
            return arena.empty
        case ("repeat", part, (low, more)):
            return arena.repeat(build(arena, part), low, None if more is None else low + more)
        case ("complement", part):
            letters = arena.repeat(build(arena, ("any",)), 0, None)
            return arena.intersection([arena.complement(build(arena, part)), letters])
        case (kind, parts):
            made = [build(arena, part) for part in parts]
            if kind == "concat":
                return arena.concat(*made)
            return arena.union(made) if kind == "union" else arena.intersection(made)
        case _:
            raise AssertionError(expression)


@given(st.lists(expressions, min_size=1, max_size=3), bounds, bounds)
def test_lengths_are_counted_in_characters(parts, whole, letters_a):
    arena = Arena()
    counts = [("repeat", ("any",), whole), ("repeat", ("literal", b"a"), letters_a)]
    for lengths in (counts[:1], counts):
        conditions = [*parts, *lengths]
        automaton = Automaton(arena.intersection([build(arena, each) for each in conditions]), arena)
        meant = frozenset(STRINGS).intersection(*map(defined, conditions))
        assert {each for each in STRINGS if automaton.matches(written(each))} == meant


@given(st.lists(expressions, min_size=2, max_size=3), bounds)
def test_what_is_resolved_has_no_dead_end(parts, limits):
    arena = Arena()
    low, more = limits
    lengths = arena.repeat(build(arena, ("any",)), low, None if more is None else low + more)
    derivatives = Derivatives(arena)
    resolved = derivatives.resolved(arena.intersection([*(build(arena, part) for part in parts), lengths]))
    assert resolved.certain
    if resolved.kind is Kind.EMPTY:
        return
    automaton = Automaton(resolved, arena)
    automaton.expand_all(2000)
    live = {state for state in range(len(automaton)) if automaton.accepting(state)}
    while (
        more_live := {
            state for state in range(len(automaton)) if any(target in live for _, target in automaton.arcs(state))
        }
        - live
    ):
        live |= more_live
    assert live == set(range(len(automaton)))


@given(
    st.lists(expressions, min_size=1, max_size=3),
    st.integers(0, 14),
    st.one_of(st.none(), st.integers(0, 14)),
    st.integers(1, 3),
)
def test_bounds_whose_ends_are_far_off_are_the_same_as_far_as_a_token_can_tell(parts, low, more, reach):
    arena = Arena()
    lengths = arena.repeat(build(arena, ("any",)), low, None if more is None else low + more)
    derivatives = Derivatives(arena)
    node = derivatives.resolved(arena.intersection([*(build(arena, part) for part in parts), lengths]))
    if node.kind is not Kind.STATE:
        return
    alike = derivatives.unbounded(node, reach)
    event("the same node" if alike is node else "another node")
    assert derivatives.unbounded(alike, reach) is alike
    assert alike.nullable == node.nullable
    own, other = Automaton(node, arena), Automaton(alike, arena)
    for size in range(reach + 1):
        for data in map(bytes, itertools.product(b"a\xc3\xa9", repeat=size)):
            assert (own.run(data) >= 0) == (other.run(data) >= 0), data


def test_lower_bounds_that_are_far_off_are_one():
    arena, reach = Arena(), 16
    derivatives = Derivatives(arena)
    letters = arena.byte_set(0x3FFFFFF << 97)
    word = arena.concat(arena.everything, arena.literal(b"ab"), arena.everything)

    def alike(low: int, high: int | None) -> Node:
        node = derivatives.resolved(arena.intersection([word, arena.repeat(letters, low, high)]))
        return derivatives.unbounded(node, reach)

    assert alike(100, None) is not alike(5, None)
    assert len({alike(low, high).high for low in (100, 5000) for high in (low, low + 1, 9000, None)}) == 1
    assert len({alike(low, high).low for low in (100, 5000) for high in (low, low + 1, 9000, None)}) == 1


def test_a_bound_that_is_far_off_matters_where_lengths_have_a_period():
    arena = Arena()
    derivatives = Derivatives(arena)
    letters = arena.byte_set(0x3FFFFFF << 97)
    threes = arena.repeat(arena.literal(b"aaa"), 0, None)
    either = arena.union([threes, arena.concat(arena.literal(b"b"), threes)])
    for more, expected in ((0, b"b"), (1, b"b"), (2, b"ab"), (9, b"ab")):
        node = derivatives.resolved(arena.intersection([either, arena.repeat(letters, 100, 100 + more)]))
        for each in (node, derivatives.unbounded(node, 16)):
            automaton = Automaton(each, arena)
            assert bytes(byte for byte in b"ab" if automaton.step(0, byte) >= 0) == expected


def test_lengths_of_several_sets_are_one_length():
    arena = Arena()
    letters, digits = arena.byte_set(0x3FFFFFF << 97), arena.byte_set(0x3FF << 48)
    both = arena.union([letters, digits])
    derivatives = Derivatives(arena)

    def together(*parts: Node) -> Node:
        return derivatives.resolved(arena.intersection(parts))

    assert together(arena.repeat(letters, 2, 500), arena.repeat(both, 0, 300)) is arena.repeat(letters, 2, 300)
    assert together(arena.repeat(letters, 5, 9), arena.repeat(both, 10, None)) is arena.empty
    assert together(arena.repeat(letters, 1, 9), arena.repeat(digits, 1, 9)) is arena.empty
    assert together(arena.repeat(letters, 0, 9), arena.repeat(digits, 0, 9)).nullable
    counted = together(arena.repeat(letters, 2, 20_000), arena.concat(arena.literal(b"ab"), arena.everything))
    assert counted.kind is Kind.STATE
    assert (counted.low, counted.high) == (2, 20_000)


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        (
            {"type": "string", "pattern": "^(a|bb)*$", "minLength": 3, "maxLength": 20_000},
            ["aaa", "bba", "a" * 20_000],
            ["aa", "bbb", "a" * 20_001],
        ),
        ({"type": "string", "pattern": "^(aaa)*$", "minLength": 100_000_001, "maxLength": 100_000_003}, [], ["aaa"]),
        ({"type": "string", "pattern": "^é.$", "minLength": 2, "maxLength": 2}, ["éx", "éé"], ["é", "éxx"]),
        ({"type": "string", "not": {"pattern": "^.{2,3}$"}, "maxLength": 4}, ["", "a", "abcd"], ["ab", "abc"]),
    ],
)
def test_lengths_beside_patterns(schema: Any, valid: list[str], invalid: list[str]) -> None:
    automaton = automaton_of(schema)
    for text in valid:
        assert automaton.matches(f'"{text}"'.encode())
    for text in invalid:
        assert not automaton.matches(f'"{text}"'.encode())


def test_a_length_that_no_text_of_a_pattern_has_is_refused() -> None:
    with pytest.raises(ConstraintError, match="no value meets this schema"):
        automaton_of({"type": "string", "pattern": "^(aaa)*$", "minLength": 4, "maxLength": 5})
