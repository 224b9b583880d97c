"""Timelines beside programs: figures equal those of the run, and timelines of something else are refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median_low
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lmc.report.view
from lmc import driver
from lmc.driver.batch.run_record import rows_digest
from lmc.ir.errors import InputError
from lmc.ir.profile import Profile
from lmc.report.analysis.prompts import PromptTree, PromptUse, prompt_tree
from lmc.report.given import Batch
from lmc.report.model import CompiledView, Divergence, MeasuredCost
from lmc.report.timeline import REQUESTS

PROGRAM = """
import lmc


@lmc.tool(effect="reads")
def look(text: str) -> str:
    if text == "fail":
        raise LookupError("nothing")
    return text.upper()


@lmc.jit
def grade(s, essay: str):
    s += lmc.system("You grade essays.")
    s += lmc.user(f"Essay: {look(essay)}")
    views = s.fork(2)
    for number in range(2):
        views[number] += lmc.user(f"View {number}?")
        views[number].gen("view", n=2, max_tokens=6, temperature=1.0)
    s.gen("verdict", max_tokens=6)
    return s.select("grade", ["good", "bad"])


@lmc.jit
def breaks(s, essay: str):
    s += essay
    s.gen("first", max_tokens=4)
    eval("0")
    return s.gen("second", max_tokens=4)
