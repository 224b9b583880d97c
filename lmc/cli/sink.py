"""Where the results of ``lmc run`` go: rows, each written at once, what they cost, and the profile."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from lmc.cli.interrupts import Interrupts
from lmc.cli.output import cannot_write, print_error, print_note, to_json, write_out
from lmc.driver import ProfileFile, Result, Usage, UsageError, WindowedRun, describe_error, result_row


class Sink:
    """Where results go: each is written at once, and counted."""

    def __init__(self, out: IO[str], *, as_json: bool, many: bool) -> None:
        self._out = out
        self.file: IO[str] | None = None
        self.profile: ProfileFile | None = None
        self.failed = 0
        self._count = 0
        self._as_json = as_json
        self._many = many
        self._usage = Usage()
        self._start = time.monotonic()
        self._rows: WindowedRun | None = None

    def run(self, rows: WindowedRun, interrupts: Interrupts, step: Callable[[], object]) -> None:
        """Write the results of ``rows`` as they come. Raises ``KeyboardInterrupt`` once they are written."""
        self._rows = rows
        interrupts.tell = rows.interrupt
        with closing(iter(rows)) as results:
            for number, result in results:
                self._write(number, result)
                self._count += 1
                self.failed += result.error is not None
                self._usage += result.usage
                if self.profile is not None:
                    self.profile.add(result.profile)
                step()

    @contextmanager
    def profiled(self) -> Generator[None]:
        """At the end of the block the profile is written, however it ends."""
        try:
            yield
        finally:
            if self.profile is not None:
                if self._rows is not None:
                    self.profile.add(self._rows.unfinished)
                if not self.profile.write():
                    print_note("nothing was measured: the file of --profile-generate was not written")

    def summary(self) -> str:
        """What it cost."""
        rows = f"{self._count:,} rows, {self.failed:,} failed; " if self._many else ""
        return rows + self._costs()

    def interrupted(self) -> str:
        """What was done when it was interrupted."""
        if self._rows is None:
            return "interrupted before anything ran"
        read = f"{self._rows.read:,}"
        total = f"{read} rows" if self._rows.all_read else f"the {read} rows read so far"
        done = f"{self._count:,} of {total} were finished and are kept" if self._many else "the run was not finished"
        return f"interrupted: {done}; {self._costs()}"

    def _costs(self) -> str:
        used = self._usage + (Usage() if self._rows is None else self._rows.unfinished.usage)
        return (
            f"prompt tokens {used.prompt_tokens:,} ({used.cached_tokens:,} cached), "
            f"generated {used.generated_tokens:,}, calls {used.calls:,}, {time.monotonic() - self._start:.1f} s"
        )

    def _write(self, number: int, result: Result) -> None:
        line = to_json(result_row(number, result)) + "\n"
        if self.file is not None:
            write_out(line, self.file)
        if self._as_json:
            write_out(line, self._out)
        elif self.file is None:
            self._show(number, result)

    def _show(self, number: int, result: Result) -> None:
        if not self._many:
            if result.error is not None:
                print_error(result.error)
                return
            write_out(_shown(result, indent=1) + "\n", self._out)
            return
        said = f"error: {describe_error(result.error)}" if result.error is not None else _shown(result, indent=None)
        write_out(f"{number}\t{said}\n", self._out)


def profile_file(path: str | None, program: str, others: Iterable[str | None], *, merge: bool) -> ProfileFile | None:
    """The file for the profile, which is none of the ``others``."""
    if path is None:
        return None
    for other in others:
        if other is not None and Path(other).resolve() == Path(path).resolve():
            raise UsageError(f"--profile-generate {path} is a file of rows", remedy="name another file for the profile")
    return ProfileFile(path, program, merge=merge)


@contextmanager
def opened(path: str | None, out: IO[str]) -> Generator[IO[str] | None]:
    """The file for the rows. Opened before anything runs, so that a wrong path costs nothing."""
    if path is None:
        yield None
        return
    if path == "-":
        yield out
        return
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed below, where that may fail
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield file
    finally:
        with suppress(OSError):  # every row was flushed; what that raised was told, and closing would raise it again
            file.close()


def _shown(result: Result, *, indent: int | None) -> str:
    """A value for people: text as it is, anything else as JSON. A program that returns nothing shows its whole text."""
    if result.value is None and indent is not None:
        return result.text
    if isinstance(result.value, str) and indent is not None:
        return result.value
    return to_json(result_row(0, result)["value"], indent=indent)
