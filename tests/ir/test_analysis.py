from __future__ import annotations

import time

import networkx
import pytest
from hypothesis import given

from lmc.ir.analysis import context_tree, critical_path, dependence_graph, dominator_tree, waves
from lmc.ir.builder import Builder
from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import ConcatOp, ContextOp, ExtendOp, GenOp, HostCallOp, ReturnOp
from lmc.ir.dialects.region_ops import CondOp
from lmc.ir.dialects.regions import effects_of
from lmc.ir.module import Module
from lmc.ir.ordering import uses
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
    graph = dependence_graph(block)
    tokens = critical_path(graph, lambda op: 10.0 if isinstance(op, GenOp) else 1.0)
    assert names_of(tokens.ops) == ["c", "l", "l1", "j", "e", "lm.return"]
    assert tokens.cost == 15.0
    hosts = critical_path(graph, lambda op: 1.0 if isinstance(op, HostCallOp) else 0.0)
    assert (names_of(hosts.ops)[:3], hosts.cost) == (["w", "p", "v"], 4.0)


def test_critical_path_of_nothing():
    found = critical_path(networkx.DiGraph(), lambda _: 1.0)
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


def test_context_tree(block: Block):
    tree = context_tree([block])
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
    assert set(context_tree([Block((), (first, outer))]).nodes) == {c, d, parameter}


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
    path = critical_path(dependence_graph(body), lambda op: 1.0 if isinstance(op, GenOp) else 0.0)
    assert path.cost == 4.0
    assert [op.id for op in path.ops if isinstance(op, GenOp)] == ["a", "b", "c*", "d$"]
    cond = next(op for op in body.ops if isinstance(op, CondOp))
    hosts = critical_path(dependence_graph(body), lambda op: 9.0 if isinstance(op, HostCallOp) else 0.0)
    assert [op for op in hosts.ops if isinstance(op, HostCallOp)] == [body.ops[1], cond.otherwise.ops[0]]


def test_the_graph_of_a_region_knows_what_is_shared_around_it():
    body = parse_verified(FLOW).main.body
    cond = next(op for op in body.ops if isinstance(op, CondOp))
    write, look, _ = cond.otherwise.ops
    outer = dependence_graph(body)
    assert dependence_graph(cond.otherwise, outer.graph["objects"]).edges[write, look]["kind"] == "order"
    assert not dependence_graph(cond.otherwise).has_edge(write, look)


def test_the_context_tree_goes_through_regions_and_has_no_cycles():
    tree = context_tree([parse_verified(FLOW).main.body])
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


@given(modules())
def test_graphs_of_random_blocks(module: Module):
    for block in (region for function in module.functions for region in _blocks(function.body)):
        graph = dependence_graph(block)
        assert list(graph) == list(block.ops)
        assert networkx.is_directed_acyclic_graph(graph)
        position = {op: index for index, op in enumerate(block.ops)}
        assert all(position[before] < position[after] for before, after in graph.edges)
        generations = networkx.topological_generations(graph)
        assert waves(graph) == [sorted(wave, key=position.__getitem__) for wave in generations]
        path = critical_path(graph, lambda _: 1.0)
        assert path.cost == _longest(graph) == len(path.ops)
        _check_dominators(graph, list(block.ops))


def _longest(graph: networkx.DiGraph) -> float:
    """The critical path, worked out by networkx, where each op takes one step."""
    weighted = networkx.DiGraph()
    for op in graph:
        inside = [_longest(dependence_graph(region, graph.graph["objects"])) for region in op.regions]
        steps = 1.0 + (max(inside) if getattr(op, "EXCLUSIVE", False) else sum(inside))
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
    path = critical_path(graph, lambda _: 1.0)
    tree = dominator_tree(graph)
    context_tree([builder.block()])
    assert time.process_time() - start < 5
    assert sum(map(len, found)) == len(builder.ops) == len(tree)
    assert path.cost == len(found)
