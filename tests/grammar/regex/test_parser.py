"""What the parser takes and refuses: all that `re` refuses, and of what `re` takes only what is documented."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.regex.parser import MAX_NESTING, parse
from lmc.grammar.regex.syntax import Alternation, Anchor, Characters, Concatenation, Repeat, Text
from lmc.ir.errors import ConstraintError
from tests.grammar.regex.pattern_strategies import automaton_or_error, compiled, matches, refused

PIECES = [
    *("a", "b", "k", " ", "\n", "-", "é", "ſ", "1", ",", "#", "]", "}", "{", "[", "(", "(", ")", ")", "|", "|"),
    *(".", "^", "$", "*", "+", "?", "++", "*?", "{2}", "{1,2}", "{,2}", "{2,}", "{0}", "{3,1}", "{,}", "{}", "\\"),
    *("(?:", "(?i:", "(?s:", "(?-i:", "(?m:", "(?x:", "(?i)", "(?x)", "(?s)", "(?P<n>", "(?P<o>", "(?#x)", "(?"),
    *("(?=", "(?!", "(?<=", "(?>", "(?P=n)", "(?(1)", "(?-", "(?a:", "(?u:", "(?<n>", "(?L)", "(?P>"),
    *(r"\d", r"\W", r"\s", r"\A", r"\Z", r"\b", r"\B", r"\n", r"\t", r"\x61", r"\x6", r"\u00e9", r"\U0001f600", r"\0"),
    *(r"\1", r"\12", r"\101", r"\400", r"\8", r"\.", r"\-", r"\ ", r"\q", r"\Q", r"\é", r"\N{DIGIT ONE}", r"\N{x}"),
    *(
        "[ab]",
        "[^a]",
        "[a-c]",
        "[]a]",
        "[^]a]",
        "[a-]",
        r"[\w-]",
        r"[\d-a]",
        "[z-a]",
        "[a-\\d]",
        "[\\b]",
        r"[\8]",
        "[^",
    ),
]
TEXTS = [
    "",
    "a",
    "b",
    "k",
    "K",
    "é",
    "É",
    "ſ",
    "s",
    " ",
    "\n",
    "-",
    "1",
    "{",
    "}",
    "]",
    "#",
    ",",
    "^",
    "ab",
    "a b",
    "aa",
]
MORE_TEXTS = ["A", "É\n", "{2,}", "a-b", "{,}", "\x0a", "ba", "aaa", "é1", "\x00", "x", "b\n"]
UNSUPPORTED = ("look-", "boundary", "back-reference", "conditional", "atomic", "possessive", "an anchor ")


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join), min_size=30, max_size=30))
def test_re_agrees_on_what_is_a_pattern_and_on_what_it_matches(patterns):
    for pattern in patterns:
        made = automaton_or_error(pattern)
        try:
            oracle = compiled(pattern)
        except re.error:
            assert isinstance(made, ConstraintError), pattern
            continue
        if isinstance(made, ConstraintError):
            assert any(each in made.cause for each in UNSUPPORTED), (pattern, made)
            continue
        for text in TEXTS + MORE_TEXTS:
            assert made.matches(text.encode()) == bool(oracle.fullmatch(text)), (pattern, text)


def test_a_pattern_becomes_a_tree():
    pattern = parse(r"ab{2,3}(c|[d-f]*?)$")
    assert isinstance(pattern.root, Concatenation)
    text, repeat, group, end = pattern.root.items
    assert isinstance(text, Text)
    assert text.text == "a"
    assert isinstance(repeat, Repeat)
    assert (repeat.low, repeat.high) == (2, 3)
    assert isinstance(group, Alternation)
    first, second = group.arms
    assert isinstance(first, Text)
    assert isinstance(second, Repeat)
    assert (second.low, second.high) == (0, None)
    assert isinstance(second.item, Characters)
    assert second.item.charset == CharSet.of("def")
    assert isinstance(end, Anchor)
    assert (end.position, end.spelling, end.is_start) == (18, "$", False)
    assert pattern.anchors == [end]
    assert pattern.composites[-1] is pattern.root
    assert set(pattern.composites) == {repeat, second, group, pattern.root}


def test_neighbouring_texts_are_one():
    pattern = parse(r'\{(?:"na")me\x21(?#x)é')
    assert isinstance(pattern.root, Text)
    assert pattern.root.text == '{"na"me!é'
    assert not pattern.composites


def test_only_letters_with_case_leave_a_text():
    pattern = parse("(?i)12a34")
    assert isinstance(pattern.root, Concatenation)
    first, letter, last = pattern.root.items
    assert isinstance(first, Text)
    assert isinstance(letter, Characters)
    assert isinstance(last, Text)
    assert (first.text, letter.charset, last.text) == ("12", CharSet.of("aA"), "34")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("(?x) a b # comment", "ab", "a b"),
        ("(?x)a\\ b[ ]#(", "a b ", "ab"),
        ("(?x:a b) c", "ab c", "abc"),
        ("(?x)a(?-x: b)", "a b", "ab"),
        ("(?i:a)b", "Ab", "AB"),
        ("(?i)a(?-i:b)", "Ab", "AB"),
        ("(?is)(?#c)(?x) a .", "A\n", "A"),
        ("(?s:.).", "\na", "\n\n"),
        ("(?u:\\w)\\w", "éa", "éé"),
        ("(?u)\\w(?a:\\w)", "éa", "éé"),
        ("(?iu)k", "\u212a", "q"),
        ("(?i)k", "K", "\u212a"),
        ("(?P<name>a)", "a", ""),
        ("a|b|", "", "ab"),
        ("\\z", "", "z"),
    ],
)
def test_groups_and_flags(pattern, yes, no):
    assert matches(pattern, yes)
    assert not matches(pattern, no)


REFUSED = {
    "(a": (0, "without its closing parenthesis"),
    "(a(b)": (0, "without its closing parenthesis"),
    "a)": (1, "a closing parenthesis without a group"),
    "*a": (0, "nothing to repeat"),
    "a|*": (2, "nothing to repeat"),
    "(+)": (1, "nothing to repeat"),
    "^*": (1, "nothing to repeat"),
    "a**": (2, "a quantifier of a quantifier"),
    "a{2}{3}": (4, "a quantifier of a quantifier"),
    "(?x)a* *": (7, "a quantifier of a quantifier"),
    "a{1}*": (4, "a quantifier of a quantifier"),
    "a(?i)b": (1, "flags that are not at the start"),
    "a|(?i)b": (2, "flags that are not at the start"),
    "((?i)b)": (1, "flags that are not at the start"),
    "(?P<n>a)(?P<n>b)": (8, "two groups of one name"),
    "x\ud800": (1, "a surrogate alone is no character"),
    r"x\ud800": (1, "a surrogate alone is no character"),
    r"\ud83d\ude00": (0, "a surrogate alone is no character"),
    "(" * (MAX_NESTING + 1): (MAX_NESTING, f"more than {MAX_NESTING} groups"),
}


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: ascii(pattern[:20]))
def test_wrong_patterns_are_refused_where_they_are_wrong(pattern):
    error = refused(pattern)
    position, problem = REFUSED[pattern]
    assert problem in error.cause
    assert error.position == position


def test_groups_may_be_nested_up_to_the_limit():
    assert matches("(" * MAX_NESTING + "a" + ")" * MAX_NESTING, "a")
