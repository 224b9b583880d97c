"""Constrained generations: what they say, how they end, and that drafts change nothing of it."""

import random
from dataclasses import replace
from typing import Any

import pytest

from lmc.ir.engine.protocol import EngineInfo, JumpForward, Request, SamplingParams, ScoreRequest
from lmc.ir.errors import ConstraintError
from lmc.ir.tokens.tokens import common_prefix_length
from lmc.runtime.local.engine import LocalEngine
from tests.ir.constraints_for_tests import LETTERS, Piece, Run, TemplateConstraint, TemplateState
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.oracle import CLOSE_CALL
from tests.runtime.local.outcomes import run, silent
from tests.runtime.local.prefix_model import PrefixModel
from tests.runtime.local.small_model import small_logits_after, small_tokenizer

TEXTS: tuple[tuple[Piece | str, ...], ...] = (
    ('{"the name":"', Run(LETTERS + b" ", 1, 9), '","the dog is lazy":', (b"true", b"false"), "}"),
    ("The quick brown fox", (b" jumps over", b" jumps under", b" does not mind"), " the lazy dog."),
    (Run(b"0123456789", 1, 4), " ships sail from the harbour in the morning; ", Run(LETTERS + b"\n", 0, 5)),
    ((b"", b"Seven "), "Žluťoučký kůň úpěl ".encode(), ("é".encode(), "ě".encode(), "東京".encode()), "; three"),
    (Run(LETTERS, 0),),
)
SAMPLINGS = (
    SamplingParams(max_tokens=70, logprobs=2),
    SamplingParams(max_tokens=70, temperature=1.0, logprobs=0),
    SamplingParams(max_tokens=70, temperature=1.4, top_p=0.9, frequency_penalty=0.7, repetition_penalty=1.3),
    SamplingParams(max_tokens=70, temperature=0.8, top_k=20, presence_penalty=1.0, min_tokens=12, logprobs=1),
    SamplingParams(max_tokens=70, temperature=1.0, logit_bias=((70, 3.0), (300, 4.0)), stop=("lazy", " sail from")),
)


def requests_of(engine: Any, mode: JumpForward, *, seeds: int = 2, **sampling: Any) -> list[Request]:
    numbers = random.Random(3)
    stem = tuple(numbers.randrange(3, 300) for _ in range(40))
    found: list[Request] = []
    for index, pieces in enumerate(TEXTS):
        constraint = TemplateConstraint(engine.tokenizer, *pieces)
        for number, settings in enumerate(SAMPLINGS):
            for seed in range(seeds):
                prompt = (*stem[: 7 * number], *(numbers.randrange(3, 300) for _ in range(5)))
                request = Request(prompt, replace(settings, **sampling), seed * 100 + index, constraint=constraint)
                found.append(replace(request, jump_forward=mode, op_id=f"op{index}"))
    return found


def test_a_draft_changes_nothing_to_the_last_bit(open_engine: OpenEngine) -> None:
    """Alone and token by token; then together, drafted, in steps and pools that cut prompts and drafts."""
    plain = open_engine(deterministic=True, prefix_cache=False)
    expected = [run(plain, [request])[0] for request in requests_of(plain, "off")]
    texts = [each[1] for each in expected if isinstance(each[0], tuple)]
    assert len({*texts}) > 20
    assert {each[0] for each in expected if isinstance(each[0], type)} <= {ConstraintError}
    for settings in ({}, {"prefill_tokens": 5}, {"prefill_tokens": 1}, {"kv_tokens": 110, "prefill_tokens": 24}):
        part = slice(None, None, 2 if settings else None)
        engine = open_engine(deterministic=True, **settings)
        assert run(engine, requests_of(engine, "exact")[part]) == expected[part]
        statistics = engine.statistics
        assert statistics.drafted_tokens > statistics.accepted_tokens > 20 or settings.get("prefill_tokens") == 1
        assert statistics.generated_tokens >= sum(each[6] for each in expected[part] if isinstance(each[0], tuple))
        assert (statistics.preemptions > 0) == ("kv_tokens" in settings)
    engine = open_engine(deterministic=True, prefill_tokens=40)
    assert run(engine, requests_of(engine, "exact")[::3], streamed=False) == [*map(silent, expected[::3])]


