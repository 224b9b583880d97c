import time
from types import SimpleNamespace

import pytest

from lmc.ir.engine.protocol import Request, SamplingParams, ScoreRequest
from lmc.ir.errors import EngineError, RequestTimeoutError
from lmc.runtime.local.deadlines import Deadlines
from tests.runtime.local.checkpoints import SENTENCES
from tests.runtime.local.conftest import OpenEngine


def test_requests_expire_in_the_order_of_their_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=10.0)
    monkeypatch.setattr("lmc.runtime.local.deadlines.time", SimpleNamespace(monotonic=lambda: clock.now))
    deadlines = Deadlines[str]()
    deadlines.watch("late", start=10, timeout=9)
    deadlines.watch("early", start=10, timeout=1)
    deadlines.watch("ended", start=10, timeout=2)
    deadlines.forget("ended")
    deadlines.forget("never watched")
    assert list(deadlines.expired()) == []
    clock.now = 30.0
    assert list(deadlines.expired()) == [("early", 1), ("late", 9)]
    assert (len(deadlines), list(deadlines.expired())) == (0, [])


def test_ended_requests_do_not_pile_up() -> None:
    deadlines = Deadlines[int]()
    for number in range(10_000):
        deadlines.watch(number, start=time.monotonic(), timeout=3600)
        if number >= 10:
            deadlines.forget(number - 10)
    assert len(deadlines) == 10
    assert len(deadlines._heap) < 200


def test_a_request_out_of_time_fails_alone_and_gives_its_pages_back(open_engine: OpenEngine) -> None:
    engine = open_engine(kv_tokens=500)
    words = engine.tokenizer.encode(SENTENCES[0])
    endless = SamplingParams(max_tokens=400, min_tokens=400)
    hopeless = [
        engine.submit(Request(words, endless, timeout=0.02)),
        engine.submit(Request(words, endless, timeout=0.0)),
        engine.score(ScoreRequest(words, ((5, 6),), timeout=-1.0)),
    ]
    patient = engine.submit(Request(words, SamplingParams(max_tokens=9, min_tokens=9), timeout=float("inf")))
    for handle, seconds in zip(hopeless, ("0.02", "0", "-1"), strict=True):
        with pytest.raises(RequestTimeoutError, match=f"not finished within {seconds} seconds") as failure:
            handle.future.result(30)
        assert "longer timeout" in str(failure.value)
        usage = failure.value.usage
        assert usage is not None
        assert usage.calls == 1
        assert (usage.prompt_tokens == len(words)) == (usage.generated_tokens > 0)
    assert patient.future.result(30).generated_tokens == 9
    memory = engine._worker._scheduler.memory
    engine.close()
    assert memory.pool.used_count == memory.radix.total_tokens
    assert memory.radix.pinned_tokens == 0


def test_a_request_that_waits_for_room_runs_out_of_time_too(open_engine: OpenEngine) -> None:
    engine = open_engine(max_running=1)
    running = engine.submit(Request((5, 6, 7), SamplingParams(max_tokens=450, min_tokens=450)))
    waiting = engine.submit(Request((8, 9), SamplingParams(max_tokens=1), timeout=0.03))
    with pytest.raises(RequestTimeoutError):
        waiting.future.result(30)
    assert not running.future.done()
    running.cancel()


def test_a_timeout_that_is_no_number_is_refused(open_engine: OpenEngine) -> None:
    request = Request((5, 6), SamplingParams(), timeout=float("nan"))
    with pytest.raises(EngineError, match="timeout is nan"):
        open_engine().submit(request).future.result(30)
