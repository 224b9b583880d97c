from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc import grammar
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.engine.protocol import JUMP_FORWARD, PrefixCaching, Request, SamplingParams, ScoreRequest, TokenDelta
from lmc.ir.engine.toy import SPECIAL_TOKENS, ToyEngine, toy_tokenizer
from lmc.ir.errors import ConstraintError, ContextLengthError, EngineError
from tests.ir.constraints_for_tests import LETTERS, Piece, Run, TemplateConstraint

PROMPT = toy_tokenizer().encode("Answer the question.")
prompts = st.text(max_size=8).map(toy_tokenizer().encode).filter(bool)


def generate(engine: ToyEngine, prompt: tuple[int, ...] = PROMPT, seed: int = 0, **sampling: object):
    request = Request(prompt, SamplingParams(**{"max_tokens": 12, **sampling}), seed)  # type: ignore[arg-type]
    return engine.submit(request).future.result()


@given(prompts, st.integers(0, 9), st.sampled_from([0.0, 1.0]))
def test_the_same_request_gives_the_same_answer(prompt, seed, temperature):
    first = generate(ToyEngine(), prompt, seed, temperature=temperature)
    assert generate(ToyEngine(), prompt, seed, temperature=temperature) == first


def test_the_answers_never_change():
    """Golden files elsewhere hold them."""
    assert generate(ToyEngine(), max_tokens=30).text == "tintsy9eoeiylst52e4hi te u5ats"
    assert generate(ToyEngine(), seed=1, temperature=1.0).text == "tst78s,  3d2"


def test_greedy_answers_do_not_depend_on_the_seed_and_sampled_ones_do():
    engine = ToyEngine()
    assert generate(engine, seed=1) == generate(engine, seed=2)
    assert len({generate(engine, seed=seed, temperature=1.0).text for seed in range(5)}) > 1


@given(prompts, st.integers(1, 11))
def test_going_on_from_a_cut_generation_gives_the_rest(prompt, cut):
    engine = ToyEngine()
    whole = generate(engine, prompt)
    if len(whole.token_ids) <= cut:
        return
    first = generate(engine, prompt, max_tokens=cut)
    assert first.finish_reason == "length"
    rest = generate(engine, prompt + first.token_ids, max_tokens=12 - cut)
    assert first.token_ids + rest.token_ids == whole.token_ids


@given(prompts)
def test_scores_of_a_continuation_are_the_log_probabilities_of_generating_it(prompt):
    engine = ToyEngine()
    generation = generate(engine, prompt, logprobs=3, max_tokens=4)
    if not generation.token_ids:
        return
    score = engine.score(ScoreRequest(prompt, (generation.token_ids,))).future.result()
    assert generation.logprobs is not None
    assert score.logprobs == (tuple(entry.logprob for entry in generation.logprobs),)
    assert all(-8.0 < logprob < 0.0 for row in score.logprobs for logprob in row)
    for entry in generation.logprobs:
        assert len(entry.top) == 3
        assert [logprob for _, logprob in entry.top] == sorted((logprob for _, logprob in entry.top), reverse=True)


def test_stops_and_streams_follow_the_protocol():
    engine = ToyEngine()
    text = generate(engine, max_tokens=30).text
    deltas: list[TokenDelta] = []
    request = Request(PROMPT, SamplingParams(max_tokens=30, stop=(text[4:6],)))
    generation = engine.submit(request, deltas.append).future.result()
    assert generation.text == text[: text.index(text[4:6])] == "".join(delta.text for delta in deltas)
    assert generation.finish_reason == "stop"


@given(st.lists(st.text("eati ,.", min_size=1, max_size=3), max_size=3), st.integers(0, 40), st.booleans())
def test_streams_have_each_token_and_its_logprob_once(stops: list[str], seed: int, scored: bool):
    sampling = SamplingParams(
        max_tokens=30, temperature=1.0, stop=tuple(stops), logprobs=2 if scored else None, logit_bias=((0xC3, 6.0),)
    )
    deltas: list[TokenDelta] = []
    found = ToyEngine().submit(Request(PROMPT, sampling, seed=seed), deltas.append).future.result()
    tokens = [token for delta in deltas for token in delta.token_ids]
    assert tokens == list(found.token_ids[: len(tokens)])
    assert [entry for delta in deltas for entry in delta.logprobs] == list((found.logprobs or ())[: len(tokens)])
    text, known = "", list[int]()
    for delta in deltas:
        text += delta.text
        known += delta.token_ids
        assert text.startswith(toy_tokenizer().decode(known))


def test_no_end_before_min_tokens():
    engine = ToyEngine()
    for seed in range(30):
        assert len(generate(engine, seed=seed, temperature=1.0, min_tokens=60, max_tokens=60).token_ids) == 60


def test_every_token_forbidden_is_an_error():
    engine = ToyEngine()
    with pytest.raises(EngineError, match="every token the toy can say is a stop token"):
        generate(engine, min_tokens=1, stop_token_ids=tuple(range(256)))


