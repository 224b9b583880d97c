import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.index import indexing
from lmc.grammar.index.index import DEAD, END, NEVER, DeviceTables, TokenIndex, smallest
from lmc.grammar.index.indexing import build_index
from lmc.grammar.index.store import check_index
from lmc.grammar.native.library import library
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import Definition, automata, bits, byte_tokens, lower_case, vocabularies

NATIVE = [pytest.param(True, marks=pytest.mark.skipif(library() is None, reason="no C compiler")), False]


def built(automaton: Automaton, vocabulary: Vocabulary, native: bool = True) -> TokenIndex:
    with pytest.MonkeyPatch.context() as patch:
        if not native:
            patch.setattr(indexing, "library", lambda: None)
        return build_index(automaton, vocabulary)


def reached(index: TokenIndex, definition: Definition) -> dict[int, int]:
    """The states of the index by those of the automaton, for all that tokens reach."""
    found = {0: 0}
    queue = [0]
    while queue:
        state = queue.pop()
        for token, following in definition.steps[state].items():
            number = index.step(found[state], token)
            if following not in found:
                queue.append(following)
            assert found.setdefault(following, number) == number
    return found


@pytest.mark.parametrize("native", NATIVE)
@given(automata(), vocabularies())
def test_masks_and_steps_are_those_of_the_definition_at_every_state(
    native: bool, automaton: Automaton, vocabulary: Vocabulary
) -> None:
    definition = Definition(automaton, vocabulary)
    if 0 not in definition.live:
        with pytest.raises(ConstraintError, match=r"no output .* can be written .*\n  remedy: use a vocabulary"):
            built(automaton, vocabulary, native)
        return
    index = built(automaton, vocabulary, native)
    check_index(index, vocabulary.eos_ids)
    for state, number in reached(index, definition).items():
        allowed = definition.allowed(state)
        assert bits(index.words(index.mask_of(number))) == allowed
        assert index.accepting(number) == automaton.accepting(state)
        assert index.complete(number) == (automaton.accepting(state) and not definition.steps[state])
        for token in range(vocabulary.size):
            expected = definition.steps[state].get(token)
            assert (index.step(number, token) == DEAD) == (expected is None)


@given(automata(), vocabularies())
def test_tokens_are_a_class_where_no_state_tells_them_apart(automaton: Automaton, vocabulary: Vocabulary) -> None:
    try:
        index = built(automaton, vocabulary)
    except ConstraintError:
        return
    assert np.flatnonzero(index.class_of_token == END).tolist() == list(vocabulary.eos_ids)
    by_column: dict[tuple[int, ...], set[int]] = {}
    for token in set(range(vocabulary.size)) - set(vocabulary.eos_ids):
        column = tuple(index.step(state, token) for state in range(len(index)))
        by_column.setdefault(column, set()).add(int(index.class_of_token[token]))
    assert all(len(classes) == 1 for classes in by_column.values())
    assert by_column.pop((DEAD,) * len(index), {NEVER}) == {NEVER}
    assert len({each for classes in by_column.values() for each in classes}) == len(by_column)


@pytest.mark.skipif(library() is None, reason="no C compiler")
@given(automata(), vocabularies(complete=True))
def test_the_index_is_the_same_without_a_compiler(automaton: Automaton, vocabulary: Vocabulary) -> None:
    one, other = (built(automaton, vocabulary, native) for native in (True, False))
    for name, array in one.arrays().items():
        assert array.dtype == other.arrays()[name].dtype
        assert np.array_equal(array, other.arrays()[name])


@given(automata(), vocabularies(complete=True), st.data())
def test_forced_bytes_are_those_of_the_automaton(
    automaton: Automaton, vocabulary: Vocabulary, data: st.DataObject
) -> None:
    index = built(automaton, vocabulary)
    limit = data.draw(st.sampled_from([0, 1, 4096]))
    for state, number in reached(index, Definition(automaton, vocabulary)).items():
        assert index.forced_bytes(number, limit) == automaton.forced_bytes(state, limit)


def device_step(tables: DeviceTables, state: int, token: int) -> int:
    """As a kernel does it."""
    token_class, mask = int(tables.class_of_token[token]), int(tables.mask_of_state[state])
    words = tables.masks[mask]
    if not words[token_class // 32] >> (token_class % 32) & 1:
        return DEAD
    below = sum(int(word).bit_count() for word in words[: token_class // 32])
    below += (int(words[token_class // 32]) & ((1 << token_class % 32) - 1)).bit_count()
    return state + int(tables.next[tables.first_next[state] + below])


@given(automata(), vocabularies())
def test_a_device_is_told_the_same(automaton: Automaton, vocabulary: Vocabulary) -> None:
    try:
        index = built(automaton, vocabulary)
    except ConstraintError:
        return
    tables = index.device_tables()
    for state in range(len(index)):
        for token in range(vocabulary.size):
            expected = index.step(state, token)
            if token in vocabulary.eos_ids and index.accepting(state):
                expected = state
            assert device_step(tables, state, token) == expected


def test_states_of_a_counter_share_their_rows() -> None:
    vocabulary = Vocabulary(byte_tokens([b"ab", b"xyz", b"x1"]))
    index = build_index(lower_case(1, 2_000), vocabulary)
    assert (len(index), index.class_count) == (2_001, 5)
    # The first, which may not be the end, those in the middle, and three at the end that not every token fits behind.
    assert index.row_count == index.mask_count == 5
    assert index.nbytes < 10_000


def test_numbers_do_not_depend_on_what_was_asked_before() -> None:
    vocabulary = Vocabulary(byte_tokens([b"ab", b"abc"]))
    one, other = Automaton.of_strings([b"abc", b"abd", b"xy", b""]), lower_case(0, 9)
    other.run(b"zzzzz")
    for automaton, again in ((one, one), (other, lower_case(0, 9))):
        first, second = build_index(automaton, vocabulary), build_index(again, vocabulary)
        assert all(np.array_equal(array, second.arrays()[name]) for name, array in first.arrays().items())


def test_a_language_of_the_empty_text_alone_allows_only_the_end() -> None:
    index = build_index(Automaton.of_strings([b""]), Vocabulary([*byte_tokens(), b"<end>"], (), 256))
    assert bits(index.words(index.mask_of(0))) == [256]
    assert index.complete(0)
    assert index.class_count == 2


def test_too_many_states_are_refused() -> None:
    with pytest.raises(ConstraintError, match="more than 20 states"):
        build_index(lower_case(1, 100), Vocabulary(byte_tokens()), max_states=20)


@pytest.mark.parametrize("native", NATIVE)
def test_tokens_that_can_not_write_the_only_end_are_not_allowed(native: bool) -> None:
    automaton = Automaton.of_strings([b"ab", b"ac", b"d"])
    vocabulary = Vocabulary([b"a", b"c", b"d", b"ab"])
    assert bits(built(automaton, vocabulary, native).words(0)) == [0, 2, 3]
    index = built(automaton, Vocabulary([b"a", b"d"]), native)
    assert bits(index.words(index.mask_of(0))) == [1]


def test_numbers_are_kept_in_the_smallest_type_that_holds_them() -> None:
    for numbers, dtype in (
        ([0, 255], np.uint8),
        ([256], np.uint16),
        ([70_000], np.uint32),
        ([-1, 127], np.int8),
        ([-1, 128], np.int16),
        ([-70_000], np.int32),
        ([], np.uint8),
    ):
        made = smallest(np.array(numbers, np.int64))
        assert made.dtype == dtype
        assert made.tolist() == numbers
    with pytest.raises(OverflowError):
        smallest(np.array([1 << 40]))
