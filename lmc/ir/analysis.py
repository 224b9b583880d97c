"""Views of a block as graphs (networkx): what depends on what, what can run at once, what extends which context.

Everything here is linear in the number of ops and operands, dominators up to a logarithm, and nothing is recursive, so
that a program of 10,000 ops is no matter. Nodes are the ops (or context values) themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.regions import RegionOp, effects_of
from lmc.ir.ordering import Objects, objects_of, uses, waits_of
from lmc.ir.types import holds_context

if TYPE_CHECKING:
    OpGraph = networkx.DiGraph[Op]
    ContextGraph = networkx.DiGraph[Value]


def dependence_graph(block: Block, objects: Objects | None = None) -> OpGraph:
    """The dependence DAG of a block: an edge from each op to the ops that must wait for it (``lmc.ir.ordering``).

    An op with regions is one node; its regions have graphs of their own, for which ``objects`` (see ``waits_of``)
    are ``graph.graph["objects"]`` of the graph around them.

    Edges have a ``kind``: ``"value"`` where a result is used (in a region too), ``"order"`` where only effects decide.
    The terminator also waits for every op with an effect that nothing else waits for. Nodes come in the order of the
    block, which is a topological order.
    """
    objects = objects_of(block.ops) if objects is None else objects
    graph: OpGraph = networkx.DiGraph(objects=objects)
    waits = waits_of(block.ops, objects)
    for op, needed in zip(block.ops, waits, strict=True):
        graph.add_node(op)
        used = set(uses(op))
        for earlier in (block.ops[index] for index in needed):
            graph.add_edge(earlier, op, kind="order" if used.isdisjoint(earlier.results) else "value")
    if not block.ops:
        return graph
    end = block.terminator
    for op in block.ops[:-1]:
        if not graph.has_edge(op, end) and graph.out_degree(op) == 0 and not effects_of(op) <= {Effect.PURE}:
            graph.add_edge(op, end, kind="order")
    return graph


def waves(graph: OpGraph) -> list[list[Op]]:
    """The ops by the earliest step at which each can run, where each op takes one step; block order within a wave.

    An op with regions takes one step too: the waves of a region count from its own beginning.
    """
    depth: dict[Op, int] = {}
    found: list[list[Op]] = []
    for op in graph:
        step = max((depth[earlier] + 1 for earlier in graph.predecessors(op)), default=0)
        depth[op] = step
        if step == len(found):
            found.append([])
        found[step].append(op)
    return found


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The most expensive chain of ops that wait for each other, first op first, and what it costs in all."""

    ops: tuple[Op, ...]
    cost: float


def critical_path(graph: OpGraph, cost: Callable[[Op], float]) -> CriticalPath:
    """The critical path of a dependence graph, with ``cost`` of each op (not negative); the earliest of equal ones.

    An op with regions is followed by the critical paths of its regions, as if each ran once; where only one of them
    runs, by the most expensive one. Recursion is as deep as regions are nested.
    """
    total: dict[Op, float] = {}
    before: dict[Op, Op | None] = {}
    inside: dict[Op, CriticalPath] = {}
    for op in graph:
        previous = max(graph.predecessors(op), key=total.__getitem__, default=None)
        before[op] = previous
        total[op] = cost(op) + (total[previous] if previous is not None else 0.0)
        if isinstance(op, RegionOp):
            inside[op] = _path_inside(op, cost, graph.graph["objects"])
            total[op] += inside[op].cost
    if not total:
        return CriticalPath((), 0.0)
    last: Op | None = max(total, key=total.__getitem__)
    whole = total[last]
    chain: list[Op] = []
    while last is not None:
        chain.extend(reversed(inside[last].ops if last in inside else ()))
        chain.append(last)
        last = before[last]
    return CriticalPath(tuple(reversed(chain)), whole)


