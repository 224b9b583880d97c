from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.analysis.dependences import earliest_starts
from lmc.ir.analysis.ordering import objects_of, waits_of
from lmc.ir.core import Op
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp
from lmc.ir.dialects.regions import is_write
from lmc.ir.errors import ParseError
from lmc.ir.module import Module
from lmc.ir.rewriter import Rewriter, rewrite
from lmc.ir.text.parser import parse_verified
from lmc.passes import PassContext, PassManager, parse_pipeline
from lmc.passes.plan_fork_join import ExpectedTokens, PlanForkJoin, expects_anything, weight_of
from tests.passes.adversary import Case, cases, observe
from tests.passes.flow_adversary import flow_cases
from tests.passes.modules import module_of, run


@given(case=cases(), width=st.none() | st.integers(1, 3))
def test_waves_respect_dependences_and_width(case: Case, width: int | None):
    body = PassManager((PlanForkJoin(width),)).run(case.module).module.main.body
    calls = {index: op for index, op in enumerate(body.ops) if isinstance(op, SamplingOp | SelectOp)}
    waits = waits_of(body.ops)
    reached: list[int] = []
    for index, op in enumerate(body.ops):
        after = max((reached[earlier] for earlier in waits[index]), default=0)
        call = calls.get(index)
        if call is None:
            reached.append(after)
            continue
        assert call.wave is not None
        assert call.wave >= after
        reached.append(call.wave + 1)
        if width is None:
            assert call.wave == after
        assert op.billable
    requests: dict[int, int] = {}
    for call in calls.values():
        assert call.wave is not None
        requests[call.wave] = requests.get(call.wave, 0) + weight_of(call)
    assert sorted(requests) == list(range(len(requests)))
    if width is not None:
        alone = {call.wave for call in calls.values() if weight_of(call) > width}
        assert all(count <= width or wave in alone for wave, count in requests.items())


@given(case=cases())
def test_groups_have_two_members_of_one_wave(case: Case):
    body = PassManager((PlanForkJoin(),)).run(case.module).module.main.body
    groups: dict[str, list[int | None]] = {}
    for op in body.ops:
        if isinstance(op, SamplingOp | SelectOp) and op.group is not None:
            groups.setdefault(op.group, []).append(op.wave)
    assert all(len(waves) > 1 and len(set(waves)) == 1 for waves in groups.values())
    assert list(groups) == [f"g{number}" for number in range(len(groups))]


@given(case=cases())
def test_what_may_raise_keeps_its_order_and_nothing_passes_a_write(case: Case):
    before = case.module.main.body.ops
    after = PassManager((PlanForkJoin(),)).run(case.module).module.main.body.ops
    first_result = {op.results[0]: index for index, op in enumerate(before) if op.results}
    places = [first_result[op.results[0]] if op.results else before.index(op) for op in after]
    raising = [place for place in places if not before[place].billable and before[place].may_raise]
    assert raising == sorted(raising)
    for position, place in enumerate(places):
        if is_write(before[place]):
            assert all(other < place for other in places[:position])


def test_a_wide_round_serves_the_longest_chains_first():
    body = "    %0 = lm.context : !ctx\n"
    for index in range(4):
        body += f'    %a{index}, %t{index} = lm.gen %0 {{id = "f/{index}", max_tokens = {index + 1}}} : !ctx, !text\n'
    body += '    %b, %u = lm.gen %a3 {id = "f/last"} : !ctx, !text\n'
    body += '    lm.return %b (%t0, %t1, %t2, %u) {structure = "{\\"leaf\\":0}"}'
    lines, remarks = run("plan-fork-join{width=2}", body)
    waves = {
        line.split('id = "f/')[1].split('"')[0]: int(line[line.index("wave = ") + 7])
        for line in lines
        if "lm.gen" in line
    }
    assert waves == {"3": 0, "0": 0, "1": 1, "2": 1, "last": 2}
    assert [remark.message for remark in remarks if remark.kind == "missed"] == [
        "room for 2 requests makes 3 waves of what could run in 2"
    ]


def test_the_waves_of_an_optimal_schedule_are_kept_where_nothing_limits_them():
    body = """
    %0 = lm.context : !ctx
    %a = lm.sample %0 {id = "f/a", n = 5, temperature = 1.0} : !list<!text>
    %1, %b = lm.gen %0 {id = "f/b"} : !ctx, !text
    lm.return %1 (%a) {structure = "{\\"leaf\\":0}"}
    """
    module = module_of(body)
    rounds = earliest_starts([int(op.billable) for op in module.main.body.ops], waits_of(module.main.body.ops))
    assert rounds == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("attributes", "cause"),
    [
        ("wave = -1", "wave is -1"),
        ('group = "g0"', "group 'g0' has no wave or no name"),
        ('group = "", wave = 0', "group '' has no wave or no name"),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        '%1, %a = lm.gen %0 {{id = "f/a", {}}} : !ctx, !text',
        '%1, %a, %s = lm.select %0 ["a", "b"] {{id = "f/a", {}}} : !ctx, !text, !any',
    ],
)
def test_a_plan_that_is_none_is_refused(call: str, attributes: str, cause: str):
    with pytest.raises(ParseError, match=cause):
        module_of(f"%0 = lm.context : !ctx\n {call.format(attributes)}\n lm.return %1")


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
