"""Strings: how characters are spelled, lengths in characters, patterns in the reading that all validators share."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.schema import to_node
from lmc.grammar.schema.strings import Strings
from tests.grammar.schema.sampling import accepts, automaton_of, compact

FREE: dict[str, Any] = {"type": "string"}
LEGAL = [
    '""',
    '"a"',
    '"\\/"',
    '"\\u0041"',
    '"\\u00e9"',
    '"\\uD83D\\uDE00"',
    '"\\ud83d\\uDe00x"',
    '"\\b\\f\\n\\r\\t\\"\\\\"',
    '"\x7f"',
    '"\u2028"',
]
ILLEGAL = [
    '"',
    '"""',
    '"\n"',
    '"\x00"',
    '"\\a"',
    '"\\u12"',
    '"\\ud83d"',
    '"\\ude00"',
    '"\\ud83dx"',
    '"\\ud83d\\u0041"',
    '"\\ude00\\ud83d"',
    "'a'",
    '"\\x41"',
]


def test_a_free_string_is_any_json_string_without_half_pairs():
    automaton = automaton_of(FREE)
    for text in LEGAL:
        json.loads(text)
        assert automaton.matches(text.encode()), text
    for text in ILLEGAL:
        assert not automaton.matches(text.encode()), text


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\xf4\x90\x80\x80"'])
def test_bytes_that_are_no_utf_8_are_no_output(data: bytes):
    for schema in (FREE, {"type": "string", "minLength": 1}, {"type": "string", "pattern": "."}):
        assert not automaton_of(schema).matches(data)


@given(st.text(max_size=6))
def test_canonical_spelling_of_any_text(text: str):
    for schema in (FREE, {**FREE, "pattern": ""}, {**FREE, "not": {"const": text + "x"}}, {"const": text}):
        assert accepts(schema, text)


@given(st.text(max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_lengths_count_characters_not_bytes_nor_escapes(text: str, low: int, more: int):
    schema = {**FREE, "minLength": low, "maxLength": low + more}
    automaton = automaton_of(schema)
    for spelled in (compact(text), json.dumps(text).encode()):
        assert automaton.matches(spelled) == (low <= len(text) <= low + more)


def test_a_large_length_costs_no_more_than_a_small_one():
    arenas = [Arena(), Arena()]
    for arena, length in zip(arenas, (200, 20_000), strict=True):
        automaton = Automaton(to_node({**FREE, "maxLength": length}, arena), arena)
        assert automaton.matches(compact("a" * 150))
    assert len(arenas[0]) == len(arenas[1])


@given(st.lists(st.text("aé\n", max_size=3), max_size=4), st.text("abé\n", max_size=4))
def test_all_strings_but_some(excluded: list[str], text: str):
    arena = Arena()
    node = Strings(arena, lambda _: arena.empty).other_than(excluded)
    assert node.certain, "nothing has to be searched for what is left"
    assert Automaton(node, arena).matches(compact(text)[1:-1]) == (text not in excluded)


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("", ["", "a\n"], []),
        ("a.c", ["abc", "xa-cx"], ["a\nc", "ac", "a\u2028c"]),
        (r"^\d+$", ["12"], ["", "1a", "٣", "12\n"]),
        (r"^\w$", ["a", "_"], ["é", "-"]),
        (r"^\W$", ["-", "—"], ["a", "é"]),
        (r"^\D$", ["a", "é"], ["1", "٣"]),
        (r"^\s$", [" ", "\t"], ["a", "\u00a0", "\ufeff", "\x1c"]),
        (r"^\S$", ["a", "é"], [" ", "\u2003", "\x1c", "\ufeff"]),
        (r"^[^\s]$", ["a"], [" ", "\u2003", "\x1c", "\ufeff"]),
        (r"^[^\w-]$", ["."], ["a", "é", "-"]),
        (r"^[^\]\w]$", ["."], ["a", "é", "]"]),
        (r"^[^\]\s]$", ["a"], [" ", "\x85", "\x1c", "\ufeff", "]"]),
        ("[^]a]", ["xa]"], ["aa]", "]a]", "x"]),
        ("(?i)^[^k]$", ["a"], ["k", "K", "\u212a"]),
        ("^é|😀$", ["éa", "a😀"], ["aé", "😀a"]),
        ('^["\\\\\\n]+$', ['"', '\\\n"'], ["a"]),
        (r"^\/\u0041$", ["/A"], ["A"]),
        (r"^(?=.*[A-Z])(?=.*\d)(?!.*\s).{4,6}$", ["aB1c", "1Bxxxx"], ["aB1", "ab1c", "aBxc", "a B1", "aB1cxxx"]),
        (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", ["1", "+01.5", ".5", "007"], ["", "-", "+.", "1e5", "1.2.3"]),
        (r"^(?![a-c])(?![x-z]).$", ["d", "é"], ["a", "z"]),
        (r"^(?!a|b)[a-d\]()]$", ["c", "]", "("], ["a", "b"]),
        (r"^(?=[)\]]).+$", [")a", "]"], ["a"]),
    ],
)  # fmt: skip
def test_patterns(pattern: str, matching: list[str], others: list[str]):
    schema = {**FREE, "pattern": pattern}
    automaton = automaton_of(schema)
    for text in matching:
        assert re.search(pattern, text)
        assert automaton.matches(compact(text)), text
    for text in others:
        assert not automaton.matches(compact(text)), text


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("^a", ["", "ba"], ["a", "ab"]),
        (r"\d", ["", "ab"], ["1", "٣"]),
        (r"^\S*$", [" ", "a b"], ["", "a", "\ufeff", "\x1c"]),
        ("b$", ["ba"], ["b", "b\n"]),
        (r"^(?=a)b?.$", ["b", "aa", ""], ["a"]),
        ("(?i)k", ["", "a"], ["k", "K", "\u212a"]),
        ("^[]a]$", ["", "b"], ["]", "a"]),
        (r"^(?!a)[ab]$", ["a", "c"], ["b"]),
        (r"^(?!a).*$", ["a", "ab", "b\nc"], ["", "b", "\n"]),
    ],
)
def test_negated_patterns_keep_out_what_any_reading_finds(pattern: str, matching: list[str], others: list[str]):
    automaton = automaton_of({**FREE, "not": {"pattern": pattern}})
    for text in matching:
        assert not re.search(pattern, text)
        assert automaton.matches(compact(text)), text
    for text in others:
        assert not automaton.matches(compact(text)), text
