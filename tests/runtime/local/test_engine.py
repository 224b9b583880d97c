"""The Engine protocol on a tiny checkpoint: results, streams, stops, failures, shutdown."""

import os
import random
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch

from lmc.ir.engine.protocol import (
    CacheFlushing,
    Engine,
    EngineInfo,
    Pin,
    PrefixCaching,
    Request,
    SamplingParams,
    ScoreRequest,
    TokenDelta,
)
from lmc.ir.errors import ContextLengthError, EngineError, RequestCancelledError
from lmc.runtime.local import LocalEngine, load_local_engine
from tests.runtime.local.checkpoints import SENTENCES, make_model, save_checkpoint
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.oracle import generate as oracle_generate
from tests.runtime.local.oracle import sequence_logprobs


def generate(engine: LocalEngine, text: str, seed: int = 0, **sampling: Any):
    request = Request(engine.tokenizer.encode(text), SamplingParams(**sampling), seed)
    return engine.submit(request).future.result(timeout=30)


def test_it_is_an_engine_that_caches_prefixes(open_engine: OpenEngine) -> None:
    engine: Engine = open_engine(kv_tokens=700, max_running=9)
    assert isinstance(engine, PrefixCaching)
    assert engine.info == EngineInfo("local:llama", 512, 700, max_running=9)


def test_seeded_generations_are_the_same_alone_and_in_any_batch(open_engine: OpenEngine) -> None:
    engine, crowded = open_engine(), open_engine(kv_tokens=150, prefill_tokens=8)
    requests = [
        Request(
            engine.tokenizer.encode(SENTENCES[index % 3][: 20 + index]),
            SamplingParams(max_tokens=30, temperature=1.0, top_p=0.9),
            seed=index,
        )
        for index in range(8)
    ]
    alone = [engine.submit(request).future.result(30).token_ids for request in requests]
    handles = [crowded.submit(request) for request in reversed(requests)]
    assert [handle.future.result(30).token_ids for handle in reversed(handles)] == alone
    assert len(set(alone)) == 8


def test_scores_are_the_models_logprobs(open_engine: OpenEngine, models) -> None:
    engine = open_engine(prefill_tokens=5)
    encode = engine.tokenizer.encode
    prompt = encode(SENTENCES[2])
    continuations = tuple(encode(text) for text in (" yes", " no, not at all", " no, not at night", "", "?", " yes"))
    score = engine.score(ScoreRequest(prompt, continuations)).future.result(30)
    assert (score.prompt_tokens, score.cached_tokens) == (len(prompt), 0)
    for continuation, logprobs in zip(continuations, score.logprobs, strict=True):
        assert logprobs == pytest.approx(sequence_logprobs(models["llama"], prompt, continuation), abs=1e-4)
    # The prompt is computed once, each distinct continuation but for its last token once.
    bodies = {continuation[:-1] for continuation in continuations}
    assert engine.statistics.prefilled_tokens == len(prompt) + sum(map(len, bodies))
    again = engine.score(ScoreRequest(prompt, continuations)).future.result(30)
    assert again.cached_tokens == len(prompt) - 1
    for first, second in zip(score.logprobs, again.logprobs, strict=True):
        assert second == pytest.approx(first, abs=1e-4)


def test_scores_in_a_pool_too_small_for_all_continuations_at_once(open_engine: OpenEngine, models) -> None:
    engine = open_engine(kv_tokens=60)
    encode = engine.tokenizer.encode
    prompt = encode(SENTENCES[0])
    continuations = tuple(encode(f" {word * 3}") for word in ("fox", "dog", "ship", "night", "yes", "harbour"))
    score = engine.score(ScoreRequest(prompt, continuations)).future.result(30)
    for continuation, logprobs in zip(continuations, score.logprobs, strict=True):
        assert logprobs == pytest.approx(sequence_logprobs(models["llama"], prompt, continuation), abs=1e-4)


def test_a_stop_string_across_tokens_keeps_the_whole_tokens_before_it(open_engine: OpenEngine) -> None:
    engine = open_engine()
    full = generate(engine, SENTENCES[0], max_tokens=40)
    middle = len(full.text) // 2
    stop = next(
        full.text[at : at + 3] for at in range(middle, len(full.text)) if "\ufffd" not in full.text[at : at + 3]
    )
    cut = generate(engine, SENTENCES[0], max_tokens=40, stop=(stop,))
    assert (cut.finish_reason, cut.matched_stop) == ("stop", stop)
    assert cut.text == full.text[: full.text.index(stop)]
    assert cut.token_ids == full.token_ids[: len(cut.token_ids)]
    assert engine.tokenizer.decode(cut.token_ids) + cut.remainder == cut.text


