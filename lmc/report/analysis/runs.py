"""A large module with runs of ops as one node each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from lmc.ir.wording import with_count
from lmc.report.model import Input, OpNode, StageView

MAX_NODES = 20_000
"""Ops of a module that is shown op by op."""
MAX_NAMES = 500
"""Characters of the names of the ops in a run."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The nodes of a folded module; the node of each op by its key; the number of ops of the longest run."""

    nodes: list[OpNode]
    key_of: dict[str, str]
    longest: int

    def stage(self, stage: StageView) -> StageView:
        """Return the stage with these nodes, without the text of the module."""
        return stage.model_copy(
            update={"added": tuple(self.nodes), "order": None, "fans": None, "text": (), "lines": None}
        )


def runs_of(nodes: Sequence[OpNode], most: int) -> Runs:
    """Return about at most half of ``most`` nodes for these.

    A run are ops that follow each other in one block. It has the key of its first op. An op with regions stays, unless
    it and all that it holds are in a run.
    """
    longest = ceil(2 * len(nodes) / most)
    sizes = Counter[str]()
    for node in reversed(nodes):
        sizes[node.key] += 1
        if node.parent is not None:
            sizes[node.parent] += sizes[node.key]
    key_of: dict[str, str] = {}
    members: dict[str, list[OpNode]] = {}
    open_runs: dict[tuple[str | None, str | None], str] = {}
    filled = Counter[str]()
    for node in nodes:
        if node.parent is not None and node.parent in key_of and sizes[node.parent] <= longest:
            key = key_of[node.parent]
        else:
            block = node.parent, node.region
            size = sizes[node.key]
            run = open_runs.get(block)
            if size > longest:
                open_runs.pop(block, None)
                key = node.key
            elif run is None or filled[run] + size > longest:
                key = open_runs[block] = node.key
                filled[key] = size
            else:
                key = run
                filled[key] += size
        key_of[node.key] = key
        members.setdefault(key, []).append(node)
    return Runs([_run(key, each, key_of) for key, each in members.items()], key_of, longest)


def _run(key: str, members: Sequence[OpNode], key_of: dict[str, str]) -> OpNode:
    inputs: dict[str, Input] = {}
    for node in members:
        for each in node.inputs:
            source = key_of[each.key]
            if source != key:
                inputs.setdefault(source, Input(key=source, kind=each.kind))
    first = members[0]
    if len(members) == 1:
        return first.model_copy(update={"inputs": tuple(inputs.values())})
    kinds = Counter(node.kind for node in members)
    counts = ", ".join(with_count(count, kind) for kind, count in sorted(kinds.items()) if kind in ("call", "tool"))
    return OpNode(
        key=key,
        op="",
        kind="folded",
        label=f"{with_count(len(members), 'op')}{': ' if counts else ''}{counts}",
        text=_names(members),
        place=first.place,
        parent=first.parent,
        region=first.region,
        inputs=tuple(inputs.values()),
        ops=len(members),
    )


def _names(members: Sequence[OpNode]) -> str:
    """Return the ids of the ops of a run, of those without an id their results, so that a search finds them.

    Where they are too long these are the first and the last one, and between them as many calls as there is room for.
    """
    names = [node.id or node.text.partition(" ")[0] for node in members]
    text = " ".join(names)
    if len(text) <= MAX_NAMES:
        return text
    calls = " ".join(node.id for node in members if node.kind == "call" and node.id is not None)
    ends = [each[: MAX_NAMES // 4] for each in (names[0], names[-1])]
    return f"{ends[0]} {calls[: MAX_NAMES // 2 - 4]} … {ends[1]}"
