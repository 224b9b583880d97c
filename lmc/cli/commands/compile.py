"""``lmc compile``: compile a program and print the result."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.options import DisabledPasses, OrderSections, ProfileUse, program_option
from lmc.cli.output import (
    MODELS,
    check_output,
    print_note,
    prints_to_stderr,
    target_spec,
    to_json,
    write_artifact,
    write_out,
)


class Emit(StrEnum):
    """The form in which the compiled program is printed."""

    IR = "ir"
    PLAN = "plan"
    GRAMMAR = "grammar"
    SUMMARY = "summary"
    TREE = "tree"


class Level(StrEnum):
    """Optimization levels, as in ``-O2``."""

    NONE = "0"
    SOME = "1"
    ALL = "2"


def compile_command(
    program: Annotated[str, typer.Argument(metavar="PROGRAM.py[:name]", help="The file, and the program in it.")],
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments to compile for.")
    ] = None,
    *,
    data: Annotated[
        str | None,
        typer.Option("--input", metavar="DATA|-", help="Compile for a row of a file: the first, or --row."),
    ] = None,
    row: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --input, the row; counted from 0, as lmc run does.")
    ] = None,
    level: Annotated[Level | None, program_option("level", "-O")] = None,
    emit: Annotated[Emit, typer.Option(help="What to print.")] = Emit.SUMMARY,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Write it to a file.")] = None,
    model: Annotated[str | None, typer.Option(help=f"Target: {MODELS}.")] = None,
    profile: ProfileUse = None,
    order_sections: OrderSections = None,
    disabled_passes: DisabledPasses = None,
    remarks: Annotated[bool, typer.Option("--remarks", help="Print what each pass did and what stopped it.")] = False,
    breaks: Annotated[bool, typer.Option("--breaks", help="Print graph breaks: line, cause and remedy.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Summary, remarks and breaks as JSON.")] = False,
) -> None:
    """Compile a program and show its IR, its plan, its constraints, or a summary.

    Imports the file, which runs its top-level code; name only files that you trust. Calls neither the program nor its
    tools, and loads no model. Options of the command override @lmc.jit(…).
    """
    if row is not None and data is None:
        raise driver.UsageError("--row goes with --input", remedy="name the file that has the row: --input DATA.jsonl")
    check_output(output, program=driver.program_file(program), input=data, profile=profile)
    with prints_to_stderr():
        function = driver.load_program(program)
        reader = driver.ArgumentReader(driver.Signature.of(function))
        fixed = reader.assignments(assignments or [])
        chosen = None if level is None else f"O{level.value}"
        runner = driver.runner_for(
            function,
            {
                "target": target_spec(model),
                "level": chosen,
                "profile": profile,
                "order_sections": order_sections,
                "disabled_passes": disabled_passes,
            },
        )
        arguments = _arguments(reader, fixed) if data is None else _row(reader, fixed, data, row or 0)
        compiled = runner.compile(arguments)
    if as_json:
        if emit is not Emit.SUMMARY:
            raise driver.UsageError(
                "--json is for the summary; IR and plan have one form each", remedy="leave out --json"
            )
        write_artifact(to_json(driver.compiled.summary(compiled), indent=1) + "\n", output)
        return
    if emit is Emit.PLAN:
        with prints_to_stderr():
            plan = driver.artifacts.saved_plan(compiled, arguments)
        write_artifact(driver.artifacts.plan_text(plan), output)
        _print_frozen(driver.artifacts.frozen_lines(plan))
    else:
        write_artifact(_artifact(compiled, emit), output)
    _print_more(compiled, emit, output, remarks=remarks, breaks=breaks)


def _arguments(reader: driver.ArgumentReader, fixed: dict[str, object]) -> tuple[tuple[()], dict[str, object]] | None:
    if not fixed:
        return None
    reader.check_complete(fixed)
    return (), fixed


def _row(
    reader: driver.ArgumentReader, fixed: dict[str, object], data: str, number: int
) -> tuple[tuple[()], dict[str, object]]:
    """Return the arguments of one row, and print its number: rows of other shapes compile to other plans."""
    count = 0
    for count, row in enumerate(reader.rows(data, fixed), start=1):
        if count <= number:
            continue
        if row.error is not None:
            raise row.error
        print_note(f"compiled for row {number} of {data} only; lmc run compiles for others as it meets them")
        return (), dict(row.arguments)
    raise driver.UsageError(f"{data} has no row {number}: it holds {count}", remedy="rows are counted from 0")


def _artifact(compiled: driver.Compiled, emit: Emit) -> str:
    if emit is Emit.IR:
        return driver.artifacts.module_text(compiled.module)
    if emit is Emit.GRAMMAR:
        return to_json(driver.artifacts.grammar(compiled), indent=1) + "\n"
    if emit is Emit.TREE:
        return driver.view.tree_text(compiled)
    return driver.compiled.summary_text(compiled)


def _print_frozen(frozen: list[str]) -> None:
    """Print to standard error the values that the plan is specialised to; it runs for no others."""
    if frozen:
        print_note(
            f"frozen in the plan: {', '.join(frozen)}; for other values compile again, or run the program itself"
        )


def _print_more(compiled: driver.Compiled, emit: Emit, output: str | None, *, remarks: bool, breaks: bool) -> None:
    """Print remarks and breaks: after the summary, or to standard error to keep them out of an artifact."""
    lines: list[str] = []
    if remarks:
        lines += [str(remark) for remark in compiled.remarks] or ["no remarks"]
    if breaks:
        lines += [str(entry) for entry in compiled.breaks] or ["no breaks: captured to the end"]
    if emit is Emit.SUMMARY and output is None:
        write_out("".join(f"{line}\n" for line in lines))
        return
    for line in lines:
        print_note(line)
