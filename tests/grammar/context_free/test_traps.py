import pytest

from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import of_grammar

IGNORED = '\n%ignore " "\n'


@pytest.mark.parametrize(
    ("grammar", "who", "after"),
    [
        ('start: "(" start ")" | x "c"\nx: A x | A "b"\nA: /[a-c]+/', "the terminal A", "'abc'"),
        (r'start: "(" start ")" | /[^x]+/ ")"', "a terminal", "')'"),
        ('start: A B\n%ignore "a"\nA: /[a-z]+/\nB: /b/', "the terminal A", "'ab'"),
    ],
)
def test_a_terminal_that_takes_all_that_may_follow_is_refused(grammar, who, after):
    with pytest.raises(ConstraintError) as caught:
        of_grammar(grammar)
    assert caught.value.cause.startswith(f"{who} takes all that may follow it ({after})")
    assert "leave what follows out of its pattern" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('start: "(" start ")" | /[^()]*/', "((x))"),
        ("start: A start | A\nA: /[a-z]+/", "ab"),  # the output may end there
        ('start: "(" start ")" | /[a-z]+/ "(" /[a-z]/', "(ab(c)"),
        ('start: "[" start "]" | A+' + IGNORED + "A: /[a-z]/", "[a b]"),
    ],
)
def test_terminals_that_can_be_left_are_not(grammar, text):
    assert of_grammar(grammar).matches(text)
