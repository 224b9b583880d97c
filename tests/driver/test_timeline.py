"""Timelines, compared with the profiles of the rows and the statistics of the engine."""

import json
import threading
import time
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmc
from lmc.driver.batch import timeline
from lmc.driver.batch.timeline import TimelineFile, timeline_header
from lmc.driver.errors import UsageError
from lmc.driver.options import Options
from lmc.driver.run.result import Result
from lmc.driver.runner import Runner
from lmc.driver.targets.service import service
from lmc.ir.engine.observing import AskedRequest
from lmc.ir.engine.protocol import EngineStatistics
from lmc.ir.engine.target import Target
from lmc.ir.profile import Profile
from lmc.ir.usage import Usage
from tests.driver import programs
from tests.driver.timelines import read, recorded, usage_of
from tests.runtime.engines import LateEngine

ESSAYS = [{"essay": f"essay {number} of {number * 7}"} for number in range(12)]


@lmc.tool(effect="reads")
async def fetch(text: str) -> str:
    return text[:2]


@lmc.tool(effect="reads", early=True)
def look(text: str) -> str:
    if text.startswith("no"):
        raise LookupError(f"secret {text}")
    return text.upper()


@lmc.jit
def everything(s: lmc.State, topic: str) -> list[str]:
    """Samples, a choice, a loop, tools on both sides of a graph break."""
    s += lmc.system("You answer. " * 20)
    s += lmc.user(topic)
    drawn = s.gen("draft", n=3, max_tokens=5, temperature=1.0)
    said = drawn[0]
    if s.select("is_it", ["yes", "no"], method="unconditional_likelihood_normalized") == "yes":
        said = look("here " + topic)
    for number in range(2):
        s += lmc.user(f"and {number} {fetch(said)}")
        s.gen("more", max_tokens=4)
    eval("0")
    s += lmc.user(look("there"))
    s.select("late", ["a", "b"])
    return [*s.gen("after", n=2, max_tokens=3), fetch(topic)]


@lmc.jit
def looks(s: lmc.State, topic: str) -> str:
    s += topic
    s.gen("a", max_tokens=3)
    return look(topic)


def whole_profile(results: dict[int, Result]) -> dict[str, Usage]:
    """The tokens of all rows by op; ops that no model answers are left out."""
    profile = Profile.merge("all", [result.profile for result in results.values()])
    return {op_id: entry.usage for op_id, entry in profile.ops.items() if entry.usage.calls}


