"""Sets in brackets against `re`, and where they are wrong."""

import contextlib
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.charsets import ANY, CharSet
from lmc.grammar.regex.escapes import read_set, sets_in
from lmc.ir.errors import ConstraintError
from tests.grammar.regex.pattern_strategies import matches, refused

PROBES = "aAbkK\u212asSſzéÉß0٣_-]^[\\ \n\x1c\x85{}&~|.😀\u0345ı"
MEMBERS = [
    "a",
    "b",
    "K",
    "s",
    "z",
    "é",
    "0",
    "-",
    "]",
    "^",
    "[",
    r"\]",
    r"\\",
    r"\-",
    r"\d",
    r"\W",
    r"\s",
    "&&",
    "~~",
    "|",
    " ",
]
RANGES = [r"\x41", r"\n", "a-k", "A-Z", "0-9", r"\0-\x1f", "é-ſ", "-", "^", "]"]


def read(text: str, *, flags: int = 0, ecma: bool = False) -> CharSet:
    found, end = read_set(text, 0, flags, ecma=ecma)
    assert end == len(text)
    return found


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.UNICODE, re.IGNORECASE | re.UNICODE])
@given(
    st.lists(st.lists(st.sampled_from(MEMBERS + RANGES), min_size=1, max_size=5).map("".join), min_size=10, max_size=10)
)
def test_sets_are_those_of_re(flags, bodies):
    for body in bodies:
        for pattern in (f"[{body}]", f"[^{body}]"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FutureWarning)
                    oracle = re.compile(pattern, flags if flags & re.UNICODE else flags | re.ASCII)
            except re.error:
                with contextlib.suppress(ConstraintError):
                    assert read_set(pattern, 0, flags, ecma=False)[1] < len(pattern), pattern
                continue
            found, end = read_set(pattern, 0, flags, ecma=False)
            if end < len(pattern):
                continue  # a set and what follows
            assert [each in found for each in PROBES] == [bool(oracle.fullmatch(each)) for each in PROBES], pattern


def test_brackets_and_dashes_stand_for_themselves_where_they_can():
    assert read("[]a]") == CharSet.of("]a")
    assert read("[^]a]") == ~CharSet.of("]a")
    assert read("[a-]") == CharSet.of("a-")
    assert read("[-a]") == CharSet.of("a-")
    assert read(r"[\w-]") == CharSet.of(("a", "z"), ("A", "Z"), ("0", "9"), "_-")
    assert read("[]-a]") == CharSet.of(("]", "a"))
    assert read("[--0]") == CharSet.of(("-", "0"))


def test_ecma_has_empty_sets_and_dashes_beside_classes():
    assert read("[]", ecma=True) == CharSet()
    assert read("[^]", ecma=True) == ANY
    assert read(r"[\w-.]", ecma=True) == read(r"[\w.-]")
    assert read(r"[a-\d]", ecma=True) == read(r"[a\d-]")
    assert read(r"[\d--a]", ecma=True) == read(r"[\da-]")
    assert matches(r"[]a]|b", "b", ecma=True)
    assert not matches(r"[]a]|b", "a", ecma=True)


def test_surrogates_are_no_members():
    assert read(r"[^\ud800-\udfff]") == ANY
    assert read(r"[\u0000-\uffff]") == CharSet([(0, 0xFFFF)])
    assert read(r"[a\ud800]") == CharSet.of("a")


REFUSED = {
    "a[b": (1, "without its closing bracket"),
    "a[": (1, "without its closing bracket"),
    "[]": (0, "without its closing bracket"),
    "[^]": (0, "without its closing bracket"),
    r"[a\]": (0, "without its closing bracket"),
    "x[z-a]": (2, "ends before it begins"),
    r"[a-\d]": (1, "a range from or to a class"),
    r"[\d-a]": (1, "a range from or to a class"),
    r"x[\ud800-\udbff]": (1, "nothing but surrogates"),
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_wrong_sets_are_refused(pattern):
    error = refused(pattern)
    position, problem = REFUSED[pattern]
    assert (error.position, problem in error.cause) == (position, True), error


def test_the_error_of_a_set_shows_the_whole_pattern():
    for _ in range(2):  # also when the same set was seen before
        assert "`z-a` at character 4 of the pattern `abc[z-a]d`" in refused("abc[z-a]d").cause


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"^\[[0-9]+\]$", ["0-9"]),
        (r"[^\]\w]a[]b][^]c]", [r"^\]\w", "]b", "^]c"]),
        (r"\\[a\[b]", [r"a\[b"]),
        ("ab]", []),
        (r"[a\]", []),
    ],
)
def test_sets_of_a_pattern(pattern: str, found: list[str]):
    assert list(sets_in(pattern)) == found
