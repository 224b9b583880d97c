"""Sinks for the results of ``lmc run``: rows, each written at once, their cost, and the profile."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from lmc import driver
from lmc.cli.interrupts import Interrupts
from lmc.cli.output import cannot_write, print_error, print_note, to_json, write_out
from lmc.cli.results.failures import Failures
from lmc.cli.results.progress import Progress
from lmc.cli.results.rows_file import RowsFile
from lmc.ir.wording import with_count

Finished = tuple[int, "driver.Result", str]
"""Number, result and line of a row that is finished."""


class Sink:
    """Writes and counts each result at once. With ``ordered``, prints results in input order."""

    def __init__(self, out: IO[str], *, as_json: bool, many: bool, ordered: bool = False) -> None:
        self._out = out
        self.rows_file: RowsFile | None = None
        self.stream: RowsStream | None = None
        self.profile: driver.ProfileFile | None = None
        self.timeline: driver.TimelineFile | None = None
        self.journal: driver.RunJournal | None = None
        self._estimate: driver.cost.RunEstimate | None = None
        self.blocked = 0
        """Rows that a later run may finish: no file holds them."""
        self.done: set[int] = set()
        """Numbers of the rows that are there from an earlier run."""
        self.failures = Failures()
        self._count = 0
        self._printed = 0
        self._as_json = as_json
        self.many = many
        self._ordered = ordered
        self._usage = driver.Usage()
        self._cost = driver.CostTotal()
        self._answers: Counter[str] = Counter()
        """Requests that each fallback answered."""
        self._start = time.monotonic()
        self._rows: driver.WindowedRun | None = None

    def noted(self, parts: Iterable[driver.Part], estimate: driver.cost.RunEstimate | None) -> Iterable[driver.Part]:
        """Return the rows of the run, which its summary estimates."""
        self._estimate = estimate
        return parts if estimate is None else estimate.noting(parts)

    def run(self, rows: driver.WindowedRun, interrupts: Interrupts, progress: Progress) -> None:
        """Write the results of ``rows`` as they come. Raises ``KeyboardInterrupt`` once they are written."""
        self._rows = rows
        interrupts.tell = rows.interrupt
        with closing(iter(rows)) as found, closing(self._kept(found, progress)) as results:
            for number, result, line in in_order(results, self.done) if self._ordered else results:
                self._print(number, result, line)

    def _kept(self, results: Iterable[tuple[int, driver.Result]], progress: Progress) -> Generator[Finished]:
        """Yield ``results`` with their lines, after they are written and counted."""
        for number, result in results:
            line = to_json(driver.result_row(number, result)) + "\n"
            self._keep(number, line, result)
            self._count += 1
            if result.error is not None:
                self.failures.add(number, result.error)
            usage = result.usage
            self._usage += usage
            if result.spending is not None:
                self._cost.add(result.spending)
            for name, found in result.fallbacks.items():
                self._answers[name] += found.answers
            if self.profile is not None:
                self.profile.add(result.profile)
            progress(usage, failed=result.error is not None)
            yield number, result, line

    def _keep(self, number: int, line: str, result: driver.Result) -> None:
        """Write a row to the files that hold what is finished."""
        if driver.is_blocked(result):
            self.blocked += 1
            return
        if self.journal is not None:
            self.journal.row(number, line, failed=result.error is not None)
        if self.rows_file is not None:
            self.rows_file.write(number, line, succeeded=result.error is None)

    def begin_journal(
        self,
        record: driver.RunRecord,
        options: driver.Options,
        target: driver.Target,
        resumption: driver.Resumption | None,
    ) -> None:
        """Start the run of the journal; with a ``resumption``, resume it.

        The file of rows then gets those that only the journal has. Rows that failed and are not in the file run again.
        All rows of a pipe do, as they may be others: their requests tell.
        """
        journal, file = self.journal, self.rows_file
        assert journal is not None
        if resumption is not None and file is not None and record.rows is None and journal.is_finished:
            raise driver.UsageError(
                f"--resume can't compare the rows of {record.rows_name} with those of the earlier run",
                remedy="save the rows to a file, and name it with --input",
            )

        recorded: set[int] = set()

        def take(rows: Iterable[tuple[int, bool, str | None]]) -> set[int] | None:
            if file is None or record.rows is None:
                return None
            for number, failed, line in rows:
                recorded.add(number)
                if number not in self.done and line is not None and not failed:
                    file.write(number, line, succeeded=True)
                    self.done.add(number)
            return self.done

        driver.begin_journal(journal, record, options, target, resumption=resumption, take=take)
        for number in sorted(self.done - recorded):  # written just before the earlier run ended
            journal.row(number, None, failed=file is not None and number in file.failed_before)
        for line in driver.resumed_lines(journal):
            print_note(line)

    @contextmanager
    def profiled(self) -> Generator[None]:
        """Write the profile at the end of the block, also after an error."""
        try:
            yield
        finally:
            if self.profile is not None:
                if self._rows is not None:
                    self.profile.add(self._rows.unfinished)
                if not self.profile.write():
                    print_note("nothing was measured: the file of --profile-generate was not written")

    def summary(self) -> str:
        """Return the number of rows and their cost, beside the estimate."""
        before = f" ({len(self.done):,} more were there already, {self.failed_before:,} of them failed)"
        rows = f"{with_count(self._count, 'row')}, {self.failures.count:,} failed{before if self.done else ''}; "
        estimated = None if self._estimate is None else self._estimate.line()
        return (rows if self.many or self.done else "") + self._costs() + (f"; {estimated}" if estimated else "")

    def interrupted(self) -> str:
        """Return the progress at the time of the interruption."""
        if self._rows is None:
            return "interrupted before anything ran"
        read = with_count(self._rows.read, "row")
        total = read if self._rows.all_read else f"the {read} read so far"
        done = f"finished and kept {self._count:,} of {total}" if self.many else "the run was not finished"
        before = f" ({len(self.done):,} more were there already)" if self.done else ""
        return f"interrupted: {done}{before}; {self._costs()}"

    @property
    def failed_before(self) -> int:
        """The rows of an earlier run that failed."""
        return 0 if self.rows_file is None else len(self.rows_file.failed_before)

    def _costs(self) -> str:
        answered = 0 if self.journal is None else self.journal.counts.answered
        used = self._usage + (driver.Usage() if self._rows is None else self._rows.unfinished.usage)
        for spending in () if self._rows is None else self._rows.take_beside():
            self._cost.add(spending)
        budget = None if self._rows is None or not self._rows.read else self._rows.budget  # else nothing is counted
        by_fallbacks = [
            f"{with_count(count, 'request')} answered by the fallback {name}"
            for name, count in sorted(self._answers.items())
            if count
        ]
        return "; ".join(
            [
                f"prompt tokens {used.prompt_tokens:,} ({used.cached_tokens:,} cached), "
                f"generated {used.generated_tokens:,}, calls {used.calls:,}, {time.monotonic() - self._start:.1f} s",
                *self._cost.lines(),
                *([] if budget is None else [driver.budget_line(budget)]),
                *([f"{answered:,} answered from the journal, tools included"] if answered else []),
                *by_fallbacks,
            ]
        )

    def _print(self, number: int, result: driver.Result, line: str) -> None:
        try:
            if self.stream is not None:
                self.stream.write(line)
            if self._as_json:
                write_out(line, self._out)
            elif self.stream is None and self.rows_file is None:
                self._show(number, result)
        except driver.LmcError as error:
            written = f"; {with_count(self._printed, 'row was', 'rows were')} written" if self.many else ""
            raise driver.LmcError(error.cause + written, remedy=error.remedy) from error
        self._printed += 1

    def _show(self, number: int, result: driver.Result) -> None:
        if not self.many:
            if result.error is not None:
                print_error(result.error)
                return
            write_out(_shown(result, indent=1) + "\n", self._out)
            return
        said = (
            f"error: {driver.describe_error(result.error)}" if result.error is not None else _shown(result, indent=None)
        )
        write_out(f"{number}\t{said}\n", self._out)


def profile_file(
    path: str | None, program: str, others: Iterable[str | None], *, merge: bool
) -> driver.ProfileFile | None:
    """Return the file for the profile. Raises ``UsageError`` if it is one of the ``others``."""
    if path is None:
        return None
    check_distinct("--profile-generate", path, others)
    return driver.ProfileFile(path, program, merge=merge)


def check_distinct(option: str, path: str | None, others: Iterable[str | None], what: str = "a file of rows") -> None:
    """Raise ``UsageError`` if the file of an option is one of the ``others``, which are ``what``."""
    for other in others:
        if path is not None and other is not None and Path(other).resolve() == Path(path).resolve():
            raise driver.UsageError(f"{option} {path} is {what}", remedy=f"name another file for {option}")


class RowsStream:
    """Standard output (``-``), a pipe or a device that takes output rows: opened for the first of them.

    A context manager. Raises ``UsageError`` where it can't be opened.
    """

    def __init__(self, path: str, out: IO[str], interrupts: Interrupts) -> None:
        self._path = path
        self._file = out if path == "-" else None
        self._interrupts = interrupts

    def __enter__(self) -> RowsStream:
        return self

    def __exit__(self, *_: object) -> None:
        if self._path == "-":
            return
        with suppress(OSError):  # every row was flushed; an error of that is reported, and closing would raise it again
            if self._file is not None:
                self._file.close()
            elif Path(self._path).is_fifo():  # whoever waits there for the first row sees that there is none
                os.close(os.open(self._path, os.O_WRONLY | os.O_NONBLOCK))

    def write(self, line: str) -> None:
        """Write a line. Raises ``LmcError`` where that fails."""
        if self._file is None:
            try:
                with self._interrupts.raising():  # a pipe opens when somebody reads it
                    self._file = Path(self._path).open("a", encoding="utf-8")  # noqa: SIM115 - closed at the end
            except OSError as error:
                raise cannot_write(self._path, error) from error
        write_out(line, self._file)


def in_order(results: Iterable[Finished], done: set[int]) -> Generator[Finished]:
    """Yield ``results`` by number from 0 on, without the numbers that are ``done``; each after all before it.

    If ``results`` ends by an error, the waiting results come before it.
    """
    held: dict[int, Finished] = {}
    following = 0
    try:
        for finished in results:
            held[finished[0]] = finished
            while following in held or following in done:
                if following in held:
                    yield held.pop(following)
                following += 1
    except GeneratorExit:
        raise
    except BaseException:
        yield from (held[number] for number in sorted(held))
        raise
    yield from (held[number] for number in sorted(held))


def _shown(result: driver.Result, *, indent: int | None) -> str:
    """Return a value for people: text as it is, anything else as JSON, the whole text if the value is None."""
    if result.value is None and indent is not None:
        return result.text
    if isinstance(result.value, str) and indent is not None:
        return result.value
    return to_json(driver.result_row(0, result)["value"], indent=indent)
