import gc
import random
import threading
from typing import Any

import numpy as np
import pytest
from llguidance import LLParserLimits

from lmc.grammar.context_free import constraint as module
from lmc.grammar.context_free import matching
from lmc.grammar.vocabulary.vocabulary import Vocabulary
from lmc.ir.errors import ConstraintError
from tests.grammar.context_free.grammar_cases import (
    EOS,
    JSON,
    TREE_GRAMMAR,
    allowed,
    of_grammar,
    texts,
    vocabulary,
    walked,
)

BALANCED = 'start: pair+\npair: "(" pair* ")"\n'
COUNTED = 'start: "a" start "b" | "c"\n'
SUMS = 'start: start "+" term | term\nterm: "a" | "(" start ")"\n'


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += 1 if letter == "(" else -1
        if depth < 0:
            return False
    return depth == 0 and bool(text)


@pytest.mark.parametrize(
    ("grammar", "letters", "outputs"),
    [
        (BALANCED, "()", [text for text in texts("()", 12) if _balanced(text)]),
        (COUNTED, "abc", ["a" * count + "c" + "b" * count for count in range(10)]),
    ],
    ids=["balanced", "counted"],
)
def test_masks_are_what_the_definition_says_at_every_state(grammar, letters, outputs):
    """A token is allowed where some output goes on with it; the outputs are all that begin with 6 given letters."""
    crossing = [b"((", b")(", b"))", b"aa", b"cb", b"bb"]
    tokens = Vocabulary([*map(str.encode, letters), *crossing, b"<end>"], (), len(letters) + len(crossing))
    constraint = of_grammar(grammar, tokens)
    beginnings = {text[:length] for text in outputs for length in range(len(text) + 1)}
    for text in (each for each in beginnings if len(each) <= 4):
        state = constraint.start()
        for letter in text:
            state = state.advance(tokens.tokens.index(letter.encode()))
        expected = {each for each, token in enumerate(tokens.tokens) if token and text + token.decode() in beginnings}
        assert state.accepting == (text in outputs)
        assert set(allowed(state.mask())) == expected | (set(tokens.eos_ids) if state.accepting else set())


def test_whole_outputs_are_recognised_in_text_and_bytes():
    constraint = of_grammar(JSON)
    for text in ('{"a" : [1, -2.5e3,{}], "é":"x\\n"}', "[ ]", "null", '"日"'):
        assert constraint.matches(text)
        assert constraint.matches(text.encode())
    for text in ("", "[1,]", "{'a':1}", "nul", "[1] ", '"\n"', "\ud800"):
        assert not constraint.matches(text)
    assert not constraint.matches(b'"\xff"')
    sums = of_grammar(SUMS)
    found = [text for text in texts("a+()", 5) if sums.matches(text)]
    assert found == ["a", "a+a", "(a)", "a+a+a", "a+(a)", "(a+a)", "(a)+a", "((a))"]


@pytest.mark.parametrize("seed", range(8))
def test_a_bit_of_the_mask_is_set_where_the_token_may_be_taken(seed):
    chance = random.Random(seed)
    constraint = of_grammar(JSON if seed % 2 else TREE_GRAMMAR)
    state = constraint.start()
    for _ in range(12):
        ids = allowed(state.mask())
        assert (EOS in ids) == state.accepting
        ids = [each for each in ids if each != EOS]
        refused = chance.sample([each for each in range(-1, constraint.vocabulary.size + 1) if each not in ids], 20)
        for token_id in chance.sample(ids, min(len(ids), 20)):
            state.advance(token_id)
        for token_id in [*refused, EOS]:
            with pytest.raises(ConstraintError, match="may not follow here"):
                state.advance(token_id)
        if not ids:
            break
        state = state.advance(chance.choice(ids))


@pytest.mark.parametrize("seed", range(12))
def test_what_masks_lead_to_is_an_output_whatever_its_tokens(seed):
    constraint = of_grammar(JSON if seed % 2 else TREE_GRAMMAR)
    text = walked(constraint, random.Random(seed), 120)
    assert text is not None
    assert constraint.matches(text)
    state = constraint.start()
    for token_id in constraint.vocabulary.encode(text):
        state = state.advance(token_id)
    assert state.accepting