def test_wherever_it_is_cut_a_draft_changes_nothing(open_engine: OpenEngine) -> None:
    """`max_tokens` and stops within forced text, at its ends and behind it; only a whole output is none that fails."""
    engine = open_engine(deterministic=True)
    constraint = TemplateConstraint(engine.tokenizer, "The quick", Run(b"ab", 0, 2), " brown fox jumps")
    counts = dict.fromkeys((ConstraintError, tuple), 0)
    for settings in (
        *({"max_tokens": count} for count in range(1, 30)),
        *({"stop": (stop,)} for stop in ("T", "ui", "quick b", " brown", "own f", "s", "jumps", "zz")),
        *({"stop_token_ids": (token,)} for token in engine.tokenizer.encode("The quick brown")),
        *({"min_tokens": count} for count in (1, 9, 40)),
    ):
        sampling = SamplingParams(**{"max_tokens": 60, "temperature": 0.7, **settings})  # type: ignore[arg-type]
        request = Request((5, 6, 7), sampling, seed=4, constraint=constraint)
        off, exact = run(engine, [replace(request, jump_forward=mode) for mode in ("off", "exact")])
        assert off == exact
        counts[off[0] if isinstance(off[0], type) else tuple] += 1
    assert min(counts.values()) > 5


def test_without_determinism_only_close_calls_differ(open_engine: OpenEngine) -> None:
    """Rows of a draft are multiplied together with others, so their last bits differ; greedy tells where it matters."""
    off, exact = (open_engine("qwen3") for _ in "12")
    requests = [replace(each, sampling=SAMPLINGS[0]) for each in requests_of(off, "off")]
    drafted = [replace(request, jump_forward="exact") for request in requests]
    close_calls = 0
    for one, other in zip(run(off, requests), run(exact, drafted), strict=True):
        if one[0] == other[0]:
            continue
        place = common_prefix_length((one[0], other[0]))
        likely = dict(one[5][place].top)
        assert abs(likely[one[0][place]] - likely[other[0][place]]) < CLOSE_CALL
        close_calls += 1
    assert close_calls <= 1
    assert exact.statistics.accepted_tokens > 50


def test_constrained_and_free_requests_share_steps_prompts_and_samples(open_engine: OpenEngine) -> None:
    """Several samples of one prompt, with free ones among them, asked for again once all of it is cached."""
    alone, together = open_engine(deterministic=True, prefix_cache=False), open_engine(deterministic=True)
    constraint = TemplateConstraint(alone.tokenizer, *TEXTS[0])
    prompt = alone.tokenizer.encode("The quick brown fox is described by an object: ")
    sampling = SamplingParams(max_tokens=60, min_tokens=20, temperature=1.0, logprobs=0)
    plain = [Request(prompt, sampling, seed) for seed in range(8)]
    requests = [each if each.seed % 3 == 2 else replace(each, constraint=constraint) for each in plain]
    expected = [run(alone, [request])[0] for request in requests]
    assert run(together, requests) == expected
    assert together.statistics.prefilled_tokens == len(prompt) + len(requests) - 1
    cached = together.statistics.cached_tokens
    canonical = [replace(each, jump_forward="canonical") for each in requests[:2]]
    assert run(together, [*requests, *canonical])[: len(requests)] == expected
    assert together.statistics.cached_tokens >= cached + len(requests) * (len(prompt) - 1)


def test_canonical_tokens_are_those_of_the_text(open_engine: OpenEngine) -> None:
    """Whatever was drawn at the seams; log-probabilities are the model's for these tokens."""
    for settings in ({}, {"prefill_tokens": 3}, {"kv_tokens": 140}, {"prefix_cache": False}):
        engine = open_engine(deterministic=True, **settings)
        requests = requests_of(engine, "canonical", seeds=1 if settings else 3)
        for request, each in zip(requests, run(engine, requests), strict=True):
            if isinstance(each[0], type):
                assert each[0] is ConstraintError
                continue
            tokens, text, remainder, logprobs = each[0], each[1], each[2], each[5]
            assert request.constraint is not None
            assert request.constraint.matches(text)
            assert tokens == engine.tokenizer.encode(text.removesuffix(remainder))
            if logprobs is not None and not settings:
                score = engine.score(ScoreRequest(request.prompt, (tokens,))).future.result(60)
                assert tuple(entry.token_id for entry in logprobs) == tokens
                assert [entry.logprob for entry in logprobs] == pytest.approx(score.logprobs[0], abs=1e-5)
        assert engine.statistics.accepted_tokens == engine.statistics.drafted_tokens > 100
        assert (engine.statistics.preemptions > 0) == ("kv_tokens" in settings)


