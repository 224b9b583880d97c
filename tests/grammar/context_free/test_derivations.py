import pytest

from tests.grammar.context_free.grammar_cases import JSON, of_grammar


@pytest.mark.parametrize(
    ("grammar", "shortest", "longest", "only"),
    [
        ('start: "ab" x~2..3\nx: "c" | "dd"', b"abcc", 8, None),
        ('start: "a" start "b" | "c"', b"c", None, None),
        ('start: x x\nx: "a" y~2\ny: "b"', b"abbabb", 6, b"abbabb"),
        ("start: /a*/", b"", None, None),
        ('start: "a" "b"\n%ignore " "', b"ab", None, None),
        ('start: "a"i', b"A", 1, None),
        ('start: x | y\nx: "ab"\ny: "ab"', b"ab", 2, b"ab"),
    ],
)
def test_lengths_and_the_only_text(grammar, shortest, longest, only):
    derivations = of_grammar(grammar).derivations
    assert derivations.shortest() == shortest
    assert derivations.longest == longest
    assert derivations.only == only


def test_examples_are_texts_that_differ():
    constraint = of_grammar(JSON)
    found = [constraint.derivations.example(seed, spaced=seed % 2 == 1) for seed in range(20)]
    assert len(set(found)) > 8
    assert all(map(constraint.matches, found))
    assert found == [constraint.derivations.example(seed, spaced=seed % 2 == 1) for seed in range(20)]


def test_a_long_way_is_walked_without_recursion():
    grammar = of_grammar('start: "(" start ")" | x\nx: "a"~300 y\ny: "b"~300 "c"')
    assert grammar.derivations.shortest() == b"a" * 300 + b"b" * 300 + b"c"