@pytest.mark.parametrize(
    ("program", "rows"),
    [
        (programs.judge, ESSAYS),
        (programs.breaks, [{"topic": "a"}, {"topic": "b", "limit": 13}]),
        (programs.fails, [{"number": "1"}, {"number": "x"}]),
        (programs.turns, [{"questions": ["a", "b"]}, {"questions": []}]),
        (everything, [{"topic": f"no {number}"} for number in range(5)]),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_requests_add_up_to_the_profiles_of_the_rows(
    program: Any, rows: list[dict[str, Any]], is_late: bool, tmp_path: Path, request: pytest.FixtureRequest
):
    if is_late:
        request.getfixturevalue("late")
    results, found = recorded(program, rows, tmp_path / "t.json")
    assert usage_of(found.requests) == whole_profile(results)
    assert {each.row for each in found.requests if each.row is not None} <= set(results)
    assert found.steps == ()


def test_the_requests_of_one_op_are_told_apart(tmp_path: Path):
    _, found = recorded(everything, [{"topic": "x"}], tmp_path / "t.json")
    numbers: dict[str, list[int]] = {}
    for each in found.requests:
        numbers.setdefault(each.op, []).append(each.sample)
    assert {name.rpartition("/")[2]: sorted(found) for name, found in numbers.items() if "prefill" not in name} == {
        "draft": [0, 1, 2],
        "is_it": [0, 1],
        "more": [0],
        "more#1": [0],
        "late": [0],
        "after": [0, 1],
    }


def test_what_runs_after_a_break_has_no_place_in_a_plan(tmp_path: Path):
    _, found = recorded(everything, [{"topic": "x"}, {"topic": "yz"}], tmp_path / "t.json")
    assert len(found.plans) == 1
    eager = {each.op.rpartition("/")[2] for each in found.requests if each.plan is None}
    assert eager == {"late", "after"}
    captured = [each for each in found.tools if each.plan is not None]
    assert {each.name for each in captured} >= {"fetch"}
    rest = sorted((each.name, each.row, each.error) for each in found.tools if each.plan is None)
    assert rest == [("fetch", 0, None), ("fetch", 1, None), ("look", 0, None), ("look", 1, None)]
    lines = Path(__file__).read_text("utf-8").splitlines()
    assert all(each.line is not None and f"{each.name}(" in lines[each.line - 1] for each in found.tools)


def test_a_failed_tool_is_named_by_the_class_of_its_error(tmp_path: Path):
    results, found = recorded(looks, [{"topic": "no way"}, {"topic": "yes"}], tmp_path / "t.json")
    assert [type(results[number].error) for number in (0, 1)] == [LookupError, type(None)]
    assert sorted((each.row, each.name, each.error) for each in found.tools) == [
        (0, "look", "LookupError"),
        (1, "look", None),
    ]


def test_an_early_call_is_recorded_once(late: LateEngine, tmp_path: Path):
    late.stuck.clear()
    _, found = recorded(everything, [{"topic": f"x {number}"} for number in range(20)], tmp_path / "t.json")
    early = [each for each in found.tools if each.early]
    assert early
    assert {each.name for each in early} == {"look"}
    assert len({(each.row, each.op, each.plan) for each in early}) == len(early)


def test_a_file_has_no_texts(tmp_path: Path):
    recorded(everything, [{"topic": "no_way_out"}], tmp_path / "t.json")
    text = (tmp_path / "t.json").read_text("ascii")
    assert all(word not in text for word in ("no_way", "You answer", "secret", str(Path.cwd())))
    json.loads(text)


def test_a_request_that_waits_for_others_of_its_run_says_so(late: LateEngine, tmp_path: Path):
    _, found = recorded(programs.judge, ESSAYS, tmp_path / "t.json", Options("toy", requests=2))
    assert late.most <= 2
    assert len({each.lane for each in found.requests}) <= 2
    waited = [each for each in found.requests if each.wait == "limit"]
    assert waited
    assert {each.wait for each in found.requests} == {None, "limit"}


def test_a_failed_request_has_the_class_of_its_error(late: LateEngine, tmp_path: Path):
    late.failing.add("judge/verdict")
    _, found = recorded(programs.judge, ESSAYS[:2], tmp_path / "t.json")
    errors = [each.error for each in found.requests if each.op == "judge/verdict"]
    assert errors == ["EngineError", "EngineError"]


def test_a_cancelled_run_is_completed(late: LateEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timeline, "_PATIENCE", 0.1)
    late.stuck.add("judge/verdict")
    runner = Runner(programs.judge, Options("toy"))
    path = tmp_path / "t.json"
    with TimelineFile(str(path), timeline_header("judge", [], runner.target(), None)) as recording:
        rows = runner.run_rows([[(0, ((), ESSAYS[0]))]], None, recording)
        iteration = iter(rows)
        thread = threading.Thread(target=lambda: (_until(lambda: "judge/verdict" in late.order), rows.cancel()))
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            next(iteration)
    [verdict] = [each for each in read(path).requests if each.op == "judge/verdict"]
    assert verdict.error == "RequestCancelledError"


def test_what_never_ends_is_written_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timeline, "_PATIENCE", 0.0)
    path = tmp_path / "t.json"
    recording = TimelineFile(str(path), timeline_header("p", [], Target("toy"), None))
    recording.begin_request(AskedRequest("generate", None, "p/a", 3, 1, time.perf_counter()))
    recording.close()
    recording.close()
    [request] = read(path).requests
    assert (request.op, request.row, request.sample, request.unfinished) == ("p/a", 3, 1, True)


def test_another_process_can_follow_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timeline, "FLUSH_SECONDS", 0.01)
    path = tmp_path / "t.json"
    with TimelineFile(str(path), timeline_header("p", [], Target("toy"), None)) as recording:
        recording.begin_call(timeline.BegunCall("f", None, None, 0, 1))(None)
        _until(lambda: b'"f"' in path.read_bytes())


