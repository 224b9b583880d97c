import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from lmc.backend.lower import lower
from lmc.ir.engine.protocol import OnDelta, Request
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.runtime.executor import Executor, Finished, Instance, Limits, Resources
from lmc.runtime.in_flight import InFlight, Priority
from tests.runtime.engines import HeldEngine, HeldHandle
from tests.runtime.region_texts import INPUTS, LEAF, MAP, TEMPLATE, TOY, Step, executor, gen, module, run, stepwise


def test_elements_of_a_map_run_at_the_same_time():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2")
        step.engine.answer("m/a#2")
        step.engine.answer("m/a")
        await step.until("m/a#1", "m/b", "m/b#2")
        for op_id in ("m/b#2", "m/a#1", "m/b"):
            step.engine.answer(op_id)
        await step.until("m/b#1")
        step.engine.answer("m/b#1")

    assert stepwise(MAP, steps).value == interpret(module(MAP), INPUTS, ToyEngine()).value


def test_no_more_elements_are_begun_than_requests_may_be_under_way():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1")
        step.engine.answer("m/a#1")
        await step.until("m/a", "m/b#1")
        step.engine.answer("m/b#1")
        await step.until("m/a", "m/a#2")
        for op_id in ("m/a", "m/a#2"):
            step.engine.answer(op_id)
        await step.until("m/b", "m/b#2")
        for op_id in ("m/b", "m/b#2"):
            step.engine.answer(op_id)

    stepwise(MAP, steps, Limits(requests=2))


def test_of_requests_that_wait_the_earlier_element_comes_first():
    """Whichever of its calls that is: so an element finds its prefix in the cache."""
    body = MAP.replace("lm.return", gen("z") + "lm.return")

    async def steps(step: Step) -> None:
        await step.until("m/a")
        for op_id in ("m/a", "m/b", "m/a#1", "m/b#1", "m/a#2", "m/b#2", "m/z"):
            step.engine.answer(op_id)
            await asyncio.sleep(0.01)
            assert len(step.engine.waiting) == (op_id != "m/z")

    stepwise(body, steps, Limits(requests=1))


def test_the_place_in_the_queue_is_told_by_ranks_and_elements():
    priorities: list[Priority] = []

    class Recording(InFlight):
        def request(self, priority: Priority, start: Callable[[], bool]) -> None:
            priorities.append(priority)
            super().request(priority, start)

    body = f"""
    {gen("z")}
    cf.map (%xs) ^body(%i: !int, %x: !text) {{
      %three = py.call mul (%i, 3) : !int
      cf.cond %f ^then() {{
        cf.map (%xs) ^body(%j: !int, %y: !text) {{
          %k = py.call add (%three, %j) : !int
          {gen("in", occurrences="(%k)")}
          cf.yield {{}}
        }}
        cf.yield {{}}
      }} ^otherwise() {{ cf.yield {{}} }}
      cf.yield {{}}
    }}
    lm.return %s
    """
    engine = ToyEngine()
    resources = Resources(engine)
    resources.in_flight = Recording(8)
    run_batch = executor(body, engine).run_batch
    asyncio.run(run_batch([Instance(0, INPUTS)], [0], lambda *_: None, resources=resources, first_position=4))
    resources.close()
    # Position, ranks (those of a map with the element), number of the request.
    inner = [(4, 3, i, 1, 0, j, 1, 0) for i in range(3) for j in range(3)]
    assert sorted(priorities) == [(4, 2, 0), *inner]


def test_the_lowest_element_that_fails_is_the_maps_error():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2")
        step.engine.fail("m/a#1")
        await step.until("m/a")
        assert step.engine.cancelled == ["m/a#2"]
        step.engine.answer("m/a")
        await step.until("m/b")
        step.engine.fail("m/b")

    with pytest.raises(EngineError, match="m/b failed"):
        stepwise(MAP, steps)


def test_an_element_that_fails_stops_what_comes_after_the_map():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2", "m/z")
        step.engine.fail("m/a#2")
        await step.until("m/a", "m/a#1")
        assert step.engine.cancelled == ["m/z"]
        for op_id in ("m/a", "m/a#1"):
            step.engine.answer(op_id)
        await step.until("m/b", "m/b#1")
        for op_id in ("m/b", "m/b#1"):
            step.engine.answer(op_id)

    with pytest.raises(EngineError, match="m/a#2 failed"):
        stepwise(MAP.replace("lm.return", gen("z") + "lm.return"), steps)


def test_what_comes_before_a_map_that_fails_is_waited_for():
    async def steps(step: Step) -> None:
        await step.until("m/z", "m/a", "m/a#1", "m/a#2")
        step.engine.fail("m/a")
        await step.until("m/z")
        step.engine.fail("m/z")

    with pytest.raises(EngineError, match="m/z failed"):
        stepwise(gen("z") + MAP, steps)


def test_elements_of_a_map_that_writes_run_one_after_the_other():
    told: list[str] = []
    body = f"""
    cf.map (%xs) ^body(%i: !int, %x: !text) {{
      {gen("a", occurrences="(%i)")}
      %h = host.call @tell (%x) {{id = "m/@tell"}} : !any
      cf.yield {{}}
    }}
    lm.return %s
    """

    async def steps(step: Step) -> None:
        for number, op_id in enumerate(("m/a", "m/a#1", "m/a#2")):
            await step.until(op_id)
            assert told == INPUTS["xs"][:number]
            if number == 2:
                step.engine.fail(op_id)
            else:
                step.engine.answer(op_id)

    with pytest.raises(EngineError):
        stepwise(body, steps, tell=told.append)
    assert told == ["a", "b"]


