"""``lmc cost``: the cost of programs on rows, before they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.commands.compile import Level
from lmc.cli.options import DisabledPasses, OrderSections, ProfileUse, program_option
from lmc.cli.output import MODELS, check_output, print_note, prints_to_stderr, target_spec, write_artifact

OVER_LIMIT = 3
NOT_WHOLE = 4


class CostFormat(StrEnum):
    """The form of a cost report."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    SARIF = "sarif"


def cost_command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PROGRAM.py[:name]]... [KEY=VALUE]...",
            help="Programs, and arguments that are the same for every row; without a program [[tool.lmc.cost]].",
        ),
    ] = None,
    *,
    data: Annotated[
        str | None,
        typer.Option("--input", metavar="DATA|-", help="The rows, as lmc run takes them; - is standard input."),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="MODEL", help=f"Target, may be repeated: {MODELS}."),
    ] = None,
    profile: ProfileUse = None,
    level: Annotated[Level | None, program_option("level", "-O")] = None,
    order_sections: OrderSections = None,
    disabled_passes: DisabledPasses = None,
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="FILE", help="Compare with this baseline.")
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update-baseline", help="Write the baseline: --baseline, else lmc-cost.json of the project."),
    ] = False,
    forms: Annotated[
        list[CostFormat] | None,
        typer.Option("--format", help="The form of the report (table); may be repeated, each with its -o."),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option("-o", "--output", metavar="FILE|-", help="The file of each --format; - is standard output."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate-usd-per-hour", metavar="USD", help="The price of this machine, for local models."),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Exit with 4 where a figure is unpriced, unbounded, or not of --profile-use."),
    ] = False,
) -> None:
    """Report calls, tokens and dollars of programs on rows, before they run: per call and line, as ranges.

    Each figure is expected and at most so much; it is in the range that a run measures, failed attempts aside. Nothing
    is sent: lmc cost needs no key, no network and no weights of models. Prices are those of genai-prices, and of
    [tool.lmc.prices]. Without a profile of earlier runs, expected outputs are those of the program or half of
    max_tokens; with --profile-use they are measured ones.

    Seconds of a local model are simulated with the constants that lmc calibrate has measured on this machine, and
    --rate-usd-per-hour makes dollars of them; without a calibration there are none. A baseline has neither.

    With several models, the report has each, and compares them. Without a program, it has the entries of
    [[tool.lmc.cost]] in pyproject.toml: program, input, model (one or a list), profile.

    What is not known is never 0: a price that is missing is unpriced, a figure without a bound is unbounded, and totals
    that leave out what is behind a graph break are "at least" so much. A token count with ~ is estimated.

    --baseline compares with committed figures: a change of prices is shown apart from that of the programs. Limits are
    those of [tool.lmc.budget], and for one program those of its entry in [[tool.lmc.cost]].
    --update-baseline writes the baseline, and then checks all limits but those on increases.

    Imports the file, which runs its top-level code; name only files that you trust. Calls neither the program nor its
    tools. Exit codes: 1 a failure, 2 wrong usage, 3 a limit is not kept, 4 with --strict.
    """
    programs = [word for word in words or [] if not _is_assignment(word)]
    assignments = tuple(word for word in words or [] if _is_assignment(word))
    pairs = _paired([form.value for form in forms or [CostFormat.TABLE]], outputs or [])
    specs = tuple(target_spec(each) for each in models or []) or (None,)
    with prints_to_stderr():
        if programs:
            entries = [driver.cost.CostEntry(each, assignments, data, specs, profile) for each in programs]
        else:
            _check_none({"KEY=VALUE": assignments, "--input": data, "--model": models, "--profile-use": profile})
            entries = [
                driver.cost.named_models(entry, tuple(map(target_spec, entry.models)))
                for entry in driver.cost.entries_of_project()
            ]
        stored = driver.cost.baseline_path(baseline)
        for option, path in [*(("-o", path) for _, path in pairs), *([("--baseline", stored)] if update else [])]:
            for entry in entries:
                read = {"program": driver.program_file(entry.program), "input": entry.data, "profile": entry.profile}
                check_output(path, option, **read)
        for _, path in pairs:
            if path is not None and Path(path).resolve() == Path(stored).resolve():
                raise driver.UsageError(
                    f"{path} is the baseline, which would be gone", remedy="name another file for -o"
                )
        checked = driver.cost.run(
            entries,
            {
                "level": None if level is None else f"O{level.value}",
                "order_sections": order_sections,
                "disabled_passes": disabled_passes,
            },
            driver.cost.rate_of(rate),
            baseline=None if update else baseline,
            is_complete=not programs,
            compares=not update,
        )
        if update:
            write_artifact(driver.cost.updated_baseline(checked.report, stored, is_complete=not programs), stored)
    for form, path in pairs:
        write_artifact(driver.cost.FORMATS[form](checked), path)
    failed = checked.failed_limits
    for line in failed:
        print_note(f"limit: {line}")
    if failed:
        raise typer.Exit(OVER_LIMIT)
    if not strict:
        return
    weak = driver.cost.weaknesses(checked.report)
    for line in weak:
        print_note(f"strict: {line}")
    if weak:
        raise typer.Exit(NOT_WHOLE)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()


def _paired(forms: list[str], outputs: list[str]) -> list[tuple[str, str | None]]:
    """Return each format with its file, None for standard output. Raises ``UsageError``."""
    if len(outputs) > len(forms):
        raise driver.UsageError(
            f"there are {len(outputs)} files for {len(forms)} formats", remedy="give a --format with each -o"
        )
    files = [*(None if each == "-" else each for each in outputs), *[None] * (len(forms) - len(outputs))]
    if files.count(None) > 1:
        raise driver.UsageError("several formats go to standard output", remedy="give a file for each: -o FILE")
    named = [Path(each).resolve() for each in files if each is not None]
    if len({*named}) < len(named):
        raise driver.UsageError("two formats go to one file", remedy="name a file for each: -o FILE")
    return list(zip(forms, files, strict=True))


def _check_none(given: dict[str, object]) -> None:
    """Raise ``UsageError`` for options of a program that is not named."""
    for name, value in given.items():
        if value:
            raise driver.UsageError(
                f"{name} is for a program, and none is named",
                remedy="name it: lmc cost PROGRAM.py …; entries of [[tool.lmc.cost]] have their own",
            )
