"""RoPE that depends on the length: by the request, whatever else is in the batch, the tree or the pool."""

import copy
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from lmc.ir.engine.protocol import Generation, Request, SamplingParams, ScoreRequest
from lmc.runtime.kernels import native_attention
from lmc.runtime.local import LocalEngine, load_local_engine
from lmc.runtime.local.modules import fusion
from lmc.runtime.local.modules.rotary import RequestRotary, context_length
from tests.runtime.local.checkpoints import make_model, save_checkpoint
from tests.runtime.local.oracle import Agreement, sequence_logprobs

SWITCH = 64  # where frequencies change
SHORT, LONG = [1.0, 1.3, 1.7, 2.0], [2.0, 4.0, 7.0, 11.0]


def longrope(half: int) -> dict[str, Any]:
    return {
        "rope_type": "longrope",
        "rope_theta": 1e4,
        "short_factor": SHORT[:half],
        "long_factor": LONG[:half],
        "original_max_position_embeddings": SWITCH,
    }


SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "phi3-longrope": (
        "phi3",
        {"rope_parameters": {**longrope(2), "partial_rotary_factor": 0.5}, "original_max_position_embeddings": SWITCH},
    ),
    "llama-longrope": ("llama", {"rope_parameters": longrope(4)}),
    "qwen3-dynamic": (
        "qwen3",
        {
            "max_position_embeddings": SWITCH,
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 8.0},
        },
    ),
}


class Model(NamedTuple):
    folder: Path
    model: Any


class Job(NamedTuple):
    """A request; `max_tokens` decides its frequencies together with the prompt."""

    prompt: tuple[int, ...]
    max_tokens: int

    @property
    def rows(self) -> int:
        return len(self.prompt) + self.max_tokens - 1


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    root = tmp_path_factory.mktemp("rotary")
    models = {name: make_model(architecture, **overrides) for name, (architecture, overrides) in SETTINGS.items()}
    return {name: Model(save_checkpoint(root / name, model), model) for name, model in models.items()}


@pytest.fixture(params=SETTINGS)
def model(request: pytest.FixtureRequest, made: dict[str, Model]) -> Model:
    return made[request.param]


@pytest.fixture
def engine(model: Model) -> Iterator[LocalEngine]:
    with load_local_engine(model.folder, device="cpu", kv_tokens=4000) as engine:
        yield engine


def reference(model: Any, rows: int) -> Any:
    """A model of transformers that rotates every call with the frequencies of a request of `rows` rows."""
    config = copy.deepcopy(model.config)
    rope = config.rope_parameters
    if rope["rope_type"] == "longrope":
        factors = rope["long_factor"] if rows > SWITCH else rope["short_factor"]
        scaling = math.sqrt(1 + math.log(config.max_position_embeddings / SWITCH) / math.log(SWITCH))
        rope |= {"short_factor": factors, "long_factor": factors, "attention_factor": scaling}
        # No length is long now: at the switch Phi-3 drops its cache, in some versions half of the prompt with it.
        config.original_max_position_embeddings = rope["original_max_position_embeddings"] = 512
    else:
        size = config.head_dim
        stretch = (rope["factor"] * max(rows, SWITCH) / SWITCH - (rope["factor"] - 1)) ** (size / (size - 2))
        config.rope_parameters = {"rope_type": "default", "rope_theta": rope["rope_theta"] * stretch}
    fixed = type(model)._from_config(config, attn_implementation="eager").eval()
    fixed.load_state_dict(model.state_dict())
    return fixed


def jobs_of_all_lengths(count: int, seed: int) -> list[Job]:
    """Prompts with common beginnings whose requests lie below the switch, above it, and across it."""
    rng = random.Random(seed)
    stem = [rng.randrange(3, 250) for _ in range(150)]
    sizes = [(rng.randint(5, 40), 20), (rng.randint(70, 150), 20), (rng.randint(30, 60), 40)]
    chosen = [sizes[index % 3] for index in range(count)]
    return [Job((*stem[:length], rng.randrange(3, 250)), tokens) for length, tokens in chosen]