def test_penalties_and_biases_change_what_is_said():
    engine, (letter,) = ToyEngine(), toy_tokenizer().encode("Z")
    sampling: dict[str, Any] = {"max_tokens": 12, "min_tokens": 12}
    assert generate(engine, logit_bias=((letter, 100.0),), **sampling).text == "Z" * 12
    assert generate(engine, logit_bias=((letter, -100.0),), **sampling).text.count("Z") == 0
    penalties: list[dict[str, Any]] = [
        {"frequency_penalty": 2.0},
        {"presence_penalty": 2.0},
        {"repetition_penalty": 1e9},
    ]
    for penalty in penalties:
        ids = generate(engine, logit_bias=((letter, 1.0),), **penalty, **sampling).token_ids
        plain = generate(engine, logit_bias=((letter, 1.0),), **sampling).token_ids
        assert len(set(ids)) > len(set(plain))
    assert generate(engine, (letter,), repetition_penalty=1e9, **sampling).text.count("Z") == 0
    with pytest.raises(EngineError, match="every token the toy can say is a stop token"):
        generate(engine, stop_token_ids=tuple(range(260)), presence_penalty=1.0, **sampling)


def test_prefixes_are_pinned_until_they_are_let_go():
    engine = ToyEngine()
    assert isinstance(engine, PrefixCaching)
    pin = engine.prefill(PROMPT).future.result()
    assert (pin.length, engine.pinned) == (len(PROMPT), (pin,))
    engine.unpin(pin)
    assert engine.pinned == ()
    with pytest.raises(EngineError, match="is not held"):
        engine.unpin(pin)


def test_what_does_not_fit_is_refused():
    engine = ToyEngine(context_length=16)
    assert engine.info.context_length == 16
    for submit in (
        lambda: engine.submit(Request((0,) * 16, SamplingParams())),
        lambda: engine.score(ScoreRequest((0,) * 16, ((0,),))),
        lambda: engine.prefill((0,) * 17),
    ):
        with pytest.raises(ContextLengthError, match="17 tokens do not fit in a context of 16"):
            submit().future.result()
    with pytest.raises(ContextLengthError, match="17 tokens do not fit"):
        generate(engine, (PROMPT * 16)[:16], max_tokens=9)


def test_a_generation_that_reaches_the_end_of_the_context_keeps_its_text():
    prompt = (PROMPT * 16)[:12]
    cut = generate(ToyEngine(context_length=16), prompt, max_tokens=9)
    assert cut == generate(ToyEngine(), prompt, max_tokens=4)
    assert (cut.finish_reason, cut.generated_tokens) == ("length", 4)


def test_a_closed_engine_refuses_everything():
    engine = ToyEngine()
    engine.close()
    for submit in (
        lambda: engine.submit(Request((0,), SamplingParams())),
        lambda: engine.score(ScoreRequest((0,), ((0,),))),
        lambda: engine.prefill((0,)),
    ):
        with pytest.raises(EngineError, match=r"the engine is closed\n  remedy: call the program again"):
            submit().future.result()


def test_statistics_count_tokens():
    engine = ToyEngine()
    generation = generate(engine)
    engine.score(ScoreRequest(PROMPT, ((1, 2), (3,)))).future.result()
    statistics = engine.statistics
    assert (statistics.requests, statistics.prompt_tokens) == (2, 2 * len(PROMPT))
    assert statistics.prefilled_tokens == 2 * len(PROMPT) + 3
    assert statistics.generated_tokens == generation.generated_tokens


def test_the_tokenizer_is_bytes_and_special_tokens():
    tokenizer = toy_tokenizer()
    assert tokenizer.vocabulary_size == 256 + len(SPECIAL_TOKENS)
    assert {token.text for token in tokenizer.special_tokens} == set(SPECIAL_TOKENS)
    assert len(tokenizer.encode("é")) == 2


RECORD: tuple[Piece | str, ...] = (
    '{"name":"',
    Run(LETTERS + b" ,.", 0),
    '","age":',
    Run(b"0123456789", 1, 3),
    ',"is":',
    (b"true", b"false", b"null"),
    "}",
)


def constrained(constraint: TokenConstraint, engine: ToyEngine | None = None, seed: int = 0, **sampling: object):
    settings = SamplingParams(**{"max_tokens": 120, "temperature": 1.0, **sampling})  # type: ignore[arg-type]
    request = Request(PROMPT, settings, seed, op_id="judge/verdict", constraint=constraint)
    return (engine or ToyEngine()).submit(request).future.result()


