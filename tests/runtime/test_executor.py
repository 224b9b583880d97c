import asyncio
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.lower import lower
from lmc.backend.schedule.schedule import schedule_batch
from lmc.ir.builder import Builder
from lmc.ir.dialects.core_ops import ContextOp, GenOp, ReturnOp
from lmc.ir.engine.protocol import DoneHandle, Engine, Generation, Handle, OnDelta, Request, Score, ScoreRequest
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, InputError, Location, RequestTimeoutError
from lmc.ir.module import Function, Module
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.text.parser import parse
from lmc.ir.types import CTX, TEXT
from lmc.ir.usage import Usage
from lmc.runtime.events import TokenEvent
from lmc.runtime.executor import Executor, Finished, Instance, Limits
from tests.backend.programs import JUDGE, TOOLS, plan_of
from tests.compiled_constraints import toy_constraints
from tests.ir.breaks import live_text
from tests.runtime.engines import CLOCK, HeldEngine, LateEngine, LateHandle
from tests.runtime.programs import programs

TOY = Target.parse("toy")


def run(executor: Executor, inputs: dict[str, Any], **options: Any) -> Outcome:
    return asyncio.run(executor.run(inputs, **options))


def run_batch(
    executor: Executor, rows: list[dict[str, Any]], order: list[int] | None = None, **options: Any
) -> dict[int, Finished]:
    found: dict[int, Finished] = {}
    instances = [Instance(number, inputs) for number, inputs in enumerate(rows)]
    places = order if order is not None else list(range(len(rows)))
    asyncio.run(executor.run_batch(instances, places, found.__setitem__, **options))
    return found


def hosts_with_log() -> tuple[dict[str, Callable[..., Any]], list[tuple[Any, ...]]]:
    log: list[tuple[Any, ...]] = []

    def called(name: str, effect: bool) -> Callable[..., Any]:
        def host(*args: Any) -> str:
            if effect:
                log.append((name, *args))
            return f"{name}{len(args)}"

        return host

    return {"log": called("log", True), "look": called("look", True), "pure": called("pure", False)}, log


def ends(call: Callable[[], Outcome]) -> tuple[Any, ...]:
    """Return what a run gave, or the type and first line of what it raised."""
    try:
        outcome = call()
    except Exception as error:
        return type(error), getattr(error, "cause", str(error))
    return outcome.value, outcome.variables, outcome.text, outcome.live


def same_as_interpreter(module: Module, engine: Engine) -> None:
    inputs = {"x": "some text", "number": "42"}
    hosts, log = hosts_with_log()
    constraints = toy_constraints(module)
    expected = ends(
        lambda: interpret(module, inputs, ToyEngine(), hosts=hosts, run_seed=5, instance=2, constraints=constraints)
    )
    expected_log = list(log)
    log.clear()
    executor = Executor(engine, lower(module, TOY), hosts, constraints=constraints)
    assert ends(lambda: run(executor, inputs, run_seed=5, instance=2)) == expected
    writes = [entry for entry in log if entry[0] == "log"]
    assert writes == [entry for entry in expected_log if entry[0] == "log"]
    assert engine.pinned == ()  # type: ignore[attr-defined]


@given(programs())
def test_the_executor_agrees_with_the_interpreter(module: Module):
    """Values, texts, errors and the effects done, on an engine that answers at once."""
    same_as_interpreter(module, ToyEngine())


@given(programs(), st.integers(0, 2**16))
def test_order_of_answers_changes_nothing(module: Module, seed: int):
    same_as_interpreter(module, LateEngine(seed=seed, most_seconds=0.002))


def test_independent_generations_run_at_the_same_time():
    engine = LateEngine(most_seconds=0.1)
    outcome = run(Executor(engine, plan_of(JUDGE), {}), {"essay": "Birds fly."})
    assert outcome.text == interpret(parse(JUDGE), {"essay": "Birds fly."}, ToyEngine()).text
    assert engine.most == 3
    assert engine.order[-1] == "judge/verdict"


