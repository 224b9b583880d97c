"""Dependence analyses of blocks: longest paths, critical path, waves, dominators, forest of prefixes.

Passes use the functions over ``waits``, which has for each op of a block the indices of the ops it waits for
(``lmc.ir.analysis.ordering``). Tools use networkx graphs of ops, and their exports as node-link JSON and GraphML.

Passes use no networkx graph because of its price: for 1,000 generations (``benchmarks/compile_time.py``) it takes 11 to
21 ms where ``waits_of`` takes 5 to 9 ms, and importing networkx takes 0.13 s, as much as half of all passes. So the
first graph imports it. ``networkx.immediate_dominators`` takes 4.2 s for 15,000 ops in two joined chains,
``dominator_tree`` 0.06 s. The verifier checks dominance by the nesting of blocks, in which it needs no graph.

Everything here is linear in the number of ops and operands, dominators up to a logarithm. Recursion is as deep as
regions are nested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from lmc.ir.analysis.ordering import Objects, objects_of, uses, waits_of
from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.dialects.regions import RegionOp, effects_of
from lmc.ir.printer import print_op, print_string, print_value
from lmc.ir.types import holds_context

if TYPE_CHECKING:
    import networkx

    OpGraph = networkx.DiGraph[Op]
    ContextGraph = networkx.DiGraph[Value]
    NameGraph = networkx.DiGraph[str]

Waits = Sequence[Sequence[int]]
Cost = TypeVar("Cost", int, float)


def called_hosts(block: Block) -> set[str]:
    """Return the names of the host functions that ops of ``block`` call. A break may name others."""
    return {op.host for op in walk((block,)) if isinstance(op, HostCallOp)}


def earliest_starts(costs: Sequence[Cost], waits: Waits) -> list[Cost]:
    """Return for each op the cost of the longest path to it, itself excluded."""
    starts: list[Cost] = []
    for needed in waits:
        starts.append(max([starts[index] + costs[index] for index in needed], default=cast("Cost", 0)))
    return starts


def longest_paths(costs: Sequence[float], waits: Waits) -> list[float]:
    """Return for each op the cost of the longest path from it to the end of the block, itself included."""
    longest = [0.0] * len(costs)
    for index in range(len(costs) - 1, -1, -1):
        longest[index] += costs[index]
        for earlier in waits[index]:
            longest[earlier] = max(longest[earlier], longest[index])
    return longest


def last_end(starts: Sequence[Cost], costs: Sequence[Cost]) -> Cost:
    """Return when the last op ends where op i starts at ``starts[i]``."""
    return max([start + cost for start, cost in zip(starts, costs, strict=True)], default=cast("Cost", 0))


class PathCosts(Generic[Cost]):
    """The costs of ops and blocks along their longest paths. ``objects`` are those of ``waits_of``.

    An op costs what ``cost`` says (not negative). An op with regions also costs the longest paths of its regions, as if
    each ran once; only the longest of them if at most one runs.
    """

    def __init__(self, objects: Objects, cost: Callable[[Op], Cost]) -> None:
        self._objects = objects
        self._cost = cost
        self._blocks: dict[Block, Cost] = {}

    def of(self, op: Op) -> Cost:
        """The cost of an op."""
        own = self._cost(op)
        if not isinstance(op, RegionOp):
            return own
        inside = [self.of_block(region) for region in op.regions]
        return own + (max(inside) if op.EXCLUSIVE else sum(inside, cast("Cost", 0)))

    def of_block(self, block: Block) -> Cost:
        """The cost of the longest path through a block."""
        if block not in self._blocks:
            costs = [self.of(op) for op in block.ops]
            self._blocks[block] = last_end(earliest_starts(costs, waits_of(block.ops, self._objects)), costs)
        return self._blocks[block]

    def path(self, block: Block) -> Iterator[Op]:
        """The ops of the longest path through a block, and in regions; the earliest one of equal paths."""
        costs, waits = [self.of(op) for op in block.ops], waits_of(block.ops, self._objects)
        ends = [start + cost for start, cost in zip(earliest_starts(costs, waits), costs, strict=True)]
        last = max(range(len(ends)), key=ends.__getitem__, default=None)
        chain: list[Op] = []
        while last is not None:
            chain.append(block.ops[last])
            last = max(waits[last], key=ends.__getitem__, default=None)
        for op in reversed(chain):
            yield op
            if isinstance(op, RegionOp):
                for region in [max(op.regions, key=self.of_block)] if op.EXCLUSIVE else op.regions:
                    yield from self.path(region)


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The most expensive chain of ops that wait for each other, first op first, and its cost."""

    ops: tuple[Op, ...]
    cost: float


def critical_path(block: Block, cost: Callable[[Op], float], objects: Objects | None = None) -> CriticalPath:
    """Return the critical path of a block: ``cost`` as for ``PathCosts``, ``objects`` as for ``waits_of``."""
    costs = PathCosts(objects_of(block.ops) if objects is None else objects, cost)
    return CriticalPath(tuple(costs.path(block)), costs.of_block(block))


