"""A journal that is in use: a thread commits what is queued, all of it in one transaction.

A request asks first (``ask``): it is answered from the journal, or its intent is on disk before it may leave. Then it
tells its result (``tell``), which is on disk before anything uses it. Everything that decides is in the thread of the
journal, so there are no locks: requests wait in its queue, and the more wait the fewer times the disk is waited for.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import queue
import re
import secrets
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from lmc.ir.errors import EngineError, InputError, JournalError, UnknownOutcomeError
from lmc.ir.usage import Usage
from lmc.ir.wording import with_count
from lmc.runtime.journal.file import (
    BEGUN,
    DONE,
    DROPPED,
    FAILED,
    UNKEPT,
    JournalFile,
    Kind,
    Listed,
    Sent,
    Stored,
    is_full,
    reading,
)

MAX_BATCH = 4096
"""Steps that are committed together at most."""
MAX_NOTES = 100
_ENCODER = json.JSONEncoder(separators=(",", ":"), sort_keys=True)
_STORED = re.compile(r"[A-Za-z0-9_-]{1,128}(@[1-9][0-9]?)?")
"""An id that a provider gives to an answer: it becomes a part of an address. With the number of a fallback."""
RUNNING, FINISHED = "running", "finished"
InFlight = Literal["repeat", "fail"]

Key = tuple[int, str, int, bytes]
Then = Callable[["Begun | Recorded | Exception"], object]
_LOGGER = logging.getLogger(__name__)


class AskedEntry(NamedTuple):
    """A request or a call before it leaves. ``request`` holds its parts as JSON data, without texts.

    An attempt of it has at most ``bound`` tokens of the prompt and ``most`` of the output, and there are at most
    ``attempts`` at the target and at each of its fallbacks. ``name`` and ``line`` are those of a tool; ``writes``: it
    may not be called twice. ``has_key``: it may, because it gets the same idempotency key.
    """

    kind: Kind
    row: int
    op: str
    number: int
    request: Mapping[str, Any]
    bound: int = 0
    most: int = 0
    attempts: tuple[int, ...] = ()
    name: str = ""
    line: str | None = None
    writes: bool = False
    has_key: bool = False


class Recorded(NamedTuple):
    """A result (``DONE``) or an error (``FAILED``) as JSON text."""

    state: int
    text: str


class Outcome(NamedTuple):
    """The end of a request or a call, with its tokens."""

    state: int
    text: str
    usage: Usage = Usage()


@dataclass(slots=True, eq=False)
class Begun:
    """A request or call that nothing has answered: it leaves now, or waits in its engine for a limit.

    ``id`` is the entry of its intent; None: there is none yet, as it has not left. ``before`` is the entry that an
    earlier session, or a request that was cancelled, has left. ``stored`` is the id of its answer at the provider, if
    one of these got it: it is fetched, and what the fetch answers ends ``before``. ``may_be_asked``: it may leave again
    where the provider has that no more. ``left`` are the attempts that have left, by the place of their target.
    """

    key: Key
    asked: AskedEntry
    text: str
    at_sending: bool
    before: int | None = None
    id: int | None = None
    stored: str | None = None
    may_be_asked: bool = True
    left: tuple[int, ...] = ()


@dataclass(frozen=True)
class Resumption:
    """The treatment of what an earlier run left unfinished: ``judge.on(journal=…, resume=lmc.Resumption(…))``.

    ``in_flight``: requests that had left are sent again ("repeat"), or fail ("fail"). ``retry_writes``: names of tools
    that write and are called again where their calls have no end. Raises ``InputError`` for other values.
    """

    in_flight: InFlight = "repeat"
    retry_writes: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.in_flight not in get_args(InFlight):
            raise InputError(f"in_flight is {self.in_flight!r}", remedy='give "repeat" or "fail"')
        names = self.retry_writes
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise InputError(f"retry_writes is {names!r}", remedy='give a list of names of tools: ["save"]')


class _Step(NamedTuple):
    """Work for the thread: ``write`` runs in a transaction. ``then`` gets the error of the journal, if it is broken."""

    write: Callable[[], object]
    then: Callable[[Any], object] = lambda _: None


@dataclass
class Counts:
    """Requests and calls of this session: answered from the journal, and different from those that it holds."""

    answered: int = 0
    differing: int = 0


class RunJournal:
    """The journal of a run. ``open`` it, then ``start`` or ``resume`` it; ``replay`` one to be answered from it alone.

    ``run`` is the id of the run, the same after it is resumed. ``in_flight`` are the requests, and the calls of tools,
    that an earlier session had begun and that have no result.
    """

    def __init__(self, file: JournalFile, *, is_replay: bool = False) -> None:
        self.is_replay = is_replay
        self.counts = Counts()
        with reading(file.shown):
            self.head = file.head()
            notes: list[str] = json.loads(self.head.get("notes", "[]"))
            self.notes = [str(note) for note in notes]
            """Code that runs again where a row is resumed, as the run noted it."""
        self.run = self.head.get("run", "")
        self.in_flight: list[Listed] = []
        self._file = file
        self._open: dict[int, Listed] = {}
        self._resumption = Resumption()
        self._is_resumed = False
        self._begin: Callable[[], None] | None = None
        self._pending: dict[Key, list[Then]] = {}
        self._after: list[tuple[Callable[[Any], object], Any]] = []
        self._notes = set(self.notes)
        self._rows = 0
        self._error: JournalError | None = None
        self._queue: queue.SimpleQueue[_Step | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._guard = threading.Lock()  # of the thread, and of the end of the queue

    @classmethod
    def open(cls, path: str) -> RunJournal:
        """Open a journal to write, under a lock; make it where it is not there. Raises ``InputError``."""
        file = JournalFile(path, writable=True)
        try:
            return cls(file)
        except BaseException:
            file.close()
            raise

    @classmethod
    def replay(cls, path: str) -> RunJournal:
        """Open a journal to read. Raises ``InputError`` where it is none, or holds no texts any more."""
        file = JournalFile(path, writable=False)
        try:
            if file.is_fresh:
                raise InputError(f"no run has begun in the journal {path}", remedy="name the journal of a run")
            journal = cls(file, is_replay=True)
            journal._check_texts()
        except BaseException:
            file.close()
            raise
        return journal

    @property
    def shown(self) -> str:
        """The path as the user named it."""
        return self._file.shown

    @property
    def is_fresh(self) -> bool:
        """True if no run has begun in it."""
        return not self.head

    @property
    def is_finished(self) -> bool:
        """True if its run has ended in order."""
        return self.head.get("state") == FINISHED

    def start(self, head: Mapping[str, str]) -> None:
        """Begin a new run. What a finished one left goes with the first request, as what one left that holds nothing.

        Raises ``InputError`` for the journal of a run that is not finished.
        """
        with reading(self.shown):
            is_replaced = self.is_fresh or self.is_finished or self._file.holds_nothing()
        if not is_replaced:
            raise InputError(
                f"the run of the journal {self.shown} is not finished, and a new one would overwrite it",
                remedy="go on with it: --resume (in Python: resume=True); or name another file for --journal",
            )
        self.notes, self._notes = [], set()
        self.run = secrets.token_hex(8)
        facts = {**head, "run": self.run, "state": RUNNING}

        def begin() -> None:
            self._file.create()
            for name, value in facts.items():
                self._file.set_head(name, value)

        self._begin = begin
        self.head = facts

    def resume(self, resumption: Resumption, *, done: Collection[int] | None = None) -> None:
        """Continue the run. ``done`` are the rows that need not run (None: those that did not fail).

        Rows that failed and are not ``done`` run again, and in them what failed.
        """
        self._check_texts()
        self._is_resumed = True
        self._resumption = resumption
        with reading(self.shown):
            again = {number for number in self._file.failed_rows() if done is None or number not in done}
            entries = self._file.open_entries(again)
            self.in_flight = [each for each in entries if not self.is_finished or each.row in again]
        self._open = {entry.id: entry for entry in self.in_flight}
        self.head["state"] = RUNNING

        def begin() -> None:
            self._file.set_head("state", RUNNING)
            for number in sorted(again):
                self._file.run_again(number)

        self._begin = begin

    def rows(self) -> Iterator[tuple[int, bool, str | None]]:
        """Number, failure and line of each finished row. Before the first request."""
        with reading(self.shown):
            yield from self._file.rows()

    def sent(self) -> Iterator[Sent]:
        """Yield the requests of the run that had left when this session began; each time that it left is one."""
        if self._is_resumed:  # the thread of the journal has the other connection
            with reading(self.shown), closing(JournalFile(self._file.path, writable=False)) as file:
                yield from file.sent()

    def ask(self, asked: AskedEntry, then: Then, *, at_sending: bool = False) -> None:
        """Pass ``then`` the answer that is on disk, or the entry of the intent once that is, or the error.

        ``at_sending``: the intent is written by ``begin``, as the request may wait before it leaves.

        A request that is asked twice at the same time leaves once. From any thread. The thread of the journal calls
        ``then``, which must not wait.
        """
        text = _ENCODER.encode(asked.request)
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        self._put(_Step(partial(self._ask, asked, text, digest, then, at_sending), then))

    def begin(self, begun: Begun, place: int, then: Callable[[Exception | None], object]) -> None:
        """Write the intent of an attempt that leaves now; ``then`` is called once it is on disk, or with the error.

        ``place`` is that of its target: 0, or that of a fallback from 1 on.
        """
        self._put(_Step(partial(self._begin_now, begun, place, then), then))

    def tell(
        self, begun: Begun, outcome: Outcome | None, then: Callable[[Exception | None], object] = lambda _: None
    ) -> None:
        """Write the end of a request, which may be used once ``then`` is called. None: it was cancelled."""
        self._put(_Step(partial(self._tell, begun, outcome, then), then))

    def keep(self, begun: Begun, stored: str) -> None:
        """Write the id under which the provider keeps the answer to a request: a resumed run fetches it."""
        if begun.id is not None and _STORED.fullmatch(stored):
            self._put(_Step(partial(self._keep, begun, begun.id, stored)))

    def row(self, number: int, line: str | None, *, failed: bool) -> None:
        """Write a finished row."""
        if not self.is_replay:
            self._put(_Step(lambda: self._put_row(number, line, failed=failed)))

    def note(self, text: str) -> None:
        """Note code that runs again where a row is resumed."""
        if text not in self._notes and len(self._notes) < MAX_NOTES and not self.is_replay:
            self._notes.add(text)
            self._put(_Step(self._write_notes))

    def fact(self, name: str, value: str) -> None:
        """Write a fact about the run, which ``head`` holds from now on."""
        if self.head.get(name) != value and not self.is_replay:
            self.head[name] = value
            self._put(_Step(lambda: self._file.set_head(name, value)))

    def finish(self) -> None:
        """Mark the run as finished: all its rows have results."""
        self.fact("state", FINISHED)

    def close(self) -> None:
        """Write what is queued, and close the file. Raises ``JournalError`` where that could not be written."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        if self._thread is not None:
            self._thread.join()
        self._file.close()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> RunJournal:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.close()
        except JournalError:
            if kind is None:
                raise

    def _put(self, step: _Step) -> None:
        with self._guard:
            if not self._closed:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="lmc-journal", daemon=True)
                    self._thread.start()
                self._queue.put(step)
                return
        step.then(JournalError(f"the journal {self.shown} is closed: its run is over", remedy="resume the run"))

    def _work(self) -> None:
        is_over = False
        while not is_over:
            steps = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while steps[-1] is not None and len(steps) < MAX_BATCH:
                    steps.append(self._queue.get_nowait())
            is_over = steps[-1] is None
            self._commit([step for step in steps if step is not None])

    def _commit(self, steps: list[_Step]) -> None:
        if self._error is None and steps:
            try:
                self._write(steps)
            except Exception as error:  # a disk that is full, or a file that is damaged
                self._error = self._broken(error)
                self._after.clear()
        if self._error is not None:
            self._after.extend((step.then, self._failure()) for step in steps)
            waiting, self._pending = self._pending, {}
            self._after.extend((then, self._failure()) for entries in waiting.values() for then in entries)
        after, self._after = self._after, []
        for then, answer in after:
            try:
                then(answer)
            except BaseException:  # the thread answers the others
                _LOGGER.exception("an answer of the journal was not taken")

    def _write(self, steps: Iterable[_Step]) -> None:
        """Do the work of ``steps`` in one transaction."""
        if self.is_replay:
            for step in steps:
                step.write()
            return
        with self._file.transaction():
            if self._begin is not None:
                self._begin()
                self._begin = None
            for step in steps:
                step.write()

    def _ask(self, asked: AskedEntry, text: str, digest: bytes, then: Then, at_sending: bool) -> None:
        key = asked.row, asked.op, asked.number, digest
        waiting = self._pending.get(key)
        if waiting is not None:
            waiting.append(then)
            return
        try:
            found = self._found(Begun(key, asked, text, at_sending))
        except (JournalError, EngineError) as error:
            self._after.append((then, error))
            return
        if isinstance(found, Recorded):
            self.counts.answered += 1
        else:
            self._pending[key] = []
            if not at_sending:
                self._write_intent(found)
        self._after.append((then, found))

    def _begin_now(self, begun: Begun, place: int, then: Callable[[None], object]) -> None:
        before = begun.left or (0,) * len(begun.asked.attempts)
        begun.left = tuple(count + (at == place) for at, count in enumerate(before))
        if begun.id is None:
            self._write_intent(begun)
        else:  # another attempt
            self._file.leaves_again(begun.id, _ENCODER.encode(begun.left))
        self._after.append((then, None))

    def _keep(self, begun: Begun, entry: int, stored: str) -> None:
        begun.stored = stored
        self._file.keep(entry, stored)

    def _write_intent(self, begun: Begun) -> None:
        if begun.before is not None:
            self._file.supersede(begun.before)
        asked = begun.asked
        begun.id = self._file.begin(
            asked.kind,
            asked.row,
            asked.op,
            asked.number,
            digest=begun.key[-1],
            request=begun.text,
            bound=asked.bound,
            most=asked.most,
            attempts=_ENCODER.encode(begun.left or asked.attempts),
        )

    def _found(self, begun: Begun) -> Recorded | Begun:
        """The answer to a request, or ``begun`` with what an earlier session left. Raises what it ends with instead."""
        asked, text, digest = begun.asked, begun.text, begun.key[-1]
        stored = self._file.find(asked.row, asked.op, asked.number)
        same = next((each for each in reversed(stored) if each.digest == digest and each.kind == asked.kind), None)
        if same is not None and same.state in (DONE, FAILED) and same.result is not None:
            if not same.result.startswith(UNKEPT):
                return Recorded(same.state, same.result)
            if self.is_replay:
                raise JournalError(f"{_named(asked)}: the journal {self.shown} could not keep its result")
        if self.is_replay:
            raise self._missing(asked, text, stored)
        if same is None:
            if stored and self._is_blocked(asked):
                raise self._changed(asked, text, stored)
            self.counts.differing += bool(stored)
            return begun
        begun.before, begun.stored = same.id, stored_id(asked.kind, same.state, same.result)
        begun.may_be_asked = not (self._resumption.in_flight == "fail" and same.id in self._open)
        if same.state != DROPPED and begun.stored is None:
            self._check_again(asked, same)
        self._open.pop(same.id, None)
        return begun

    def _check_again(self, asked: AskedEntry, before: Stored) -> None:
        """Raise what stops a request that had left before."""
        if asked.kind == "call":
            if self._is_blocked(asked):
                raise self._unknown(asked, before)
        elif self._resumption.in_flight == "fail" and before.id in self._open:
            raise EngineError(
                f"{asked.op} of row {asked.row} was in flight when the run ended, and may have been billed",
                remedy="repeat such requests: --in-flight repeat, after the row is deleted from the output",
            )

    def _is_blocked(self, asked: AskedEntry) -> bool:
        return asked.writes and not asked.has_key and asked.name not in self._resumption.retry_writes

    def _tell(self, begun: Begun, outcome: Outcome | None, then: Callable[[None], object]) -> None:
        self._after.append((then, None))
        waiting = self._pending.pop(begun.key, [])
        if outcome is not None:
            self._end(begun, outcome)
            answer = Recorded(outcome.state, outcome.text)
            self._after.extend((other, answer) for other in waiting)
        elif waiting:  # the next one sends it
            before = begun.before if begun.id is None else begun.id
            again = replace(begun, before=before, id=None, left=())
            if not again.at_sending:
                self._write_intent(again)
            self._pending[begun.key] = waiting[1:]
            self._after.append((waiting[0], again))

    def _end(self, begun: Begun, outcome: Outcome) -> None:
        if begun.id is None and begun.stored is not None:  # it did not leave: its answer was fetched
            if outcome.state != DONE and not outcome.usage.prompt_tokens:
                return  # a later session may fetch it
            begun.id = begun.before
        if begun.id is None and outcome.state == DROPPED:
            return  # it did not leave
        if begun.id is None:  # it ended before it left
            self._write_intent(begun)
        assert begun.id is not None
        self._file.end(begun.id, outcome.state, outcome.text, outcome.usage)

    def _put_row(self, number: int, line: str | None, *, failed: bool) -> None:
        self._rows += 1
        self._file.put_row(number, line, failed=failed)

    def _write_notes(self) -> None:
        self._file.set_head("notes", json.dumps(sorted(self._notes)))

    def _failure(self) -> JournalError:
        """The error of the journal, for one that waits for it: each locates its own."""
        assert self._error is not None
        return JournalError(self._error.cause, remedy=self._error.remedy)

    def _broken(self, error: Exception) -> JournalError:
        full = isinstance(error, sqlite3.Error) and is_full(error)
        cause = "no space is left" if full else f"{error}"
        return JournalError(
            f"the journal {self.shown} can't be written any further: {cause}; rows that are finished are kept",
            remedy=f"{'make room' if full else 'restore the file'}, then run the same command with --resume",
        )

    def _check_texts(self) -> None:
        if "forgotten" in self.head:
            raise InputError(
                f"the texts of the journal {self.shown} were removed", remedy="run the program again, without --resume"
            )

    def _missing(self, asked: AskedEntry, text: str, stored: list[Stored]) -> JournalError:
        said = difference(text, stored)
        return JournalError(
            f"{_named(asked)} is not in the journal {self.shown}" + (f": {said}" if said else ""),
            remedy="replay the program, inputs and settings that wrote the journal, or run without --replay",
        )

    def _changed(self, asked: AskedEntry, text: str, stored: list[Stored]) -> UnknownOutcomeError:
        return UnknownOutcomeError(
            f"the tool {asked.name} ({_place(asked)}) writes, and an earlier call of it differs: "
            f"{difference(text, stored)}",
            remedy=_retry(asked),
        )

    def _unknown(self, asked: AskedEntry, before: Stored) -> UnknownOutcomeError:
        causes = {BEGUN: "began and did not end", DONE: "gave a result that the journal could not keep"}
        cause = causes.get(before.state, "raised an error that the journal could not keep")
        return UnknownOutcomeError(
            f"the tool {asked.name} ({_place(asked)}) writes, and its call in an earlier run {cause}",
            remedy=_retry(asked),
        )


