"""Journals of runs on hosted models: nothing that is finished is paid for twice, and a replay needs no key."""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmc.cli.app import main
from lmc.driver.commands import journal as journals
from lmc.ir.errors import JournalError
from lmc.runtime.journal.journal import RunJournal
from tests.runtime.remote.hosted_runs import KEY_NAME, REQUESTS, discussion, hosted, target
from tests.runtime.remote.simulator import Simulator

ROWS = [{"question": f"What is {number}?"} for number in range(6)]
PROGRAM = """
import lmc


@lmc.jit
def answer(s, question: str):
    s.user(question)
    with s.assistant():
        return s.gen("answer", max_tokens=60)
"""


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_a_run_that_breaks_off_is_resumed_and_pays_for_nothing_twice(
    api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = str(tmp_path / "j")
    with hosted(), Simulator() as simulator:
        program = discussion.on(target(simulator.url, api))
        expected = [(each.value, each.usage) for each in program.batch(ROWS)]
        simulator.arrivals.clear()
        with monkeypatch.context() as patch:
            _break_off(patch, after=25)
            with pytest.raises(JournalError):
                program.on(journal=path).batch(ROWS)
        before = journals.summary(path)
        assert 0 < before.requests.finished < len(ROWS) * REQUESTS
        found = program.on(journal=path, resume=True).batch(ROWS)
        assert [(each.value, each.usage) for each in found] == expected
        sent = Counter(each.digest for each in simulator.arrivals)
        assert len(sent) == len(ROWS) * REQUESTS
        assert sum(count > 1 for count in sent.values()) <= len(before.in_flight), "others left once"
        assert max(sent.values()) <= 2
        after = journals.summary(path)
        assert (after.state, after.requests.finished) == ("finished", len(ROWS) * REQUESTS)
        assert after.requests.repeated == len(before.in_flight)


def test_rows_that_the_account_could_not_pay_for_are_not_finished(tmp_path: Path):
    path = str(tmp_path / "j")
    with Simulator() as simulator:
        program = discussion.on(target(simulator.url, "chat"), journal=path)
        with hosted(key="wrong"):
            assert all("refuses the key" in str(result.error) for result in program.batch(ROWS))
            time.sleep(1.1)  # a second of silence, and the key is tried again
        found = journals.summary(path)
        assert (found.state, found.rows, found.requests.finished) == ("running", 0, 0)
        with hosted():
            assert not any(result.error for result in program.on(resume=True).batch(ROWS))
    assert journals.summary(path).state == "finished"


def test_a_journal_is_kept_by_itself_and_replayed_without_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    Path("hosted_program.py").write_text(PROGRAM)
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with hosted(), Simulator() as simulator:
        Path("pyproject.toml").write_text(
            f'[tool.lmc.targets.fast]\nkind = "openai"\nmodel = "gpt-4.1"\nbase_url = "{simulator.url}/v1"\n'
            f'api_key_env = "{KEY_NAME}"\n'
        )
        command = ["run", "hosted_program.py", "--input", "rows.jsonl", "-o", "out.jsonl", "--model", "fast"]
        assert _run(monkeypatch, *command) == 0
        assert len(simulator.arrivals) == len(ROWS)
        assert _run(monkeypatch, *command, "--resume") == 0
        assert len(simulator.arrivals) == len(ROWS)
    monkeypatch.delenv(KEY_NAME, raising=False)
    Path("pyproject.toml").unlink()
    replay = ["run", "hosted_program.py", "--input", "rows.jsonl", "-o", "again.jsonl", "--replay", "out.jsonl.lmcj"]
    assert _run(monkeypatch, *replay) == 0, capsys.readouterr().err
    assert sorted(Path("again.jsonl").read_text().splitlines()) == sorted(Path("out.jsonl").read_text().splitlines())


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["lmc", *arguments])
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    return 0


def _break_off(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let journals fail after so many steps, each of them committed."""
    left = [after]
    commit = RunJournal._commit

    def limited(journal: Any, steps: list[Any]) -> None:
        for step in steps:
            left[0] -= 1
            if left[0] < 0 and journal._error is None:
                journal._error = JournalError("the journal can't be written any further", remedy="resume")
            commit(journal, [step])

    monkeypatch.setattr(RunJournal, "_commit", limited)
