"""``lmc simulate``: simulate the serving of requests, without a model."""

from __future__ import annotations

from typing import Annotated

import typer

from lmc import driver
from lmc.cli.options import Dtype
from lmc.cli.output import print_note, target_spec, to_json, write_out

POLICIES = ("lmc", "next-use", "lru", "lfu", "lpm", "fcfs", "optimal")
"""The policies of the driver, repeated here so that the help of other commands does not load the simulator."""


def simulate_command(
    file: Annotated[
        str, typer.Argument(metavar="SCHEDULE|TRACE.jsonl|-", help="The requests; - reads standard input.")
    ],
    *,
    kv_tokens: Annotated[int, typer.Option(metavar="TOKENS", min=1, help="Size of the KV pool.")],
    policy: Annotated[str, typer.Option(metavar="|".join(POLICIES), help="Order of service and eviction.")] = POLICIES[
        0
    ],
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Requests that run together.")] = 256,
    prefill_tokens: Annotated[
        int, typer.Option(metavar="TOKENS", min=1, help="Prompt tokens computed in a step.")
    ] = 512,
    model: Annotated[
        str | None, typer.Option(help="The local model whose seconds are predicted, by its lmc calibrate.")
    ] = None,
    dtype: Dtype = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Serve the requests of a schedule or a trace with scheduler and cache of the local engine, but without a model.

    A schedule is written by lmc schedule: its requests have their estimated lengths, a token is four characters.

    A trace is JSON Lines, one request to a line: {"id", "tokens", "output", "after", "arrival"}. "tokens" are those of
    the prompt, "output" is the number generated, "after" lists the ids of requests that it waits for, "arrival" is
    in seconds. Optional: "instance", "known", "expected" and "priority" (see lmc/cache/trace.py).

    Policies: lmc serves in the order of the plan and evicts the tokens with the latest known next use; lru and
    lfu evict the least recently or least frequently used; next-use evicts like lmc, but serves requests as they come.
    Other systems: fcfs serves as they come, lpm the longest cached prefix first; both evict the least recently used.
    optimal is lmc with the hits of optimal eviction; its other figures are those of lmc.

    With --model, seconds are predicted with the constants that lmc calibrate has measured on this machine. Else they
    are those of an 8B model on one A100, good to compare policies only.
    """
    report, note = driver.simulate.run(
        file,
        policy=policy,
        kv_tokens=kv_tokens,
        batch=batch,
        prefill_tokens=prefill_tokens,
        given={"target": target_spec(model), "dtype": dtype},
    )
    data = driver.simulate.report_data(report, calibrated=note is None)
    if note is not None:
        print_note(note)
    if as_json:
        write_out(to_json(data) + "\n")
        return
    shown = [_shown(name, value) for name, value in data.items()]
    names, width = [name.replace("_", " ") for name in data], max(map(len, shown))
    indent = max(map(len, names)) + 2
    write_out("".join(f"{name:<{indent}}{text:>{width}}\n" for name, text in zip(names, shown, strict=True)))


def _shown(name: str, value: float | str) -> str:
    if isinstance(value, str | bool):
        return value if isinstance(value, str) else "yes" if value else "no"
    if name == "hit_rate":
        return f"{value:.1%}"
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"
