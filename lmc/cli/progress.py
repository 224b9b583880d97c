"""The progress of a batch on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from lmc import driver
from lmc.cli.output import print_note, stderr_console
from lmc.ir.wording import with_count

_MOST_COUNTED = 2**28
"""Bytes of an input file up to which its rows are counted for the total."""
_LINE_SECONDS = 30.0
"""Seconds between two lines where there is no terminal."""


class Progress(Protocol):
    """Called for each row that is finished."""

    def __call__(self, *, failed: bool) -> None: ...


@contextmanager
def show_progress(data: str | None, done: int) -> Generator[Progress]:
    """Show how many rows of the input file ``data`` are finished; nothing where there is none.

    ``done`` rows are there from an earlier run. A pipe, and a file larger than 256 MiB, has no total.
    """
    if data is None:
        yield _silent
        return
    console = stderr_console()
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(data, done)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[failed]:,} failed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        total = driver.count_rows(data, _MOST_COUNTED)
        task = bars.add_task("running", total=None if total is None else total - done, failed=0)
        count = 0

        def step(*, failed: bool) -> None:
            nonlocal count
            count += failed
            bars.update(task, advance=1, failed=count)

        yield step


class Lines:
    """Prints a line after every 30 seconds: rows finished, rows failed, time left."""

    def __init__(self, data: str, done: int) -> None:
        self._data = data
        self._done = done
        self._total: int | None = None
        self._finished = 0
        self._failed = 0
        self._start = self._last = time.monotonic()

    def __call__(self, *, failed: bool) -> None:
        self._finished += 1
        self._failed += failed
        now = time.monotonic()
        if now - self._last < _LINE_SECONDS:
            return
        if self._last == self._start:
            total = driver.count_rows(self._data, _MOST_COUNTED)
            self._total = None if total is None else total - self._done
        self._last = now
        print_note(self._line(now - self._start))

    def _line(self, seconds: float) -> str:
        of = "" if self._total is None else f"{self._finished:,} of "
        left = ""
        if self._total is not None:
            left = f", about {_duration(seconds / self._finished * (self._total - self._finished))} left"
        rows = with_count(self._finished, "row") if self._total is None else with_count(self._total, "row")
        return f"running: {of}{rows}, {self._failed:,} failed, {_duration(seconds)}{left}"


def _silent(*, failed: bool) -> None:
    del failed


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
