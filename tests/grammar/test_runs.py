"""Runs against what the automaton says, and walks that use them against the definition."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import ALL_BYTES, Node
from lmc.grammar.automata.runs import UNBOUNDED, counted, group_bits, groups_inside, may_run, run_of
from lmc.grammar.native.library import library
from lmc.grammar.vocabulary.trie import Trie
from tests.grammar.token_cases import arranged, bits, byte_tokens, letters

needs_compiler = pytest.mark.skipif(library() is None, reason="no C compiler")
# Bytes that are groups of their own, so that sets of few are runs; and a letter of two bytes.
LETTERS = "-._"
SETS = ["-", "-.", LETTERS]
WORDS = st.lists(st.sampled_from([*LETTERS, "é", "--", "-" * 7]), max_size=5).map("".join)

_leaves = st.sampled_from(SETS).map(lambda each: ("set", each)) | st.sampled_from(["-", "_.", "é"]).map(
    lambda each: ("literal", each)
)


def _larger(inner):
    bounds = st.tuples(st.integers(0, 2), st.sampled_from([None, 0, 1, 3, 9]))
    return st.one_of(
        st.tuples(st.just("concat"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("union"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("intersection"), st.lists(inner, min_size=2, max_size=2)),
        st.tuples(st.just("repeat"), inner, bounds),
    )


expressions = st.recursive(_leaves, _larger, max_leaves=7)


def build(arena: Arena, expression) -> Node:
    match expression:
        case ("set", each):
            return arena.byte_set(letters(each))
        case ("literal", text):
            return arena.literal(text.encode())
        case ("repeat", part, (low, more)):
            return arena.repeat(build(arena, part), low, None if more is None else low + more)
        case _:
            kind, parts = expression
            made = [build(arena, part) for part in parts]
            return arena.concat(*made) if kind == "concat" else getattr(arena, kind)(made)


def automaton_of(expression) -> Automaton:
    return arranged(build, expression)


@needs_compiler
@given(expressions, st.lists(WORDS, max_size=20), WORDS)
def test_masks_are_those_of_the_definition(expression, words: list[str], before: str) -> None:
    tokens = byte_tokens([word.encode() for word in words])
    for start in ("", before):
        automaton = automaton_of(expression)
        state = automaton.run(start.encode())
        if state < 0 or automaton.is_empty:
            continue
        found = bits(Trie(tokens).walk(automaton, state).words)
        assert found == [at for at, token in enumerate(tokens) if token and automaton.run(token, state) >= 0]
        # Once more with the rows and runs that are there now.
        assert bits(Trie(tokens).walk(automaton, state).words) == found


@given(expressions)
def test_whatever_the_order_the_bytes_of_a_run_may_come(expression) -> None:
    arena = Arena()
    node = build(arena, expression)
    automaton = Automaton(node, arena)
    if automaton.is_empty:
        return
    mask, length = run_of(node)
    assert may_run(node) or (length, counted(node)[1]) == (0, 0)
    run = [byte for byte in range(256) if mask >> byte & 1]
    for word in itertools.product(run, repeat=min(length, 4)):
        assert automaton.run(bytes(word)) >= 0
    for byte in run:
        assert automaton.run(bytes([byte]) * min(length, 30)) >= 0


@given(expressions)
@example(("repeat", ("concat", [("set", "-"), ("repeat", ("set", "-"), (0, 3)), ("set", "-")]), (0, None)))
def test_states_that_count_differ_by_their_run_alone(expression) -> None:
    automaton = automaton_of(expression)
    automaton.expand_all()
    for state in range(len(automaton)):
        automaton.note_run(state)
        _, length, following = automaton.runs[state].tolist()
        if following < 0:
            continue
        row, at = automaton.rows[state].copy(), state
        others = row != following
        for _ in range(length):
            assert set(automaton.rows[at][~others].tolist()) == {following}
            at, following = following, int(automaton.rows[following][~others][0])
            assert (automaton.rows[at][others] == row[others]).all()
        assert following == -1


def test_what_ends_a_run_may_lead_back_into_it() -> None:
    """``-{0,5}(_-{0,4})*``: the state after ``-`` is the one after ``_``."""

    def root(arena: Arena) -> Node:
        dash, line = arena.literal(b"-"), arena.literal(b"_")
        again = arena.concat(line, arena.repeat(dash, 0, 4))
        return arena.concat(arena.repeat(dash, 0, 5), arena.repeat(again, 0, None))

    automaton = arranged(root)
    tokens = [b"-" * count + b"_" + b"-" * more for count in range(8) for more in range(8)]
    expected = [at for at, token in enumerate(tokens) if token.index(b"_") <= 5 and len(token.split(b"_")[1]) <= 4]
    assert bits(Trie(tokens).walk(automaton, 0).words) == expected


def test_what_follows_a_run_may_begin_as_it_goes_on() -> None:
    """``-{0,3}x?[-_]_x``: what also begins with ``-`` stands deeper."""

    def root(arena: Arena) -> Node:
        pair = arena.concat(arena.byte_set(letters("-_")), arena.literal(b"_"))
        run = arena.repeat(arena.literal(b"-"), 0, 3)
        return arena.concat(run, arena.optional(arena.literal(b"x")), pair, arena.literal(b"x"))

    automaton = arranged(root)
    tokens = [bytes(each) for count in range(1, 7) for each in itertools.product(b"-_.x", repeat=count)]
    expected = [at for at, token in enumerate(tokens) if automaton.run(token) >= 0]
    assert bits(Trie(tokens).walk(arranged(root), 0).words) == expected
    automaton.note_run(0)
    assert automaton.runs["next"][0] == -1


@needs_compiler
def test_a_counted_run_needs_one_row() -> None:
    tokens = byte_tokens([b"-" * length + end for length in range(70) for end in (b"", b"\xc3\xa9", b"@", b"@x", b"?")])
    automaton = arranged(
        lambda arena: arena.concat(
            arena.repeat(arena.byte_set(letters(LETTERS)), 1, 64), arena.literal(b"@"), arena.byte_set(letters("xy"))
        )
    )
    allowed = {tokens[at] for at in bits(Trie(tokens).walk(automaton, 0).words)}
    assert max(map(len, allowed)) == 66
    assert {b"-" * 64 + b"@x", b"-" * 64, b"-@"} <= allowed
    assert not {b"-" * 65, b"@", b"@x", b"-" * 65 + b"@x"} & allowed
    assert sum(map(automaton.is_expanded, range(len(automaton)))) <= 4


def test_runs_that_are_seen() -> None:
    arena = Arena()
    few, many = arena.byte_set(letters("ab")), arena.byte_set(letters("abc"))
    word, close = arena.repeat(many, 0, 9), arena.literal(b'"')
    escape = arena.literal(b"\\n")
    text = arena.repeat(arena.union([few, escape]), 0, None)
    dead = arena.intersection([arena.repeat(many, 20, 30), arena.literal(b"ab")])
    assert run_of(arena.concat(word, close)) == (letters("abc"), 9)
    assert run_of(arena.concat(text, close)) == (letters("ab"), UNBOUNDED)
    assert run_of(arena.concat(arena.optional(few), word)) == (letters("abc"), 9)
    assert run_of(arena.union([word, arena.concat(text, close)])) == (letters("ab"), UNBOUNDED)
    assert run_of(arena.repeat(arena.concat(word, close), 2, 3)) == (letters("abc"), 9)
    assert run_of(arena.union([arena.concat(word, dead), close])) == (0, 0)
    assert run_of(arena.concat(close, word)) == (0, 0)
    assert counted(word) == (letters("abc"), 9)
    assert (
        counted(arena.repeat(many, 0, 1 << 40)) == run_of(arena.repeat(many, 5, 1 << 40)) == (letters("abc"), UNBOUNDED)
    )
    assert counted(text) == counted(arena.repeat(many, 1, 9)) == counted(close) == (0, 0)


def test_every_byte_is_in_one_group() -> None:
    found = group_bits().tolist()
    assert all(bit.bit_count() == 1 for bit in found)
    assert groups_inside(ALL_BYTES) == sum(set(found))
    assert groups_inside(letters("abcdef-")) == found[ord("a")] | found[ord("-")]
    assert groups_inside(letters("abcde")) == 0