def dependence_graph(block: Block, objects: Objects | None = None) -> OpGraph:
    """The dependence DAG of a block: an edge from each op to the ops that must wait for it (``ordering.py``).

    An op with regions is one node; its regions have graphs of their own, for which ``objects`` (see ``waits_of``)
    are ``graph.graph["objects"]`` of the graph around them.

    Edges have a ``kind``: ``"value"`` where a result is used (in a region too), ``"order"`` where only effects decide.
    The terminator also waits for every op with an effect that nothing else waits for. Nodes come in the order of the
    block, which is a topological order.
    """
    import networkx

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
    """Return the ops by the earliest step at which each can run, where each takes one step; block order within a wave.

    An op with regions takes one step too: the waves of a region count from its own beginning.
    """
    import networkx

    position = {op: index for index, op in enumerate(graph)}
    return [sorted(wave, key=position.__getitem__) for wave in networkx.topological_generations(graph)]


def dominator_tree(graph: OpGraph) -> OpGraph:
    """The dominators of a dependence graph as a forest: an edge to each op from its immediate dominator.

    An op dominates another if every chain of dependences from a start of the graph to the other goes through it. Ops
    that only the start of the program dominates are roots.
    """
    import networkx

    tree: OpGraph = networkx.DiGraph()
    ancestors = _Ancestors()
    for op in graph:
        tree.add_node(op)
        dominator = ancestors.common(graph.predecessors(op))
        ancestors.add(op, dominator)
        if dominator is not None:
            tree.add_edge(dominator, op)
    return tree


def prefix_forest(blocks: Iterable[Block]) -> ContextGraph:
    """Return the forest of prefixes: an edge from the context an op takes to each it gives, labelled with ``op``.

    Holds every context value of ``blocks`` and their regions, lists of contexts included. Roots are parameters of
    ``blocks`` and the results of ``lm.context``; a context with several successors is a fork. An op with regions has
    edges to the parameters that a context becomes there, and from what regions give to its results, so a result may
    come from several. What a loop carries from one round to the next has no edge: the graph has no cycles.
    """
    import networkx

    forest: ContextGraph = networkx.DiGraph()
    blocks = tuple(blocks)
    forest.add_nodes_from(_contexts(value for block in blocks for value in block.parameters))
    for op in walk(blocks):
        forest.add_nodes_from(_contexts(value for region in op.regions for value in region.parameters))
        forest.add_nodes_from(_contexts(op.results))
        forest.add_edges_from(_extensions(op), op=op)
    return forest


def _extensions(op: Op) -> Iterator[tuple[Value, Value]]:
    if isinstance(op, RegionOp):
        return (flow for flow in op.flows() if holds_context(flow[0].type))
    given = _contexts(op.results)
    return ((taken, value) for taken in _contexts(op.operands) for value in given)


def _contexts(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if holds_context(value.type)]


def named_dependence_graph(block: Block, cost: Callable[[Op], float]) -> NameGraph:
    """Return the dependence graphs of a block and of all regions in it as one graph of plain data, to be exported.

    A node is named by its place: ``3``, or ``3.then.0`` for the first op in the region ``then`` of op 3. Its attributes
    are ``op`` (the name of its class), ``text``, ``cost`` along its longest path (see ``PathCosts``), ``wave`` in its
    block, ``critical`` (on the critical path of ``block``), and where there is one its ``op_id``, ``location`` and the
    op ``around`` it. Edges have a ``kind`` as in ``dependence_graph``.
    """
    import networkx

    objects = objects_of(block.ops)
    costs = PathCosts(objects, cost)
    critical = set(costs.path(block))
    named: NameGraph = networkx.DiGraph()

    def add(block: Block, prefix: str, around: str | None) -> None:
        graph = dependence_graph(block, objects)
        wave_of = {op: number for number, wave in enumerate(waves(graph)) for op in wave}
        names = {op: f"{prefix}{index}" for index, op in enumerate(graph)}
        for op, name in names.items():
            optional = {"op_id": getattr(op, "id", None), "location": op.location, "around": around}
            named.add_node(
                name,
                op=op.NAME,
                text=print_op(op),
                cost=float(costs.of(op)),
                wave=wave_of[op],
                critical=op in critical,
                **{key: _printable(str(value)) for key, value in optional.items() if value is not None},
            )
            for field, region in zip(op.REGION_FIELDS, op.regions, strict=True):
                add(region, f"{name}.{field}.", name)
        named.add_edges_from(
            (names[before], names[after], {"kind": kind}) for before, after, kind in graph.edges(data="kind")
        )

    add(block, "", None)
    return named


def _printable(text: str) -> str:
    """``text``, quoted and escaped if it has characters that XML cannot hold."""
    return text if text.isprintable() else print_string(text)


def named_prefix_forest(blocks: Iterable[Block]) -> NameGraph:
    """Return ``prefix_forest`` as plain data, to be exported: contexts and ``op`` of an edge as in ``.lmir`` text."""
    import networkx

    forest = prefix_forest(blocks)
    named: NameGraph = networkx.DiGraph()
    named.add_nodes_from(map(print_value, forest))
    named.add_edges_from((print_value(a), print_value(b), {"op": print_op(op)}) for a, b, op in forest.edges(data="op"))
    return named


def node_link(graph: NameGraph) -> dict[str, Any]:
    """Return a graph as node-link data for JSON: ``nodes`` with an ``id``, ``edges`` with ``source`` and ``target``."""
    import networkx

    return networkx.node_link_data(graph, edges="edges")


def graphml(graph: NameGraph) -> str:
    """Return a graph as GraphML."""
    import networkx

    return "".join(f"{line}\n" for line in networkx.generate_graphml(graph))


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