def stored_id(kind: str, state: int, result: str | None) -> str | None:
    """The id of an answer at the provider that an entry holds. A file may hold anything in its place."""
    is_id = kind == "generate" and state == BEGUN and _STORED.fullmatch(result or "")
    return result if is_id else None


def difference(text: str, stored: Iterable[Stored]) -> str:
    """Describe the first part in which a request differs from those that are stored under its key."""
    new: Mapping[str, Any] = json.loads(text)
    for entry in stored:
        with contextlib.suppress(ValueError, AttributeError, RecursionError):
            old: Mapping[str, Any] = json.loads(entry.request)
            for name in sorted({*new, *old}):
                if new.get(name) != old.get(name):
                    return f"its {name} is {_shown(new.get(name))}, and was {_shown(old.get(name))}"
    return ""


def _shown(part: Any) -> str:
    """A part of a request for people; texts are there as lengths and digests."""
    if isinstance(part, dict) and part.keys() == {"length", "digest"}:
        return f"one of {with_count(part['length'], 'token')} ({part['digest']:.8})"
    return json.dumps(part)[:200]


def _named(asked: AskedEntry) -> str:
    kind = f"the call of the tool {asked.name}" if asked.kind == "call" else f"the request {asked.op}"
    more = f" (sample {asked.number})" if asked.number and asked.kind == "generate" else ""
    place = f", line {asked.line}" if asked.line else ""
    return f"{kind}{more} of row {asked.row}{place}"


def _place(asked: AskedEntry) -> str:
    return f"row {asked.row}, line {asked.line}" if asked.line else f"row {asked.row}, {asked.op}"


def _retry(asked: AskedEntry) -> str:
    return (
        f"look what was written, then call it again: --retry-writes {asked.name} "
        f'(in Python: resume=lmc.Resumption(retry_writes=["{asked.name}"])); or, from the next run on, let the tool '
        'take an idempotency key: @lmc.tool(effect="writes", key=True)'
    )
