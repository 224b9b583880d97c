import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

import lmc
from lmc.driver.batch import windows
from lmc.driver.batch.windows import Entry, Part
from lmc.driver.options import Options
from lmc.driver.run import start
from lmc.driver.runner import Runner
from lmc.ir.errors import InputError
from lmc.runtime.executor import Executor
from tests.driver import programs
from tests.runtime.engines import LateEngine


@lmc.jit
def limited(s: lmc.State, limit: int) -> str:
    """A variant for each limit: that has to be known when the program is captured."""
    s += "How many?"
    return s.gen("answer", max_tokens=limit)


RUNNER = Runner(programs.judge, Options("toy"))


def entry(number: int) -> Entry:
    return number, ((), {"essay": f"essay {number}"})


def one_by_one(rows: Iterable[Entry]) -> Iterator[Part]:
    return ([row] for row in rows)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW", 8)
    monkeypatch.setattr(windows, "START_BELOW", 4)


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The numbers of the instances of each batch that an executor runs, as they start."""
    found: list[list[int]] = []
    run_batch = Executor.run_batch

    async def run(self: Executor, instances: Any, order: Any, *rest: Any, **options: Any) -> None:
        found.append([instances[index].number for index in order])
        await run_batch(self, instances, order, *rest, **options)

    monkeypatch.setattr(Executor, "run_batch", run)
    return found


def test_windows_give_what_one_batch_gives():
    whole = RUNNER.batch([((), {"essay": f"essay {number}"}) for number in range(30)])
    found = dict(RUNNER.run_rows(one_by_one(map(entry, range(30)))))
    assert [found[number].value for number in range(30)] == [result.value for result in whole]


def test_the_order_of_a_part_is_found_over_all_of_its_rows(starts: list[list[int]]):
    essays = [f"{number * 7 % 50:02}" for number in range(50)]
    rows: list[Entry] = [(number, ((), {"essay": essay})) for number, essay in enumerate(essays)]
    whole = dict(RUNNER.run_rows([rows]))
    assert starts == [sorted(range(50), key=lambda number: essays[number])]
    one = dict(RUNNER.run_rows(one_by_one(rows)))
    assert len(starts) > 2
    assert [whole[number].value for number in range(50)] == [one[number].value for number in range(50)]


def test_the_next_part_starts_when_the_one_before_it_ends(starts: list[list[int]]):
    run = RUNNER.run_rows([[entry(number) for number in range(at, at + 20)] for at in (0, 20, 40)])
    assert {number for number, _ in run} == set(range(60))
    assert [sorted(numbers) for numbers in starts] == [list(range(at, at + 20)) for at in (0, 20, 40)]


def test_parts_are_read_when_those_before_have_started(starts: list[list[int]]):
    taken: list[int] = []

    def endless() -> Iterator[Part]:
        while True:
            taken.append(len(starts))
            yield [entry(len(taken) * 20 + place) for place in range(20)]

    with closing(iter(RUNNER.run_rows(endless()))) as found:
        for _ in range(100):
            next(found)
    assert all(started >= number - 1 for number, started in enumerate(taken))


def test_a_window_is_of_no_more_variants_than_are_kept(monkeypatch: pytest.MonkeyPatch, starts: list[list[int]]):
    monkeypatch.setattr(start, "MAX_VARIANTS", 2)
    runner = Runner(limited, Options("toy"))
    limits = [1, 2, 1, 2, 3, 3, 1, 1, 2, 3]
    rows: list[Entry] = [(number, ((), {"limit": limit})) for number, limit in enumerate(limits)]
    taken: list[int] = []
    prepare = start.BoundCall.prepare_window

    def noted(self: start.BoundCall, waiting: windows.Waiting, *, is_loaded: bool) -> list[start.Prepared]:
        prepared = prepare(self, waiting, is_loaded=is_loaded)
        taken.append(len(prepared))
        return prepared

    monkeypatch.setattr(start.BoundCall, "prepare_window", noted)
    found = dict(runner.run_rows([rows]))
    assert [len(found[number].variables["answer"].encode()) for number in range(10)] == limits
    assert taken == [4, 4, 2]


def test_rows_without_end_are_read_as_they_are_needed():
    read = 0

    def endless() -> Iterator[Entry]:
        nonlocal read
        while True:
            read += 1
            yield entry(read)

    with closing(iter(RUNNER.run_rows(one_by_one(endless())))) as found:
        for taken in range(60):
            next(found)
            assert read <= taken + 2 * 8 + 4 + 2


def test_a_row_that_is_slow_holds_up_no_other():
    runner = Runner(programs.sleeps, Options("toy"))
    rows: list[Entry] = [(number, ((), {"seconds": 0.0 if number else 5.0})) for number in range(40)]
    with closing(iter(runner.run_rows(one_by_one(rows)))) as found:
        assert 0 not in {next(found)[0] for _ in range(39)}


def test_rows_that_come_slowly_are_run_as_they_come():
    go_on = threading.Event()

    def slow() -> Iterator[Entry]:
        yield entry(0)
        assert go_on.wait(20)
        yield entry(1)

    run = RUNNER.run_rows(one_by_one(slow()))
    found = iter(run)
    assert next(found)[0] == 0
    assert (run.read, run.all_read) == (1, False)
    go_on.set()
    assert [number for number, _ in found] == [1]
    assert (run.read, run.all_read) == (2, True)


def test_faults_of_rows_stay_in_theirs():
    wrong = InputError("no good")
    found = dict(RUNNER.run_rows([[entry(0), (1, wrong), (2, ((), {"text": "x"})), entry(3)]]))
    assert found[1].error is wrong
    assert isinstance(found[2].error, InputError)
    assert [found[number].error for number in (0, 3)] == [None, None]


def test_where_reading_breaks_off_the_rows_before_are_run():
    def broken() -> Iterator[Entry]:
        yield from map(entry, range(12))
        raise InputError("reading broke off")

    found: list[int] = []
    with pytest.raises(InputError, match="reading broke off"):
        found.extend(number for number, _ in RUNNER.run_rows(one_by_one(broken())))
    assert sorted(found) == list(range(12))


def test_what_is_finished_when_it_is_interrupted_still_comes(late: LateEngine):
    runner = Runner(programs.sleeps, Options("toy"))
    rows: list[Entry] = [(number, ((), {"seconds": 30.0 if number == 2 else 0.0})) for number in range(3)]
    run = runner.run_rows(one_by_one(rows))
    found = iter(run)
    first, _ = next(found)
    end = time.monotonic() + 20
    while run._events.qsize() == 0:
        assert time.monotonic() < end
        time.sleep(0.01)
    run.interrupt()
    numbers = [first]
    with pytest.raises(KeyboardInterrupt):
        numbers.extend(number for number, _ in found)
    assert sorted(numbers) == [0, 1]


def test_interrupted_in_the_users_code_it_stops_at_once(monkeypatch: pytest.MonkeyPatch):
    run = RUNNER.run_rows([[entry(0)]])
    monkeypatch.setattr(run._work, "prepare", lambda *_: run.interrupt())
    with pytest.raises(KeyboardInterrupt):
        list(run)


def test_what_no_row_is_to_blame_for_is_raised(monkeypatch: pytest.MonkeyPatch):
    runner = Runner(programs.judge, Options("local:/nowhere"))
    with pytest.raises(InputError, match="there is no model folder"):
        list(runner.run_rows([[entry(0)]]))
    run = RUNNER.run_rows([[entry(0)]])

    async def fails(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(run._work, "run", fails)
    with pytest.raises(RuntimeError, match="out of order"):
        list(run)