def test_a_full_disk_ends_the_timeline_and_not_the_run():
    header = timeline_header("p", [], Target("toy"), None)
    runner = Runner(programs.judge, Options("toy"))
    with TimelineFile("/dev/full", header) as recording:
        found = dict(runner.run_rows([[(0, ((), ESSAYS[0]))]], None, recording))
    assert found[0].error is None
    assert recording.note == "/dev/full can't be written any further: No space left on device; the timeline ends there"


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path):
    with pytest.raises(UsageError, match="can't be written: No such file or directory"):
        TimelineFile(str(tmp_path / "no" / "t.json"), {})


def test_a_file_name_that_is_no_text_can_be_read_again(tmp_path: Path):
    rows = tmp_path / "\udcff.jsonl"
    rows.write_text("{}\n")
    with TimelineFile(str(tmp_path / "t.json"), timeline_header("p\ud800", [], Target("toy"), str(rows))):
        pass
    assert read(tmp_path / "t.json").header.program == "p\\ud800"


def test_paths_are_shown_without_absolute_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text("{}\n")
    header = timeline_header("p", [], Target(f"local:{tmp_path}/models/m"), str(tmp_path / "rows.jsonl"))
    assert (header["target"], header["input"], len(header["rows"])) == ("local:models/m", "rows.jsonl", 64)
    assert timeline_header("p", [], Target("local:/elsewhere/m"), "a/../rows.jsonl")["target"] == "local:m"


@pytest.mark.parametrize("timeout", [None, 0.0005])
@pytest.mark.parametrize(("kv_tokens", "prefill_tokens"), [(None, 512), (400, 32)])
def test_the_local_engine_is_measured(
    tmp_path: Path, kv_tokens: int | None, prefill_tokens: int, timeout: float | None
):
    pytest.importorskip("torch")
    options = Options("builtin", kv_tokens=kv_tokens, prefill_tokens=prefill_tokens, timeout=timeout)
    target = Runner(everything, options).target()
    with service().engines.use(target) as engine:
        before = engine.statistics
        results, found = recorded(
            everything, [{"topic": f"t {number}"} for number in range(6)], tmp_path / "t", options
        )
        after = engine.statistics
    assert (timeout is None) == all(result.error is None for result in results.values())
    assert usage_of(found.requests) == whole_profile(results) or timeout is not None

    def spent(name: str) -> int:
        return getattr(after, name) - getattr(before, name)

    assert sum(each.computed or 0 for each in found.requests) == spent("prefilled_tokens")
    steps = {"prefill": "prefilled_tokens", "rows": "rows", "evicted": "evicted_tokens", "preempted": "preemptions"}
    for field, total in steps.items():
        assert total in EngineStatistics.__dataclass_fields__
        assert sum(getattr(step, field) for step in found.steps) == spent(total)
    assert len(found.steps) == spent("steps")
    assert sum(step.found for step in found.steps) == sum(each.cached or 0 for each in found.requests)
    assert timeout is not None or sum(step.found for step in found.steps) == spent("cached_tokens")
    if timeout is None:
        assert all(each.admitted is not None for each in found.requests)
        assert all(each.first is not None for each in found.requests if each.kind == "generate")


def _until(holds: Any) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12))))
def test_requests_have_as_many_lanes_as_overlap(intervals: list[tuple[int, int]]):
    ended = sorted(((start, start + length) for start, length in intervals), key=itemgetter(1))
    lines: list[str] = []
    lanes = timeline._Lanes(timeline.REQUESTS, lines)
    taken = [(lanes.take(start, end), start, end) for start, end in ended]
    for lane in {each for each, _, _ in taken}:
        own = sorted((start, end) for each, start, end in taken if each == lane)
        assert all(end <= start for (_, end), (start, _) in pairwise(own))
    most = max((sum(start <= at < max(end, start + 1) for start, end in ended) for at in range(60)), default=0)
    assert len(lines) <= most
