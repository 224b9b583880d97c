from __future__ import annotations

import time

import pytest

from lmc.ir.analysis.dependences import critical_path, prefix_forest
from lmc.ir.analysis.ordering import waits_of
from lmc.ir.builder import Builder
from lmc.ir.core import Block, Effect, Value, op_class, op_names
from lmc.ir.dialects.core_ops import ConcatOp, GenOp, HostCallOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp, MapOp, RaceOp, YieldOp
from lmc.ir.dialects.regions import RegionOp, effects_of, is_write, may_leave
from lmc.ir.module import Module, print_module
from lmc.ir.text.parser import parse
from lmc.ir.types import ANY, BOOL, CTX, INT, TEXT
from lmc.ir.verify.verifier import MAX_REGION_DEPTH, verify
from tests.ir.breaks import BREAK
from tests.ir.region_ops import make
from tests.ir.region_programs import GEN, TEMPLATE, first, module

F, C, X, N = Value("f", BOOL), Value("c", CTX), Value("x", TEXT), Value("n", INT)


def test_effects_and_flags_are_those_of_what_is_inside():
    inner = '%w = host.call @{0} {{declared = "{1}", id = "w"}} : !any'
    arm = "cf.cond %f ^then() {{ {0} cf.yield {{}} }} ^otherwise() {{ cf.yield {{}} }}"
    loop = "cf.loop ^condition() {{ cf.condition %f }} ^body() {{ {0} cf.yield {{}} }}"
    plain = first(arm.format("%t = text.concat [%x] : !text"))
    assert (plain.effect, plain.may_raise, plain.billable) == (Effect.PURE, False, False)
    assert effects_of(plain) == {Effect.PURE}
    asks = first(arm.format(GEN.format("p", "a")))
    assert (asks.effect, asks.may_raise, asks.billable) == (Effect.SAMPLES, True, True)
    reads = first(arm.format(GEN.format("p", "a") + inner.format("get", "reads")))
    assert reads.effect is Effect.READS
    assert effects_of(reads) == {Effect.PURE, Effect.SAMPLES, Effect.READS}
    assert not is_write(reads)
    writes = first(loop.format(arm.format(inner.format("write", "writes"))))
    assert (writes.effect, writes.may_raise, writes.billable) == (Effect.WRITES, True, False)
    assert is_write(writes)
    checks = first(arm.format("py.assume %x {expected = 1}"))
    assert (checks.effect, checks.may_raise, is_write(checks)) == (Effect.WRITES, True, False)
    leaves = first("cf.cond %f ^then() { lm.return %c } ^otherwise() { cf.yield {} }")
    assert (leaves.effect, leaves.may_raise, is_write(leaves)) == (Effect.WRITES, False, False)
    raises = first(arm.format("%i = py.call int (%x) : !int"))
    assert (raises.effect, raises.may_raise) == (Effect.PURE, True)


@pytest.mark.parametrize(
    ("body", "raises"),
    [
        ("cf.loop ^condition() { cf.condition %f } ^body() { cf.yield {} }", False),
        ("cf.loop {limit = 9} ^condition() { cf.condition %f } ^body() { cf.yield {} }", True),
        ("cf.map (%xs, %cs) ^body(%i: !int, %e: !text, %d: !ctx) { cf.yield {} }", False),
        ("cf.map (%xs, %cs) {strict = true} ^body(%i: !int, %e: !text, %d: !ctx) { cf.yield {} }", True),
        ("cf.map (%xs) {strict = true} ^body(%i: !int, %e: !text) { cf.yield {} }", False),
        ("%r = cf.race (%xs) : !bool ^body(%i: !int, %e: !text) { cf.yield (%f) }", True),
    ],
)
def test_what_may_raise_by_itself(body: str, raises: bool):
    assert first(body).may_raise is raises


def test_ends_of_the_program_are_found_wherever_they_stand():
    cond = "cf.cond %f ^then() { " + BREAK + " } ^otherwise() { cf.yield {} }"
    loop = f"cf.loop ^condition() {{ cf.condition %f }} ^body() {{ {cond} cf.yield {{}} }}"
    returns = cond.replace(BREAK, "lm.return %c")
    for body, leaves in (
        (cond, True),
        (loop, True),
        (returns, True),
        (loop.replace(cond, returns), True),
        ("cf.cond %f ^then() { cf.yield {} } ^otherwise() { cf.yield {} }", False),
    ):
        found = module(body).main.body
        assert may_leave(found)  # main returns
        op = found.ops[0]
        assert isinstance(op, RegionOp)
        assert op.leaves is leaves


