"""The figures of a view equal those of the commands."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from lmc import driver
from lmc.driver.commands.opt import optimize
from lmc.driver.viewing.view import CompiledView, Room
from lmc.ir.core import walk
from lmc.ir.module import print_module
from lmc.ir.profile import OpProfile, Profile
from lmc.ir.text.parser import parse_verified
from lmc.ir.usage import Usage
from lmc.passes.base import PassContext
from lmc.passes.pipelines import pipeline
from lmc.report.analysis.costs import total_measured, total_planned
from lmc.report.forms.tree import tree
from lmc.report.model import MeasuredCost, OpNode, PlannedCost
from lmc.report.replay import state_at
from tests.examples.cases import EXAMPLES
from tests.project.layers import REPOSITORY
from tests.report.programs import TOY, Case

PREFIX = re.compile(r"a prefix of about ([\d,]+) tokens?(?: and ([\d,]+) texts? known at run time)? is computed once")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


@pytest.fixture(params=sorted(EXAMPLES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case.of(request.param, tmp_path)


def path_to(view: CompiledView, node: int) -> Iterator[int]:
    assert view.plan is not None
    at: int | None = node
    while at is not None:
        yield at
        at = view.plan.prompts[at].parent


def check_plan(view: CompiledView, case: Case, kv_tokens: int, batch: int, tmp_path: Path) -> None:
    """Hold the plan of a view against ``lmc schedule`` and ``lmc simulate``."""
    schedule, plan = case.schedule(kv_tokens, batch), view.plan
    assert plan is not None
    saved = tmp_path / "schedule.jsonl"
    saved.write_text("".join(driver.schedule.schedule_lines(schedule)))
    report, _ = driver.simulate.run(str(saved), policy="lmc", kv_tokens=kv_tokens, batch=batch, prefill_tokens=512)
    data = driver.simulate.report_data(report, calibrated=False)
    assert [(row.row, row.shared) for row in plan.rows] == [
        (entry.instance, entry.shared_characters) for entry in schedule.entries
    ]
    assert (plan.order, plan.block) == (schedule.layout.order, schedule.layout.block)
    total = plan.total
    found = [total.requests, total.prompt, total.cached, total.output]
    assert found == [data[name] for name in ("requests", "prompt_tokens", "hit_tokens", "generated_tokens")]
    same = ("hit_rate", "evicted_tokens", "preemptions", "steps", "depth", "predicted_seconds", "batch")
    assert {name: getattr(plan, name) for name in same} == {name: data[name] for name in same}
    for parts in (view.calls, view.lines):
        planned = [part.planned for part in parts if part.planned is not None]
        sums = [sum(getattr(each, name) for each in planned) for name in ("requests", "prompt", "cached", "output")]
        assert sums == found
    assert not any(call.output or call.planned.output for call in view.calls if call.choices and call.planned)
    assert max((call.planned.longest_prompt for call in view.calls if call.planned), default=0) == total.longest_prompt
    assert sum(node.computed for node in plan.prompts) == total.prompt - total.cached
    assert sum(node.cached for node in plan.prompts) == total.cached
    assert sum(sum(node.ends.values()) for node in plan.prompts) == total.requests
    assert all(node.computed + node.cached == node.requests * node.tokens for node in plan.prompts if not node.folded)
    assert all(0 <= node.recomputed <= node.computed for node in plan.prompts)
    prefixes = {each.tokens[: end + 1].tobytes() for each in schedule.requests() for end in range(each.tokens.size)}
    tokens = [each.prefix[: end + 1] for each in report.timeline.evicted for end in range(each.kept, each.prefix.size)]
    assert sum(node.evicted for node in plan.prompts) == sum(each.tobytes() in prefixes for each in tokens)
    assert len(plan.requests) == total.requests
    for request in plan.requests:
        path = list(path_to(view, request.prefix))
        if not any(plan.prompts[index].folded for index in path):
            assert sum(plan.prompts[index].tokens for index in path) == request.prompt
        assert 0 <= request.ready <= request.started < request.ended <= round(plan.predicted_seconds, 6)
    ends: dict[tuple[int, int], float] = {}
    for request in plan.requests:
        last = ends.get((request.row, request.depth), 0.0)
        ends[request.row, request.depth] = max(last, request.ended)
    assert max((request.depth for request in plan.requests), default=-1) + 1 == plan.depth


def test_the_plan_is_that_of_schedule_and_simulate(case: Case, tmp_path: Path) -> None:
    check_plan(case.view(), case, driver.schedule.HOLDS_ALL, 256, tmp_path)


@pytest.mark.parametrize("name", ["judge", "debate", "multi_chain"])
def test_a_small_pool_evicts(name: str, tmp_path: Path) -> None:
    case = Case.of(name, tmp_path)
    largest = max(request.cached_length for request in case.schedule().requests())
    for room in (largest, largest * 3 // 2):
        view = case.view(kv_tokens=room, batch=2)
        check_plan(view, case, room, 2, tmp_path)
        assert view.plan is not None
        assert view.plan.kv_tokens == room
    tight = case.view(kv_tokens=largest, batch=1).plan
    assert tight is not None
    assert tight.evicted_tokens > 0
    assert any(node.evicted for node in tight.prompts)


def test_the_summary_is_that_of_compile(case: Case) -> None:
    view = case.view()
    function = driver.load_program(case.program)
    runner = driver.runner_for(function, TOY)
    row = next(driver.ArgumentReader(driver.Signature.of(function)).rows(str(case.rows), {}))
    compiled = runner.compile(((), dict(row.arguments)))
    found, program = driver.compiled.summary(compiled), view.program
    assert program.name == found["program"]
    assert program.parameters == found["parameters"]
    assert (program.target, program.level) == (found["target"], found["level"])
    assert {"captured": program.captured_ops, "optimized": program.ops} == found["ops"]
    assert (program.model_calls, program.waves) == (found["model_calls"], found["waves"])
    assert {"batch": program.batch_prefixes, "instance": program.instance_prefixes} == found["prefixes"]
    saved = {"tokens": program.saved_tokens, "calls": program.saved_calls, "steps": program.saved_steps}
    assert saved == found["saved"]
    assert program.host_functions == found["host_functions"]
    assert [remark.text for remark in view.remarks] == [str(remark) for remark in compiled.remarks]
    names = [view.stages[remark.stage].name for remark in view.remarks]
    assert names == [remark.pass_name for remark in compiled.remarks]
    assert [(entry.cause, entry.remedy) for entry in view.breaks] == [
        (entry.cause, entry.remedy) for entry in compiled.breaks
    ]
    assert "\n".join(state_at(view, -1).text) + "\n" == print_module(compiled.module)
    # Each call and each op of the final module once.
    ops = list(walk([compiled.module.main.body]))
    nodes = state_at(view, -1).nodes
    assert [node.op for node in nodes.values()] == [op.NAME for op in ops]
    assert [call.id for call in view.calls] == [getattr(op, "id", None) for op in ops if op.billable and not op.regions]
    assert sum(line.calls for line in view.lines) == len(view.calls) == view.stages[-1].calls
    assert max((call.wave for call in view.calls), default=-1) + 1 == program.waves
    calls = {call.key for call in view.calls if call.critical}
    assert calls <= set(view.critical_path)
    assert len(calls) == program.critical_calls
    assert len(calls) <= program.waves


def check_path(view: CompiledView) -> None:
    """Between two ops of the critical path there is no other way with a call, a tool or a text; nor around it."""
    nodes = state_at(view, -1).nodes
    path = list(view.critical_path)
    assert len(set(path)) == len(path)
    waits: dict[str, set[str]] = {key: set() for key in nodes}
    for key, node in nodes.items():
        for each in node.inputs:
            user: str | None = key
            while user is not None and nodes[user].parent != nodes[each.key].parent:
                user = nodes[user].parent
            if user is not None:
                waits[user].add(each.key)
    needed: dict[str, set[str]] = {}
    for key in nodes:
        needed[key] = {key}.union(*(needed[each] for each in waits[key] if each in needed))
    worth = {key for key, node in nodes.items() if node.kind in ("call", "tool", "text")} - set(path)
    blocks: dict[tuple[str | None, str | None], list[str]] = {}
    for key in path:
        blocks.setdefault((nodes[key].parent, nodes[key].region), []).append(key)
    for (parent, region), chain in blocks.items():
        beside = {key for key in worth if (nodes[key].parent, nodes[key].region) == (parent, region)}
        assert not any(needed[key] & set(chain) >= set(chain) or key in needed[chain[0]] for key in beside)
        for first, last in pairwise(chain):
            assert first in needed[last]
            assert not [key for key in beside if key in needed[last] and first in needed[key]]


TOOL_BETWEEN = """
import lmc


