"""``lmc schedule``: the order in which the rows of a file run."""

from __future__ import annotations

from typing import Annotated

import typer

from lmc import driver
from lmc.cli.options import DisabledPasses, OrderSections, ProfileUse
from lmc.cli.output import MODELS, check_output, print_note, prints_to_stderr, target_spec, write_artifact
from lmc.ir.wording import with_count


def schedule_command(
    program: Annotated[
        str,
        typer.Argument(
            metavar="PROGRAM.py[:name]", help="The file, and the program in it; or a saved plan (.json, .lmir)."
        ),
    ],
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Arguments that are the same for every row.")
    ] = None,
    *,
    data: Annotated[str, typer.Option("--input", metavar="DATA|-", help="The rows; - is standard input.")],
    model: Annotated[str | None, typer.Option(help=f"Target: {MODELS}.")] = None,
    kv_tokens: Annotated[
        int | None,
        typer.Option(metavar="TOKENS", min=1, help="Size of the KV pool; unlimited by default."),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Requests that run together.")] = 256,
    profile: ProfileUse = None,
    order_sections: OrderSections = None,
    disabled_passes: DisabledPasses = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to this file, replacing it.")
    ] = None,
) -> None:
    """Print the schedule of a batch: the order of the rows, their shared prefixes, and the size of the blocks.

    A schedule is JSON Lines: a header with the requests of an instance, then a line [row, shared characters, values]
    for each row, in the order in which they start. No model is loaded. lmc simulate estimates its cache hits;
    lmc run --schedule executes it. The header identifies the plan and the rows.
    """
    check_output(output, program=driver.program_file(program), input=data, profile=profile)
    given: driver.GivenOptions = {
        "target": target_spec(model),
        "profile": profile,
        "order_sections": order_sections,
        "disabled_passes": disabled_passes,
    }
    room = driver.schedule.Room(driver.schedule.HOLDS_ALL if kv_tokens is None else kv_tokens, batch)
    with prints_to_stderr():
        found = driver.schedule.run(program, data, given, room, assignments or [])
    write_artifact("".join(driver.schedule.schedule_lines(found)), output)
    if output is not None:
        how = "reading and writing mixed, in" if found.layout.order == "mixed" else "in"
        print_note(f"{with_count(len(found.entries), 'row')} {how} blocks of {found.layout.block:,}")
