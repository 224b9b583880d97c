"""``lmc run --timeline``: the file it writes, and the files it refuses."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.driver.timelines import read

TOY = ("--model", "toy")


def rows(folder: Path, *entries: dict[str, object]) -> str:
    (folder / "rows.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return "rows.jsonl"


def test_a_run_is_recorded_beside_its_rows(lmc, program: str, tmp_path: Path):
    data = rows(tmp_path, {"essay": "a"}, {"essay": "bad"}, {"essay": "c"})
    said = lmc("run", f"{program}:judge", "--input", data, "-o", "out.jsonl", "--timeline", "t.json", *TOY)
    assert said.code == 1
    found = read(tmp_path / "t.json")
    assert (found.header.program, found.header.target, found.header.input) == ("judge", "toy", data)
    record = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    assert (found.header.sources, found.header.rows) == (record["sources"], record["rows"])
    lines = [json.loads(line)["usage"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    for name in ("prompt", "generated"):
        requests = [each for each in found.requests if each.kind != "prefill"]
        assert sum(getattr(each, name) or 0 for each in requests) == sum(usage[f"{name}_tokens"] for usage in lines)


def test_a_single_run_and_a_saved_plan_are_recorded(lmc, program: str, tmp_path: Path):
    assert lmc("run", f"{program}:judge", "essay=x", "--timeline", "t.json", *TOY).code == 0
    one = read(tmp_path / "t.json")
    assert (one.header.input, one.header.rows, {each.row for each in one.requests}) == (None, None, {0})
    assert lmc("compile", f"{program}:quiet", "--emit", "plan", "-o", "plan.json", *TOY).code == 0
    data = rows(tmp_path, {"topic": "a"}, {"topic": "b"})
    assert lmc("run", "plan.json", "--input", data, "--timeline", "t.json", "-o", "o.jsonl", *TOY).code == 0
    found = read(tmp_path / "t.json")
    assert list(found.header.sources) == ["plan"]
    assert sorted(each.row for each in found.requests if each.row is not None) == [0, 1]


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("rows.jsonl", "rows.jsonl is the input, which would be gone"),
        ("cli_program.py", "cli_program.py is the program, which would be gone"),
        ("out.jsonl", "--timeline out.jsonl is a file of rows"),
        ("out.jsonl.meta.json", "--timeline out.jsonl.meta.json is a file of rows"),
        ("profile.json", "--timeline profile.json is the file of --profile-generate"),
        ("no/t.json", "no/t.json can't be written: No such file or directory"),
        (".", ". can't be written: Is a directory"),
        ("-", "--timeline can't be standard output"),
    ],
)
def test_a_file_that_can_not_take_it_is_refused(lmc, program: str, tmp_path: Path, path: str, cause: str):
    data = rows(tmp_path, {"topic": "a"})
    said = lmc(
        *("run", f"{program}:quiet", "--input", data, "-o", "out.jsonl", "--profile", "profile.json"),
        *("--timeline", path, *TOY),
    )
    assert said.code == 2
    assert said.err.startswith(f"error: {cause}")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_profile_needs_a_file_too(lmc, program: str, tmp_path: Path):
    said = lmc("run", f"{program}:quiet", "topic=a", "--profile-generate", "-", *TOY)
    assert (said.code, said.err.splitlines()[0]) == (2, "error: --profile-generate can't be standard output")
    assert not (tmp_path / "-").exists()


def test_a_full_disk_is_one_note(lmc, program: str, tmp_path: Path):
    data = rows(tmp_path, {"topic": "a"})
    said = lmc("run", f"{program}:quiet", "--input", data, "-o", "out.jsonl", "--timeline", "/dev/full", *TOY)
    assert said.code == 0
    assert said.err.count("/dev/full can't be written any further: No space left on device; the timeline ends") == 1
    assert (tmp_path / "out.jsonl").read_text()


def test_a_run_that_is_interrupted_completes_its_timeline(start, program: str, tmp_path: Path):
    data = rows(tmp_path, {"seconds": 60.0}, {"seconds": 0.0})
    process = start("run", f"{program}:slow", "--input", data, "-o", "out.jsonl", "--timeline", "t.json", *TOY)
    end = time.monotonic() + 60
    while not (tmp_path / "out.jsonl").is_file():
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    found = read(tmp_path / "t.json", complete=False)
    assert sorted((each.row, each.unfinished) for each in found.tools) == [(0, True), (1, False)]
    assert sorted(each.row or 0 for each in found.requests) == [0, 1]


def test_viz_shows_a_run_and_refuses_others(lmc, program: str, tmp_path: Path):
    data = rows(tmp_path, {"topic": "a"}, {"topic": "b"})
    assert lmc("run", f"{program}:quiet", "--input", data, "-o", "out.jsonl", "--timeline", "t.json", *TOY).code == 0
    viz = ("viz", f"{program}:quiet", "--timeline", "t.json", "--format", "json", *TOY)
    said = lmc(*viz)
    assert said.code == 0
    shown = json.loads(said.out)
    assert (shown["timeline"]["request_count"], shown["plan"]["row_count"]) == (len(shown["timeline"]["requests"]), 2)
    assert lmc(*viz, "--redact").code == 0
    for more, cause in (
        (("-O", "0"), "t.json was recorded with another plan of 'quiet'"),
        (("-o", "t.json"), "t.json is the timeline, which would be gone"),
    ):
        refused = lmc(*viz, *more)
        assert refused.code != 0
        assert refused.err.startswith(f"error: {cause}")
    assert "--timeline is for a program" in lmc("viz", "--diff", "a.lmir", "b.lmir", "--timeline", "t.json").err
