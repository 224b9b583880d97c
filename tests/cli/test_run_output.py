"""``lmc run -o``: nothing that a file holds is lost, and an interrupted run is continued."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

TOY = ("--model", "toy")
OLD = '{"index": 0, "value": "precious"}\n'
CODE = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
HELPER = "PROMPT = 'Say it: '\n"
USING_HELPER = """
import lmc
from wording import PROMPT


@lmc.jit
def say(s, topic: str, times: int = 1):
    s += PROMPT + topic * times
    if topic == "bad":
        raise ValueError("no such topic")
    return s.gen("a", max_tokens=3, temperature=1.0)
"""


NOTING = """
import pathlib, lmc


@lmc.tool
def note() -> str:
    pathlib.Path("ran").touch()
    return "x"


@lmc.jit
def notes(s):
    s += note()
"""


@pytest.fixture
def say(program: str, tmp_path: Path) -> str:
    """A program with a module of its own, and ten rows of input of which two fail."""
    assert program
    (tmp_path / "wording.py").write_text(HELPER)
    (tmp_path / "saying.py").write_text(USING_HELPER)
    write(tmp_path, *({"topic": f"t{number}" if number % 5 else "bad"} for number in range(10)))
    return "saying.py"


def write(folder: Path, *rows: object) -> None:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def numbers(path: Path) -> list[int]:
    return [row["index"] for row in read(path)]


@pytest.mark.parametrize("rows", ['{"essay": "a"}\n', 'no JSON\n{"essay": "a"}\n'])
@pytest.mark.parametrize(
    "arguments",
    [
        ("--model", "typo"),
        ("--model", "toy", "--device", "cpu", "--kv-tokens", "9"),
        ("--model", "toy", "--input", "none.jsonl"),
        ("--model", "toy", "--schedule", "none.jsonl"),
        ("--model", "toy", "esay=x"),
    ],
)
def test_a_run_that_can_not_begin_leaves_the_output_as_it_was(
    lmc, program: str, tmp_path: Path, rows: str, arguments: tuple[str, ...]
):
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "out.jsonl").write_text(OLD)
    before = sorted(tmp_path.iterdir())
    said = lmc("run", f"{program}:judge", "--input", "rows.jsonl", "-o", "out.jsonl", *arguments)
    assert said.code in (1, 2)
    assert (tmp_path / "out.jsonl").read_text() == OLD
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_replaces_the_output_and_describes_itself(lmc, program: str, tmp_path: Path):
    (tmp_path / "out.jsonl").write_text(OLD)
    assert lmc("run", f"{program}:judge", "essay=x", "-o", "out.jsonl", "--seed", "3", *TOY).code == 0
    [row] = read(tmp_path / "out.jsonl")
    assert row["value"]["essay"] == "x"
    record = json.loads((tmp_path / "out.jsonl.meta.json").read_text())
    assert (record["format"], record["version"], record["program"]) == ("lmc-run", 1, "judge")
    assert record["options"]["seed"] == 3
    assert str(tmp_path) not in json.dumps(record)


def test_rows_that_are_there_are_skipped(lmc, say: str, tmp_path: Path):
    command = ("run", say, "--input", "rows.jsonl", "-o", "out.jsonl", *TOY)
    assert lmc(*command, "--resume").code == 1
    whole = read(tmp_path / "out.jsonl")
    assert sorted(row["index"] for row in whole) == list(range(10))
    kept = [row for row in whole if row["index"] in (1, 5, 6)]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept) + '{"index": 8, "val')
    said = lmc(*command, "--resume")
    assert said.code == 1
    assert "7 rows, 1 failed (3 more were there already, 1 of them failed); " in said.err
    found = read(tmp_path / "out.jsonl")
    assert found[:3] == kept
    assert values(found) == values(whole)
    said = lmc(*command, "--resume")
    assert said.code == 1
    assert "0 rows, 0 failed (10 more were there already, 2 of them failed)" in said.err
    assert read(tmp_path / "out.jsonl") == found


def values(rows: list[dict]) -> list[tuple]:
    return sorted((row["index"], str(row["value"]), row["error"] is None) for row in rows)


def test_failed_rows_that_are_deleted_are_run_again(lmc, say: str, tmp_path: Path):
    command = ("run", say, "--input", "rows.jsonl", "-o", "out.jsonl", *TOY)
    lmc(*command)
    good = [row for row in read(tmp_path / "out.jsonl") if row["error"] is None]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in good))
    said = lmc(*command, "--resume")
    assert said.err.startswith("2 rows, 2 failed (8 more were there already, 0 of them failed)")
    assert sorted(numbers(tmp_path / "out.jsonl")) == list(range(10))


@pytest.mark.parametrize(
    ("change", "arguments", "cause"),
    [
        ({"wording.py": HELPER.upper()}, (), "the source of wording has changed"),
        ({"saying.py": USING_HELPER + "\n"}, (), "the source of saying has changed"),
        ({"rows.jsonl": '{"topic": "x"}\n'}, (), "the input rows of rows.jsonl are not those of the earlier run"),
        ({}, ("--seed", "1"), "seed is 1, and was 0"),
        ({}, ("times=2",), "the argument times has changed"),
        ({}, ("--model", "builtin"), "the model is builtin, and it was toy"),
        ({}, ("--order-sections",), "order_sections is True, and was False"),
    ],
)
def test_another_program_model_option_or_input_is_not_resumed(
    lmc, say: str, tmp_path: Path, change: dict[str, str], arguments: tuple[str, ...], cause: str
):
    command = ("run", say, "--input", "rows.jsonl", "-o", "out.jsonl", *TOY)
    lmc(*command)
    before = (tmp_path / "out.jsonl").read_bytes()
    for name, text in change.items():
        (tmp_path / name).write_text(text)
    said = lmc(*command, "--resume", *arguments)
    assert said.code == 2
    assert f"error: out.jsonl can't be resumed: {cause}\n  remedy: run without --resume" in said.err
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("essay=x", "--resume"), "--resume goes with -o OUT.jsonl"),
        (("essay=x", "--resume", "-o", "-"), "--resume goes with -o OUT.jsonl"),
        (("essay=x", "--resume", "-o", "/dev/null"), "--resume goes with -o OUT.jsonl"),
        (("essay=x", "--resume", "-o", "old.jsonl"), "old.jsonl can't be resumed: old.jsonl.meta.json, which"),
        (("essay=x", "-o", "odd.jsonl"), "odd.jsonl.meta.json is no record of a run"),
    ],
)
def test_what_can_not_be_resumed(lmc, program: str, tmp_path: Path, arguments: tuple[str, ...], cause: str):
    (tmp_path / "old.jsonl").write_text(OLD)
    (tmp_path / "odd.jsonl.meta.json").write_text("{}")
    said = lmc("run", f"{program}:judge", *arguments, *TOY)
    assert (said.code, said.out) == (2, "")
    assert f"error: {cause}" in said.err


def test_a_saved_plan_is_resumed_and_another_plan_is_not(lmc, say: str, tmp_path: Path):
    write(tmp_path, {"topic": "a"}, {"topic": "b"})
    command = ("run", "plan.json", "--input", "rows.jsonl", "-o", "out.jsonl", *TOY)
    for text in (USING_HELPER, USING_HELPER.replace("max_tokens=3", "max_tokens=4")):
        (tmp_path / say).write_text(text)
        assert lmc("compile", say, "--emit", "plan", "-o", "plan.json", *TOY).code == 0
        said = lmc(*command, "--resume")
        if text is USING_HELPER:
            assert said.code == 0
            assert "2 more were there already" in lmc(*command, "--resume").err
    assert said.code == 2
    assert "the source of plan has changed" in said.err


def test_ordered_rows_are_in_input_order(lmc, program: str, tmp_path: Path):
    write(tmp_path, {"seconds": 0.4}, {"seconds": 0.0}, {"seconds": 0.2}, {"seconds": 0.0})
    command = ("run", f"{program}:slow", "--input", "rows.jsonl", *TOY)
    assert lmc(*command, "-o", "out.jsonl", "--ordered").code == 0
    assert numbers(tmp_path / "out.jsonl") == [0, 1, 2, 3]
    out = lmc(*command, "--json", "--ordered").out
    assert [json.loads(line)["index"] for line in out.splitlines()] == [0, 1, 2, 3]
    assert [line[0] for line in lmc(*command, "--ordered").out.splitlines()] == ["0", "1", "2", "3"]
    rows = (tmp_path / "out.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out.jsonl").write_text(rows[3] + rows[1])
    assert lmc(*command, "-o", "out.jsonl", "--ordered", "--resume").code == 0
    assert (tmp_path / "out.jsonl").read_text().splitlines(keepends=True)[1] == rows[1]
    assert numbers(tmp_path / "out.jsonl") == [0, 1, 2, 3]


def test_an_interrupted_ordered_run_keeps_what_waited(start, program: str, tmp_path: Path):
    write(tmp_path, {"seconds": 60.0}, {"seconds": 0.0}, {"seconds": 0.0})
    command = ("run", f"{program}:slow", "--input", "rows.jsonl", "--ordered", "--json", "-o", "out.jsonl", *TOY)
    process, path = start(*command), tmp_path / "out.jsonl"
    wait_for(lambda: path.is_file() and len(read(path)) == 2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert numbers(path) == [1, 2]
    assert [json.loads(line)["index"] for line in out.splitlines()] == [1, 2]


def wait_for(condition) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_that_is_killed_again_and_again_is_finished_by_resume(lmc, start, program: str, tmp_path: Path):
    """Kills by SIGKILL at random moments after the first rows; whatever is left is continued."""
    write(tmp_path, *({"seconds": 0.02 * (number % 5)} for number in range(12)), *({"seconds": 0.5},) * 3)
    command = ("run", f"{program}:slow", "--input", "rows.jsonl", "-o", "out.jsonl", "--ordered", "--resume", *TOY)
    draw, path = random.Random(0), tmp_path / "out.jsonl"
    for _ in range(2):
        process = start(*command)
        before = len(path.read_bytes()) if path.exists() else 0
        wait_for(lambda process=process, before=before: process.poll() is not None or grown(path, before))
        time.sleep(draw.random() / 5)
        process.kill()
        process.communicate()
        assert all(json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n"))
    assert lmc(*command).code == 0
    assert numbers(path) == list(range(15))


def grown(path: Path, before: int) -> bool:
    return path.exists() and path.stat().st_size > before


def test_a_full_disk_keeps_whole_rows_and_says_how_many(lmc, program: str, tmp_path: Path):
    write(tmp_path, *({"topic": "x" * 400},) * 8)
    command = [sys.executable, "-c", CODE, "run", f"{program}:quiet", "--input", "rows.jsonl", "-o", "out.jsonl", *TOY]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=limit, cwd=tmp_path)
    kept = len(read(tmp_path / "out.jsonl"))
    assert 0 < kept < 8
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: out.jsonl can't be written any further: File too large; {kept} rows are kept"
    )
    assert (tmp_path / "out.jsonl").read_text().endswith("}\n")
    assert lmc(*command[3:], "--resume").code == 0
    assert sorted(numbers(tmp_path / "out.jsonl")) == list(range(8))


def test_standard_output_on_a_full_disk_ends_with_a_whole_row(program: str, tmp_path: Path):
    write(tmp_path, *({"topic": "x" * 400},) * 8)
    command = [sys.executable, "-c", CODE, "run", f"{program}:quiet", "--input", "rows.jsonl", "--json", *TOY]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))

    with (tmp_path / "out.jsonl").open("w") as out:
        done = subprocess.run(
            command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, preexec_fn=limit, cwd=tmp_path
        )
    kept = len(read(tmp_path / "out.jsonl"))
    assert 0 < kept < 8
    assert f"File too large; {kept} rows were written" in done.stderr
    assert (tmp_path / "out.jsonl").read_text().endswith("}\n")


@pytest.mark.parametrize("model", ["toy", "typo"])
def test_a_pipe_gets_the_rows_and_its_end(lmc, program: str, tmp_path: Path, model: str):
    write(tmp_path, {"topic": "a"}, {"topic": "b"})
    os.mkfifo(tmp_path / "pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()), daemon=True)
    reader.start()
    said = lmc("run", f"{program}:quiet", "--input", "rows.jsonl", "-o", "pipe", "--ordered", "--model", model)
    reader.join(30)
    assert not reader.is_alive()
    assert said.code == (0 if model == "toy" else 1)
    assert [json.loads(line)["index"] for line in got[0].splitlines()] == ([0, 1] if model == "toy" else [])
    assert not list(tmp_path.glob("*.meta.json"))


def test_ctrl_c_ends_a_run_whose_pipe_nobody_reads(start, program: str, tmp_path: Path):
    assert program
    (tmp_path / "noting.py").write_text(NOTING)
    os.mkfifo(tmp_path / "pipe")
    process = start("run", "noting.py", "-o", "pipe", *TOY)
    wait_for((tmp_path / "ran").exists)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_devices_take_rows(lmc, program: str, tmp_path: Path):
    write(tmp_path, {"topic": "a"})
    said = lmc("run", f"{program}:quiet", "--input", "rows.jsonl", "-o", "/dev/null", *TOY)
    assert (said.code, said.out) == (0, "")
    assert not Path("/dev/null.meta.json").exists()


def test_where_every_row_fails_the_output_is_kept(lmc, program: str, tmp_path: Path):
    write(tmp_path, {"essay": "bad"}, {"esay": "x"})
    (tmp_path / "out.jsonl").write_text(OLD)
    said = lmc("run", f"{program}:judge", "--input", "rows.jsonl", "-o", "out.jsonl", *TOY)
    assert said.code == 1
    assert "every row failed: out.jsonl keeps the rows it held; the failed rows are in" in said.err
    assert (tmp_path / "out.jsonl").read_text() == OLD
    assert sorted(numbers(tmp_path / "out.jsonl.failed")) == [0, 1]


def test_tables_and_arrays_are_rows_for_every_command(lmc, program: str, tmp_path: Path):
    (tmp_path / "rows.csv").write_text('essay,strict,dims\n"a, b",true,"[""tone""]"\nc,,\n')
    (tmp_path / "rows.tsv").write_text('essay\tstrict\tdims\na, b\ttrue\t["tone"]\nc\t\t\n')
    (tmp_path / "rows.json").write_text('[{"essay": "a, b", "strict": true, "dims": ["tone"]},\n{"essay": "c"}]')
    (tmp_path / "rows.jsonl").write_text('{"essay": "a, b", "strict": true, "dims": ["tone"]}\n{"essay": "c"}\n')
    named = [f"rows.{suffix}" for suffix in ("jsonl", "json", "csv", "tsv")]
    runs = [lmc("run", f"{program}:judge", "--input", name, "--json", "--ordered", *TOY) for name in named]
    assert [said.code for said in runs] == [0] * 4
    assert len({said.out for said in runs}) == 1
    plans = [lmc("compile", f"{program}:judge", "--input", name, "--emit", "ir", *TOY).out for name in named]
    (tmp_path / "topics.csv").write_text("topic\nx\n")
    (tmp_path / "topics.json").write_text('[{"topic": "x"}]')
    schedules = [lmc("schedule", f"{program}:quiet", "--input", f"topics.{kind}", *TOY) for kind in ("csv", "json")]
    assert len(set(plans)) == 1
    assert [said.code for said in schedules] == [0, 0]
    assert schedules[0].out == schedules[1].out


def test_failed_rows_are_summed_up_by_cause(lmc, program: str, tmp_path: Path):
    rows = [{"essay": "bad"}, {"essay": "good"}, {"esay": "b"}, {"essay": 3}, {"essay": 4}, {"essay": "bad"}]
    write(tmp_path, *rows)
    said = lmc("run", f"{program}:judge", "--input", "rows.jsonl", "-o", "out.jsonl", *TOY)
    assert said.code == 1
    summary, head, *lines = said.err.splitlines()
    assert summary.startswith("6 rows, 5 failed; ")
    assert head == "the first 3 of 5 errors:"
    assert len([line for line in lines if line.startswith("  row ")]) == 3
    at = lines.index("  row 2: rows.jsonl:3: judge has no argument 'esay'")
    assert lines[at + 1] == "    remedy: did you mean 'essay'?"
    causes = lines[lines.index("by cause:") + 1 :]
    assert sorted(causes) == [
        "  1 × judge has no argument 'esay'",
        "  2 × ValueError: a bad essay",
        "  2 × argument essay is …, a number: Input should be a valid string",
    ]
