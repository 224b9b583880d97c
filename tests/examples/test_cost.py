"""The costs of the examples are foreseen: what a run measures lies in the ranges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmc.cost.caching import SharedPrefixes, rule_of
from lmc.cost.estimate import estimate_rows
from lmc.cost.prices import PriceBook
from lmc.cost.texts import counting
from lmc.cost.walk import RowRequests, WalkFacts, walk_row
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.constraints import compiler
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.semantics.interpreter import interpret
from lmc.ir.usage import Usage
from tests.examples.cases import EXAMPLES
from tests.recording_toy import RecordingToy

CHANGING = ("dce", "canonicalize", "cse", "compile-constraints", "distribute-loops")
"""Passes that may change what is sent."""
TARGETS = {"toy": Options("toy"), "builtin": Options("builtin", kv_tokens=8_000, deterministic=True)}


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_cost_of_an_example_lies_in_its_range(name: str, target_name: str) -> None:
    example = EXAMPLES[name]
    rows = example.rows if target_name == "toy" else example.rows[:1]
    runner = Runner(example.program, TARGETS[target_name])
    target = runner.target()
    tokenizer = counting(service().engines.tokenizer(target))
    walked: list[tuple[Module, RowRequests]] = []
    for row in rows:
        plan, values = runner.place(((), row))
        inputs = {parameter.value.name: values[parameter.name] for parameter in plan.parameters}
        info = EngineInfo(target.spec, 1 << 20, capabilities=target.capabilities)
        facts = WalkFacts(tokenizer, info, Constraints.of(plan.module.constraints, None))
        walked.append((plan.module, walk_row(plan.module, inputs, facts)))
    total = estimate_rows(walked, PriceBook().find(target), SharedPrefixes(rule_of(target), tokenizer)).total
    assert not any(row.error for _, row in walked)
    assert total.dollars is None
    results = runner.batch([((), row) for row in rows])
    usage = sum((result.usage for result in results), Usage())
    assert usage.calls in total.calls
    assert usage.prompt_tokens in total.prompt
    assert usage.cached_tokens in total.cached
    assert usage.generated_tokens in total.output


@pytest.mark.parametrize("name", EXAMPLES)
def test_with_recorded_answers_the_estimate_without_a_pass_is_what_a_run_without_it_measures(name: str) -> None:
    example = EXAMPLES[name]
    tokenizer = counting(service().engines.tokenizer(Runner(example.program, TARGETS["toy"]).target()))
    for disabled in (None, *CHANGING):
        options = replace(TARGETS["toy"], disabled_passes=() if disabled is None else (disabled,))
        ((compiled, values),) = Runner(example.program, options).place_all([((), example.rows[0])])
        module = compiled.plan.module
        inputs = {parameter.value.name: values[parameter.name] for parameter in compiled.plan.parameters}
        engine = RecordingToy()
        constraints = compiled.constraints(compiler(compiled.cache, compiled.tokenizer))
        outcome = interpret(module, inputs, engine, hosts=compiled.hosts, constraints=constraints)
        info = EngineInfo("toy", 1 << 20, capabilities=compiled.target.capabilities)
        facts = WalkFacts(tokenizer, info, constraints, recorded=engine.answer)
        total = estimate_rows(
            [(module, walk_row(module, inputs, facts))],
            PriceBook().find(compiled.target),
            SharedPrefixes(rule_of(compiled.target), tokenizer),
        ).total
        measured = {
            "calls": outcome.usage.calls,
            "prompt": outcome.usage.prompt_tokens,
            "output": outcome.usage.generated_tokens,
        }
        for figure, value in measured.items():
            found = getattr(total, figure)
            assert value in found, (disabled, figure, value, found)
            if not compiled.hosts:
                assert found.is_exact, (disabled, figure, found)
