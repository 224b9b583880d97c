"""Turns of instances at the admission of the engine."""

from concurrent.futures import Future
from typing import Any

from lmc.cache.fair_queue import MINIMUM, QUANTUM, FairQueue
from lmc.ir.engine.protocol import Place, Request, SamplingParams, Score, ScoreRequest
from tests.runtime.local.conftest import OpenEngine


def test_prefills_share_their_turn_with_no_instance(open_engine: OpenEngine) -> None:
    engine = open_engine()
    queue = FairQueue()
    tasks: list[Any] = [
        engine.prefill((5, 6)),
        *(engine.submit(Request((5,), SamplingParams(), instance=n)) for n in (-1, 0, 1)),
    ]
    sequences = [handle._task.sequences[0] for handle in tasks]
    for each in sequences:
        queue.add(each)
    assert len(queue._lanes) == 4


def test_the_engine_serves_a_late_instance_before_the_crowd_is_done(open_engine: OpenEngine) -> None:
    engine = open_engine(max_running=4)
    crowd = [
        engine.submit(Request((5, 6, number % 300), SamplingParams(max_tokens=60, min_tokens=60), instance=1))
        for number in range(300)
    ]
    late = engine.submit(Request((9, 8, 7), SamplingParams(max_tokens=2), instance=2))
    assert late.future.result(60).prompt_tokens == 3
    assert sum(handle.future.done() for handle in crowd) <= QUANTUM // 63 + 1 + 4
    for handle in crowd:
        handle.cancel()


def test_scores_of_a_cached_prompt_without_end_keep_nobody_waiting(open_engine: OpenEngine) -> None:
    """Each that ends is asked for again, up to a limit. None computes more than a row, and yet each counts."""
    engine = open_engine(max_running=4)
    prompt = tuple(range(5, 45))
    ended = 0
    late = Future[Score]()

    def ask() -> None:
        engine.score(ScoreRequest(prompt, ((7,), (8,)), instance=7)).future.add_done_callback(again)

    def again(_: object) -> None:
        nonlocal ended
        ended += 1
        if not late.done() and ended < 3000:
            ask()

    engine.score(ScoreRequest(prompt, ((7,),), instance=7)).future.result(60)
    for _ in range(20):
        ask()
    other = engine.score(ScoreRequest((9, 8, 7), ((7,), (8,)), instance=8))
    other.future.add_done_callback(lambda future: late.set_result(future.result()))
    assert late.result(60).prompt_tokens == 3
    assert ended <= QUANTUM // MINIMUM + 4 + 20


def test_a_prefill_takes_the_turn_and_the_priority_of_its_run(open_engine: OpenEngine) -> None:
    """One that is urgent goes before those that wait, whatever the others' ranks; each run has a lane of its own."""
    engine = open_engine(max_running=1)
    crowd = [
        engine.submit(Request((5, 6, number), SamplingParams(max_tokens=30, min_tokens=30), place=Place(1, number)))
        for number in range(30)
    ]
    pin = engine.prefill(tuple(range(20)), Place(2, 500), 3).future.result(60)
    assert pin.length == 20
    assert sum(handle.future.done() for handle in crowd) <= 2
    for handle in crowd:
        handle.cancel()
    other = engine.prefill((7, 8), Place(3, 0))
    assert other._task.sequences[0].lane == ("run", 3)  # type: ignore[attr-defined]
    of_client = engine.prefill((7, 8), Place(4, 0, lane=8))
    assert of_client._task.sequences[0].lane == 8  # type: ignore[attr-defined]
