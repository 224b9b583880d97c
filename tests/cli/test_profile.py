"""``lmc run --profile-generate`` writes what ``--profile-use`` reads; ``--profile`` is short for either."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from lmc.ir.profile import BranchProfile, OpProfile, Profile, length_bins
from lmc.ir.usage import Usage

PROGRAM = """
import time

import lmc


@lmc.jit
def answer(s, topic: str):
    s += topic
    if s.gen("first", max_tokens=4, temperature=1.0) > "M":
        s.gen("long", max_tokens=20, temperature=1.0)
    else:
        s.gen("short", max_tokens=6, temperature=1.0)
    if topic == "bad":
        raise ValueError("a bad topic: " + s["first"])
    return s["first"]


@lmc.jit
def other(s, topic: str):
    s += topic
    return s.gen("a", max_tokens=4)


@lmc.jit(level="O0")
def plain(s, topic: str):
    s += topic
    return s.gen("a", max_tokens=4)


@lmc.tool
def wait(seconds: float) -> float:
    with open("waits", "a") as file:
        file.write(".")
    time.sleep(seconds)
    return seconds


@lmc.jit
def slow(s, seconds: float):
    s += "words"
    first = s.gen("a", max_tokens=3)
    wait(seconds)
    return first
"""
TOY = ("--model", "toy")


@pytest.fixture
def file(program: str, tmp_path: Path) -> str:
    """A file with programs that take ways, beside the one that every test here has."""
    (tmp_path / "profiled.py").write_text(PROGRAM)
    return "profiled.py"


def rows(tmp_path: Path, *topics: str) -> str:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"topic": topic}) + "\n" for topic in topics))
    return "rows.jsonl"


def read(tmp_path: Path, name: str = "p.json") -> Profile:
    return Profile.from_json((tmp_path / name).read_text())


def test_a_run_measures_and_a_compilation_says_what_that_changes(lmc, file: str, tmp_path: Path):
    data = rows(tmp_path, *map(str, range(10)))
    run = ("run", f"{file}:answer", "--input", data, *TOY)
    assert lmc(*run, "-o", "out.jsonl", "--profile-generate", "p.json").code == 0
    profile = read(tmp_path)
    [(op_id, branch)] = profile.branches.items()
    assert (op_id, branch.then + branch.otherwise) == ("answer/@cf.cond.1", 10)
    assert profile.ops["answer/first"].outputs == profile.ops["answer/first"].usage.calls == 10

    said = lmc("compile", f"{file}:answer", "--profile-use", "p.json", "--remarks", *TOY)
    assert said.code == 0
    remarks = [line for line in said.out.splitlines() if "apply-profile" in line]
    assert [" missed: " in line for line in remarks] == [False, False, False, False, True]
    assert remarks[-1].endswith("1 of the 5 ids of the program: 'answer/@cf.cond.2'")  # each run knew it beforehand
    assert remarks[0].startswith("profiled.py:10: apply-profile: expected_tokens of 'answer/first' is ")
    share = f"probability of 'answer/@cf.cond.1' is {round(branch.then / 10, 4)} (then {branch.then} times"
    assert f"profiled.py:10: apply-profile: {share}" in said.out

    ir = lmc("compile", f"{file}:answer", "--profile", "p.json", "--emit", "ir", *TOY)
    assert ir.out.count("expected_tokens = ") == 3
    assert lmc("compile", f"{file}:answer", "--profile", "p.json", "--emit", "ir", *TOY).out == ir.out
    (tmp_path / "m.lmir").write_text(ir.out)
    again = lmc("opt", "m.lmir", "-O2", "--profile-use", "p.json", "--remarks")
    assert again.code == 0
    assert "apply-profile: " not in again.err  # it has all that was measured

    plan = lmc("compile", f"{file}:answer", "--profile", "p.json", "--emit", "plan", "-o", "plan.json", *TOY)
    assert plan.code == 0
    assert '"expected_tokens": ' in (tmp_path / "plan.json").read_text()
    assert lmc("run", "plan.json", "--input", data, "-o", "planned.jsonl", "--profile", "q.json", *TOY).code == 0
    planned, plain = (sorted((tmp_path / name).read_text().splitlines()) for name in ("planned.jsonl", "out.jsonl"))
    assert planned == plain
    # The plan was compiled for no values, so it takes a condition that each run of the program knew beforehand.
    assert read(tmp_path, "q.json").branches == {**profile.branches, "answer/@cf.cond.2": BranchProfile(0, 10)}


def test_a_run_replaces_its_file_or_adds_to_it(lmc, file: str, tmp_path: Path):
    run = ("run", f"{file}:answer", "topic=1", "--profile", "p.json", *TOY)
    for more, calls in (((), 1), ((), 1), (("--profile-merge",), 2), (("--profile-merge",), 3), ((), 1)):
        assert lmc(*run, *more).code == 0
        assert read(tmp_path).ops["answer/first"].usage.calls == calls


def test_rows_that_fail_are_measured_as_far_as_they_came(lmc, file: str, tmp_path: Path):
    data = rows(tmp_path, "good", "bad")
    (tmp_path / data).write_text((tmp_path / data).read_text() + '{"no": 1}\n')
    assert lmc("run", f"{file}:answer", "--input", data, "--profile", "p.json", *TOY).code == 1
    assert read(tmp_path).ops["answer/first"].usage.calls == 2


def test_a_run_that_measured_nothing_leaves_the_file_as_it_was(lmc, file: str, tmp_path: Path):
    run = ("run", f"{file}:answer", *TOY, "--profile-generate", "p.json")
    (tmp_path / "no.jsonl").write_text('{"no": 1}\n')
    said = lmc(*run, "--input", "no.jsonl")
    assert (said.code, (tmp_path / "p.json").exists()) == (1, False)
    assert "nothing was measured: the file of --profile-generate was not written" in said.err
    said = lmc(*run, "topic=1")
    assert (said.code, "nothing was measured" in said.err) == (0, False)
    before = (tmp_path / "p.json").read_text()
    for more in ((), ("--profile-use", "p.json"), ("--profile-merge",)):
        assert "nothing was measured" in lmc(*run, "--input", "no.jsonl", *more).err
        assert (tmp_path / "p.json").read_text() == before


def test_a_run_that_is_interrupted_writes_what_it_has(start, file: str, tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"seconds": {seconds}}}\n' for seconds in (0, 60, 60)))
    command = ("run", f"{file}:slow", "--input", "rows.jsonl", "-o", "out.jsonl", "--profile", "p.json", *TOY)
    process = start(*command)
    deadline = time.monotonic() + 60
    output = tmp_path / "out.jsonl"
    while time.monotonic() < deadline and not (output.exists() and output.read_text()):
        time.sleep(0.05)
    assert not (tmp_path / "p.json").exists()
    while len((tmp_path / "waits").read_text()) < 3:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.communicate()
    assert read(tmp_path).ops["slow/a"].usage.calls == 3
    assert not list(tmp_path.glob(".p.json*"))


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (("compile", "{}:answer", "--profile", "no.json"), "no.json can't be read"),
        (("compile", "{}:answer", "--profile", "rows.jsonl"), "rows.jsonl: not a profile"),
        (("compile", "{}:answer", "--profile", "mean.json"), "mean.json: not a profile: 'answer/first': 1 outputs of"),
        (("compile", "{}:answer", "--profile", "p.json", "-O1"), "-O1 looks at no profile"),
        (("run", "{}:plain", "topic=1", "--profile-use", "p.json"), "-O0 looks at no profile"),
        (("run", "{}:answer", "topic=1", "--profile-use", "no.json"), "no.json can't be read"),
        (
            ("run", "{}:other", "topic=1", "--profile-use", "p.json"),
            "p.json: the profile is of the program",
        ),
        (("schedule", "{}:other", "--input", "rows.jsonl", "--profile-use", "p.json"), "of the program 'answer', not"),
        (("run", "m.lmir", "--profile-use", "p.json"), "--profile-use says how a program is compiled, and m.lmir is"),
        (("run", "m.lmir", "--no-order-sections"), "--order-sections says how a program is compiled, and m.lmir is"),
        (("schedule", "m.lmir", "--input", "rows.jsonl", "--profile", "p.json"), "and m.lmir is compiled already"),
        (("compile", "{}:other", "--profile", "p.json"), "is of the program 'answer', not of 'other'"),
        (("run", "{}:answer", "topic=1", "--profile-merge"), "--profile-merge goes with --profile-generate"),
        (
            ("run", "{}:other", "topic=1", "--profile", "p.json", "--profile-merge"),
            "p.json: the profile is of the program",
        ),
        (("run", "{}:answer", "--input", "rows.jsonl", "--profile", "rows.jsonl"), "rows.jsonl is the input, which"),
        (("run", "{}:answer", "topic=1", "-o", "x", "--profile", "./x"), "./x is a file of rows"),
        (
            ("run", "{}:answer", "topic=1", "--profile-generate", "{}"),
            "profiled.py is the program, which would be gone",
        ),
        (("run", "{}:answer", "topic=1", "--profile-use", "p.json", "-o", "p.json"), "p.json is the profile, which"),
        (("run", "{}:answer", "topic=1", "--profile", "no/p.json"), "no/p.json can't be written"),
        (("opt", "m.lmir", "-O2", "--profile", "p.json", "-o", "p.json"), "p.json is the profile, which would be gone"),
        (("opt", "m.lmir", "--profile", "p.json"), "--profile-use is for the pass apply-profile, which is not run"),
    ],
)
def test_what_can_not_be_done_is_said(lmc, file: str, tmp_path: Path, arguments: tuple[str, ...], cause: str):
    data = rows(tmp_path, "1")
    wrong = OpProfile(Usage(generated_tokens=48), longest=41, lengths=length_bins([41]))
    (tmp_path / "mean.json").write_text(Profile("answer", {"answer/first": wrong}).to_json())
    (tmp_path / "p.json").write_text(Profile("answer").to_json())
    (tmp_path / "m.lmir").write_text("module @answer { func @answer() { %0 = lm.context : !ctx lm.return %0 } }")
    said = lmc(*(argument.format(file) for argument in arguments), *TOY)
    assert said.code in (1, 2)
    assert cause in said.err
    assert "remedy: " in said.err
    assert (tmp_path / data).read_text() == '{"topic": "1"}\n'
    assert read(tmp_path) == Profile("answer")
