"""``lmc journal``: the contents of a journal."""

from __future__ import annotations

from typing import Annotated

import typer

from lmc import driver
from lmc.cli.output import print_note, to_json, write_out


def journal_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The journal of lmc run --journal.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with every request in flight.")] = False,
    forget_texts: Annotated[
        bool, typer.Option("--forget-texts", help="Remove the texts of a run that is over; it can't be replayed then.")
    ] = False,
) -> None:
    """Show what a journal holds: finished and failed requests and calls of tools, those in flight, tokens, blockers.

    A request in flight has left, and its result is not known: a provider may have billed it. A blocker is a call of a
    tool that writes, which began and has no result; --resume stops its row, unless --retry-writes names the tool.
    """
    if forget_texts:
        driver.journal.forget_texts(file)
        print_note(f"the texts of {file} are removed")
        return
    found = driver.journal.summary(file)
    if as_json:
        write_out(to_json(driver.journal.summary_data(found, file)) + "\n")
    else:
        write_out("\n".join(driver.journal.summary_lines(found, file)) + "\n")
