import json
from pathlib import Path

import pytest

from lmc.ir.profile import Profile

PROGRAM = """import lmc


@lmc.jit
def agents(s, task: str, tone: str = "dry"):
    plan = s.fork(1)[0]
    plan += "You plan. " * 80 + task
    plan.gen("steps", max_tokens=8)
    s += "You write. " * 80 + plan["steps"]
    return s.gen("text", max_tokens=8)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(PROGRAM)
    rows = [{"task": f"{'abc'[number % 3]} task {number}"} for number in range(9)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def lines(text: str) -> list:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("folder")
def test_rows_stand_beside_those_that_begin_alike(lmc):
    said = lmc("schedule", "p.py", "--input", "rows.jsonl", "--model", "toy")
    assert said.code == 0, said.err
    head, *entries = lines(said.out)
    assert (head["plan"], head["instances"], head["block"]) == ("agents", 9, 9)
    assert [stage["id"] for stage in head["stages"]] == ["agents/fork/0/steps", "agents/text"]
    assert [entry[0] for entry in entries] == [0, 3, 6, 1, 4, 7, 2, 5, 8]


@pytest.mark.usefixtures("folder")
def test_what_is_written_is_simulated_in_its_blocks(lmc):
    found: list[dict] = []
    for kv_tokens in ("100000", "1200"):
        options = ("--kv-tokens", kv_tokens, "--batch", "1", "--model", "toy", "-o", "s.jsonl")
        said = lmc("schedule", "p.py", "--input", "rows.jsonl", *options)
        assert (said.code, said.out) == (0, ""), said.err
        block = json.loads(Path("s.jsonl").read_text().partition("\n")[0])["block"]
        assert f"9 rows in blocks of {block}" in said.err
        simulated = lmc("simulate", "s.jsonl", "--kv-tokens", "1200", "--batch", "1", "--json")
        assert simulated.code == 0, simulated.err
        found.append({"block": block, **json.loads(simulated.out)})
    assert found[0]["block"] == 2 < found[1]["block"]
    assert found[0]["requests"] == found[1]["requests"] == 18
    written = Path("s.jsonl").read_text()
    Path("one.jsonl").write_text(written.replace(f'"block": {found[1]["block"]}', '"block": 1', 1))
    one_by_one = lmc("simulate", "one.jsonl", "--kv-tokens", "1200", "--batch", "1", "--json")
    hits = [json.loads(one_by_one.out)["hit_tokens"], *(each["hit_tokens"] for each in found)]
    assert hits == sorted(hits)
    assert hits[2] > 1.5 * hits[0]


@pytest.mark.usefixtures("folder")
def test_without_a_pool_it_is_as_if_one_held_all(lmc):
    blocks: list[int] = []
    for batch in ("1", "3", "256"):
        options = ("schedule", "p.py", "--input", "rows.jsonl", "--model", "toy", "--batch", batch)
        unsaid, large = lmc(*options), lmc(*options, "--kv-tokens", "100000000")
        assert (unsaid.code, unsaid.out) == (0, large.out)
        blocks.append(lines(unsaid.out)[0]["block"])
    assert blocks == [2, 6, 9]


@pytest.mark.usefixtures("folder")
def test_a_saved_plan_gives_the_schedule_of_its_program(lmc):
    assert lmc("compile", "p.py", "--emit", "plan", "--model", "toy", "-o", "p.json").code == 0
    options = ("--input", "rows.jsonl", "--model", "toy", "tone=warm")
    ours, saved = lmc("schedule", "p.py", *options), lmc("schedule", "p.json", *options)
    assert (ours.code, saved.code) == (0, 0), saved.err
    assert [entry[:2] for entry in lines(ours.out)[1:]] == [entry[:2] for entry in lines(saved.out)[1:]]


@pytest.mark.parametrize(
    ("arguments", "code", "cause"),
    [
        (("p.py", "--input", "missing.jsonl"), 2, "missing.jsonl can't be read"),
        (("p.py", "--input", "bad.jsonl"), 1, "bad.jsonl:1"),
        (("p.py", "--input", "rows.jsonl", "other=1"), 2, "other"),
        (("missing.py", "--input", "rows.jsonl"), 2, "missing.py"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_wrong_is_said(lmc, arguments: tuple[str, ...], code: int, cause: str):
    Path("bad.jsonl").write_text('{"tusk": "x"}\n')
    said = lmc("schedule", *arguments, "--model", "toy")
    assert (said.code, said.out) == (code, "")
    assert cause in said.err


@pytest.mark.parametrize(
    ("output", "what"), [("rows.jsonl", "input"), ("./rows.jsonl", "input"), ("p.py", "program"), ("r.json", "profile")]
)
@pytest.mark.usefixtures("folder")
def test_the_output_is_none_of_the_files_that_are_read(lmc, output: str, what: str):
    Path("r.json").write_text(Profile("agents").to_json())
    before = Path(output).read_text()
    said = lmc("schedule", "p.py:agents", "--input", "rows.jsonl", "--profile-use", "r.json", "-o", output)
    assert (said.code, said.out, Path(output).read_text()) == (2, "", before)
    assert f"error: {output} is the {what}, which would be gone" in said.err
    assert "name another file for -o" in said.err


@pytest.mark.usefixtures("folder")
def test_rows_of_another_form_are_named(lmc):
    Path("lists.py").write_text("""import lmc


@lmc.jit
def lists(s, parts: list[str], times: int):
    for _ in range(times):
        s += parts[0]
    return s.gen("a", max_tokens=times)
""")
    Path("lists.jsonl").write_text('{"parts": ["a"], "times": 1}\n{"parts": ["a"], "times": 2}\n')
    said = lmc("schedule", "lists.py", "--input", "lists.jsonl", "--model", "toy")
    assert (said.code, said.out) == (1, "")
    assert "row 1 of lists.jsonl needs another plan" in said.err


CHAT = """import lmc


@lmc.jit
def chat(s, first: str, second: str):
    s += first
    s.gen("a", max_tokens=16, min_tokens=16)
    s += second
    return s.gen("b", max_tokens=16, min_tokens=16)
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("text", "block"), [("and so ", 8), ("天地玄", 1)])
def test_tokens_are_those_of_the_model(lmc, text: str, block: int):
    """The pool holds all chats in English, and a few where a character has several tokens."""
    Path("chat.py").write_text(CHAT)
    rows = [dict.fromkeys(("first", "second"), f"{number:02} of them: " + text * 15) for number in range(16)]
    Path("chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = lmc("schedule", "chat.py", "--input", "chats.jsonl", "--kv-tokens", "1800", "--batch", "4")
    assert said.code == 0, said.err
    assert lines(said.out)[0]["block"] == block
