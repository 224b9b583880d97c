"""The command line: commands, exit codes (0 done, 1 failure, 2 usage) and error output."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.commands.calibrate import calibrate_command
from lmc.cli.commands.compile import compile_command
from lmc.cli.commands.cost import cost_command
from lmc.cli.commands.grammar import grammar_command
from lmc.cli.commands.journal import journal_command
from lmc.cli.commands.opt import OptCommand, opt_command
from lmc.cli.commands.run import run_command
from lmc.cli.commands.schedule import schedule_command
from lmc.cli.commands.serve import serve_command
from lmc.cli.commands.simulate import simulate_command
from lmc.cli.commands.targets import targets_command
from lmc.cli.commands.view import view_command
from lmc.cli.commands.viz import viz_command
from lmc.cli.output import forget, print_error, write_out

FAILURE = 1
USAGE = 2

app = typer.Typer(
    name="lmc",
    help="An optimizing compiler for programs that call language models.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("compile", no_args_is_help=True)(compile_command)
app.command("run", no_args_is_help=True)(run_command)
app.command("grammar", no_args_is_help=True)(grammar_command)
app.command("schedule", no_args_is_help=True)(schedule_command)
app.command("simulate", no_args_is_help=True)(simulate_command)
app.command("calibrate", no_args_is_help=True)(calibrate_command)
app.command("viz", no_args_is_help=True)(viz_command)
app.command("view", no_args_is_help=True)(view_command)
app.command("journal", no_args_is_help=True)(journal_command)
app.command("cost")(cost_command)
app.command("serve")(serve_command)
app.command("targets")(targets_command)
app.command("opt", cls=OptCommand, no_args_is_help=True)(opt_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        write_out(f"lmc {driver.__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of lmc itself."""


def main() -> None:
    """Run the command line of this process and exit."""
    # Whoever started the process may have closed them.
    if not sys.stdin:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if not sys.stdout:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    try:
        app(prog_name="lmc")  # as completion scripts call it, whatever the process is
    except driver.LmcError as error:
        print_error(error)
        sys.exit(USAGE if isinstance(error, driver.UsageError) else FAILURE)
    except OSError as error:  # where help, which typer writes, finds no room
        if error.errno != errno.ENOSPC:
            raise
        forget(sys.stdout)
        print_error(driver.LmcError(str(error), remedy="make room"))
        sys.exit(FAILURE)