def test_an_empty_map_gives_empty_lists():
    assert run(MAP, xs=[]).value == []


def test_a_map_of_many_elements_takes_linear_time():
    start = time.process_time()
    outcome = run(MAP, xs=["x"] * 3_000)
    assert outcome.usage.calls == 6_000
    assert time.process_time() - start < 10


def test_what_lists_raise_is_an_error_at_the_line_of_their_map():
    body = f"""
    %ys = py.call list ("a") : !list<!text>
    %ts = cf.map (%xs, %ys) {{strict = true}} : !list<!text> ^body(%i: !int, %x: !text, %y: !text) {{ cf.yield (%x) }}
      loc("m.py":9)
    lm.return %s (%ts) {LEAF}
    """
    with pytest.raises(ValueError, match="argument 2 is shorter") as caught:
        run(body)
    assert caught.value.__notes__ == ["in the program at m.py:9"]


RACE = f"""
%found, %best = cf.race (%xs) : !bool, !text ^body(%i: !int, %x: !text) {{
  {gen("a", occurrences="(%i)")}
  %good = py.call ge (%x, "WANTED") : !bool
  cf.yield (%good, %x)
}}
lm.return %s (%best) {LEAF}
"""


def test_a_race_is_won_by_the_lowest_good_element_not_by_the_fastest():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2")
        step.engine.answer("m/a#1")
        await step.until("m/a")
        assert step.engine.cancelled == ["m/a#2"]
        step.engine.answer("m/a")

    assert stepwise(RACE.replace("WANTED", "a"), steps).value == "a"
    assert stepwise(RACE.replace("WANTED", "b"), steps).value == "b"


def test_a_race_without_a_good_element_gives_the_last_one():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2")
        for op_id in ("m/a#2", "m/a", "m/a#1"):
            step.engine.answer(op_id)

    assert stepwise(RACE.replace("WANTED", "z").replace("(%best)", "(%found)"), steps).value is False
    assert stepwise(RACE.replace("WANTED", "z"), steps).value == "c"


def test_an_element_that_fails_loses_against_a_lower_good_one_only():
    async def steps(step: Step) -> None:
        await step.until("m/a", "m/a#1", "m/a#2")
        step.engine.fail("m/a#1")
        await step.until("m/a")
        assert step.engine.cancelled == ["m/a#2"]
        step.engine.answer("m/a")

    assert stepwise(RACE.replace("WANTED", "a"), steps).value == "a"
    with pytest.raises(EngineError, match="m/a#1 failed"):
        stepwise(RACE.replace("WANTED", "b"), steps)


class Heedless(HeldEngine):
    """Answers requests that were cancelled all the same."""

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> HeldHandle:
        return HeldHandle(super().submit(request, on_delta).future, lambda: None)


def test_answers_of_elements_that_lost_are_counted_as_long_as_the_run_lasts():
    body = f"""
    %found, %best = cf.race (%xs) : !bool, !text ^body(%i: !int, %x: !text) {{
      %ts = lm.sample %s (%i) {{id = "m/a*", max_tokens = 2, n = 2, temperature = 1.0}} : !list<!text>
      cf.yield (true, %x)
    }}
    %e = lm.extend %s [%best] : !ctx
    {gen("z", "e")}
    lm.return %z (%best) {LEAF}
    """

    async def steps(step: Step) -> None:
        await step.until(*["m/a", "m/a#1", "m/a#2"] * 2)
        for op_id in ("m/a#1", "m/a", "m/a"):  # one of two answers of the second element is there, then the first wins
            step.engine.answer(op_id)
        await step.until("m/a#1", "m/a#2", "m/a#2", "m/z")
        step.engine.answer("m/a#2")
        await asyncio.sleep(0.01)
        step.engine.answer("m/z")

    calls = {op_id: cost.usage.calls for op_id, cost in stepwise(body, steps, engine=Heedless()).profile.ops.items()}
    assert calls == {"m/a": 2, "m/a#1": 1, "m/a#2": 1, "m/z": 1}


def test_losers_of_races_that_hang_in_a_tool_hold_up_nobody():
    """Plain Python does not call the tool for them at all."""
    text = TEMPLATE.replace('@tell = "m:tell" sha256 "" writes', '@look = "m:look" sha256 "" reads').replace(
        "BODY",
        f"""
        %found, %best = cf.race (%xs) : !bool, !text ^body(%i: !int, %x: !text) {{
          %h = host.call @look (%x) {{declared = "reads", id = "m/@look"}} : !text
          %good = py.call eq (%h, "a") : !bool
          cf.yield (%good, %h)
        }}
        lm.return %s (%best) {LEAF}
        """,
    )
    never = threading.Event()

    def look(word: str) -> str:
        if word != "a":
            never.wait()
        return word

    found: dict[int, Finished] = {}
    running = Executor(ToyEngine(), lower(parse_verified(text), TOY), {"look": look}, Limits(host_threads=2))
    instances = [Instance(number, INPUTS) for number in range(6)]

    async def main() -> None:
        await asyncio.wait_for(running.run_batch(instances, range(6), found.__setitem__), 10)

    try:
        asyncio.run(main())
    finally:
        never.set()
    assert [end.outcome is not None and end.outcome.value for end in found.values()] == ["a"] * 6
