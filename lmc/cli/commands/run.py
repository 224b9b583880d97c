"""``lmc run``: run a program, once or over the rows of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from lmc import driver
from lmc.cli.interrupts import Interrupts
from lmc.cli.options import (
    BudgetCalls,
    BudgetTokens,
    BudgetUsd,
    Deterministic,
    Device,
    DisabledPasses,
    Dtype,
    KvTokens,
    OrderSections,
    PrefillTokens,
    Seed,
    Timeout,
    budget_of,
    kv_tokens_of,
)
from lmc.cli.output import MODELS, check_output, print_note, prints_to_stderr, target_spec
from lmc.cli.results.progress import show_progress
from lmc.cli.results.rows_file import RowsFile, is_stream, record_path
from lmc.cli.results.sink import RowsStream, Sink, check_distinct, profile_file

FAILURE = 1
InFlight = Literal["repeat", "fail"]


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
        typer.Option(
            "--input",
            metavar="DATA|-",
            help="Run for each row of a file (.jsonl, .csv, .tsv, .json); - is standard input.",
        ),
    ] = None,
    scheduled: Annotated[
        str | None,
        typer.Option("--schedule", metavar="FILE", help="With --input, start the rows as lmc schedule -o FILE says."),
    ] = None,
    model: Annotated[str | None, typer.Option(help=f"Target: {MODELS}.")] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT.jsonl",
            help="Write a row per instance to this file, replacing it once the first row succeeds.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the file of -o, or the journal: run the rows that they do not hold."),
    ] = False,
    journal: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Record requests and calls of tools, so that --resume repeats none of them."),
    ] = None,
    no_journal: Annotated[
        bool, typer.Option("--no-journal", help="Keep no journal beside the file of -o, where a target keeps one.")
    ] = False,
    replay: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Answer requests and tools from a journal alone: no model, no network."),
    ] = None,
    in_flight: Annotated[
        InFlight | None,
        typer.Option(help="With --resume, requests that left and have no result are sent again, or fail (repeat)."),
    ] = None,
    retry_writes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="With --resume, call this tool again where its call began and did not end; may be repeated.",
        ),
    ] = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    budget_calls: BudgetCalls = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Write the rows in input order: a file at the end, a stream as it can.")
    ] = False,
    seed: Seed = None,
    dtype: Dtype = None,
    kv_tokens: KvTokens = None,
    deterministic: Deterministic = None,
    device: Device = None,
    prefill_tokens: PrefillTokens = None,
    timeout: Timeout = None,
    functions: Annotated[
        str | None,
        typer.Option(
            "--program",
            metavar="PROGRAM.py[:name]",
            help="With a saved plan: the program with its functions and classes.",
        ),
    ] = None,
    profile_use: Annotated[
        str | None,
        typer.Option("--profile-use", metavar="FILE", help="Plan by a profile of earlier runs, as lmc compile does."),
    ] = None,
    order_sections: OrderSections = None,
    disabled_passes: DisabledPasses = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile-generate",
            "--profile",
            metavar="FILE",
            help="Write a profile of this run, replacing the file, for --profile-use. Short form: --profile.",
        ),
    ] = None,
    profile_merge: Annotated[
        bool, typer.Option("--profile-merge", help="Add to the file of --profile-generate.")
    ] = False,
    timeline: Annotated[
        str | None,
        typer.Option(
            "--timeline",
            metavar="FILE",
            help="Record requests, tools and steps with their times, replacing the file: a Chrome trace, for lmc viz.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON row per instance.")] = False,
) -> None:
    """Run a program: once with KEY=VALUE arguments, or for each row of a file.

    Input rows are JSON objects of arguments, one to a line; standard input and pipes have this form. Strict JSON: for a
    float that is NaN or infinite, write "NaN" or "Infinity" in quotes. A .json file may be an array of such objects. A
    .csv or .tsv file has a header row with the names of the arguments, and its cells are read as KEY=VALUE words are.

    A file is read before its first row runs, so that rows with a common beginning run side by side. A file may
    have any size: beyond some 170,000 rows of 1 kB it is read and scheduled in chunks of that size. Rows from
    standard input or a pipe run as they arrive; at most 512 at a time are scheduled together.

    Output rows are {"index", "value", "variables", "usage", "error"}. Each is written as soon as it is finished, in any
    order: "index" counts the input rows from 0, without blank lines. --ordered writes them in input order.

    OUT.jsonl is replaced when the first row succeeds; a run that fails before leaves it as it was. OUT.jsonl.meta.json
    beside it describes the run: program, model, options and inputs. After an interruption, the same command with
    --resume runs the rows that OUT.jsonl does not hold; it refuses another program, model, option or input. Rows that
    failed are kept. To run them again, delete them first:

    jq -c 'select(.error == null)' OUT.jsonl > KEPT && mv KEPT OUT.jsonl

    --journal keeps a journal: each request and each call of a tool is on disk before it leaves, its result before
    anything uses it. After a crash, --resume sends no finished request again, and completes OUT.jsonl from the journal.
    Requests that were in flight may have been billed: they are reported, then sent again. A tool that writes is not
    called again without --retry-writes. --replay answers a run from its journal alone. lmc journal FILE shows one.

    --budget-usd, --budget-tokens and --budget-calls bound what the run may cost, failed attempts included. A request
    reserves its worst case before it leaves, and waits while that does not fit. Where nothing is under way and it still
    does not fit, its row and all remaining ones fail and are not written: --resume with a larger budget runs them.

    With --schedule, all rows are read first, and run in the order and in the blocks that lmc schedule found for these
    rows and this plan; a schedule of others is refused.

    Options override those of @lmc.jit(…) in the file (target, seed, profile …).

    --profile-generate writes output lengths, branch counts, loop counts, cache hits and times
    at the end of the run, also where rows fail or the run is interrupted. --profile-use plans by
    it, here or in lmc compile; both may name one file.

    --timeline writes while the run goes on: for each request its times, tokens and reason for waiting, calls of tools,
    and steps of the local engine; no texts. Perfetto and chrome://tracing open the file.

    A row that fails does not stop the others; then the exit code is 1, and the first errors and their causes are
    printed. Ctrl-C (exit code 130) and SIGTERM (143) keep every row that is finished; a second one ends lmc at once.
    """
    if profile_merge and profile is None:
        raise driver.UsageError(
            "--profile-merge goes with --profile-generate", remedy="name the file: --profile-generate FILE"
        )
    if scheduled is not None and (data is None or scheduled == data == driver.STANDARD_INPUT):
        cause = "is for the rows of a file" if data is None else "and --input can't both be standard input"
        raise driver.UsageError(f"--schedule {cause}", remedy="name the file of the rows: --input DATA.jsonl")
    journaling = _Journaling(journal, replay, no_journal, driver.Resumption(in_flight or "repeat", retry_writes or ()))
    journaling.check(output, resume=resume)
    named = [each for each in (program, functions) if each is not None]
    written = {"--profile-generate": profile, "--timeline": timeline, "--journal": journal}
    _check_files(named, output, written, input=data, schedule=scheduled)
    check_output(output, profile=profile_use)
    check_output(timeline, "--timeline", profile=profile_use)
    out = sys.stdout
    others = (data, output, scheduled, None if output is None else record_path(output))
    sink = Sink(out, as_json=as_json, many=data is not None, ordered=ordered)
    with prints_to_stderr(), Interrupts() as interrupts:
        try:
            sink.journal = journaling.replayed()
            given: driver.GivenOptions = {
                "target": journaling.target(sink.journal, target_spec(model)),
                "dtype": dtype,
                "kv_tokens": kv_tokens_of(kv_tokens),
                "deterministic": deterministic,
                "device": device,
                "prefill_tokens": prefill_tokens,
                "seed": seed,
                "timeout": timeout,
                "budget": budget_of(budget_usd, budget_tokens, budget_calls),
                "profile": profile_use,
                "order_sections": order_sections,
                "disabled_passes": disabled_passes,
            }
            rows_file = None if output is None or is_stream(output) else RowsFile(output, ordered=ordered)
            runner, signature = _load(program, given, functions, is_replay=sink.journal is not None)
            parts, layout = _parts(driver.ArgumentReader(signature), assignments or [], data, scheduled, runner.place)
            sink.profile = profile_file(profile, runner.program, others, merge=profile_merge)
            check_distinct("--timeline", timeline, others)
            check_distinct("--timeline", timeline, [profile], "the file of --profile-generate")
            journaling.check_distinct([*others, profile, timeline])
            with ExitStack() as stack:
                kept = journaling.path(runner.options, _target(runner), None if data is None else rows_file)
                if kept is not None:
                    sink.journal = driver.open_journal(kept)
                if sink.journal is not None:
                    stack.enter_context(sink.journal)
                record = (
                    None if rows_file is None and kept is None else _record(runner, named, assignments, data, replay)
                )
                if rows_file is not None and record is not None:
                    sink.rows_file = stack.enter_context(rows_file)
                    replaces = (
                        kept is not None
                        and sink.journal is not None
                        and driver.continues(sink.journal, record, runner.options)
                    )
                    sink.done = rows_file.resume(record, replaces=replaces) if resume else rows_file.start(record)
                elif output is not None:
                    sink.stream = stack.enter_context(RowsStream(output, out, interrupts))
                if kept is not None and record is not None:
                    resumed = journaling.resumption if resume else None
                    sink.begin_journal(record, runner.options, _target(runner), resumed)
                progress = stack.enter_context(show_progress(data, len(sink.done)))
                if timeline is not None:
                    header = driver.timeline_header(runner.program, named, _target(runner), data)
                    sink.timeline = stack.enter_context(driver.TimelineFile(timeline, header))
                stack.enter_context(sink.profiled())
                left = sink.noted(_without(parts, sink.done), None if replay else _estimate(runner))
                sink.run(runner.run_rows(left, layout, sink.timeline, sink.journal), interrupts, progress)
                if sink.journal is not None and not sink.blocked:
                    sink.journal.finish()
        except KeyboardInterrupt:
            print_note(sink.interrupted())
            _print_notes(sink)
            raise typer.Exit(interrupts.exit_code) from None
    print_note(sink.summary())
    _print_notes(sink)
    if sink.failures.count or sink.failed_before or sink.blocked:
        raise typer.Exit(FAILURE)


@dataclass(frozen=True)
class _Journaling:
    """The options about journals."""

    journal: str | None
    replay: str | None
    no_journal: bool
    resumption: driver.Resumption

    def check(self, output: str | None, *, resume: bool) -> None:
        """Raise ``UsageError`` for options that contradict each other."""
        if resume and self.journal is None and (output is None or is_stream(output)):
            raise driver.UsageError(
                "--resume goes with -o OUT.jsonl or --journal FILE", remedy="name the file of the earlier run"
            )
        if self.replay is not None and (self.journal is not None or resume):
            raise driver.UsageError(
                "--replay reads a journal, and writes none", remedy="leave out --journal and --resume, or --replay"
            )
        if self.journal is not None and self.no_journal:
            raise driver.UsageError("--no-journal contradicts --journal", remedy="leave out one of them")
        if self.resumption != driver.Resumption() and not resume:
            raise driver.UsageError("--in-flight and --retry-writes go with --resume", remedy="add --resume")

    def check_distinct(self, others: Iterable[str | None]) -> None:
        """Raise ``UsageError`` where a journal is another file of the run."""
        for option, path in (("--journal", self.journal), ("--replay", self.replay)):
            check_distinct(option, path, others, "another file of this run")

    def replayed(self) -> driver.RunJournal | None:
        """The journal of ``--replay``, open."""
        return None if self.replay is None else driver.replay_journal(self.replay)

    def target(self, replayed: driver.RunJournal | None, given: str | None) -> str | driver.Target | None:
        """The target of the run: of a replay, that of the journal with its settings, unless another one is given."""
        return given if replayed is None or given is not None else driver.replayed_target(replayed)

    def path(self, options: driver.Options, target: driver.Target, rows_file: RowsFile | None) -> str | None:
        """The journal to write: that of an option, or one beside the file of rows where requests cost money."""
        if self.no_journal or self.replay is not None:
            return None
        named = self.journal or options.journal
        if named is not None or rows_file is None:
            return None if named is None else os.fspath(named)
        return f"{rows_file.shown}{driver.JOURNAL_SUFFIX}" if driver.journals_by_default(target) else None


def _check_files(named: list[str], output: str | None, written: Mapping[str, str | None], **read: str | None) -> None:
    """Raise ``UsageError`` for files that the command would write over ones that it reads, or to standard output."""
    for option, path in {"-o": output, **written}.items():
        for source in map(driver.program_file, named):
            check_output(path, option, program=source)
        check_output(path, option, **read)
    for option, path in written.items():
        if path == "-":
            raise driver.UsageError(f"{option} can't be standard output", remedy="name a file")


def _print_notes(sink: Sink) -> None:
    if sink.rows_file is not None and sink.rows_file.note is not None:
        print_note(sink.rows_file.note)
    if sink.timeline is not None and sink.timeline.note is not None:
        print_note(sink.timeline.note)
    for line in sink.failures.lines() if sink.many else ():
        print_note(line)


def _record(
    runner: driver.Runner | driver.SavedRunner,
    named: list[str],
    assignments: list[str] | None,
    data: str | None,
    replayed: str | None,
) -> driver.RunRecord:
    options = {"seed": runner.options.seed, "order_sections": runner.options.order_sections}
    return driver.record_run(
        runner.program,
        named,
        _target(runner),
        options=options,
        arguments=assignments or [],
        rows=data,
        asks=replayed is None,
    )


def _target(runner: driver.Runner | driver.SavedRunner) -> driver.Target:
    return runner.target if isinstance(runner, driver.SavedRunner) else runner.target()


def _estimate(runner: driver.Runner | driver.SavedRunner) -> driver.cost.RunEstimate | None:
    """Return the estimate of a run on a hosted model."""
    if isinstance(runner, driver.SavedRunner) or runner.target().remote is None:
        return None
    return driver.cost.RunEstimate(runner)


def _without(parts: Iterable[driver.Part], done: set[int]) -> Iterable[driver.Part]:
    """The rows that are not ``done``."""
    return ([entry for entry in part if entry[0] not in done] for part in parts) if done else parts


def _parts(
    reader: driver.ArgumentReader,
    assignments: list[str],
    data: str | None,
    scheduled: str | None,
    place: driver.schedule.PlanLookup,
) -> tuple[Iterable[driver.Part], driver.Layout | None]:
    """The rows in parts, and the layout of their schedule where they have one.

    The first row is read now, so that a file that is no good costs nothing.
    """
    fixed = reader.assignments(assignments)
    if data is None:
        return [[(0, ((), reader.complete(fixed)))]], None
    rows = reader.rows(data, fixed)
    if scheduled is None:
        return driver.parts_of(data, rows), None
    part, layout = driver.schedule.in_order(scheduled, rows, place, data)
    return [part], layout


def _load(
    name: str, given: driver.GivenOptions, functions: str | None, *, is_replay: bool
) -> tuple[driver.Runner | driver.SavedRunner, driver.Signature]:
    if driver.is_saved(name):
        options = driver.options_for_saved(name, given)
        if not is_replay:
            driver.target_of_run(options)
        saved = driver.SavedRunner.load(name, options, None if functions is None else driver.load_program(functions))
        return saved, saved.signature
    if functions is not None:
        raise driver.UsageError("--program goes with a saved plan", remedy="leave it out: a program has its functions")
    function = driver.load_program(name)
    runner = driver.runner_for(function, given)
    if not is_replay:
        driver.target_of_run(runner.options)  # before the target is recorded
    return runner, driver.Signature.of(function)
