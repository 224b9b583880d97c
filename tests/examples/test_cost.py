"""The costs of the examples are foreseen: what a run measures lies in the ranges."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lmc
from examples import judge
from lmc.cost import walk
from lmc.cost.caching import SharedPrefixes, rule_of
from lmc.cost.estimate import estimate_rows
from lmc.cost.prices import PriceBook
from lmc.cost.texts import counting
from lmc.cost.walk import WalkFacts, walk_row
from lmc.driver import flush_cache
from lmc.driver.commands.cost import estimate_rows_of
from lmc.driver.options import Options
from lmc.driver.runner import Runner
from lmc.driver.targets.constraints import compiler
from lmc.driver.targets.service import service
from lmc.ir.engine.protocol import EngineInfo
from lmc.ir.errors import InputError
from lmc.ir.semantics.interpreter import interpret
from tests.examples.cases import EXAMPLES, MANY_ROWS, Example, similar_rows
from tests.examples.measured import errors, estimated, outside, run_rows
from tests.examples.ordinary import BOUNDED, PROGRAMS
from tests.recording_toy import RecordingToy
from tests.runtime.remote.faults import Fault, FaultProxy, listed
from tests.runtime.remote.hosted_runs import hosted, target
from tests.runtime.remote.providers.replies import obedient
from tests.runtime.remote.simulator import Simulator
from tests.runtime.remote.test_budgets import billed
from tests.runtime.server.servers import FULL, Served, served

CHANGING = ("dce", "canonicalize", "cse", "compile-constraints", "distribute-loops")
"""Passes that may change what is sent."""
TARGETS = {"toy": Options("toy"), "builtin": Options("builtin", kv_tokens=8_000, deterministic=True)}


LONG = Example(judge.judge, [{"essay": " ".join([row["essay"]] * 60)} for row in EXAMPLES["judge"].rows])
"""Prompts that providers keep in their caches."""
OTHER_ROWS = {
    "toy": (
        ("extract", "judge", "labels"),
        ("character", "debate", "multi_chain", "multiple_choice"),
    ),
    "builtin": (("multiple_choice",), ("character", "judge", "labels", "multi_chain")),
    "chat": (("judge",), ("character", "labels", "multi_chain")),
}
"""Examples whose rows are enough for a profile of other ones, on each target: a few, and more with full counts."""
ON_SERVERS = {"toy": ("debate", "judge", "map_reduce", "react"), "builtin": ("extract", "judge", "multiple_choice")}
ON_PROVIDERS = {
    "chat": ("debate", "labels", "react"),
    "responses": ("judge", "multi_chain", "tree_of_thought"),
    "messages": ("chat", "judge"),
}
"""The examples that make test runs on models behind ``lmc serve``, and on each API; make test-full runs all of them."""
SERVED = {"toy": ("--model", "toy"), "builtin": ("--model", "builtin", "--deterministic", "--kv-tokens", "8000")}


def _refused() -> Any:
    """Let no request through."""
    return listed([Fault.SERVER_ERROR] * 1000)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("target_name", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_cost_of_an_example_lies_in_its_range(name: str, target_name: str) -> None:
    example, options = EXAMPLES[name], TARGETS[target_name]
    rows = example.rows if FULL or target_name == "toy" else example.rows[:1]
    figures, measured = estimated(example.program, options, rows), run_rows(example.program, options, rows)
    assert not measured.fails
    assert measured.dollars is None
    assert not outside(figures, measured)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_cost_of_an_ordinary_program_lies_in_its_range(name: str) -> None:
    program, rows = PROGRAMS[name]
    measured = run_rows(program, TARGETS["toy"], rows)
    for profile in (None, measured.profile):
        assert not outside(estimated(program, TARGETS["toy"], rows, profile), measured)
    for row in rows:
        assert not outside(estimated(program, TARGETS["toy"], [row]), run_rows(program, TARGETS["toy"], [row]))


@pytest.mark.parametrize("name", BOUNDED)
def test_parts_of_answers_bound_prompts(name: str) -> None:
    program, rows = PROGRAMS[name]
    for model in ("toy", "openai:gpt-4.1"):
        options = Options(lmc.remote(model, api="chat", continuation="turns")) if model != "toy" else TARGETS[model]
        assert estimated(program, options, rows).prompt.most is not None


@pytest.mark.parametrize(
    ("name", "api"),
    [(name, api) for api in ON_PROVIDERS for name in (PROGRAMS if FULL or api == "chat" else ("grouped", "outlined"))],
)
def test_the_cost_of_an_ordinary_program_at_a_provider_lies_in_its_range(name: str, api: str) -> None:
    program, rows = PROGRAMS[name]
    reasons = {"reasoning_tokens": 32} if api == "responses" else {}
    with hosted(), Simulator(reply=obedient) as simulator:
        options = Options(target(simulator.url, api, continuation="turns", **reasons))
        figures, measured = estimated(program, options, rows), run_rows(program, options, rows)
        assert not outside(figures, measured)
        # Requests beside the one that failed may end after their row.
        assert measured.fails or measured.dollars == billed(simulator).usd


def test_answers_of_a_fallback_are_in_the_range() -> None:
    """It has other prices, another cache and its own reasoning."""
    with hosted(), Simulator(reply=obedient) as simulator, FaultProxy(simulator.url, _refused()) as proxy:
        first, second = target(proxy.url, "messages", attempts=1), target(simulator.url, "chat-reasoning")
        address, key = second.settings["base_url"], second.settings["api_key_env"]
        Path("pyproject.toml").write_text(
            '[tool.lmc.targets.second]\nkind = "openai"\nmodel = "gpt-5.6"\n'
            f'base_url = "{address}"\napi_key_env = "{key}"\napi = "chat"\n'
            "reasoning_tokens = 32\n"
        )
        options = Options(lmc.remote(first.spec, **{**first.settings, "fallback": "second"}))
        program, rows = LONG.program, LONG.rows
        figures, measured = estimated(program, options, rows), run_rows(program, options, rows)
        answered = {name: value for name, value in measured.figures.items() if name != "calls"}
        assert not outside(figures, replace(measured, figures=answered))


@pytest.fixture(scope="module")
def servers() -> Generator[Callable[[str], Served]]:
    """Start ``lmc serve`` with a model at its first use."""
    started: dict[str, Served] = {}
    with ExitStack() as stack:

        def start(model: str) -> Served:
            if model not in started:
                started[model] = stack.enter_context(served(*SERVED[model]))
            return started[model]

        yield start


@pytest.mark.parametrize(
    ("name", "model"), [(name, model) for model, names in ON_SERVERS.items() for name in (EXAMPLES if FULL else names)]
)
def test_the_cost_of_an_example_on_a_server_lies_in_its_range(
    name: str, model: str, servers: Callable[[str], Served]
) -> None:
    # The tokenizer of the built-in model is in its folder; the toy has none, so its tokens are estimated.
    url = f"server:{servers(model).url}"
    Path("pyproject.toml").write_text(f'[tool.lmc.prices."{url}"]\ninput = 1\noutput = 4\ncached = 0.1\n')
    options = Options(lmc.remote(url, continuation="turns"))
    example = EXAMPLES[name]
    rows = example.rows if FULL else example.rows[:1]
    measured = run_rows(example.program, options, rows)
    figures = estimated(example.program, options, rows)  # the run has asked the server what it can do
    assert not measured.fails
    assert measured.dollars
    assert not outside(figures, measured)


@pytest.mark.parametrize(
    ("name", "api"),
    [(name, api) for api, names in ON_PROVIDERS.items() for name in (*(EXAMPLES if FULL else names), "long")],
)
def test_the_cost_of_an_example_at_a_provider_lies_in_its_range(name: str, api: str) -> None:
    example = LONG if name == "long" else EXAMPLES[name]
    reasons = {"reasoning_tokens": 32} if api == "responses" else {}
    with hosted(), Simulator(reply=obedient) as simulator:
        options = Options(target(simulator.url, api, continuation="turns", **reasons))
        try:
            figures = estimated(example.program, options, example.rows)
        except InputError:
            assert name not in ON_PROVIDERS[api], "the provider takes it"
            assert run_rows(example.program, options, example.rows).fails, "what is not estimated can't be run"
            assert not simulator.arrivals
            return
        measured = run_rows(example.program, options, example.rows)
        assert not outside(figures, measured)
        assert measured.dollars == billed(simulator).usd > 0
        assert name not in ON_PROVIDERS[api] or not measured.fails
        if name == "long" and api != "messages":  # lmc marks nothing for the cache of Anthropic
            assert measured.figures["cached"] > 0
            assert (measured.figures["cache_written"] > 0) == (api == "responses")


@pytest.mark.parametrize(
    ("name", "place"),
    [(name, place) for place, (few, more) in OTHER_ROWS.items() for name in (*few, *more[: None if FULL else 0])],
)
def test_figures_are_within_a_tenth_with_a_profile_of_other_rows(name: str, place: str) -> None:
    """Enough random rows to have the same means; fewer would be a test of the rows."""
    program, rows = EXAMPLES[name].program, similar_rows(MANY_ROWS[name], 40)
    with ExitStack() as stack:
        if place in TARGETS:
            options = replace(TARGETS[place], kv_tokens=None)
        else:
            stack.enter_context(hosted())
            simulator = stack.enter_context(Simulator(reply=obedient))
            options = Options(target(simulator.url, place, continuation="turns"))
        profile = run_rows(program, options, rows[1::2]).profile
        flush_cache(options)
        measured = run_rows(program, options, rows[::2])
        with_profile = errors(estimated(program, options, rows[::2], profile), measured)
        without = errors(estimated(program, options, rows[::2]), measured)
    assert not measured.fails
    assert all(abs(error) <= 0.1 for error in with_profile.values()), with_profile
    print(name, place, "without a profile:", without)


@pytest.mark.parametrize("name", EXAMPLES if FULL else ("map_reduce", "react", "skeleton_of_thought"))
def test_a_profile_of_the_same_rows_has_no_error_beside_that_of_the_estimate(name: str) -> None:
    """Few rows decide by themselves how often what is asked: a profile of others would be one of other programs."""
    example, options = EXAMPLES[name], TARGETS["toy"]
    measured = run_rows(example.program, options, example.rows)
    found = errors(estimated(example.program, options, example.rows, measured.profile), measured)
    assert all(abs(error) <= 0.1 for error in found.values()), found


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


@lmc.jit
def sides(s: Any, topic: str) -> str:
    rules = "Each rule of the house has a number. " * 400
    s += lmc.user(topic)
    with s.assistant():
        s.gen("kind", max_tokens=3)
    if s["kind"].startswith("q"):
        s += lmc.user(rules + "Say no.")
        with s.assistant():
            s.gen("no", max_tokens=8)
    else:
        s += lmc.user(rules + "Say yes.")
        with s.assistant():
            s.gen("yes", max_tokens=8)
    return s["kind"]


def test_the_two_sides_of_a_condition_are_no_hits_of_each_other():
    rows = [{"topic": topic} for topic in ("tea", "rain", "snow")]
    found = estimated(sides, Options("openai:gpt-4.1"), rows)
    assert found.prompt.expected > 3000
    assert found.cached.expected == 0


@lmc.jit
def endless(s: Any, topic: str) -> str:
    number = 0
    while number < len(topic):
        number = number * 2
        s += topic
        s.gen("more", max_tokens=3)
    return s["more"]


def test_a_row_that_never_ends_fails_and_makes_its_report_incomplete(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(walk, "_MOST_KNOWN_ROUNDS", 50)
    found = estimate_rows_of(endless, Options("toy").updated("endless"), [{"topic": "tea"}, {"topic": ""}])
    [(number, error)] = found.failed
    assert number == 0
    assert "may have no end" in str(error)
    assert not found.is_whole
