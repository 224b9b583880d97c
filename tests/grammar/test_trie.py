import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.native.library import library
from lmc.grammar.vocabulary import trie as tries
from lmc.grammar.vocabulary.trie import Trie
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from tests.grammar.token_cases import automata, bits, byte_tokens, lower_case, vocabularies

needs_compiler = pytest.mark.skipif(library() is None, reason="no C compiler")
BYTES = st.lists(st.binary(max_size=4) | st.sampled_from([b"ab", b"abc", b"abd", b""]), max_size=30)


def in_numpy(tokens: list[bytes], monkeypatch: pytest.MonkeyPatch) -> Trie:
    monkeypatch.setattr(tries, "library", lambda: None)
    made = Trie(tokens)
    monkeypatch.undo()
    return made


def spelled(trie: Trie) -> dict[int, bytes]:
    """The bytes of each token, read off the tree."""
    found: dict[int, bytes] = {}
    path = b""
    for at, (end, first, label) in enumerate(trie.nodes.tolist()):
        depth = label >> 9
        assert end > at
        if at:
            assert depth == len(path[: depth - 1]) + 1
            path = path[: depth - 1] + bytes((label & 0xFF,))
        token, count = first, 0
        while token >= 0:
            found[token] = path
            token, count = int(trie.same[token]), count + 1
        assert bool(label & 0x100) == (count > 1)
    return found


@given(BYTES)
def test_the_tree_spells_every_token_that_has_bytes(tokens: list[bytes]) -> None:
    trie = Trie(tokens)
    assert spelled(trie) == {token_id: token for token_id, token in enumerate(tokens) if token}
    assert trie.longest == max(map(len, tokens), default=0)
    assert [tokens[each] for each in trie.sorted_ids] == sorted(token for token in tokens if token)


@needs_compiler
@given(BYTES)
def test_the_tree_is_the_same_without_a_compiler(tokens: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        other = in_numpy(tokens, patch)
    trie = Trie(tokens)
    assert np.array_equal(trie.nodes, other.nodes)
    assert np.array_equal(trie.same, other.same)


def test_equal_tokens_are_linked_by_id() -> None:
    trie = Trie([b"x", b"ab", b"x", b"", b"ab", b"ab"])
    assert trie.same.tolist() == [2, 4, -1, -1, 5, -1]


def test_long_tokens_have_a_path() -> None:
    trie = Trie([b"a" * 70_000, b"a" * 69_999 + b"b"])
    assert len(trie) == 70_002
    walk = trie.walk(lower_case(0, None), 0)
    assert bits(walk.words) == [0, 1]


def walked(trie: Trie, automaton: Automaton, state: int, native: bool) -> tuple[list[int], dict[int, int]]:
    with pytest.MonkeyPatch.context() as patch:
        if not native:
            patch.setattr(tries, "library", lambda: None)
        walk = trie.walk(automaton, state, with_nexts=True)
    pairs = dict(zip(walk.tokens.tolist(), walk.nexts.tolist(), strict=True))
    assert len(pairs) == len(walk.tokens)
    return bits(walk.words), pairs


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
@given(automata(), vocabularies())
def test_a_walk_finds_the_tokens_that_do_not_lead_to_a_dead_state(
    native: bool, automaton: Automaton, vocabulary: Vocabulary
) -> None:
    for state in range(len(automaton)):
        runs = {at: automaton.run(token, state) for at, token in enumerate(vocabulary.tokens) if token}
        expected = {token: following for token, following in runs.items() if following >= 0}
        assert walked(vocabulary.trie, automaton, state, native) == (sorted(expected), expected)


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
def test_rows_are_made_where_the_walk_goes_and_nowhere_else(native: bool) -> None:
    trie = Trie(byte_tokens([b"ab", b"abc", b"1a"]))
    automaton = lower_case(1, 100)
    allowed, pairs = walked(trie, automaton, 0, native)
    assert allowed == [*range(97, 123), 256, 257]
    assert (pairs[97], pairs[256], pairs[257]) == (1, 2, 3)
    assert [automaton.is_expanded(state) for state in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("native", [pytest.param(True, marks=needs_compiler), False])
def test_a_vocabulary_without_text_allows_nothing(native: bool) -> None:
    for tokens in ([], [b"", b""]):
        assert walked(Trie(tokens), lower_case(0, None), 0, native) == ([], {})


def test_the_mask_alone_is_had_without_the_pairs() -> None:
    walk = Trie([b"a", b"b", b"1"]).walk(lower_case(1, 2), 0)
    assert bits(walk.words) == [0, 1]
