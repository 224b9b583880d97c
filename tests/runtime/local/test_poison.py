"""What a request computed that failed with NaN serves nobody else."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lmc.cache import InvariantError
from lmc.cache.sequence import Sequence
from lmc.ir.engine.protocol import Request, SamplingParams, ScoreRequest
from lmc.ir.errors import EngineError
from lmc.runtime.local import LocalEngine, load_local_engine
from tests.cache.test_scheduler import Simulation
from tests.runtime.local.checkpoints import SENTENCES, make_model, save_checkpoint
from tests.runtime.local.conftest import OpenEngine

POISON = 7
PREFIX = tuple(range(20, 40))
HEALTHY = (*PREFIX, 50)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with one token that is NaN."""
    model = make_model("llama", tie_word_embeddings=False)
    with torch.no_grad():
        model.model.embed_tokens.weight[POISON] = float("nan")
    return save_checkpoint(tmp_path_factory.mktemp("poisoned"), model)


def ask(engine: LocalEngine, prompt: tuple[int, ...]) -> Any:
    return engine.submit(Request(prompt, SamplingParams(max_tokens=4))).future.result(30)


def expected_of(folder: Path) -> tuple[int, ...]:
    """What the healthy prompt gives in an engine that saw nothing else."""
    with load_local_engine(folder, device="cpu", kv_tokens=1000) as engine:
        return ask(engine, HEALTHY).token_ids


