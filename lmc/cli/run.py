"""``lmc run``: run a program, once or over the rows of a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lmc.cli.interrupts import Interrupts
from lmc.cli.options import OrderSections
from lmc.cli.output import MODELS, check_output, print_note, prints_to_stderr, target_spec
from lmc.cli.sink import Sink, opened, profile_file
from lmc.driver import (
    STANDARD_INPUT,
    ArgumentReader,
    Given,
    Layout,
    Part,
    Runner,
    SavedRunner,
    Signature,
    UsageError,
    Wish,
    count_lines,
    is_saved,
    load_program,
    parts_of,
    program_file,
    schedule,
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
    scheduled: Annotated[
        str | None,
        typer.Option("--schedule", metavar="FILE", help="With --input, start the rows as lmc schedule -o FILE says."),
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"What runs it: {MODELS}.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="OUT.jsonl", help="Write a row per instance to this file, replacing it."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random draws: 0, or what @lmc.jit says.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Precision of a local model: float32 or bfloat16.")] = None,
    kv_tokens: Annotated[
        str | None,
        typer.Option(metavar="TOKENS|auto", help="Size of a local model's KV pool; auto goes by free memory."),
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic/--no-deterministic",
            help="The same text whatever else runs (a local model, slower).",
            show_default=False,
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
    profile_use: Annotated[
        str | None,
        typer.Option("--profile-use", metavar="FILE", help="Plan by what earlier runs measured, as lmc compile does."),
    ] = None,
    order_sections: OrderSections = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile-generate",
            "--profile",
            metavar="FILE",
            help="Write what was measured to this file, replacing it, for --profile-use. --profile is short for it.",
        ),
    ] = None,
    profile_merge: Annotated[
        bool, typer.Option("--profile-merge", help="Add to what the file of --profile-generate holds.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON row per instance.")] = False,
) -> None:
    """Run a program: once with KEY=VALUE arguments, or for each row of a JSON Lines file.

    Input rows are JSON objects of arguments, one to a line. Strict JSON: for a float that is NaN or infinite, write
    "NaN" or "Infinity" in quotes.

    A file is read before its first row runs: rows that begin alike run side by side, wherever they stand. A file may
    have any size: beyond some 170,000 rows of 1 kB it is read and put in order in parts of so many. What comes from
    standard input or a pipe runs as it comes, and at most 512 rows at a time are put in order.

    Output rows are {"index", "value", "variables", "usage", "error"}. Each is written as soon as it is finished, so
    they are not in the order of the input: "index" counts its rows from 0, without blank lines. To sort them:

    jq -s -c 'sort_by(.index)[]' OUT.jsonl

    With --schedule all rows are read first, and run in the order and in the blocks that lmc schedule found for these
    rows and this plan; a schedule of others is refused.

    What @lmc.jit(…) says in the file (target, seed, profile …) holds where no option says otherwise.

    --profile-generate writes how long outputs were, which ways conditions took, how many rounds loops had, what was
    cached and how long it took: at the end, also where rows fail or the run is interrupted. --profile-use plans by
    that, here or in lmc compile; both may name one file.

    A row that fails does not stop the others; then the exit code is 1. Ctrl-C (exit code 130) and SIGTERM (143) keep
    every row that is finished; a second one ends lmc at once.
    """
    if profile_merge and profile is None:
        raise UsageError(
            "--profile-merge goes with --profile-generate", remedy="name the file: --profile-generate FILE"
        )
    if scheduled is not None and (data is None or scheduled == data == STANDARD_INPUT):
        cause = "is for the rows of a file" if data is None else "and --input can't both be standard input"
        raise UsageError(f"--schedule {cause}", remedy="name the file of the rows: --input DATA.jsonl")
    for option, path in (("-o", output), ("--profile-generate", profile)):
        for source in (program_file(named) for named in (program, functions) if named is not None):
            check_output(path, option, program=source)
        check_output(path, option, input=data, schedule=scheduled)
    check_output(output, profile=profile_use)
    out = sys.stdout
    sink = Sink(out, as_json=as_json, many=data is not None)
    with prints_to_stderr(), Interrupts() as interrupts:
        try:
            wish = Wish(target_spec(model), dtype, _kv_tokens(kv_tokens), deterministic, device, prefill_tokens)
            given = Given(wish, seed, timeout=timeout, profile=profile_use, order_sections=order_sections)
            runner, signature = _load(program, given, functions)
            parts, layout = _parts(ArgumentReader(signature), assignments or [], data, scheduled, runner.place)
            sink.profile = profile_file(profile, runner.program, (data, output, scheduled), merge=profile_merge)
            with opened(output, out) as sink.file, _progress(data) as step, sink.profiled():
                sink.run(runner.run_rows(parts, layout), interrupts, step)
        except KeyboardInterrupt:
            print_note(sink.interrupted())
            raise typer.Exit(interrupts.exit_code) from None
    print_note(sink.summary())
    if sink.failed:
        raise typer.Exit(FAILURE)


def _parts(
    reader: ArgumentReader, assignments: list[str], data: str | None, scheduled: str | None, place: schedule.Place
) -> tuple[Iterable[Part], Layout | None]:
    """The rows in parts, and the layout of their schedule where they have one.

    The first row is read now, so that a file that is no good costs nothing.
    """
    fixed = reader.assignments(assignments)
    if data is None:
        return [[(0, ((), reader.complete(fixed)))]], None
    rows = reader.rows(data, fixed)
    if scheduled is None:
        return parts_of(data, rows), None
    part, layout = schedule.in_order(scheduled, rows, place, data)
    return [part], layout


def _load(name: str, given: Given, functions: str | None) -> tuple[Runner | SavedRunner, Signature]:
    if is_saved(name):
        saved = SavedRunner.load(name, given.for_saved(name), None if functions is None else load_program(functions))
        return saved, saved.signature
    if functions is not None:
        raise UsageError("--program goes with a saved plan", remedy="leave it out: a program has its functions")
    function = load_program(name)
    return given.runner(function), Signature.of(function)


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
