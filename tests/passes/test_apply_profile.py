from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmc.ir.core import walk
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import InputError
from lmc.ir.ids import base_of, count_holes, each_round_id, fill_holes, matching
from lmc.ir.module import Module, print_module
from lmc.ir.profile import BranchProfile, OpProfile, Profile, RepeatProfile, length_bins
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse_verified
from lmc.ir.usage import Usage
from lmc.passes import PassContext, PassManager, Remark, parse_pipeline, pipeline
from lmc.passes.apply_profile import Places, measured
from tests.compiled_constraints import CACHE, toy_constraints
from tests.flow_strategies import flow_programs
from tests.passes.adversary import Case, cases, observe
from tests.passes.flow_adversary import flow_cases
from tests.program_strategies import Program, programs
from tests.work import calls_of


def outputs(*lengths: int) -> OpProfile:
    return OpProfile(Usage(0, 0, sum(lengths), len(lengths)), 0.0, max(lengths), (), length_bins(lengths))


def applied(module: Module, profile: Profile, spec: str = "apply-profile") -> tuple[Module, list[Remark]]:
    result = PassManager(parse_pipeline(spec)).run(module, PassContext(toy_tokenizer(), CACHE, profile))
    return result.module, list(result.remarks)


def module_of(body: str) -> Module:
    return parse_verified(f"module @f {{ func @f(%on: !bool) {{ %0 = lm.context : !ctx {body} lm.return %0 }} }}")


@st.composite
def profiles_of(draw: st.DrawFn, module: Module) -> Profile:
    """What some run of the module may have measured, or of an older version of it."""
    lengths = st.lists(st.integers(0, 40), min_size=1, max_size=3)
    ops: dict[str, OpProfile] = {"m/gone": outputs(3)}
    branches: dict[str, BranchProfile] = {}
    repeats: dict[str, RepeatProfile] = {}
    for op in walk([module.main.body]):
        if draw(st.booleans()):
            continue
        if isinstance(op, SamplingOp):
            number = draw(st.integers(0, 3))
            ops[fill_holes(op.id, [number] * count_holes(op.id))] = outputs(*draw(lengths))
        elif isinstance(op, CondOp) and op.id is not None:
            branches[op.id] = BranchProfile(draw(st.integers(0, 9)), draw(st.integers(0, 9)))
        elif isinstance(op, RegionOp) and op.id is not None:
            rounds = draw(st.lists(st.integers(0, 9), max_size=3))
            repeats[op.id] = RepeatProfile(len(rounds), sum(rounds), max(rounds, default=0))
    return Profile(module.name, ops, branches, repeats)


@given(case=cases() | flow_cases(), data=st.data())
def test_a_profile_changes_no_result(case: Case, data: st.DataObject):
    profile = data.draw(profiles_of(case.module))
    expected = observe(case.module, case.inputs, run_seed=1, instance=3)
    with_hints, _ = applied(case.module, profile)
    assert observe(with_hints, case.inputs, run_seed=1, instance=3) == expected
    optimized = pipeline("O2", verify_each=True).run(case.module, PassContext(toy_tokenizer(), CACHE, profile)).module
    assert observe(optimized, case.inputs, run_seed=1, instance=3) == expected


@given(program=programs() | flow_programs(depth=3))
def test_what_a_run_measured_is_what_is_expected(program: Program):
    run: dict[str, Any] = {"hosts": program.hosts, "run_seed": 3}
    first = interpret(program.module, program.inputs, ToyEngine(), constraints=program.constraints, **run)
    profile = Profile.from_json(first.profile.to_json())
    after, remarks = applied(program.module, profile)
    for op in walk([after.main.body]):
        if isinstance(op, CondOp) and op.id is not None and op.id in profile.branches:
            share = profile.branches[op.id].probability
            assert share is not None
            assert op.probability == round(share, 4)
        if isinstance(op, SamplingOp) and op.id in profile.ops and op.billable:
            mean = profile.ops[op.id].mean_length
            assert mean is not None
            assert op.expected_tokens == int(mean + 0.5)
    assert not any("that the program does not" in remark.message for remark in remarks)
    second = interpret(after, program.inputs, ToyEngine(), constraints=toy_constraints(after), **run)
    assert (second.value, second.variables, second.text) == (first.value, first.variables, first.text)
    assert {op_id: entry.usage for op_id, entry in second.profile.ops.items()} == {
        op_id: entry.usage for op_id, entry in first.profile.ops.items()
    }
    assert (second.profile.branches, second.profile.repeats) == (first.profile.branches, first.profile.repeats)


