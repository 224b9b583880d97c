"""Journals for tests: cut after a number of commits, and engines that count what reaches them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmc.ir.engine.protocol import OnDelta, Request, ScoreRequest
from lmc.ir.errors import JournalError
from lmc.runtime.journal.file import JournalFile
from lmc.runtime.journal.journal import Resumption, RunJournal
from tests.runtime.engines import LateEngine

HEAD = {"record": "{}"}
Sent = tuple[int, str, int]
"""Row, op id and number of a request."""


class CutJournal(RunJournal):
    """Commits one step at a time, and fails after ``commits`` of them, as if its process had ended there."""

    commits = 1 << 30

    def without_waiting(self) -> None:
        """Wait for no disk: the process ends in order."""
        self._file.connection.execute("PRAGMA synchronous = OFF")

    def _commit(self, steps: Any) -> None:
        for step in steps:
            self.commits -= 1
            if self.commits == 0:
                self._error = self._broken(sqlite3.OperationalError("the process ends here"))
            super()._commit([step])


class CountingEngine(LateEngine):
    """Counts its requests by row, op id and number."""

    def __init__(self, *, seed: int = 0) -> None:
        super().__init__(seed=seed, most_seconds=0.0)
        self.sent: Counter[Sent] = Counter()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Any:
        self.sent[request.instance, request.op_id, request.number] += 1
        return super().submit(request, on_delta)

    def score(self, request: ScoreRequest) -> Any:
        self.sent[request.instance, request.op_id, request.number] += 1
        return super().score(request)


def begun(path: Path, *, commits: int | None = None) -> CutJournal:
    """A journal of a new run."""
    journal = CutJournal(JournalFile(str(path), writable=True))
    journal.without_waiting()
    if commits is not None:
        journal.commits = commits
    journal.start(HEAD)
    return journal


def resumed(path: Path, resumption: Resumption | None = None) -> RunJournal:
    """The journal of a run that goes on; of a new one where nothing was written."""
    journal = RunJournal.open(str(path))
    if journal.is_fresh:
        journal.start(HEAD)
    else:
        journal.resume(resumption or Resumption())
    return journal


def ended_calls(path: Path) -> list[str]:
    """The names of the tools whose calls have an end in a journal, one for each call."""
    if not entries(path):
        return []
    database = sqlite3.connect(path)
    try:
        found = database.execute("SELECT request FROM entries WHERE kind = 'call' AND state != 0").fetchall()
    finally:
        database.close()
    return [json.loads(request)["name"] for (request,) in found]


def entries(path: Path) -> list[tuple[str, int, str, int, int]]:
    """Kind, row, op id, number and state of all entries of a journal."""
    database = sqlite3.connect(path)
    try:
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return []
        return database.execute("SELECT kind, row, op, number, state FROM entries ORDER BY id").fetchall()
    finally:
        database.close()


def break_off(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
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