def test_requests_in_flight_are_bounded():
    engine = LateEngine()
    found = run_batch(Executor(engine, plan_of(JUDGE), {}, Limits(requests=2)), [{"essay": "x"}] * 9)
    assert engine.most == 2
    assert [found[number].error for number in range(9)] == [None] * 9


class HurriedEngine(ToyEngine):
    """Knows the timeouts it was given; what has less than a second fails."""

    def __init__(self) -> None:
        super().__init__()
        self.timeouts: list[float | None] = []

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        self.timeouts.append(request.timeout)
        if request.timeout is not None and request.timeout < 1:
            return DoneHandle[Generation].failed(RequestTimeoutError("too late", remedy="wait"))
        return super().submit(request, on_delta)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        self.timeouts.append(request.timeout)
        return super().score(request)


@pytest.mark.parametrize("timeout", [None, 2.5])
def test_every_request_gets_the_timeout_of_the_limits(timeout: float | None):
    engine = HurriedEngine()
    outcome = run(Executor(engine, plan_of(JUDGE), {}, Limits(request_timeout=timeout)), {"essay": "x"})
    assert set(engine.timeouts) == {timeout}
    assert len(engine.timeouts) == outcome.usage.calls


def test_a_request_that_is_too_late_names_its_line():
    executor = Executor(HurriedEngine(), plan_of(JUDGE), {}, Limits(request_timeout=0.5))
    with pytest.raises(RequestTimeoutError, match=r"^judge.py:\d+: too late"):
        run(executor, {"essay": "x"})


def test_lower_waves_and_earlier_instances_come_first():
    text = """
    module @f {
      func @f(%x: !text) {
        %0 = lm.context : !ctx
        %1 = lm.extend %0 [%x] : !ctx
        %2, %a = lm.gen %1 {id = "f/late", max_tokens = 1, wave = 1} : !ctx, !text
        %3, %b = lm.gen %1 {id = "f/one", group = "g", max_tokens = 1, wave = 0} : !ctx, !text
        %4, %c = lm.gen %1 {id = "f/other", max_tokens = 1, wave = 0} : !ctx, !text
        %5, %d = lm.gen %1 {id = "f/two", group = "g", max_tokens = 1, wave = 0} : !ctx, !text
        lm.return %1 (%a, %b, %c, %d)
      }
    }
    """
    engine = HeldEngine()
    order: list[str] = []

    async def one_by_one() -> None:
        """Answer the request that is under way once nothing else happens, until the run is over."""
        executed = asyncio.ensure_future(Executor(engine, plan_of(text), {}, Limits(requests=1)).run({"x": ""}))
        while not executed.done():
            if engine.waiting:
                (op_id,) = engine.waiting
                order.append(op_id)
                engine.answer(op_id)
            await asyncio.sleep(0)
        await executed

    asyncio.run(asyncio.wait_for(one_by_one(), 10))
    # The first found the engine free; of those that had to wait the group comes first, then the rest of its wave.
    assert order == ["f/late", "f/one", "f/two", "f/other"]


def test_a_batch_gives_what_single_runs_give():
    essays = [f"Essay {number % 3} about birds" for number in range(7)]
    rows = [{"essay": essay} for essay in essays]
    plan = plan_of(JUDGE)
    order = list(schedule_batch(plan, rows).order)
    assert order != sorted(order)
    found = run_batch(Executor(LateEngine(), plan, {}), rows, order, run_seed=9)
    for number, row in enumerate(rows):
        alone = interpret(parse(JUDGE), row, ToyEngine(), run_seed=9, instance=number)
        outcome = found[number].outcome
        assert outcome is not None
        assert (outcome.value, outcome.text) == (alone.value, alone.text)


def test_a_schedule_for_another_batch_is_refused():
    with pytest.raises(InputError, match="the schedule does not fit the batch") as caught:
        run_batch(Executor(ToyEngine(), plan_of(JUDGE), {}), [{"essay": "x"}], [0, 0])
    assert caught.value.remedy