"""
ROWS: list[dict[str, Any]] = [{"essay": f"essay {number}"} for number in range(5)] + [{"essay": "fail"}]
ROOM = driver.view.Room(driver.schedule.HOLDS_ALL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program and its rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "measured_program.py").write_text(PROGRAM)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def recorded(
    name: str = "grade", target: str = "toy", own: list[dict[str, Any]] = ROWS, kv_tokens: int | None = None
) -> Profile:
    """Run the rows, write ``t.json``, and return the profile of all rows. Another pool is another engine."""
    spec = f"measured_program.py:{name}"
    options = {"target": target} if kv_tokens is None else {"target": target, "kv_tokens": kv_tokens}
    runner = driver.runner_for(driver.load_program(spec), options)
    header = driver.timeline_header(runner.program, [spec], runner.target(), "rows.jsonl")
    with driver.TimelineFile("t.json", header) as file:
        part = [(number, ((), row)) for number, row in enumerate(own)]
        results = dict(runner.run_rows([part], None, file))
    return Profile.merge(runner.program, [result.profile for result in results.values()])


def view(name: str = "grade", target: str = "toy", **more: Any) -> CompiledView:
    spec = f"measured_program.py:{name}"
    return driver.view.run(spec, {"target": target}, [], timeline="t.json", room=ROOM, **more)


@pytest.mark.parametrize("target", ["toy", "builtin"])
def test_the_costs_of_calls_are_those_of_the_profiles(target: str):
    profile = recorded(target=target)
    found = view(target=target)
    costs = {call.id: call.measured for call in found.calls}
    assert len(costs) == 4
    for op_id, cost in costs.items():
        assert isinstance(cost, MeasuredCost)
        entry = profile.ops[op_id]
        usage = (entry.usage.calls, entry.usage.prompt_tokens, entry.usage.cached_tokens, entry.usage.generated_tokens)
        assert (cost.requests, cost.prompt, cost.cached, cost.output) == usage
        assert (cost.p50, cost.longest) == (entry.length_quantile(0.5), entry.longest)
    run = found.timeline
    assert run is not None
    times: dict[str, list[float]] = {}
    for each in run.requests:
        times.setdefault(each.id, []).append(round(each.ended - each.ready, 6))
    for op_id, cost in costs.items():
        assert cost is not None
        assert cost.p50_seconds == pytest.approx(median_low(times[op_id]), abs=2e-6)
    for form in ("mermaid", "dot"):
        assert driver.view.FORMATS[form](found).count("measured") == 3  # the two views are one node
    total = profile.usage
    assert (run.prompt, run.cached, run.output) == (total.prompt_tokens, total.cached_tokens, total.generated_tokens)
    assert (run.computed is None) == (run.steps is None) == (target == "toy")
    prefills = [each for each in run.requests if each.kind == "prefill"]
    found_ahead, ahead = sum(each.cached for each in prefills), sum(each.prompt for each in prefills)
    assert (run.prefill_count, run.prefill_prompt, run.prefill_cached) == (len(prefills), ahead, found_ahead)
    if run.steps is not None:
        assert run.computed == run.steps.prefill
        assert run.cached + run.prefill_cached == run.steps.found
        # The last token of a choice is scored and never computed.
        selects = sum(each.kind == "score" for each in run.requests)
        assert run.beyond == 2 * selects
        assert run.computed == run.prompt - run.cached + ahead - found_ahead + run.beyond
        assert all(each.admitted is not None for each in run.requests)
    assert run.complete
    assert run.request_count + run.prefill_count == len(run.requests)
    assert run.request_count == profile.usage.calls
    keys = {call.key: call for call in found.calls}
    for each in run.requests:
        assert each.key is not None
        if each.kind != "prefill":
            assert (each.id, each.wave) == (keys[each.key].id, keys[each.key].wave)
    names = {node.key: node for node in found.stages[0].added}
    assert all(each.key in names and names[each.key].kind == "tool" for each in run.tools)
    assert sorted((each.row, each.error) for each in run.tools) == [(n, None) for n in range(5)] + [(5, "LookupError")]


def test_the_rows_of_the_run_are_shown_if_they_are_still_there(folder: Path):
    recorded()
    with_rows = view()
    assert with_rows.plan is not None
    assert with_rows.plan.row_count == len(ROWS)
    assert with_rows.notices == ()
    rows = (folder / "rows.jsonl").read_text()
    (folder / "rows.jsonl").write_text('{"essay": "other"}\n')
    changed = view()
    assert changed.plan is None
    cause = "there is no plan of the run: its rows, rows.jsonl, have changed since t.json was recorded"
    assert changed.notices == (f"{cause}; name them with --input",)
    with pytest.raises(InputError, match=r"t.json was recorded with other rows than those of rows.jsonl"):
        view(data="rows.jsonl")
    (folder / "rows.jsonl").unlink()
    gone = view()
    assert gone.plan is None
    notice = "there is no plan of the run: its rows, rows.jsonl, are not here; name them with --input"
    assert gone.notices == (notice,)
    (folder / "moved.jsonl").write_text(rows)
    found = view(data="moved.jsonl")
    assert found.plan == with_rows.plan
    assert found.notices == ()


def test_requests_after_a_break_have_no_key():
    recorded("breaks")
    run = view("breaks").timeline
    assert run is not None
    assert {(each.id, each.key is None) for each in run.requests} == {("breaks/first", False), ("breaks/second", True)}


def test_a_timeline_of_something_else_is_refused(folder: Path):
    recorded()
    with pytest.raises(InputError, match=r"t.json is a timeline of the program 'grade', not of 'breaks'"):
        view("breaks")
    with pytest.raises(InputError, match=r"t.json was recorded with another plan of 'grade'") as failure:
        driver.view.run("measured_program.py:grade", {"target": "toy", "level": "O0"}, [], timeline="t.json", room=ROOM)
    assert failure.value.remedy is not None
    assert "--model 'toy'" in failure.value.remedy
    (folder / "other.py").write_text(PROGRAM)
    with pytest.raises(InputError, match=r"t.json is a timeline of the program 'grade'"):
        driver.view.run("other.py:grade", {"target": "toy"}, [], timeline="t.json", room=ROOM)
    (folder / "measured_program.py").write_text(PROGRAM + "\n")
    with pytest.raises(InputError, match=r"the source of measured_program has changed since t.json was recorded"):
        view()
    with pytest.raises(driver.UsageError, match=r"no.json can't be read"):
        driver.view.run("measured_program.py:grade", {"target": "toy"}, [], timeline="no.json", room=ROOM)
    with pytest.raises(InputError, match=r"measured_program.py is no timeline: line 2 is no event of one"):
        driver.view.run("measured_program.py:grade", {"target": "toy"}, [], timeline="measured_program.py", room=ROOM)


def test_a_cut_timeline_is_shown_with_a_notice(folder: Path):
    recorded()
    lines = (folder / "t.json").read_bytes().splitlines(keepends=True)
    (folder / "t.json").write_bytes(b"".join(lines[:-3]))
    found = view()
    assert found.timeline is not None
    assert not found.timeline.complete
    assert "the run was interrupted or has not ended, or its timeline was cut" in found.notices


def test_a_run_that_has_not_begun_is_shown_with_a_notice(folder: Path):
    recorded()
    lines = (folder / "t.json").read_bytes().splitlines(keepends=True)
    (folder / "t.json").write_bytes(b"".join(lines[:2]))
    found = view()
    assert found.timeline is not None
    assert found.timeline.request_count == 0
    assert "the run has not begun: its timeline names no plan" in found.notices


def events_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line.removesuffix(b",\n")) for line in file.read_bytes().splitlines(keepends=True)[1:-1]]


def write_events(file: Path, events: list[dict[str, Any]]) -> None:
    file.write_text("[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n")


def requests_of(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and event["pid"] == REQUESTS and event["cat"] != "phase"]


def sums(found: CompiledView) -> tuple[int, int]:
    """Tokens that the tree of prompts and the requests beside it computed, and those that they found."""
    assert found.plan is not None
    assert found.timeline is not None
    parts = [node.measured for node in found.plan.prompts if node.measured is not None]
    computed = sum(part.computed for part in parts) + found.timeline.elsewhere
    return computed, sum(part.cached for part in parts) + found.timeline.elsewhere_cached


def computed_again(found: CompiledView) -> int:
    assert found.plan is not None
    return sum(node.measured.recomputed for node in found.plan.prompts if node.measured is not None)


def test_the_measured_tree_adds_up_to_what_the_engine_computed():
    for is_warm in (False, True):  # then the cache has what the run before it has left there
        recorded(target="builtin", kv_tokens=8191)
        found = view(target="builtin")
        run = found.timeline
        assert run is not None
        assert run.steps is not None
        assert sums(found) == (run.steps.prefill, sum(request.cached for request in run.requests))
        assert computed_again(found) == run.elsewhere == 0
        assert (run.elsewhere_cached > 0) == is_warm
        assert found.plan is not None
        for node in found.plan.prompts:
            if node.requests == 1 and not node.generated and node.measured is not None:
                assert node.measured.cached == 0


def test_after_evictions_tokens_are_computed_again(folder: Path):
    recorded(target="builtin", kv_tokens=50)
    found = view(target="builtin")
    run = found.timeline
    assert run is not None
    assert run.steps is not None
    assert run.steps.evicted > 0
    assert sums(found) == (run.steps.prefill, sum(request.cached for request in run.requests))
    assert 0 <= computed_again(found) <= run.steps.prefill

    def of_losses_at(times: Sequence[int]) -> int:
        """Return what is computed again where each request finds nothing and steps at some of the times evict."""
        events = events_of(folder / "t.json")
        for event in events:
            if event["name"] == "step":
                event["args"] |= {"evicted": int(event["ts"] in times), "preempted": 0}
        for event in requests_of(events):
            event["args"] |= {"cached": 0, "computed": event["args"]["prompt"]}
        write_events(folder / "t.json", events)
        return computed_again(view(target="builtin"))

    steps = [event["ts"] for event in events_of(folder / "t.json") if event["name"] == "step"]
    again = [of_losses_at(steps[first:]) for first in (0, len(steps) // 2, len(steps) - 1, len(steps))]
    assert again == sorted(again, reverse=True)
    assert again[0] > 0 == again[-1]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> tuple[Batch, Sequence[str]]:
    """The batch of ``rows.jsonl``, and the keys of its calls."""
    found: list[tuple[Batch, Sequence[str]]] = []

    def kept(batch: Batch, keys: Sequence[str], *rest: Any, **options: Any) -> PromptTree:
        found.append((batch, keys))
        return prompt_tree(batch, keys, *rest, **options)

    monkeypatch.setattr(lmc.report.view, "prompt_tree", kept)
    driver.view.run("measured_program.py:grade", {"target": "toy"}, [], data="rows.jsonl", room=ROOM)
    return found[0]


@st.composite
def prompt_uses(draw: st.DrawFn, count: int) -> list[tuple[int, PromptUse]]:
    """Prompts of a run that never was, with the places of their requests in a batch."""
    found: list[tuple[int, PromptUse]] = []
    for _ in range(draw(st.integers(0, 12))):
        tokens = draw(st.integers(0, 99))
        admitted, prefill, decode = (draw(st.integers(0, 3)) for _ in range(3))  # several are admitted at once
        use = PromptUse(
            tokens,
            cached=draw(st.sampled_from([0, tokens, max(tokens - 1, 0), draw(st.integers(0, tokens))])),
            computed=draw(st.integers(0, 150)),
            admitted=admitted,
            first=admitted + prefill,
            ended=admitted + prefill + decode,
            differs=draw(st.booleans()),
            is_prefix=draw(st.booleans()),
            is_lossy=draw(st.booleans()),
            again=draw(st.integers(0, 9)),
        )
        found.append((draw(st.integers(0, count - 1)), use))
    return sorted(found, key=lambda entry: (entry[1].admitted, entry[1].cached, entry[0]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the examples share the batch
@given(data=st.data())
def test_prompts_are_found_where_an_earlier_request_has_begun_them(
    planned: tuple[Batch, Sequence[str]], data: st.DataObject
):
    batch, keys = planned
    own = data.draw(prompt_uses(len(batch.requests)))
    begun: set[int] = set()
    for count in range(len(own) + 1):
        uses: dict[int, list[PromptUse]] = {}
        for place, use in own[:count]:
            uses.setdefault(place, []).append(use)
        tree = prompt_tree(batch, keys, uses, redact=False)
        parts = {number: node.measured for number, node in enumerate(tree.nodes) if node.measured is not None}
        assert sum(part.computed for part in parts.values()) == sum(use.computed for _, use in own[:count])
        assert sum(part.cached for part in parts.values()) + tree.unplaced == sum(use.cached for _, use in own[:count])
        for number, part in parts.items():
            assert 0 <= part.recomputed <= (part.computed if any(use.is_lossy for _, use in own[:count]) else 0)
            assert number in begun or part.cached == 0
        begun |= {*parts}


def test_later_rounds_of_a_loop_are_in_the_tree(folder: Path):
    (folder / "measured_program.py").write_text(LOOP)
    recorded("loop", target="builtin")
    found = view("loop", target="builtin")
    run = found.timeline
    assert run is not None
    assert run.steps is not None
    assert found.plan is not None
    planned = {request.key for request in found.plan.requests}  # of a condition the plan has one arm
    calls = {call.key for call in found.calls}
    assert run.elsewhere == sum(each.computed or 0 for each in run.requests if each.key in calls - planned)
    words = [each for each in run.requests if each.id.startswith("loop/word")]
    assert len(words) > len(ROWS)  # rounds that the plan does not have
    assert sums(found) == (run.steps.prefill, sum(each.cached for each in run.requests))
    assert run.elsewhere_cached >= sum(each.cached for each in run.requests if each.key in calls - planned)
    assert run.divergence is not None
    assert run.divergence.reason == "the plan has no such request"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the examples share the folder
@given(data=st.data())
def test_any_measured_prompts_add_up(folder: Path, data: st.DataObject):
    file = folder / "t.json"
    if not file.exists():
        recorded()
    events = events_of(file)
    total, cached = 0, 0
    for event in requests_of(events):
        args = event["args"]
        args["prompt"] = data.draw(st.integers(0, 400))
        args["cached"] = data.draw(st.integers(0, args["prompt"]))
        args["computed"] = data.draw(st.integers(0, 2 * args["prompt"]))
        total += args["computed"]
        if data.draw(st.integers(0, 9)) == 0:  # one that was cancelled
            args["error"] = "RequestCancelledError"
            del args["prompt"]
        cached += args["cached"]
        if data.draw(st.integers(0, 9)) == 0:  # a request that the plan does not have
            args["row"] = 99
    write_events(folder / "other.json", events)
    found = driver.view.run("measured_program.py:grade", {"target": "toy"}, [], timeline="other.json", room=ROOM)
    assert sums(found) == (total, cached)


def changed(file: Path, op_id: str, change: Callable[[dict[str, Any]], None]) -> Divergence | None:
    """Return where the run leaves the plan if a request of row 0 were another."""
    events = events_of(file)
    event = next(each for each in requests_of(events) if each["name"] == op_id and each["args"]["row"] == 0)
    change(event)
    write_events(file, events)
    found = view(target="builtin").timeline
    assert found is not None
    return found.divergence


def test_the_run_leaves_the_plan_at_the_first_request_that_is_not_planned(folder: Path):
    recorded("breaks")
    run = view("breaks").timeline
    assert run is not None
    assert run.divergence is not None
    assert (run.divergence.id, run.divergence.reason) == ("breaks/second", "the plan has no such request")
    row = {"essay": "a long essay " * 10}
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    recorded(target="builtin", own=[row])
    run = view(target="builtin").timeline
    assert run is not None
    assert run.divergence is None
    file = folder / "t.json"
    before = file.read_bytes()

    def found_nothing(event: dict[str, Any]) -> None:
        event["args"]["cached"] = 0

    divergence = changed(file, "grade/verdict", found_nothing)
    assert divergence is not None
    assert divergence.id == "grade/verdict"
    assert divergence.reason.endswith("tokens of its prompt more than planned")
    file.write_bytes(before)

    def late(event: dict[str, Any]) -> None:
        event["ts"] += 10_000_000
        del event["args"]["admitted"]

    divergence = changed(file, "grade/verdict", late)
    assert divergence is not None
    assert (divergence.id, divergence.reason) == ("grade/grade", "the plan serves others before it that have not begun")


SEVERAL = """
import lmc


