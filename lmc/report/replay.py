"""The state of a program at a stage: the differences up to there, applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lmc.report.model import CompiledView, Hunk, OpNode


@dataclass(frozen=True, slots=True)
class State:
    """The nodes in their order, the fan-outs, the lines of the module's text, and the line of each node there."""

    nodes: dict[str, OpNode] = field(default_factory=dict[str, OpNode])
    fans: tuple[tuple[str, ...], ...] = ()
    text: list[str] = field(default_factory=list[str])
    lines: tuple[int, ...] = ()


def state_at(view: CompiledView, stage: int) -> State:
    """Return the state at a stage: an index in ``CompiledView.stages``, from the end if it is negative."""
    state = State()
    for each in view.stages[: stage % len(view.stages) + 1]:
        nodes = {**state.nodes, **{node.key: node for node in (*each.changed, *each.added)}}
        removed = set(each.removed)
        order = [key for key in nodes if key not in removed] if each.order is None else each.order
        state = State(
            {key: nodes[key] for key in order},
            state.fans if each.fans is None else each.fans,
            apply_hunks(state.text, each.text),
            state.lines if each.lines is None else each.lines,
        )
    return state


def apply_hunks(text: Sequence[str], hunks: Sequence[Hunk]) -> list[str]:
    """Return the lines of the new text."""
    found = list(text)
    for hunk in reversed(hunks):
        found[hunk.at : hunk.at + hunk.removed] = hunk.added
    return found
