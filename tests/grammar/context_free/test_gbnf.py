"""GBNF, beside the same grammars in Lark's notation."""

import json
import os
import random

import pytest

from lmc.grammar.compiling import Source, compile_source
from lmc.grammar.constraint import Constraint
from lmc.grammar.context_free.gbnf import is_gbnf
from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import JSON, TREE_GRAMMAR, texts, vocabulary, walked

LLAMA_JSON = r"""
# llama.cpp's grammar of JSON
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
"""


def compiled(grammar: str) -> Constraint:
    return compile_source(Source.of(grammar=grammar), vocabulary())


def outcome(grammar: str) -> list[str] | None:
    """The texts of a grammar, up to a length; None where it is refused."""
    try:
        constraint = compiled(grammar)
    except ConstraintError:
        return None
    return [text for text in texts("abc", 5) if constraint.matches(text)]


def both(chance: random.Random) -> tuple[str, str]:
    """A random grammar in GBNF and in Lark's notation."""

    def expression(depth: int = 0) -> tuple[str, str]:
        kind = chance.randrange(11 if depth < 3 else 4)
        if kind < 2:
            text = f'"{chance.choice(["a", "b", "c", "ab", "ba", ""])}"'
            return text, text
        if kind == 2:
            return chance.choice([("Tail", "tail"), ("x-1", "x"), ("start", "y")])
        if kind == 3:
            return chance.choice(
                [("[ab]", "/[ab]/"), ("[^ac-z]", "/[^ac-z]/"), ("[b-c]", '"b".."c"'), (".", r"/[\s\S]/")]
            )
        one, two = expression(depth + 1), expression(depth + 1)
        if kind < 6:
            return f"{one[0]} {two[0]}", f"{one[1]} {two[1]}"
        if kind < 8:
            return f"({one[0]} |\n {two[0]})", f"({one[1]} | {two[1]})"
        if kind == 8:
            sign = chance.choice("*+?")
            return f"({one[0]}){sign}", f"({one[1]}){sign}"
        if kind == 9:
            return f"({one[0]}){{1,2}}", f"({one[1]})~1..2"
        return f"({one[0]} # ::= )\n)", f"({one[1]})"

    names = (("root", "start"), ("Tail", "tail"), ("x-1", "x"), ("start", "y"))
    rules = [(name, expression()) for name in names]
    gbnf = "\n".join(f"{name[0]} ::= {chosen[0]}" for name, chosen in rules)
    return gbnf, "\n".join(f"{name[1]}: {chosen[1]}" for name, chosen in rules)


@pytest.mark.parametrize("seed", range(60 if os.environ.get("LMC_TEST_FULL") == "1" else 6))
def test_it_means_the_same_as_lark(seed: int):
    gbnf, lark = both(random.Random(seed))
    assert outcome(gbnf) == outcome(lark), (gbnf, lark)


def test_json_of_llama_cpp():
    constraint = compiled(LLAMA_JSON)
    for text in ("{}", '{"a": 1}', '{"a":[1,2,{"b":null}]}', r'{"\u00e9":-1.5e3}', '{ "é": true}\n'):
        assert constraint.matches(text), text
    for text in ("", "[1]", '{"a":01}', "{'a':1}", '{"a":1,}', '{"\n":1}'):
        assert not constraint.matches(text), text
    for seed in range(8):
        text = walked(constraint, random.Random(seed), 120)
        if text is not None:
            json.loads(text)


@pytest.mark.parametrize(
    ("grammar", "texts"),
    [
        (r'root ::= "\"\\\n\t\r\x41\u00e9\U0001f600"', ['"\\\n\t\rAé\U0001f600']),
        (r"root ::= [\]\[\-^a]", ["]", "[", "-", "^", "a"]),
        (r"root ::= [-a]", ["-", "a"]),
        (r"root ::= [a-]", ["-", "a"]),
        (r"root ::= [&~|#.$*]", list("&~|#.$*")),
        (r"root ::= [\x41-\u0043]", ["A", "B", "C"]),
        ('root::="a"\n\n|\n"b"', ["a", "b"]),
        ('# root\nroot ::= "a"{2} "b"{1,} "c"{0,1}', ["aab", "aabbc"]),
        ('root ::= "a" # ::= "b"\n"c"', ["ac"]),
        ("root ::= [日é]", ["日", "é"]),
    ],
)
def test_its_notation(grammar: str, texts: list[str]):
    constraint = compiled(grammar)
    for text in texts:
        assert constraint.matches(text), text
    assert not constraint.matches("x")
    assert not constraint.matches("".join(texts) * 2)


@pytest.mark.parametrize(
    ("grammar", "position", "problem"),
    [
        ('root ::= "a" b', 13, "there is no rule b"),
        ('root ::= "a', 9, "is not GBNF"),
        ("root ::= 'a'", 9, "is not GBNF"),
        ('x ::= "a"', 0, "there is no rule root"),
        ("root ::= [", 9, "is not GBNF"),
        ("root ::= []", 9, "no characters"),
        ("root ::= [^]", 9, "no characters"),
        ("root ::= [z-a]", 9, "ends before it begins"),
        ('root ::= "a"{5,2}', 12, "repeats from 5 to 2"),
        ('root ::= "a"{9999999}', 12, "repeats"),
        ('root ::= "a"{' + "9" * 10_000 + "}", 12, "repeats"),
        ('root ::= "a" (', 14, "the end"),
        ('root ::= "a" )', 13, "')'"),
        ("root ::= *", 9, "'*'"),
        ("root ::= <[1]>", 9, "is not GBNF"),
        ('root ::= (="a") "a"', 10, "is not GBNF"),
        (r'root ::= "\q"', 10, "is no character"),
        (r"root ::= [a\ud800]", 11, "is no character"),
        (r"root ::= [a\U00110000]", 11, "is no character"),
        ('root ::= "a"\nroot ::= "b"', 13, "defined twice"),
        ("root ::= " + "(" * 100, 69, "nest more than"),
        ("root ::= " + '"a" ' * 60_000, 200_000, "characters"),
    ],
)
def test_what_is_wrong_is_named_with_its_position(grammar: str, position: int, problem: str):
    with pytest.raises(ConstraintError, match="line") as caught:
        compiled(grammar)
    assert problem in str(caught.value)
    assert caught.value.position == position


def test_a_grammar_is_gbnf_by_its_first_rule():
    for text in ('root ::= "a"', '\n# x: y\nroot\n::= "a"', "a-b::=c"):
        assert is_gbnf(text)
    for text in (JSON, TREE_GRAMMAR, 'start: "a ::= b"', '// a ::= b\nstart: "a"', "", "x"):
        assert not is_gbnf(text)
