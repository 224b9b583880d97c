import time

import pytest

from lmc.driver.cancelling import CancellableEngine
from lmc.ir.engine import Request, SamplingParams, ScoreRequest
from lmc.ir.errors import RequestCancelledError
from lmc.ir.toy import ToyEngine
from tests.runtime.engines import LateEngine

REQUEST = Request((1, 2), SamplingParams(max_tokens=2), op_id="f/a")
SCORE = ScoreRequest((1,), ((2,), (3,)), op_id="f/b")


def test_it_answers_as_the_engine_does():
    toy = ToyEngine()
    engine = CancellableEngine(toy)
    assert engine.submit(REQUEST).future.result() == toy.submit(REQUEST).future.result()
    assert engine.score(SCORE).future.result() == toy.score(SCORE).future.result()
    assert (engine.info, engine.tokenizer, engine.statistics) == (toy.info, toy.tokenizer, toy.statistics)


def test_cancelling_stops_what_runs_and_what_comes():
    late = LateEngine()
    late.stuck = {"f/a"}
    engine = CancellableEngine(late)
    running = engine.submit(REQUEST)
    done = engine.score(SCORE)
    done.future.result(5)
    engine.close()
    with pytest.raises(RequestCancelledError):
        running.future.result(5)
    with pytest.raises(RequestCancelledError, match="the run was cancelled"):
        engine.submit(REQUEST)
    with pytest.raises(RequestCancelledError):
        engine.score(SCORE)
    end = time.monotonic() + 5
    while engine._running:
        assert time.monotonic() < end
        time.sleep(0.002)
