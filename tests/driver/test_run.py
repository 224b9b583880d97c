import asyncio
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lmc.driver.options import Options
from lmc.driver.run.execute import limits_of
from lmc.driver.runner import BatchInterruptedError, Runner
from lmc.driver.targets.service import service
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import CaptureError, EngineError, InputError, LmcError, RequestCancelledError
from lmc.ir.usage import Usage
from lmc.runtime.events import TokenEvent
from tests.driver import programs
from tests.runtime.engines import LateEngine

TOY = Options("toy")


def runner(function: JittedFunction, **options: Any) -> Runner:
    return Runner(function, Options("toy", **options))


def rows(*arguments: dict[str, Any]) -> list[Any]:
    return [((), row) for row in arguments]


def test_a_run_gives_value_variables_text_usage_and_profile():
    result = runner(programs.judge).run((("Birds fly.",), {}))
    oracle = runner(programs.judge).eager((("Birds fly.",), {}))
    assert (result.value, result.variables, result.text) == (oracle.value, oracle.variables, oracle.text)
    assert result.error is None
    assert result.usage.calls == oracle.usage.calls == 4
    assert result.usage.generated_tokens == oracle.usage.generated_tokens
    assert set(oracle.profile.ops) <= set(result.profile.ops)


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_every_level_gives_the_same(level: str, late: LateEngine):
    plain = runner(programs.judge).eager((("x",), {}))
    assert runner(programs.judge, level=level).run((("x",), {})).value == plain.value


def test_the_seed_decides_the_draws_and_nothing_else_does():
    one = runner(programs.judge, seed=1).run((("x",), {}))
    assert runner(programs.judge, seed=1).run((("x",), {})).text == one.text
    assert runner(programs.judge, seed=2).run((("x",), {})).text != one.text


def test_instances_of_a_batch_draw_apart_and_results_are_in_order(late: LateEngine):
    results = runner(programs.judge).batch(rows(*({"essay": "same"} for _ in range(5))))
    assert len({result.text for result in results}) == 5
    alone = runner(programs.judge).run((("same",), {}))
    assert results[0].text == alone.text


def test_a_break_goes_on_eagerly_and_effects_happen_once(late: LateEngine):
    arguments = ((), {"topic": "tree"})
    result = runner(programs.breaks).run(arguments)
    assert len(programs.SIDE_EFFECTS) == 1
    programs.SIDE_EFFECTS.clear()
    oracle = runner(programs.breaks).eager(arguments)
    assert len(programs.SIDE_EFFECTS) == 1
    assert (result.value, result.variables, result.text) == (oracle.value, oracle.variables, oracle.text)
    assert result.usage == oracle.usage
    assert result.usage.calls == 2


def test_failures_stay_in_their_own_results(late: LateEngine):
    good, bad = {"topic": "a"}, {"topic": "a", "limit": 13}
    results = runner(programs.breaks).batch(rows(good, bad, {"subject": "a"}, good))
    assert [result.error is None for result in results] == [True, False, False, True]
    assert isinstance(results[1].error, ValueError)
    assert results[1].usage.calls == 1
    assert isinstance(results[2].error, InputError)
    assert "missing a required argument: 'topic'" in str(results[2].error)
    assert results[2].usage == Usage()


def test_a_run_raises_what_went_wrong():
    with pytest.raises(ValueError, match="invalid literal") as caught:
        runner(programs.fails).run((("many",), {}))
    assert caught.value.__notes__[0].startswith("in the program at ")
    with pytest.raises(InputError, match="missing a required argument: 'number'"):
        runner(programs.fails).run(((), {}))
    with pytest.raises(CaptureError, match="max_tokens is 0"):
        runner(programs.wrong).run((("x",), {}))


