from __future__ import annotations

import pytest

from lmc.ir.core import Block, Op, Value, op_class, op_names, register, walk
from lmc.ir.dialects.core_ops import ConcatOp, ContextOp, EndOp, ExtendOp, PyCallOp, ReturnOp
from lmc.ir.errors import Location, VerifyError
from lmc.ir.module import Function, Module, print_module
from lmc.ir.types import CTX, TEXT
from tests.ir.region_ops import BothOp, MapOp, YieldOp, make

C, D, T, U = Value("c", CTX), Value("d", CTX), Value("t", TEXT), Value("u", TEXT)


def test_values_compare_by_name_and_type_and_ops_by_identity():
    assert Value("t", TEXT) == T
    assert Value("t", CTX) != T
    assert str(T) == "%t"
    assert make(ContextOp, C) != make(ContextOp, C)


def test_operands_come_in_field_order_with_repeats_and_without_literals():
    assert make(ExtendOp, D, context=C, text=("a", T, "b", T)).operands == (C, T, T)
    assert make(PyCallOp, U, function="str", arguments=(1, T, "x")).operands == (T,)
    assert make(ReturnOp, context=C, values=(T,), variables=(U, T)).operands == (C, T, U, T)


def test_substitution_replaces_operands_only():
    op = make(ExtendOp, D, context=C, role="user", text=("t", T), location=Location("a.py", 1))
    new = op.substitute({C: D, T: U})
    assert (new.operands, new.results, new.location) == ((D, U), (D,), op.location)
    assert getattr(new, "text", None) == ("t", U)
    assert op.substitute({U: T}) is op
    assert op.substitute({}) is op
    assert op.operands == (C, T)


def test_substitution_leaves_regions_alone():
    region = Block((), (make(YieldOp, values=(T,)),))
    op = make(MapOp, over=(T,), body=region)
    assert op.substitute({T: U}).regions == (region,)
    assert op.substitute({T: U}).operands == (U,)


def test_walk_visits_outer_before_inner_in_order():
    first, second, last = make(YieldOp), make(YieldOp), make(YieldOp)
    inner = make(MapOp, body=Block((), (first,)))
    outer = make(BothOp, body=Block((), (inner, second)), otherwise=Block((), (last,)))
    end = make(ReturnOp, context=C)
    assert [*walk([Block((), (outer, end)), Block((), (first,))])] == [outer, inner, first, second, last, end, first]


def test_walk_is_not_recursive():
    op: Op = make(YieldOp)
    for _ in range(5_000):
        op = make(MapOp, body=Block((), (op,)))
    assert sum(1 for _ in walk([Block((), (op,))])) == 5_001


def test_a_module_finds_and_replaces_its_main_function():
    main, other = Function("m", Block((T,), (make(ReturnOp, context=C),))), Function("o", Block())
    module = Module("m", (other, main))
    assert module.main is main
    assert main.parameters == (T,)
    assert main.body.terminator is main.body.ops[-1]
    body = Block((U,))
    changed = module.with_main(body)
    assert changed.main.body is body
    assert changed.functions[0] is other
    assert module.main is main


def test_ops_are_found_by_name():
    assert op_class("text.concat") is ConcatOp
    assert op_class("text.nothing") is None
    assert list(op_names()) == sorted(op_names())


def test_two_ops_can_not_share_a_name():
    class Second(Op):
        pass

    with pytest.raises(ValueError, match=r"two ops are called lm\.end"):
        register("lm.end")(Second)


def test_a_failure_names_the_op():
    error = make(EndOp, D, context=C, location=Location("a.py", 2)).fail("is wrong", "mend it")
    assert isinstance(error, VerifyError)
    assert str(error) == "a.py:2: lm.end: is wrong\n  remedy: mend it"


def test_a_module_prints_as_its_text() -> None:
    module = Module("m", (Function("m", Block((T,), (make(ContextOp, C), make(EndOp, context=C)))),))
    assert str(module) == print_module(module)
    assert repr(module) == "<Module m: 2 ops>"
