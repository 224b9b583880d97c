import json
import os
import pty
import signal
import subprocess
import sys
import time
from operator import itemgetter
from pathlib import Path

import pytest

from lmc.driver import Options

TOY = ("--model", "toy")
PRINTING = """
import lmc

print("at import")


@lmc.tool
def say(text: str) -> str:
    print("in a tool")
    return text


@lmc.jit
def prints(s, topic: str):
    print("in the program")
    s += say(topic)
    return s.gen("a", max_tokens=3)
"""


def write(tmp_path: Path, *rows: object) -> str:
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(text)
    return "rows.jsonl"


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_run_prints_its_value(lmc, program: str):
    said = lmc("run", f"{program}:judge", "essay=birds", "strict=true", *TOY)
    assert said.code == 0
    value = json.loads(said.out)
    assert (value["essay"], value["strict"]) == ("birds", True)
    assert value["verdict"] in ("yes", "no")
    assert said.err.startswith("prompt tokens ")
    assert "calls 2" in said.err


def test_typed_values_are_printed_and_written_as_json(lmc, program: str, tmp_path: Path):
    said = lmc("run", f"{program}:typed", "topic=birds", *TOY)
    assert said.code == 0
    value = json.loads(said.out)
    assert 0 <= value["score"] <= 9
    assert type(value["sure"]) is bool
    assert lmc("run", f"{program}:typed", "topic=birds", "-o", "out.jsonl", *TOY).code == 0
    [row] = read(tmp_path / "out.jsonl")
    assert row["value"] == row["variables"]["verdict"] == value
    assert type(row["variables"]["number"]) is int
    assert row["variables"]["word"] == "p"
    lmc("compile", f"{program}:typed", "--emit", "plan", "-o", "plan.json", *TOY)
    assert json.loads(lmc("run", "plan.json", "topic=birds", *TOY).out) == value
    refused = lmc("run", f"{program}:word", "topic=x", *TOY)
    assert refused.code == 1
    assert "cli_program.py:" in refused.err
    assert "the constraint of 'word/a' is refused" in refused.err


def test_text_is_printed_as_it_is_and_a_program_without_result_shows_its_text(lmc, program: str):
    assert len(lmc("run", f"{program}:slow", "seconds=0", *TOY).out.rstrip("\n")) <= 2
    assert lmc("run", f"{program}:quiet", "topic=birds", *TOY).out.startswith("birds")


def test_json_gives_the_row(lmc, program: str):
    [row] = [json.loads(line) for line in lmc("run", f"{program}:judge", "essay=x", "--json", *TOY).out.splitlines()]
    assert list(row) == ["index", "value", "variables", "usage", "error"]
    assert (row["index"], row["error"], row["usage"]["calls"]) == (0, None, 2)
    assert set(row["variables"]) == {"view", "verdict"}


def test_rows_have_their_numbers_and_failures_stay_in_theirs(lmc, program: str, tmp_path: Path):
    data = write(tmp_path, {"essay": "a"}, {"essay": "bad"}, "{", {"esay": "b"}, "", {"essay": "c", "dims": []})
    said = lmc("run", f"{program}:judge", "--input", data, "-o", "out.jsonl", *TOY)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("5 rows, 3 failed; prompt tokens ")
    found = sorted(read(tmp_path / "out.jsonl"), key=itemgetter("index"))
    assert [row["index"] for row in found] == [0, 1, 2, 3, 4]
    assert [row["error"] is None for row in found] == [True, False, False, False, True]
    assert found[1]["error"].startswith("ValueError: a bad essay")
    assert found[2]["error"].startswith("rows.jsonl:3: the row is not JSON")
    assert found[3]["error"].startswith("rows.jsonl:4: judge has no argument 'esay'")
    assert found[4]["value"]["essay"] == "c"