@pytest.fixture(params=["native", "torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Compiled kernels, and those where there is no compiler."""
    if request.param == "torch":
        monkeypatch.setattr("lmc.runtime.local.modules.fusion.why_not", lambda: "no compiler")
        monkeypatch.setattr("lmc.runtime.kernels.native_attention.why_not", lambda: "no compiler")
        monkeypatch.setattr("lmc.runtime.local.modules.fusion.warnings.warn", lambda *_, **__: None)
    return request.param


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", ["generation", "score", "prefill"])
def test_a_failed_request_leaves_nothing_in_the_cache(kind: str, poisoned: Path) -> None:
    expected = expected_of(poisoned)
    with load_local_engine(poisoned, device="cpu", kv_tokens=1000) as engine:
        bad = (*PREFIX, POISON, 8)
        ways: dict[str, Callable[[], Any]] = {
            "generation": lambda: engine.submit(Request(bad, SamplingParams(max_tokens=4))),
            "score": lambda: engine.score(ScoreRequest(bad, ((5, 6, 7), (9,)))),
            "prefill": lambda: engine.prefill(bad),
        }
        with pytest.raises(EngineError, match="NaN logits"):
            ways[kind]().future.result(30)
        assert engine._worker._scheduler.memory.pool.used_count == 0
        found = ask(engine, HEALTHY)
        assert (found.cached_tokens, found.token_ids) == (0, expected)
        # What others had computed before stays.
        with pytest.raises(EngineError, match="NaN logits"):
            ask(engine, bad)
        found = ask(engine, HEALTHY)
        assert (found.cached_tokens, found.token_ids) == (len(PREFIX), expected)


def test_a_prompt_fails_with_the_step_that_is_no_number(poisoned: Path) -> None:
    with load_local_engine(poisoned, device="cpu", kv_tokens=1000, prefill_tokens=8) as engine:
        with pytest.raises(EngineError, match="NaN logits within the prompt, after its token 23") as caught:
            ask(engine, (*PREFIX, POISON, *PREFIX, *PREFIX))
        assert caught.value.remedy
        assert engine.statistics.prefilled_tokens == 24
        assert engine._worker._scheduler.memory.pool.used_count == 0


@pytest.mark.usefixtures("kernels")
def test_whoever_shares_the_step_with_what_fails_is_computed_again(poisoned: Path) -> None:
    expected = expected_of(poisoned)
    with load_local_engine(poisoned, device="cpu", kv_tokens=1000) as engine:
        forward, submitted = engine._worker._model.forward, threading.Event()

        def waits(slices: Any) -> Any:
            assert submitted.wait(30)
            return forward(slices)

        engine._worker._model.forward = waits
        first = engine.submit(Request((1, 2, 3), SamplingParams(max_tokens=2)))  # while it waits, the others gather
        bad: list[Any] = [
            engine.prefill((*PREFIX, POISON, 8)),
            engine.submit(Request((*PREFIX, POISON), SamplingParams())),
        ]
        good: list[Any] = [engine.submit(Request(HEALTHY, SamplingParams(max_tokens=4))) for _ in range(2)]
        held = engine.prefill(PREFIX)
        submitted.set()
        first.future.result(30)
        for handle in bad:
            with pytest.raises(EngineError, match="NaN logits"):
                handle.future.result(30)
        assert [handle.future.result(30).token_ids for handle in good] == [expected, expected]
        engine.unpin(held.future.result(30))
        assert engine.statistics.prefilled_tokens > 3 + len(PREFIX) + 2 + 4  # the prefix more than once


def test_running_requests_that_share_what_failed_are_computed_again(open_engine: OpenEngine) -> None:
    engine, other = open_engine(), open_engine()
    prompt = engine.tokenizer.encode(SENTENCES[0])
    sampling = SamplingParams(max_tokens=20, min_tokens=20, temperature=1.0)
    requests = [Request(prompt, sampling, seed) for seed in range(4)]
    expected = [other.submit(request).future.result(30).token_ids for request in requests]
    forward, submitted = engine._worker._model.forward, threading.Event()
    failing: list[Sequence] = []

    def fails_once(slices: Any) -> Any:
        assert submitted.wait(30)
        logits, owners = forward(slices)
        for owner in owners:
            if owner.rows.sequence in failing and owner.position == len(prompt) + 6:
                logits[owner.first : owner.last] = float("nan")
        return logits, owners

    engine._worker._model.forward = fails_once
    handles: list[Any] = [engine.submit(request) for request in requests]
    failing.append(handles[0]._task.sequence)
    submitted.set()
    with pytest.raises(EngineError, match="NaN logits for token 7"):
        handles[0].future.result(30)
    assert [handle.future.result(30).token_ids for handle in handles[1:]] == expected[1:]
    assert engine.statistics.prefilled_tokens > 2 * len(prompt)


def start(prompt: tuple[int, ...], simulation: Simulation) -> Sequence:
    return simulation.add(prompt, 3)


def test_whoever_runs_on_a_purged_branch_returns_to_the_queue_in_order() -> None:
    simulation = Simulation(200, 8, 10, 0)
    scheduler = simulation.scheduler
    bystander = start((0, 1), simulation)
    simulation.step()
    failing = start((1,) * 8 + (2,) * 4, simulation)
    simulation.step()
    sharers = [start((1,) * 8 + (0,) * count, simulation) for count in (1, 2)]
    simulation.step()
    assert [each.found for each in sharers] == [8, 9]
    assert scheduler.running == (bystander, failing, *sharers)
    scheduler.drop(failing)
    scheduler.purge(failing)
    simulation.memory.check_invariants(scheduler.running)
    assert scheduler.running == (bystander,)
    assert [each.node for each in sharers] == [None, None]
    assert simulation.memory.radix.match_prefix((1,) * 8, failing.cache_key).length == 0
    simulation.step()
    assert scheduler.running == (sharers[0],)
    assert sharers[0].found == 0
    simulation.run()
    assert simulation.finished == [bystander, *sharers]


def test_what_a_failed_request_found_stays_and_pins_on_the_rest_are_let_go() -> None:
    simulation = Simulation(200, 64, 10, 0)
    scheduler, memory = simulation.scheduler, simulation.memory
    good = Sequence((1,) * 6, capacity=6, first_wanted_row=6)
    scheduler.add(good)
    simulation.model.compute(scheduler.next_step())
    kept = scheduler.hold(good)
    failing = start((1,) * 6 + (2,) * 6, simulation)
    prefix = Sequence((1,) * 6 + (2,) * 3, capacity=9, first_wanted_row=9)
    scheduler.add(prefix)
    simulation.model.compute(scheduler.next_step())
    let_go = scheduler.hold(prefix)
    scheduler.drop(failing)
    assert memory.radix.pinned_tokens == 9
    scheduler.purge(failing)
    scheduler.purge(failing)  # nothing is left to remove
    assert (memory.radix.total_tokens, memory.radix.pinned_tokens) == (6, 6)
    memory.release_held(let_go)
    memory.release_held(kept)
    assert memory.radix.pinned_tokens == 0
    memory.check_invariants([])


def test_a_request_that_never_ran_has_nothing_to_purge() -> None:
    simulation = Simulation(200, 64, 10, 0)
    simulation.add((1, 2), 3)
    simulation.run()
    waiting = start((1, 2, 0), simulation)
    simulation.scheduler.drop(waiting)
    simulation.scheduler.purge(waiting)
    assert simulation.memory.radix.total_tokens > 0


def test_a_branch_in_use_is_not_forgotten() -> None:
    simulation = Simulation(200, 64, 10, 0)
    running = start((1, 2, 0), simulation)
    simulation.step()
    branch = simulation.memory.branch_of(running)
    assert branch is not None
    with pytest.raises(InvariantError, match="is pinned"):
        simulation.memory.forget(branch)
