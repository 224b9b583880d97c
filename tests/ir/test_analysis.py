from __future__ import annotations

import json
import time

import networkx
import pytest
from hypothesis import given

from lmc.ir.analysis.dependences import (
    critical_path,
    dependence_graph,
    dominator_tree,
    earliest_starts,
    graphml,
    longest_paths,
    named_dependence_graph,
    named_prefix_forest,
    node_link,
    prefix_forest,
    waves,
)
from lmc.ir.analysis.ordering import uses
from lmc.ir.builder import Builder
from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import ConcatOp, ContextOp, ExtendOp, GenOp, HostCallOp, ReturnOp
from lmc.ir.dialects.region_ops import CondOp
from lmc.ir.dialects.regions import effects_of
from lmc.ir.module import Module
from lmc.ir.text.parser import parse, parse_verified
from lmc.ir.types import CTX, TEXT
from tests.ir.region_ops import MapOp, YieldOp, make
from tests.module_strategies import modules

DIAMOND = """
module @m {
  host @write = "p:write" sha256 "" writes
  host @read = "p:read" sha256 "" reads
  func @m(%x: !text) {
    %c = lm.context : !ctx
    %l = lm.extend %c ["left"] : !ctx
    %r = lm.extend %c ["right"] : !ctx
    %w = host.call @write (%x) {id = "w"} : !any
    %p = host.call @read (%x) {declared = "reads", id = "p"} : !any
    %q = host.call @read (%x) {declared = "reads", id = "q"} : !any
    %v = host.call @write (%x) {id = "v"} : !any
    %o = host.call @read (%x) {declared = "reads", id = "o"} : !any
    %l1, %a = lm.gen %l {id = "a"} : !ctx, !text
    %r1, %b = lm.gen %r {id = "b"} : !ctx, !text
    %j = text.concat [%a, %b] : !text
    %e = lm.extend %l1 [%j] : !ctx
    lm.return %e (%v)
  }
}
"""


def names_of(ops: object) -> list[str]:
    return [op.results[0].name if op.results else op.NAME for op in ops]  # type: ignore[attr-defined]


@pytest.fixture
def block() -> Block:
    return parse(DIAMOND).main.body


def test_dependences(block: Block):
    graph = dependence_graph(block)
    edges = {(*names_of(edge), kind) for *edge, kind in graph.edges(data="kind")}
    assert edges == {
        ("c", "l", "value"),
        ("c", "r", "value"),
        ("l", "l1", "value"),
        ("r", "r1", "value"),
        ("l1", "j", "value"),
        ("r1", "j", "value"),
        ("l1", "e", "value"),
        ("j", "e", "value"),
        ("e", "lm.return", "value"),
        ("v", "lm.return", "value"),
        ("w", "p", "order"),
        ("w", "q", "order"),
        ("w", "v", "order"),
        ("p", "v", "order"),
        ("q", "v", "order"),
        ("v", "o", "order"),
        ("o", "lm.return", "order"),
    }


def test_waves(block: Block):
    assert [names_of(wave) for wave in waves(dependence_graph(block))] == [
        ["c", "w"],
        ["l", "r", "p", "q"],
        ["v", "l1", "r1"],
        ["o", "j"],
        ["e"],
        ["lm.return"],
    ]


def test_critical_path(block: Block):
    tokens = critical_path(block, lambda op: 10.0 if isinstance(op, GenOp) else 1.0)
    assert names_of(tokens.ops) == ["c", "l", "l1", "j", "e", "lm.return"]
    assert tokens.cost == 15.0
    hosts = critical_path(block, lambda op: 1.0 if isinstance(op, HostCallOp) else 0.0)
    assert (names_of(hosts.ops)[:3], hosts.cost) == (["w", "p", "v"], 4.0)


def test_critical_path_of_nothing():
    found = critical_path(Block(), lambda _: 1.0)
    assert (found.ops, found.cost) == ((), 0.0)


def test_dominators(block: Block):
    tree = dominator_tree(dependence_graph(block))
    parents = {names_of([op])[0]: names_of(tree.predecessors(op)) for op in tree}
    assert parents == {
        "c": [],
        "l": ["c"],
        "r": ["c"],
        "l1": ["l"],
        "r1": ["r"],
        "j": ["c"],
        "w": [],
        "p": ["w"],
        "q": ["w"],
        "v": ["w"],
        "o": ["v"],
        "e": ["c"],
        "lm.return": [],
    }


def test_prefix_forest(block: Block):
    tree = prefix_forest([block])
    edges = {(before.name, after.name, op.NAME) for before, after, op in tree.edges(data="op")}
    assert edges == {
        ("c", "l", "lm.extend"),
        ("c", "r", "lm.extend"),
        ("l", "l1", "lm.gen"),
        ("r", "r1", "lm.gen"),
        ("l1", "e", "lm.extend"),
    }
    assert {value.name for value in tree} == {"c", "l", "r", "l1", "r1", "e"}