def test_a_constraint_is_kept_and_ends_before_long():
    record = TemplateConstraint(toy_tokenizer(), *RECORD)
    engine, found = ToyEngine(), set[str]()
    for seed in range(60):
        generation = constrained(record, engine, seed)
        assert record.matches(generation.text)
        assert (generation.finish_reason, generation.matched_stop) == ("eos", None)
        assert generation.token_ids == toy_tokenizer().encode(generation.text)
        assert generation.generated_tokens == len(generation.token_ids)
        found.add(generation.text)
    assert len(found) > 55
    assert max(map(len, found)) < 110
    unbounded = TemplateConstraint(toy_tokenizer(), Run(LETTERS, 2))
    lengths = [len(constrained(unbounded, engine, seed).text) for seed in range(60)]
    assert min(lengths) >= 2
    assert max(lengths) < 40


def test_a_constrained_answer_is_the_same_in_all_modes_and_every_time():
    record = TemplateConstraint(toy_tokenizer(), *RECORD)
    request = Request(PROMPT, SamplingParams(max_tokens=120), constraint=record)
    answers = {
        ToyEngine().submit(replace(request, jump_forward=mode)).future.result() for mode in JUMP_FORWARD for _ in "12"
    }
    assert len(answers) == 1


def test_penalties_and_biases_choose_among_what_is_allowed():
    choices = TemplateConstraint(toy_tokenizer(), (b"abba", b"zzz", b"b"))
    (letter,) = toy_tokenizer().encode("z")
    assert constrained(choices, logit_bias=((letter, 100.0),)).text == "zzz"
    digits = TemplateConstraint(toy_tokenizer(), Run(b"024689", 6, 6))  # none of them is in the prompt
    assert sorted(constrained(digits, repetition_penalty=100.0).text) == [*"024689"]


def test_min_tokens_forbids_the_end_only_where_something_else_is_allowed():
    letters = TemplateConstraint(toy_tokenizer(), Run(LETTERS, 1))
    for seed in range(20):
        assert len(constrained(letters, seed=seed, min_tokens=25).token_ids) >= 25
    short = TemplateConstraint(toy_tokenizer(), "abc")
    assert constrained(short, min_tokens=25).text == "abc"
    nothing = constrained(TemplateConstraint(toy_tokenizer(), b""), min_tokens=2)
    assert (nothing.text, nothing.token_ids, nothing.finish_reason) == ("", (), "eos")


def test_a_constrained_output_that_is_cut_is_an_error():
    record = TemplateConstraint(toy_tokenizer(), *RECORD)
    with pytest.raises(
        ConstraintError, match=r"output of 'judge/verdict' .*: max_tokens \(9\) ended it after '{\"name\":\"'"
    ) as cut:
        constrained(record, max_tokens=9)
    assert "more max_tokens" in str(cut.value.remedy)
    with pytest.raises(ConstraintError, match=r"the stop '\"age' ended it after '{\"name\":") as stopped:
        constrained(record, stop=('"age',))
    assert "leave that stop out" in str(stopped.value.remedy)
    request = Request(PROMPT, SamplingParams(stop=('"age',)), constraint=record, may_be_cut=True)
    found = ToyEngine().submit(request).future.result()
    assert (found.finish_reason, found.matched_stop) == ("stop", '"age')
    assert found.text.startswith('{"name":')
    with pytest.raises(ConstraintError, match="context or the KV pool was full") as full:
        constrained(record, ToyEngine(context_length=len(PROMPT) + 9))
    assert "shorten the prompt" in str(full.value.remedy)
    # A stop that ends at a place where the constraint may end is none.
    assert constrained(TemplateConstraint(toy_tokenizer(), "ab", Run(b".", 0, 5)), stop=("..",)).text == "ab"


def test_bytes_that_are_no_text_are_seen_at_the_end():
    """The last byte of é is cut off; the text that is left would be allowed."""
    accent = TemplateConstraint(toy_tokenizer(), b"a", (b"", "é".encode()))
    texts: list[str] = []
    for seed in range(12):
        try:
            texts.append(constrained(accent, seed=seed, max_tokens=2).text)
        except ConstraintError as error:
            texts.append(error.cause)
    assert {*texts} == {
        "a",
        "the output of 'judge/verdict' is not what its constraint allows: max_tokens (2) ended it after 'a'",
    }


def test_a_constraint_that_allows_nothing_is_an_error():
    constraint = TemplateConstraint(toy_tokenizer(), "a")
    constraint.start().mask()[:] = 0
    with pytest.raises(EngineError, match="no token can be said at position 0: the constraint allows none"):
        constrained(constraint)


RECURSIVE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["v", "kids"],
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    "source",
    [{"schema": RECURSIVE}, {"schema": {"type": "object"}}, {"regex": "(ab)*c"}, {"regex": r'"([^"\\]|\\.)*"'}],
)
def test_it_comes_to_an_end_where_a_constraint_has_none(source: dict[str, Any]):
    constraint = grammar.compile(**source, tokenizer=toy_tokenizer())
    texts = [constrained(constraint, seed=seed).text for seed in range(40)]
    assert len({*texts}) > 5
