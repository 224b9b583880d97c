"""The progress of a batch on standard error: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from lmc import driver
from lmc.cli.output import print_note, stderr_console
from lmc.ir.wording import with_count

if TYPE_CHECKING:
    from rich.console import Console

_MOST_COUNTED = 2**28
"""Bytes of an input file up to which its rows are counted for the total."""
_LINE_SECONDS = 30.0
"""Seconds between two lines where there is no terminal."""


class Progress(Protocol):
    """Called for each row that is finished, with its cost."""

    def __call__(self, usage: driver.Usage, *, failed: bool) -> None: ...


@contextmanager
def show_progress(data: str | None, done: int) -> Generator[Progress]:
    """Show how many rows of the input file ``data`` are finished, and their cost; nothing where there is none.

    ``done`` rows are there from an earlier run. A pipe, and a file larger than 256 MiB, has no total.
    """
    if data is None:
        yield _silent
        return
    console = stderr_console()
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(data, done)
        return
    total = driver.count_rows(data, _MOST_COUNTED)
    with shown_bar(console, None if total is None else total - done) as step:
        yield step


@contextmanager
def shown_bar(console: Console, total: int | None) -> Generator[Progress]:
    """Show a bar, which is drawn at most ten times a second, with rows, failures, rates and time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    columns = (
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        MofNCompleteColumn(),
        TextColumn("{task.fields[cost].failed:,} failed"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cost]}", table_column=Column()),  # a narrow terminal breaks this one
    )
    with Bars(*columns, console=console, transient=True, expand=True) as bars:
        cost = Cost()
        task = bars.add_task("running", total=total, cost=cost)

        def step(usage: driver.Usage, *, failed: bool) -> None:
            cost.add(usage, failed=failed)
            bars.advance(task)

        yield step


class Cost:
    """The rows that are finished, and their tokens. As text: tokens per second since the start, and cache hits."""

    def __init__(self) -> None:
        self.finished = 0
        self.failed = 0
        self._usage = driver.Usage()
        self._start = time.monotonic()

    def add(self, usage: driver.Usage, *, failed: bool) -> None:
        """Count a row."""
        self.finished += 1
        self.failed += failed
        self._usage += usage

    @property
    def seconds(self) -> float:
        """The time since the start."""
        return time.monotonic() - self._start

    def __str__(self) -> str:
        used, seconds = self._usage, self.seconds
        if not used.prompt_tokens or not seconds:
            return ""
        prompt, generated = short(used.prompt_tokens / seconds), short(used.generated_tokens / seconds)
        return f"{prompt} in, {generated} out tok/s, {used.cached_tokens / used.prompt_tokens:.0%} cached"


class Lines:
    """Prints a line after every 30 seconds: rows finished, rows failed, time left, tokens per second, cache hits."""

    def __init__(self, data: str, done: int) -> None:
        self._data = data
        self._done = done
        self._total: int | None = None
        self._cost = Cost()
        self._last = 0.0

    def __call__(self, usage: driver.Usage, *, failed: bool) -> None:
        self._cost.add(usage, failed=failed)
        seconds = self._cost.seconds
        if seconds - self._last < _LINE_SECONDS:
            return
        if not self._last:
            total = driver.count_rows(self._data, _MOST_COUNTED)
            self._total = None if total is None else total - self._done
        self._last = seconds
        print_note(self._line(seconds))

    def _line(self, seconds: float) -> str:
        cost = self._cost
        of = "" if self._total is None else f"{cost.finished:,} of "
        left = ""
        if self._total is not None:
            left = f", about {_duration(seconds / cost.finished * (self._total - cost.finished))} left"
        rows = with_count(cost.finished, "row") if self._total is None else with_count(self._total, "row")
        rates = f"; {cost}" if str(cost) else ""
        return f"running: {of}{rows}, {cost.failed:,} failed, {_duration(seconds)}{left}{rates}"


def _silent(usage: driver.Usage, *, failed: bool) -> None:
    del usage, failed


def short(number: float) -> str:
    """Return a number in at most four characters: ``999``, ``1.2k``, ``46k``."""
    for unit in ("", "k", "M"):
        if number < 999.5:
            return f"{number:.1f}{unit}" if number < 9.95 and unit else f"{number:.0f}{unit}"
        number /= 1000
    return f"{number:.0f}G"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
