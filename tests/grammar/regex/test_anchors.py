"""Anchors: accepted where they provably stand at an end, and then as in `re`; refused anywhere else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.errors import ConstraintError
from tests.grammar.regex.pattern_strategies import automaton, automaton_or_error, compiled, matches, refused

AT_THE_ENDS = [
    "^(a|b)$",
    "(^a|b$)",
    "^^a$$",
    r"\A^a\Z$",
    "()^a",
    "(?:^)a($)",
    "(^)*a",
    "(^)+a($){2,3}",
    "(^a)?b",
    "(^|,)a(,|$)",
    "^$|^a$",
    "(^|$)",
    "(^$|)",
    "(^$)|b",
    "(^(a|(b$)))|c",
    "((^|a)b|c)",
    "^a|b$",
    "(?m)^a$",
    "a{0}^b",
    "(a^){0}b",
    "(^|)a($|)",
    "(b|a$)$",
    r"(b|a\Z)$",
    r"(b|a$)\Z",
    r"(^$|\Z)",
    "",
]
INSIDE = {
    "a^b": 1,
    "(a|)^b": 4,
    "a*^b": 2,
    "a$b": 1,
    "$a": 0,
    "a^": 1,
    "(a^|b)c": 2,
    "a(^|b)": 2,
    "($|a)b": 1,
    r"a\Ab": 1,
    r"a\Zb": 1,
    r"a\zb": 1,
    "b(^)a": 2,
    "a()$b": 3,
    "(?m)a$b": 5,
    "a(b|c(d|^e))": 8,
}
REPEATED = {"(^a)+": 1, "(^a|b)*": 1, "(a$){1,2}": 2, "(?:(a|^b)c){2}": 6}
TEXTS = [
    "",
    "\n",
    "a",
    "b",
    "c",
    "ab",
    "ba",
    "a\n",
    "\na",
    "b\n",
    "ac",
    "bc",
    ",a",
    "a,",
    "xa,",
    "x,a,x",
    "b\na",
    "a\n\n",
]


@pytest.mark.parametrize("pattern", AT_THE_ENDS)
def test_anchors_at_the_ends_mean_what_they_mean_in_re(pattern):
    oracle = compiled(pattern)
    whole = automaton(pattern)
    for text in TEXTS:
        assert whole.matches(text.encode()) == bool(oracle.fullmatch(text)), text
    if "(?m)" in pattern:
        return
    search = automaton(pattern, search=True)
    for text in TEXTS:
        assert search.matches(text.encode()) == bool(oracle.search(text)), text


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("pattern", INSIDE)
def test_anchors_inside_are_refused(pattern, search):
    if search and "(?m)" in pattern:
        return
    error = refused(pattern, search=search)
    assert "inside of the text" in error.cause
    assert error.position == INSIDE[pattern]
    starts = pattern[INSIDE[pattern] :].startswith(("^", r"\A"))
    assert f"put it {'first' if starts else 'last'}" in str(error)


@pytest.mark.parametrize("pattern", REPEATED)
def test_anchors_in_a_repeat_are_refused(pattern):
    error = refused(pattern)
    assert "in what is repeated" in error.cause
    assert error.position == REPEATED[pattern]


def test_the_end_of_a_whole_match_is_the_end_of_the_text():
    assert re.fullmatch("a$", "a\n") is None
    assert not matches("a$", "a\n")


def test_the_end_of_a_search_may_be_before_a_newline_but_not_in_ecma():
    assert matches("a$", "a\n", search=True)
    assert not matches(r"a\Z", "a\n", search=True)
    assert not matches("a$", "a\n\n", search=True)
    assert not matches("a$", "a\n", search=True, ecma=True)
    assert matches("a$", "ba", search=True, ecma=True)


pieces = st.sampled_from(["a", "b", "^", "$", "^", "$", r"\A", r"\Z", "()", "a?", "(?:^|a)", "(?:b|$)", r"\n", "(?:)"])


def _larger(inner):
    return st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda arms: f"({'|'.join(arms)})"),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["?", "*", "{2}", "{0,1}", "{1}"])),
    )


@given(st.lists(st.recursive(pieces, _larger, max_leaves=6), min_size=20, max_size=20))
def test_what_is_accepted_means_what_it_means_in_re(patterns):
    for pattern in patterns:
        oracle = compiled(pattern)
        for search in (False, True):
            made = automaton_or_error(pattern, search=search)
            if isinstance(made, ConstraintError):
                assert "an anchor" in made.cause
                assert made.position is not None
                assert pattern[made.position :].startswith(("^", "$", r"\A", r"\Z"))
                continue
            for text in TEXTS:
                expected = bool(oracle.search(text) if search else oracle.fullmatch(text))
                assert made.matches(text.encode()) == expected, (pattern, text, search)
