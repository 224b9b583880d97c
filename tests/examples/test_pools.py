"""Every example gives the same whatever the pool holds: from one request to all, with the whole batch scheduled."""

import itertools
import os
from dataclasses import replace
from typing import Any

import pytest

from lmc.driver import Options, Runner, close_engine, engine_info
from lmc.ir.engine.protocol import Request, ScoreRequest
from lmc.runtime.local import LocalEngine
from tests.examples.cases import EXAMPLES
from tests.examples.test_examples import facts

pytestmark = pytest.mark.slow("every example at many sizes of the pool")

FULL = os.environ.get("LMC_TEST_FULL") == "1"
PLENTY = 8_000


def options(kv_tokens: int) -> Options:
    # Deterministic: what else runs at the same time, and what is cached, does not move a logit.
    return Options("builtin", kv_tokens=kv_tokens, deterministic=True)


def sizes(largest: int, everything: int, full: bool = FULL) -> list[int]:
    """Pools from one request to all that is ever asked for; with full counts those between too, each twice the last."""
    doubled = itertools.takewhile(lambda size: size < everything, (largest << power for power in itertools.count()))
    return [*itertools.islice(doubled, None if full else 1), everything]


def test_sizes_of_pools():
    for full in (False, True):
        assert sizes(30, 30, full) == [30]
    assert sizes(30, 200, full=False) == [30, 200]
    assert sizes(30, 200, full=True) == [30, 60, 120, 200]


@pytest.mark.parametrize("name", list(EXAMPLES) if FULL else list(EXAMPLES)[::2])
def test_outputs_are_those_of_the_unscheduled_run_at_every_size_of_the_pool(name: str, monkeypatch: pytest.MonkeyPatch):
    example = EXAMPLES[name]
    rows = [((), row) for row in (example.rows if FULL else example.rows[:2])]
    largest = everything = 0
    submit, score = LocalEngine.submit, LocalEngine.score

    def count(tokens: int) -> None:
        nonlocal largest, everything
        largest, everything = max(largest, tokens), everything + tokens

    def submit_measured(engine: LocalEngine, request: Request, *rest: Any) -> Any:
        count(len(request.prompt) + request.sampling.max_tokens)
        return submit(engine, request, *rest)

    def score_measured(engine: LocalEngine, request: ScoreRequest) -> Any:
        for continuation in request.continuations:
            count(len(request.prompt) + len(continuation))
        return score(engine, request)

    monkeypatch.setattr(LocalEngine, "submit", submit_measured)
    monkeypatch.setattr(LocalEngine, "score", score_measured)
    unscheduled = Runner(example.program, replace(options(PLENTY), level="O0", requests=1))
    expected = [facts(result) for result in unscheduled.batch(rows)]
    monkeypatch.undo()
    for size in sizes(largest, everything):
        room = options(size)
        results = Runner(example.program, room).batch(rows)
        assert [result.error for result in results] == [None] * len(rows)
        assert [facts(result) for result in results] == expected, f"a pool of {size} tokens"
        if size == everything:
            statistics = engine_info(room)["statistics"]
            assert (statistics["evicted_tokens"], statistics["preemptions"]) == (0, 0)
        close_engine(room)
