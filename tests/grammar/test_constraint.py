import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.grammar import constraint as module
from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.compiling import compile
from lmc.grammar.constraint import RegularConstraint
from lmc.grammar.index import states
from lmc.grammar.index.states import State
from lmc.grammar.index.store import IndexStore
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import ConstraintError
from tests.grammar.token_cases import (
    Definition,
    arranged,
    automata,
    bits,
    byte_tokens,
    complete_index,
    lower_case,
    vocabularies,
)

WORDS = [b"ab", b"abc", b"the", b"th", b"e ", "é".encode(), "日本".encode(), b"ab", b"lazy"]
VOCABULARY = Vocabulary([*byte_tokens(WORDS), b"<end>", b"<special>"], [266], 265)


def literal(text: str) -> Automaton:
    return Automaton.of_strings([text.encode()])


def explored(constraint: RegularConstraint, definition: Definition) -> dict[int, State]:
    """The states of the constraint by those of the automaton, for all that tokens reach; each is looked at."""
    found = {0: constraint.start()}
    queue = [0]
    while queue:
        at = queue.pop()
        state = found[at]
        assert np.array_equal(state.mask(), definition.words(at))
        assert state.accepting == definition.automaton.accepting(at)
        assert state.complete == (state.accepting and not definition.steps[at])
        for token, following in definition.steps[at].items():
            reached = state.advance(token)
            assert reached is state.advance(token)
            if following not in found:
                queue.append(following)
            assert found.setdefault(following, reached) is reached
    return found


def random_walk(constraint: RegularConstraint, seed: int, steps: int = 8) -> State:
    chance, state = random.Random(seed), constraint.start()
    for _ in range(steps):
        tokens = [token for token in bits(state.mask()) if token not in constraint.vocabulary.eos_ids]
        if not tokens:
            break
        state = state.advance(chance.choice(tokens))
    return state


@given(automata(), vocabularies(), st.sampled_from(["lazy", "built", "built on the way"]), st.integers(0, 9))
def test_masks_and_steps_are_those_of_the_definition_at_every_state(
    automaton: Automaton, vocabulary: Vocabulary, mode: str, seed: int
) -> None:
    definition = Definition(automaton, vocabulary)
    if 0 not in definition.live:
        with pytest.raises(ConstraintError, match=r"no output of this constraint can be written"):
            RegularConstraint(automaton, vocabulary, "digest")
        return
    constraint = RegularConstraint(automaton, vocabulary, "digest")
    if mode == "built on the way":
        random_walk(constraint, seed)
    if mode != "lazy":
        assert constraint.build() is constraint.index is constraint.build()
    states = explored(constraint, definition)
    for at, state in states.items():
        for token in set(range(vocabulary.size)) - definition.steps[at].keys():
            with pytest.raises(ConstraintError, match="may not follow here"):
                state.advance(token)


@given(automata(), vocabularies(), st.booleans())
def test_forced_tokens_spell_the_forced_text_and_are_allowed(
    automaton: Automaton, vocabulary: Vocabulary, build: bool
) -> None:
    try:
        constraint = RegularConstraint(automaton, vocabulary, "digest")
    except ConstraintError:
        return
    if build:
        constraint.build()
    for at, state in explored(constraint, Definition(automaton, vocabulary)).items():
        forced = automaton.forced_bytes(at)
        draft = state.forced()
        assert forced.startswith(vocabulary.text(draft))
        if vocabulary.has_all_bytes:
            assert len(forced) - len(vocabulary.text(draft)) < 4  # what is cut off is part of a character
        along = state
        for token in draft:
            assert token in bits(along.mask())
            along = along.advance(token)


def test_states_that_were_handed_out_stay_what_they_are_when_the_index_comes() -> None:
    constraint, other = (RegularConstraint(lower_case(1, 30), VOCABULARY, "digest") for _ in range(2))
    before = [random_walk(constraint, seed, steps=seed) for seed in range(8)]
    masks = [state.mask() for state in before]
    constraint.build()
    for seed, (state, mask) in enumerate(zip(before, masks, strict=True)):
        assert random_walk(constraint, seed, steps=seed) is state
        assert state.mask() is mask
        assert np.array_equal(random_walk(other, seed, steps=seed).advance(97).mask(), state.advance(97).mask())


def test_equal_masks_are_one_array() -> None:
    constraint = RegularConstraint(lower_case(1, 500), VOCABULARY, "digest")
    state = constraint.start().advance(97)
    assert state.mask() is state.advance(98).mask()
    constraint.build()
    later = state.advance(98).advance(98).advance(98)
    assert later.mask() is state.mask() is later.advance(97).mask()
    assert not state.mask().flags.writeable


