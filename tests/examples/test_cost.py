"""The costs of the examples are foreseen: what a run measures lies in the ranges."""

from __future__ import annotations

import pytest

from lmc.cost.caching import SharedPrefixes, rule_of
from lmc.cost.estimate import estimate_rows
from lmc.cost.prices import PriceBook
from lmc.cost.texts import counting
from lmc.cost.walk import RowRequests, WalkFacts, walk_row
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Constraints
from lmc.ir.usage import Usage
from tests.examples.cases import EXAMPLES

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
