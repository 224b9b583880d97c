"""``lmc run --journal``, ``--resume``, ``--replay``, and ``lmc journal``."""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmc.driver import RunRecord
from lmc.driver.batch import run_journal
from lmc.ir.engine.protocol import OnDelta, Request
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import QuotaError
from lmc.ir.usage import Usage
from tests.cli.conftest import Said

Lmc = Callable[..., Said]
PROGRAM = """
import os

import lmc


def log(name, text):
    with open(name, "a") as file:
        file.write(text + "\\n")


@lmc.tool(effect="writes")
def save(text: str) -> int:
    log("saves", text)
    if os.environ.get("DIE") == text:
        os._exit(9)
    return len(text)


@lmc.tool(effect="writes", key=True)
def pay(text: str, *, key: str) -> str:
    log("keys", key)
    if os.environ.get("DIE") == text:
        os._exit(9)
    return key


@lmc.tool(effect="reads")
def look(text: str) -> str:
    log("looks", text)
    return text.upper()


@lmc.tool(effect="writes")
def makes(text: str) -> object:
    log("saves", text)
    return object()


@lmc.jit(target="toy")
def grade(s, essay: str):
    s += f"Essay: {essay} {look(essay)}"
    s.gen("a", max_tokens=4)
    s += f" {save(essay)} "
    return s.gen("b", max_tokens=4)


@lmc.tool(effect="reads")
def flaky(text: str) -> str:
    if os.path.exists("broken") and text == "text 3":
        raise ValueError(text)
    return text


@lmc.jit(target="toy")
def fails(s, essay: str):
    s += f"Essay: {essay}"
    s.gen("a", max_tokens=4)
    s += flaky(essay)
    return s.gen("b", max_tokens=4)


@lmc.jit(target="toy")
def pays(s, essay: str):
    s += f"Essay: {essay}"
    s.gen("a", max_tokens=4)
    s += pay(essay)
    return s.gen("b", max_tokens=4)


@lmc.jit(target="toy")
def breaks(s, essay: str):
    s += f"Essay: {essay}"
    s.gen("a", max_tokens=4)
    eval("0")
    s += f" {save(essay)} {look(essay)}"
    return s.gen("b", max_tokens=4)


@lmc.jit(target="toy")
def unkept(s, essay: str):
    s += f"Essay: {essay}"
    makes(essay)
    s.gen("a", max_tokens=4)
    if save(essay) > 100:
        s += "long"
    return s.gen("b", max_tokens=4)
"""