def test_one_failing_instance_does_not_sink_its_batch():
    plan = plan_of(TOOLS)
    hosts, _ = hosts_with_log()
    rows: list[dict[str, Any]] = [{"item.title": "t", "count": count, "numbers": []} for count in (3, 4, 3)]
    found = run_batch(Executor(LateEngine(), plan, hosts), [*rows, {"item.title": "t"}])
    assert found[0].error is None
    assert found[2].error is None
    assert isinstance(found[1].error, InputError)
    assert "compiled for 3 here, but the input gives 4" in str(found[1].error)
    assert "tools.py:4" in str(found[1].error)
    assert isinstance(found[3].error, InputError)
    assert "missing ['count', 'numbers']" in str(found[3].error)


def test_a_users_exception_comes_back_as_it_is_with_its_line():
    class OddError(Exception):
        pass

    def log(*_: Any) -> None:
        raise OddError("disk full")

    plan = plan_of(TOOLS)
    with pytest.raises(OddError, match="disk full") as caught:
        run(Executor(ToyEngine(), plan, {"log": log}), {"item.title": "t", "count": 3, "numbers": []})
    assert caught.value.__notes__ == ["in the program at tools.py:6"]


@pytest.mark.parametrize("kind", [StopIteration, SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_a_host_function_raises_stays_its_instances(kind: type[BaseException]):
    raised = kind()

    def log(*_: Any) -> None:
        raise raised

    found = run_batch(
        Executor(ToyEngine(), plan_of(TOOLS), {"log": log}), [{"item.title": "t", "count": 3, "numbers": []}] * 2
    )
    assert [found[number].error for number in range(2)] == [raised, raised]
    assert raised.__notes__ == ["in the program at tools.py:6"]


def test_an_error_of_lmc_from_a_host_function_gets_its_line_unless_it_names_one():
    for location, expected in ((None, "tools.py:6"), (Location("tool.py", 1), "tool.py:1")):
        raised = InputError("no such row", remedy="add it", location=location)

        def log(*_: Any, raised: InputError = raised) -> None:
            raise raised

        with pytest.raises(InputError, match=f"^{expected}: no such row"):
            run(Executor(ToyEngine(), plan_of(TOOLS), {"log": log}), {"item.title": "t", "count": 3, "numbers": []})


def test_a_missing_host_function_is_named_with_its_line():
    with pytest.raises(InputError, match=r"tools\.py:6: the host function @log is not there"):
        run(Executor(ToyEngine(), plan_of(TOOLS), {}), {"item.title": "t", "count": 3, "numbers": []})


def test_the_first_failure_in_program_order_is_the_one_reported():
    engine = LateEngine(most_seconds=0.05)
    engine.failing = {"judge/on_topic", "judge/fork/1/j"}
    for _ in range(5):
        with pytest.raises(EngineError, match="judge/on_topic failed") as caught:
            run(Executor(engine, plan_of(JUDGE), {}), {"essay": "x"})
        assert str(caught.value).startswith("judge.py:9: ")


class FailsLast(LateEngine):
    """Requests in `failing` fail once all in `stuck` are submitted. Each cancelled one releases `ended`."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = threading.Semaphore(0)

    def _answer(self, handle: LateHandle, op_id: str, answer: Callable[[], Any]) -> None:
        if op_id in self.failing and not self.stuck <= {*self.order}:
            CLOCK.call_at(time.monotonic() + 0.001, partial(self._answer, handle, op_id, answer), random.Random(0))
            return
        if op_id in self.stuck and handle.is_cancelled:
            self.ended.release()
        super()._answer(handle, op_id, answer)


def test_a_failure_cancels_what_comes_after_it():
    engine = FailsLast()
    engine.failing = {"judge/on_topic"}
    engine.stuck = {"judge/fork/0/j", "judge/fork/1/j"}
    with pytest.raises(EngineError, match="judge/on_topic failed"):
        run(Executor(engine, plan_of(JUDGE), {}), {"essay": "x"})
    assert all(engine.ended.acquire(timeout=60) for _ in engine.stuck)


def test_what_a_failed_instance_cost_is_known():
    engine = LateEngine()
    engine.failing = {"judge/verdict"}
    found = run_batch(Executor(engine, plan_of(JUDGE), {}), [{"essay": "x"}])
    assert found[0].error is not None
    assert found[0].profile.usage.calls == 3


def test_cancelling_cancels_requests_and_keeps_what_is_finished():
    engine = LateEngine()
    engine.stuck = {"judge/verdict"}
    found: dict[int, Finished] = {}

    async def main() -> None:
        executor = Executor(engine, plan_of(JUDGE), {}, Limits(requests=4))
        task = asyncio.ensure_future(
            executor.run_batch([Instance(n, {"essay": "x"}) for n in range(6)], range(6), found.__setitem__)
        )
        while engine.order.count("judge/verdict") < 2:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert found == {}
    wait_until(lambda: len(engine.cancels) >= 2)
    wait_until(lambda: engine.pinned == ())


def test_a_batch_that_answers_at_once_can_be_cancelled():
    """An engine that never lets the loop wait must not make a batch deaf."""
    found: dict[int, Finished] = {}

    async def main() -> None:
        executor = Executor(ToyEngine(), plan_of(JUDGE), {})
        instances = [Instance(n, {"essay": "x"}) for n in range(5000)]
        task = asyncio.ensure_future(executor.run_batch(instances, range(5000), found.__setitem__))
        while not found:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert 0 < len(found) < 5000


def test_a_prefix_of_the_batch_is_computed_once_and_pinned_to_its_end():
    engine = LateEngine()
    plan = plan_of(JUDGE)
    found = run_batch(Executor(engine, plan, {}), [{"essay": f"Essay {n}"} for n in range(5)])
    assert engine.tokenizer.decode(engine.prefills[0]).endswith("You grade essays.<|im_end|>")
    assert engine.prefills.count(engine.prefills[0]) == 1
    assert len(engine.prefills) == 1 + 5
    assert engine.pinned == ()
    costs = [found[number].profile.ops.get("judge/prefill#0") for number in range(5)]
    assert costs[0] is not None
    assert costs[0].usage == Usage()
    assert costs[0].seconds > 0
    assert costs[1:] == [None] * 4


@pytest.mark.parametrize(("instances", "ahead"), [(1, 0), (2, 1)])
def test_an_instance_that_is_alone_computes_no_prefix_of_the_batch_ahead(instances: int, ahead: int):
    """It would wait for a step of the engine, and share it with no other."""
    engine = LateEngine()
    run_batch(Executor(engine, plan_of(JUDGE), {}), [{"essay": f"Essay {n}"} for n in range(instances)])
    assert len(engine.prefills) == ahead + instances


AHEAD = """
module @f {
  host @look_up = "m:look_up" sha256 "0000000000000000000000000000000000000000000000000000000000000000" reads
  func @f(%question: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0, system ["Answer with facts from the look-up only, in one sentence."] : !ctx
    %2 = lm.prefill %1 {ahead = true, scope = "batch"} : !ctx
    %fact = host.call @look_up (%question) {declared = "reads", id = "f/@look_up"} : !text
    %3 = lm.extend %2, user [%fact] : !ctx
    %4, %a = lm.gen %3 {id = "f/a"} : !ctx, !text
    lm.return %4 (%a)
  }
}
"""


@pytest.mark.parametrize("instances", [1, 2])
def test_a_prefix_ahead_of_a_host_function_is_computed_while_it_runs(instances: int):
    engine = LateEngine()

    def look_up(_question: str) -> str:
        end = time.monotonic() + 60
        while not engine.prefills:
            assert time.monotonic() < end
            time.sleep(0.001)
        return "Birds fly."

    found = run_batch(Executor(engine, plan_of(AHEAD), {"look_up": look_up}), [{"question": "x"}] * instances)
    assert all(found[number].error is None for number in range(instances))
    assert len(engine.prefills) == 1


def test_usage_counts_the_prompts_of_calls_and_no_work_ahead_of_them():
    engine = LateEngine()
    found = run(Executor(engine, plan_of(JUDGE), {}), {"essay": "Birds fly."})
    plain = interpret(parse(JUDGE), {"essay": "Birds fly."}, ToyEngine())
    assert engine.prefills
    assert found.usage == plain.usage
    assert found.usage.prompt_tokens == engine.statistics.prompt_tokens


def test_a_generation_that_fills_the_context_ends_there_in_interpreter_and_executor():
    text = """
    module @f {
      func @f(%x: !text) {
        %0 = lm.context : !ctx
        %1 = lm.extend %0 [%x] : !ctx
        %2, %a, %m = lm.gen %1 {id = "f/a", logprobs = 0, max_tokens = 99, min_tokens = 3} : !ctx, !text, !any
        lm.return %1 (%a, %m) {structure = "{\\"list\\":[{\\"leaf\\":0},{\\"leaf\\":1}]}"}
      }
    }
    """
    expected = interpret(parse(text), {"x": "Birds"}, ToyEngine(context_length=8))
    found = run(Executor(ToyEngine(context_length=8), plan_of(text), {}), {"x": "Birds"})
    assert found.value == expected.value
    assert (found.value[1]["finish_reason"], len(found.value[1]["token_ids"])) == ("length", 3)
    assert found.profile.ops["f/a"].finish_reasons == expected.profile.ops["f/a"].finish_reasons == (("length", 1),)


def test_an_instances_prefix_is_let_go_after_its_last_use():
    """The verdict does not build on the pinned essay's branches: by then their prefix is free."""
    held: list[int] = []

    class Watching(ToyEngine):
        def submit(self, request: Any, on_delta: Any = None) -> Any:
            held.append(len(self.pinned))
            return super().submit(request, on_delta)

    text = """
    module @f {
      func @f(%x: !text) {
        %0 = lm.context : !ctx
        %1 = lm.extend %0, user [%x] : !ctx
        %2 = lm.prefill %1 : !ctx
        %3 = lm.extend %2, user ["inner"] : !ctx
        %4 = lm.prefill %3 : !ctx
        %5, %a = lm.gen %4 {id = "f/a", max_tokens = 1} : !ctx, !text
        %6, %b = lm.gen %2 {id = "f/b", max_tokens = 1} : !ctx, !text
        %7 = lm.extend %0, user [%a, %b] : !ctx
        %8, %c = lm.gen %7 {id = "f/c", max_tokens = 1} : !ctx, !text
        lm.return %8 (%c)
      }
    }
    """
    run(Executor(Watching(), plan_of(text), {}), {"x": "y"})
    assert held == [2, 1, 0]


def test_no_more_than_half_of_the_pool_is_pinned():
    engine = LateEngine(kv_tokens=300)
    found = run_batch(Executor(engine, plan_of(JUDGE), {}), [{"essay": "w" * 40}] * 8)
    assert [found[number].error for number in range(8)] == [None] * 8
    assert 0 < engine.most_pinned <= 150


def test_a_prefill_that_fails_stops_nothing():
    engine = LateEngine()
    engine.failing = {"prefill"}
    outcome = run(Executor(engine, plan_of(JUDGE), {}), {"essay": "x"})
    assert outcome.text == interpret(parse(JUDGE), {"essay": "x"}, ToyEngine()).text
    assert "judge/prefill#0" not in outcome.profile.ops


def test_events_tell_every_branch():
    events: list[TokenEvent] = []
    outcome = run(Executor(LateEngine(), plan_of(JUDGE), {}), {"essay": "x"}, on_event=events.append, instance=4)
    texts: dict[str, str] = {}
    for event in events:
        assert event.instance == 4
        texts[event.op_id] = texts.get(event.op_id, "") + event.text
    branches = {event.op_id: event.branch for event in events}
    assert branches["judge/fork/1/j"] == "judge/fork/1"
    assert branches["judge/verdict"] == "judge"
    assert (texts["judge/verdict"], texts["judge/on_topic"]) == outcome.value
    assert {event.name for event in events} == {"on_topic", "j", "verdict"}


def test_samples_are_told_apart():
    events: list[TokenEvent] = []
    hosts, _ = hosts_with_log()
    inputs = {"item.title": "t", "count": 3, "numbers": []}
    run(Executor(ToyEngine(), plan_of(TOOLS), hosts), inputs, on_event=events.append)
    assert {event.sample for event in events if event.op_id == "tools/s"} == {0, 1}


def test_host_functions_of_a_batch_run_in_a_bounded_number_of_threads():
    running = threading.Semaphore(3)
    names: set[str] = set()

    def log(*_: Any) -> None:
        assert running.acquire(blocking=False)
        names.add(threading.current_thread().name)
        time.sleep(0.002)
        running.release()

    executor = Executor(ToyEngine(), plan_of(TOOLS), {"log": log, "look": log}, Limits(host_threads=3))
    found = run_batch(executor, [{"item.title": "t", "count": 3, "numbers": []}] * 6)
    assert [found[number].error for number in range(6)] == [None] * 6
    assert len(names) == 3
    assert all(name.startswith("lmc-host") for name in names)


def test_a_break_gives_what_is_live():
    text = f"""
    module @f {{
      func @f(%x: !text) {{
        %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {{id = "f/a", max_tokens = 2}} : !ctx, !text
        {live_text(["1", "a", "x"])}
      }}
    }}
    """
    expected = interpret(parse(text), {"x": "y"}, ToyEngine())
    outcome = run(Executor(ToyEngine(), plan_of(text), {}), {"x": "y"})
    assert outcome.live == expected.live
    assert outcome.live is not None
    context, said, given = outcome.live.values
    assert (context.transcript(), given) == (said, "y")


def test_ten_thousand_generations_cost_little_each():
    count = 10_000
    builder = Builder()
    (context,) = builder.emit(ContextOp, [CTX])
    for number in range(count):
        builder.emit(GenOp, [CTX, TEXT], context=context, id=f"f/g{number}", max_tokens=1)
    builder.emit(ReturnOp, context=context)
    plan = lower(Module("f", (Function("f", builder.block()),)), TOY)
    start = time.process_time()
    outcome = run(Executor(ToyEngine(), plan, {}), {})
    assert outcome.usage.calls == count
    assert time.process_time() - start < 10


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.002)


class AskedEngine(LateEngine):
    """Keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def submit(self, request: Any, on_delta: Any = None) -> Any:
        self.asked.append(request)
        return super().submit(request, on_delta)

    def score(self, request: Any) -> Any:
        self.asked.append(request)
        return super().score(request)


def test_requests_say_their_place_their_priority_and_how_long_they_will_be():
    """In blocks of two, both instances' first requests come before their second ones; loops stay where they are."""
    text = """
    module @f {
      func @f(%x: !text) {
        %0 = lm.context : !ctx
        %1 = lm.extend %0 [%x] : !ctx
        %2, %a = lm.gen %1 {expected_tokens = 2, id = "f/a", max_tokens = 4} : !ctx, !text
        %3 = lm.extend %2 ["!"] : !ctx
        %4, %b, %s = lm.select %3 ["yes", "no"] {id = "f/b"} : !ctx, !text, !any
        lm.return %4 (%b)
      }
    }
    """
    found: dict[int, list[tuple[str, int, int, int | None]]] = {}
    for block in (1, 2):
        engine = AskedEngine()
        asked = engine.asked
        rows = [{"x": "p"}, {"x": "q"}]
        run_batch(Executor(engine, plan_of(text), {}, Limits(priority=3)), rows, block=block)
        assert len({request.place.run for request in asked}) == 1
        found[block] = sorted(
            (request.op_id, request.instance, request.place.rank, getattr(request, "expected_tokens", None))
            for request in asked
        )
        assert {request.priority for request in asked} == {3}
    assert found[1] == [("f/a", 0, 0, 2), ("f/a", 1, 2, 2), ("f/b", 0, 1, None), ("f/b", 1, 3, None)]
    assert found[2] == [("f/a", 0, 0, 2), ("f/a", 1, 1, 2), ("f/b", 0, 2, None), ("f/b", 1, 3, None)]
