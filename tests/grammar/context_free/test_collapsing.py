import pytest

from lmc.grammar.building import Arena
from lmc.grammar.context_free.collapsing import regular_node
from lmc.grammar.context_free.lowering import rules_of_grammar
from tests.grammar.context_free.grammar_cases import of_grammar, texts


@pytest.mark.parametrize(
    ("grammar", "outputs"),
    [
        ('start: x y\nx: "a" | "ab"\ny: "bcd" | "ce"', ["abcd", "abbcd", "ace", "abce"]),
        ('start: A B\nA: /a+/\nB: "ab"', ["aab", "aaab"]),
        ('start: start "b" | "a"', ["a", "ab", "abb"]),
        ('start: "b" start | "a"', ["a", "ba", "bba"]),
        ('start: x~2 [x]\nx: "a" | y\ny: "b"', ["aa", "aba"]),
    ],
)
def test_rules_that_do_not_nest_leave_nothing_out(grammar, outputs):
    constraint = of_grammar(grammar)
    assert len(constraint.rules.terminals) == 1
    for text in outputs:
        assert constraint.matches(text)
    assert not constraint.matches("abc")
    assert sum(map(constraint.matches, texts("abcde", 4))) >= 2


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a" start "b" | "c"',
        'start: "a" start | start "b" | "c"',
        'start: start start | "c"',
        'start: "a" x | "c"\nx: "b" start',
        'start: "a" "b"\n%ignore " "',
        'start: start? "a" | start*',
    ],
)
def test_rules_that_nest_or_leave_something_out_between_stay(grammar):
    rules, _ = rules_of_grammar(grammar, Arena())
    assert regular_node(rules.trimmed()) is None