@given(case=flow_cases(), data=st.data())
def test_the_same_profile_gives_the_same_text_again(case: Case, data: st.DataObject):
    profile = data.draw(profiles_of(case.module))
    once, remarks = applied(case.module, profile)
    assert print_module(applied(case.module, Profile.from_json(profile.to_json()))[0]) == print_module(once)
    twice, again = applied(once, profile)
    assert twice is once
    assert [remark for remark in remarks if remark.kind == "missed"] == again


def test_nothing_happens_without_a_profile():
    module = module_of('%1, %a = lm.gen %0 {expected_tokens = 3, id = "f/a"} : !ctx, !text')
    result = PassManager(parse_pipeline("apply-profile")).run(module, PassContext())
    assert result.module is module
    assert result.remarks == ()


def test_a_profile_of_another_program_is_refused():
    with pytest.raises(InputError, match="the profile is of the program 'g', not of 'f'") as caught:
        applied(module_of(""), Profile("g"))
    assert caught.value.remedy is not None


def test_expectations_keep_to_what_may_be_generated():
    body = '%1, %a = lm.gen %0 {id = "f/a", max_tokens = 8} : !ctx, !text'
    module, _ = applied(module_of(body), Profile("f", {"f/a": outputs(30, 50)}))
    assert "expected_tokens = 8" in print_module(module)
    absurd = OpProfile(Usage(generated_tokens=2**62, calls=1), lengths=((1, 1),))
    assert "expected_tokens = 8" in print_module(applied(module_of(body), Profile("f", {"f/a": absurd}))[0])


def test_a_bound_of_a_constraint_bounds_what_is_expected():
    """compile-constraints lowers max_tokens."""
    text = """module @f { constraint @c = regex "[ab]{1,3}" func @f() { %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {constraint = @c, id = "f/a", max_tokens = 50} : !ctx, !text lm.return %1 } }"""
    module, _ = applied(parse_verified(text), Profile("f", {"f/a": outputs(40)}), "apply-profile,compile-constraints")
    [op] = [op for op in module.main.body.ops if isinstance(op, SamplingOp)]
    assert (op.max_tokens, op.expected_tokens) == (4, 4)


def test_a_loop_that_was_split_is_measured_by_its_other_part():
    body = """cf.loop {id = "f/@cf.loop.1"} ^condition() { cf.condition %on } ^body() { cf.yield {} }"""
    measured = {"f/@cf.loop.1/@each": RepeatProfile(2, 6, 4)}
    module, remarks = applied(module_of(body), Profile("f", repeats=measured))
    assert [op.expected_rounds for op in module.main.body.ops if isinstance(op, LoopOp)] == [3.0]
    assert [remark.kind for remark in remarks] == ["applied"]


def test_calls_that_are_only_scored_are_known_too():
    body = '%1, %a, %m = lm.select %0 ["x", "y"] {id = "f/a"} : !ctx, !text, !any'
    module, remarks = applied(module_of(body), Profile("f", {"f/a": OpProfile(Usage(calls=2))}))
    assert remarks == []
    assert any(isinstance(op, SelectOp) for op in module.main.body.ops)


def test_a_protected_region_is_known_and_has_no_hint():
    body = """
    %ok, %error = cf.try {id = "f/@cf.try"} : !bool, !any ^body() { %k = py.call int ("x") : !int cf.yield {} }
    """
    module = module_of(body)
    for branches in ({"f/@cf.try": BranchProfile(1, 2)}, dict[str, BranchProfile]()):
        after, remarks = applied(module, Profile("f", branches=branches))
        assert after is module
        assert len(remarks) == (not branches)


def test_work_grows_with_module_and_profile():
    """Each id of the profile is looked up, and not compared with each op."""

    def calls(count: int) -> int:
        body = " ".join(
            f'%c{number}, %t{number} = lm.gen %0 {{id = "f/a{number}"}} : !ctx, !text' for number in range(count)
        )
        module = module_of(body)
        profile = Profile("f", {f"f/a{number}": outputs(3) for number in range(count)})
        context = PassContext(profile=profile)
        kind = parse_pipeline("apply-profile")[0]
        return calls_of(lambda: kind.run(module, context))

    calls(10)  # what is made once
    assert calls(800) < 5 * calls(200)


@given(case=flow_cases(), program=flow_programs(depth=3))
def test_passes_keep_the_ids_of_control_flow(case: Case, program: Program):
    for module in (case.module, program.module):
        before = {op.id for op in walk([module.main.body]) if isinstance(op, RegionOp)}
        after = pipeline("O2", verify_each=True).run(module, PassContext(toy_tokenizer(), CACHE)).module
        found = [op.id for op in walk([after.main.body]) if isinstance(op, RegionOp)]
        known = {op_id for op_id in found if op_id is not None}
        assert known <= before | {each_round_id(op_id) for op_id in before if op_id is not None}
        assert parse_verified(print_module(after)).main.body.ops


def cost(number: int) -> OpProfile:
    return OpProfile(Usage(calls=number))


