"""``lmc targets``: the targets there are, and the capabilities of one."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from lmc import driver
from lmc.cli.output import MODELS, print_note, target_spec, to_json, write_out

_WIDEST = 24  # characters of a column that others are aligned to


def targets_command(
    target: Annotated[str | None, typer.Argument(metavar="TARGET", help=f"One of {MODELS}.")] = None,
    *,
    probe: Annotated[bool, typer.Option("--probe", help="Ask a server anew what it can do.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the kinds of targets and those of [tool.lmc.targets]; or the capabilities of one, with dates and sources.

    Prints the settings of a target too: of a key the name of its variable, and whether that is set. A server is asked
    once; the answers are kept in the user's cache.
    """
    if target is None:
        if probe:
            raise driver.UsageError("--probe is for a server", remedy="name it: lmc targets server:URL --probe")
        _print_all(as_json=as_json)
        return
    facts = driver.target_facts.facts_of(target_spec(target) or target, asks=probe)
    if as_json:
        write_out(to_json(facts.to_json(), indent=1) + "\n")
        return
    rows = [("target", facts.target.spec)]
    rows += [(name, _shown(value)) for name, value in facts.settings.items() if value is not None]
    if facts.probe is not None:
        found = facts.probe.probe
        rows.append(("probe", f"{facts.probe.date}: {found.model.name} of {found.model.owner}"))
        rows.append(("token ids", _shown(found.token_ids)))
        rows.append(("echo", _shown(found.echo)))
    if facts.key is not None:
        name, is_set = facts.key
        rows.append(("key", f"{name}, which is {'set' if is_set else 'not set'}"))
    write_out(_table(rows) + "\n")
    known = [
        (name, _shown(value), source.date or "-", source.text) for name, (value, source) in facts.capabilities.items()
    ]
    write_out(_table([("capability", "value", "date", "source"), *known]))
    for basis in sorted({source.basis for _, source in facts.capabilities.values() if source.basis}):
        write_out(f"\nThe data file was checked against: {basis}\n")
    for remark in facts.remarks:
        print_note(f"remark: {remark}")


def _print_all(*, as_json: bool) -> None:
    found = driver.target_facts.all_targets()
    if as_json:
        write_out(to_json([each.to_json() for each in found], indent=1) + "\n")
        return
    rows = [(each.form, each.stands_for or "-", each.where) for each in found]
    write_out(_table([("target", "stands for", "defined in"), *rows]))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "none"
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _table(rows: list[tuple[str, ...]]) -> str:
    """Return rows as aligned columns. A long cell moves the rest of its row only."""
    columns = zip(*rows, strict=True)
    widths = [max((len(cell) for cell in column if len(cell) <= _WIDEST), default=0) for column in columns]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)
