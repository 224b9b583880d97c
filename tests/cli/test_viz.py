"""``lmc viz`` and ``lmc compile --emit tree``: options, files, and messages for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest

ROWS = '{"essay": "good", "dims": ["tone", "plot"]}\n{"essay": "short", "dims": ["tone", "plot"]}\n'


TOOLS = """
import lmc

@lmc.tool
def weather(town: str) -> str:
    return "sun"

@lmc.jit
def ask(s, topic: str):
    s += topic + weather(topic)
    return s.gen("answer", max_tokens=3)
"""

KEYED = """
import lmc

@lmc.jit
def ask(s, topic: dict[str, str]):
    s += str(topic)
    return s.gen("answer", max_tokens=3)
"""

MAPPED = """
import lmc

@lmc.jit
def one(s, topic: str):
    s += topic
    return s.gen("answer", max_tokens=3)

@lmc.jit
def all_of(s, topics: list[str]):
    return lmc.map(one, topics)
"""

SAMPLES = """
import lmc

@lmc.jit
def sampled(s):
    s += "x"
    s.gen("a", max_tokens=3, temperature=1.0, n=1)
    s.gen("b", max_tokens=3, temperature=1.0, n=2)
"""


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


@pytest.mark.parametrize(
    ("form", "keys", "said_of_rows"),
    [
        ("json", "aba", "2 rows of one plan; 1 row of 1 other plan is left out: 1"),
        ("mermaid", "ababa", "3 rows of one plan; 2 rows of 1 other plan are left out: 1, 3"),
        ("dot", "abbcc", "2 rows of one plan; 3 rows of 2 other plans are left out: 0, 3, 4"),
    ],
)
def test_notices_are_printed_as_well(lmc, program: str, form: str, keys: str, said_of_rows: str) -> None:
    assert Path(program).exists()
    Path("keyed.py").write_text(KEYED)
    Path("mixed.jsonl").write_text("".join(json.dumps({"topic": {key: "x"}}) + "\n" for key in keys))
    given = ("keyed.py", "--model", "toy")
    said = lmc("viz", *given, "--input", "mixed.jsonl", "--format", form)
    assert said.code == 0, said.err
    assert " ".join(said.err.split()) == f"note: the batch has the {said_of_rows}"
    assert "note:" not in said.out
    assert lmc("run", *given, "--input", "mixed.jsonl", "--timeline", "run.json", "-o", "out.jsonl").code == 0
    Path("mixed.jsonl").rename("moved.jsonl")
    said = lmc("viz", *given, 'topic={"a": "x"}', "--timeline", "run.json", "--format", form)
    assert "its rows, mixed.jsonl, are not here; name them with --input" in " ".join(said.err.split())


def test_a_timeline_alone(lmc, program: str, rows: str) -> None:
    """Its figures are those of the timeline beside its program."""
    given = (f"{program}:judge", "--input", rows, "--model", "toy")
    assert lmc("run", *given, "--timeline", "run.json", "-o", "out.jsonl").code == 0
    whole = json.loads(lmc("viz", *given, "--timeline", "run.json", "--format", "json").out)
    data = json.loads(lmc("viz", "run.json", "--format", "json").out)
    assert data["program"]["name"] == "judge"
    assert "the program has the ops, lines and plan" in data["notices"][0]

    def figures(view: dict[str, Any]) -> dict[str, Any]:
        beside = ("divergence", "elsewhere", "elsewhere_cached")
        run = {key: value for key, value in view["timeline"].items() if key not in beside}
        for request in run["requests"]:
            assert request.pop("key")
        return run

    assert figures(data) == figures(whole)
    measured = sorted(json.dumps(call["measured"]) for call in whole["calls"])
    assert sorted(json.dumps(call["measured"]) for call in data["calls"]) == measured
    assert lmc("viz", "run.json", "--format", "mermaid").out.startswith("flowchart TD\n")
    assert lmc("viz", "run.json", "--format", "html").code == 0


def test_what_a_timeline_alone_knows_of_its_ops(lmc, program: str) -> None:
    """An op of all elements of a map has no number of one of them, and figures that only the program has are absent."""
    assert program
    Path("mapped.py").write_text(MAPPED)
    assert lmc("run", "mapped.py:all_of", 'topics=["a","b","c"]', "--model", "toy", "--timeline", "run.json").code == 0
    data = json.loads(lmc("viz", "run.json", "--format", "json").out)
    requests = {each["id"] for each in data["timeline"]["requests"]}
    ids = {node["id"] for node in data["stages"][0]["added"]}
    assert len(requests) == 3
    (shown,) = ids
    assert {each.replace("/0/", "/*/").replace("/1/", "/*/").replace("/2/", "/*/") for each in requests} == ids
    assert shown.count("*") == 1
    assert not {"critical_calls", "batch_prefixes", "instance_prefixes"} & data["program"].keys()


def test_tools_of_a_timeline_alone(lmc, program: str, rows: str) -> None:
    assert program
    assert rows
    Path("tools.py").write_text(TOOLS)
    assert lmc("run", "tools.py", "topic=tea", "--model", "toy", "--timeline", "run.json").code == 0
    data = json.loads(lmc("viz", "run.json", "--format", "json").out)
    (node,) = (node for node in data["stages"][0]["added"] if node["kind"] == "tool")
    assert "weather" in node["label"]
    assert [call["key"] for call in data["timeline"]["tools"]] == [node["key"]]


def test_a_comparison(lmc, program: str) -> None:
    for level in "02":
        assert lmc("compile", f"{program}:typed", f"-O{level}", "--emit", "ir", "-o", f"{level}.lmir").code == 0
    said = lmc("viz", "--diff", "0.lmir", "2.lmir", "--format", "json", "-o", "diff.json")
    assert said.code == 0, said.err
    data = json.loads(Path("diff.json").read_text())
    assert data["comparison"] is True
    assert [stage["name"] for stage in data["stages"]] == ["0.lmir", "2.lmir"]
    alone = [json.loads(lmc("viz", f"{level}.lmir", "--format", "json").out) for level in "02"]
    for shown, whole in zip((data["old"], data), alone, strict=True):
        assert {**shown["program"], "captured_ops": 0} == {**whole["program"], "captured_ops": 0}
        assert [{**call, "key": ""} for call in shown["calls"]] == [{**call, "key": ""} for call in whole["calls"]]
    assert data["old"]["program"]["ops"] != data["program"]["ops"]
    assert lmc("viz", "--diff", "0.lmir", "2.lmir", "--format", "mermaid").out.startswith("flowchart TD\n")


def test_a_comparison_of_two_programs_says_so(lmc, program: str) -> None:
    for name in ("typed", "quiet"):
        assert lmc("compile", f"{program}:{name}", "--emit", "ir", "-o", f"{name}.lmir").code == 0
    said = lmc("viz", "--diff", "typed.lmir", "quiet.lmir", "--format", "json")
    notice = "two programs are compared: 'typed' of typed.lmir and 'quiet' of quiet.lmir"
    assert json.loads(said.out)["notices"] == [notice]
    assert notice in " ".join(said.err.split())
    assert "notices" not in json.loads(lmc("viz", "--diff", "quiet.lmir", "quiet.lmir", "--format", "json").out)
    for rest in (("-o", "x.html"), ("-o",)):
        said = lmc("viz", "--diff", "quiet.lmir", *rest)
        assert said.code == 2
        assert "--diff has one module, and compares two" in said.err


def test_one_sample_is_no_fan_out(lmc, program: str) -> None:
    assert program
    Path("samples.py").write_text(SAMPLES)
    view = json.loads(lmc("viz", "samples.py", "--model", "toy", "--format", "json").out)
    assert [node["label"] for node in view["stages"][0]["added"] if node["kind"] == "call"] == ["gen a", "gen b × 2"]


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
        (["viz", "gone.json"], 2, "gone.json can't be read: No such file"),
        (["viz", "cut.json"], 1, "cut.json has no header of a timeline"),
        (["viz", "cut.json", "--timeline", "cut.json"], 2, "--timeline is for a program, and cut.json is a timeline"),
        (["viz", "cut.json", "--input", "rows.jsonl"], 2, "--input is for a program, and cut.json is a timeline"),
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
    Path("cut.json").write_text("[\n")
    Path("old.json").write_text('{"format": "lmc.plan", "version": 1}')
    said = lmc(*arguments)
    assert said.code == code, (said.out, said.err)
    assert message in said.err
    assert said.out == ""
    assert "Traceback" not in said.err