def test_canonical_output_does_not_depend_on_how_it_is_computed(open_engine: OpenEngine) -> None:
    one, other = open_engine(deterministic=True), open_engine(deterministic=True, kv_tokens=160, prefill_tokens=7)
    assert run(one, requests_of(one, "canonical")) == run(other, requests_of(other, "canonical"))


def test_text_that_is_forced_as_a_whole_needs_no_model(open_engine: OpenEngine) -> None:
    """Unless its log-probabilities are asked for; then one step reads them."""
    engine = open_engine()
    text = "The quick brown fox jumps over the lazy dog."
    constraint = TemplateConstraint(engine.tokenizer, text)
    request = Request((5, 6), SamplingParams(max_tokens=60), constraint=constraint, jump_forward="canonical")
    (found,) = run(engine, [request])
    assert found[:4] == (engine.tokenizer.encode(text), text, "", "eos")
    assert (engine.statistics.steps, engine.statistics.generated_tokens) == (0, len(found[0]))
    (read,) = run(engine, [replace(request, sampling=SamplingParams(max_tokens=60, logprobs=1))])
    assert read[:4] == found[:4]
    assert engine.statistics.steps == 1
    score = engine.score(ScoreRequest((5, 6), (found[0],))).future.result(60)
    assert [entry.logprob for entry in read[5]] == pytest.approx(score.logprobs[0], abs=1e-4)


@pytest.mark.parametrize("logprobs", [None, 1])
def test_canonical_tokens_may_be_more_than_were_generated(logprobs: int | None) -> None:
    """The tokenizer writes abcaa as ab, ca, a; `max_tokens` lets abc, aa through."""
    words = small_tokenizer()
    abc, aa = words.encode("abc")[0], words.encode("aa")[0]
    model: Any = PrefixModel(small_logits_after, kv_tokens=100, vocabulary_size=words.vocabulary_size)
    sampling = SamplingParams(max_tokens=2, logit_bias=((abc, 100.0),), logprobs=logprobs)
    request = Request((1, 3), sampling, constraint=TemplateConstraint(words, (b"abcaa", b"b")))
    with LocalEngine(model, words, EngineInfo("small", 100, 100)) as engine:
        plain, canonical = run(engine, [request, replace(request, jump_forward="canonical")])
    assert plain[:4] == ((abc, aa), "abcaa", "", "eos")
    assert canonical[:4] == (words.encode("abcaa"), "abcaa", "", "eos")
    assert len(canonical[0]) == 3
    if logprobs is not None:
        said = (1, 3, *canonical[0])
        expected = [small_logits_after(said[:at]).log_softmax(-1)[said[at]].item() for at in (2, 3, 4)]
        assert [entry.logprob for entry in canonical[5]] == pytest.approx(expected, abs=1e-5)


def test_what_was_computed_of_other_tokens_is_not_cached_for_the_final_ones() -> None:
    """Forced text that is known token by token: it is encoded again several times before anything is computed."""
    words = small_tokenizer()

    class OneByOne(TemplateState):
        def forced(self) -> list[int]:
            return super().forced()[:1]

        def advance(self, token_id: int) -> TemplateState:
            return OneByOne(self.owner, super().advance(token_id).places)

    class Slow(TemplateConstraint):
        def start(self) -> TemplateState:
            return OneByOne(self, super().start().places)

    model: Any = PrefixModel(small_logits_after, kv_tokens=100, vocabulary_size=words.vocabulary_size)
    abc, a = words.encode("abc")[0], words.encode("a")[0]
    sampling = SamplingParams(max_tokens=9, logit_bias=((abc, 100.0), (a, 90.0)))
    request = Request((1, 3), sampling, constraint=Slow(words, (b"abcaacb", b"abcc", b"b")), jump_forward="canonical")
    with LocalEngine(model, words, EngineInfo("small", 100, 100)) as engine:
        (found,) = run(engine, [request])
        assert found[:2] == (words.encode("abcaacb"), "abcaacb")
        assert found[0][0] != abc
        # Reading a page of another prefix is an error of this model.
        (after,) = run(engine, [Request((1, 3, *found[0]), SamplingParams(max_tokens=2))])
        assert isinstance(after[0], tuple)