def run(engine: LocalEngine, jobs: list[Job]) -> list[Generation]:
    handles = [engine.submit(Request(job.prompt, SamplingParams(max_tokens=job.max_tokens))) for job in jobs]
    return [handle.future.result(timeout=60) for handle in handles]


def check(model: Any, jobs: list[Job], generations: list[Generation]) -> None:
    agreement = Agreement()
    for job, generation in zip(jobs, generations, strict=True):
        agreement.check(reference(model, job.rows), job.prompt, generation.token_ids, job.max_tokens)
    assert agreement.close_calls < len(jobs) / 4


def test_one_batch_of_all_lengths(engine: LocalEngine, model: Model) -> None:
    jobs = jobs_of_all_lengths(9, seed=1)
    random.Random(1).shuffle(jobs)
    check(model.model, jobs, run(engine, jobs))
    assert engine.statistics.cached_tokens > 0


@pytest.mark.parametrize("name", ["phi3-longrope", "llama-longrope"])
def test_longrope_wholly_below_and_above_is_as_transformers_generates(name: str, made: dict[str, Model]) -> None:
    jobs = [job for job in jobs_of_all_lengths(9, seed=2) if job.rows <= SWITCH or len(job.prompt) > SWITCH]
    with load_local_engine(made[name].folder, device="cpu", kv_tokens=4000) as engine:
        generations = run(engine, jobs)
    for job, generation in zip(jobs, generations, strict=True):
        Agreement().check(made[name].model, job.prompt, generation.token_ids, job.max_tokens)


def test_dynamic_is_as_transformers_where_that_has_one_length(made: dict[str, Model]) -> None:
    model = made["qwen3-dynamic"]
    short = [job for job in jobs_of_all_lengths(9, seed=3) if job.rows <= SWITCH]
    long = [Job(job.prompt, 1) for job in jobs_of_all_lengths(9, seed=3) if len(job.prompt) > SWITCH]
    with load_local_engine(model.folder, device="cpu", kv_tokens=4000) as engine:
        generations = run(engine, short + long)
    for job, generation in zip(short + long, generations, strict=True):
        fresh = type(model.model)(
            copy.deepcopy(model.model.config)
        ).eval()  # transformers keeps the longest length it has seen
        fresh.load_state_dict(model.model.state_dict())
        Agreement().check(fresh, job.prompt, generation.token_ids, job.max_tokens)


def test_without_compiled_kernels(model: Model, monkeypatch: pytest.MonkeyPatch, request) -> None:
    reason = f"no compiler for {request.node.name}"
    monkeypatch.setattr(fusion, "why_not", lambda: reason)
    monkeypatch.setattr(native_attention, "why_not", lambda: reason)
    jobs = jobs_of_all_lengths(6, seed=4)
    with pytest.warns(RuntimeWarning), load_local_engine(model.folder, device="cpu", kv_tokens=4000) as engine:
        check(model.model, jobs, run(engine, jobs))


def test_a_small_pool(model: Model) -> None:
    jobs = [Job(job.prompt, 60 if len(job.prompt) < SWITCH else 20) for job in jobs_of_all_lengths(15, seed=5)]
    jobs += [Job(job.prompt, 20) for job in jobs[::3]]
    with load_local_engine(model.folder, device="cpu", kv_tokens=180, prefill_tokens=32) as engine:
        check(model.model, jobs, run(engine, jobs))
        assert engine.statistics.evicted_tokens > 0
        assert engine.statistics.preemptions > 0


def test_without_a_prefix_cache(model: Model) -> None:
    jobs = jobs_of_all_lengths(6, seed=6)
    with load_local_engine(model.folder, device="cpu", kv_tokens=4000, prefix_cache=False) as engine:
        check(model.model, jobs, run(engine, jobs))
        assert engine.statistics.cached_tokens == 0