def test_regions_count_with_their_op():
    c, d, x = Value("c", CTX), Value("d", CTX), Value("x", TEXT)
    parameter = Value("i", CTX)
    write = make(HostCallOp, x, host="h", id="a")
    extend = make(ExtendOp, d, context=c, text=(x,))
    region = Block((parameter,), (write, extend, make(YieldOp, values=(parameter,))))
    outer = make(MapOp, over=(x,), body=region)
    first = make(ContextOp, c)
    assert [*uses(outer)] == [x, c]
    assert effects_of(outer) == {Effect.PURE, Effect.WRITES}
    later = make(HostCallOp, Value("y", TEXT), host="h", id="b", declared="reads")
    graph = dependence_graph(Block((), (first, outer, later)))
    assert graph.has_edge(first, outer)
    assert graph.edges[outer, later]["kind"] == "order"
    assert set(prefix_forest([Block((), (first, outer))]).nodes) == {c, d, parameter}


FLOW = """
module @m {
  host @get = "p:get" sha256 "" reads
  host @write = "p:write" sha256 "" writes
  func @m(%flag: !bool, %n: !int, %items: !list<!text>) {
    %c = lm.context : !ctx
    %g = host.call @get () {declared = "reads", id = "g"} : !list<!text>
    %a = cf.cond %flag : !ctx ^then() {
      %a1, %t1 = lm.gen %c {id = "a"} : !ctx, !text
      %a2, %t2 = lm.gen %a1 {id = "b"} : !ctx, !text
      cf.yield (%a2)
    } ^otherwise() {
      %w = host.call @write () {id = "w"} : !none
      %first = py.call getitem (%g, 0) : !text
      cf.yield (%c)
    }
    %l, %k = cf.loop (%a, %n) : !ctx, !int ^condition(%l1: !ctx, %i: !int) {
      cf.condition %flag (%l1, %i)
    } ^body(%l2: !ctx, %j: !int) {
      %l3, %t3 = lm.gen %l2 (%j) {id = "c*"} : !ctx, !text
      cf.yield (%l3, %j)
    }
    %views = cf.map (%items) : !list<!ctx> ^body(%x: !int, %item: !text) {
      %v, %t4 = lm.gen %l (%x) {id = "d$"} : !ctx, !text
      cf.yield (%v)
    }
    %found, %best = cf.race (%views) : !bool, !ctx ^body(%y: !int, %view: !ctx) {
      cf.yield (%flag, %view)
    }
    lm.return %best
  }
}
"""


def test_the_critical_path_goes_through_regions():
    body = parse_verified(FLOW).main.body
    path = critical_path(body, lambda op: 1.0 if isinstance(op, GenOp) else 0.0)
    assert path.cost == 4.0
    assert [op.id for op in path.ops if isinstance(op, GenOp)] == ["a", "b", "c*", "d$"]
    cond = next(op for op in body.ops if isinstance(op, CondOp))
    hosts = critical_path(body, lambda op: 9.0 if isinstance(op, HostCallOp) else 0.0)
    assert [op for op in hosts.ops if isinstance(op, HostCallOp)] == [body.ops[1], cond.otherwise.ops[0]]


def test_the_graph_of_a_region_knows_what_is_shared_around_it():
    body = parse_verified(FLOW).main.body
    cond = next(op for op in body.ops if isinstance(op, CondOp))
    write, look, _ = cond.otherwise.ops
    outer = dependence_graph(body)
    assert dependence_graph(cond.otherwise, outer.graph["objects"]).edges[write, look]["kind"] == "order"
    assert not dependence_graph(cond.otherwise).has_edge(write, look)


def test_the_prefix_forest_goes_through_regions_and_has_no_cycles():
    tree = prefix_forest([parse_verified(FLOW).main.body])
    edges = {(before.name, after.name, op.NAME) for before, after, op in tree.edges(data="op")}
    assert edges == {
        ("c", "a1", "lm.gen"),
        ("a1", "a2", "lm.gen"),
        ("a2", "a", "cf.cond"),
        ("c", "a", "cf.cond"),
        ("a", "l1", "cf.loop"),
        ("l1", "l2", "cf.loop"),
        ("l1", "l", "cf.loop"),
        ("l2", "l3", "lm.gen"),
        ("l", "v", "lm.gen"),
        ("v", "views", "cf.map"),
        ("views", "view", "cf.race"),
        ("view", "best", "cf.race"),
    }
    assert networkx.is_directed_acyclic_graph(tree)


def tokens_of(op: Op) -> float:
    return 10.0 if isinstance(op, GenOp) else 1.0


def test_the_exported_graph_holds_regions_costs_waves_and_the_critical_path():
    graph = named_dependence_graph(parse_verified(FLOW).main.body, tokens_of)
    assert graph.nodes["2.then.1"] | {"text": ""} == {
        "op": "lm.gen",
        "text": "",
        "op_id": "b",
        "cost": 10.0,
        "wave": 1,
        "critical": True,
        "around": "2",
    }
    assert not graph.nodes["2.otherwise.0"]["critical"]
    assert graph.nodes["2"]["cost"] == 1 + 10 + 10 + 1
    assert graph.edges["2.otherwise.0", "2.otherwise.1"] == {"kind": "order"}
    assert not any(before.count(".") != after.count(".") for before, after in graph.edges)


