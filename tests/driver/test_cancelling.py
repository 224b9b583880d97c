import time
from collections.abc import Callable

import pytest

from lmc.driver.targets.cancelling import CancellableEngine, ProgramCancelled, error_of
from lmc.ir.engine.protocol import OnDelta, Request, SamplingParams, ScoreRequest
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, LmcError, RequestCancelledError
from tests.runtime.engines import LateEngine, LateHandle

REQUEST = Request((1, 2), SamplingParams(max_tokens=2), op_id="f/a")
SCORE = ScoreRequest((1,), ((2,), (3,)), op_id="f/b")


class DeafEngine(ToyEngine):
    """Answers nothing, and takes no notice of being cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.handle = LateHandle()
        self.before_answering: Callable[[], None] = lambda: None

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> LateHandle:
        self.before_answering()
        return self.handle


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
    with pytest.raises(ProgramCancelled):
        running.future.result(5)
    for ask in (lambda: engine.submit(REQUEST), lambda: engine.score(SCORE)) * 2:
        with pytest.raises(ProgramCancelled):
            ask()
    assert not engine._running
    end = time.monotonic() + 5
    while not late.cancels:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_cancelling_does_not_wait_for_the_engine():
    deaf = DeafEngine()
    engine = CancellableEngine(deaf)
    running = engine.submit(REQUEST)
    engine.cancel()
    with pytest.raises(ProgramCancelled):
        running.future.result(0)
    deaf.handle.future.set_exception(RequestCancelledError("the request was cancelled"))
    with pytest.raises(ProgramCancelled):
        running.future.result(0)


def test_a_request_that_comes_while_it_is_cancelled_is_cancelled():
    deaf = DeafEngine()
    engine = CancellableEngine(deaf)
    deaf.before_answering = engine.cancel
    with pytest.raises(ProgramCancelled):
        engine.submit(REQUEST)
    assert deaf.handle.is_cancelled


def test_what_the_engine_says_itself_stays_as_it_is():
    late = LateEngine()
    late.failing = {"f/a"}
    engine = CancellableEngine(late)
    with pytest.raises(EngineError, match="f/a failed"):
        engine.submit(REQUEST).future.result(5)
    deaf = DeafEngine()
    handle = CancellableEngine(deaf).submit(REQUEST)
    deaf.handle.future.cancel()
    with pytest.raises(RequestCancelledError, match="the run was cancelled"):
        handle.future.result(5)


def test_no_except_exception_takes_it_and_callers_get_an_lmc_error():
    assert not issubclass(ProgramCancelled, Exception)
    with pytest.raises(ProgramCancelled) as caught:
        raise ProgramCancelled
    error = error_of(caught.value)
    assert isinstance(error, RequestCancelledError)
    assert isinstance(error, LmcError)
    assert error.__traceback__ is caught.value.__traceback__
    other = ValueError("no")
    assert error_of(other) is other
