import pytest

from lmc.grammar.automata.building import Arena
from lmc.grammar.context_free.lowering import rules_of_grammar
from lmc.grammar.context_free.rules import regular_node
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


def test_rules_that_would_be_too_large_as_one_stay():
    count = 18
    doubled = "\n".join(f"a{at}: a{at - 1} a{at - 1}" for at in range(count, 0, -1))
    grammar = f'start: a{count}\n{doubled}\na0: "x" | "yz"'
    rules, _ = rules_of_grammar(grammar, Arena())
    assert regular_node(rules.trimmed()) is None
    constraint = of_grammar(grammar)
    state = constraint.start()
    assert [token for token in range(256) if state.mask()[token // 32] >> token % 32 & 1] == [ord("x"), ord("y")]
    assert state.advance(ord("y")).forced() == [ord("z")]
