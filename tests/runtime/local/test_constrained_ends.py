"""How constrained generations end, and what fails of them, alone."""

import threading
import time
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch

from lmc.ir.engine.protocol import JUMP_FORWARD, EngineInfo, JumpForward, Request, SamplingParams, TokenDelta
from lmc.ir.engine.toy import toy_tokenizer
from lmc.ir.errors import ConstraintError, EngineError, RequestCancelledError, RequestTimeoutError
from lmc.runtime.local.engine import LocalEngine
from tests.ir.constraints_for_tests import LETTERS, Run, TemplateConstraint
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.outcomes import run
from tests.runtime.local.prefix_model import PrefixModel

every_mode = pytest.mark.parametrize("mode", JUMP_FORWARD)
SENTENCE = "The quick brown fox jumps over the lazy dog."


def constrained(
    engine: Any, *pieces: Any, mode: JumpForward = "exact", max_tokens: int = 60, **sampling: Any
) -> Request:
    params = SamplingParams(max_tokens=max_tokens, **sampling)
    constraint = TemplateConstraint(engine.tokenizer, *pieces)
    return Request((5, 6, 7), params, op_id="judge/verdict", constraint=constraint, jump_forward=mode)


@every_mode
def test_a_complete_output_ends_without_a_draw(open_engine: OpenEngine, mode: JumpForward) -> None:
    engine = open_engine()
    (found,) = run(engine, [constrained(engine, SENTENCE, mode=mode, logprobs=0)])
    tokens, text, _, reason, matched, logprobs, generated, _ = found
    assert (text, reason, matched) == (SENTENCE, "eos", None)
    assert len(tokens) == len(logprobs) == generated
    drafted = engine.statistics.drafted_tokens - engine.statistics.accepted_tokens
    assert engine.statistics.rows <= 3 + len(tokens) - 1 + drafted  # of the last token nothing is computed
    (short,) = run(engine, [constrained(engine, SENTENCE, mode=mode, max_tokens=len(tokens), min_tokens=len(tokens))])
    assert short[3] == "eos"
    (nothing,) = run(engine, [constrained(engine, "", mode=mode, logprobs=1, min_tokens=3)])
    assert nothing[:7] == ((), "", "", "eos", None, (), 0)


@every_mode
def test_an_output_that_may_end_ends_at_an_end_token(open_engine: OpenEngine, mode: JumpForward) -> None:
    engine = open_engine()
    (end,) = engine.tokenizer.eos_ids
    bias = ((end, 100.0),)
    request = constrained(engine, "The dog", (b"", b" and the fox"), mode=mode, logit_bias=bias)
    assert run(engine, [request])[0][1:5] == ("The dog", "", "eos", end)
    # Before `min_tokens` it goes on; where nothing else may come it ends all the same.
    later = replace(request, sampling=replace(request.sampling, min_tokens=20))
    assert run(engine, [later])[0][1:5] == ("The dog and the fox", "", "eos", None)


@every_mode
def test_an_output_that_is_cut_fails_alone(open_engine: OpenEngine, mode: JumpForward) -> None:
    engine = open_engine()
    cut, stopped, whole = run(
        engine,
        [
            constrained(engine, SENTENCE, mode=mode, max_tokens=4),
            constrained(engine, SENTENCE, mode=mode, stop=(" fox",)),
            constrained(engine, "The quick brown", (b"", b" fox"), mode=mode, stop=(" fox",)),
        ],
    )
    assert cut[0] is stopped[0] is ConstraintError
    assert cut[1].startswith(
        "the output of 'judge/verdict' is not what its constraint allows: max_tokens (4) ended it after 'The"
    )
    assert "give it more max_tokens" in cut[2]
    assert stopped[1].endswith("the stop ' fox' ended it after 'The quick brown'")
    assert "leave that stop out" in stopped[2]
    assert whole[1:4:2] == ("The quick brown", "stop") or whole[3] == "eos"