def test_masks_stay_within_their_bound_and_are_made_again() -> None:
    texts = Automaton.of_strings([bytes((97 + at, 97 + at)) for at in range(26)])
    constraint = RegularConstraint(texts, VOCABULARY, "digest", max_mask_bytes=5 * 4 * VOCABULARY.words)
    states = [constraint.start().advance(97 + at) for at in range(26)]
    kept = [state.mask().copy() for state in states]
    assert sum(state.words is not None for state in states) == 5
    assert all(np.array_equal(state.mask(), mask) for state, mask in zip(states, kept, strict=True))
    held = states[0].mask()
    for state in states:
        state.mask()
    assert states[0].mask() is held


def test_steps_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "_FOLLOWING_KEPT", 10)
    constraint = RegularConstraint(lower_case(0, None), VOCABULARY, "digest")
    for token in range(97, 123):
        assert constraint.start().advance(token) is constraint.start()
        assert len(constraint.start().following) <= 10


@pytest.mark.parametrize("build", [False, True])
@pytest.mark.parametrize(
    ("token", "message"),
    [
        (49, r"token 49 \(b'1'\) may not follow here\n  remedy: take a token that the mask of the state allows"),
        (265, r"token 265 \(end of text\) may not"),
        (266, r"token 266 \(a special token\) may not"),
        (267, r"token 267 \(not in this vocabulary\) may not"),
        (-1, r"token -1 \(not in this vocabulary\) may not"),
    ],
)
def test_a_token_that_is_not_allowed_is_an_error(build: bool, token: int, message: str) -> None:
    constraint = RegularConstraint(lower_case(0, 5), VOCABULARY, "digest")
    if build:
        constraint.build()
    with pytest.raises(ConstraintError, match=message):
        constraint.start().advance(token)


@pytest.mark.parametrize("build", [False, True])
def test_forced_text_is_its_canonical_tokens(build: bool) -> None:
    vocabulary = Vocabulary.of(toy_tokenizer())
    automaton = Automaton.of_strings(["the é日".encode(), "the é本".encode()])
    constraint = RegularConstraint(automaton, vocabulary, "digest")
    if build:
        constraint.build()
    # The first byte of the last character is forced as well, but it is no text.
    assert tuple(constraint.start().forced()) == toy_tokenizer().encode("the é")
    state = constraint.start()
    for token in state.forced():
        state = state.advance(token)
    assert state.forced() == []
    (first,) = bits(state.mask())
    state = state.advance(first)
    (byte,) = (token for token in bits(state.mask()) if vocabulary.tokens[token] == "日".encode()[1:2])
    # And what goes on within a character is the tokens of its bytes.
    assert vocabulary.text(state.advance(byte).forced()) == "日".encode()[2:]
    draft = constraint.start().forced()
    draft.clear()
    assert constraint.start().forced()


def test_a_draft_ends_where_its_tokens_are_not_allowed() -> None:
    vocabulary = Vocabulary([b"a", b"b", b"ab", b"c"])
    constraint = RegularConstraint(Automaton.of_strings([b"abd", b"abc"]), vocabulary, "digest")
    assert constraint.start().forced() == [2]
    # "ab" has to follow, but no token goes on behind it but for c; "d" is none.
    assert bits(constraint.start().advance(2).mask()) == [3]
    lacking = Vocabulary([b"ab", b"a", b"bc"])
    constraint = RegularConstraint(Automaton.of_strings([b"abc"]), lacking, "digest")
    assert bits(constraint.start().mask()) == [1]
    assert constraint.start().forced() == []


def test_a_whole_output_is_text_or_bytes() -> None:
    constraint = RegularConstraint(literal("é"), VOCABULARY, "digest")
    assert constraint.matches("é")
    assert constraint.matches("é".encode())
    assert not constraint.matches("e")
    assert not constraint.matches("é".encode()[:1])
    assert not constraint.matches("\ud800")


def test_an_end_where_nothing_follows_is_complete() -> None:
    for build in (False, True):
        constraint = RegularConstraint(Automaton.of_strings([b"a", b"ab"]), VOCABULARY, "digest")
        if build:
            constraint.build()
        start = constraint.start()
        after_a = start.advance(97)
        assert [start.complete, after_a.complete, after_a.advance(98).complete] == [False, False, True]
        assert bits(after_a.advance(98).mask()) == [265]


def test_the_facts_grow_with_the_index() -> None:
    constraint = RegularConstraint(lower_case(1, 30), VOCABULARY, "digest")
    assert constraint.facts().states is None
    index = complete_index(constraint)
    assert constraint.facts().states == len(index) == 31
    assert constraint.facts().shortest_tokens == 1


def test_what_is_too_large_to_build_still_works() -> None:
    constraint = RegularConstraint(lower_case(1, 5_000), VOCABULARY, "digest")
    state = random_walk(constraint, 1)
    with pytest.raises(ConstraintError, match="more than 100 states"):
        constraint.build(max_states=100)
    assert constraint.index is None
    assert np.array_equal(state.mask(), constraint.start().advance(97).mask())
    assert len(complete_index(constraint)) == 5_001


