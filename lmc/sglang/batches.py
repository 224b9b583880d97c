"""Running the rows of a batch, and showing how far they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lmc.driver import Result, Runner
from lmc.sglang.arguments import Arguments


def run_all(runner: Runner, rows: Sequence[Arguments], step: Callable[[], None] | None = None) -> list[Result]:
    """Results in order; ``step`` is called for each row that is done."""
    results: dict[int, Result] = {}
    for number, result in runner.iterate(rows):
        results[number] = result
        if step is not None:
            step()
    return [results[number] for number in range(len(rows))]


@contextmanager
def progress(title: str, total: int, *, shown: bool) -> Generator[Callable[[], None]]:
    """A bar on stderr; gives what moves it by one."""
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), disable=not shown) as bar:
        task = bar.add_task(title, total=total)
        yield lambda: bar.advance(task)