def test_an_output_that_fills_the_pool_or_the_context_says_so(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=8)
    (full,) = run(engine, [constrained(engine, SENTENCE)])
    assert full[0] is ConstraintError
    assert "the context or the KV pool was full after 'The" in full[1]
    assert "give the engine more kv_tokens" in full[2]


@every_mode
def test_a_code_point_that_is_cut_off_is_seen(open_engine: OpenEngine, mode: JumpForward) -> None:
    """What is left of the text would be allowed."""
    engine = open_engine()
    letter, lead, _ = engine.tokenizer.encode("zé")
    bias = ((letter, 100.0), (lead, 100.0))
    request = constrained(engine, "z", (b"", "é".encode()), mode=mode, max_tokens=2, logit_bias=bias)
    (found,) = run(engine, [request])
    assert found[:2] == (
        ConstraintError,
        "the output of 'judge/verdict' is not what its constraint allows: max_tokens (2) ended it after 'z'",
    )


def test_a_constraint_whose_states_allow_more_than_it_does_is_found_out(open_engine: OpenEngine) -> None:
    engine = open_engine()
    request = constrained(engine, SENTENCE)
    assert request.constraint is not None
    request.constraint.matches = lambda output: False
    (found,) = run(engine, [request])
    assert found[0] is ConstraintError
    assert ": it ended after … 'quick brown" in found[1]
    assert "report this" in found[2]


class Faulty(TemplateConstraint):
    """Raises at one method of its states, from a piece on, or where it starts or ends."""

    PIECES = ("The quick ", Run(LETTERS, 1, 3), " fox jumps ", Run(LETTERS, 2, 2))

    def __init__(self, tokenizer: Any, place: str, piece: int = 0, error: type[Exception] = ZeroDivisionError) -> None:
        super().__init__(tokenizer, *self.PIECES)
        self.place, self.piece, self.error = place, piece, error

    def fail(self, *_: Any) -> Any:
        if self.error is ConstraintError:
            raise ConstraintError("too many states", remedy="bound it")
        raise self.error(self.place)

    def start(self) -> Any:
        return self.fail() if self.place == "start" else super().start()

    def state(self, places: Any) -> Any:
        state = super().state(places)
        if self.place not in ("start", "matches") and max(places)[0] >= self.piece:
            if self.place == "complete":
                return object()
            object.__setattr__(state, self.place, self.fail)
        return state

    def matches(self, output: str | bytes) -> bool:
        return super().matches(output) if self.place != "matches" else self.fail()


@every_mode
@pytest.mark.parametrize("error", [ConstraintError, ZeroDivisionError])
@pytest.mark.parametrize("place", ["start", "complete", "mask", "advance", "forced", "matches"])
def test_what_a_constraint_raises_fails_one_request(
    open_engine: OpenEngine, place: str, error: type[Exception], mode: JumpForward
) -> None:
    """Wherever that is; a draft that is not come to fails nothing."""
    engine = open_engine()
    good = constrained(engine, SENTENCE, mode=mode)
    pieces = range(1) if place in ("start", "matches") else range(len(Faulty.PIECES))
    for piece in pieces:
        constraint = Faulty(engine.tokenizer, place, piece, error)
        bad = [replace(good, constraint=constraint, seed=seed) for seed in range(3)]
        *failed, found = run(engine, [*bad, good])
        assert found[1] == SENTENCE
        for outcome in failed:
            if place == "forced" and mode == "off":
                assert TemplateConstraint(engine.tokenizer, *Faulty.PIECES).matches(outcome[1])
            elif error is ConstraintError and place != "complete":
                assert outcome == (ConstraintError, "too many states", "bound it")
            else:
                assert outcome[0] is EngineError
                assert outcome[1].startswith("the constraint raised ")
                assert "none of the errors a constraint is to raise" in outcome[2]


