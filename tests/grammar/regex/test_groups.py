"""What follows an opening parenthesis."""

import re

import pytest

from lmc.grammar.regex.parser import Opening, read_opening
from tests.grammar.regex.pattern_strategies import refused

ASCII, CASE, DOT, UNICODE, VERBOSE = (int(flag) for flag in (re.A, re.I, re.S, re.U, re.X))
OPENINGS = {
    "(": Opening(),
    "(?:": Opening(),
    "(?P<n1>": Opening("n1"),
    "(?P<größe>": Opening("größe"),
    "(?i)": Opening(is_global=True, added=CASE),
    "(?ixs)": Opening(is_global=True, added=CASE | VERBOSE | DOT),
    "(?i:": Opening(added=CASE),
    "(?i-sx:": Opening(added=CASE, removed=DOT | VERBOSE),
    "(?-i:": Opening(removed=CASE),
    "(?u:": Opening(added=UNICODE),
    "(?#a comment(": None,
}


@pytest.mark.parametrize("spelling", OPENINGS)
def test_openings(spelling):
    rest = "x)"
    end = len(spelling) + 2 if OPENINGS[spelling] is None else len(spelling)
    assert read_opening(f"a{spelling}{rest}", 1, ecma=False) == (OPENINGS[spelling], end + 1)


def test_names_in_ecma():
    assert read_opening("(?<n>a)", 0, ecma=True) == (Opening("n"), 5)
    assert read_opening("(?P<n>a)", 0, ecma=True) == (Opening("n"), 6)


def test_flags_of_a_kind_replace_each_other():
    assert Opening(added=UNICODE).applied_to(ASCII | CASE) == UNICODE | CASE
    assert Opening(added=ASCII).applied_to(UNICODE) == ASCII
    assert Opening(added=CASE, removed=DOT).applied_to(DOT | VERBOSE) == CASE | VERBOSE


REFUSED = {
    "a(?=b)": (1, "a look-ahead"),
    "(?!b)": (0, "a look-ahead"),
    "(?<=b)": (0, "a look-behind"),
    "(?<!b)": (0, "a look-behind"),
    "(?>b)": (0, "an atomic group"),
    "(a)?(?(1)b|c)": (4, "a conditional"),
    "(?P<n>a)(?P=n)": (8, "a back-reference"),
    "(?#": (0, "a comment without its end"),
    "(?<n>a)": (0, "a group of an unknown kind"),
    "(?P>n)": (0, "a group of an unknown kind"),
    "(?": (0, "a group of an unknown kind"),
    "(?i": (0, "a group of an unknown kind"),
    "(?P<1>a)": (0, "no identifier"),
    "(?P<>a)": (0, "no identifier"),
    "(?q:a)": (0, "an unknown flag q"),
    "(?iL)": (0, "an unknown flag L"),
    "(?i-q:a)": (0, "an unknown flag q"),
    "(?au:a)": (0, "exclude each other"),
    "(?-u:a)": (0, "can't be taken back, only replaced"),
    "(?i-i:a)": (0, "set and taken back"),
    "(?-:a)": (0, "without a letter"),
    "(?)": (0, "without a letter"),
    "(?i-s)a": (0, "for a group only"),
}


@pytest.mark.parametrize("ecma", [False, True])
@pytest.mark.parametrize("pattern", REFUSED)
def test_wrong_groups_are_refused(pattern, ecma):
    if ecma and pattern == "(?<n>a)":
        return
    error = refused(pattern, ecma=ecma)
    position, problem = REFUSED[pattern]
    assert (error.position, problem in error.cause) == (position, True), error
