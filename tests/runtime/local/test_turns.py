"""Turns of instances at the admission of the engine."""

from typing import Any

from lmc.cache.fair_queue import QUANTUM, FairQueue
from lmc.ir.engine import Request, SamplingParams
from lmc.ir.planned import Place
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