@pytest.fixture
def rows(tmp_path: Path, program: str) -> str:
    """A file of five rows, in the current folder, beside the programs."""
    Path("journaled.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps({"essay": f"text {number}"}) + "\n" for number in range(5)))
    return "rows.jsonl"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rows and ids of the requests that reach the toy."""
    sent: list[str] = []
    submit = ToyEngine.submit

    def counted(engine: ToyEngine, request: Request, on_delta: OnDelta | None = None) -> Any:
        sent.append(f"{request.instance} {request.op_id}")
        return submit(engine, request, on_delta)

    monkeypatch.setattr(ToyEngine, "submit", counted)
    return sent


def died(start: Callable[..., Any], name: str, at: str, *more: str) -> None:
    """Run a program in a process that ends in the middle of a call of a tool."""
    process = start("run", f"journaled.py:{name}", "--input", "rows.jsonl", "--journal", "j", *more)
    process.communicate()
    assert process.returncode == 9, at


def lines(name: str) -> list[str]:
    return sorted(Path(name).read_text().splitlines()) if Path(name).exists() else []


def states(name: str = "j") -> str:
    database = sqlite3.connect(name)
    try:
        return database.execute("SELECT value FROM head WHERE name = 'state'").fetchone()[0]
    finally:
        database.close()


def test_a_run_is_recorded_resumed_and_replayed(lmc: Lmc, rows: str, sent: list[str]):
    assert lmc("run", "journaled.py:grade", "--input", rows, "-o", "plain.jsonl").code == 0
    plain, count = lines("plain.jsonl"), len(sent)
    said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl")
    assert (said.code, lines("out.jsonl"), len(sent)) == (0, plain, 2 * count)
    assert Path("j").stat().st_mode & 0o777 == 0o600
    assert not list(Path().glob("j-*")), "one file"
    said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl", "--resume")
    assert said.code == 0
    assert "5 more were there already" in said.err
    Path("out.jsonl").unlink()
    Path("out.jsonl.meta.json").unlink()
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl", "--resume")
    assert lines("out.jsonl") == plain, "rewritten from the journal"
    said = lmc("run", "journaled.py:grade", "--input", rows, "--replay", "j", "-o", "again.jsonl")
    assert (lines("again.jsonl"), len(sent)) == (plain, 2 * count)
    assert "20 answered from the journal" in said.err
    assert len(lines("saves")) == 10
    data = json.loads(lmc("journal", "j", "--json").out)
    assert (data["format"], data["state"], data["rows"]) == ("lmc-journal", "finished", 5)
    assert data["requests"] == {"finished": 10, "failed": 0, "in_flight": 0, "repeated": 0}
    assert data["calls"]["finished"] == 10
    assert data["record"] == {"program": "grade", "model": "toy"}
    assert "5 finished" in lmc("journal", "j").out


def test_the_journal_of_an_unfinished_run_is_not_overwritten(
    lmc: Lmc, rows: str, sent: list[str], monkeypatch: pytest.MonkeyPatch
):
    command = ["run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl"]
    lmc(*command)
    _unfinish("j", 2)
    said = lmc(*command)
    assert said.code == 2
    assert "not finished" in said.err
    assert "--resume" in said.err
    assert "another file for --journal" in said.err
    done = len(sent)
    assert lmc(*command, "--resume").code == 0
    assert len(sent) == done, "rows that lack only their line are answered"
    assert states() == "finished"
    assert lmc(*command).code == 0, "the journal of a finished run is replaced"
    assert len(sent) == 2 * done


def test_a_run_that_ended_before_it_replaced_the_rows_of_another_goes_on(
    lmc: Lmc, rows: str, sent: list[str], monkeypatch: pytest.MonkeyPatch
):
    """The program is edited, and its next run has no row when it ends: OUT holds the rows of the one before."""
    command = ["run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl"]
    assert lmc(*command).code == 0
    before = lines("out.jsonl")
    Path("journaled.py").write_text(PROGRAM.replace('s.gen("b", max_tokens=4)', 's.gen("b", max_tokens=5)'))

    def refused(*_: Any) -> Any:
        raise QuotaError("the key is refused", remedy="set another one")

    with monkeypatch.context() as patch:
        patch.setattr(ToyEngine, "submit", refused)
        assert lmc(*command).code == 1
    assert (lines("out.jsonl"), states()) == (before, "running")
    assert "not finished" in lmc(*command).err
    count = len(sent)
    assert lmc(*command, "--resume").code == 0
    assert (len(sent), states()) == (count + 10, "finished")
    lmc("run", "journaled.py:grade", "--input", rows, "-o", "plain.jsonl")
    assert lines("out.jsonl") == lines("plain.jsonl")
    assert lines("out.jsonl") != before


def test_the_journal_of_a_run_whose_requests_were_all_refused_is_replaced(
    lmc: Lmc, rows: str, monkeypatch: pytest.MonkeyPatch
):
    """The name of the model was wrong: neither is the run of the right one the same, nor would anything be lost."""
    command = ["run", "journaled.py:pays", "--input", rows, "--journal", "j", "-o", "out.jsonl"]

    def refused(*_: Any) -> Any:
        error = QuotaError("the model is not known", remedy="name another one")
        error.usage = Usage(calls=1)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(ToyEngine, "submit", refused)
        assert lmc(*command, "--seed", "3").code == 1
    assert json.loads(lmc("journal", "j", "--json").out)["in_flight"] == []
    assert lmc(*command, "--seed", "4").code == 0
    assert states() == "finished"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda: Path("rows.jsonl").write_text('{"essay": "other"}\n'), "input rows"),
        (lambda: Path("journaled.py").write_text(PROGRAM + "\n# more\n"), "source of journaled has changed"),
    ],
)
def test_another_run_is_not_resumed(lmc: Lmc, rows: str, change: Callable[[], object], cause: str):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j")
    change()
    said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "--resume")
    assert said.code == 2
    assert cause in said.err
    assert "remedy" in said.err


@pytest.mark.parametrize("options", [["--seed", "7"], ["--model", "builtin"]])
def test_other_settings_are_not_resumed(lmc: Lmc, rows: str, options: list[str]):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j")
    said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "--resume", *options)
    assert said.code == 2
    assert "can't be resumed" in said.err


def test_another_version_of_lmc_resumes_nothing(lmc: Lmc, rows: str, monkeypatch: pytest.MonkeyPatch):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j")
    monkeypatch.setattr(run_journal, "__version__", "9.9")
    said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "--resume")
    assert "lmc is 9.9" in said.err


def test_a_replay_fails_at_the_first_request_that_the_journal_lacks(lmc: Lmc, rows: str, sent: list[str]):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j")
    count = len(sent)
    Path("journaled.py").write_text(PROGRAM.replace('s.gen("b", max_tokens=4)', 's.gen("b", max_tokens=5)', 1))
    said = lmc("run", "journaled.py:grade", "--input", rows, "--replay", "j")
    assert said.code == 1
    assert "grade/b of row" in said.err
    assert 'its sampling is {"max_tokens": 5}, and was {"max_tokens": 4}' in said.err
    assert "journaled.py:" in said.err
    Path("journaled.py").write_text(PROGRAM.replace("Essay: {essay} {look", "Text: {essay} {look"))
    said = lmc("run", "journaled.py:grade", "--input", rows, "--replay", "j")
    assert "its prompt is one of" in said.err
    Path("rows.jsonl").write_text('{"essay": "other"}\n')
    said = lmc("run", "journaled.py:grade", "--input", rows, "--replay", "j")
    assert "the call of the tool look of row 0" in said.err
    assert len(sent) == count


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--resume"], "--resume goes with -o"),
        (["--replay", "j", "--resume", "-o", "o"], "--replay reads a journal"),
        (["--replay", "j", "--journal", "k"], "--replay reads a journal"),
        (["--journal", "k", "--no-journal"], "contradicts"),
        (["--journal", "k", "--in-flight", "fail"], "go with --resume"),
        (["--journal", "k", "--retry-writes", "save"], "go with --resume"),
        (["--journal", "-"], "standard output"),
        (["--journal", "rows.jsonl"], "is the input"),
        (["--journal", "o", "-o", "o"], "another file of this run"),
        (["--journal", "rows2.jsonl"], "is no journal of lmc"),
        (["--journal", "missing/k"], "can't be written"),
        (["--journal", "folder"], "can't be written"),
        (["--replay", "missing"], "there is no journal"),
        (["--replay", "rows2.jsonl"], "is no journal of lmc"),
    ],
)
def test_options_and_files_that_are_wrong_are_one_error(lmc: Lmc, rows: str, options: list[str], cause: str):
    Path("rows2.jsonl").write_text('{"essay": "other"}\n' * 100)
    Path("folder").mkdir()
    said = lmc("run", "journaled.py:grade", "--input", rows, *options)
    assert said.code == 2
    assert cause in said.err
    assert "remedy" in said.err


def test_a_tool_that_writes_and_did_not_end_stops_its_row(lmc: Lmc, rows: str, start: Callable[..., Any]):
    _with(start, "text 3")("grade")
    listed = json.loads(lmc("journal", "j", "--json").out)
    [blocker] = [entry for entry in listed["blockers"] if entry["row"] == 3]
    assert (blocker["tool"], listed["state"]) == ("save", "running")
    shown = lmc("journal", "j").out
    assert "--retry-writes save" in shown
    saved = lines("saves").count("text 3")
    command = ["run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl", "--resume"]
    said = lmc(*command)
    assert said.code == 1
    # Where more rows had come to their call, they are counted by cause, without a number.
    assert re.search(r"the tool save \(row (3|…), line ", said.err)
    assert "--retry-writes save" in said.err
    assert "key=True" in said.err
    assert (lines("saves").count("text 3"), states()) == (saved, "running")
    assert not any(json.loads(line)["index"] == 3 for line in lines("out.jsonl")), "it is not finished"
    said = lmc(*command, "--retry-writes", "save")
    assert (said.code, states()) == (0, "finished")
    assert lines("saves").count("text 3") == saved + 1
    lmc("run", "journaled.py:grade", "--input", rows, "-o", "plain.jsonl")
    assert lines("out.jsonl") == lines("plain.jsonl")


def test_a_tool_that_takes_a_key_is_called_again_with_it(lmc: Lmc, rows: str, start: Callable[..., Any]):
    _with(start, "text 2")("pays")
    before = lines("keys")
    found = json.loads(lmc("journal", "j", "--json").out)
    assert found["calls"]["in_flight"]
    assert not found["blockers"], "no row stops"
    said = lmc("run", "journaled.py:pays", "--input", rows, "--journal", "j", "--resume", "-o", "out.jsonl")
    assert said.code == 0
    keys = lines("keys")
    assert len(set(keys)) == 5
    assert set(before) <= set(keys)
    assert all(key.startswith("lmc-") for key in keys)


def test_calls_of_tools_after_a_break_are_not_repeated(lmc: Lmc, rows: str, start: Callable[..., Any]):
    _with(start, "text 4")("breaks")
    said = lmc("run", "journaled.py:breaks", "--input", rows, "--journal", "j", "--resume", "-o", "out.jsonl")
    assert "plain Python runs again from here" in said.err
    assert said.code == 1
    # Where all rows had come to their call, they are shown together, without a number.
    assert re.search(r"the tool save \(row (4|…), line ", said.err)
    said = lmc(
        *("run", "journaled.py:breaks", "--input", rows, "--journal", "j", "--resume", "-o", "out.jsonl"),
        *("--retry-writes", "save"),
    )
    assert said.code == 0
    assert all(lines("saves").count(f"text {number}") <= 2 for number in range(5))
    lmc("run", "journaled.py:breaks", "--input", rows, "-o", "plain.jsonl")
    assert lines("out.jsonl") == lines("plain.jsonl")


def test_a_result_that_json_cannot_hold_stops_its_row_alone_and_only_on_resume(
    lmc: Lmc, rows: str, start: Callable[..., Any]
):
    said = lmc("run", "journaled.py:unkept", "--input", rows, "--journal", "k")
    assert said.code == 0
    _with(start, "text 1")("unkept")
    said = lmc("run", "journaled.py:unkept", "--input", rows, "--journal", "j", "--resume")
    assert said.code == 1
    assert "gave a result that the journal could not keep" in said.err


@pytest.mark.parametrize("policy", ["repeat", "fail"])
def test_requests_in_flight_are_reported_then_repeated_or_fail(lmc: Lmc, rows: str, sent: list[str], policy: str):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j")
    _unfinish("j", 4)
    database = sqlite3.connect("j")
    with database:
        changed = database.execute(
            "UPDATE entries SET state = 0, result = NULL WHERE row = 4 AND op = 'grade/b' AND kind = 'generate'"
        )
        assert changed.rowcount == 1
    database.close()
    listed = json.loads(lmc("journal", "j", "--json").out)["in_flight"]
    assert [(entry["row"], entry["op"], entry["most"]) for entry in listed] == [(4, "grade/b", 4)]
    count = len(sent)
    said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "--resume", "--in-flight", policy)
    assert "1 request was in flight" in said.err
    assert "4 generated tokens" in said.err
    assert len(sent) - count == (policy == "repeat")
    assert said.code == (policy == "fail")
    assert ("may have been billed" in said.err.partition("error")[2]) == (policy == "fail")
    if policy == "fail":  # the row runs again, and fails so again until its user decides otherwise
        said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "--resume", "--in-flight", "fail")
        assert (said.code, len(sent) - count) == (1, 0)
        said = lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "--resume")
        assert "1 request was in flight" in said.err
        assert (said.code, len(sent) - count) == (0, 1)


def test_rows_that_failed_run_again_if_they_are_deleted_from_the_output(lmc: Lmc, rows: str, sent: list[str]):
    Path("broken").touch()
    command = ["run", "journaled.py:fails", "--input", rows, "--journal", "j", "-o", "out.jsonl"]
    assert lmc(*command).code == 1
    assert states() == "finished"
    Path("broken").unlink()
    count = len(sent)
    said = lmc(*command, "--resume")
    assert "1 of them failed" in said.err, "it is kept"
    kept = [line for line in lines("out.jsonl") if json.loads(line)["error"] is None]
    Path("out.jsonl").write_text("\n".join(kept) + "\n")
    assert lmc(*command, "--resume").code == 0
    assert sent[count:] == ["3 fails/b"], "the tool is called again, and what comes after it is sent"
    lmc("run", "journaled.py:fails", "--input", rows, "-o", "plain.jsonl")
    assert lines("out.jsonl") == lines("plain.jsonl")


def test_texts_are_forgotten_once_the_run_is_over(lmc: Lmc, rows: str):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl")
    _unfinish("j", 0)
    said = lmc("journal", "j", "--forget-texts")
    assert said.code == 2
    assert "not finished" in said.err
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j", "-o", "out.jsonl", "--resume")
    answer = json.loads(Path("out.jsonl").read_text().splitlines()[0])["value"]
    assert json.dumps(answer)[1:-1].encode() in Path("j").read_bytes()
    assert lmc("journal", "j", "--forget-texts").code == 0
    data = Path("j").read_bytes()
    for line in Path("out.jsonl").read_text().splitlines():
        assert json.dumps(json.loads(line)["value"])[1:-1].encode() not in data
    assert "texts removed" in lmc("journal", "j").out
    for options in (["--replay", "j"], ["--journal", "j", "--resume"]):
        said = lmc("run", "journaled.py:grade", "--input", rows, *options)
        assert said.code == 2
        assert "were removed" in said.err


def test_journals_are_kept_beside_the_output_where_a_target_is_hosted(
    lmc: Lmc, rows: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_journal, "journals_by_default", lambda _: True)
    monkeypatch.setattr("lmc.driver.journals_by_default", lambda _: True)
    lmc("run", "journaled.py:grade", "--input", rows, "-o", "out.jsonl", "--no-journal")
    assert not Path("out.jsonl.lmcj").exists()
    lmc("run", "journaled.py:grade", "--input", rows, "-o", "out.jsonl")
    assert Path("out.jsonl.lmcj").is_file()
    said = lmc("run", "journaled.py:grade", "--input", rows, "-o", "out.jsonl", "--resume")
    assert "5 more were there already" in said.err


def test_a_journal_holds_no_record_of_the_texts_of_requests(lmc: Lmc, rows: str):
    lmc("run", "journaled.py:grade", "--input", rows, "--journal", "j")
    database = sqlite3.connect("j")
    requests = "".join(request for (request,) in database.execute("SELECT request FROM entries"))
    head = dict(database.execute("SELECT name, value FROM head"))
    database.close()
    assert "text 1" not in requests
    assert RunRecord.from_json(head["record"].encode(), "j").program == "grade"


def _with(start: Callable[..., Any], text: str) -> Callable[..., None]:
    """Run a program in a process that ends in the call of a tool for ``text``."""

    def run(name: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DIE", text)
            died(start, name, text, "-o", "out.jsonl")

    return run


def _unfinish(path: str, row: int) -> None:
    """Make a journal that of a run which ended before a row was written."""
    database = sqlite3.connect(path)
    with database:
        database.execute("UPDATE head SET value = 'running' WHERE name = 'state'")
        database.execute("DELETE FROM rows WHERE number = ?", (row,))
    database.close()


def test_a_full_disk_under_the_journal_ends_the_run_with_one_error(lmc: Lmc, rows: str):
    """Rows that are finished are kept, and the run can be resumed."""
    Path("many.jsonl").write_text("".join(json.dumps({"essay": f"text {number}"}) + "\n" for number in range(300)))
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); sys.argv[0] = 'lmc'\n"
        "from lmc.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, resource.RLIM_INFINITY)); main()"
    )
    command = ["run", "journaled.py:grade", "--input", "many.jsonl", "--journal", "j", "-o", "out.jsonl"]
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("error:") == 1
    assert (
        "the journal j can't be written any further: no space is left; rows that are finished are kept" in done.stderr
    )
    assert "make room, then run the same command with --resume" in done.stderr
    saved = lines("saves")
    assert lmc(*command, "--resume", "--retry-writes", "save").code == 0
    lmc(*("run", "journaled.py:grade", "--input", "many.jsonl", "-o", "plain.jsonl"))
    assert lines("out.jsonl") == lines("plain.jsonl")
    assert len(saved) < 300


def test_a_saved_plan_is_recorded_resumed_and_replayed(lmc: Lmc, rows: str, sent: list[str]):
    assert lmc("compile", "journaled.py:grade", "--emit", "plan", "-o", "plan.json").code == 0
    command = ["run", "plan.json", "--program", "journaled.py:grade", "--model", "toy", "--input", rows]
    assert lmc(*command, "-o", "out.jsonl", "--journal", "j", "--timeline", "t.json").code == 0
    count = len(sent)
    _unfinish("j", 2)
    Path("out.jsonl").unlink()
    assert lmc(*command, "-o", "out.jsonl", "--journal", "j", "--resume").code == 0
    assert lmc(*command, "-o", "again.jsonl", "--replay", "j").code == 0
    assert lines("out.jsonl") == lines("again.jsonl")
    assert (len(sent), len(lines("saves"))) == (count, 5)


def test_a_run_over_a_pipe_is_resumed_by_its_requests(
    lmc: Lmc, rows: str, monkeypatch: pytest.MonkeyPatch, sent: list[str]
):
    """Not by the numbers of its rows, which may be others: those that differ ask anew."""
    command = ["run", "journaled.py:grade", "--input", "-", "--journal", "j", "-o", "out.jsonl"]

    def run(texts: list[str], *more: str) -> Any:
        Path("piped").write_text("".join(texts))
        with Path("piped").open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            return lmc(*command, *more)

    given = Path(rows).read_text().splitlines(keepends=True)
    assert run(given).code == 0
    whole, count = lines("out.jsonl"), len(sent)
    _unfinish("j", 2)
    Path("out.jsonl").write_text("".join(Path("out.jsonl").read_text().splitlines(keepends=True)[:2]))
    assert run(given, "--resume").code == 0
    assert (lines("out.jsonl"), len(sent), len(lines("saves"))) == (whole, count, 5)
    _unfinish("j", 1)
    Path("swapped.jsonl").write_text("".join([given[1], given[0], *given[2:]]))
    said = run([given[1], given[0], *given[2:]], "--resume", "--retry-writes", "save")
    assert said.code == 0, said.err
    assert lmc("run", "journaled.py:grade", "--input", "swapped.jsonl", "-o", "plain.jsonl").code == 0
    assert lines("out.jsonl") == lines("plain.jsonl") != whole


def test_a_finished_run_over_a_pipe_is_not_resumed(
    lmc: Lmc, rows: str, monkeypatch: pytest.MonkeyPatch, sent: list[str]
):
    command = ["run", "journaled.py:grade", "--input", "-", "--journal", "j", "-o", "out.jsonl"]
    for more in ([], ["--resume"]):
        with Path(rows).open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            said = lmc(*command, *more)
        if not more:
            assert said.code == 0
            Path("out.jsonl").unlink()
    assert said.code == 2
    assert "can't compare the rows" in said.err
