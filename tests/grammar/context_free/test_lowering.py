import os
import random
from collections import Counter

import lark
import pytest

from lmc.grammar.automata.building import Arena
from lmc.grammar.context_free.lowering import MAX_DEPTH, rules_of_grammar
from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import JSON, of_grammar, random_grammar, texts

CASES = 400 if os.environ.get("LMC_TEST_FULL") == "1" else 25


def _lark(grammar: str) -> lark.Lark:
    return lark.Lark(grammar, parser="earley", lexer="dynamic_complete")


def _is_in(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.LarkError:
        return False
    return True


def test_nothing_is_accepted_that_lark_does_not_and_little_is_left_out():
    """Random grammars whose terminals overlap, against Lark's own parser, which tries every way to cut a text."""
    counts: Counter[tuple[bool, bool]] = Counter()
    for seed in range(CASES):
        chance = random.Random(seed)
        grammar = random_grammar(chance)
        try:
            constraint, parser = of_grammar(grammar), _lark(grammar)
        except (ConstraintError, lark.exceptions.LarkError):
            continue
        cases = [
            *chance.sample(list(texts("abc", 5)), 50),
            *(constraint.derivations.example(each).decode() for each in range(4)),
        ]
        if "ignore" in grammar:
            cases = [text[:1] + " " * chance.randrange(2) + text[1:] if len(text) > 1 else text for text in cases]
        for text in cases:
            if len(text) <= 20:
                counts[constraint.matches(text), _is_in(parser, text)] += 1
    assert counts[True, False] == 0
    assert counts[True, True] > 3 * CASES
    assert counts[False, True] < counts[True, True] / 10


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a"~2..3 ["b"]\n',
        'start: x{"a", B} x{B, "a"}\nx{one, two}: one two | two\nB: "b"+\n',
        'start: pair{pair{"a"}}\npair{x}: x x\n',
        'start: "A"i B\nB: ("a" | "b")~2\n',
        "start: A\nA: /a(?=)/\n".replace("(?=)", "(b|c)?"),
        'start: A | B\nA.2: "a" "b"~0..2\nB: "b"\n',
        '?start: start "a" | "b" -> one\n',
        'start: "a" | \n',
        'start: ("a" "b"?)* ("c" | ("a" "c")+)\n',
    ],
)
def test_pieces_of_notation_mean_what_they_do_in_lark(grammar):
    constraint, parser = of_grammar(grammar), _lark(grammar)
    found = [text for text in texts("abcA", 4) if constraint.matches(text)]
    assert found == [text for text in texts("abcA", 4) if _is_in(parser, text)]
    assert found


def test_json_is_that_of_lark():
    constraint, parser = of_grammar(JSON), _lark(JSON)
    chance = random.Random(1)
    for seed in range(30):
        text = constraint.derivations.example(seed, spaced=chance.random() < 0.5).decode()
        assert constraint.matches(text) == _is_in(parser, text)
        broken = text.replace(chance.choice('{}[]:,"'), "", 1)
        assert constraint.matches(broken) == _is_in(parser, broken)


def test_what_is_ignored_stands_between_terminals():
    constraint = of_grammar('start: "a" "b"* \n%ignore " "\n%ignore /#[^\\n]*\\n/')
    for text in ("ab", "a b", "a  b b", "a # x\n #\nb"):
        assert constraint.matches(text)
    for text in (" a", "a # b", "a #", "ab#"):
        assert not constraint.matches(text)


def test_a_template_that_goes_on_for_ever_is_refused():
    with pytest.raises(ConstraintError, match="templates are used more than 1000 times, or 40 deep"):
        of_grammar('start: x{"a"}\nx{y}: y x{z{y}}\nz{y}: y y')


@pytest.mark.parametrize(
    ("text", "position", "told"),
    [
        ('x: "a"', 0, "there is no rule start"),
        ("start: x", 7, "there is no rule x"),
        ('start: "a"\nx: B', 14, "there is no terminal B"),
        ("start: A\nA: B\nB: A", 9, "the terminal A refers to itself"),
        ('start: A\nA: x\nx: "a"', 12, "x is a rule, and terminals are made of terminals only"),
        ('start: x{"a"}\nx: "a"', 7, "x takes 0 arguments, not 1"),
        ("start: x\nx{y}: y", 7, "x takes 1 arguments, not 0"),
        ('start: X{"a"}\nX{Y}: Y', 7, "X is a template of terminals"),
        ("start: /a(/", 9, "a group without its closing parenthesis"),
        ("start: /(?=a)b/", 8, "(?=a)"),
        ("start: A\n\nA: /x/ | /ab\\b/", 22, "\\b"),
        ("start: /a/l", 7, "the flag l of a pattern"),
        ("%import common.INT\nstart: INT x", 30, "there is no rule x"),
        (
            "start: T0\n" + "".join(f"T{n}: T{n + 1}\n" for n in range(MAX_DEPTH + 2)),
            351,
            "terminals refer to others more than",
        ),
    ],
)
def test_what_means_nothing_is_refused_at_its_place(text, position, told):
    with pytest.raises(ConstraintError) as caught:
        rules_of_grammar(text, Arena())
    assert told in caught.value.cause
    assert caught.value.position == position
    assert caught.value.remedy


def test_too_many_symbols_are_refused():
    with pytest.raises(ConstraintError, match="more than 50000 symbols"):
        of_grammar("start: " + "x " * 50_001 + '\nx: "a"')
