"""``lmc run``: run a program, once or over the rows of a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lmc.cli.output import MODELS, cannot_write, print_error, print_note, target_spec, to_json
from lmc.driver import (
    ArgumentReader,
    Options,
    Profile,
    Result,
    Row,
    Runner,
    SavedRunner,
    Signature,
    Usage,
    UsageError,
    Wish,
    describe_error,
    is_saved,
    load_program,
    result_row,
)

FAILURE = 1
INTERRUPTED = 130


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
        str | None, typer.Option("--input", metavar="DATA.jsonl", help="Run once for each row of arguments.")
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"What runs it: {MODELS}.")] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="OUT.jsonl", help="Write one row per instance to a file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random draws.")] = 0,
    dtype: Annotated[str | None, typer.Option(help="Precision of a local model: float32 or bfloat16.")] = None,
    kv_tokens: Annotated[int | None, typer.Option(help="Size of a local model's KV pool, in tokens.")] = None,
    functions: Annotated[
        str | None,
        typer.Option(
            "--program", metavar="PROGRAM.py[:name]", help="With a saved plan: the program whose functions it calls."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON row per instance.")] = False,
) -> None:
    """Run a program: once with KEY=VALUE arguments, or for each row of a JSON Lines file.

    Rows are {"index", "value", "variables", "usage", "error"}. A row that fails does not stop the others; then the
    exit code is 1. Ctrl-C keeps the rows that are finished.
    """
    options = Options(Wish(target_spec(model), dtype, kv_tokens), seed=seed)
    runner, signature = _load(program, options, functions)
    reader = ArgumentReader(signature)
    fixed = reader.assignments(assignments or [])
    if data is None:
        reader.check_complete(fixed)
        rows = [Row(fixed)]
    else:
        rows = reader.rows(data, fixed)
    with _opened(output) as file:
        sink = _Sink(file, as_json=as_json, many=data is not None, name=signature.program)
        code = _run(runner, rows, sink)
    sink.summarize()
    if code:
        raise typer.Exit(code)


def _load(name: str, options: Options, functions: str | None) -> tuple[Runner | SavedRunner, Signature]:
    if is_saved(name):
        saved = SavedRunner.load(name, options, None if functions is None else load_program(functions))
        return saved, saved.signature
    if functions is not None:
        raise UsageError("--program goes with a saved plan", remedy="leave it out: a program has its functions")
    function = load_program(name)
    return Runner(function, options), Signature.of(function)


def _run(runner: Runner | SavedRunner, rows: list[Row], sink: _Sink) -> int:
    """Run every usable row; gives the exit code."""
    numbers = [number for number, row in enumerate(rows) if row.error is None]
    for number, row in enumerate(rows):
        if row.error is not None:
            sink.add(number, Result.failed(row.error, Profile(sink.name)))
    if not numbers:
        return FAILURE
    try:
        with _progress(len(rows), done=len(rows) - len(numbers)) as step:
            for index, result in runner.iterate([((), rows[number].arguments) for number in numbers]):
                sink.add(numbers[index], result)
                step()
    except KeyboardInterrupt:
        sink.flush()
        print_note(f"interrupted: {sink.count} of {len(rows)} rows were finished and are kept")
        return INTERRUPTED
    return FAILURE if sink.failed else 0


class _Sink:
    """Writes rows in order, each as soon as those before it are there."""

    def __init__(self, file: IO[str] | None, *, as_json: bool, many: bool, name: str) -> None:
        self.name = name
        self.count = 0
        self.failed = 0
        self._file = file
        self._as_json = as_json
        self._many = many
        self._waiting: dict[int, Result] = {}
        self._next = 0
        self._usage = Usage()
        self._start = time.monotonic()

    def add(self, number: int, result: Result) -> None:
        """Take one instance's result."""
        self.count += 1
        self.failed += result.error is not None
        self._usage += result.usage
        self._waiting[number] = result
        while self._next in self._waiting:
            self._write(self._next, self._waiting.pop(self._next))
            self._next += 1

    def flush(self) -> None:
        """Write what waits for rows before it that won't come."""
        for number in sorted(self._waiting):
            self._write(number, self._waiting.pop(number))

    def summarize(self) -> None:
        """What it cost, on standard error."""
        used = self._usage
        rows = f"{self.count} rows, {self.failed} failed; " if self._many else ""
        print_note(
            f"{rows}prompt tokens {used.prompt_tokens:,} ({used.cached_tokens:,} cached), "
            f"generated {used.generated_tokens:,}, calls {used.calls:,}, {time.monotonic() - self._start:.1f} s"
        )

    def _write(self, number: int, result: Result) -> None:
        line = to_json(result_row(number, result))
        if self._file is not None:
            self._file.write(line + "\n")
            self._file.flush()
        if self._as_json:
            typer.echo(line)
        elif self._file is None:
            self._show(number, result)

    def _show(self, number: int, result: Result) -> None:
        if not self._many:
            if result.error is not None:
                print_error(result.error)
                return
            typer.echo(_shown(result, indent=1))
            return
        said = f"error: {describe_error(result.error)}" if result.error is not None else _shown(result, indent=None)
        typer.echo(f"{number}\t{said}")


def _shown(result: Result, *, indent: int | None) -> str:
    """A value for people: text as it is, anything else as JSON. A program that returns nothing shows its whole text."""
    if result.value is None and indent is not None:
        return result.text
    if isinstance(result.value, str) and indent is not None:
        return result.value
    return to_json(result_row(0, result)["value"], indent=indent)


@contextmanager
def _opened(path: str | None) -> Generator[IO[str] | None]:
    """The file for the rows. Opened before anything runs, so that a wrong path costs nothing."""
    if path is None:
        yield None
        return
    if path == "-":
        yield sys.stdout
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(path).open("w", encoding="utf-8"))
        except OSError as error:
            raise cannot_write(path, error) from error
        yield file


@contextmanager
def _progress(total: int, done: int) -> Generator[Callable[[], object]]:
    """A bar on standard error for batches; nothing where that is no terminal."""
    console = Console(stderr=True)
    if total < 2 or not console.is_terminal:
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("running", total=total, completed=done)
        yield lambda: progress.advance(task)
