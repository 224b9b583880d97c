from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmc.grammar.facts as module
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.compiling import compile
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.context_free.constraint import MAX_DERIVED
from lmc.grammar.facts import forced_share, shortest_in_index
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import TREE, vocabulary
from tests.grammar.token_cases import automata, complete_index, vocabularies

BYTES = Vocabulary([bytes((byte,)) for byte in range(256)] + [b"ab", b"abc", b"<end>"], (), 258)


def _facts(*, built: bool = True, **given):
    constraint = compile(tokenizer=BYTES, **given)
    if built:
        constraint.build()
    return constraint.facts()


def test_facts_of_a_regular_constraint():
    facts = _facts(regex="(abc){2,3}x")
    assert (facts.kind, facts.shortest_tokens, facts.longest_tokens, facts.only) == ("regular", 3, 10, None)
    assert facts.states == 11
    assert facts.masks is not None
    assert 0 < facts.masks <= facts.states
    assert facts.token_classes is not None
    assert facts.token_classes < 10
    assert facts.table_bytes is not None
    assert facts.example in ("abcabcx", "abcabcabcx")
    assert facts.forced_share is not None
    assert 0.5 < facts.forced_share < 1
    assert facts == _facts(regex="(abc){2,3}x")


def test_a_short_output_is_found_without_the_index():
    constraint = compile(tokenizer=BYTES, regex="(abc|x{9})y{2,9}")
    assert isinstance(constraint, RegularConstraint)
    assert constraint.shortest_beyond(3) is None
    assert constraint.index is None
    assert constraint.shortest_beyond(2) == 3
    assert compile(tokenizer=BYTES, grammar='start: "a" start "b" | "ccc"').shortest_beyond(1) is None


def test_the_only_output_is_told():
    facts = _facts(regex="a(b|b)c{2}")
    assert (facts.only, facts.example, facts.forced_share) == ("abcc", "abcc", 1.0)
    assert (facts.shortest_tokens, facts.longest_tokens) == (2, 4)
    assert _facts(choices=["yes"]).only == "yes"
    assert _facts(regex="").only == ""
    assert _facts(regex="").forced_share is None
    assert _facts(regex="x{5000}").only == "x" * 5000
    for pattern in ("a?", "ab*", "a|b", "a+"):
        assert _facts(regex=pattern).only is None


def test_without_an_index_sizes_are_open():
    facts = _facts(regex="(abc){2,3}x", built=False)
    assert (facts.states, facts.token_classes, facts.masks, facts.table_bytes) == (None,) * 4
    assert (facts.shortest_tokens, facts.longest_tokens) == (3, 10)
    assert facts.example is not None


def test_what_would_take_too_long_is_open(monkeypatch):
    monkeypatch.setattr(module, "MAX_WALKS", 2)
    assert _facts(regex="[ab]{9}", built=False).shortest_tokens is None
    monkeypatch.setattr(module, "MAX_STEPS", 2)
    assert _facts(regex="[ab]{9}").shortest_tokens is None
    monkeypatch.setattr(module, "MAX_ONLY", 10)
    assert _facts(regex="x{20000}").only is None


def test_facts_of_a_constraint_with_costly_states_are_found_in_few_steps():
    constraint = compile(regex=".*x.{2000}y", tokenizer=BYTES)
    assert isinstance(constraint, RegularConstraint)
    assert constraint.facts().states is None
    assert constraint.automaton.work < 2 * module.MAX_WORK
    with pytest.raises(ConstraintError, match="a shortest output can't be worked out in 200000 steps\n  remedy: give"):
        constraint.automaton.shortest()


def test_a_long_example_of_a_grammar_is_not_walked():
    facts = _facts(grammar=f"start: {' '.join(f'{chr(34)}a{number}{chr(34)}' for number in range(1200))} (start | )")
    assert facts.example is not None
    assert len(facts.example) > MAX_DERIVED
    assert facts.forced_share is None


def test_facts_of_outputs_without_a_bound():
    facts = _facts(regex="[ab]+c")
    assert facts.longest_tokens is None
    assert facts.shortest_tokens == 1  # abc


def test_facts_of_a_context_free_constraint():
    facts = _facts(schema=TREE)
    assert facts.kind == "context-free"
    assert (facts.states, facts.shortest_tokens, facts.longest_tokens, facts.only) == (None, 12, None, None)
    assert facts.example is not None
    assert facts.example.startswith('{"name":')
    assert facts.forced_share is not None
    assert facts.forced_share > 0.3
    assert _facts(grammar='start: x x\nx: "a" "b"~2').only == "abbabb"
    assert _facts(grammar='start: "a" start "b" | "c"').example is not None


@given(automata(), vocabularies(), st.booleans())
def test_the_shortest_output_is_that_of_a_search_token_by_token(automaton: Automaton, tokens: Vocabulary, built: bool):
    try:
        constraint = RegularConstraint(automaton, tokens, "digest")
        index = complete_index(constraint)
    except ConstraintError:  # no output can be written in these tokens
        return
    seen, queue = {0}, deque([(0, 0)])
    expected = None
    while queue and expected is None:
        state, length = queue.popleft()
        if index.accepting(state):
            expected = length
        for token_id in range(tokens.size):
            following = index.step(state, token_id) if tokens.tokens[token_id] else -1
            if following >= 0 and following not in seen:
                seen.add(following)
                queue.append((following, length + 1))
    assert shortest_in_index(index) == expected
    lazy = RegularConstraint(automaton, tokens, "digest").facts()
    assert lazy.shortest_tokens in (expected, None)
    assert expected is not None
    fresh = RegularConstraint(automaton, tokens, "digest")
    assert [fresh.shortest_beyond(limit) for limit in (expected, expected - 1, 0)] == [
        None,
        expected,
        expected or None,
    ]
    assert lazy.longest_tokens is None or expected is None or lazy.longest_tokens >= expected


@pytest.mark.parametrize(("pattern", "share"), [("abx", 1.0), ("[abx]{3}", 0.0), ("[qr]ab", 0.5), ("x?ab", 0.0)])
def test_the_forced_share_counts_tokens_that_had_to_follow(pattern, share):
    constraint = compile(regex=pattern, tokenizer=BYTES)
    text = {"[qr]ab": b"qab"}.get(pattern, b"abx" if pattern != "x?ab" else b"ab")
    assert forced_share(constraint.start(), BYTES, text) == share


def test_a_vocabulary_that_cannot_write_the_example_has_no_share():
    tokens = Vocabulary([b"a", b"b"], ())
    assert forced_share(compile(regex="a|b", tokenizer=tokens).start(), tokens, b"c") is None
    assert vocabulary().size == 300