def matched_calls(templates: list[str], *op_ids: str) -> tuple[dict[str, int], list[str]]:
    """The count of each template, where the profile's ids count 1, 10, 100 and so on."""
    found, unknown = measured(templates, {op_id: cost(10**place) for place, op_id in enumerate(op_ids)})
    return {template: entry.usage.calls for template, entry in found.items()}, unknown


def test_ids_of_runs_belong_to_the_templates_they_were_made_of():
    assert matched_calls(["f/a", "f/b*"], "f/a", "f/b", "f/b#1", "f/b#12") == ({"f/a": 1, "f/b*": 1110}, [])
    assert matched_calls(["f/fork/$/x*"], "f/fork/0/x", "f/fork/13/x#2") == ({"f/fork/$/x*": 11}, [])
    assert matched_calls(["f/v$/x"], "f/v0/x", "f/v10/x") == ({"f/v$/x": 11}, [])
    assert matched_calls(["f*/g#1/x*"], "f/g#1/x", "f#2/g#1/x#3") == ({"f*/g#1/x*": 11}, [])


def test_an_id_without_holes_is_that_of_a_run_and_of_no_template():
    assert matched_calls(["f/a", "f/a*"], "f/a", "f/a#1") == ({"f/a": 1, "f/a*": 10}, [])


def test_templates_that_fit_the_same_run_share_it():
    assert matched_calls(["f/$/a", "f/0/a*"], "f/0/a") == ({"f/$/a": 1, "f/0/a*": 1}, [])


def test_an_op_that_never_ran_takes_what_other_uses_of_its_name_measured():
    assert matched_calls(["f/a", "f/a#1", "f/a#2"], "f/a", "f/a#1") == ({"f/a": 1, "f/a#1": 10, "f/a#2": 11}, [])
    assert matched_calls(["f/fork/3/a"], "f/fork/0/a", "f/fork#1/1/a") == ({"f/fork/3/a": 11}, [])
    assert matched_calls(["f/a"], "f/a#1") == ({"f/a": 1}, [])


def test_names_that_differ_in_digits_are_others():
    assert matched_calls(["f/x1", "f/x2*"], "f/x3", "f/x2") == ({"f/x2*": 10}, ["f/x3"])


def test_what_belongs_to_nothing_is_unknown():
    assert matched_calls(["f/a"], "f/b", "f/a", "f/a/c") == ({"f/a": 10}, ["f/b", "f/a/c"])
    assert matched_calls([], "f/b") == ({}, ["f/b"])


def test_rounds_that_are_captured_one_by_one_are_told_apart_where_they_are_the_same():
    counts = {
        "f/@cf.cond.1": BranchProfile(1),
        "f/@cf.cond.1#1": BranchProfile(2),
        "f/g#_/@cf.cond.1": BranchProfile(4),
    }
    more = Places(counts, ["f/@cf.cond.1", "f/@cf.cond.1#1", "f/@cf.cond.1#2", "f/g/@cf.cond.1"])
    assert [more.find(f"f/@cf.cond.1{end}") for end in ("", "#1", "#2")] == list(map(BranchProfile, (1, 2, 3)))
    assert more.find("f/g/@cf.cond.1") == BranchProfile(4)
    assert more.find("f/@cf.cond.2") is None
    fewer = Places(counts, ["f/@cf.cond.1"])
    assert fewer.find("f/@cf.cond.1") == BranchProfile(3)
    assert fewer.together == {"f/@cf.cond.1": BranchProfile(3), "f/g/@cf.cond.1": BranchProfile(4)}


names = st.text("ab12", min_size=1, max_size=3)
templates = st.lists(st.tuples(names, st.sampled_from(["", "*", "$", "#1"])), min_size=1, max_size=3).map(
    lambda parts: "/".join(name + end for name, end in parts)
)


@given(templates, st.lists(st.integers(0, 30), min_size=3, max_size=3))
def test_every_run_of_a_template_is_found(template: str, numbers: list[int]):
    op_id = fill_holes(template, numbers)
    assert matching(template).fullmatch(op_id)
    assert base_of(op_id) == base_of(base_of(op_id))
    assert measured([template], {op_id: cost(1)}) == ({template: cost(1)}, [])


@given(st.lists(templates, max_size=4, unique=True), st.lists(templates, max_size=4, unique=True))
def test_nothing_is_lost(asked: list[str], found: list[str]):
    op_ids = [fill_holes(template, [1, 2, 3]) for template in found]
    entries = {op_id: cost(1) for op_id in op_ids}
    taken, unknown = measured(asked, entries)
    assert set(taken) <= set(asked)
    assert set(unknown) <= set(entries)
    assert all(entry.usage.calls for entry in taken.values())
    assert measured(asked, entries) == (taken, unknown)