def test_an_index_is_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "indexes"
    first = RegularConstraint(lower_case(1, 30), VOCABULARY, "digest", store=IndexStore(folder))
    built = complete_index(first)
    assert len(list(folder.iterdir())) == 1
    again = RegularConstraint(lower_case(1, 30), VOCABULARY, "digest", store=IndexStore(folder))
    before = random_walk(again, 3)
    with monkeypatch.context() as patch:
        patch.setattr(module, "build_index", lambda *_, **__: pytest.fail("built again"))
        loaded = complete_index(again)
    assert all(np.array_equal(array, loaded.arrays()[name]) for name, array in built.arrays().items())
    assert random_walk(again, 3) is before
    assert np.array_equal(before.mask(), random_walk(first, 3).mask())
    with pytest.raises(ConstraintError, match="more than 9 states"):
        RegularConstraint(lower_case(1, 30), VOCABULARY, "digest", store=IndexStore(folder)).build(max_states=9)


def test_an_index_that_is_not_of_the_constraint_is_built_anew(tmp_path: Path) -> None:
    store = IndexStore(tmp_path / "indexes")
    for automaton in (literal("abc"), Automaton.of_strings([b"", b"a"])):
        wrong = complete_index(RegularConstraint(automaton, VOCABULARY, "other"))
        store.save("digest", VOCABULARY, wrong)
        constraint = RegularConstraint(lower_case(1, 30), VOCABULARY, "digest", store=store)
        before = random_walk(constraint, 3)
        assert len(complete_index(constraint)) == 31
        assert random_walk(constraint, 3) is before


@pytest.mark.parametrize("build", [False, True])
def test_many_threads_get_the_same_states_and_masks(build: bool) -> None:
    chosen = random.Random(0).choices(bits(RegularConstraint(lower_case(1, 9), VOCABULARY, "").start().mask()), k=400)
    constraint = RegularConstraint(lower_case(0, 200), VOCABULARY, "digest", max_mask_bytes=40 * VOCABULARY.words)
    found: list[list[State]] = [[] for _ in range(4)]
    barrier = threading.Barrier(5 if build else 4)

    def work(into: list[State]) -> None:
        state = constraint.start()
        barrier.wait()
        for token in chosen:
            into.append(state)
            mask = state.mask()
            state.forced()
            if not mask[token // 32] >> np.uint32(token % 32) & 1:
                break
            state = state.advance(token)

    threads = [threading.Thread(target=work, args=(each,)) for each in found]
    for thread in threads:
        thread.start()
    if build:
        barrier.wait()
        constraint.build()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(found[0]) > 50
    assert all(len(each) == len(found[0]) and all(map(State.__eq__, each, found[0])) for each in found)


def test_a_vocabulary_without_all_bytes_has_no_dead_ends() -> None:
    # "b" can't be written behind "a" but as one token.
    vocabulary = Vocabulary([b"a", b"ab", b"c", b"<end>"], (), 3)
    constraint = RegularConstraint(Automaton.of_strings([b"ab", b"c"]), vocabulary, "digest")
    assert bits(constraint.start().mask()) == [1, 2]
    with pytest.raises(ConstraintError, match=r"token 0 \(b'a'\) may not follow here"):
        constraint.start().advance(0)


def test_a_search_for_an_end_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MAX_SEARCHED", 20)
    vocabulary = Vocabulary([b"a", b"b"])

    def root(arena):
        return arena.concat(arena.repeat(arena.byte_set(0x6 << 96), 0, 50), arena.literal(b"c"))

    with pytest.raises(
        ConstraintError, match=r"by looking at 20 states\n  remedy: use a vocabulary with a token for each"
    ):
        RegularConstraint(arranged(root), vocabulary, "digest")
    monkeypatch.setattr(states, "MAX_SEARCHED", 100)
    monkeypatch.setattr(states, "MAX_WORK", 5)
    with pytest.raises(ConstraintError, match=r"by looking at \d states"):
        RegularConstraint(arranged(root), vocabulary, "digest")
    monkeypatch.setattr(states, "MAX_WORK", 10_000)
    with pytest.raises(ConstraintError, match="no output of this constraint can be written with this vocabulary"):
        RegularConstraint(arranged(root), vocabulary, "digest")


def test_an_end_that_is_next_to_a_long_way_is_found() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "maxItems": 10_000}
    constraint = compile(schema=schema, tokenizer=Vocabulary([b"[", b"]", b"1", b",", b"11,", b"<end>"], (), 5))
    assert bits(constraint.start().advance(0).mask()) == [1, 2, 4]