def _path_inside(op: RegionOp, cost: Callable[[Op], float], objects: Objects) -> CriticalPath:
    paths = [critical_path(dependence_graph(region, objects), cost) for region in op.regions]
    if op.EXCLUSIVE:
        return max(paths, key=lambda path: path.cost)
    return CriticalPath(tuple(step for path in paths for step in path.ops), sum(path.cost for path in paths))


def dominator_tree(graph: OpGraph) -> OpGraph:
    """The dominators of a dependence graph as a forest: an edge to each op from its immediate dominator.

    An op dominates another if every chain of dependences from a start of the graph to the other goes through it. Ops
    that only the start of the program dominates are roots.
    """
    tree: OpGraph = networkx.DiGraph()
    ancestors = _Ancestors()
    for op in graph:
        tree.add_node(op)
        dominator = ancestors.common(graph.predecessors(op))
        ancestors.add(op, dominator)
        if dominator is not None:
            tree.add_edge(dominator, op)
    return tree


def context_tree(blocks: Iterable[Block]) -> ContextGraph:
    """Return which context extends which: an edge from the context an op takes to each it gives, labelled with ``op``.

    Holds every context value of ``blocks`` and their regions, lists of contexts included. Roots are parameters of
    ``blocks`` and the results of ``lm.context``; a context with several successors is a fork. An op with regions has
    edges to the parameters that a context becomes there, and from what regions give to its results, so a result may
    come from several. What a loop carries from one round to the next has no edge: the graph has no cycles.
    """
    tree: ContextGraph = networkx.DiGraph()
    blocks = tuple(blocks)
    tree.add_nodes_from(_contexts(value for block in blocks for value in block.parameters))
    for op in walk(blocks):
        tree.add_nodes_from(_contexts(value for region in op.regions for value in region.parameters))
        tree.add_nodes_from(_contexts(op.results))
        tree.add_edges_from(_extensions(op), op=op)
    return tree


def _extensions(op: Op) -> Iterator[tuple[Value, Value]]:
    if isinstance(op, RegionOp):
        return (flow for flow in op.flows() if holds_context(flow[0].type))
    given = _contexts(op.results)
    return ((taken, value) for taken in _contexts(op.operands) for value in given)


def _contexts(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if holds_context(value.type)]


class _Ancestors:
    """A growing forest that finds the nearest common ancestor of nodes in logarithmic time.

    Each node knows its parent and one ancestor further up, chosen so that jumps have the lengths of skew-binary numbers
    (Myers, "An applicative random-access stack", 1983). Node 0 is above all roots.
    """

    def __init__(self) -> None:
        self._numbers: dict[Op, int] = {}
        self._ops: list[Op | None] = [None]
        self._parent = [0]
        self._jump = [0]
        self._depth = [0]

    def add(self, op: Op, parent: Op | None) -> None:
        """Put ``op`` under ``parent`` (None: a root)."""
        above = 0 if parent is None else self._numbers[parent]
        self._numbers[op] = len(self._ops)
        self._ops.append(op)
        self._parent.append(above)
        self._depth.append(self._depth[above] + 1)
        jump = self._jump[above]
        even = self._depth[above] - self._depth[jump] == self._depth[jump] - self._depth[self._jump[jump]]
        self._jump.append(self._jump[jump] if even else above)

    def common(self, ops: Iterable[Op]) -> Op | None:
        """The nearest common ancestor of ``ops``, one of them perhaps; None where there is none."""
        found: int | None = None
        for op in ops:
            number = self._numbers[op]
            found = number if found is None else self._common(found, number)
        return self._ops[found or 0]

    def _common(self, left: int, right: int) -> int:
        if self._depth[left] < self._depth[right]:
            left, right = right, left
        while self._depth[left] > self._depth[right]:
            nearer = self._depth[self._jump[left]] < self._depth[right]
            left = self._parent[left] if nearer else self._jump[left]
        while left != right:
            together = self._jump[left] == self._jump[right]
            left = self._parent[left] if together else self._jump[left]
            right = self._parent[right] if together else self._jump[right]
        return left
