"""``lmc cost``: reports of programs before they run, exit codes, and what it does without."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from lmc.report.cost.model import from_json

PROGRAM = """import lmc


@lmc.jit
def judge(s, essay: str):
    s += lmc.user(f"Essay: {essay}\\nIs it good?")
    if s.select("good", ["yes", "no"]) == "yes":
        s += lmc.user("Why?")
        s.gen("why", max_tokens=40, stop="\\n")
    views = s.fork(3)
    for number, view in enumerate(views):
        view += lmc.user(f"View {number}.")
        view.gen("view", max_tokens=16)
    return [view["view"] for view in views]


@lmc.jit
def broken(s, essay: str):
    s += lmc.user(essay)
    first = s.gen("first", max_tokens=8)
    globals()["seen"] = first
    s += lmc.user("Why?")
    s.gen("later", max_tokens=8)
"""
ROWS = [{"essay": f"Essay {number} about {'birds' * number}"} for number in range(4)]
PROJECT = """[tool.lmc.prices."openai:gpt-4.1"]
input = 2
output = 8

[[tool.lmc.cost]]
program = "p.py:judge"
input = "rows.jsonl"
model = ["openai:gpt-4.1", "toy"]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


JUDGE = ("cost", "p.py:judge", "--input", "rows.jsonl")


def report(text: str):
    return from_json(text, "report")


def test_calls_are_folded_by_place_and_have_lines(lmc):
    said = lmc(*JUDGE, "--model", "toy", "--format", "json")
    assert said.code == 0, said.err
    (program,) = report(said.out).programs
    assert (program.program, program.model, program.rows.count) == ("p.py:judge", "toy", 4)
    assert [(call.op, str(call.place)) for call in program.calls] == [
        ("judge/good", "p.py:7"),
        ("judge/why", "p.py:9"),
        ("judge/fork/*/view", "p.py:13"),
    ]
    good, why, views = (call.calls for call in program.calls)
    assert (good.least, good.most) == (4, 4)
    assert (why.least, why.expected, why.most) == (0, 2, 4)
    assert (views.least, views.most) == (12, 12)
    assert program.total.usd is None
    assert program.unpriced == "it runs on this machine"


def test_a_run_measures_what_lies_in_the_ranges(lmc):
    (program,) = report(lmc(*JUDGE, "--model", "toy", "--format", "json").out).programs
    run = lmc("run", "p.py:judge", "--input", "rows.jsonl", "--model", "toy", "--json")
    usages = [json.loads(line)["usage"] for line in run.out.splitlines()]
    for name, field in (("calls", "calls"), ("prompt", "prompt_tokens"), ("output", "generated_tokens")):
        figure, measured = getattr(program.total, name), sum(usage[field] for usage in usages)
        assert figure.least <= measured <= figure.most, name


def test_the_same_input_gives_the_same_bytes(lmc):
    arguments = (*JUDGE, "--model", "openai:gpt-4.1", "--model", "toy", "--format", "json", "-o", "a.json")
    assert lmc(*arguments, "--format", "table", "-o", "a.txt").code == 0
    texts = Path("a.json").read_text(), Path("a.txt").read_text()
    words = [*arguments, "--format", "table", "-o", "a.txt"]
    program = f"import sys; sys.argv[1:] = {words!r}; from lmc.cli.start import main; main()"
    environment = {
        "TZ": "Pacific/Auckland",
        "COLUMNS": "40",
        "PYTHONHASHSEED": "7",
        "PATH": "",
        "HOME": str(Path.cwd()),
    }
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert (Path("a.json").read_text(), Path("a.txt").read_text()) == texts
    assert str(Path.cwd()) not in "".join(texts)


def test_models_are_compared_side_by_side(lmc):
    said = lmc(*JUDGE, "--model", "openai:gpt-4.1", "--model", "anthropic:claude-haiku-4-5", "--model", "toy")
    assert said.code == 0, said.err
    assert "p.py:judge, 3 models" in said.out
    lines = said.out[said.out.index("p.py:judge, 3 models") :].splitlines()[2:]
    assert lines[-1].startswith("toy")
    assert lines[-1].endswith("unpriced")
    assert "$" in lines[0]
    assert "genai-prices" in said.out


def test_entries_of_the_project_are_estimated_without_a_program(lmc):
    Path("pyproject.toml").write_text(PROJECT)
    said = lmc("cost", "--format", "json")
    assert said.code == 0, said.err
    found = report(said.out)
    assert [program.model for program in found.programs] == ["openai:gpt-4.1", "toy"]
    price = found.programs[0].price
    assert price is not None
    assert (price.source, price.input.base, found.prices) == ("pyproject.toml", Decimal(2), None)
    dollars = found.programs[0].total.usd
    assert dollars is not None
    assert 0 < dollars.least <= dollars.expected <= (dollars.most or 0)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("cost",), 2, "there is no program"),
        (("cost", "--input", "rows.jsonl"), 2, "--input is for a program"),
        (("cost", "p.py:judge"), 2, "needs essay"),
        ((*JUDGE, "--model", "openai:gpt-9-unknown"), 1, "[tool.lmc.prices"),
        ((*JUDGE, "--model", "server:http://127.0.0.1:9"), 1, "lmc targets server:http://127.0.0.1:9"),
        ((*JUDGE, "--model", "toy", "-o", "a", "-o", "b"), 2, "2 files for 1 formats"),
        ((*JUDGE, "--model", "toy", "--format", "json", "--format", "table"), 2, "standard output"),
        ((*JUDGE, "--model", "toy", "-o", "rows.jsonl"), 2, "rows.jsonl"),
        ((*JUDGE, "p.py:judge", "--model", "toy"), 2, "twice"),
        ((*JUDGE, "--model", "toy", "--disable-pass", "nothing"), 1, "nothing"),
        (("cost", "p.py:judge", "--input", "bad.jsonl", "--model", "toy"), 1, "row 1"),
        ((*JUDGE, "--model", "toy", "--profile-use", "other.json"), 1, "other"),
    ],
)
def test_bad_input_ends_with_an_error_and_without_a_report(lmc, arguments: tuple[str, ...], code: int, said: str):
    Path("bad.jsonl").write_text('{"essay": "a"}\n{"essay": 3}\n')
    assert lmc("run", "p.py:broken", "essay=a", "--model", "toy", "--profile-generate", "other.json").code == 0
    found = lmc(*arguments)
    assert found.code == code, found.err
    assert said in found.err
    assert not found.out


