"""The view of a file that follows the file: made again after every change of it, and of the files it reads."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

from lmc.driver.programs import program_file
from lmc.driver.viewing.recompile import Compilation, Outcome, Problem, ViewJob

POLL_SECONDS = 0.25
SETTLE_SECONDS = 0.05
"""A file is read once it has been the same for so long: an editor may write it in parts."""
WAIT_SECONDS = 0.5
"""A file may be absent for so long while an editor replaces it, or be written without a pause."""
COMPILE_SECONDS = 120

Signature = Mapping[str, tuple[int, int, int] | None]
"""Time of change, size and inode of files; None for one that is not there."""


@dataclass(frozen=True, slots=True)
class State:
    """The last good ``view`` as JSON, with an id that differs for different views; the ``problem`` since, as JSON.

    ``number`` counts the states. ``is_working``: the file has changed, and is compiled now.
    """

    number: int = 0
    view: str | None = None
    view_id: str = ""
    problem: str | None = None
    is_working: bool = True


class Watched:
    """A file under ``lmc view``. Its thread starts with ``start``, and ends with ``close``."""

    def __init__(self, job: ViewJob) -> None:
        self.job = job
        self._file = program_file(job.name)
        given = (self._file, job.data, job.timeline, job.given.get("profile"), *map(program_file, job.programs))
        self._given = tuple(file for file in given if file is not None)
        self._files = self._given
        self._state = State()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Compile the file, now and after every change; it may be called again."""
        with self._changed:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread, and whoever waits."""
        with self._changed:
            self._closing.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_closed(self) -> bool:
        """Return True from ``close`` on."""
        return self._closing.is_set()

    def state(self, known: int | None, seconds: float) -> State | None:
        """Return the state as soon as it has another number than ``known``; None after so many seconds."""
        with self._changed:
            is_there = self._changed.wait_for(lambda: self.is_closed or self._state.number != known, seconds)
            return self._state if is_there and not self.is_closed else None

    def _publish(self, **changes: object) -> None:
        with self._changed:
            self._state = replace(self._state, number=self._state.number + 1, **changes)
            self._changed.notify_all()

    def _run(self) -> None:
        is_repeated = False
        while not self._closing.is_set():
            before = self._settled()
            began = time.time_ns()
            outcome = self._outcome(before)
            if outcome is None:
                continue
            self._show(outcome)
            self._files = tuple(dict.fromkeys((*self._given, *outcome.files)))
            now = _signature(self._files)
            # A file that is new to the list may have changed since it was read.
            is_late = any(
                began <= entry[0] <= time.time_ns() for file in now.keys() - before.keys() if (entry := now[file])
            )
            if is_late and not is_repeated:
                is_repeated = True
                continue
            is_repeated = False
            now = {**now, **before}
            while not self._closing.wait(POLL_SECONDS) and _signature(self._files) == {
                file: now[file] for file in self._files
            }:
                pass

    def _settled(self) -> Signature:
        """Return the signature of the files once they stay as they are, or after a while."""
        until = time.monotonic() + WAIT_SECONDS
        found = _signature(self._files)
        while not self._closing.wait(SETTLE_SECONDS):
            now = _signature(self._files)
            is_settled = now == found and now[self._file] is not None
            found = now
            if is_settled or time.monotonic() > until:
                break
        return found

    def _outcome(self, before: Signature) -> Outcome | None:
        """Compile the file; None if a file changes meanwhile, but for the timeline of a run, or the thread ends."""
        if before[self._file] is None and self._file != self.job.timeline:
            return Outcome(None, Problem("", f"{self._file} is gone: put it back, or end lmc view with Ctrl-C"))
        self._publish(is_working=True)
        until = time.monotonic() + COMPILE_SECONDS
        compilation = Compilation(self.job)
        try:
            while not self._closing.is_set():
                outcome = compilation.outcome(POLL_SECONDS)
                if outcome is not None:
                    return outcome
                now = _signature(before)
                if any(now[file] != before[file] for file in before if file != self.job.timeline):
                    return None
                if time.monotonic() > until:
                    cause = f"the compilation of {self.job.name} takes more than {COMPILE_SECONDS} s"
                    remedy = "look for work that the file does while it is imported"
                    return Outcome(None, Problem("", f"{cause}: {remedy}"), tuple(before))
        finally:
            compilation.close()
        return None

    def _show(self, outcome: Outcome) -> None:
        if outcome.problem is not None:
            self._publish(problem=json.dumps(asdict(outcome.problem)), is_working=False)
        elif outcome.view is not None:
            found = hashlib.sha256(outcome.view.encode()).hexdigest()[:16]
            self._publish(view=outcome.view, view_id=found, problem=None, is_working=False)


def _signature(files: Iterable[str]) -> Signature:
    found: dict[str, tuple[int, int, int] | None] = {}
    for file in files:
        try:
            status = os.stat(file)  # noqa: PTH116 - follows links, and is called often
        except (OSError, ValueError):
            found[file] = None
        else:
            found[file] = status.st_mtime_ns, status.st_size, status.st_ino
    return found
