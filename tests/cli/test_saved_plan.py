import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Said

TOY = ("--model", "toy")
PROGRAM = """
import dataclasses

import lmc


@dataclasses.dataclass
class Options:
    k: int
    loud: bool = False
    word: str = "tree"


@lmc.jit
def main(s, topic: str, k: int = 3, strict: bool = False):
    s += topic * k
    return [s.gen("a", max_tokens=2), k, strict]


@lmc.jit
def nested(s, opts: Options, pair: dict[str, int]):
    s += opts.word * opts.k
    return [s.gen("a", max_tokens=2), opts.k, opts.loud, pair["x"]]


@lmc.jit
def looped(s, dims: list[str]):
    for dim in dims:
        s += dim
        s.gen("a", max_tokens=len(dims))
    return len(dims)


@lmc.jit
def sized(s, topic: str, limit: int = 2):
    s += topic
    return s.gen("a", max_tokens=limit)
"""


@pytest.fixture
def saved(lmc: Callable[..., Said], program: str, tmp_path: Path) -> Callable[..., Said]:
    """Compiles a program of this file to plan.json."""
    assert program
    (tmp_path / "saving.py").write_text(PROGRAM)

    def save(name: str, *arguments: str) -> Said:
        said = lmc("compile", f"saving.py:{name}", *arguments, *TOY, "--emit", "plan", "-o", "plan.json")
        assert said.code == 0, said.err
        return said

    return save


@pytest.fixture
def run(lmc: Callable[..., Said], saved: object, tmp_path: Path) -> Callable[..., list[dict]]:
    """Runs rows with a program or a plan; gives the output rows in order."""
    assert saved

    def run(program: str, *rows: object) -> list[dict]:
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        said = lmc("run", program, "--input", "in.jsonl", "--json", *TOY)
        found = [json.loads(line) for line in said.out.splitlines()]
        assert len(found) == len(rows), said.err
        return sorted(found, key=lambda row: row["index"])

    return run


def test_defaults_are_kept_and_frozen_values_are_said_and_checked(lmc, saved, run):
    assert "frozen in the plan: strict = false; for other values" in saved("main").err
    said = lmc("run", "plan.json", "topic=x", "--json", *TOY)
    assert json.loads(said.out) == json.loads(lmc("run", "saving.py:main", "topic=x", "--json", *TOY).out)
    rows = [{"topic": "x"}, {"topic": "x", "k": 1, "strict": False}]
    assert run("plan.json", *rows) == run("saving.py:main", *rows)
    [other] = run("plan.json", {"topic": "x", "strict": True})
    assert other["error"].startswith("in.jsonl:1: argument strict is true, but the plan is for false only")
    said = lmc("run", "plan.json", "topic=x", "strict=true", *TOY)
    assert (said.code, said.out) == (2, "")
    assert "argument strict is true, but the plan is for false only" in said.err
    assert lmc("run", "plan.json", "topic=x", "strict=no", *TOY).code == 0


def test_an_argument_that_differs_from_its_default_is_frozen_to_what_it_was(saved, run):
    assert "strict = true" in saved("main", "topic=x", "strict=true").err
    [row] = run("plan.json", {"topic": "x"})
    assert row["value"][1:] == [3, True]


