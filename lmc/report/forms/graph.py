"""The last module of a view as a graph of at most so many nodes: fan-outs, regions and runs of ops folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from lmc.ir.wording import with_count
from lmc.report.analysis.costs import total_measured, total_tokens
from lmc.report.model import CallCost, CompiledView, InputKind, Kind, MeasuredCost, OpNode, TokenCount
from lmc.report.replay import State, state_at

_STRENGTH: tuple[InputKind, ...] = ("order", "value", "context")
_CALLING: frozenset[Kind] = frozenset({"call", "tool", "control", "break"})
_PARTS_OF_REGIONS = frozenset({"cf.yield", "cf.condition"})


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node: an op, a fan-out, or what is folded; ``group`` is the key of the group that holds it.

    ``cost`` is the wave and the prompts of its calls in sum, ``measured`` their cost in a run. ``is_group``: it
    is an op with regions and drawn around the nodes that it holds, of which there is one at least. ``mark`` is set
    where two modules are compared: ``added``, ``changed`` or ``removed``.
    """

    key: str
    label: str
    kind: Kind
    group: str | None
    cost: str = ""
    measured: str = ""
    is_group: bool = False
    critical: bool = False
    mark: str | None = None

    @property
    def text(self) -> str:
        """The label and the costs."""
        return " · ".join(filter(None, (self.label, self.cost, self.measured)))


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependence of ``target`` on ``source``, each the key of a node or of a group.

    ``critical``: it is on the critical path.
    """

    source: str
    target: str
    kind: InputKind
    critical: bool = False


@dataclass(frozen=True, slots=True)
class FoldedGraph:
    """Nodes and groups in the order of the program, and edges."""

    nodes: list[GraphNode]
    edges: list[Edge]

    def nested(self) -> Iterator[tuple[int, GraphNode | None]]:
        """Yield the nodes with their depth, each group before what it holds, and None where a group ends."""
        inside: dict[str | None, list[GraphNode]] = {}
        for node in self.nodes:
            inside.setdefault(node.group, []).append(node)
        stack: list[GraphNode | None] = list(reversed(inside.get(None, [])))
        depth = 1
        while stack:
            node = stack.pop()
            depth -= node is None
            yield depth, node
            if node is not None and node.is_group:
                stack += [None, *reversed(inside[node.key])]
                depth += 1


def graph_of(view: CompiledView, most: int) -> FoldedGraph:
    """Return the graph of a view, of at most ``most`` nodes and groups.

    Hints to the cache and the ends of regions are left out.
    """
    state, marks = _compared(view) if view.comparison else (state_at(view, -1), {})
    nodes = {key: node for key, node in state.nodes.items() if _is_shown(node)}
    return _Folding(view, nodes, state.fans, marks).graph(most)


def _is_shown(node: OpNode) -> bool:
    return node.kind != "hint" and node.op not in _PARTS_OF_REGIONS


def _compared(view: CompiledView) -> tuple[State, dict[str, str]]:
    """Return both modules of a comparison as one, and the marks of nodes."""
    old, new = state_at(view, 0), state_at(view, 1)
    stage = view.stages[1]
    marks = {node.key: "added" for node in stage.added} | {node.key: "changed" for node in stage.changed}
    marks |= dict.fromkeys(stage.removed, "removed")
    behind: dict[str | None, list[str]] = {}
    last: str | None = None
    for key in old.nodes:
        if key in new.nodes:
            last = key
        else:
            behind.setdefault(last, []).append(key)
    order = list(behind.get(None, ()))
    for key in new.nodes:
        order += [key, *behind.get(key, ())]
    both = {**old.nodes, **new.nodes}
    return State({key: both[key] for key in order}, new.fans), marks


class _Folding:
    """Decides which node stands for which."""

    def __init__(
        self, view: CompiledView, nodes: Mapping[str, OpNode], fans: Iterable[Sequence[str]], marks: Mapping[str, str]
    ) -> None:
        self._nodes = nodes
        self._marks = marks
        old = () if view.old is None else view.old.calls
        self._calls = {call.key: call for call in (*old, *view.calls)}
        self._path = view.critical_path
        self._critical = set(view.critical_path)
        self._stands_for: dict[str, list[str]] = {}
        """Of each visible node its ops."""
        self._rep: dict[str, str] = {}
        for fan in fans:
            alike: dict[str | None, list[str]] = {}
            for key in fan:
                if key in nodes:
                    alike.setdefault(marks.get(key), []).append(key)
            for keys in alike.values():
                self._rep.update(dict.fromkeys(keys, keys[0]))
        self._inner: dict[str, list[str]] = {}
        for key, node in nodes.items():
            self._stands_for.setdefault(self._rep.setdefault(key, key), []).append(key)
            if node.parent is not None:
                self._inner.setdefault(node.parent, []).append(key)

    def graph(self, most: int) -> FoldedGraph:
        """Return the graph."""
        for key in self._groups_by_depth():
            if len(self._stands_for) <= most:
                break
            self._fold([key, *self._below(key)])
        for run in self._quiet_runs():
            if len(self._stands_for) <= most:
                break
            self._fold([key for rep in run for key in self._stands_for[rep]])
        if len(self._stands_for) > most:
            visible = list(self._stands_for)
            size = ceil(len(visible) / most)
            for start in range(0, len(visible), size):
                self._fold([key for rep in visible[start : start + size] for key in self._stands_for[rep]])
        return FoldedGraph([self._drawn(key) for key in self._nodes if key in self._stands_for], list(self._edges()))

    def _fold(self, keys: Sequence[str]) -> None:
        """Let the first of these ops stand for all of them, and for all that their nodes stand for."""
        members = dict.fromkeys(member for key in keys for member in self._stands_for.pop(self._rep[key], ()))
        if not members:
            return
        first = keys[0]
        self._stands_for[first] = list(members)
        self._rep.update(dict.fromkeys(members, first))

    def _groups_by_depth(self) -> list[str]:
        depth: dict[str, int] = {}
        for key in self._inner:
            parent = self._nodes[key].parent
            depth[key] = 0 if parent is None else depth.get(parent, 0) + 1
        return sorted(self._inner, key=lambda key: (-depth[key], -len(self._inner[key])))

    def _quiet_runs(self) -> list[list[str]]:
        """Return the nodes in a row, in one region, that call nothing: the longest runs first."""
        runs: list[list[str]] = []
        last: tuple[bool, str | None] | None = None
        for key in self._stands_for:
            node = self._nodes[key]
            place = node.kind not in _CALLING, node.parent
            if place == last and place[0]:
                runs[-1].append(key)
            else:
                runs.append([key])
            last = place
        return sorted((run for run in runs if len(run) > 1), key=len, reverse=True)

    def _below(self, key: str) -> Iterator[str]:
        stack = list(reversed(self._inner.get(key, ())))
        while stack:
            inner = stack.pop()
            yield inner
            stack += reversed(self._inner.get(inner, ()))

    def _drawn(self, key: str) -> GraphNode:
        node, members = self._nodes[key], self._stands_for[key]
        parent = node.parent
        while parent is not None and self._rep[parent] != parent:
            parent = self._nodes[self._rep[parent]].parent
        ops = [self._nodes[each] for each in members]
        is_fan = len(ops) > 1 and all((each.kind, each.parent) == (node.kind, node.parent) for each in ops)
        kinds = Counter[str]()
        for each in ops:
            kinds[each.kind] += each.ops
        label, kind = node.label, node.kind
        if is_fan and node.kind != "control" and len({each.op for each in ops}) == 1:
            label += f" × {len(ops)}"
        elif len(ops) > 1:
            counts = [with_count(kinds[one], one) for one in ("call", "tool", "break") if kinds[one]]
            what = f"{label}: " if node.kind == "control" else ""
            label = what + ", ".join([with_count(sum(kinds.values()), "op"), *counts])
            kind = node.kind if node.kind == "control" else "folded"
        calls = [self._calls[each] for each in members if each in self._calls]
        costs = [call.measured for call in calls if call.measured]
        measured = measured_text(costs[0] if len(costs) == 1 else total_measured(costs)) if costs else ""
        marks = {self._marks.get(each) for each in members}
        mark = marks.pop() if len(marks) == 1 else "changed"
        critical = any(each in self._critical for each in members)
        is_group = any(self._rep[inner] != key for inner in self._inner.get(key, ()))
        return GraphNode(
            key, label, kind, parent, _cost(calls), measured, is_group=is_group, critical=critical, mark=mark
        )

    def _edges(self) -> Iterator[Edge]:
        found: dict[tuple[str, str], InputKind] = {}
        for key, node in self._nodes.items():
            target = self._rep[key]
            for each in node.inputs:
                source = self._rep.get(each.key)
                if source is None or source == target:
                    continue
                known = found.setdefault((source, target), each.kind)
                if _STRENGTH.index(each.kind) > _STRENGTH.index(known):
                    found[source, target] = each.kind
        path = [self._rep.get(key) for key in self._path]
        critical = set(pairwise(path))
        return (Edge(*ends, kind, ends in critical) for ends, kind in found.items())


def _cost(calls: Sequence[CallCost]) -> str:
    """Return the waves of calls, and the lengths of their prompts in one instance in sum."""
    if not calls:
        return ""
    first, last = min(call.wave for call in calls), max(call.wave for call in calls)
    waves = f"wave {first}" if first == last else f"waves {first} to {last}"
    how = "" if sum(call.ops for call in calls) == 1 else " (sum)"
    return f"{waves} · {tokens_text(total_tokens(call.prompt for call in calls))} in{how}"


def measured_text(cost: MeasuredCost) -> str:
    """Return the cost of calls in a run in short: tokens, and the median of the seconds of a request."""
    text = f"measured {cost.prompt:,} in, {cost.cached:,} cached, {cost.output:,} out"
    return text if cost.p50_seconds is None else f"{text}, p50 {cost.p50_seconds:.3g} s"


def tokens_text(tokens: TokenCount) -> str:
    """Return the length of a prompt in words."""
    if not tokens.texts:
        return with_count(tokens.known, "token")
    return f"{with_count(tokens.known, 'token')} + {with_count(tokens.texts, 'text')}"