def test_rows_of_several_variants_are_one_batch(late: LateEngine):
    questions = [["a"], ["b", "c"], ["d"], [], ["e", "f"]]
    results = runner(programs.turns).batch(rows(*({"questions": entry} for entry in questions)))
    assert [len(result.value) for result in results] == [1, 2, 1, 0, 2]
    late_alone = runner(programs.turns).batch(rows({"questions": ["a"]}))[0]
    assert results[0].value == late_alone.value


def test_an_empty_batch_is_refused():
    with pytest.raises(InputError, match="the batch is empty") as caught:
        runner(programs.judge).batch([])
    assert caught.value.remedy == "give at least one instance"
    with pytest.raises(InputError, match="the batch is empty"):
        asyncio.run(runner(programs.judge).abatch([]))


def test_results_come_as_they_are_finished():
    found = list(runner(programs.sleeps).iterate(rows({"seconds": 0.3}, {"seconds": 0.0})))
    assert [number for number, _ in found] == [1, 0]


def test_closing_the_iterator_cancels_the_rest(late: LateEngine):
    late.stuck = {"judge/verdict"}
    batch = rows({"essay": "x"}, {"essay": "y"}, {"wrong": 1})
    found = runner(programs.judge).iterate(batch)
    number, result = next(found)
    assert number == 2
    assert result.error is not None
    found.close()  # type: ignore[attr-defined]
    end = time.monotonic() + 5
    while late.pinned or (not late.cancels and late.order.count("judge/verdict")):
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_stream_tells_every_token_and_ends_with_the_result(late: LateEngine):
    expected = runner(programs.breaks).eager(((), {"topic": "tree"}))
    stream = runner(programs.breaks).stream(((), {"topic": "tree"}))
    events = list(stream)
    assert {event.branch for event in events} == {"breaks"}
    texts = {name: "".join(event.text for event in events if event.name == name) for name in ("first", "second")}
    assert texts == dict(expected.variables)
    assert stream.result.value == expected.value
    assert list(stream) == []


def test_a_stream_raises_the_runs_error_at_its_end():
    stream = runner(programs.fails).stream((("many",), {}))
    events: list[TokenEvent] = []
    with pytest.raises(ValueError, match="invalid literal"):
        events.extend(stream)
    assert isinstance(stream.result.error, ValueError)


def test_a_stream_that_is_left_cancels_its_run(late: LateEngine):
    late.stuck = {"judge/verdict"}
    with runner(programs.judge).stream((("x",), {})) as stream:
        next(stream)
    assert list(stream) == []
    end = time.monotonic() + 5
    while late.pinned:
        assert time.monotonic() < end
        time.sleep(0.002)


def test_the_async_forms_agree_with_the_others(late: LateEngine):
    run = runner(programs.breaks)
    expected = run.run(((), {"topic": "tree"}))

    async def main() -> None:
        assert (await run.arun(((), {"topic": "tree"}))).text == expected.text
        results = await run.abatch(rows({"topic": "tree"}, {"topic": "b", "limit": 13}))
        assert results[0].text == expected.text
        assert isinstance(results[1].error, ValueError)
        with pytest.raises(ValueError, match="thirteen"):
            await run.arun(((), {"topic": "b", "limit": 13}))
        stream = run.astream(((), {"topic": "tree"}))
        with pytest.raises(InputError, match="not at its end yet") as caught:
            _ = stream.result
        assert caught.value.remedy
        texts = [event.text async for event in stream if event.name == "first"]
        assert "".join(texts) == expected.variables["first"]
        assert stream.result.value == expected.value
        with pytest.raises(ValueError, match="thirteen"):
            async for _ in run.astream(((), {"topic": "b", "limit": 13})):
                pass

    asyncio.run(main())


def test_async_runs_leave_their_loop_free_and_can_be_cancelled(late: LateEngine):
    late.stuck = {"judge/verdict"}

    async def main() -> None:
        task = asyncio.ensure_future(runner(programs.judge).arun((("x",), {})))
        while "judge/verdict" not in late.order:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not late.cancels or late.pinned:
            await asyncio.sleep(0.002)

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_program_runs_inside_a_running_loop():
    async def cell() -> Any:
        return runner(programs.judge).run((("x",), {})).value

    assert asyncio.run(cell()) == runner(programs.judge).run((("x",), {})).value