def test_states_are_shared_and_masks_are_one_array():
    constraint = of_grammar(TREE_GRAMMAR)
    one, two = constraint.start().advance(ord("{")), constraint.start().advance(ord("{"))
    assert one is two
    assert one.mask() is one.mask()
    assert not one.mask().flags.writeable
    assert one.mask().dtype == np.uint32
    assert len(one.mask()) == constraint.vocabulary.words


def test_states_find_their_place_again_after_their_matchers_are_gone(monkeypatch):
    monkeypatch.setattr(module, "_STATES_KEPT", 3)
    monkeypatch.setattr(module, "_MATCHERS_KEPT", 2)
    constraint, other = of_grammar(TREE_GRAMMAR), of_grammar(TREE_GRAMMAR)
    text = b'{"name":"a","kids":[{"name":"b","kids":[]},{"name":"a"}]}'
    states = [constraint.start()]
    for byte in text:
        states.append(states[-1].advance(byte))
    assert sum(state.matcher is not None for state in states[1:]) <= 2
    expected = other.start()
    for state, byte in zip(states, [*text, 0], strict=True):
        assert np.array_equal(state.mask(), expected.mask())
        assert state.forced() == expected.forced()
        if state is not states[-1]:
            expected = expected.advance(byte)
    del states
    gc.collect()
    assert len(constraint._recent) <= 3


def test_threads_share_a_constraint():
    constraint = of_grammar(JSON)
    wrong: list[object] = []

    def work(seed: int) -> None:
        try:
            text = walked(constraint, random.Random(seed), 80)
            if text is not None and not constraint.matches(text):
                wrong.append(text)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_text_that_has_to_follow_comes_in_canonical_tokens():
    constraint = of_grammar(TREE_GRAMMAR)
    tokens = constraint.vocabulary
    forced = constraint.start().forced()
    assert tokens.text(forced) == b'{"name":"'
    assert forced == tokens.encode(b'{"name":"')
    state = constraint.start()
    for token_id in forced:
        state = state.advance(token_id)
    assert state.forced() == []
    state = state.advance(ord("a")).advance(ord('"'))
    assert state.forced() == []  # a comma or a brace
    assert tokens.text(state.advance(ord(",")).forced()) == b'"kids":['
    assert of_grammar('start: "a" | "ab"').start().advance(ord("a")).forced() == []  # the output may end
    assert tokens.text(of_grammar('start: "é" x\nx: "è" [x]').start().forced()) == "éè".encode()


def test_an_output_ends_where_nothing_can_follow():
    state = of_grammar(COUNTED).start().advance(ord("c"))
    assert state.complete
    assert allowed(state.mask()) == [EOS]
    assert not of_grammar(SUMS).start().advance(ord("a")).complete
    assert of_grammar(COUNTED, Vocabulary([b"c", b"a"])).start().advance(0).complete


def test_without_tokens_for_what_has_to_follow_the_mask_is_an_error():
    state = of_grammar(COUNTED, Vocabulary([b"a", b"c", b"bx", b"<end>"], (), 3)).start().advance(0).advance(1)
    with pytest.raises(ConstraintError, match=r"no token can follow b'ac', and the output may not end there") as caught:
        state.mask()
    assert caught.value.remedy is not None


def test_what_needs_bytes_that_no_token_has_is_left_out():
    vocabulary = Vocabulary([b"a", b"c", b"<end>"], (), 2)
    assert allowed(of_grammar(COUNTED, vocabulary).start().mask()) == [1]
    assert allowed(of_grammar('start: "a" [start] x?\nx: "b" start\n%ignore " "', vocabulary).start().mask()) == [0]
    for grammar in ('start: "a" start "b" | "b"', r"start: /[ac]*b/ start | /[^ac]/"):
        with pytest.raises(ConstraintError, match="no output of this constraint can be written") as caught:
            of_grammar(grammar, vocabulary)
        assert caught.value.remedy is not None


def test_special_tokens_are_never_text():
    constraint = of_grammar("start: /[^x]/ start | /x/")
    ids = allowed(constraint.start().mask())
    assert EOS not in ids
    assert EOS + 1 not in ids
    assert max(ids) < constraint.vocabulary.size


