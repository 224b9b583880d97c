from __future__ import annotations

import dataclasses
import time

from hypothesis import given

from lmc.ir.builder import Builder
from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import ConcatOp, ContextOp, ExtendOp, PyCallOp, ReturnOp
from lmc.ir.module import Function, Module
from lmc.ir.rewriter import Rewriter, names_in, rewrite, with_regions
from lmc.ir.text.parser import parse
from lmc.ir.types import ANY, CTX, TEXT
from lmc.ir.verify.verifier import verify
from tests.equality import op_key, structurally_equal
from tests.ir.region_ops import BothOp, MapOp, YieldOp, make
from tests.module_strategies import modules


def keep(_op: Op, _rewriter: Rewriter) -> None:
    return None


def merge_equal(op: Op, rewriter: Rewriter, seen: dict[object, tuple[tuple[int, ...], Op]]) -> tuple[Op, ...] | None:
    """What cse does, as a user of the rewriter."""
    if op.effect is not Effect.PURE or op.regions or op.IS_TERMINATOR or hasattr(op, "id"):
        return None
    key = (op_key(op), tuple(value.type for value in op.results))
    for depth in range(len(rewriter.scope), 0, -1):
        found = seen.get((rewriter.scope[:depth], key))
        if found is not None:
            rewriter.replace(op.results, found[1].results)
            return ()
    seen[rewriter.scope, key] = (rewriter.scope, op)
    return None


@given(modules())
def test_a_walk_that_changes_nothing_gives_the_same_object(module: Module):
    assert rewrite(module, keep) is module


@given(modules())
def test_merging_equal_ops_gives_a_module_that_verifies(module: Module):
    changed = module
    for function in module.functions:
        seen: dict[object, tuple[tuple[int, ...], Op]] = {}
        body = Rewriter(function).run(lambda op, rewriter, seen=seen: merge_equal(op, rewriter, seen))
        changed = changed.with_bodies({function.name: body})
    verify(changed)
    assert sum(1 for _ in walk(f.body for f in changed.functions)) <= sum(
        1 for _ in walk(f.body for f in module.functions)
    )


@given(modules())
def test_renaming_every_value_gives_a_module_that_verifies(module: Module):
    def fresh(op: Op, rewriter: Rewriter) -> list[Op]:
        new = [rewriter.fresh(value.type, value.name) for value in op.results]
        rewriter.replace(op.results, new)
        return [dataclasses.replace(op, results=tuple(new))]

    renamed = rewrite(module, fresh)
    verify(renamed)
    names = {value.name for f in renamed.functions for op in walk([f.body]) for value in op.results}
    assert len(names) <= sum(len(op.results) for f in module.functions for op in walk([f.body]))
    if any(op.results for f in module.functions for op in walk([f.body])):
        assert not structurally_equal(renamed, module)


def test_replacements_are_followed_to_the_end():
    rewriter = Rewriter(Function("m", Block()))
    a, b, c, d = (Value(name, TEXT) for name in "abcd")
    rewriter.replace([a], [b])
    rewriter.replace([b], [c])
    rewriter.replace([c], [d])
    assert [rewriter.resolve(value) for value in (a, b, c, d)] == [d] * 4
    rewriter.replace([d], [a])
    assert rewriter.resolve(a) == d


def test_an_op_may_become_several_and_none():
    module = parse(
        "module @m { func @m(%x: !text) { %c = lm.context : !ctx "
        '%a = text.concat ["a", %x] : !text %b = text.concat [%a] : !text '
        "%d = lm.extend %c [%b] : !ctx lm.return %d (%b) } }"
    )

    def on_op(op: Op, rewriter: Rewriter) -> list[Op] | None:
        if not isinstance(op, ConcatOp):
            return None
        if len(op.text) == 1 and isinstance(op.text[0], Value):
            rewriter.replace(op.results, [op.text[0]])
            return []
        part = rewriter.fresh(TEXT, "x")
        first = make(ConcatOp, part, text=op.text[:1])
        return [first, make(ConcatOp, *op.results, text=(part, *op.text[1:]))]

    changed = rewrite(module, on_op)
    verify(changed)
    expected = parse(
        "module @m { func @m(%x: !text) { %c = lm.context : !ctx "
        '%x_1 = text.concat ["a"] : !text %a = text.concat [%x_1, %x] : !text '
        "%d = lm.extend %c [%a] : !ctx lm.return %d (%a) } }"
    )
    assert structurally_equal(changed, expected)