def test_a_program_runs_inside_a_host_function_of_another():
    inner = runner(programs.judge)

    def ask(s: Any, topic: str) -> Any:
        return helper(topic)

    def helper(topic: str) -> str:
        return inner.run(((topic,), {})).value[0]

    ask.__globals__["helper"] = helper
    assert runner(JittedFunction(ask)).run((("x",), {})).value == inner.run((("x",), {})).value[0]


def test_a_callback_may_not_wait_for_another_run():
    async def inside() -> None:
        with pytest.raises(LmcError, match="from a callback of another program's run"):
            runner(programs.judge).run((("x",), {}))

    service().loop.start(inside()).result(5)


def test_many_threads_share_one_service():
    expected = runner(programs.judge).run((("x",), {})).text
    found: list[str] = []
    shared = runner(programs.judge)
    threads = [threading.Thread(target=lambda: found.append(shared.run((("x",), {})).text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_an_engine_that_fails_fails_the_instances_that_asked(late: LateEngine):
    late.failing = {"judge/verdict"}
    results = runner(programs.judge).batch(rows({"essay": "x"}, {"essay": "y"}))
    for result in results:
        assert isinstance(result.error, EngineError)
        assert programs.__file__ in str(result.error)


INTERRUPT = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have inherited to ignore it
from lmc.driver.runner import BatchInterruptedError
from lmc.driver.targets.service import service
from lmc.ir.engine.target import Target
from tests.driver.programs import sleeps

def watch():
    engine = service().engines.engine(Target("toy"))
    while engine.statistics.requests < 2:
        time.sleep(0.01)
    time.sleep(0.3)
    print("ready", flush=True)

threading.Thread(target=watch).start()
try:
    sleeps.on("toy").batch([{"seconds": 0.0}, {"seconds": 0.0}, {"seconds": 2.5}])
except BatchInterruptedError as stopped:
    print(stopped)
    print([result.error is None for result in stopped.results], type(stopped.results[2].error).__name__)
except KeyboardInterrupt:
    print("something else")
"""


def test_ctrl_c_in_a_batch_keeps_what_is_finished():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPT], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=30)
    assert said.splitlines() == [
        "2 of 3 instances finished; .results holds them",
        "[True, True, False] RequestCancelledError",
    ]


def test_an_interrupted_batch_is_a_keyboard_interrupt():
    assert issubclass(BatchInterruptedError, KeyboardInterrupt)
    assert not issubclass(RequestCancelledError, KeyboardInterrupt)


@pytest.mark.parametrize("priority", ["a", 1.0, 1001, True])
def test_a_priority_is_a_small_integer(priority: Any):
    with pytest.raises(InputError, match=f"priority is {priority!r}") as caught:
        programs.judge.on("toy", priority=priority)
    assert caught.value.location is not None


def test_a_priority_is_that_of_the_requests():
    runner = programs.judge.on("toy", priority=-2).on(seed=3)
    assert limits_of(runner.options).priority == -2


@pytest.mark.parametrize("timeout", ["a", 0, -1.0, float("nan"), True])
def test_a_timeout_is_a_number_of_seconds(timeout: Any):
    with pytest.raises(InputError, match=f"timeout is {timeout!r}") as caught:
        programs.judge.on("toy", timeout=timeout)
    assert caught.value.remedy == "give a number of seconds greater than 0"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("seed", ["a", 1.5, True])
def test_a_seed_is_an_integer(seed: Any):
    with pytest.raises(InputError, match=f"seed is {seed!r}") as caught:
        programs.judge.on("toy", seed=seed)("x")
    assert caught.value.remedy == "give an integer"
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
