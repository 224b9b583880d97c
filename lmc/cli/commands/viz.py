"""``lmc viz``: a compiled program as a page, as data or as a graph."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.commands.compile import Level
from lmc.cli.options import OrderSections, ProfileUse, program_option
from lmc.cli.output import MODELS, check_output, print_note, prints_to_stderr, target_spec, write_artifact


class Format(StrEnum):
    """The form in which the program is written (``driver.view.FORMATS``)."""

    HTML = "html"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"


def viz_command(
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="PROGRAM.py[:name]",
            help="The file, and the program in it; or a saved plan (.json, .lmir), schedule or timeline.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments that are the same for every row.")
    ] = None,
    *,
    data: Annotated[
        str | None, typer.Option("--input", metavar="DATA|-", help="The rows of a batch, to show its plan as well.")
    ] = None,
    timeline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Show the run that lmc run --timeline recorded beside the plan."),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD.lmir NEW.lmir", help="Compare two modules instead."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="The form of the output.")] = Format.HTML,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file, replacing it.")
    ] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Replace all texts by their lengths.")] = False,
    level: Annotated[Level | None, program_option("level", "-O")] = None,
    model: Annotated[str | None, typer.Option(help=f"Target: {MODELS}.")] = None,
    kv_tokens: Annotated[
        int | None,
        typer.Option(metavar="TOKENS", min=1, help="Size of the KV pool; unlimited by default."),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Requests that run together.")] = 256,
    profile: ProfileUse = None,
    order_sections: OrderSections = None,
) -> None:
    """Write a compiled program as a page (HTML), as data (JSON, lmc-view), or as a graph in Mermaid or DOT.

    The page is one file that loads nothing: it can be mailed, attached, and opened from disk. It shows the data.
    The data hold the module after each pass, remarks and breaks, and the costs of calls and lines; with --input also
    the schedule of the rows, their simulation, and the tree of their prompts, with the figures of lmc schedule and
    lmc simulate. A graph shows the final module, folded to 200 nodes for Mermaid and 2,000 for DOT.

    With --timeline the data also hold the requests, tools and steps of a run, and the measured costs of its calls.
    Without --input the rows are those of the run, if their file is still there and has not changed. A timeline of
    another program, plan or version is refused.

    Imports the file, which runs its top-level code; name only files that you trust. Calls neither the program nor its
    tools. The source files that a saved plan names are not read.
    """
    if diff is not None and diff[1].startswith("-"):
        raise driver.UsageError("--diff has one module, and compares two", remedy="give --diff OLD.lmir NEW.lmir")
    if (program is None) == (diff is None):
        what = "there is no program" if program is None else "--diff compares two modules, and no program"
        raise driver.UsageError(what, remedy="name a program, or give --diff OLD.lmir NEW.lmir")
    if diff is not None:
        given = {
            "--input": data,
            "--timeline": timeline,
            "-O": level,
            "--model": model,
            "--kv-tokens": kv_tokens,
            "--profile-use": profile,
        }
        wrong = next((name for name, value in given.items() if value is not None), None)
        if wrong is not None:
            raise driver.UsageError(f"{wrong} is for a program, not for --diff", remedy="leave it out")
        check_output(output, program=diff[0], input=diff[1])
        view = driver.view.compare(*diff, redact=redact)
    else:
        assert program is not None
        check_output(output, program=driver.program_file(program), input=data, profile=profile, timeline=timeline)
        options = {
            "target": target_spec(model),
            "level": None if level is None else f"O{level.value}",
            "profile": profile,
            "order_sections": order_sections,
        }
        room = driver.view.Room(driver.schedule.HOLDS_ALL if kv_tokens is None else kv_tokens, batch)
        with prints_to_stderr():
            view = driver.view.run(
                program, options, assignments or [], data=data, timeline=timeline, room=room, redact=redact
            )
    for notice in view.notices:
        print_note(f"note: {notice}")
    write_artifact(driver.view.FORMATS[form.value](view), output)