def test_stop_tokens_and_min_tokens(open_engine: OpenEngine) -> None:
    engine = open_engine()
    full = generate(engine, SENTENCES[1], max_tokens=12)
    stop = full.token_ids[4]
    cut = generate(engine, SENTENCES[1], max_tokens=12, stop_token_ids=(stop,))
    assert (cut.finish_reason, cut.matched_stop) == ("stop", stop)
    assert cut.token_ids == full.token_ids[: full.token_ids.index(stop)]
    later = generate(engine, SENTENCES[1], max_tokens=12, min_tokens=8, stop_token_ids=(stop,))
    assert stop not in later.token_ids[:8]
    assert len(later.token_ids) >= 8


def test_logprobs_of_kept_tokens(open_engine: OpenEngine, models) -> None:
    engine = open_engine()
    prompt = engine.tokenizer.encode(SENTENCES[0])
    generation = generate(engine, SENTENCES[0], max_tokens=6, logprobs=3)
    assert generation.logprobs is not None
    expected = sequence_logprobs(models["llama"], prompt, generation.token_ids)
    assert [entry.logprob for entry in generation.logprobs] == pytest.approx(expected, abs=1e-4)
    for token, entry in zip(generation.token_ids, generation.logprobs, strict=True):
        assert entry.token_id == token == entry.top[0][0]
        assert len(entry.top) == 3
    assert generate(engine, SENTENCES[0], max_tokens=2).logprobs is None


def test_streams_give_the_text_in_pieces(open_engine: OpenEngine) -> None:
    engine = open_engine()
    deltas: list[TokenDelta] = []
    request = Request(engine.tokenizer.encode(SENTENCES[3]), SamplingParams(max_tokens=30))
    generation = engine.submit(request, deltas.append).future.result(30)
    assert "".join(delta.text for delta in deltas) == generation.text
    assert len(deltas) > 3


def test_a_callback_that_raises_fails_its_request_only(open_engine: OpenEngine) -> None:
    engine = open_engine()

    def broken(delta: TokenDelta) -> None:
        raise KeyError(delta.text)

    prompt = engine.tokenizer.encode(SENTENCES[0])
    failing = engine.submit(Request(prompt, SamplingParams(max_tokens=9)), broken)
    fine = engine.submit(Request(prompt, SamplingParams(max_tokens=9)))
    with pytest.raises(EngineError, match="on_delta callback raised KeyError"):
        failing.future.result(30)
    assert fine.future.result(30).generated_tokens == 9


def test_a_finished_request_may_submit_the_next_one(open_engine: OpenEngine) -> None:
    engine = open_engine()
    chained: Future[str] = Future()

    def go_on(first: Future[Any]) -> None:
        request = Request(first.result().token_ids, SamplingParams(max_tokens=3))
        engine.submit(request).future.add_done_callback(lambda done: chained.set_result(done.result().text))

    first = engine.submit(Request(engine.tokenizer.encode("Seven"), SamplingParams(max_tokens=3)))
    first.future.add_done_callback(go_on)
    assert chained.result(30)


