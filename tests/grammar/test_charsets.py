"""Sets of characters against sets of code points; classes, categories and case against `re` and unicodedata."""

import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata import charsets
from lmc.grammar.automata.charsets import ANY, NOT_NEWLINE, CharSet

LAST = charsets.LAST_CODE_POINT
SURROGATES = range(charsets.FIRST_SURROGATE, charsets.LAST_SURROGATE + 1)
CHARACTERS = [chr(code) for code in range(LAST + 1) if code not in SURROGATES]
ALL = "".join(CHARACTERS)

# Around the ends of the range, of the surrogates, and of the lengths of UTF-8.
EDGES = sorted({edge + more for edge in (3, 0x80, 0x800, 0xD800, 0xE000, 0x10000, LAST - 3) for more in range(-3, 4)})
code_points = st.one_of(st.sampled_from(EDGES), st.integers(0, LAST))


def ranges(longest: int):
    starts_and_more = st.tuples(code_points, st.one_of(st.integers(0, 6), st.integers(0, longest)))
    return st.lists(starts_and_more.map(lambda each: (each[0], min(sum(each), LAST))), max_size=5)


sets = ranges(LAST).map(CharSet)
probes = st.lists(st.sampled_from([code for code in EDGES if code not in SURROGATES]), min_size=20, max_size=20)


def characters(charset: CharSet | None) -> list[str]:
    assert charset is not None
    return [chr(code) for first, last in charset.ranges for code in range(first, last + 1)]


def members(charset: CharSet | None) -> set[str]:
    return set(characters(charset))


def holds(charset: CharSet, codes: list[int]) -> list[bool]:
    return [chr(code) in charset for code in codes]


def test_ranges_are_one_form_of_a_set():
    assert CharSet([(5, 9), (0, 2), (3, 3), (7, 20)]).ranges == ((0, 3), (5, 20))
    assert CharSet([(0xD7FF, 0xE000)]).ranges == ((0xD7FF, 0xD7FF), (0xE000, 0xE000))
    assert CharSet([(0xD900, 0xDA00), (0xDB00, LAST)]).ranges == ((0xE000, LAST),)
    assert CharSet([(0xD800, 0xDFFF)]) == CharSet()
    assert CharSet.of(("a", "c"), "d_") == CharSet([(95, 95), (97, 100)])
    assert len({CharSet.of("ab"), CharSet.of("ba"), CharSet([(97, 98)]), CharSet.of("a")}) == 2
    assert CharSet.of("a") != "a"


@given(ranges(3000))
def test_ranges_are_sorted_apart_and_without_surrogates(given_ranges):
    made = CharSet(given_ranges).ranges
    assert all(first <= last for first, last in made)
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(made))
    expected = {code for first, last in given_ranges for code in range(first, last + 1)} - set(SURROGATES)
    assert {ord(each) for each in members(CharSet(made))} == expected
    assert len(CharSet(made)) == len(expected)


@given(sets, sets, probes)
def test_operations_are_those_of_sets(left, right, codes):
    in_left, in_right = holds(left, codes), holds(right, codes)
    assert holds(left | right, codes) == [a or b for a, b in zip(in_left, in_right, strict=True)]
    assert holds(left & right, codes) == [a and b for a, b in zip(in_left, in_right, strict=True)]
    assert holds(left - right, codes) == [a and not b for a, b in zip(in_left, in_right, strict=True)]
    assert holds(~left, codes) == [not a for a in in_left]
    assert ~~left == left
    assert ~(left | right) == ~left & ~right
    assert len(left) + len(~left) == len(ANY)
    assert len(left | right) + len(left & right) == len(left) + len(right)
    assert charsets.union([left, right, left]) == left | right


def test_any_is_every_character_and_no_surrogate():
    assert len(ANY) == len(CHARACTERS) == 0x110000 - 0x800
    assert not ~ANY
    assert not CharSet()
    assert ANY
    assert "\ud800" not in ANY
    assert (ANY - NOT_NEWLINE).ranges == ((10, 10),)
    assert "a" not in CharSet()


