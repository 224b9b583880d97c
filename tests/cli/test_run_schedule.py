"""``lmc run --schedule`` keeps to what ``lmc schedule`` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmc.backend.schedule.schedule_json import load_schedule
from lmc.runtime.executor import Executor

PROGRAM = """import lmc


@lmc.jit
def agents(s, task: str, tone: str = "dry"):
    plan = s.fork(1)[0]
    plan += "You plan. " * 80 + task
    plan.gen("steps", max_tokens=4, temperature=1.0)
    s += lmc.section("You write. " * 80 + tone) + lmc.section("Now.", movable=True) + plan["steps"]
    return s.gen("text", max_tokens=4, temperature=1.0)


@lmc.jit
def other(s, task: str, tone: str = "dry"):
    s += task
    return s.gen("text", max_tokens=4)


@lmc.jit
def breaks(s, task: str):
    s += task
    s.gen("a", max_tokens=3)
    eval("0")
    return s["a"]


@lmc.jit
def lists(s, parts: list[str], times: int):
    for _ in range(times):
        s += parts[0]
    return s.gen("a", max_tokens=times)
"""
TOY = ("--model", "toy")
TASKS = [f"{'abc'[number % 3]} task {number}" for number in range(9)]
ROWS = ("--input", "rows.jsonl")
Batches = list[tuple[list[int], int]]


def write(path: str, rows: list[dict[str, Any]]) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture(autouse=True)
def folder(program: str, tmp_path: Path) -> Path:
    (tmp_path / "p.py").write_text(PROGRAM)
    write("rows.jsonl", [{"task": task} for task in TASKS])
    return tmp_path


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Batches:
    """The numbers of the instances of each batch that an executor runs, as they start, and the size of its blocks."""
    found: Batches = []
    run_batch = Executor.run_batch

    async def run(self: Executor, instances: Any, order: Any, *rest: Any, **options: Any) -> None:
        found.append(([instances[index].number for index in order], options["block"]))
        await run_batch(self, instances, order, *rest, **options)

    monkeypatch.setattr(Executor, "run_batch", run)
    return found


def made(lmc, *arguments: str, program: str = "p.py:agents") -> None:
    said = lmc("schedule", program, *ROWS, *arguments, "-o", "s.jsonl", *TOY)
    assert said.code == 0, said.err


def outputs(said) -> list[dict[str, Any]]:
    assert said.code == 0, said.err
    return sorted(map(json.loads, said.out.splitlines()), key=lambda row: row["index"])


@pytest.mark.parametrize("name", ["p.py:agents", "plan.json", "m.lmir"])
def test_a_run_takes_order_and_blocks_of_a_schedule_and_gives_the_same(lmc, batches: Batches, name: str):
    for kind, file in (("plan", "plan.json"), ("ir", "m.lmir")):
        assert lmc("compile", "p.py:agents", "--emit", kind, "-o", file, *TOY).code == 0
    made(lmc, "tone=dry", "--kv-tokens", "300", "--batch", "1")
    saved = load_schedule(Path("s.jsonl").read_text())
    assert saved.layout.block > 1
    run = ("run", name, *ROWS, "tone=dry", "--json", *TOY)
    plain, kept = lmc(*run), lmc(*run, "--schedule", "s.jsonl")
    assert outputs(plain) == outputs(kept)
    assert batches[1] == (list(saved.order), saved.layout.block)
    assert batches[0][1] == 1  # the toy does not say how large its pool is


def test_the_order_is_that_of_the_file_and_no_other(lmc, batches: Batches):
    made(lmc)
    head, *lines = Path("s.jsonl").read_text().splitlines()
    Path("s.jsonl").write_text("\n".join([head.replace('"block": 9', '"block": 2'), *reversed(lines)]) + "\n")
    order = [json.loads(line)[0] for line in reversed(lines)]
    assert len(outputs(lmc("run", "p.py:agents", *ROWS, "--schedule", "s.jsonl", "--json", *TOY))) == 9
    assert batches == [(order, 2)]


def test_a_schedule_goes_over_more_rows_than_a_window(lmc, batches: Batches):
    write("rows.jsonl", [{"task": f"{number * 7919 % 1100:04}"} for number in range(1100)])
    made(lmc, program="p.py:other")
    rows = outputs(lmc("run", "p.py:other", *ROWS, "--schedule", "s.jsonl", "--json", *TOY))
    assert [row["index"] for row in rows] == list(range(1100))
    assert all(row["error"] is None for row in rows)
    order = load_schedule(Path("s.jsonl").read_text()).order
    assert batches == [(list(order), 1)]
    assert list(order) != list(range(1100))


def test_what_follows_a_break_runs_too(lmc):
    made(lmc, program="p.py:breaks")
    run = ("run", "p.py:breaks", *ROWS, "--json", *TOY)
    assert outputs(lmc(*run)) == outputs(lmc(*run, "--schedule", "s.jsonl"))


def test_rows_may_come_through_a_pipe(lmc, monkeypatch: pytest.MonkeyPatch):
    made(lmc)
    with Path("rows.jsonl").open() as rows:
        monkeypatch.setattr("sys.stdin", rows)
        found = outputs(lmc("run", "p.py:agents", "--input", "-", "--schedule", "s.jsonl", "--json", *TOY))
    assert found == outputs(lmc("run", "p.py:agents", *ROWS, "--json", *TOY))


def test_the_output_is_not_the_schedule(lmc):
    made(lmc)
    text = Path("s.jsonl").read_text()
    said = lmc("run", "p.py:agents", *ROWS, "--schedule", "s.jsonl", "-o", "./s.jsonl", *TOY)
    assert (said.code, Path("s.jsonl").read_text()) == (2, text)
    assert "./s.jsonl is the schedule, which would be gone" in said.err
    assert "name another file for -o" in said.err


def test_the_rows_count_and_not_how_they_are_written(lmc):
    made(lmc, "tone=warm")
    write("rows.jsonl", [{"tone": "warm", "task": task} for task in TASKS])
    assert len(outputs(lmc("run", "p.py:agents", *ROWS, "--schedule", "s.jsonl", "--json", *TOY))) == 9


@pytest.mark.parametrize(
    ("arguments", "code", "cause", "remedy"),
    [
        (("p.py:agents", *ROWS, "--schedule", "no.jsonl"), 2, "no.jsonl can't be read", "JSON Lines"),
        (("p.py:agents", *ROWS, "--schedule", "rows.jsonl"), 1, "rows.jsonl:1: error: not a schedule", "again"),
        (("p.py:agents", *ROWS, "--schedule", "old.jsonl"), 1, "old.jsonl:1: error: schedule version 2", "again"),
        (("p.py:agents", *ROWS, "--schedule", "cut.jsonl"), 1, "cut.jsonl:9: error: the schedule is cut off", "again"),
        (("p.py:agents", *ROWS, "--schedule", "empty"), 1, "empty:1: error: not a schedule", "schedule the batch"),
        (("p.py:agents", *ROWS, "--schedule", "unsaid.jsonl"), 1, "unsaid.jsonl does not say which", "lmc schedule"),
        (("p.py:other", *ROWS, "--schedule", "s.jsonl"), 1, "program 'agents', not of 'other'", "name the program"),
        (
            ("p.py:agents", *ROWS, "--schedule", "s.jsonl", "--order-sections"),
            1,
            "s.jsonl was made for another plan of 'agents'",
            "--order-sections as for lmc schedule",
        ),
        (
            ("p.py:agents", *ROWS, "--schedule", "s.jsonl", "tone=warm"),
            1,
            "s.jsonl was made for other rows than those of rows.jsonl",
            "name the rows that were scheduled",
        ),
        (
            ("p.py:agents", "--input", "swapped.jsonl", "--schedule", "s.jsonl"),
            1,
            "s.jsonl was made for other rows than those of swapped.jsonl",
            "name the rows that were scheduled",
        ),
        (
            ("p.py:agents", "--input", "few.jsonl", "--schedule", "s.jsonl"),
            1,
            "s.jsonl is a schedule of 9 rows, and few.jsonl has 8",
            "name the rows that were scheduled",
        ),
        (
            ("p.py:agents", "--input", "many.jsonl", "--schedule", "s.jsonl"),
            1,
            "s.jsonl is a schedule of 9 rows, and many.jsonl has more",
            "name the rows that were scheduled",
        ),
        (("p.py:agents", "--input", "bad.jsonl", "--schedule", "s.jsonl"), 1, "bad.jsonl:2", "task"),
        (
            ("p.py:lists", "--input", "lists.jsonl", "--schedule", "lists.s.jsonl"),
            1,
            "row 1 of lists.jsonl needs another plan than those before it",
            "each form in a file of its own",
        ),
        (("p.py:agents", "task=x", "--schedule", "s.jsonl"), 2, "--schedule is for the rows of a file", "--input"),
        (
            ("p.py:agents", "--input", "-", "--schedule", "-"),
            2,
            "--schedule and --input can't both be standard input",
            "--input",
        ),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused_before_anything_runs(
    lmc, batches: Batches, arguments: tuple[str, ...], code: int, cause: str, remedy: str
):
    write("lists.jsonl", [{"parts": ["a"], "times": 1}])
    said = lmc("schedule", "p.py:lists", "--input", "lists.jsonl", "-o", "lists.s.jsonl", *TOY)
    assert said.code == 0, said.err
    write("lists.jsonl", [{"parts": ["a"], "times": 1}, {"parts": ["a"], "times": 2}])
    made(lmc)
    text = Path("s.jsonl").read_text()
    head = json.loads(text.partition("\n")[0])
    rest = text.partition("\n")[2]
    Path("empty").touch()
    Path("old.jsonl").write_text(json.dumps({**head, "version": 2}) + "\n" + rest)
    Path("unsaid.jsonl").write_text(json.dumps({**head, "origin": None}) + "\n" + rest)
    Path("cut.jsonl").write_text("".join(text.splitlines(keepends=True)[:-1]))
    write("swapped.jsonl", [{"task": task} for task in (TASKS[1], TASKS[0], *TASKS[2:])])
    write("few.jsonl", [{"task": task} for task in TASKS[:8]])
    write("many.jsonl", [{"task": task} for task in [*TASKS, "x"]])
    write("bad.jsonl", [{"task": TASKS[0]}, {"tusk": "x"}])
    Path("out.jsonl").write_text("kept")
    said = lmc("run", *arguments, "-o", "out.jsonl", "--profile-generate", "profile.json", *TOY)
    assert (said.code, said.out) == (code, "")
    assert cause in said.err
    assert "remedy: " in said.err
    assert remedy in said.err.partition("remedy: ")[2]
    assert batches == []
    assert Path("out.jsonl").read_text() == "kept"
    assert not Path("profile.json").exists()
