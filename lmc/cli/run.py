"""``lmc run``: run a program, once or over the rows of a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lmc.cli.interrupts import Interrupts
from lmc.cli.output import MODELS, cannot_write, print_error, print_note, prints_to_stderr, target_spec, to_json
from lmc.driver import (
    ArgumentReader,
    Entry,
    LmcError,
    Options,
    Result,
    Runner,
    SavedRunner,
    Signature,
    Usage,
    UsageError,
    WindowedRun,
    Wish,
    count_lines,
    describe_error,
    is_saved,
    load_program,
    result_row,
)

FAILURE = 1
_MOST_COUNTED = 2**28
"""Bytes of an input file up to which its rows are counted for the progress bar."""


def _seconds(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value} is no number of seconds greater than 0")
    return value


def _kv_tokens(text: str | None) -> int | Literal["auto"] | None:
    if text is None or text == "auto":
        return text
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise UsageError(f"--kv-tokens is {text!r}", remedy="give a number of tokens from 1 on, or auto")
    return int(text)


def run_command(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM.py[:name]", help="The file, and the program in it; or a saved plan (.json, .lmir)."
        ),
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Arguments; with --input, the same for every row."),
    ] = None,
    *,
    data: Annotated[
        str | None,
        typer.Option("--input", metavar="DATA.jsonl|-", help="Run for each row of arguments; - is standard input."),
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"What runs it: {MODELS}.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="OUT.jsonl", help="Write a row per instance to this file, replacing it."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random draws.")] = 0,
    dtype: Annotated[str | None, typer.Option(help="Precision of a local model: float32 or bfloat16.")] = None,
    kv_tokens: Annotated[
        str | None,
        typer.Option(metavar="TOKENS|auto", help="Size of a local model's KV pool; auto goes by free memory."),
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic", help="The same text whatever else runs (a local model, slower).", show_default=False
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Where a local model computes: auto (CUDA where there is one), cpu, cuda, cuda:1."),
    ] = None,
    prefill_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="TOKENS",
            help="Tokens of prompts that a local model computes in a step: more is faster, less is steadier.",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that each request to the model may take.", metavar="SECONDS", callback=_seconds),
    ] = None,
    functions: Annotated[
        str | None,
        typer.Option(
            "--program",
            metavar="PROGRAM.py[:name]",
            help="With a saved plan: the program whose functions it calls, and of whose classes its values are.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON row per instance.")] = False,
) -> None:
    """Run a program: once with KEY=VALUE arguments, or for each row of a JSON Lines file.

    Input rows are JSON objects of arguments, one to a line. They are read while others run, so that a pipe will do and
    a file may have any size. Strict JSON: for a float that is NaN or infinite, write "NaN" or "Infinity" in quotes.

    Output rows are {"index", "value", "variables", "usage", "error"}. Each is written as soon as it is finished, so
    they are not in the order of the input: "index" counts its rows from 0, without blank lines. To sort them:

    jq -s -c 'sort_by(.index)[]' OUT.jsonl

    A row that fails does not stop the others; then the exit code is 1. Ctrl-C (exit code 130) and SIGTERM (143) keep
    every row that is finished; a second one ends lmc at once.
    """
    out = sys.stdout
    sink = _Sink(out, as_json=as_json, many=data is not None)
    with prints_to_stderr(), Interrupts() as interrupts:
        try:
            wish = Wish(target_spec(model), dtype, _kv_tokens(kv_tokens), deterministic, device, prefill_tokens)
            options = Options(wish, seed=seed, timeout=timeout)
            runner, signature = _load(program, options, functions)
            rows = _entries(ArgumentReader(signature), assignments or [], data)
            with _opened(output, data, out) as sink.file, _progress(data) as step:
                sink.run(runner.run_rows(rows), interrupts, step)
        except KeyboardInterrupt:
            print_note(sink.interrupted())
            raise typer.Exit(interrupts.exit_code) from None
    print_note(sink.summary())
    if sink.failed:
        raise typer.Exit(FAILURE)


def _entries(reader: ArgumentReader, assignments: list[str], data: str | None) -> Iterator[Entry]:
    """The rows by number; the first is read now, so that a file that is no good costs nothing."""
    fixed = reader.assignments(assignments)
    if data is None:
        return iter([(0, ((), reader.complete(fixed)))])
    rows = reader.rows(data, fixed)
    return ((number, row.error or ((), row.arguments)) for number, row in enumerate(rows))


def _load(name: str, options: Options, functions: str | None) -> tuple[Runner | SavedRunner, Signature]:
    if is_saved(name):
        saved = SavedRunner.load(name, options, None if functions is None else load_program(functions))
        return saved, saved.signature
    if functions is not None:
        raise UsageError("--program goes with a saved plan", remedy="leave it out: a program has its functions")
    function = load_program(name)
    return Runner(function, options), Signature.of(function)


class _Sink:
    """Where results go: each is written at once, and counted."""

    def __init__(self, out: IO[str], *, as_json: bool, many: bool) -> None:
        self._out = out
        self.file: IO[str] | None = None
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
                step()

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
        used = self._usage + (Usage() if self._rows is None else self._rows.unfinished)
        return (
            f"prompt tokens {used.prompt_tokens:,} ({used.cached_tokens:,} cached), "
            f"generated {used.generated_tokens:,}, calls {used.calls:,}, {time.monotonic() - self._start:.1f} s"
        )

    def _write(self, number: int, result: Result) -> None:
        line = to_json(result_row(number, result))
        if self.file is not None:
            _write_line(self.file, line)
        if self._as_json:
            typer.echo(line, self._out)
        elif self.file is None:
            self._show(number, result)

    def _show(self, number: int, result: Result) -> None:
        if not self._many:
            if result.error is not None:
                print_error(result.error)
                return
            typer.echo(_shown(result, indent=1), self._out)
            return
        said = f"error: {describe_error(result.error)}" if result.error is not None else _shown(result, indent=None)
        typer.echo(f"{number}\t{said}", self._out)


def _shown(result: Result, *, indent: int | None) -> str:
    """A value for people: text as it is, anything else as JSON. A program that returns nothing shows its whole text."""
    if result.value is None and indent is not None:
        return result.text
    if isinstance(result.value, str) and indent is not None:
        return result.value
    return to_json(result_row(0, result)["value"], indent=indent)


def _write_line(file: IO[str], line: str) -> None:
    try:
        file.write(line + "\n")
        file.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        raise
    except OSError as error:
        raise LmcError(
            f"{file.name} can't be written any further: {error.strerror}",
            remedy="make room; the rows written before are whole, but for the last one",
        ) from error


@contextmanager
def _opened(path: str | None, data: str | None, out: IO[str]) -> Generator[IO[str] | None]:
    """The file for the rows. Opened before anything runs, so that a wrong path costs nothing."""
    if path is None:
        yield None
        return
    if path == "-":
        yield out
        return
    if data is not None and Path(path).is_file() and Path(data).is_file() and Path(path).samefile(data):
        raise UsageError(f"{path} is the input, which is read while rows run", remedy="name another file for -o")
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed below, where that may fail
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        yield file
    finally:
        with suppress(OSError):  # every row was flushed; what that raised was told, and closing would raise it again
            file.close()


@contextmanager
def _progress(data: str | None) -> Generator[Callable[[], object]]:
    """A bar on standard error for batches; nothing where that is no terminal. A large file has no total."""
    console = Console(stderr=True)
    if data is None or not console.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("running", total=count_lines(data, _MOST_COUNTED))
        yield lambda: progress.advance(task)
