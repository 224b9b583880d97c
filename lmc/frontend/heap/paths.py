"""Paths of handles as templates: two that differ in numbers alone become one whose holes take them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmc.frontend.heap.cells import HandleCell
from lmc.frontend.heap.values import Abstract, Const, Symbol
from lmc.ir.core import Value
from lmc.ir.ids import count_holes

_USE = re.compile(r"([^#*$]*)(?:#([0-9]+)|\*)?")
Pair = tuple[Abstract, Abstract]


def unified(left: HandleCell, right: HandleCell) -> tuple[str, list[Pair]] | None:
    """A path of which both are uses, and the numbers that its holes take on either side; None where there is none."""
    parts = left.path.split("/"), right.path.split("/")
    if len(parts[0]) != len(parts[1]):
        return None
    holes = iter(left.holes), iter(right.holes)
    found: list[str] = []
    pairs: list[Pair] = []
    for one, other in zip(*parts, strict=True):
        if one == other:
            found.append(one)
            pairs += [(Symbol(next(holes[0])), Symbol(next(holes[1]))) for _ in range(count_holes(one))]
            continue
        (base, number), (other_base, other_number) = _use(one, holes[0]), _use(other, holes[1])
        if base != other_base or number is None or other_number is None:
            return None
        found.append(base)
        pairs.append((number, other_number))
    return "/".join(found), pairs


def _use(part: str, holes: Iterator[Value]) -> tuple[str, Abstract | None]:
    """The template of a part, and the number of this use; None where it has no such form."""
    if part == "$":
        return "$", Symbol(next(holes))
    if part.isdigit():
        return "$", Const(int(part))
    match = _USE.fullmatch(part)
    if match is None:
        return part, None
    if part.endswith("*"):
        return part, Symbol(next(holes))
    return f"{match.group(1)}*", Const(int(match.group(2) or 0))