def test_rows_can_be_printed_and_share_arguments_of_the_command(lmc, program: str, tmp_path: Path):
    data = write(tmp_path, {"essay": "a"}, {"essay": "bad"})
    said = lmc("run", f"{program}:judge", "strict=true", "--input", data, *TOY)
    first, second = sorted(said.out.splitlines()[:2])
    assert first.startswith('0\t{"essay": "a"')
    assert '"strict": true' in first
    assert second.startswith("1\terror: ValueError: a bad essay")
    lines = lmc("run", f"{program}:judge", "--input", data, "--json", *TOY).out.splitlines()
    assert sorted(json.loads(line)["index"] for line in lines) == [0, 1]
    dashed = lmc("run", f"{program}:judge", "--input", data, "-o", "-", *TOY).out.splitlines()
    assert sorted(json.loads(line)["index"] for line in dashed) == [0, 1]


def test_the_seed_decides(lmc, program: str):
    def run(*more: str) -> str:
        return json.loads(lmc("run", f"{program}:judge", "essay=x", "--json", *more, *TOY).out)["variables"]["view"]

    assert run() == run("--seed", "0")
    assert run("--seed", "1") == run("--seed", "1") != run()


def test_rows_that_are_all_wrong(lmc, program: str, tmp_path: Path):
    data = write(tmp_path, "[]", "{}", '{"essay": NaN}')
    said = lmc("run", f"{program}:judge", "--input", data, "--json", *TOY)
    assert said.code == 1
    assert [json.loads(line)["error"] is None for line in said.out.splitlines()] == [False] * 3


def test_a_failed_run_is_told_once_and_is_1(lmc, program: str):
    said = lmc("run", f"{program}:judge", "essay=bad", *TOY)
    assert (said.code, said.out) == (1, "")
    assert "error: ValueError: a bad essay" in said.err
    assert "Traceback" not in said.err


def test_text_that_utf_8_can_not_hold_is_escaped(lmc, program: str, tmp_path: Path):
    data = write(tmp_path, '{"essay": "\\ud800 \u00e9", "dims": []}')
    lmc("run", f"{program}:judge", "--input", data, "-o", "out.jsonl", *TOY)
    assert read(tmp_path / "out.jsonl")[0]["index"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "cause", "remedy"),
    [
        (["essay"], 2, "'essay' is no argument", "key=value"),
        (["esay=x"], 2, "judge has no argument 'esay'", "did you mean 'essay'"),
        ([], 2, "judge needs essay", "--input DATA.jsonl"),
        (["essay=x", "-o", "none/out.jsonl"], 2, "none/out.jsonl can't be written", "folder"),
        (["--input", "none.jsonl"], 2, "none.jsonl can't be read", "JSON Lines"),
        (["--input", "empty.jsonl"], 2, "empty.jsonl holds no rows", "one JSON object"),
        (["--input", "."], 2, ". can't be read: Is a directory", "JSON Lines"),
        (["--input", "rows.jsonl", "-o", "./rows.jsonl"], 2, "./rows.jsonl is the input", "another file"),
        (["essay=x", "-o", "cli_program.py"], 2, "cli_program.py is the program", "another file"),
        (["--input", "rows.jsonl", "-o", "."], 2, ". can't be written: Is a directory", "folder you may write to"),
        (["--input", "rows.jsonl", "-o", "/dev/full"], 1, "/dev/full can't be written any further", "make room"),
        (["essay=x", "--model", "tpy"], 1, "there is no model folder", "did you mean toy? name a folder"),
        (["essay=x", "--model", "none"], 1, "there is no model folder", "config.json"),
        (["essay=x", "--dtype", "int4"], 1, "unknown dtype 'int4'", "float32"),
        (["essay=x", "--kv-tokens", "0"], 2, "--kv-tokens is '0'", "a number of tokens from 1 on, or auto"),
        (["essay=x", "--kv-tokens", "-3"], 2, "--kv-tokens is '-3'", "a number of tokens from 1 on, or auto"),
        (["essay=x", "--kv-tokens", "Auto"], 2, "--kv-tokens is 'Auto'", "a number of tokens from 1 on, or auto"),
        (["essay=x", "--kv-tokens", "²"], 2, "--kv-tokens is '²'", "a number of tokens from 1 on, or auto"),
        (["essay=x", "--kv-tokens", "8"], 1, "the toy has no weights and no KV pool", "leave out"),
        (["essay=x", "--device", "gpu"], 1, "unknown device 'gpu'", '"cuda"'),
        (["essay=x", "--prefill-tokens", "0"], 1, "prefill_tokens is 0", "from 1 on"),
    ],
)
def test_what_goes_wrong(lmc, program: str, tmp_path: Path, arguments: list[str], code: int, cause: str, remedy: str):
    (tmp_path / "empty.jsonl").write_text("\n")
    write(tmp_path, {"essay": "a"})
    target = () if "--model" in arguments else TOY
    said = lmc("run", f"{program}:judge", *arguments, *target)
    assert (said.code, said.out) == (code, "")
    assert f"error: {cause}" in said.err
    assert remedy in said.err.replace("\n", " ")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_a_timeout_is_a_number_of_seconds(lmc, program: str, seconds: str):
    said = lmc("run", f"{program}:judge", "essay=x", *TOY, "--timeout", seconds)
    assert (said.code, said.out) == (2, "")
    assert "no number of seconds greater than 0" in said.err


