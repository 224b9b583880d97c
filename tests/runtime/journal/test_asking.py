"""Random requests, all at the same time: each is answered once, and from the journal where it holds the answer."""

from __future__ import annotations

import tempfile
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from lmc.runtime.journal.file import DONE, JournalFile
from lmc.runtime.journal.journal import AskedEntry, Begun, Outcome, Recorded, RunJournal
from tests.runtime.journal.journals import entries, resumed

Key = tuple[int, str, int, int]
"""Row, op, number, and the variant of the parts of a request."""
KEYS = st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 1))
ASKS = st.tuples(KEYS, st.booleans())
"""A request, and whether it ends; else it is cancelled."""
ROUNDS = st.lists(st.tuples(st.lists(ASKS, max_size=12), st.sets(st.integers(0, 2))), min_size=1, max_size=5)
"""Requests that are asked together, and the rows that are finished then."""
SECONDS = 20


@dataclass
class Asking:
    """Requests of one session."""

    journal: RunJournal
    results: dict[Key, str]
    left: list[Key] = field(default_factory=list[Key])

    def ask(self, asked: list[tuple[Key, bool]]) -> None:
        """Ask all of them while the journal is busy, so that they are in its queue together; wait for each."""
        gate = threading.Event()
        ends: list[Future[Any]] = [Future() for _ in asked]
        self.journal.ask(AskedEntry("generate", 9, "gate", len(self.left), {}), lambda _: gate.wait(SECONDS))
        for (key, is_kept), end in zip(asked, ends, strict=True):
            self._ask(key, end, is_kept=is_kept)
        gate.set()
        for (key, is_kept), end in zip(asked, ends, strict=True):
            answer = end.result(SECONDS)
            assert answer == self.results.get(key) or (answer == "cancelled" and not is_kept)

    def _ask(self, key: Key, end: Future[Any], *, is_kept: bool) -> None:
        row, op, number, variant = key

        def then(answer: Begun | Recorded | Exception) -> None:
            if isinstance(answer, Recorded):
                end.set_result(answer.text)
            elif isinstance(answer, Exception):
                end.set_exception(answer)
            elif is_kept:
                assert key not in self.results, "an answer that the journal holds is asked for again"
                self.left.append(key)
                text = self.results[key] = f'"{key}"'
                self.journal.tell(answer, Outcome(DONE, text), lambda error: end.set_result(error or text))
            else:
                self.left.append(key)
                self.journal.tell(answer, None, lambda error: end.set_result(error or "cancelled"))

        self.journal.ask(AskedEntry("generate", row, op, number, {"variant": variant}), then)


@given(ROUNDS, ROUNDS, st.integers(1, 4), st.sampled_from([1, 2, 256]))
def test_requests_are_answered_once_however_many_wait(before: Any, after: Any, steps: int, values: int):
    results: dict[Key, str] = {}
    left: list[Key] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("lmc.runtime.journal.journal.MAX_BATCH", steps),
        patch("lmc.runtime.journal.file._MOST_VALUES", values),
    ):
        path = Path(folder, "run.lmcj")
        for rounds in (before, after):
            with resumed(path) as journal:
                session = Asking(journal, results)
                for asked, finished in rounds:
                    session.ask(asked)
                    for row in finished:
                        journal.row(row, None, failed=False)
            left += session.left
        held = [entry for entry in entries(path) if entry[2] != "gate"]
        assert len(held) == len(left)
        file = JournalFile(str(path), writable=False)
        try:
            for row, op, number, variant in results:
                found = [entry for entry in file.find(row, op, number) if entry.state == DONE]
                assert sum(entry.request == f'{{"variant":{variant}}}' for entry in found) == 1
                assert f'"{(row, op, number, variant)}"' in [entry.result for entry in found]
        finally:
            file.close()