@lmc.jit
def several(s, essay: str, n: int = 1):
    for number in range(n):
        s += essay
        s.gen(f"part{number}", max_tokens=3)
    return s.text()
"""
LOOP = """
import lmc


@lmc.jit
def loop(s, essay: str):
    s += essay
    while "e" not in s.gen("word", max_tokens=3, temperature=1.0):
        s += "again"
    if "a" in s["word"]:
        s.gen("end", max_tokens=2)
    else:
        s.gen("end", max_tokens=3)
    return s["end"]
"""


def test_calls_that_share_an_id_have_their_own_costs(folder: Path):
    (folder / "measured_program.py").write_text(LOOP)
    profile = recorded("loop")
    found = view("loop")
    run = found.timeline
    assert run is not None
    measured = [call.measured for call in found.calls if call.measured is not None]
    assert sum(cost.requests for cost in measured) == profile.usage.calls
    assert sum(cost.prompt for cost in measured) == profile.usage.prompt_tokens == run.prompt
    lines = [line.measured for line in found.lines if line.measured is not None]
    assert sum(cost.output for cost in lines) == profile.usage.generated_tokens


def test_of_rows_of_several_plans_the_most_are_shown(folder: Path):
    rows = [{"essay": f"number {n}", "n": 2 if n in (0, 3) else 1} for n in range(5)]
    (folder / "measured_program.py").write_text(SEVERAL)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recorded("several", own=rows)
    notice = "the batch has the 3 rows of one plan; 2 rows of 1 other plan are left out: 0, 3"
    for found in (view("several"), view("several", data="rows.jsonl")):
        assert found.timeline is not None
        assert found.plan is not None
        assert sorted(row.row for row in found.plan.rows) == [1, 2, 4]
        assert {request.row for request in found.plan.requests} == {1, 2, 4}
        assert notice in found.notices
        assert found.timeline.divergence is None
        assert {each.row for each in found.timeline.requests if each.key is not None} <= {1, 2, 4}
        assert {each.row for each in found.timeline.requests} == {0, 1, 2, 3, 4}
    # The figures are those of the commands for these rows alone.
    (folder / "some.jsonl").write_text("".join(json.dumps(rows[n]) + "\n" for n in (1, 2, 4)))
    spec = "measured_program.py:several"
    alone = driver.view.run(spec, {"target": "toy"}, [], data="some.jsonl", room=ROOM).plan
    assert alone is not None
    together = driver.view.run(spec, {"target": "toy"}, [], data="rows.jsonl", room=ROOM).plan
    assert together is not None
    assert (together.total, together.predicted_seconds) == (alone.total, alone.predicted_seconds)
    assert [(1, 2, 4)[row.row] for row in alone.rows] == [row.row for row in together.rows]


def test_a_row_of_a_run_that_can_not_be_used_is_a_notice(folder: Path):
    recorded()
    (folder / "rows.jsonl").write_text('{"essay": "one"}\n{"no": 1}\n')
    events = events_of(folder / "t.json")
    events[0]["args"]["rows"] = rows_digest("rows.jsonl")
    (folder / "t.json").write_text("[\n" + "".join(json.dumps(event) + ",\n" for event in events))
    found = view()
    assert found.plan is None
    assert any(notice.startswith("there is no plan of the rows of the run: ") for notice in found.notices)
    with pytest.raises(InputError):
        view(data="rows.jsonl")


def test_names_and_places_of_anybody_are_harmless(folder: Path):
    recorded()
    events = events_of(folder / "t.json")
    for event in events:
        if event["ph"] == "X":
            event["name"] = "</script>\u202e\x00" + "x" * 5000
            event["args"] |= {"at": 2**50, "error": "<b>\n"}
    write_events(folder / "t.json", events)
    found = view()
    text = driver.view.FORMATS["json"](found)
    assert text.isascii()
    assert "<" not in text
    assert found.timeline is not None
    assert all(each.key is None and len(each.id) <= 200 for each in found.timeline.requests)


def alone(**more: Any) -> CompiledView:
    return driver.view.run("t.json", {}, [], room=ROOM, **more)


@pytest.mark.parametrize("name", ["grade", "breaks"])
def test_a_run_alone_has_the_figures_of_the_run(name: str):
    """All of its requests have a node, those after a break as well, and calls add up to the run."""
    recorded(name, "builtin")
    found, beside = alone(), view(name, "builtin").timeline
    run = found.timeline
    assert run is not None
    assert beside is not None
    nodes = {node.key: node for node in found.stages[0].added}
    assert all(each.key in nodes for each in [*run.requests, *run.tools])
    without = {"key", "wave"}
    assert [each.model_dump(exclude=without) for each in run.requests] == [
        each.model_dump(exclude=without) for each in beside.requests
    ]
    assert [each.model_dump(exclude=without) for each in run.tools] == [
        each.model_dump(exclude=without) for each in beside.tools
    ]
    costs = [call.measured for call in found.calls if call.measured is not None]
    assert (sum(each.prompt for each in costs), sum(each.cached for each in costs)) == (run.prompt, run.cached)
    assert sum(each.output for each in costs) == run.output
    redacted = alone(redact=True)
    assert {node.kind for node in redacted.stages[0].added} == {node.kind for node in nodes.values()}
    assert len(redacted.stages[0].added) == len(nodes)
    assert "verdict" not in driver.view.FORMATS["json"](redacted)
    assert "first" not in {node.id for node in redacted.stages[0].added}


def test_a_large_run_alone_is_folded(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Requests have the keys of the runs of ops that they are in."""
    recorded()
    events = events_of(folder / "t.json")
    for number, each in enumerate(requests_of(events)):
        each["name"] = f"f/{number}"
        each["args"] |= {"plan": None, "at": None, "wave": None}
    write_events(folder / "t.json", events)
    monkeypatch.setattr(lmc.report.view, "MAX_NODES", 6)
    found = alone()
    nodes = {node.key for node in found.stages[0].added}
    assert len(nodes) <= 6
    assert found.timeline is not None
    assert {each.key for each in [*found.timeline.requests, *found.timeline.tools]} == nodes
    assert any("are folded" in notice for notice in found.notices)
    costs = [call.measured for call in found.calls if call.measured is not None]
    assert sum(each.prompt for each in costs) == found.timeline.prompt
