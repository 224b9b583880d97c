import asyncio
import gc
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lmc.driver.options import Options
from lmc.driver.run.stream import Stream
from lmc.driver.runner import Runner
from lmc.driver.targets.service import Running
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import RequestCancelledError
from tests.driver import programs
from tests.runtime.engines import LateEngine


def runner(function: JittedFunction) -> Runner:
    return Runner(function, Options("toy"))


def test_a_closed_stream_has_a_result_that_says_so(late: LateEngine):
    late.stuck = {"judge/verdict"}
    with runner(programs.judge).stream((("x",), {})) as stream:
        next(stream)
    result = stream.result
    assert isinstance(result.error, RequestCancelledError)
    assert (result.value, result.text, result.profile.program) == (None, "", "judge")
    assert stream.result is result


def test_a_stream_that_is_left_behind_ends_its_run(late: LateEngine):
    """``for event in program.stream(…): break`` pays for nothing that follows."""
    late.stuck = {"judge/verdict"}
    running: list[Running[None]] = []
    for _ in remembered(runner(programs.judge).stream((("x",), {})), running):
        break
    with pytest.raises(RequestCancelledError):
        running[0].result(20.0)


def remembered(stream: Stream, running: list[Running[None]]) -> Stream:
    running.append(stream._running)
    return stream


def test_events_know_what_their_generation_continues():
    with runner(programs.breaks).stream(((), {"topic": "tree"})) as stream:
        events = list(stream)
        text = stream.result.text
    first = [event for event in events if event.op_id == events[0].op_id]
    contexts = {event.context.transcript() for event in first if event.context is not None}
    (before,) = contexts
    assert text.startswith(before + "".join(event.text for event in first))


def test_closing_a_stream_that_is_over_keeps_its_result():
    stream = runner(programs.breaks).stream(((), {"topic": "tree"}))
    value = stream.result.value
    stream.close()
    assert value
    assert stream.result.value == value
    assert stream.result.error is None


def test_who_iterates_while_another_thread_closes_gets_the_error(late: LateEngine):
    late.stuck = {"judge/verdict"}
    stream = runner(programs.judge).stream((("x",), {}))
    next(stream)
    running = stream._running
    threading.Timer(0.2, running.stop).start()
    with pytest.raises(RequestCancelledError, match="the run was cancelled"):
        list(stream)


def test_an_async_stream_that_is_closed_has_ended_its_run(late: LateEngine):
    late.stuck = {"judge/verdict"}
    said: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
        others = asyncio.all_tasks()
        events = aiter(runner(programs.judge).astream((("x",), {})))
        await anext(events)
        while "judge/verdict" not in late.order:
            await asyncio.sleep(0.002)
        await events.aclose()
        assert asyncio.all_tasks() == others
        with pytest.raises(StopAsyncIteration):
            await anext(events)

    asyncio.run(asyncio.wait_for(main(), 20))
    gc.collect()
    assert not said
    end = time.monotonic() + 5
    while late.pinned or not late.cancels:
        assert time.monotonic() < end
        time.sleep(0.002)


LEAVES = """
import asyncio, gc
from lmc.driver.targets.service import service
from lmc.ir.engine.target import Target
from tests.driver import programs
from tests.runtime.engines import LateEngine

late = LateEngine()
late.stuck = {"judge/verdict", "retries/answer"}
service().engines._engines[Target("toy")] = late

async def leave():
    async for _ in programs.judge.on("toy").astream("x"):
        break

async def leave_and_go_on():
    await leave()
    await asyncio.sleep(0.05)

async def fail():
    async for _ in programs.judge.on("toy").astream("x"):
        raise ValueError("seen")

async def time_out(program, argument):
    try:
        await asyncio.wait_for(program.on("toy").arun(argument), 0.5)
    except asyncio.TimeoutError:
        print("timeout")

for _ in range(5):
    asyncio.run(leave())
    asyncio.run(leave_and_go_on())
    try:
        asyncio.run(fail())
    except ValueError as error:
        print(error)
asyncio.run(time_out(programs.retries, "x"))
asyncio.run(time_out(programs.sleeps, 1.0))
gc.collect()
print(programs.SIDE_EFFECTS)
asyncio.run(leave())
"""


def test_leaving_runs_behind_says_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", LEAVES],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["seen"] * 5 + ["timeout"] * 2 + ["['tidied up']"]
    assert done.returncode == 0
