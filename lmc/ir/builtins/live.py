"""Records of ``lm.break``: what is live where the captured part of a program ends, as data.

A record is JSON beside the leaves in ``BreakOp.values``: an object whose list ``cells`` holds the live objects,
by number, and whose list ``frames`` says which functions are under way, outermost first. Wherever a value stands,
``{"leaf": i}`` is operand i of the op, ``{"cell": j}`` an object, ``{"host": name}`` an object of the user's program,
which the host function of that name gives. ``lmc.frontend.continuation`` writes and reads the rest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, cast

from lmc.ir.errors import InputError

REFERENCES = ("leaf", "cell", "host")


@dataclass(frozen=True)
class Live:
    """The live-outs of a run at ``lm.break``, for the eager continuation: the record and the values of its leaves."""

    record: str
    values: tuple[Any, ...]


def hosts_of(record: str, leaves: int) -> frozenset[str]:
    """The host functions that a record with so many leaves names.

    Raises ``InputError`` where the text is no record, or refers to a leaf or a cell that is not there.
    """
    try:
        held = json.loads(record)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a record: {error}") from error
    if not isinstance(held, dict):
        raise InputError("a record is an object")
    parts = cast("dict[str, Any]", held)
    cells, frames = parts.get("cells"), parts.get("frames")
    if not isinstance(cells, list) or not isinstance(frames, list) or not frames:
        raise InputError("a record lists cells, and at least one frame")
    bounds = {"leaf": leaves, "cell": len(cast("list[Any]", cells))}
    hosts: set[str] = set()
    waiting: list[Any] = [parts]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += cast("list[Any]", node)
        elif isinstance(node, dict):
            found = cast("dict[str, Any]", node)
            waiting += found.values()
            for name in REFERENCES:
                if name in found:
                    _check(name, found[name], bounds)
            if "host" in found:
                hosts.add(found["host"])
    return frozenset(hosts)


def _check(name: str, found: Any, bounds: dict[str, int]) -> None:
    if name == "host":
        if not isinstance(found, str):
            raise InputError(f"{found!r} is no name of a host function")
    elif type(found) is not int or not 0 <= found < bounds[name]:
        raise InputError(f"there is no {name} {found!r}")