@pytest.mark.parametrize("price", ["-1", '"free"', "nan"])
def test_a_price_that_is_none_is_an_error(lmc, price: str):
    Path("pyproject.toml").write_text(f'[tool.lmc.prices."openai:gpt-4.1"]\ninput = {price}\noutput = 1\n')
    found = lmc(*JUDGE, "--model", "openai:gpt-4.1")
    assert found.code in (1, 2)
    assert "input is" in found.err
    assert not found.out


def test_behind_a_graph_break_totals_are_at_least(lmc):
    arguments = ("cost", "p.py:broken", "--input", "rows.jsonl", "--model", "openai:gpt-4.1")
    said = lmc(*arguments)
    assert said.code == 0, said.err
    assert "unknown after p.py:21" in said.out
    assert "TOTAL  at least $" in said.out
    (program,) = report(lmc(*arguments, "--format", "json").out).programs
    assert not program.is_whole
    strict = lmc(*arguments, "--strict")
    assert strict.code == 4
    assert "graph break" in strict.err
    assert strict.out == said.out


def test_strict_takes_a_profile_of_all_calls_and_a_price(lmc):
    Path("pyproject.toml").write_text(PROJECT.replace("openai:gpt-4.1", "toy", 1))
    run = ("run", "p.py:judge", "--input", "rows.jsonl", "--model", "toy", "--profile-generate", "profile.json")
    assert lmc(*run).code == 0
    unpriced = lmc(*JUDGE, "--model", "toy", "--strict")
    assert unpriced.code == 4
    assert "unpriced" in unpriced.err
    priced = lmc(*JUDGE, "--model", "openai:gpt-4.1", "--profile-use", "profile.json", "--strict")
    assert priced.code in (0, 4), priced.err


def test_nothing_is_sent_and_torch_is_not_loaded():
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a socket')\n"
        "socket.socket.connect = refuse\n"
        f"sys.argv[1:] = {[*JUDGE, '--model', 'openai:gpt-4.1', '--model', 'builtin', '-o', 'out.txt']!r}\n"
        "import lmc.cli.start\n"
        "try: lmc.cli.start.main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert "TOTAL" in Path("out.txt").read_text()


def test_all_rows_that_fail_are_counted(lmc):
    Path("rows.jsonl").write_text("".join(json.dumps({"essay": "x" * number}) + "\n" for number in range(31)))
    Path("p.py").write_text(
        PROGRAM.replace("def judge(s, essay: str):", "def judge(s, essay: str):\n    _ = 1 // len(essay[:0])")
    )
    said = lmc(*JUDGE, "--model", "toy", "--format", "table", "--format", "json", "-o", "-", "-o", "report.json")
    (program,) = report(Path("report.json").read_text()).programs
    assert (len(program.failed), program.failed_rows) == (20, 31)
    assert "31 of 31 rows fail" in said.out


@pytest.mark.parametrize(
    "options",
    [
        ("--update-baseline", "--baseline", "p.py"),
        ("--update-baseline", "--baseline", "rows.jsonl"),
        ("--update-baseline", "-o", "lmc-cost.json"),
        ("--baseline", "lmc-cost.json", "-o", "./lmc-cost.json"),
    ],
)
def test_no_file_that_is_read_or_written_otherwise_is_replaced(lmc, options: tuple[str, ...]):
    Path("pyproject.toml").write_text(PROJECT)
    assert lmc("cost", "--update-baseline").code == 0
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    refused = lmc("cost", *options)
    assert refused.code == 2
    assert "would be gone" in refused.err
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


@pytest.mark.parametrize("files", [("a.txt", "./a.txt"), ("-", "-"), ("a.txt", "../{}/a.txt")])
def test_two_formats_never_go_to_one_file(lmc, files: tuple[str, str]):
    outputs = [word for file in files for word in ("-o", file.format(Path.cwd().name))]
    said = lmc(*JUDGE, "--model", "toy", "--format", "table", "--format", "json", *outputs)
    assert (said.code, said.out) == (2, "")
    assert "formats go to" in said.err


def test_a_baseline_may_begin_with_a_byte_order_mark(lmc):
    assert lmc(*JUDGE, "--model", "toy", "--update-baseline").code == 0
    text = Path("lmc-cost.json").read_text(encoding="utf-8")
    Path("base.json").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert "vs base" in lmc(*JUDGE, "--model", "toy", "--baseline", "base.json").out