def test_repr_names_the_first_ranges():
    assert repr(CharSet.of(("a", "f"), "z")) == "CharSet(U+0061-U+0066, U+007A)"
    assert repr(charsets.word(unicode=True)).endswith(", …)")


@pytest.mark.parametrize("unicode", [False, True])
@pytest.mark.parametrize(("name", "spelling"), [("digit", r"\d"), ("word", r"\w"), ("space", r"\s")])
def test_classes_are_those_of_re(name, spelling, unicode):
    found = getattr(charsets, name)(unicode=unicode)
    assert members(found) == set(re.findall(spelling, ALL, 0 if unicode else re.ASCII))


def test_unicode_classes_are_those_of_str():
    assert members(charsets.word(unicode=True)) == {each for each in CHARACTERS if each.isalnum()} | {"_"}
    assert members(charsets.digit(unicode=True)) == {each for each in CHARACTERS if each.isdecimal()}
    assert members(charsets.space(unicode=True)) == {each for each in CHARACTERS if each.isspace()}


def test_general_categories_are_those_of_unicodedata():
    by_category: dict[str, list[str]] = {}
    for each in CHARACTERS:
        by_category.setdefault(unicodedata.category(each), []).append(each)
    for category, expected in by_category.items():
        assert characters(charsets.general_category(category)) == expected, category
    letters = charsets.general_category("L")
    assert characters(letters) == [each for each in CHARACTERS if unicodedata.category(each)[0] == "L"]
    cased = charsets.general_category("LC")
    assert members(cased) == {*by_category["Lu"], *by_category["Ll"], *by_category["Lt"]}
    assert charsets.general_category("Cs") == CharSet()
    assert charsets.general_category("Greek") is None
    assert charsets.general_category("") is None


# Every character that any change of case changes or makes, and some that have no case.
CASED = "".join(
    sorted(
        {piece for each in CHARACTERS for piece in each + each.lower() + each.upper() if each.lower() != each.upper()}
    )
)


def test_unicode_case_is_that_of_re():
    for each in CASED + "1_-ªあ\n":
        expected = set(re.findall(re.escape(each), CASED + "1_-ªあ\n", re.IGNORECASE))
        assert members(charsets.fold_unicode(CharSet.of(each))) == expected, each
    assert members(charsets.fold_unicode(CharSet.of("k"))) == {"k", "K", "\u212a"}
    assert "\u017f" in charsets.fold_unicode(CharSet.of("S"))


def test_characters_without_case_are_left_as_they_are():
    uncased = ~CharSet.of(CASED)
    assert charsets.fold_unicode(uncased) == uncased
    assert charsets.fold_unicode(ANY) == ANY


def test_ascii_case_is_that_of_re():
    for each in map(chr, range(0x180)):
        expected = set(re.findall(re.escape(each), ALL[:0x3000], re.IGNORECASE | re.ASCII))
        assert members(charsets.fold_ascii(CharSet.of(each))) == expected, each


@given(st.lists(st.tuples(st.sampled_from(CASED), st.integers(0, 300)), min_size=1, max_size=3))
def test_case_of_ranges_is_that_of_re(starts_and_lengths):
    pairs = [(first, chr(ord(first) + more)) for first, more in starts_and_lengths]
    charset = CharSet.of(*pairs)
    pattern = f"[{''.join(f'{re.escape(first)}-{re.escape(last)}' for first, last in pairs)}]"
    assert members(charsets.fold_unicode(charset)) & set(CASED) == set(re.findall(pattern, CASED, re.IGNORECASE))
    if all(
        last <= "\uffff" for _, last in pairs
    ):  # beyond, `re` takes the case of Unicode in sets although re.ASCII is set
        ignoring = re.IGNORECASE | re.ASCII
        assert members(charsets.fold_ascii(charset)) & set(CASED) == set(re.findall(pattern, CASED, ignoring))