def test_requests_that_make_no_sense_are_refused(open_engine: OpenEngine) -> None:
    engine = open_engine()
    request = constrained(engine, SENTENCE)
    odd: Any = "fast"
    (unknown,) = run(engine, [replace(request, jump_forward=odd)])
    assert unknown == (EngineError, "jump_forward is 'fast'", "give one of exact, canonical, off")
    no_constraint: Any = "[a-z]+"
    (kind,) = run(engine, [replace(request, constraint=no_constraint)])
    assert kind[1].startswith("constraint is '[a-z]+', of type str")
    assert "lmc.grammar.compile" in kind[2]


@every_mode
def test_a_stream_that_fails_in_the_middle_of_a_draft_fails_its_request(
    open_engine: OpenEngine, mode: JumpForward
) -> None:
    engine = open_engine()
    request = constrained(engine, SENTENCE, mode=mode)
    seen: list[str] = []

    def fail(delta: TokenDelta) -> None:
        seen.append(delta.text)
        if "".join(seen).startswith("The quick"):
            raise ValueError("enough")

    failed = engine.submit(request, fail).future.exception(60)
    assert "on_delta callback raised ValueError: enough" in str(failed)
    assert "".join(seen).startswith("The quick")
    assert "dog" not in "".join(seen)
    assert run(engine, [request])[0][1] == SENTENCE


def test_a_request_is_cancelled_or_too_late_between_drafts(open_engine: OpenEngine) -> None:
    engine = open_engine(prefill_tokens=4)
    request = constrained(engine, *(["The quick ", Run(LETTERS, 3, 3)] * 9), max_tokens=200)
    (expected,) = run(engine, [request])
    started = threading.Event()
    handle = engine.submit(replace(request, seed=1), lambda _: started.set() or time.sleep(0.01))
    assert started.wait(30)
    handle.cancel()
    assert isinstance(handle.future.exception(60), RequestCancelledError)
    late = engine.submit(replace(request, timeout=0.05), lambda _: time.sleep(0.02))
    assert isinstance(late.future.exception(60), RequestTimeoutError)
    assert run(engine, [request]) == [expected]


def test_numbers_that_are_none_count_only_where_they_are_reached() -> None:
    """A draft goes on behind a token that is not drawn; what the model says there is nobody's."""
    words = toy_tokenizer()
    a, b, c, x = (words.encode(letter)[0] for letter in "abcx")

    def logits_after(prefix: tuple[int, ...]) -> torch.Tensor:
        logits = torch.zeros(words.vocabulary_size)
        logits[c if prefix[-1] in (a, x) else b] = 9.0
        return logits if prefix[-2:] != (b, a) else logits * float("nan")

    class Guess(TemplateConstraint):
        def start(self) -> Any:
            state = super().start()
            state.__dict__["_forced"] = [a, b, a, b]
            return state

    def asked(last: int) -> Any:
        model: Any = PrefixModel(logits_after, kv_tokens=100, vocabulary_size=words.vocabulary_size)
        with LocalEngine(model, words, EngineInfo("nan", 100, 100)) as engine:
            request = Request((x, last), SamplingParams(max_tokens=9), constraint=Guess(words, Run(b"abc", 4, 4)))
            result = run(engine, [request])[0]
            assert engine.statistics.drafted_tokens == 3  # the fourth completes it
            return result

    assert asked(x)[1] == "cbbb"  # c, where a was guessed
    assert np.isin(asked(b)[1], ["bbbb"])


@every_mode
def test_an_output_that_is_cut_says_what_it_cost(open_engine: OpenEngine, mode: JumpForward) -> None:
    engine = open_engine()
    request = constrained(engine, SENTENCE, mode=mode, max_tokens=4)
    for cached in (0, len(request.prompt) - 1):
        error = engine.submit(request).future.exception(60)
        assert isinstance(error, ConstraintError)
        assert error.usage is not None
        prompt, found, generated, calls, *_ = (getattr(error.usage, each.name) for each in fields(error.usage))
        assert (prompt, calls) == (len(request.prompt), 1)
        assert found == (0 if mode == "canonical" else cached)  # where all is forced nothing is computed
        assert 1 <= generated <= 4