def test_the_exported_forest_names_contexts():
    forest = named_prefix_forest([parse_verified(FLOW).main.body])
    assert forest.edges["%a1", "%a2"] == {"op": '%a2, %t2 = lm.gen %a1 {id = "b"} : !ctx, !text'}


@given(modules())
def test_exported_graphs_are_read_again(module: Module):
    body = module.main.body
    for graph in (named_dependence_graph(body, tokens_of), named_prefix_forest([body])):
        data = json.loads(json.dumps(node_link(graph)))
        assert {entry["id"] for entry in data["nodes"]} == set(graph)
        again = networkx.node_link_graph(data, edges="edges")
        assert networkx.utils.graphs_equal(again, graph)
        read = networkx.parse_graphml(graphml(graph))
        assert (set(read), set(read.edges)) == (set(graph), set(graph.edges))


def test_longest_paths_are_counted_from_both_ends():
    waits = [(), (), (0, 1), (1,), (2, 3)]
    assert earliest_starts([1, 5, 2, 1, 1], waits) == [0, 0, 5, 5, 7]
    assert longest_paths([1, 5, 2, 1, 1], waits) == [4, 8, 3, 2, 1]


@given(modules())
def test_graphs_of_random_blocks(module: Module):
    for block in (region for function in module.functions for region in _blocks(function.body)):
        graph = dependence_graph(block)
        assert list(graph) == list(block.ops)
        assert networkx.is_directed_acyclic_graph(graph)
        position = {op: index for index, op in enumerate(block.ops)}
        assert all(position[before] < position[after] for before, after in graph.edges)
        found = {op: number for number, wave in enumerate(waves(graph)) for op in wave}
        assert list(found) == sorted(graph, key=lambda op: (found[op], position[op]))
        assert all(
            number == max((found[before] + 1 for before in graph.predecessors(op)), default=0)
            for op, number in found.items()
        )
        path = critical_path(block, steps_of, graph.graph["objects"])
        assert path.cost == _longest(graph) == sum(map(steps_of, path.ops))
        _check_dominators(graph, list(block.ops))


def steps_of(op: Op) -> float:
    return 0.0 if op.IS_TERMINATOR else 1.0


def _longest(graph: networkx.DiGraph) -> float:
    """The cost of the critical path by networkx, where each op but a terminator takes one step."""
    weighted = networkx.DiGraph()
    for op in graph:
        inside = [_longest(dependence_graph(region, graph.graph["objects"])) for region in op.regions]
        steps = steps_of(op) + (max(inside) if getattr(op, "EXCLUSIVE", False) else sum(inside))
        weighted.add_weighted_edges_from((before, op, steps) for before in ("start", *graph.predecessors(op)))
    return networkx.dag_longest_path_length(weighted)


def _blocks(block: Block) -> list[Block]:
    return [block, *(region for op in walk([block]) for region in op.regions)]


def _check_dominators(graph: networkx.DiGraph, ops: list[Op]) -> None:
    """Against networkx, with a start put before all ops that wait for none."""
    rooted = graph.copy()
    rooted.add_edges_from(("start", op) for op in ops if not graph.in_degree(op))
    expected = networkx.immediate_dominators(rooted, "start")
    tree = dominator_tree(graph)
    for op in ops:
        assert [*tree.predecessors(op)] == [found for found in (expected[op],) if found != "start"]


@pytest.mark.parametrize("shape", ["chain", "fan-out", "ladder"])
def test_ten_thousand_ops_take_linear_time(shape: str):
    builder = Builder()
    (root,) = builder.emit(ConcatOp, [TEXT])
    left = right = root
    for _ in range(5_000):
        if shape == "chain":
            (left,) = builder.emit(ConcatOp, [TEXT], text=(left,))
            (left,) = builder.emit(HostCallOp, [TEXT], host="h", id="x", arguments=(left,))
        elif shape == "fan-out":
            builder.emit(HostCallOp, [TEXT], host="h", id="x", declared="reads", arguments=(root,))
            builder.emit(ConcatOp, [TEXT], text=(root,))
        else:  # two chains, and a join of both after each step
            (left,) = builder.emit(ConcatOp, [TEXT], text=(left,))
            (right,) = builder.emit(ConcatOp, [TEXT], text=(right,))
            builder.emit(ConcatOp, [TEXT], text=(left, right))
    (context,) = builder.emit(ContextOp, [CTX])
    builder.emit(ReturnOp, context=context)
    start = time.process_time()
    graph = dependence_graph(builder.block())
    found = waves(graph)
    path = critical_path(builder.block(), steps_of)
    tree = dominator_tree(graph)
    prefix_forest([builder.block()])
    assert time.process_time() - start < 5
    assert sum(map(len, found)) == len(builder.ops) == len(tree)
    assert path.cost == len(found) - (found[-1] == [builder.ops[-1]])