@pytest.mark.parametrize(
    "grammar", ['start: "a" start', "start: x\nx: y\ny: x", r"start: /[^\s\S]/", 'start: x y\nx: "a"\ny: "b" y']
)
def test_an_empty_language_is_refused(grammar):
    with pytest.raises(ConstraintError, match=r"nothing meets the constraint \(grammar\)") as caught:
        of_grammar(grammar)
    assert caught.value.remedy is not None


def test_what_has_no_text_is_left_out_of_the_rest():
    constraint = of_grammar('start: "a" x | "b"\nx: "c" x')
    assert allowed(constraint.start().mask()) == [ord("b")]


def test_a_grammar_that_is_too_ambiguous_is_an_error_and_no_mask(monkeypatch):
    monkeypatch.setattr(matching, "_limits", lambda: LLParserLimits(max_items_in_row=60, verbose_errors=False))
    constraint = of_grammar('start: s\ns: s s s | s s | "a" |')
    states = [constraint.start()]

    def go_on() -> None:
        while len(states) < 100:
            states[-1].mask()
            states.append(states[-1].advance(ord("a")))

    with pytest.raises(
        ConstraintError, match=r"what may follow can't be found out|the text can't be followed"
    ) as caught:
        go_on()
    assert "less ambiguous" in str(caught.value.remedy)
    assert len(states) > 3
    with pytest.raises(ConstraintError, match="the text can't be followed"):
        constraint.matches("a" * 100)


class _Failing:
    """A matcher of llguidance that panics, or that reports a panic."""

    def __init__(self, *, raises: bool) -> None:
        self._raises = raises

    def deep_copy(self) -> "_Failing":
        return self

    def consume_tokens(self, tokens: list[int]) -> bool:
        del tokens
        return self._fail()

    def compute_bitmask(self) -> bytes:
        self._fail()
        return b"\xff" * 4

    def is_accepting(self) -> bool:
        return False

    def is_error(self) -> bool:
        return True

    def get_error(self) -> str:
        return "panic: index out of bounds at parser/src/earley/parser.rs:1"

    def _fail(self) -> bool:
        if self._raises:
            raise _Panic(self.get_error())
        return False


class _Panic(BaseException):
    """Panics that reach Python are of no narrower class."""


@pytest.mark.parametrize("raises", [True, False])
def test_a_panic_over_a_text_is_our_error(raises: bool):
    failing: Any = matching.Matcher(_Failing(raises=raises))  # type: ignore[arg-type]
    for step in (lambda: failing.take([1]), lambda: failing.mask(1)):
        with pytest.raises(ConstraintError, match="failed in itself") as caught:
            step()
        assert "panic" not in str(caught.value)
        assert "panic" in str(caught.value.__cause__)
        assert "as a regular expression" in str(caught.value.remedy)


def test_a_panic_over_a_grammar_is_our_error(monkeypatch: pytest.MonkeyPatch):
    class Compiler:
        @staticmethod
        def grammar_from_lark(text: str) -> str:
            raise _Panic("panic: " + text)

    monkeypatch.setattr("llguidance.LLMatcher", Compiler)
    with pytest.raises(ConstraintError, match="failed in itself"):
        of_grammar('start: "a" start "b" | "c"')


def test_patterns_that_take_too_many_steps_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(matching, "_limits", lambda: LLParserLimits(initial_lexer_fuel=100, verbose_errors=False))
    with pytest.raises(ConstraintError, match="take too many steps") as caught:
        of_grammar('start: "(" start ")" | /x.*y.{30}z/').start().mask()
    assert "shorten patterns" in str(caught.value.remedy)


def test_counts_of_any_size_are_understood_or_refused():
    nested = 'start: "(" start ")" | B\nA: "a"~{0}\nB: A~{0}\n'
    constraint = of_grammar(nested.format("0..100000"))
    for text in ("", "aaa", "((a))"):
        assert constraint.matches(text)
    with pytest.raises(ConstraintError, match="a count of more than 2147483647"):
        of_grammar(nested.format("100000"))


def test_the_same_source_gives_the_same_masks():
    one, two = of_grammar(JSON), of_grammar(JSON)
    assert one.digest == two.digest
    for text in (b"", b'{"a"', b"[1,"):
        states = [one.start(), two.start()]
        for byte in text:
            states = [state.advance(byte) for state in states]
        assert np.array_equal(states[0].mask(), states[1].mask())


def test_there_is_no_index():
    assert of_grammar(JSON).build() is None
    assert vocabulary().size == 300
