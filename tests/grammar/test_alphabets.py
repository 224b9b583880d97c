"""UTF-8 of sets of characters against Python's own encoder and decoder."""

import gc
import weakref

from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.alphabets import UTF8, Alphabet, Utf8
from lmc.grammar.automata.automaton import DEAD, Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import ANY, FIRST_SURROGATE, LAST_CODE_POINT, LAST_SURROGATE, CharSet, word
from lmc.grammar.automata.nodes import Kind

ENDS = (0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x3FFFF, LAST_CODE_POINT)
code_points = st.one_of(
    st.sampled_from(ENDS),
    st.integers(0, LAST_CODE_POINT),
    st.integers(0, 64**3).map(lambda n: n // 64 * 64 - 1 + n % 3),
).filter(lambda code: 0 <= code <= LAST_CODE_POINT)
ranges = st.tuples(code_points, code_points).map(lambda ends: (min(ends), max(ends)))
charsets = st.lists(ranges, max_size=5).map(CharSet)


def automaton(charset: CharSet) -> Automaton:
    arena = Arena()
    made = Automaton(UTF8.encode(arena, charset), arena)
    made.expand_all()
    return made


def count_paths(made: Automaton) -> int:
    """Strings of an automaton without loops."""
    counts: dict[int, int] = {}
    for state in reversed(depth_first(made)):
        onward = sum(mask.bit_count() * counts[target] for mask, target in made.arcs(state))
        counts[state] = onward + made.accepting(state)
    return counts[0]


def depth_first(made: Automaton) -> list[int]:
    """States, each before all that it leads to."""
    order: list[int] = []
    level = {0}
    while level:
        order = [state for state in order if state not in level] + sorted(level)
        level = {target for state in level for _, target in made.arcs(state)}
    return order


@given(charsets, st.lists(code_points, max_size=20))
def test_utf8_is_that_of_python(charset, others):
    made = automaton(charset)
    assert count_paths(made) == len(charset)
    around = [code + more for each in charset.ranges for code in each for more in (-1, 0, 1)]
    for code in around + others:
        if 0 <= code <= LAST_CODE_POINT:
            expected = chr(code) in charset
            assert made.matches(chr(code).encode("utf-8", "surrogatepass")) == expected


@given(st.binary(min_size=1, max_size=5))
def test_any_takes_what_decodes_to_one_character(data):
    try:
        expected = len(data.decode()) == 1
    except UnicodeDecodeError:
        expected = False
    assert automaton(ANY).matches(data) == expected


def test_overlong_forms_and_surrogates_are_no_characters():
    made = automaton(ANY)
    for data in (b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf"):
        assert made.run(data) == DEAD
    for data in (b"\xf4\x90\x80\x80", b"\xf5", b"\x80", b"\xff"):
        assert made.run(data) == DEAD
    assert count_paths(made) == LAST_CODE_POINT + 1 - (LAST_SURROGATE - FIRST_SURROGATE + 1)


def test_parts_with_equal_rests_are_one():
    assert len(automaton(ANY)) == 9  # start, end, one to three bytes to come, and after E0, ED, F0 and F4
    letters = word(unicode=True)
    made = automaton(letters)
    assert count_paths(made) == len(letters)
    assert len(made) < len(letters.ranges)
    rests = [(*made.arcs(state), made.accepting(state)) for state in range(len(made))]
    assert len(set(rests)) == len(rests)  # minimal: no two states have the same future


def test_equal_sets_are_the_same_node():
    arena = Arena()
    node = UTF8.encode(arena, CharSet.of("äöü"))
    assert UTF8.encode(arena, CharSet.of("üöä")) is node
    assert UTF8.encode(arena, CharSet()) is arena.empty
    assert UTF8.encode(arena, CharSet.of("a")) is arena.literal(b"a")
    assert UTF8.encode(arena, CharSet.of("€")) is arena.literal("€".encode())


def test_text_is_one_literal():
    arena = Arena()
    node = UTF8.encode_text(arena, "naïve €")
    assert node.kind is Kind.LITERAL
    assert node.data == "naïve €".encode()
    assert UTF8.encode_text(arena, "") is arena.epsilon


def test_nothing_is_kept_of_an_arena_that_is_gone():
    alphabet = Utf8()
    arena = Arena()
    alphabet.encode(arena, ANY)
    gone = weakref.ref(arena)
    del arena
    gc.collect()
    assert gone() is None
    assert not alphabet._encoded


class Shouting(Utf8):
    """UTF-8 with an exclamation mark after every character, written by `encode_new` alone."""

    encode_text = Alphabet.encode_text

    def encode_new(self, arena, charset):
        return arena.concat(super().encode_new(arena, charset), arena.literal(b"!"))


def test_text_of_another_alphabet_is_its_characters():
    arena = Arena()
    assert Shouting().encode_text(arena, "aé") is arena.literal("a!é!".encode())
    assert Shouting().encode_text(arena, "") is arena.epsilon
