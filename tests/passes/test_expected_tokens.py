from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.core import Op
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp
from lmc.ir.module import Module
from lmc.ir.ordering import objects_of, waits_of
from lmc.ir.rewriter import Rewriter, rewrite
from lmc.ir.text.parser import parse_verified
from lmc.passes import PassContext, PassManager, parse_pipeline
from lmc.passes.plan_fork_join.expected_tokens import ExpectedTokens, expects_anything
from tests.passes.adversary import Case, cases, observe
from tests.passes.flow_adversary import flow_cases

YIELD = "{ cf.yield {} }"


def gen(number: int, context: str, expected: int | None) -> str:
    known = "" if expected is None else f"expected_tokens = {expected}, "
    return f'%c{number}, %t{number} = lm.gen %{context} {{{known}id = "f/{number}"}} : !ctx, !text '


def after(body: str) -> list[float]:
    """Of each op of the body the tokens expected from it to the end."""
    text = f"module @f {{ func @f(%on: !bool, %xs: !list<!text>, %c: !ctx) {{ {body} lm.return %c }} }}"
    ops = parse_verified(text).main.body.ops
    objects = objects_of(ops)
    return ExpectedTokens(objects).after(ops, waits_of(ops, objects))[:-1]


def test_calls_after_each_other_add_up_and_others_do_not():
    assert after(gen(0, "c", 9) + gen(1, "c0", 4) + gen(2, "c", 2)) == [15, 5, 3]
    assert after(gen(0, "c", 0) + gen(1, "c0", None)) == [2, 1]


@pytest.mark.parametrize(("hint", "expected"), [("", 11), ("{probability = 0.25}", 3.5), ("{probability = 0.0}", 1)])
def test_a_conditional_has_the_mean_of_its_arms(hint: str, expected: float):
    then, otherwise = (f"{{ {gen(number, 'c', tokens)} cf.yield {{}} }}" for number, tokens in ((0, 10), (1, 0)))
    assert after(f"cf.cond %on {hint} ^then() {then} ^otherwise() {otherwise}") == [expected]


def test_a_loop_has_its_rounds_and_one_more_look_at_its_condition():
    body = f"^condition() {{ {gen(0, 'c', 1)} cf.condition %on }} ^body() {{ {gen(1, 'c', 4)} cf.yield {{}} }}"
    assert after(f"cf.loop {body}") == [2 + 2 + 5]
    assert after(f"cf.loop {{expected_rounds = 2.5}} {body}") == [2 + 2.5 * 7]
    assert after(f"cf.loop {{expected_rounds = 0.0}} {body}") == [2]


def test_elements_run_at_the_same_time():
    assert after(f"cf.map (%xs) ^body(%i: !int, %x: !text) {{ {gen(0, 'c', 4)} cf.yield {{}} }}") == [5]


def test_what_asks_no_model_has_nothing():
    assert after(f"cf.cond %on ^then() {YIELD} ^otherwise() {YIELD}") == [0]


def hinted(module: Module, draw: Any) -> Module:
    def hint(op: Op, _: Rewriter) -> list[Op] | None:
        if isinstance(op, SamplingOp):
            return [dataclasses.replace(op, expected_tokens=draw(st.integers(0, op.max_tokens)))]
        if isinstance(op, CondOp):
            return [dataclasses.replace(op, probability=draw(st.floats(0, 1)))]
        if isinstance(op, LoopOp):
            return [dataclasses.replace(op, expected_rounds=draw(st.floats(0, 9)))]
        return None

    return rewrite(module, hint)


@given(case=cases() | flow_cases(), width=st.sampled_from(["none", "1", "2"]), data=st.data())
def test_what_is_expected_changes_the_order_and_no_result(case: Case, width: str, data: st.DataObject):
    module = hinted(case.module, data.draw)
    expected = observe(case.module, case.inputs)
    spec = f"plan-fork-join{{width={width}}}"
    planned = PassManager(parse_pipeline(spec)).run(module, PassContext()).module
    assert observe(planned, case.inputs) == expected
    again = PassManager(parse_pipeline(spec)).run(planned, PassContext()).module
    assert str(again) == str(planned)
    assert any(isinstance(op, SamplingOp) for op in module.main.body.ops) <= expects_anything(module.main.body)