def test_free_values_come_from_outside_and_each_once():
    op = first(
        "%r = cf.loop (%n) : !int ^condition(%i: !int) { %g = py.call lt (%i, %n) : !bool cf.condition %g (%i) } "
        "^body(%j: !int) { cf.cond %f ^then() { %t = text.concat [%x, %x] : !text cf.yield {} } "
        "^otherwise() { cf.yield {} } %k = py.call add (%j, 1) : !int cf.yield (%k) }"
    )
    assert isinstance(op, LoopOp)
    assert op.free_values == (N, F, X)
    assert op.operands == (N,)


def test_flows_say_where_values_go():
    def named(pairs: object) -> list[tuple[str, str]]:
        return [(before.name, after.name) for before, after in pairs]  # type: ignore[attr-defined]

    cond = first("%r = cf.cond %f : !any ^then() { cf.yield (%n) } ^otherwise() { cf.yield (%x) }")
    assert isinstance(cond, CondOp)
    assert named(cond.flows()) == [("n", "r"), ("x", "r")]
    assert named(cond.carried()) == []
    loop = first(
        "%r = cf.loop (%n) : !int ^condition(%i: !int) { cf.condition %f (%i) } ^body(%j: !int) { cf.yield (%j) }"
    )
    assert isinstance(loop, LoopOp)
    assert named(loop.flows()) == [("n", "i"), ("i", "j"), ("i", "r")]
    assert named(loop.carried()) == [("j", "i")]
    mapped = first("%r = cf.map (%xs) : !list<!text> ^body(%i: !int, %e: !text) { cf.yield (%e) }")
    assert isinstance(mapped, MapOp)
    assert named(mapped.flows()) == [("xs", "e"), ("e", "r")]
    race = first("%r, %d = cf.race (%cs) : !bool, !ctx ^body(%i: !int, %e: !ctx) { cf.yield (%f, %e) }")
    assert isinstance(race, RaceOp)
    assert named(race.flows()) == [("cs", "e"), ("f", "r"), ("e", "d")]
    stopped = first("%r = cf.cond %f : !text ^then() { " + BREAK + " } ^otherwise() { cf.yield (%x) }")
    assert isinstance(stopped, CondOp)
    assert named(stopped.flows()) == [("x", "r")]


def test_every_op_with_regions_sums_up_what_is_inside():
    kinds = [kind for name in op_names() if (kind := op_class(name)) is not None and kind.REGION_FIELDS]
    assert {CondOp, LoopOp, MapOp, RaceOp} <= set(kinds)
    assert all(issubclass(kind, RegionOp) for kind in kinds)


def nested(depth: int, ops_per_level: int) -> Module:
    """Conditions in each other, with the same number of ops at every level, that use what is at all levels around."""
    names = Builder((F, C, X, N))
    level = names
    levels = [level]
    for _ in range(depth):
        level = level.nested()
        levels.append(level)
    outer = [X]
    for inner in levels:
        for index in range(ops_per_level // 3):
            (text,) = inner.emit(ConcatOp, [TEXT], text=(outer[index % len(outer)],))
            inner.emit(GenOp, [CTX, TEXT], context=C, occurrences=(N,), id=f"{len(outer)}*")
            inner.emit(HostCallOp, [ANY], host="write", id=f"w{len(outer)}", arguments=(text,))
            outer.append(text)
    for inner, around in zip(reversed(levels[1:]), reversed(levels[:-1]), strict=True):
        inner.emit(YieldOp)
        around.emit(CondOp, flag=F, then=inner.block(), otherwise=Block((), (make(YieldOp),)))
    template = parse(TEMPLATE.replace("BODY", ""))
    body = names.block()
    return template.with_main(Block(template.main.parameters, (*body.ops, template.main.body.terminator)))


@pytest.mark.parametrize("depth", [1, MAX_REGION_DEPTH])
def test_ten_thousand_nested_ops_take_linear_time(depth: int):
    big = nested(depth, 10_000 // (depth + 1))
    start = time.process_time()
    verify(big)
    waits_of(big.main.body.ops)
    path = critical_path(big.main.body, lambda op: float(op.billable))
    prefix_forest([big.main.body])
    assert print_module(big).count("lm.gen") == len(prefix_forest([big.main.body]).edges)
    for op in big.main.body.ops:
        assert op.effect in Effect
    elapsed = time.process_time() - start
    assert path.cost >= 1
    assert elapsed < 6
