import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from lmc.driver.batch import windows
from lmc.driver.batch.lazy_batch import LazyRows
from lmc.driver.options import Options
from lmc.driver.run.result import Result
from lmc.driver.runner import BatchInterruptedError, Runner
from lmc.frontend.program.function import JittedFunction
from lmc.ir.errors import InputError, RequestCancelledError
from tests.driver import programs
from tests.runtime.engines import LateEngine

Batch = Callable[[Runner, Any], list[Result]]


def runner(function: JittedFunction, target: str = "toy") -> Runner:
    return Runner(function, Options(target))


def essays(count: int) -> Iterator[Any]:
    return (((), {"essay": f"essay {number}"}) for number in range(count))


def blocking(run: Runner, rows: Any) -> list[Result]:
    return run.batch(rows)


def in_a_loop(run: Runner, rows: Any) -> list[Result]:
    return asyncio.run(run.abatch(rows))


both = pytest.mark.parametrize("batch", [blocking, in_a_loop])


def wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW", 8)
    monkeypatch.setattr(windows, "START_BELOW", 4)


@both
def test_a_generator_gives_what_a_list_gives(batch: Batch, late: LateEngine):
    found = batch(runner(programs.judge), essays(50))
    whole = batch(runner(programs.judge), list(essays(50)))
    assert [result.value for result in found] == [result.value for result in whole]
    assert len({result.value for result in found}) > 40


@both
def test_rows_may_wait_for_results_of_those_before(batch: Batch):
    def is_done(count: int) -> bool:
        return len(programs.SIDE_EFFECTS) == count

    def rows() -> Iterator[Any]:
        for number in range(3):
            yield (), {"topic": f"topic {number}"}
            wait_until(partial(is_done, number + 1))

    assert [result.error for result in batch(runner(programs.breaks), rows())] == [None] * 3


@both
def test_few_rows_are_read_before_they_are_needed(batch: Batch):
    ahead: list[int] = []

    def rows() -> Iterator[Any]:
        for number in range(200):
            ahead.append(number - len(programs.SIDE_EFFECTS))
            yield (), {"topic": f"topic {number}"}

    assert len(batch(runner(programs.breaks), rows())) == 200
    assert max(ahead) <= 2 * 8 + 4


@both
def test_rows_are_read_in_the_thread_that_has_them(batch: Batch):
    threads: set[int] = set()

    def rows() -> Iterator[Any]:
        for row in essays(20):
            threads.add(threading.get_ident())
            yield row

    assert len(batch(runner(programs.judge), rows())) == 20
    assert threads == {threading.get_ident()}


@both
def test_what_reading_raises_stops_those_that_run(batch: Batch, late: LateEngine):
    late.stuck = {"judge/verdict"}

    def rows() -> Iterator[Any]:
        yield from essays(3)
        wait_until(lambda: late.order.count("judge/verdict") == 3)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        batch(runner(programs.judge), rows())
    wait_until(lambda: late.cancels.count("judge/verdict") == 3)


@both
def test_faults_of_rows_stay_in_theirs(batch: Batch):
    wrong = InputError("no good")
    rows: LazyRows = iter([*essays(1), wrong, ((), {"text": "x"}), *essays(1)])
    results = batch(runner(programs.judge), rows)
    assert results[1].error is wrong
    assert isinstance(results[2].error, InputError)
    assert [results[number].error for number in (0, 3)] == [None, None]


@both
def test_no_rows_are_refused(batch: Batch):
    with pytest.raises(InputError, match="the batch is empty") as caught:
        batch(runner(programs.judge), iter([]))
    assert caught.value.remedy == "give at least one instance"


@both
def test_what_no_row_is_to_blame_for_is_raised_without_reading_on(batch: Batch):
    endless = (((), {"essay": f"essay {number}"}) for number in itertools.count())
    with pytest.raises(InputError, match="there is no model folder"):
        batch(runner(programs.judge, "local:/nowhere"), endless)


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """A process in the background may have inherited to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_keeps_what_is_finished(late: LateEngine):
    late.stuck = {"judge/verdict"}

    def rows() -> Iterator[Any]:
        yield from essays(2)
        yield (), {"text": "x"}
        wait_until(lambda: late.order.count("judge/verdict") == 2)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(BatchInterruptedError, match="0 of 3 instances") as caught:
        runner(programs.judge).batch(rows())
    errors = [type(result.error) for result in caught.value.results]
    assert errors == [RequestCancelledError, RequestCancelledError, InputError]
    wait_until(lambda: late.cancels.count("judge/verdict") == 2)


def test_a_cancelled_batch_is_over(late: LateEngine):
    late.stuck = {"judge/verdict"}

    async def main() -> None:
        task = asyncio.ensure_future(runner(programs.judge).abatch(essays(100)))
        while late.order.count("judge/verdict") < 3:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        begun = late.order.count("judge/verdict")
        wait_until(lambda: late.cancels.count("judge/verdict") == begun)

    asyncio.run(main())
