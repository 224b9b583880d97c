"""The language of a pattern against `re`, whole matches and searches."""

import re
import time

import hypothesis
import pytest
from hypothesis import given

from lmc.grammar.automata.alphabets import Utf8
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Kind
from lmc.grammar.regex import search_to_node, to_node
from tests.grammar.regex.pattern_strategies import anchored, automaton, compiled, examples, matches, near, refused

# 40 texts each: 10 000 pairs, and 200 000 under the full profile.
many = hypothesis.settings(max_examples=10 * hypothesis.settings().max_examples)
REPEATED_GROUP = re.compile(r"\)[*+{]")


def assert_same_language(example, *, search):
    oracle = compiled(example.pattern)
    made = automaton(example.pattern, search=search)
    # `re` takes time that is exponential in the text for repeats within repeats.
    longest = 24 // max(1, len(REPEATED_GROUP.findall(example.pattern)))
    for text in near(example.texts):
        if len(text) > longest:
            continue
        expected = (oracle.search(text) if search else oracle.fullmatch(text)) is not None
        assert made.matches(text.encode()) == expected, (example.pattern, text)


@many
@given(examples)
def test_language_is_that_of_fullmatch(example):
    assert_same_language(example, search=False)


@given(examples)
def test_language_of_a_search_is_that_of_search(example):
    assert_same_language(example, search=True)


@given(anchored)
def test_language_with_anchors_is_that_of_fullmatch(example):
    assert_same_language(example, search=False)


@given(anchored)
def test_language_of_a_search_with_anchors_is_that_of_search(example):
    assert_same_language(example, search=True)


def test_all_matches_count_in_whatever_order_they_are_written():
    for pattern in ("a|ab", "ab|a", "a(?:b)??", "a+?b?"):
        assert matches(pattern, "a")
        assert matches(pattern, "ab")


def test_an_empty_language_is_a_node():
    arena = Arena()
    assert to_node(r"[^\s\S]", arena) is arena.empty
    assert to_node(r"a[^\s\S]+", arena) is arena.empty
    assert search_to_node(r"[^\s\S]", arena) is arena.empty
    assert to_node(r"(a[^\s\S]|b)", arena) is arena.literal(b"b")


def test_an_empty_pattern_is_the_empty_text_and_is_found_everywhere():
    assert matches("", "")
    assert not matches("", "a")
    assert matches("", "é\n", search=True)


def test_what_surrounds_a_match_is_valid_text():
    made = automaton("a", search=True)
    assert made.matches("éaé".encode())
    assert not made.matches(b"\xffa")


def test_runs_of_characters_are_one_literal():
    arena = Arena()
    node = to_node(r'\{\n    "na(?:me)": é', arena)
    assert node.kind is Kind.LITERAL
    assert node.data == '{\n    "name": é'.encode()


class Quoting(Utf8):
    """UTF-8 in which a newline is written as a backslash and an n."""

    def encode_text(self, arena, text):
        return arena.literal(text.replace("\n", "\\n").encode())

    def encode_new(self, arena, charset):
        plain = super().encode_new(arena, charset - type(charset).of("\n"))
        return arena.union([plain, arena.literal(b"\\n")]) if "\n" in charset else plain


def test_characters_are_written_by_the_alphabet():
    arena = Arena()
    made = Automaton(search_to_node(r"b[\n]c\n$", arena, Quoting()), arena)
    assert made.matches(rb"a\nb\nc\n")
    assert made.matches(rb"b\nc\n\n")  # `$` is before a newline at the end too
    assert not made.matches(b"b\nc\n")
    assert not made.matches(rb"b\nc\n\n\n")


DEPTH = 2000
PATIENCE = 30  # seconds; well below one where nothing else runs, and hours where something is not linear


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("((a{1,100}){1,100}){1,100}", "a" * 1000, "b"),
        (".{0,20000}", "é" * 300, "\n"),
        ("(a|b)*a(a|b){30}", "ba" + "b" * 30, "bbb"),
        ("(a+)+b", "a" * 100 + "b", "a" * 100),
        ("(a|a)*b", "a" * 100 + "b", "a" * 100),
        ("(a?){30}a{30}", "a" * 30, "a" * 61),
        ("a{1,1000000}", "a" * 1000, ""),
        ("(ab|c){3,4294967294}", "abcc", "cc"),
        ("(" * DEPTH + "a" + ")" * DEPTH, "a", "b"),
        ("(a" * DEPTH + ")" * DEPTH, "a" * DEPTH, "a"),
        ("(" * DEPTH + "a" + ")*" * DEPTH, "aaa", "b"),
        ("(a|" * DEPTH + "b" + ")" * DEPTH, "b", "ab"),
        ("(^|" * DEPTH + "b" + ")" * DEPTH, "b", "bb"),
        ("(?:a" * DEPTH + ")?" * DEPTH, "aaa", "b"),
        ("|".join(map(str, range(5000))), "4999", "5000"),
        ("(?#c)" * 5000 + "a", "a", ""),
    ],
    ids=lambda value: value[:20],
)
def test_patterns_that_are_bombs_elsewhere_are_answered_at_once(pattern, yes, no):
    began = time.perf_counter()
    made = automaton(pattern)
    assert made.matches(yes.encode())
    assert not made.matches(no.encode())
    assert time.perf_counter() - began < PATIENCE


@pytest.mark.parametrize(
    "pattern",
    ["(" * 1_000_000, ")" * 1_000_000, "[" * 100_000, "(?" * 50_000, "(?#" * 50_000, r"\N{" * 50_000, "[a" * 50_000],
    ids=lambda value: value[:3],
)
def test_long_patterns_that_are_wrong_are_refused_at_once(pattern):
    began = time.perf_counter()
    assert len(str(refused(pattern))) < 400
    assert time.perf_counter() - began < PATIENCE


def test_flags_are_those_of_re():
    assert matches("a.", "A\n", flags=re.I | re.S)
    assert matches("a b", "ab", flags=re.X)
    assert matches(r"\w", "é", flags=re.U)
    assert not matches(r"\w", "é", flags=re.A)
    compiled_pattern = re.compile("É", re.I)
    assert matches(compiled_pattern.pattern, "é", flags=compiled_pattern.flags)


def test_flags_that_mean_nothing_here_are_refused():
    assert "LOCALE" in refused("a", flags=re.L).cause
    assert "ASCII" in refused("a", flags=re.A | re.U).cause


def test_anchors_at_lines_are_refused_in_a_search():
    for pattern, position in (("(?m)^a", 4), ("(?m:a$)", 5)):
        error = refused(pattern, search=True)
        assert "at every line" in error.cause
        assert error.position == position
    assert matches("(?m)^a$", "a")
    assert matches(r"(?m)\Aa\Z", "a", search=True)
