from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.analysis import earliest_starts
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.dialects.regions import is_write
from lmc.ir.errors import ParseError
from lmc.ir.ordering import waits_of
from lmc.passes import PassManager
from lmc.passes.plan_fork_join.list_scheduling import weight_of
from lmc.passes.plan_fork_join.plan_fork_join import PlanForkJoin
from tests.passes.adversary import Case, cases
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
        "width=2 makes 3 waves of what could run in 2"
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
