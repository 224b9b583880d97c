"""Greedy tokens in fp32 against transformers' own generation, over everything that could change a batch."""

import os
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from lmc.ir.engine.protocol import Generation, Request, SamplingParams
from lmc.runtime.kernels import native_attention
from lmc.runtime.local import LocalEngine
from lmc.runtime.local.modules import fusion
from tests.runtime.local.checkpoints import ARCHITECTURES, SENTENCES
from tests.runtime.local.conftest import OpenEngine
from tests.runtime.local.oracle import Agreement

pytestmark = pytest.mark.slow("every architecture, beside transformers' own generation")

FULL = os.environ.get("LMC_TEST_FULL") == "1"
CASES = 40 if FULL else 5
CHUNKS = [*range(1, 65), 100, 200] if FULL else [1, 7, 16]
ARRIVAL_SECONDS = 0.2  # over which requests come at random, while others run
MAX_TOKENS = 24


def prompts_with_shared_prefixes(engine: LocalEngine, count: int, seed: int) -> list[tuple[int, ...]]:
    """Prompts that share beginnings of several lengths with each other, some of them equal, in random order."""
    rng = random.Random(seed)
    stems = [engine.tokenizer.encode(" ".join(rng.choices(SENTENCES, k=length))) for length in (1, 2, 3)]
    prompts: list[tuple[int, ...]] = []
    for _ in range(count):
        stem = rng.choice(stems)
        shared = stem[: rng.randint(1, len(stem))]
        prompts.append(shared + engine.tokenizer.encode(rng.choice(SENTENCES)[: rng.randint(0, 30)]))
    return prompts


def run_all(engine: LocalEngine, prompts: list[tuple[int, ...]], max_tokens: int = MAX_TOKENS) -> list[Generation]:
    handles = [engine.submit(Request(prompt, SamplingParams(max_tokens=max_tokens))) for prompt in prompts]
    return [handle.future.result(timeout=60) for handle in handles]


def check_all(
    model: Any, prompts: list[tuple[int, ...]], generations: list[Generation], max_tokens: int = MAX_TOKENS
) -> None:
    agreement = Agreement()
    for prompt, generation in zip(prompts, generations, strict=True):
        agreement.check(model, prompt, generation.token_ids, max_tokens)
    print(f"{agreement.compared} generations equal, {agreement.close_calls} of them up to a close call")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_shared_prefixes_in_one_batch(architecture: str, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture)
    prompts = prompts_with_shared_prefixes(engine, CASES, seed=1)
    check_all(models[architecture], prompts, run_all(engine, prompts))
    assert engine.statistics.cached_tokens > 0


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_shared_prefixes_on_two_threads(architecture: str, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture)
    prompts = prompts_with_shared_prefixes(engine, CASES, seed=1)
    check_all(models[architecture], prompts, run_all(engine, prompts))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("prefill_tokens", CHUNKS)
def test_every_chunk_size(architecture: str, prefill_tokens: int, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture, prefill_tokens=prefill_tokens)
    prompts = prompts_with_shared_prefixes(engine, 4, seed=7)
    check_all(models[architecture], prompts, run_all(engine, prompts))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_requests_that_arrive_at_any_time(architecture: str, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture, prefill_tokens=12)
    prompts = prompts_with_shared_prefixes(engine, CASES, seed=5)
    generations: dict[int, Generation] = {}

    def arrive(index: int, delay: float) -> None:
        time.sleep(delay)
        (generations[index],) = run_all(engine, [prompts[index]])

    rng = random.Random(6)
    threads = [
        threading.Thread(target=arrive, args=(index, rng.uniform(0, ARRIVAL_SECONDS))) for index in range(len(prompts))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_all(models[architecture], prompts, [generations[index] for index in range(len(prompts))])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_evictions_and_preemptions_in_a_small_pool(architecture: str, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture, kv_tokens=220, prefill_tokens=32)
    prompts = prompts_with_shared_prefixes(engine, 2 * CASES if FULL else 10, seed=2)
    check_all(models[architecture], prompts, run_all(engine, prompts, max_tokens=60), max_tokens=60)
    assert engine.statistics.evicted_tokens > 0
    assert engine.statistics.preemptions > 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_compiled_kernels(architecture: str, open_engine: OpenEngine, models, monkeypatch) -> None:
    reason = f"no compiler for {architecture}"
    monkeypatch.setattr(fusion, "why_not", lambda: reason)
    monkeypatch.setattr(native_attention, "why_not", lambda: reason)
    with pytest.warns(RuntimeWarning, match=reason):
        engine = open_engine(architecture)
    prompts = prompts_with_shared_prefixes(engine, 3, seed=4)
    check_all(models[architecture], prompts, run_all(engine, prompts))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_cache_hits_of_earlier_runs(architecture: str, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture)
    prompts = prompts_with_shared_prefixes(engine, CASES, seed=3)
    first = run_all(engine, prompts)
    again = run_all(engine, prompts)
    assert [generation.token_ids for generation in again] == [generation.token_ids for generation in first]
    assert all(generation.cached_tokens == len(prompt) - 1 for generation, prompt in zip(again, prompts, strict=True))
    check_all(models[architecture], prompts, again)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_forks_continue_from_generated_tokens(architecture: str, open_engine: OpenEngine, models) -> None:
    engine = open_engine(architecture)
    root = engine.tokenizer.encode(SENTENCES[0])
    (stem,) = run_all(engine, [root])
    context = root + stem.token_ids
    forks = [context + engine.tokenizer.encode(text) for text in (" And", " But", "", "\n")]
    generations = run_all(engine, forks)
    # All of the stem but its last token (never computed while generating) comes from the cache.
    assert min(generation.cached_tokens for generation in generations) >= len(context) - 1
    check_all(models[architecture], forks, generations)


def test_requests_that_arrive_together_compute_their_prefix_once(open_engine: OpenEngine) -> None:
    engine = open_engine(prefill_tokens=16)
    prefix = engine.tokenizer.encode(" ".join(SENTENCES))
    prompts = [prefix + engine.tokenizer.encode(ending) for ending in (" one", " two", " three", " four", " five")]
    run_all(engine, prompts)
    distinct = len({prompt[:length] for prompt in prompts for length in range(1, len(prompt) + 1)})
    assert engine.statistics.prefilled_tokens == distinct


def test_bfloat16_runs_and_mostly_agrees(open_engine: OpenEngine) -> None:
    exact, rounded = open_engine(), open_engine(dtype="bfloat16")
    prompts = prompts_with_shared_prefixes(exact, CASES, seed=4)
    first_tokens = [
        [generation.token_ids[:1] for generation in run_all(engine, prompts)] for engine in (exact, rounded)
    ]
    agreeing = sum(ours == theirs for ours, theirs in zip(*first_tokens, strict=True))
    assert agreeing >= 0.7 * len(prompts)
