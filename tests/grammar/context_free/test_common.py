import random
import re

import lark
import pytest

from lmc.grammar.context_free.reading import COMMON

_ALPHABET = 'aZ_09.+-eE \t\n\r"\\/#*'
_OTHERS = {"ESCAPED_STRING", "C_COMMENT"}  # of which Lark's own say by look-around and laziness where they end


@pytest.mark.parametrize("name", [name for name in COMMON if name not in _OTHERS])
def test_terminals_are_those_of_lark(name):
    grammar = lark.Lark(f"start: X\n%import common.{name} -> X", parser="lalr")
    (expected,) = (each.pattern.to_regexp() for each in grammar.terminals)
    chance = random.Random(name)
    matched = 0
    for _ in range(4_000):
        text = "".join(chance.choice(_ALPHABET) for _ in range(chance.randrange(7)))
        if chance.random() < 0.2:
            text = chance.choice(["#", "//", "--"]) + text
        found = re.fullmatch(COMMON[name], text, re.ASCII) is not None
        assert found == (re.fullmatch(expected, text) is not None), text
        matched += found
    assert matched > 2


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("ESCAPED_STRING", ['""', r'"a\"b"', r'"\\"'], ['"a"b"', '"', r'"\"', '"\n"']),
        ("C_COMMENT", ["/**/", "/* a\n*/", "/***/", "/* / * */"], ["/*/", "/* */ */", "/*"]),
    ],
)
def test_terminals_that_end_by_themselves(name, yes, no):
    assert all(re.fullmatch(COMMON[name], text) for text in yes)
    assert not any(re.fullmatch(COMMON[name], text) for text in no)