def test_regions_are_rewritten_before_their_op_and_see_what_was_replaced_around_them():
    x, y = Value("x", TEXT), Value("y", TEXT)
    inner = make(MapOp, over=(y,), body=Block((), (make(YieldOp, values=(y,)),)))
    last = Block((), (make(YieldOp, values=(y,)),))
    outer = make(BothOp, body=Block((), (inner, make(YieldOp))), otherwise=last)
    copied = make(ConcatOp, y, text=(x,))
    context = Value("c", CTX)
    ops = (make(ContextOp, context), copied, outer, make(ReturnOp, context=context))
    module = Module("m", (Function("m", Block((x,), ops)),))
    seen: list[tuple[str, tuple[int, ...]]] = []

    def on_op(op: Op, rewriter: Rewriter) -> list[Op] | None:
        seen.append((op.NAME, rewriter.scope))
        if op is copied:
            rewriter.replace([y], [x])
            return []
        assert y not in op.operands
        return None

    changed = rewrite(module, on_op)
    verify(changed)
    assert [name for name, _ in seen] == [
        "lm.context",
        "text.concat",
        "test.yield",
        "test.map",
        "test.yield",
        "test.yield",
        "test.both",
        "lm.return",
    ]
    assert [scope for _, scope in seen] == [(0,), (0,), (0, 1, 2), (0, 1), (0, 1), (0, 3), (0,), (0,)]
    assert [op.operands for op in walk([changed.main.body]) if isinstance(op, YieldOp)] == [(x,), (), (x,)]


def test_blocks_that_did_not_change_are_kept():
    same = Block((), (make(YieldOp),))
    op = make(BothOp, body=same, otherwise=same)
    assert with_regions(op, [same, same]) is op
    other = Block((), (make(YieldOp),))
    changed = with_regions(op, [same, other])
    assert changed.regions == (same, other)
    assert changed.otherwise is other  # type: ignore[attr-defined]


def test_fresh_names_avoid_those_in_regions():
    region = Block((Value("i", TEXT),), (make(ConcatOp, Value("v", TEXT)), make(YieldOp)))
    function = Function("m", Block((Value("x", TEXT),), (make(MapOp, Value("r", ANY), body=region),)))
    assert names_in(function) == {"i", "v", "x", "r"}
    rewriter = Rewriter(function)
    assert [rewriter.fresh(TEXT).name, rewriter.fresh(TEXT).name, rewriter.fresh(CTX, "i").name] == [
        "v_1",
        "v_2",
        "i_1",
    ]


def test_deep_regions_and_long_chains_are_no_matter():
    op: Op = make(PyCallOp, Value("deep", TEXT), function="str", arguments=(Value("x", TEXT),))
    for _ in range(3_000):
        op = make(MapOp, body=Block((), (op,)))
    module = Module("m", (Function("m", Block((Value("x", TEXT),), (op,))),))
    assert rewrite(module, keep) is module

    builder = Builder([Value("x", TEXT)])
    (context,) = builder.emit(ContextOp, [CTX])
    (text,) = builder.emit(ConcatOp, [TEXT], text=("a",))
    for _ in range(10_000):
        (text,) = builder.emit(ConcatOp, [TEXT], text=(text,))
    (context,) = builder.emit(ExtendOp, [CTX], context=context, text=(text,))
    builder.emit(ReturnOp, context=context)
    module = Module("m", (Function("m", builder.block()),))

    def forward(op: Op, rewriter: Rewriter) -> list[Op] | None:
        if isinstance(op, ConcatOp) and isinstance(op.text[0], Value):
            rewriter.replace(op.results, [op.text[0]])
            return []
        return None

    start = time.process_time()
    changed = rewrite(module, forward)
    assert time.process_time() - start < 3
    assert len(changed.main.body.ops) == 4
    verify(changed)