def test_records_and_dicts_are_given_as_to_the_program(saved, run):
    said = saved("nested", 'opts={"k": 1}', 'pair={"x": 1}')
    assert "opts.loud = false" in said.err
    rows = [{"opts": {"k": 2}, "pair": {"x": 5}}, {"opts": {"k": 1, "loud": False, "word": "ants"}, "pair": {"x": 0}}]
    assert run("plan.json", *rows) == run("saving.py:nested", *rows)
    flat = {"opts.k": 2, "opts.word": "tree", "pair.x": 5}
    assert run("plan.json", flat) == run("plan.json", rows[0])
    errors = [
        ({"opts": {"k": 2, "loud": True}, "pair": {"x": 5}}, "argument opts.loud is true, but the plan is for false"),
        ({"opts": {"k": "z"}, "pair": {"x": 5}}, 'argument opts.k is "z", a string: '),
        ({"opts": {}, "pair": {"x": 5}}, "argument opts.k is missing"),
        ({"opts": {"k": 2, "q": 1}, "pair": {"x": 5}}, "but the plan is for an object with k, loud, word"),
        ({"opts": [2], "pair": {"x": 5}}, "but the plan is for an object with k, loud, word"),
        ({"opts": {"k": 2}, "opts.k": 1, "pair": {"x": 5}}, "argument 'opts' and its part 'opts.k' are both given"),
        ({"pair": {"x": 5}}, "argument 'opts' is missing"),
        ({"opts": {"k": 2}, "par": {"x": 5}}, "nested has no argument 'par'"),
    ]
    for row, (_, cause) in zip(run("plan.json", *(row for row, _ in errors)), errors, strict=True):
        assert cause in row["error"]


def test_a_length_that_was_read_is_frozen(saved, run):
    assert "len(dims) = 2" in saved("looped", 'dims=["a", "b"]').err
    good, bad = run("plan.json", {"dims": ["x", "y"]}, {"dims": ["x"]})
    assert good["value"] == 2
    assert "but the plan is for a length of 2" in bad["error"]


def test_a_value_that_an_op_was_specialised_to_is_frozen(saved, run):
    assert "limit = 4" in saved("sized", "topic=x", "limit=4").err
    left_out, same, other = run("plan.json", {"topic": "x"}, {"topic": "x", "limit": 4}, {"topic": "x", "limit": 5})
    assert left_out["value"] == same["value"]
    assert "argument limit is 5, a number, but the plan is for 4 only" in other["error"]


def test_a_condition_that_capture_decided_is_kept(lmc, program: str, saved, run):
    assert lmc("compile", f"{program}:judge", "essay=x", "--emit", "plan", "-o", "judge.json", *TOY).code == 0
    good, bad = run("judge.json", {"essay": "birds"}, {"essay": "bad"})
    assert good["value"]["essay"] == "birds"
    assert bad["error"].startswith("in.jsonl:2: the plan was made for other values of essay")


@pytest.mark.parametrize("option", ["-o", "--profile-generate"])
@pytest.mark.parametrize(("file", "named"), [("saving.py", "saving.py:main"), ("./saving.py", "saving.py")])
def test_the_program_of_a_plan_is_not_written_over(lmc, saved, tmp_path: Path, option: str, file: str, named: str):
    saved("main")
    (tmp_path / "in.jsonl").write_text('{"topic": "x"}\n')
    said = lmc("run", "plan.json", "--program", named, "--input", "in.jsonl", option, file, *TOY)
    assert (said.code, said.out, (tmp_path / "saving.py").read_text()) == (2, "", PROGRAM)
    assert f"error: {file} is the program, which would be gone" in said.err
    assert f"name another file for {option}" in said.err


def test_a_tool_that_interrupts_ends_the_run_of_a_saved_plan(lmc, program: str, tmp_path: Path):
    assert program
    (tmp_path / "quitting.py").write_text(QUITTING)
    assert lmc("compile", "quitting.py", "--emit", "plan", "-o", "plan.json", *TOY).code == 0
    (tmp_path / "data.jsonl").write_text('{"word": "stop"}\n{"word": "go"}\n')
    said = lmc("run", "plan.json", "--program", "quitting.py", "--input", "data.jsonl", "-o", "out.jsonl", *TOY)
    assert said.code == 130
    assert said.err.startswith("interrupted: ")


QUITTING = """
import lmc


@lmc.tool
def quits(word: str) -> str:
    if word == "stop":
        raise KeyboardInterrupt
    return word


@lmc.jit
def program(s, word: str):
    s += quits(word)
    return s.gen("a", max_tokens=3)
"""
