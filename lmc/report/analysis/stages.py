"""The module after each pass, as its difference from the one before."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmc.ir.core import Op
from lmc.ir.module import Module, print_module
from lmc.ir.printer import print_string
from lmc.report.analysis.nodes import Keys, Placed, SourceFiles, fans_of, nodes_of
from lmc.report.given import Step
from lmc.report.model import Hunk, OpNode, StageView
from lmc.report.redact import Redaction
from lmc.report.text import visible

_LOCATION = re.compile(r' loc\(("(?:[^"\\]|\\.)*"):([0-9]+)\)$')
_HEAD = 1
"""The line of a module's name."""


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages, the ops and nodes of the last one, and the ops of the first."""

    stages: list[StageView]
    first: list[Placed]
    ops: list[Placed]
    nodes: list[OpNode]


def stages_of(
    steps: Sequence[Step], sources: SourceFiles, files: Mapping[str, str], redaction: Redaction | None
) -> Stages:
    """Return the modules as stages. ``files`` are the names to show of files."""
    keys = Keys()
    stages: list[StageView] = []
    known: dict[str, OpNode] = {}
    fans: list[tuple[str, ...]] = []
    text: list[str] = []
    lines: tuple[int, ...] = ()
    first: list[Placed] = []
    ops: list[Placed] = []
    module: Module | None = None
    for step in steps:
        if step.module is module:
            stages.append(StageView(name=step.name, ops=stages[-1].ops, calls=stages[-1].calls))
            continue
        module = step.module
        ops = keys.of(module)
        first = first or ops
        shown = module if redaction is None else redaction.module(module)
        nodes = {
            node.key: node for node in nodes_of(module, ops, sources, _same if redaction is None else redaction.op)
        }
        new_fans, new_text, new_lines = fans_of([*nodes.values()]), module_lines(shown, files), _first_lines(module)
        left = [key for key in known if key in nodes]
        stages.append(
            StageView(
                name=step.name,
                ops=len(ops),
                calls=sum(node.kind == "call" for node in nodes.values()),
                added=tuple(node for key, node in nodes.items() if key not in known),
                changed=tuple(node for key, node in nodes.items() if key in known and known[key] != node),
                removed=tuple(key for key in known if key not in nodes),
                order=None if list(nodes) == left else tuple(nodes),
                fans=None if new_fans == fans else tuple(new_fans),
                text=tuple(hunks(text, new_text)),
                lines=None if new_lines == lines else new_lines,
            )
        )
        known, fans, text, lines = nodes, new_fans, new_text, new_lines
    return Stages(stages, first, ops, list(known.values()))


def _same(op: Op) -> Op:
    return op


def module_lines(module: Module, files: Mapping[str, str]) -> list[str]:
    """Return the lines of ``.lmir`` text. A location's file is called as ``files`` say."""
    other = {print_string(file): print_string(name) for file, name in files.items() if file != name}
    lines = print_module(module).split("\n")[:-1]
    if other:
        lines = [
            _LOCATION.sub(lambda found: f" loc({other.get(found[1], found[1])}:{found[2]})", line) for line in lines
        ]
    return [visible(line) for line in lines]


def _first_lines(module: Module) -> tuple[int, ...]:
    """Return the line of each op of the program's function in the text of the module, in the order of nodes.

    A function has a line before and one behind its ops, and so has each region, whose first line is that of its op, or
    the last one of the region before.
    """
    line = _HEAD + len(module.constraints) + len(module.hosts)
    for function in module.functions:
        line += 1
        found: list[int] = []
        stack: list[Iterator[Op] | None] = [iter(function.body.ops)]
        while stack:
            steps = stack[-1]
            op = None if steps is None else next(steps, None)
            if op is None:
                stack.pop()
                line += steps is None  # the line that ends a region
                continue
            found.append(line)
            line += 1
            for region in reversed(op.regions):
                stack += [None, iter(region.ops)]
        if function is module.main:
            return tuple(found)
        line += 1
    return ()


def hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """Return the changes from one text to another, in order. ``n log n``.

    Lines that both texts have exactly once stay if they are in the same order (patience diff: the longest increasing
    sequence of their places); so do equal lines next to them.
    """
    count_old, count_new = Counter(old), Counter(new)
    place = {line: number for number, line in enumerate(new) if count_new[line] == 1}
    common = [(number, place[line]) for number, line in enumerate(old) if line in place and count_old[line] == 1]
    found: list[Hunk] = []
    at_old = at_new = 0
    for stop_old, stop_new in [*_increasing(common), (len(old), len(new))]:
        first_old, first_new, end_old, end_new = at_old, at_new, stop_old, stop_new
        while first_old < end_old and first_new < end_new and old[first_old] == new[first_new]:
            first_old, first_new = first_old + 1, first_new + 1
        while first_old < end_old and first_new < end_new and old[end_old - 1] == new[end_new - 1]:
            end_old, end_new = end_old - 1, end_new - 1
        if first_old < end_old or first_new < end_new:
            found.append(Hunk(at=first_old, removed=end_old - first_old, added=tuple(new[first_new:end_new])))
        at_old, at_new = stop_old + 1, stop_new + 1
    return found


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a longest subsequence whose second numbers increase; the first ones do."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for index, (_, value) in enumerate(pairs):
        at = bisect_left(ends, value)
        before.append(last[at - 1] if at else None)
        ends[at : at + 1], last[at : at + 1] = [value], [index]
    found: list[tuple[int, int]] = []
    index = last[-1] if last else None
    while index is not None:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]