@lmc.tool
def lookup(text: str) -> str:
    return text


@lmc.jit
def f(s, topic: str):
    s += lmc.user(topic)
    found = lookup(s.gen("a", max_tokens=4))
    s += lmc.user("And?")
    s += lmc.user(found)
    return s.select("b", ["yes", "no"])
"""


def test_the_critical_path_has_all_that_is_on_it(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_path(case.view())
    monkeypatch.chdir(tmp_path)
    Path("between.py").write_text(TOOL_BETWEEN)
    view = driver.view.run("between.py", TOY, [], room=Room(driver.schedule.HOLDS_ALL))
    check_path(view)
    kinds = {node.key: node.kind for node in view.stages[0].added}
    assert [kinds[key] for key in view.critical_path if kinds[key] in ("call", "tool")] == ["call", "tool", "call"]


def test_prefixes_are_those_of_the_remarks(case: Case) -> None:
    view = case.view()
    found = sorted((prefix.tokens.known, prefix.tokens.texts) for prefix in view.prefixes)
    matches = [
        PREFIX.match(remark.message) for remark in view.remarks if view.stages[remark.stage].name == "hoist-prefixes"
    ]
    remarked = [(int(match[1].replace(",", "")), int(match[2] or 0)) for match in matches if match is not None]
    assert set(remarked) <= set(found)
    assert len(view.prefixes) == (view.program.batch_prefixes or 0) + (view.program.instance_prefixes or 0)


def test_positions_of_the_slider_are_those_of_opt(case: Case) -> None:
    """Each stage is the module that ``lmc opt --print-after`` prints, and names exactly the ops that changed."""
    view = case.view()
    first = state_at(view, 0)
    module = parse_verified("\n".join(first.text) + "\n", "x.lmir")
    texts: list[str] = []
    runner = driver.runner_for(driver.load_program(case.program), TOY)
    tokenizer = driver.opt.context_for(runner.target().spec).tokenizer
    optimize(
        module,
        pipeline("O2"),
        context=PassContext(tokenizer),
        print_after=driver.opt.ALL_PASSES,
        on_text=texts.append,
    )
    assert [text.partition("\n")[0] for text in texts] == [f"// after {stage.name}" for stage in view.stages[1:]]
    before: dict[str, OpNode] = {}
    for number, stage in enumerate(view.stages):
        state = state_at(view, number)
        if number:
            assert "\n".join(state.text) == texts[number - 1].partition("\n")[2]
        after = state.nodes
        assert len(after) == stage.ops
        assert {node.key for node in stage.added} == after.keys() - before.keys()
        assert set(stage.removed) == before.keys() - after.keys()
        assert {node.key for node in stage.changed} == {
            key for key in after.keys() & before.keys() if after[key] != before[key]
        }
        for node, line in zip(after.values(), state.lines, strict=True):
            assert node.text.endswith("characters)") or state.text[line].strip().startswith(node.text)
            assert {each.key for each in node.inputs} <= after.keys()
            assert node.parent is None or node.parent in after
        for fan in state.fans:
            assert len({(after[key].op, after[key].place, after[key].parent) for key in fan}) == 1 < len(fan)
        before = after


def test_an_op_keeps_its_key(tmp_path: Path) -> None:
    view = Case.of("judge", tmp_path).view()
    captured, final = state_at(view, 0).nodes, state_at(view, -1).nodes
    calls = {node.id: node.key for node in captured.values() if node.kind == "call"}
    assert calls == {node.id: node.key for node in final.values() if node.kind == "call"}
    assert len(calls) == 7


def test_measurements_are_those_of_the_profile(tmp_path: Path) -> None:
    case = Case.of("judge", tmp_path)
    usage = Usage(prompt_tokens=90, cached_tokens=30, generated_tokens=24, calls=2)
    entry = OpProfile(usage, 0.5, 16, (("stop", 2),), ((8, 1), (16, 1)))
    profile = Profile("judge", {"judge/fork/0/judgement": entry})
    file = tmp_path / "judge.profile.json"
    file.write_text(profile.to_json())
    given = {**TOY, "profile": str(file)}
    view = driver.view.run(case.program, given, [], room=Room(driver.schedule.HOLDS_ALL, 256))
    measured = {call.id: call.measured for call in view.calls}
    first = measured["judge/fork/0/judgement"]
    assert first is not None
    assert (first.requests, first.prompt, first.cached, first.output) == (2, 90, 30, 24)
    assert (first.seconds, first.p50, first.longest) == (0.5, 8, 16)
    assert measured["judge/on_topic"] is None
    assert "measured 24 out" in tree(view)


WAVES = """module @f {
  func @f(%b: !bool) {
    %0 = lm.context : !ctx
    %1, %a = lm.gen %0 {id = "f/a"} : !ctx, !text
    %2 = cf.cond %b {id = "f/@c"} : !text ^then() {
      %3, %x = lm.gen %1 {id = "f/x"} : !ctx, !text
      %4, %y = lm.gen %3 {id = "f/y"} : !ctx, !text
      cf.yield (%y)
    } ^otherwise() {
      %5, %z = lm.gen %1 {id = "f/z"} : !ctx, !text
      cf.yield (%z)
    }
    %6 = lm.extend %1 [%2] : !ctx
    %7, %e = lm.gen %6 {id = "f/e"} : !ctx, !text
    lm.return %7
  }
}
"""


def test_sums_have_the_dollars_that_are_known() -> None:
    planned = [PlannedCost(requests=1, dollars=0.5), PlannedCost(requests=2), PlannedCost(dollars=0.25)]
    assert total_planned(planned) == PlannedCost(requests=3, dollars=0.75)
    assert total_planned(planned[1:2]).dollars is None
    measured = MeasuredCost(requests=1, prompt=2, cached=1, output=1, seconds=0.5)
    assert total_measured([measured, measured]).dollars is None
    assert total_measured([measured, measured.model_copy(update={"dollars": 2.0})]).dollars == 2.0


def test_waves_count_from_the_start_of_the_program(tmp_path: Path) -> None:
    """A region's waves follow those before it; arms of a condition begin in the same wave."""
    file = tmp_path / "f.lmir"
    file.write_text(WAVES)
    view = driver.view.run(str(file), {}, [], room=Room(driver.schedule.HOLDS_ALL, 256))
    assert {call.id: call.wave for call in view.calls} == {"f/a": 0, "f/x": 1, "f/y": 2, "f/z": 1, "f/e": 3}
    assert {call.id for call in view.calls if call.critical} == {"f/a", "f/x", "f/y", "f/e"}
    assert (view.program.waves, view.program.critical_calls) == (4, 4)
    parent = next(node for node in state_at(view, -1).nodes.values() if node.op == "cf.cond")
    assert [node.region for node in state_at(view, -1).nodes.values() if node.parent == parent.key] == [
        "then",
        "then",
        "then",
        "otherwise",
        "otherwise",
    ]
