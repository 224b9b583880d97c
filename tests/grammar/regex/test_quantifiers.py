"""Quantifiers: their bounds, what is no quantifier, and what is refused."""

import re

import pytest

from lmc.grammar.regex.parser import MAX_REPEAT, read_quantifier
from tests.grammar.regex.pattern_strategies import matches, refused

BOUNDS = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
    "{3}": (3, 3),
    "{2,5}": (2, 5),
    "{2,}": (2, None),
    "{,5}": (0, 5),
    "{,}": (0, None),
    "{007}": (7, 7),
    f"{{{'0' * 5000}1}}": (1, 1),
    f"{{1,{MAX_REPEAT}}}": (1, MAX_REPEAT),
}


@pytest.mark.parametrize("quantifier", BOUNDS, ids=lambda value: value[:20])
def test_bounds(quantifier):
    assert read_quantifier(quantifier, 0) == (BOUNDS[quantifier], len(quantifier))
    assert read_quantifier(f"a{quantifier}?b", 1) == (BOUNDS[quantifier], len(quantifier) + 2)


@pytest.mark.parametrize("braces", ["{", "{}", "{a}", "{1", "{1,", "{1,2", "{,a}", "{ 1}", "{1;2}", "{-1}", "{١}"])
def test_braces_that_are_characters(braces):
    assert read_quantifier(braces, 0) == (None, 1)
    assert re.fullmatch(braces, braces)
    assert matches(braces, braces)
    assert matches(f"a{braces}", f"a{braces}")


REFUSED = {
    "a{3,2}": (1, "the wrong way round"),
    f"a{{{MAX_REPEAT + 1}}}": (1, f"a quantifier above {MAX_REPEAT}"),
    f"a{{,{'9' * 5000}}}": (1, f"a quantifier above {MAX_REPEAT}"),
    "a*+": (1, "a possessive quantifier"),
    "ab?+": (2, "a possessive quantifier"),
    "a{1,2}+": (1, "a possessive quantifier"),
}


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda value: value[:20])
def test_wrong_quantifiers_are_refused(pattern):
    error = refused(pattern)
    position, problem = REFUSED[pattern]
    assert (error.position, problem in error.cause) == (position, True), error
