"""Escapes, in and out of sets."""

import re

import pytest

from lmc.grammar.automata import charsets
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.regex.escapes import ECMA_LINE_TERMINATORS, ECMA_SPACE, character_class, read_escape
from tests.grammar.regex.pattern_strategies import matches, refused

CHARACTERS = {
    r"\n": "\n",
    r"\t": "\t",
    r"\r": "\r",
    r"\f": "\f",
    r"\v": "\v",
    r"\a": "\a",
    r"\\": "\\",
    r"\x41": "A",
    r"\u20ac": "€",
    r"\U0001F600": "😀",
    r"\N{EURO SIGN}": "€",
    r"\0": "\0",
    r"\012": "\n",
    r"\101": "A",
    r"\377": "ÿ",
    r"\.": ".",
    r"\/": "/",
    r"\-": "-",
    r"\_": "_",
    r"\é": "é",
}


@pytest.mark.parametrize("escape", CHARACTERS)
def test_escapes_of_one_character(escape):
    assert re.fullmatch(escape, CHARACTERS[escape])
    for in_set in (False, True):
        found = read_escape(f"{escape}!", 0, 0, ecma=False, in_set=in_set)
        assert found == (CHARACTERS[escape], len(escape))


def test_octal_escapes_in_sets_are_shorter():
    assert matches(r"[\1]", "\x01")
    assert matches(r"[\12a]+", "\na")
    assert matches(r"[\b]", "\b")


@pytest.mark.parametrize("letter", "dDsSwW")
@pytest.mark.parametrize("unicode", [0, re.UNICODE])
def test_classes_are_those_of_re(letter, unicode):
    found = character_class(letter, int(unicode), False)
    for each in map(chr, range(0x3100)):
        assert (each in found) == bool(re.match(f"\\{letter}", each, unicode or re.ASCII))


def test_properties_are_general_categories():
    assert matches(r"\p{Lu}\p{Ll}\p{L}\p{N}", "Éé中½")
    assert not matches(r"\p{Lu}", "é")
    assert matches(r"\P{Lu}+", "é1")
    assert not matches(r"\P{Lu}", "É")
    assert matches(r"\p{Letter}\p{General_Category=Lu}\p{gc=Decimal_Number}\p{Any}", "äÄ٣\n")
    assert matches(r"[\p{L}\p{Nd}_-]+", "a中_-٣")
    assert matches(r"(?iu)\p{Lu}", "é")
    assert not matches(r"(?iu)\P{Lu}", "é")


def test_ecma_has_classes_of_its_own():
    assert character_class("s", 0, True) == ECMA_SPACE
    assert "\ufeff" in ECMA_SPACE
    assert "\x1c" not in ECMA_SPACE
    separators = charsets.general_category("Zs")
    assert separators is not None
    assert not separators - ECMA_SPACE
    assert len(ECMA_SPACE) == len(separators) + len("\t\n\v\f\r\u2028\u2029\ufeff")
    for each in "\n\r\u2028\u2029":
        assert not matches(".", each, ecma=True)
        assert matches("(?s).", each, ecma=True)
    assert matches(".", "\x85", ecma=True)
    assert len(ECMA_LINE_TERMINATORS) == 4


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\/", "/"),
        (r"\cA\cz", "\x01\x1a"),
        (r"\u{1f600}\u{000041}", "😀A"),
        (r"\ud83d\ude00", "😀"),
        (r"[\ud83d\ude00-\ud83d\ude4f]", "😁"),
        (r"[\u{1f600}\cJ]+", "😀\n"),
        (r"\d\w\p{L}", "1aé"),
        (r"(?<year>\d)", "1"),
        (r"\A\Z", ""),
    ],
)
def test_ecma_has_escapes_of_its_own(pattern, text):
    assert matches(pattern, text, ecma=True)
    assert not matches(pattern, f"{text}!", ecma=True)
    if r"\A" not in pattern and r"\d\w" not in pattern and r"\/" not in pattern:
        refused(pattern)


REFUSED = {
    "a\\": (1, "a backslash at the end"),
    r"a\q": (1, "means nothing"),
    r"[\q]": (1, "means nothing"),
    r"\B": (0, "a word boundary"),
    r"a\b": (1, "a word boundary"),
    r"[\B]": (1, "means nothing"),
    r"[\A]": (1, "means nothing"),
    r"[\8]": (1, "means nothing"),
    r"(a)\1": (3, "a back-reference"),
    r"\8": (0, "a back-reference"),
    r"\k<n>": (0, "a back-reference"),
    r"\x4": (0, "without its 2 hexadecimal digits"),
    r"\u12": (0, "without its 4 hexadecimal digits"),
    r"\U0001f60": (0, "without its 8 hexadecimal digits"),
    r"\U00110000": (0, "beyond the last character"),
    r"\400": (0, r"above \377"),
    r"[\400]": (1, r"above \377"),
    r"\Na": (0, "a named character without its name"),
    r"\N{NO SUCH}": (0, "no character has this name"),
    r"\pL": (0, "a property without its name"),
    r"\p{Greek}": (0, "only general categories"),
    r"\p{Script=Greek}": (0, "only general categories"),
    r"\p{}": (0, "only general categories"),
    r"\cA": (0, "means nothing"),
    r"\u{41}": (0, "without its 4 hexadecimal digits"),
}
REFUSED_IN_ECMA = {
    r"\c1": (0, "a control escape without its letter"),
    r"\c": (0, "a control escape without its letter"),
    r"\u{110000}": (0, "beyond the last character"),
    rf"\u{{{'9' * 5000}}}": (0, "beyond the last character"),
    r"\u{}": (0, "without its 4 hexadecimal digits"),
    r"\ude00\ud83d": (0, "a surrogate alone"),
    r"\q": (0, "means nothing"),
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_wrong_escapes_are_refused(pattern):
    error = refused(pattern)
    assert (error.position, REFUSED[pattern][1] in error.cause) == (REFUSED[pattern][0], True), error


@pytest.mark.parametrize("pattern", REFUSED_IN_ECMA, ids=lambda pattern: pattern[:12])
def test_wrong_escapes_are_refused_in_ecma(pattern):
    error = refused(pattern, ecma=True)
    position, problem = REFUSED_IN_ECMA[pattern]
    assert (error.position, problem in error.cause) == (position, True), error


def test_an_escape_is_a_character_or_a_set():
    assert read_escape(r"a\d", 1, 0, ecma=False, in_set=False) == (CharSet.of(("0", "9")), 3)
    assert read_escape(r"\ud800", 0, 0, ecma=False, in_set=True) == ("\ud800", 6)
