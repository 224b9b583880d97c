"""``lmc opt``: run passes over ``.lmir`` text."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from lmc import driver
from lmc.cli.commands.compile import Level
from lmc.cli.options import ProfileUse
from lmc.cli.output import MODELS, check_output, print_note, target_spec, write_artifact, write_out

_PRINT_AFTER = "--print-after"


class OptCommand(TyperCommand):
    """Lets ``--print-after`` stand alone: then it means every pass."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        every = f"{_PRINT_AFTER}={driver.opt.ALL_PASSES}"
        return super().parse_args(ctx, [every if argument == _PRINT_AFTER else argument for argument in args])


def _print_passes(wanted: bool) -> None:
    if wanted:
        write_out("".join(f"{line}\n" for line in driver.opt.list_passes()))
        raise typer.Exit


def opt_command(
    file: Annotated[str, typer.Argument(metavar="FILE.lmir|-", help="The module; - reads standard input.")],
    *,
    passes: Annotated[
        str | None, typer.Option(metavar="a,b{option=1}", help="Run these passes, in this order.")
    ] = None,
    level: Annotated[Level | None, typer.Option("-O", help="Run the passes of a level: -O0, -O1 or -O2.")] = None,
    model: Annotated[
        str | None, typer.Option(help=f"Whose tokens passes may count: {MODELS}. Without it they estimate.")
    ] = None,
    profile: ProfileUse = None,
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Write it to a file.")] = None,
    print_after: Annotated[
        str | None,
        typer.Option(_PRINT_AFTER, metavar="[=PASS]", help="Print the module after every pass, or after one."),
    ] = None,
    remarks: Annotated[bool, typer.Option("--remarks", help="Print what each pass did and what stopped it.")] = False,
    timing: Annotated[bool, typer.Option("--timing", help="Print the time of each pass and its verifier.")] = False,
    verify_only: Annotated[bool, typer.Option("--verify-only", help="Print nothing, run nothing: only check.")] = False,
    _list_passes: Annotated[
        bool, typer.Option("--list-passes", callback=_print_passes, is_eager=True, help="List the passes.")
    ] = False,
) -> None:
    """Run passes over a module in text form and print the result.

    Without passes: check the module and print it as lmc writes it. Remarks, times and the modules of --print-after go
    to standard error.
    """
    chosen = driver.opt.choose_passes(passes, None if level is None else f"O{level.value}", print_after=print_after)
    if verify_only and (chosen.passes or output is not None):
        raise driver.UsageError("--verify-only runs no pass and writes nothing", remedy="leave out one of them")
    check_output(output, profile=profile)
    if profile is not None:
        driver.opt.check_profile_is_used(chosen)
    measured = None if profile is None else driver.read_profile(profile)
    try:
        module = driver.artifacts.read_module(file)
    except driver.opt.ParseError as error:
        print_note(str(error))  # a diagnostic: place, text and caret, remedy
        raise typer.Exit(1) from None
    if verify_only:
        return
    context = driver.opt.context_for(target_spec(model), measured)
    text, result = driver.opt.optimize(module, chosen, context=context, print_after=print_after, on_text=print_note)
    write_artifact(text, output)
    if remarks:
        for line in map(str, result.remarks):
            print_note(line)
    if timing:
        for entry in result.timings:
            print_note(f"{entry.name:<20}{entry.seconds:>10.6f} s, verify {entry.verify_seconds:>10.6f} s")
