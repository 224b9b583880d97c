"""Every pass, alone and in pipelines, against the reference interpreter."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.module import Module, print_module
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.text.parser import parse
from lmc.passes import PASSES, PassContext, PassManager, parse_pipeline, pipeline
from lmc.passes.pipelines import PIPELINES
from tests.compiled_constraints import CACHE, toy_constraints
from tests.flow_strategies import flow_programs
from tests.passes.adversary import Case, cases, observe, readable
from tests.passes.flow_adversary import flow_cases
from tests.program_strategies import Program, programs

# Each pass with its defaults, and with options that make it act on small programs.
SPECS = (*PASSES, "hoist-prefixes{minimum_tokens=1}", "plan-fork-join{width=1}", "plan-fork-join{width=2}")
EAGER = "compile-constraints,canonicalize,cse,dce,hoist-prefixes{minimum_tokens=1},plan-fork-join"


def _run(spec: str, module: Module) -> Module:
    """Return what the passes make of ``module`` for the toy."""
    return PassManager(parse_pipeline(spec)).run(module, PassContext(toy_tokenizer(), CACHE)).module


def _same(before: Module, after: Module, inputs: dict[str, Any]) -> None:
    for run_seed, instance in ((0, 0), (1, 3)):
        expected = observe(before, inputs, run_seed=run_seed, instance=instance)
        found = observe(after, inputs, run_seed=run_seed, instance=instance)
        assert found == expected, print_module(after)
        assert found.calls <= expected.calls


@pytest.mark.parametrize("spec", SPECS)
@given(case=cases())
def test_a_pass_keeps_what_a_program_does(spec: str, case: Case):
    module, inputs = case.module, case.inputs
    _same(module, _run(spec, module), inputs)
    _same(module, PassManager(parse_pipeline(spec)).run(module).module, inputs)


@pytest.mark.parametrize("level", PIPELINES)
@given(case=cases())
def test_a_level_keeps_what_a_program_does(level: str, case: Case):
    module, inputs = case.module, case.inputs
    _same(module, pipeline(level, verify_each=True).run(module, PassContext(toy_tokenizer(), CACHE)).module, inputs)


@pytest.mark.parametrize("spec", SPECS)
@given(case=flow_cases())
def test_a_pass_keeps_what_a_program_with_regions_does(spec: str, case: Case):
    _same(case.module, _run(spec, case.module), case.inputs)


@pytest.mark.parametrize("level", PIPELINES)
@given(case=flow_cases(max_ops=12))
def test_a_level_keeps_what_a_program_with_regions_does(level: str, case: Case):
    module, inputs = case.module, case.inputs
    _same(module, pipeline(level, verify_each=True).run(module, PassContext(toy_tokenizer(), CACHE)).module, inputs)
    _same(module, pipeline(level, verify_each=True).run(module).module, inputs)


@settings(max_examples=2 * settings.default.max_examples)  # type: ignore[union-attr]
@given(case=cases(max_ops=40))
def test_all_passes_twice_keep_what_a_program_does(case: Case):
    module, inputs = case.module, case.inputs
    _same(module, _run(f"{EAGER},{EAGER}", module), inputs)


@settings(max_examples=2 * settings.default.max_examples)  # type: ignore[union-attr]
@given(case=flow_cases(max_ops=10, depth=3))
def test_all_passes_twice_keep_what_a_program_with_regions_does(case: Case):
    _same(case.module, _run(f"{EAGER},{EAGER}", case.module), case.inputs)


@given(program=programs() | flow_programs(depth=3))
def test_programs_that_do_not_raise_give_the_same_results(program: Program):
    optimized = _run(EAGER, program.module)
    hosts = program.hosts
    before = interpret(program.module, program.inputs, ToyEngine(), hosts=hosts, constraints=program.constraints)
    after = interpret(optimized, program.inputs, ToyEngine(), hosts=hosts, constraints=toy_constraints(optimized))
    assert (after.value, after.variables, after.text) == (before.value, before.variables, before.text)
    assert readable(after) == readable(before)


@given(case=cases() | flow_cases())
def test_what_passes_give_prints_and_parses(case: Case):
    module, inputs = case.module, case.inputs
    optimized = _run(EAGER, module)
    text = print_module(optimized)
    again = parse(text)
    assert print_module(again) == text
    _same(optimized, again, inputs)


@pytest.mark.parametrize("spec", SPECS)
@given(case=cases() | flow_cases())
def test_a_pass_finds_nothing_left_to_do(spec: str, case: Case):
    once = _run(spec, case.module)
    assert print_module(_run(spec, once)) == print_module(once)