def test_a_timeout_and_determinism_are_what_the_program_runs_under(lmc, program: str, asked: list[Options]):
    for more in ((), ("--timeout", "2.5", "--deterministic")):
        assert lmc("run", f"{program}:judge", "essay=x", *TOY, *more).code == 0
    assert [(options.timeout, options.deterministic) for options in asked] == [(None, None), (2.5, True)]


def test_the_pool_goes_by_free_memory_where_that_is_asked_for(lmc, program: str, asked: list[Options], tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[tool.lmc]\ntarget = "toy"\nkv_tokens = 9\n')
    assert lmc("run", f"{program}:judge", "essay=x", "--kv-tokens", "auto").code == 0
    assert lmc("run", f"{program}:judge", "essay=x").code == 1  # the toy has no pool
    assert [options.kv_tokens for options in asked] == ["auto", None]


def test_a_local_model_is_set_up_as_the_options_say(lmc, program: str, asked: list[Options]):
    options = ("--dtype", "bfloat16", "--kv-tokens", "9", "--deterministic", "--device", "cpu", "--prefill-tokens", "7")
    assert lmc("run", f"{program}:judge", "essay=x", "--model", "nowhere", *options).code == 1
    assert asked == [Options("local:nowhere", "bfloat16", 9, True, "cpu", 7)]


def test_a_setting_that_is_no_good_is_told_with_its_file(lmc, program: str, tmp_path: Path):
    (tmp_path / "pyproject.toml").write_text('[tool.lmc]\nkv_tokens = "all"\n')
    said = lmc("run", f"{program}:judge", "essay=x")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {tmp_path / 'pyproject.toml'}: [tool.lmc]: kv_tokens is 'all'")
    assert 'give a number of tokens from 1 on, or "auto"' in said.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_rows_that_are_finished(start, program: str, tmp_path: Path, number: int, code: int):
    data = write(tmp_path, {"seconds": 60.0}, {"seconds": 0.0}, {"seconds": 0.0})
    process = start("run", f"{program}:slow", "--input", data, "-o", "out.jsonl", *TOY)
    wait_for_rows(tmp_path, 2)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.startswith("interrupted: finished and kept 2 of 3 rows; prompt tokens ")
    assert len(err.splitlines()) == 1
    assert {row["index"] for row in read(tmp_path / "out.jsonl")} == {1, 2}


def test_rows_of_a_pipe_run_as_they_come(start, program: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    process = start("run", f"{program}:judge", "--input", "pipe", "-o", "out.jsonl", *TOY)
    with (tmp_path / "pipe").open("w") as pipe:
        pipe.write('{"essay": "a"}\n')
        pipe.flush()
        wait_for_rows(tmp_path, 1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err.startswith("interrupted: finished and kept 1 of the 1 row read so far; ")


def wait_for_rows(folder: Path, count: int) -> None:
    end = time.monotonic() + 60
    while not (folder / "out.jsonl").is_file() or len(read(folder / "out.jsonl")) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_standard_input_is_a_file_of_rows(program: str, tmp_path: Path):
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "run", f"{program}:judge", "--input", "-", "--json", *TOY]
    given = '\ufeff{"essay": "a"}\r\n{"essay": 3}\r\n'
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 1
    rows = sorted(map(json.loads, done.stdout.splitlines()), key=itemgetter("index"))
    assert rows[0]["error"] is None
    assert rows[1]["error"].startswith("<stdin>:2: argument essay is 3, a number: ")


def test_nothing_but_text_is_printed_where_there_is_no_terminal(start, program: str, tmp_path: Path):
    process = start("run", f"{program}:judge", "--input", write(tmp_path, *[{"essay": "a"}] * 3), *TOY)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "\x1b" not in out + err
    assert "running" not in err
    assert len(err.splitlines()) == 1


def test_a_batch_shows_its_progress_on_a_terminal(program: str, tmp_path: Path):
    data = write(tmp_path, *[{"essay": "a"}] * 3)
    screen, terminal = pty.openpty()
    code = "import sys; sys.argv[0] = 'lmc'; from lmc.cli import main; main()"
    command = [sys.executable, "-c", code, "run", f"{program}:judge", "--input", data, "-o", "out.jsonl", *TOY]
    done = subprocess.run(command, stderr=terminal, cwd=tmp_path, timeout=60, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = os.read(screen, 100_000).decode()
    os.close(screen)
    assert done.returncode == 0
    assert "tok/s, 0% cached" in shown
    assert "3/3" in shown
    assert "0 failed" in shown
    assert "left" in shown


def test_a_saved_plan_is_run(lmc, program: str, tmp_path: Path):
    for kind, file in (("plan", "judge.json"), ("ir", "judge.lmir")):
        lmc("compile", f"{program}:judge", "essay=x", "strict=true", "--emit", kind, "-o", file, *TOY)
    arguments = ("essay=birds", 'dims=["tone"]', "--json", *TOY)
    said = lmc("run", f"{program}:judge", "strict=true", *arguments)
    from_plan = lmc("run", "judge.json", *arguments)
    assert (from_plan.code, said.code) == (0, 0), from_plan.err
    expected = json.loads(said.out)
    found = json.loads(from_plan.out)
    assert found == expected
    assert json.loads(lmc("run", "judge.lmir", *arguments).out) == found
    data = write(
        tmp_path,
        {"essay": "a", "dims": ["tone"]},
        {"esay": "b"},
        {"essay": "a", "dims": []},
        {"essay": "a", "strict": False},
    )
    lines = lmc("run", "judge.json", "--input", data, "--json", *TOY).out.splitlines()
    rows = sorted(map(json.loads, lines), key=itemgetter("index"))
    assert [row["error"] is None for row in rows] == [True, False, True, False]
    assert "argument strict is false, but the plan is for true only" in rows[3]["error"]


def test_a_saved_plan_with_functions_needs_its_program(lmc, program: str):
    lmc("compile", f"{program}:slow", "--emit", "plan", "-o", "slow.json", *TOY)
    said = lmc("run", "slow.json", "seconds=0", *TOY)
    assert said.code == 2
    assert "error: the plan calls cli_program:wait" in said.err
    assert "--program PROGRAM.py[:name]" in said.err
    assert lmc("run", "slow.json", "seconds=0", "--program", f"{program}:slow", *TOY).code == 0
    said = lmc("run", f"{program}:slow", "seconds=0", "--program", f"{program}:slow", *TOY)
    assert (said.code, said.err.splitlines()[0]) == (2, "error: --program goes with a saved plan")


def test_a_file_that_is_no_plan(lmc, program: str, tmp_path: Path):
    (tmp_path / "other.json").write_text("{}")
    said = lmc("run", "other.json", *TOY)
    assert said.code == 1
    assert "error: not a plan" in said.err


def test_what_a_program_prints_stays_out_of_the_data(lmc, program: str, tmp_path: Path):
    assert program
    (tmp_path / "printing.py").write_text(PRINTING)
    said = lmc("run", "printing.py", "topic=x", "--json", *TOY)
    assert [json.loads(line)["error"] for line in said.out.splitlines()] == [None]
    for words in ("at import", "in the program", "in a tool"):
        assert words in said.err
    data = write(tmp_path, {"topic": "a"}, {"topic": "b"})
    said = lmc("run", "printing.py", "--input", data, "-o", "-", *TOY)
    assert sorted(json.loads(line)["index"] for line in said.out.splitlines()) == [0, 1]


def test_an_interrupted_run_counts_what_unfinished_rows_cost(start, program: str, tmp_path: Path):
    data = write(tmp_path, {"seconds": 60.0}, {"seconds": 0.0}, {"seconds": 61.0})
    process = start("run", f"{program}:costs", "--input", data, "-o", "out.jsonl", *TOY)
    wait_for_rows(tmp_path, 1)
    for name in ("waits-60.0", "waits-61.0"):
        while not (tmp_path / name).exists():
            assert process.poll() is None
            time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "interrupted: finished and kept 1 of 3 rows; " in err
    assert ", calls 3, " in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_whose_rows_are_still_put_in_order(start, tmp_path: Path, number: int, code: int):
    (tmp_path / "ordered.py").write_text(ORDERING)
    data = write(tmp_path, {"topic": "a"}, {"topic": "b"})
    process = start("run", "ordered.py", "--input", data, "--json", *TOY)
    end = time.monotonic() + 60
    while not (tmp_path / "ordering").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    begun = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.startswith("interrupted: finished and kept 0 of 2 rows")
    assert time.monotonic() - begun < 30


ORDERING = """
import pathlib
import time

import lmc
import lmc.driver.run.execute


def schedule(*_):
    pathlib.Path("ordering").touch()
    time.sleep(600)


lmc.driver.run.execute.schedule_batch = schedule


@lmc.jit
def program(s, topic: str):
    s += topic
    return s.gen("a", max_tokens=3)
"""


def test_a_row_that_fails_counts_what_was_computed_for_it(lmc, program: str, tmp_path: Path):
    assert program
    (tmp_path / "cut.py").write_text(CUT)
    data = write(tmp_path, {"topic": "a"}, {"topic": "bb"})
    said = lmc("run", "cut.py", "--input", data, "-o", "out.jsonl", "--profile-generate", "cut.json", *TOY)
    usages = [row["usage"] for row in sorted(read(tmp_path / "out.jsonl"), key=lambda row: row["index"])]
    assert [tuple(usage.values()) for usage in usages] == [(1, 0, 2, 1), (2, 0, 2, 1)]
    assert "2 rows, 1 failed; prompt tokens 3 (0 cached), generated 4, calls 2" in said.err
    assert lmc("compile", "cut.py", "--profile-use", "cut.json", *TOY).code == 0
    usage = json.loads((tmp_path / "cut.json").read_text())["ops"]["program/a"]["usage"]
    assert {name: usage[name] for name in usages[0]} == dict(zip(usages[0], (3, 0, 4, 2), strict=True))


CUT = """
import lmc


@lmc.jit
def program(s, topic: str):
    s += topic
    return s.gen("a", regex="[a-z]+!", max_tokens=2)
"""


def test_a_tool_that_interrupts_ends_the_run_and_keeps_what_is_finished(start, tmp_path: Path):
    (tmp_path / "quitting.py").write_text(QUITTING)
    data = write(tmp_path, {"word": "slow"}, {"word": "stop"}, {"word": "first"})
    process = start("run", "quitting.py", "--input", data, "-o", "out.jsonl", *TOY)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.startswith("interrupted: finished and kept 1 of 3 rows; ")
    assert "Traceback" not in err
    assert [row["index"] for row in read(tmp_path / "out.jsonl")] == [2]


QUITTING = """
import pathlib
import time

import lmc


@lmc.tool
def quits(word: str) -> str:
    if word != "first":
        while not pathlib.Path("out.jsonl").is_file() or not pathlib.Path("out.jsonl").read_text():
            time.sleep(0.01)
    if word == "stop":
        raise KeyboardInterrupt
    if word == "slow":
        time.sleep(60)
    return word


@lmc.jit
def program(s, word: str):
    s += quits(word)
    return s.gen("a", max_tokens=3)
"""