def test_submits_from_many_threads(open_engine: OpenEngine) -> None:
    engine = open_engine()
    expected = {text: generate(engine, text, max_tokens=8).token_ids for text in SENTENCES}
    results: list[tuple[str, tuple[int, ...]]] = []

    def work(text: str) -> None:
        results.extend((text, generate(engine, text, max_tokens=8).token_ids) for _ in range(3))

    threads = [threading.Thread(target=work, args=(text,)) for text in SENTENCES * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 24
    assert all(tokens == expected[text] for text, tokens in results)


def test_pins_survive_pressure_and_yield_only_to_need(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=200)
    prefix = engine.tokenizer.encode(SENTENCES[0] + SENTENCES[1])
    pin = engine.prefill(prefix).future.result(30)
    assert (pin.length, pin.cached_tokens) == (len(prefix), 0)
    for text in SENTENCES[2:]:
        generate(engine, text * 2, max_tokens=50)
    held = engine.prefill(prefix).future.result(30)
    assert held.cached_tokens == len(prefix)
    # One request that needs nearly the whole pool: both pins have to go.
    huge = engine.submit(Request((5,) * 180, SamplingParams(max_tokens=5))).future.result(30)
    assert huge.generated_tokens >= 1
    engine.unpin(pin)
    engine.unpin(held)
    with pytest.raises(EngineError, match=f"pin {pin.key} is not held"):
        engine.unpin(pin)


def test_cancelled_requests_end_and_free_their_pages(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=510)
    started = threading.Event()
    request = Request(engine.tokenizer.encode(SENTENCES[0]), SamplingParams(max_tokens=400))
    running = engine.submit(request, lambda _: started.set())
    waiting = engine.submit(Request((7,) * 490, SamplingParams(max_tokens=5)))
    assert started.wait(30)
    for handle in (running, waiting):
        handle.cancel()
        handle.cancel()
        with pytest.raises(RequestCancelledError, match="cancelled"):
            handle.future.result(30)
    assert generate(engine, SENTENCES[1], max_tokens=3).generated_tokens == 3


CROWD = 100


@pytest.mark.parametrize("seed", range(20 if os.environ.get("LMC_TEST_FULL") == "1" else 1))
def test_crowds_with_cancels_in_a_tiny_pool_get_what_each_gets_alone(seed: int, open_engine: OpenEngine) -> None:
    """Many more requests than fit, cancelled from another thread at any moment: no page is lost, no result changed."""
    rng = random.Random(seed)
    engine, alone = open_engine(kv_tokens=70, prefill_tokens=3, max_running=5), open_engine()
    stems = [engine.tokenizer.encode(text) for text in SENTENCES[:3]]

    def prompt() -> tuple[int, ...]:
        stem = rng.choice(stems)
        return stem[: rng.randint(1, len(stem))] + tuple(rng.choices(range(5, 400), k=rng.randint(0, 5)))

    asked: list[Request | ScoreRequest] = []
    for number in range(CROWD):
        if rng.random() < 0.25:
            asked.append(ScoreRequest(prompt(), tuple(prompt()[:9] for _ in range(rng.randint(1, 4)))))
        else:
            stop = rng.choice([(), ("e",)])
            sampling = SamplingParams(max_tokens=rng.randint(1, 20), temperature=rng.choice([0.0, 1.0]), stop=stop)
            asked.append(Request(prompt(), sampling, seed=number))

    def ask(of: LocalEngine, request: Request | ScoreRequest) -> Any:
        return of.submit(request) if isinstance(request, Request) else of.score(request)

    handles = [ask(engine, request) for request in asked]
    pins = [engine.prefill(stem) for stem in stems]
    doomed = rng.sample(handles, CROWD // 3)

    def cancel() -> None:
        for handle in doomed:
            handle.cancel()
            time.sleep(0.0005)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    finished = 0
    for request, handle in zip(asked, handles, strict=True):
        error = handle.future.exception(600)
        if error is not None:
            assert isinstance(error, RequestCancelledError)
            assert handle in doomed
            continue
        finished += 1
        found, expected = handle.future.result(), ask(alone, request).future.result(60)
        if isinstance(request, ScoreRequest):
            for row, expected_row in zip(found.logprobs, expected.logprobs, strict=True):
                assert row == pytest.approx(expected_row, abs=1e-4)
        else:
            assert (found.token_ids, found.text, found.finish_reason) == (
                expected.token_ids,
                expected.text,
                expected.finish_reason,
            )
    canceller.join()
    for pin in pins:
        engine.unpin(pin.future.result(60))
    generate(engine, "Seven", max_tokens=1)  # a step after the unpins
    engine.close()
    assert finished >= CROWD - len(doomed)
    memory = engine._worker._scheduler.memory
    assert memory.pool.used_count == memory.radix.total_tokens
    assert memory.radix.pinned_tokens == 0
    assert (engine._worker._tasks, engine._worker._unresolved, engine._worker._pins) == ({}, set(), set())


def test_a_request_that_can_never_fit_fails_and_the_others_go_on(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=40)
    running = engine.submit(Request((5, 6, 7), SamplingParams(max_tokens=20)))
    huge = [
        engine.submit(Request((5,) * 41, SamplingParams())),
        engine.score(ScoreRequest((5,) * 38, ((6,) * 5,))),
        engine.prefill((5,) * 41),
    ]
    for handle in huge:
        with pytest.raises(ContextLengthError, match="exceed the KV pool of 40") as failure:
            handle.future.result(30)
        assert failure.value.remedy == "give the engine more kv_tokens"
    assert running.future.result(30).generated_tokens >= 1
    assert engine.submit(Request((5,) * 40, SamplingParams())).future.result(30).finish_reason in ("length", "eos")


@pytest.mark.parametrize("seed", range(20 if os.environ.get("LMC_TEST_FULL") == "1" else 3))
def test_random_use_of_a_small_pool(seed: int, open_engine: OpenEngine) -> None:
    """Generations, scores, pins and cancels at random: every handle resolves, pages add up after every step."""
    rng = random.Random(seed)
    engine = open_engine(kv_tokens=150, prefill_tokens=rng.choice([4, 16, 64]), max_running=rng.choice([2, 8, 100]))
    stems = [engine.tokenizer.encode(text) for text in SENTENCES[:3]]

    def prompt() -> tuple[int, ...]:
        stem = rng.choice(stems)
        return stem[: rng.randint(1, len(stem))] + tuple(rng.choices(range(5, 400), k=rng.randint(0, 8)))

    handles: list[Any] = []
    for _ in range(60):
        kind = rng.choice(["generate", "generate", "sample", "score", "prefill", "cancel", "unpin", "wait"])
        if kind in {"generate", "sample"}:
            sampling = SamplingParams(max_tokens=rng.randint(1, 60), temperature=float(kind == "sample"))
            handles.append(engine.submit(Request(prompt(), sampling, seed=rng.randint(0, 9))))
        elif kind == "score":
            handles.append(engine.score(ScoreRequest(prompt(), tuple(prompt()[:9] for _ in range(rng.randint(0, 5))))))
        elif kind == "prefill":
            handles.append(engine.prefill(prompt()))
        elif kind == "cancel" and handles:
            rng.choice(handles).cancel()
        elif kind == "unpin" and handles:
            done = rng.choice(handles)
            result = None if done.future.exception(30) else done.future.result()
            if isinstance(result, Pin):
                engine.unpin(result)
                handles.remove(done)
        else:
            time.sleep(rng.random() / 100)
    outcomes = [handle.future.exception(60) for handle in handles]
    assert all(outcome is None or isinstance(outcome, RequestCancelledError) for outcome in outcomes)
    assert engine.statistics.steps > 0


def test_close_fails_what_is_running_and_refuses_what_comes_later(open_engine: OpenEngine) -> None:
    engine = open_engine()
    request = Request(engine.tokenizer.encode(SENTENCES[0]), SamplingParams(max_tokens=450))
    handles = [engine.submit(request) for _ in range(3)]
    engine.close()
    engine.close()
    for handle in [*handles, engine.submit(request)]:
        with pytest.raises(EngineError, match="engine was closed"):
            handle.future.result(30)


def test_a_worker_that_dies_fails_everything_with_the_cause(
    open_engine: OpenEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine()
    generate(engine, "Seven", max_tokens=2)

    def broken(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(engine._worker._model, "forward", broken)
    request = Request(engine.tokenizer.encode(SENTENCES[0]), SamplingParams(max_tokens=5))
    handles = [engine.submit(request), engine.score(ScoreRequest((5, 6), ((7,),))), engine.prefill((5, 6, 7))]
    for handle in handles:
        with pytest.raises(EngineError, match="engine stopped: MemoryError: no room") as failure:
            handle.future.result(30)
        assert isinstance(failure.value.__cause__, MemoryError)
    with pytest.raises(EngineError, match="engine stopped"):
        engine.submit(request).future.result(30)
    # Each gets an error of its own: the executor writes the program's line into it.
    errors = [handle.future.exception() for handle in (*handles, engine.submit(request), engine.submit(request))]
    assert len(set(map(id, errors))) == 5
    engine.close()
    engine.close()


def test_nan_logits_fail_their_request_alone(tmp_path: Path) -> None:
    model = make_model("llama", tie_word_embeddings=False)
    poison = 77
    with torch.no_grad():
        model.model.embed_tokens.weight[poison] = float("nan")
    with load_local_engine(save_checkpoint(tmp_path, model), device="cpu", kv_tokens=300) as engine:
        healthy = engine.tokenizer.encode(SENTENCES[0])
        sampling = SamplingParams(max_tokens=10)
        expected = engine.submit(Request(healthy, sampling)).future.result(30).token_ids
        broken = [
            engine.submit(Request((*healthy, poison), sampling)),
            engine.score(ScoreRequest((*healthy, poison), ((5, 6),))),
        ]
        fine = engine.submit(Request(healthy, sampling))
        for handle in broken:
            with pytest.raises(EngineError, match="NaN logits"):
                handle.future.result(30)
        assert fine.future.result(30).token_ids == expected
        # The freed pages held NaN; whoever gets them next must not notice.
        for text in SENTENCES:
            generate(engine, text * 2, max_tokens=30)
        assert engine.submit(Request(healthy, sampling)).future.result(30).token_ids == expected


@pytest.mark.parametrize("settings", [{}, {"prefix_cache": False}, {"prefill_tokens": 7}])
def test_a_generation_that_reaches_the_end_of_the_context_keeps_its_text(
    settings: dict[str, Any], open_engine: OpenEngine, models
) -> None:
    engine = open_engine(**settings)
    words = engine.tokenizer.encode(SENTENCES[0])
    for left in (1, 2, 20):
        prompt = (words * 40)[: 512 - left]
        deltas: list[TokenDelta] = []
        # A stop string that never comes holds text back: that has to be told too.
        sampling = SamplingParams(max_tokens=500, stop=("\x00" * 9,), stop_token_ids=(1,), logprobs=0)
        found = engine.submit(Request(prompt, sampling), deltas.append).future.result(30)
        expected, _ = oracle_generate(models["llama"], prompt, left)
        assert (list(found.token_ids), found.finish_reason) == (expected, "length")
        assert found.generated_tokens == left
        assert "".join(delta.text for delta in deltas) == found.text
        assert found.logprobs is not None
        assert len(found.logprobs) == left
    with pytest.raises(ContextLengthError, match=r"512 prompt tokens and 1 .* exceed the model's context of 512"):
        engine.submit(Request((words * 40)[:512], SamplingParams(max_tokens=500))).future.result(30)


def test_a_generation_that_reaches_the_end_of_the_pool_keeps_its_text(open_engine: OpenEngine) -> None:
    engine, roomy = open_engine(kv_tokens=64), open_engine()
    prompt = engine.tokenizer.encode(SENTENCES[0])
    hungry = engine.submit(Request(prompt, SamplingParams(max_tokens=500)))
    modest = engine.submit(Request(prompt, SamplingParams(max_tokens=10)))
    cut = hungry.future.result(30)
    # The keys and values of the last token are never computed, so it needs no room.
    assert (cut.finish_reason, len(prompt) + cut.generated_tokens) == ("length", 65)
    assert cut.token_ids == generate(roomy, SENTENCES[0], max_tokens=65 - len(prompt)).token_ids
    assert modest.future.result(30).generated_tokens == 10


def test_an_engine_that_is_forgotten_ends_its_thread(checkpoints: dict[str, Path]) -> None:
    engine = load_local_engine(checkpoints["llama"], device="cpu", kv_tokens=100)
    thread = engine._worker._thread
    del engine
    deadline = time.monotonic() + 10
    while thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not thread.is_alive()


def test_without_a_prefix_cache_every_request_computes_its_whole_prompt(open_engine: OpenEngine) -> None:
    prompt = tuple(range(40))
    requests = [Request((*prompt, last), SamplingParams(max_tokens=4)) for last in (1, 1, 2, 3)]
    cached, bare = open_engine(), open_engine(prefix_cache=False, kv_tokens=100)
    expected = [cached.submit(request).future.result().token_ids for request in requests]
    assert bare.unpin(bare.prefill(prompt).future.result()) is None
    assert [bare.submit(request).future.result().token_ids for request in requests] == expected
    assert bare.statistics.cached_tokens == 0
    assert bare.statistics.evicted_tokens == 0
    assert bare._worker._scheduler.memory.pool.used_count == 0
    assert cached.statistics.cached_tokens > 0


def test_after_a_flush_no_request_finds_what_was_computed_before(open_engine: OpenEngine) -> None:
    engine = open_engine()
    assert isinstance(engine, CacheFlushing)
    request = Request(tuple(range(40)), SamplingParams(max_tokens=4))
    first = engine.submit(request).future.result()
    pin = engine.prefill(tuple(range(20))).future.result()
    assert engine.submit(request).future.result().cached_tokens == 39
    engine.flush_cache()
    again = engine.submit(request).future.result()
    assert (again.cached_tokens, again.token_ids) == (0, first.token_ids)
    assert engine.submit(request).future.result().cached_tokens == 39
    engine.unpin(pin)


def test_without_a_prefix_cache_the_choices_of_one_score_share_their_prompt(open_engine: OpenEngine) -> None:
    bare = open_engine(prefix_cache=False)
    request = ScoreRequest(tuple(range(40)), ((1, 2), (3, 4)))
    first = bare.score(request).future.result()
    assert bare.score(request).future.result().logprobs == first.logprobs
    assert bare.statistics.prefilled_tokens == 2 * (40 + 2)
