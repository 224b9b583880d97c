"""Nodes, derivatives and the byte automaton against the definition of each operation on sets of strings."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import DEAD, Automaton
from lmc.grammar.automata.building import Arena, WorkLimit
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node, longest_length
from lmc.ir.errors import ConstraintError

LETTERS = b"ab"
LONGEST = 5
STRINGS = [bytes(each) for size in range(LONGEST + 1) for each in itertools.product(LETTERS, repeat=size)]
Language = frozenset[bytes]  # the strings of an expression with up to LONGEST letters

leaves = st.sampled_from(
    [("literal", b""), ("literal", b"a"), ("literal", b"ab"), ("literal", b"bab"), ("any",), ("none",)]
)


def _larger(inner):
    several = st.lists(inner, min_size=1, max_size=3)
    bounds = st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3)))
    return st.one_of(
        st.tuples(st.just("concat"), several),
        st.tuples(st.just("union"), several),
        st.tuples(st.just("intersection"), several),
        st.tuples(st.just("complement"), inner),
        st.tuples(st.just("repeat"), inner, bounds),
    )


expressions = st.recursive(leaves, _larger, max_leaves=8)


def build(arena: Arena, expression) -> Node:
    match expression:
        case ("literal", data):
            return arena.literal(data)
        case ("any",):
            return arena.byte_set(sum(1 << letter for letter in LETTERS))
        case ("none",):
            return arena.empty
        case ("concat", parts):
            return arena.concat(*(build(arena, part) for part in parts))
        case ("union", parts):
            return arena.union(build(arena, part) for part in parts)
        case ("intersection", parts):
            return arena.intersection(build(arena, part) for part in parts)
        case ("complement", part):
            letters = arena.repeat(build(arena, ("any",)), 0, None)
            return arena.intersection([arena.complement(build(arena, part)), letters])
        case ("repeat", part, (low, more)):
            return arena.repeat(build(arena, part), low, None if more is None else low + more)
        case _:
            pass
    raise AssertionError(expression)


def joined(left: Language, right: Language) -> Language:
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


def defined(expression) -> Language:
    """The language by the definition of each operation; what is cut at LONGEST letters never comes back."""
    match expression:
        case ("literal", data):
            return frozenset([data])
        case ("any",):
            return frozenset([b"a", b"b"])
        case ("none",):
            return frozenset()
        case ("concat", parts):
            found = frozenset([b""])
            for part in parts:
                found = joined(found, defined(part))
            return found
        case ("union", parts):
            return frozenset().union(*map(defined, parts))
        case ("intersection", parts):
            return frozenset(STRINGS).intersection(*map(defined, parts))
        case ("complement", part):
            return frozenset(STRINGS) - defined(part)
        case ("repeat", part, (low, more)):
            inner, power, found = defined(part), frozenset([b""]), set()
            for count in range(low + (LONGEST + 1 if more is None else more) + 1):
                if count >= low:
                    found |= power
                power = joined(power, inner)
            return frozenset(found)
        case _:
            pass
    raise AssertionError(expression)


@given(expressions)
def test_an_automaton_takes_the_strings_of_the_definition(expression):
    arena = Arena()
    automaton = Automaton(build(arena, expression), arena)
    found = frozenset(data for data in STRINGS if automaton.matches(data))
    assert found == defined(expression)


@given(expressions)
def test_every_state_can_still_accept(expression):
    arena = Arena()
    automaton = Automaton(build(arena, expression), arena)
    automaton.expand_all(2000)
    states = range(len(automaton))
    live = {state for state in states if automaton.accepting(state)}
    for _ in states:
        live |= {state for state in states if any(target in live for _, target in automaton.arcs(state))}
    assert live == (set() if automaton.is_empty else set(states))
    assert automaton.is_empty == (automaton.shortest() is None)


@given(expressions)
def test_arcs_are_disjoint_and_ordered(expression):
    arena = Arena()
    arcs = Derivatives(arena).arcs(build(arena, expression))
    masks = [mask for mask, _ in arcs]
    assert sum(mask.bit_count() for mask in masks) == _union(masks).bit_count()
    assert [mask & -mask for mask in masks] == sorted(mask & -mask for mask in masks)


def _union(masks: list[int]) -> int:
    together = 0
    for mask in masks:
        together |= mask
    return together


@given(expressions)
def test_a_shortest_output_is_one_and_none_is_shorter(expression):
    arena = Arena()
    automaton = Automaton(build(arena, expression), arena)
    shortest = automaton.shortest()
    if shortest is not None:
        assert automaton.matches(shortest)
        assert not any(automaton.matches(data) for data in STRINGS if len(data) < len(shortest))


@given(expressions)
def test_no_output_is_longer_than_the_bound(expression):
    arena = Arena()
    automaton = Automaton(build(arena, expression), arena)
    if automaton.longest is not None:
        assert not any(automaton.matches(data) for data in STRINGS if len(data) > automaton.longest)


@given(st.lists(st.binary(max_size=6), max_size=30))
def test_a_finite_set_is_its_own_automaton(strings):
    automaton = Automaton.of_strings(strings)
    arena = Arena()
    same = Automaton(arena.union(map(arena.literal, strings)), arena)
    near = {*strings, b"", *(each[:-1] for each in strings), *(each + b"a" for each in strings)}
    for data in near:
        assert automaton.matches(data) == (data in strings) == same.matches(data)
    assert automaton.is_empty == (not strings)
    assert automaton.longest == max(map(len, strings), default=0) == longest_length(build_union(strings))


@pytest.mark.parametrize(
    ("strings", "message"),
    [
        ([b"%d" % number + b"x" * 9_990 for number in range(60)], "different beginnings, more than 500000\n  remedy: "),
        ([b"a", b"x" * 20_001], "a choice of 20001 bytes, more than 20000\n  remedy: let the model choose a short"),
    ],
)
def test_a_set_that_is_too_large_is_refused_before_it_is_made(strings: list[bytes], message: str):
    with pytest.raises(ConstraintError, match=message):
        Automaton.of_strings(strings)


def build_union(strings):
    arena = Arena()
    return arena.union(map(arena.literal, strings))


def test_equal_expressions_are_one_node():
    arena = Arena()
    a, b = arena.literal(b"a"), arena.literal(b"b")
    assert arena.union([a, b]) is arena.union([b, a]) is arena.byte_set(a.mask | b.mask)
    assert arena.repeat(arena.repeat(a, 1, 100), 1, 100) is arena.repeat(a, 1, 10_000)
    assert arena.repeat(arena.repeat(a, 2, 3), 0, 1) is not arena.repeat(a, 0, 3)
    assert arena.concat(arena.repeat(a, 1, 2), arena.repeat(a, 0, None)) is arena.repeat(a, 1, None)
    assert arena.union([arena.epsilon, arena.repeat(a, 1, 5)]) is arena.repeat(a, 0, 5)
    assert arena.union([arena.repeat(a, 0, 3), arena.repeat(a, 2, 7)]) is arena.repeat(a, 0, 7)
    assert arena.concat(arena.concat(a, b), a) is arena.literal(b"aba")
    assert arena.complement(arena.complement(b)) is b


def test_forced_bytes_end_where_there_is_a_choice_or_an_end():
    arena = Arena()
    root = arena.concat(arena.literal(b"ab"), arena.optional(arena.literal(b"ab")), arena.literal(b"c"))
    automaton = Automaton(root, arena)
    assert automaton.forced_bytes(0) == b"ab"
    assert automaton.forced_bytes(automaton.run(b"abab")) == b"c"
    assert automaton.forced_bytes(automaton.run(b"ababc")) == b""
    assert automaton.forced_bytes(0, limit=1) == b"a"
    assert automaton.run(b"b") == DEAD


def test_counters_cost_no_states_ahead_of_time():
    arena = Arena()
    automaton = Automaton(arena.repeat(arena.everything.parts[0], 0, 20_000), arena)
    assert automaton.matches(b"x" * 20_000)
    assert not automaton.matches(b"x" * 20_001)
    assert automaton.longest == 20_000
    assert Automaton(arena.repeat(arena.literal(b"a"), 5, 1_000_000_000), arena).forced_bytes(0) == b"aaaaa"


def test_a_counter_in_front_of_many_texts_is_one_counter():
    def work(count: int, times: int) -> int:
        arena = Arena()
        spaces = arena.repeat(arena.literal(b" "), 0, times)
        texts = [arena.concat(arena.literal(b","), spaces, arena.literal(b"t%d" % each)) for each in range(count)]
        automaton = Automaton(arena.union(texts), arena)
        automaton.expand_all(1000)
        assert automaton.matches(b"," + b" " * times + b"t7")
        assert not automaton.matches(b"," + b" " * (times + 1) + b"t7")
        return arena.work + len(arena)

    assert work(100, 40) - work(100, 20) == work(10, 40) - work(10, 20)


@pytest.mark.parametrize(
    ("build_root", "fitting"),
    [
        (lambda arena, a, any_: arena.repeat(arena.repeat(arena.repeat(a, 1, 100), 1, 100), 1, 100), b"a" * 500),
        (lambda arena, a, any_: arena.concat(arena.repeat(any_, 0, None), a, arena.repeat(any_, 30, 30)), b"ab" * 40),
        (lambda arena, a, any_: _nested(arena, a, 2000), b"a" * 2000),
    ],
    ids=["nested-repeats", "exponential-dfa", "deep"],
)
def test_bombs_are_answered_quickly(build_root, fitting):
    arena = Arena()
    start = time.perf_counter()
    automaton = Automaton(build_root(arena, arena.literal(b"a"), arena.byte_set(3 << 97)), arena)
    automaton.matches(fitting)
    assert time.perf_counter() - start < 5  # a second on a quiet machine


def _nested(arena: Arena, node: Node, depth: int) -> Node:
    made = arena.epsilon
    for _ in range(depth):
        made = arena.optional(arena.concat(node, made))
    return made


def test_budgets_are_refused_by_count():
    arena = Arena(WorkLimit(nodes=50))
    with pytest.raises(ConstraintError, match="more than 50 expressions"):
        arena.union(arena.literal(b"%d!" % number) for number in range(100))
    arena = Arena()
    root = arena.concat(
        arena.repeat(arena.byte_set(3 << 97), 0, None),
        arena.literal(b"a"),
        arena.repeat(arena.byte_set(3 << 97), 30, 30),
    )
    with pytest.raises(ConstraintError, match="more than 1000 states"):
        Automaton(root, arena).expand_all(1000)
    made = Automaton(arena.literal(b"abcdef"), arena, max_states=3)
    assert made.matches(b"abcdef")
    assert made.is_half_full
    with pytest.raises(ConstraintError, match="alternatives at one place"):
        arena.union(arena.literal(b"%06d" % number) for number in range(20_001))
    with pytest.raises(ValueError, match="repeat from 3 to 2"):
        arena.repeat(arena.literal(b"a"), 3, 2)


def test_what_takes_too_many_steps_is_refused():
    arena = Arena()
    node = arena.literal(b"a")
    for _ in range(2000):
        node = arena.repeat(arena.concat(node, arena.literal(b"b")), 0, None)
    with pytest.raises(ConstraintError, match="too many steps at one place"):
        Automaton(node, arena).expand(0)


@pytest.mark.parametrize("most", [1, 2])
def test_texts_that_double_are_refused(most):
    arena = Arena()
    node = arena.repeat(arena.literal(b"a"), 1, most)

    def double(node: Node) -> Node:
        for _ in range(60):
            node = arena.concat(node, arena.literal(b"x"), node)
        return node

    with pytest.raises(ConstraintError, match=r"too many steps at one place|a text of more than 20000 bytes"):
        double(node)


def test_an_intersection_of_too_many_states_is_refused():
    arena = Arena()
    both = arena.byte_set(3 << 97)
    a_30th = arena.concat(arena.repeat(both, 0, None), arena.literal(b"a"), arena.repeat(both, 30, 30))
    b_30th = arena.concat(arena.repeat(both, 0, None), arena.literal(b"b"), arena.repeat(both, 30, 30))
    with pytest.raises(ConstraintError, match="have to hold together take more than"):
        Automaton(arena.intersection([a_30th, b_30th, arena.complement(a_30th)]), arena)


def test_rows_that_are_made_are_not_gone_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena()
    made = Automaton(arena.repeat(arena.byte_set(3 << 97), 0, 50), arena)
    made.expand_all()
    at_once = Automaton.of_strings([b"abc", b"abd"])
    monkeypatch.setattr(Automaton, "expand", lambda *_: pytest.fail("made again"))
    for each, states in ((made, 51), (at_once, 5)):
        each.expand_all()
        assert len(each) == states
        with pytest.raises(ConstraintError, match=f"more than {states - 1} states"):
            each.expand_all(states - 1)
