"""Every example gives the same whatever the pool holds: from one request on, with the whole batch scheduled."""

import os
from typing import Any

import pytest

from lmc.driver import Options, Runner, Wish, close_engine
from lmc.ir.engine import Request, ScoreRequest
from lmc.runtime.local import LocalEngine
from tests.examples.cases import EXAMPLES
from tests.examples.test_examples import facts

FULL = os.environ.get("LMC_TEST_FULL") == "1"
PLENTY = 8_000
NAMES = [*EXAMPLES] if FULL else ["judge", "tree_of_thought", "multi_chain"]
TIMES = (1, 2, 6) if FULL else (1,)


def wish(kv_tokens: int) -> Wish:
    # Deterministic: what else runs at the same time, and what is cached, does not move a logit.
    return Wish("builtin", kv_tokens=kv_tokens, deterministic=True)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_those_of_the_unscheduled_run_at_every_size_of_the_pool(name: str, monkeypatch: pytest.MonkeyPatch):
    example = EXAMPLES[name]
    rows = [((), row) for row in (example.rows if FULL else example.rows[:2])]
    largest = 1
    submit, score = LocalEngine.submit, LocalEngine.score

    def submit_measured(engine: LocalEngine, request: Request, *rest: Any) -> Any:
        nonlocal largest
        largest = max(largest, len(request.prompt) + request.sampling.max_tokens)
        return submit(engine, request, *rest)

    def score_measured(engine: LocalEngine, request: ScoreRequest) -> Any:
        nonlocal largest
        largest = max(largest, len(request.prompt) + max(map(len, request.continuations)))
        return score(engine, request)

    monkeypatch.setattr(LocalEngine, "submit", submit_measured)
    monkeypatch.setattr(LocalEngine, "score", score_measured)
    unscheduled = Runner(example.program, Options(wish(PLENTY), level="O0", requests=1))
    expected = [facts(result) for result in unscheduled.batch(rows)]
    monkeypatch.undo()
    for times in TIMES:
        room = wish(times * largest)
        results = Runner(example.program, Options(room)).batch(rows)
        assert [result.error for result in results] == [None] * len(rows)
        assert [facts(result) for result in results] == expected, f"a pool for {times} requests"
        close_engine(room)