def test_pages_are_shared_within_one_set_of_frequencies_only(engine: LocalEngine) -> None:
    prompt = jobs_of_all_lengths(3, seed=7)[2].prompt
    assert 30 < len(prompt) < SWITCH
    below, across = Job(prompt, 2), Job(prompt, 2 * SWITCH)
    cached = [run(engine, [job])[0].cached_tokens for job in (below, across, below, across)]
    assert cached == [0, 0, len(prompt) - 1, len(prompt) - 1]


def test_a_held_prefix_serves_requests_of_its_frequencies_and_harms_no_other(engine: LocalEngine, model: Model) -> None:
    prompt = jobs_of_all_lengths(3, seed=8)[2].prompt
    pin = engine.prefill(prompt).future.result(timeout=60)
    jobs = [Job((*prompt, 9), 3), Job((*prompt, 9), 2 * SWITCH)]
    generations = run(engine, jobs)
    check(model.model, jobs, generations)
    assert [generation.cached_tokens for generation in generations] == [len(prompt), 0]
    engine.unpin(pin)


def test_scores_take_the_longest_continuation_for_all(engine: LocalEngine, model: Model) -> None:
    prompt = jobs_of_all_lengths(3, seed=9)[2].prompt[:50]
    for continuations in ([(5, 6), (7,)], [tuple(range(10, 40)), (7, 8)]):
        score = engine.score(ScoreRequest(prompt, tuple(continuations))).future.result(timeout=60)
        fixed = reference(model.model, len(prompt) + len(continuations[0]) - 1)
        for continuation, logprobs in zip(continuations, score.logprobs, strict=True):
            assert list(logprobs) == pytest.approx(sequence_logprobs(fixed, prompt, continuation), abs=1e-3)


def test_max_tokens_beyond_the_context_count_up_to_its_end(made: dict[str, Model]) -> None:
    with load_local_engine(made["qwen3-dynamic"].folder, device="cpu", kv_tokens=4000) as engine:
        assert engine.info.context_length == 8 * SWITCH
        prompt = jobs_of_all_lengths(2, seed=10)[1].prompt
        run(engine, [Job(prompt, 8 * SWITCH - len(prompt))])
        assert run(engine, [Job(prompt, 100_000)])[0].cached_tokens == len(prompt) - 1


def test_angles_are_those_of_transformers(model: Model) -> None:
    rotary = RequestRotary(model.model.config, torch.device("cpu"))
    states = torch.zeros(1, 6, 48)
    positions = torch.tensor([[0, 1, 63, 64, 99, 100]])
    for rows in (10, SWITCH, SWITCH + 1, 120):
        rotary.choose([rotary.frequency_length(rows)], [6])
        expected = reference(model.model, rows).model.rotary_emb(states, positions)
        for ours, theirs in zip(rotary(states, positions), expected, strict=True):
            assert torch.allclose(ours, theirs, atol=2e-5)


def test_lengths_that_share_frequencies(made: dict[str, Model]) -> None:
    of_longrope = RequestRotary(made["llama-longrope"].model.config, torch.device("cpu"))
    of_dynamic = RequestRotary(made["qwen3-dynamic"].model.config, torch.device("cpu"))
    lengths = (1, SWITCH, SWITCH + 1, 300)
    assert [of_longrope.frequency_length(rows) for rows in lengths] == [0, 0, SWITCH + 1, SWITCH + 1]
    assert [of_dynamic.frequency_length(rows) for rows in lengths] == [0, 0, SWITCH + 1, 300]


def test_the_context_of_a_stretched_model(made: dict[str, Model]) -> None:
    assert context_length(made["qwen3-dynamic"].model.config) == 8 * SWITCH
    assert context_length(made["phi3-longrope"].model.config) == 512
