"""``lmc view``: the page of ``lmc viz``, served on this machine and made again on every save."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmc import driver
from lmc.cli.commands.compile import Level
from lmc.cli.options import OrderSections, ProfileUse, program_option
from lmc.cli.output import MODELS, print_note, target_spec
from lmc.ir.wording import with_article

PORT = 8100


def view_command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE… [KEY=VALUE…]",
            help="Programs (PROGRAM.py[:name]), saved plans (.json, .lmir), schedules, timelines; a program and its"
            " timeline are one page; arguments of every row.",
        ),
    ],
    *,
    data: Annotated[
        str | None, typer.Option("--input", metavar="DATA", help="The rows of a batch, to show its plan as well.")
    ] = None,
    timeline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Show the run that lmc run --timeline records beside the plan."),
    ] = None,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65_535, help="The port; 0 is any that is free.")] = PORT,
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
    """Show compiled programs in the browser, and compile them again on every save.

    Serves the page of lmc viz on http://127.0.0.1:8100, for this machine alone; of several files, a list of pages. A
    page follows its file and the files that it reads: it keeps what is looked at, and shows an error before the last
    good graph. Ctrl-C ends it.

    Imports the files, which runs their top-level code; name only files that you trust. Calls neither programs nor
    their tools, and writes no file.
    """
    fixed = [each for each in arguments if _is_assignment(each)]
    named = [each for each in arguments if each not in fixed]
    kinds = {name: driver.view.kind_of(name) for name in named}
    timelines = [name for name in named if kinds[name] == "timeline"]
    programs = tuple(name for name in named if kinds[name] not in ("timeline", "schedule"))
    if len(named) == 2 and len(timelines) == len(programs) == 1 and timeline is None:
        timeline = timelines.pop()
    files = [name for name in named if name != timeline]
    if not files:
        raise driver.UsageError(
            "there is no file to show", remedy="name a program, a saved plan (.json, .lmir) or a schedule"
        )
    if len(files) > 1:
        single = {
            "--input": data,
            "--timeline": timeline,
            "KEY=VALUE": fixed or None,
            "--profile-use": profile,
            "--order-sections": order_sections,
        }
        wrong = next((name for name, value in single.items() if value is not None), None)
        if wrong is not None:
            raise driver.UsageError(f"{wrong} is for one program, not for {len(files)} files", remedy="name one file")
    if timeline is not None and files[0] in timelines:
        raise driver.UsageError(f"--timeline is for a program, and {files[0]} is a timeline", remedy="leave it out")
    if data == driver.STANDARD_INPUT:
        raise driver.UsageError("--input - can't be read again on a change", remedy="name a file of rows")
    for name in files:
        file = Path(driver.program_file(name))
        if not file.is_file() and name not in timelines:
            kind = "folder" if file.is_dir() else "pipe" if file.is_fifo() else None
            cause = f"there is no file {file}" if kind is None else f"{file} is {with_article(kind)}"
            raise driver.UsageError(
                cause, remedy="name a program (PROGRAM.py or PROGRAM.py:name), a saved plan or a schedule"
            )
    given = {
        "target": target_spec(model),
        "level": None if level is None else f"O{level.value}",
        "profile": profile,
        "order_sections": order_sections,
    }
    room = driver.schedule.HOLDS_ALL if kv_tokens is None else kv_tokens
    jobs = [
        driver.view_server.ViewJob(name, given, fixed, data, name, room, batch, programs)
        if name in timelines
        else driver.view_server.ViewJob(name, given, fixed, data, timeline, room, batch)
        for name in files
    ]
    server = driver.view_server.Server(jobs, port)
    print_note(f"{', '.join(files)}: {server.url} (Ctrl-C ends it)")
    server.run()


def _is_assignment(text: str) -> bool:
    key, is_given, _ = text.partition("=")
    return bool(is_given) and key.isidentifier() and not Path(text).exists()
