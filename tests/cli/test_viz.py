"""``lmc viz`` and ``lmc compile --emit tree``: options, files, and messages for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

ROWS = '{"essay": "good", "dims": ["tone", "plot"]}\n{"essay": "short", "dims": ["tone", "plot"]}\n'


@pytest.fixture
def rows(tmp_path: Path) -> str:
    (tmp_path / "rows.jsonl").write_text(ROWS)
    return "rows.jsonl"


def test_data_of_a_program_and_its_rows(lmc, program: str, rows: str) -> None:
    said = lmc("viz", f"{program}:judge", "--input", rows, "--model", "toy", "--format", "json")
    assert said.code == 0, said.err
    data = json.loads(said.out)
    assert data["program"]["name"] == "judge"
    assert data["plan"]["row_count"] == 2
    assert "kv_tokens" not in data["plan"]
    small = lmc(
        "viz",
        f"{program}:judge",
        "--input",
        rows,
        "--model",
        "toy",
        "--kv-tokens",
        "500",
        "--batch",
        "1",
        "--format",
        "json",
    )
    plan = json.loads(small.out)["plan"]
    assert (plan["kv_tokens"], plan["batch"]) == (500, 1)


@pytest.mark.parametrize(
    ("form", "begins"),
    [("html", "<!DOCTYPE html>"), ("json", '{"format"'), ("mermaid", "flowchart TD\n"), ("dot", "digraph")],
)
def test_forms_and_files(lmc, program: str, form: str, begins: str) -> None:
    shown = lmc("viz", f"{program}:judge", "--format", form, "--model", "toy")
    written = lmc("viz", f"{program}:judge", "--format", form, "--model", "toy", "-o", "out.txt")
    assert (shown.code, written.code, written.out) == (0, 0, "")
    assert shown.out.startswith(begins)
    if form == "html":
        assert lmc("viz", f"{program}:judge", "--model", "toy").out == shown.out
    assert Path("out.txt").read_text(encoding="utf-8") == shown.out


def test_arguments_level_and_redaction(lmc, program: str) -> None:
    said = lmc(
        "viz",
        f"{program}:judge",
        "essay=xyzzy",
        'dims=["a","b","c"]',
        "-O0",
        "--model",
        "toy",
        "--redact",
        "--format",
        "json",
    )
    assert said.code == 0, said.err
    data = json.loads(said.out)
    assert [stage["name"] for stage in data["stages"]] == ["capture"]
    assert data["redacted"] is True
    assert "You grade" not in said.out


def test_the_program_prints_to_standard_error(lmc, program: str) -> None:
    Path("cli_program.py").write_text("print('hello')\n" + Path("cli_program.py").read_text())
    said = lmc("viz", f"{program}:judge", "--model", "toy", "--format", "json")
    assert said.out.startswith('{"format"')
    assert "hello" in said.err


def test_saved_modules_and_plans(lmc, program: str, rows: str) -> None:
    for emit, file in (("ir", "j.lmir"), ("plan", "j.json")):
        given = ("essay=x", 'dims=["tone"]') if emit == "ir" else ()
        made = lmc("compile", f"{program}:breaks" if emit == "ir" else f"{program}:slow", "--emit", emit, "-o", file)
        assert made.code == 0, (given, made.err)
        said = lmc("viz", file, "--format", "json")
        assert said.code == 0, said.err
        data = json.loads(said.out)
        assert len(data["stages"]) == 1
        assert all("lines" not in source for source in data["sources"])  # files that a saved plan names are not read
    assert rows


def test_a_schedule(lmc, program: str, rows: str) -> None:
    """Its plan is that of the program for the same rows; its ops are the requests of a row."""
    given = (f"{program}:judge", "--input", rows, "--model", "toy")
    assert lmc("schedule", *given, "-o", "judge.schedule").code == 0
    data = json.loads(lmc("viz", "judge.schedule", "--format", "json", "--kv-tokens", "900").out)
    whole = json.loads(lmc("viz", *given, "--format", "json", "--kv-tokens", "900").out)
    nodes = {node["key"]: node for node in data["stages"][0]["added"]}
    assert {node["id"] for node in nodes.values()} == {call["id"] for call in whole["calls"]}
    assert data["program"]["name"] == "judge"

    def named(view: dict[str, Any]) -> dict[str, Any]:
        ids = {call["key"]: call["id"] for call in view["calls"]}
        plan = view["plan"]
        for request in plan["requests"]:
            request["key"] = ids[request["key"]]
        for prompt in plan["prompts"]:
            prompt["ends"] = {ids[key]: count for key, count in prompt.get("ends", {}).items()}
        return plan

    assert named(data) == named(whole)
    assert [call["planned"] for call in data["calls"]] == [call["planned"] for call in whole["calls"]]
    assert lmc("viz", "judge.schedule", "--input", rows).code == 2
    assert lmc("viz", "judge.schedule", "a=b").code == 2
    assert "You grade" not in lmc("viz", "judge.schedule", "--redact").out
    assert lmc("viz", "judge.schedule", "--format", "mermaid").out.startswith("flowchart TD\n")


def test_a_timeline_is_no_program(lmc, program: str) -> None:
    assert program
    Path("run.json").write_text('[\n{"name": "lmc-timeline", "ph": "M"},\n')
    said = lmc("viz", "run.json")
    assert said.code == 2
    assert "run.json is a timeline, which is no program" in said.err


def test_a_comparison(lmc, program: str) -> None:
    for level in "02":
        assert lmc("compile", f"{program}:typed", f"-O{level}", "--emit", "ir", "-o", f"{level}.lmir").code == 0
    said = lmc("viz", "--diff", "0.lmir", "2.lmir", "--format", "json", "-o", "diff.json")
    assert said.code == 0, said.err
    data = json.loads(Path("diff.json").read_text())
    assert data["comparison"] is True
    assert [stage["name"] for stage in data["stages"]] == ["0.lmir", "2.lmir"]
    assert lmc("viz", "--diff", "0.lmir", "2.lmir", "--format", "mermaid").out.startswith("flowchart TD\n")


def test_the_tree(lmc, program: str) -> None:
    said = lmc("compile", f"{program}:breaks", "--emit", "tree", "--model", "toy")
    assert said.code == 0, said.err
    assert "● gen a *  wave 0" in said.out
    assert "break: cli_program.py:" in said.out
    assert "  remedy: " in said.out
    assert lmc("compile", f"{program}:breaks", "--emit", "tree", "--json").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["viz", "--redact"], 2, "there is no program"),
        (["viz", "gone.py"], 2, "there is no file gone.py"),
        (["viz", "cli_program.py"], 2, "has several programs"),
        (["viz", "cli_program.py:judge", "essay"], 2, "essay"),
        (["viz", "cli_program.py:judge", "--input", "gone.jsonl"], 2, "gone.jsonl"),
        (["viz", "cli_program.py:judge", "--input", "bad.jsonl"], 1, "bad.jsonl:2"),
        (["viz", "cli_program.py:judge", "--input", "rows.jsonl", "--kv-tokens", "3"], 1, "the pool has 3"),
        (["viz", "cli_program.py:judge", "--input", "empty.jsonl"], 2, "empty.jsonl holds no rows"),
        (["viz", "cli_program.py:word"], 1, "cli_program.py:"),
        (["viz", "cli_program.py:judge", "-o", "nowhere/x.json"], 2, "nowhere/x.json can't be written"),
        (["viz", "cli_program.py:judge", "-o", "cli_program.py"], 2, "cli_program.py is the program"),
        (["viz", "cli_program.py:judge", "--input", "rows.jsonl", "-o", "rows.jsonl"], 2, "rows.jsonl is the input"),
        (["viz", "cli_program.py:judge", "--format", "svg"], 2, "svg"),
        (["viz", "cli_program.py:judge", "--diff", "a.lmir", "b.lmir"], 2, "--diff compares two modules"),
        (["viz", "--diff", "a.lmir", "b.lmir"], 2, "a.lmir can't be read"),
        (["viz", "--diff", "bad.lmir", "bad.lmir"], 1, "bad.lmir:1"),
        (["viz", "--diff", "a.lmir", "b.lmir", "--input", "rows.jsonl"], 2, "--input is for a program"),
        (["viz", "old.json"], 1, "version"),
        (["viz", "bad.lmir"], 1, "bad.lmir:1"),
        (["viz", "m.lmir", "--order-sections"], 2, "--order-sections says how a program is compiled"),
    ],
)
def test_bad_input_is_one_message(lmc, program: str, rows: str, arguments: list[str], code: int, message: str) -> None:
    assert program
    assert rows
    Path("bad.jsonl").write_text('{"essay": "good"}\n{"essays": "no"}\n')
    Path("empty.jsonl").write_text("")
    Path("bad.lmir").write_text("modul @f {}\n")
    Path("m.lmir").write_text("module @f {\n  func @f() {\n    %0 = lm.context : !ctx\n    lm.return %0\n  }\n}\n")
    Path("old.json").write_text('{"format": "lmc.plan", "version": 1}')
    said = lmc(*arguments)
    assert said.code == code, (said.out, said.err)
    assert message in said.err
    assert said.out == ""
    assert "Traceback" not in said.err
