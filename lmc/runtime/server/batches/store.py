"""Files, batches and the results of their lines: state that outlives a request.

SQLite in a folder, or in a temporary file without one. Each method is a transaction, and done when it is on the disk;
a process that ends at any moment leaves all that was done, and nothing that was half done.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from lmc.ir.errors import InputError

BatchStatus = Literal["in_progress", "cancelling", "completed", "cancelled", "expired", "failed"]
LineOutcome = Literal["succeeded", "errored", "cancelled", "expired"]
ENDED: frozenset[BatchStatus] = frozenset({"completed", "cancelled", "expired", "failed"})

_NAME = "lmc-serve.sqlite3"
_VERSION = 1
_FILE_SERIAL = "SELECT serial FROM files WHERE id = ?"
_PAGE = 1 << 20
"""Bytes of a file, or of results, that are read at once, about."""
_SCHEMA = """
CREATE TABLE files (serial INTEGER PRIMARY KEY, id TEXT UNIQUE, purpose TEXT, expires INTEGER, data TEXT,
  content BLOB);
CREATE TABLE batches (serial INTEGER PRIMARY KEY, id TEXT UNIQUE, protocol TEXT, status TEXT, data TEXT);
CREATE TABLE lines (batch TEXT, number INTEGER, outcome TEXT, prompt INTEGER, cached INTEGER, generated INTEGER,
  PRIMARY KEY (batch, number)) WITHOUT ROWID;
CREATE TABLE requests (batch TEXT, number INTEGER, text BLOB, PRIMARY KEY (batch, number));
CREATE TABLE results (batch TEXT, number INTEGER, is_error INTEGER, text BLOB, PRIMARY KEY (batch, number));
"""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file; times are in seconds since 1970.

    That of a ``batch`` holds its results, or of ``is_errors`` those of lines that did not succeed. All others were
    uploaded.
    """

    id: str
    created: int
    expires: int | None
    name: str
    purpose: str
    size: int
    batch: str | None = None
    is_errors: bool = False


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A batch, without its lines. ``times`` has the moments of its states by name, ``error`` says why it has failed."""

    id: str
    protocol: str
    endpoint: str
    created: int
    expires: int
    total: int
    status: BatchStatus = "in_progress"
    metadata: dict[str, str] | None = None
    input_file: str | None = None
    output_seconds: int | None = None
    output_file: str | None = None
    error_file: str | None = None
    error: str | None = None
    times: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class LineEnd:
    """The end of line ``number``: its result as a line of JSON, and the tokens that it took."""

    number: int
    outcome: LineOutcome
    text: bytes
    prompt: int = 0
    cached: int = 0
    generated: int = 0


@dataclass(frozen=True, slots=True)
class BatchCounts:
    """Lines of a batch by their outcome, and the tokens of all of them."""

    lines: dict[str, int]
    prompt: int
    cached: int
    generated: int


class StateStore:
    """Files and batches. Methods are for any thread; they wait for the disk, so the event loop calls none of them."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open the store of a folder, which is made where it is missing; without one, all is lost at the end.

        Raises ``InputError`` where another server uses the folder, or its state can't be read.
        """
        self._lock = threading.RLock()
        self._unsaved: dict[str, StoredBatch] = {}
        try:
            if folder is not None and not folder.is_dir():
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700)
            path = "" if folder is None else str(folder / _NAME)
            self._database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            self._prepare()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise _unreadable(folder, error) from error
            raise InputError(
                f"another server keeps its state in {folder}", remedy="end it, or give another --state"
            ) from error
        except (OSError, sqlite3.DatabaseError) as error:
            raise _unreadable(folder, error) from error

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._database.close()

    def add_file(self, file: StoredFile, content: bytes) -> None:
        """Keep an uploaded file."""
        with self._transaction() as database:
            _add_file(database, file, content)

    def file(self, file_id: str) -> StoredFile | None:
        """Return what is known of a file; None where there is none, or no longer."""
        with self._transaction() as database:
            _expire(database)
            row = database.execute("SELECT data FROM files WHERE id = ?", (file_id,)).fetchone()
            return None if row is None else StoredFile(**json.loads(row[0]))

    def files(self, purpose: str | None, after: str | None, limit: int, *, newest_first: bool) -> list[StoredFile]:
        """List files, those behind ``after``. Raises ``InputError`` where that is none."""
        with self._transaction() as database:
            _expire(database)
            start, sign = database.execute(_FILE_SERIAL, (after,)).fetchone(), -1 if newest_first else 1
            rows = database.execute(
                "SELECT data FROM files WHERE (? IS NULL OR purpose = ?) AND (? IS NULL OR serial * ? > ? * ?)"
                " ORDER BY serial * ? LIMIT ?",
                (purpose, purpose, *_cursor(after, start, sign), sign, limit),
            )
            return [StoredFile(**json.loads(row[0])) for row in rows]

    def delete_file(self, file: StoredFile) -> None:
        """Delete a file, and the results that it holds."""
        with self._transaction() as database:
            _delete_file(database, file)

    def content(self, file: StoredFile) -> Iterator[bytes]:
        """Yield the content of a file in pieces."""
        if file.batch is not None:
            yield from self.results(file.batch, errors=file.is_errors)
            return
        with self._transaction() as database:
            serial = database.execute(_FILE_SERIAL, (file.id,)).fetchone()
        for start in range(0, file.size, _PAGE):
            with self._transaction() as database:
                try:
                    with database.blobopen("files", "content", serial[0] if serial else 0, readonly=True) as blob:
                        blob.seek(start)
                        piece = blob.read(_PAGE)
                except sqlite3.Error:  # it was deleted meanwhile
                    return
            yield piece

    def add_batch(self, batch: StoredBatch, lines: Iterable[tuple[int, bytes]]) -> None:
        """Keep a batch with its lines, each with its number and request."""
        with self._transaction() as database:
            database.execute(
                "INSERT INTO batches (id, protocol, status, data) VALUES (?, ?, ?, ?)",
                (batch.id, batch.protocol, batch.status, json.dumps(asdict(batch))),
            )
            for number, request in lines:
                database.execute("INSERT INTO lines (batch, number) VALUES (?, ?)", (batch.id, number))
                database.execute("INSERT INTO requests VALUES (?, ?, ?)", (batch.id, number, request))

    def batch(self, batch_id: str, protocol: str) -> StoredBatch | None:
        """Return a batch of a protocol; None where there is none."""
        with self._transaction() as database:
            row = database.execute(
                "SELECT data FROM batches WHERE id = ? AND protocol = ?", (batch_id, protocol)
            ).fetchone()
            return None if row is None else self._batch(row[0])

    def batches(
        self, protocol: str, limit: int, after: str | None = None, before: str | None = None
    ) -> list[StoredBatch]:
        """List batches of a protocol, newest first: those behind ``after``, or those before ``before``.

        Raises ``InputError`` where that is none.
        """
        with self._transaction() as database:
            given, sign = (after, -1) if before is None else (before, 1)
            start = database.execute("SELECT serial FROM batches WHERE id = ?", (given,)).fetchone()
            rows = database.execute(
                "SELECT data FROM batches WHERE protocol = ? AND (? IS NULL OR serial * ? > ? * ?)"
                " ORDER BY serial * ? LIMIT ?",
                (protocol, *_cursor(given, start, sign), sign, limit),
            )
            found = [self._batch(row[0]) for row in rows]
            return found[::-sign]

    def unfinished_batches(self) -> list[StoredBatch]:
        """List the batches that have not ended, oldest first."""
        with self._transaction() as database:
            rows = database.execute("SELECT data, status FROM batches ORDER BY serial")
            return [StoredBatch(**json.loads(data)) for data, status in rows if status not in ENDED]

    def begin_cancelling(self, batch: StoredBatch, now: int) -> StoredBatch:
        """Note that a batch is cancelled, unless it has ended. Return it as it is then."""
        with self._transaction() as database:
            known = self.batch(batch.id, batch.protocol) or batch
            if known.status == "in_progress":
                known = replace(known, status="cancelling", times={**known.times, "cancelling": now})
                _update(database, known)
            return known

    def unfinished_lines(self, batch_id: str) -> list[int]:
        """List the numbers of the lines that have no result."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT number FROM lines WHERE batch = ? AND outcome IS NULL ORDER BY number", (batch_id,)
            )
            return [number for (number,) in rows]

    def request(self, batch_id: str, number: int) -> bytes:
        """Return the request of a line that has no result."""
        with self._transaction() as database:
            row = database.execute(
                "SELECT text FROM requests WHERE batch = ? AND number = ?", (batch_id, number)
            ).fetchone()
            return b"" if row is None else row[0]

    def finish(self, batch_id: str, ends: Sequence[LineEnd]) -> None:
        """Keep results of lines. The first result of a line stays, whatever comes later."""
        with self._transaction() as database:
            for end in ends:
                done = database.execute(
                    "UPDATE lines SET outcome = ?, prompt = ?, cached = ?, generated = ?"
                    " WHERE batch = ? AND number = ? AND outcome IS NULL",
                    (end.outcome, end.prompt, end.cached, end.generated, batch_id, end.number),
                )
                if done.rowcount:
                    is_error = end.outcome != "succeeded"
                    database.execute("DELETE FROM requests WHERE batch = ? AND number = ?", (batch_id, end.number))
                    database.execute(
                        "INSERT INTO results VALUES (?, ?, ?, ?)", (batch_id, end.number, is_error, end.text)
                    )

    def end_batch(self, batch: StoredBatch, files: Sequence[StoredFile]) -> StoredBatch:
        """Note that a batch has ended, with ``files`` of its results: those that would be empty are left out."""
        with self._transaction() as database:
            kept: dict[bool, str] = {}
            for file in files:
                size = database.execute(
                    "SELECT SUM(LENGTH(text) + 1) FROM results WHERE batch = ? AND is_error = ?",
                    (batch.id, file.is_errors),
                ).fetchone()[0]
                if size:
                    _add_file(database, replace(file, size=size), None)
                    kept[file.is_errors] = file.id
            ended = replace(batch, output_file=kept.get(False), error_file=kept.get(True))
            _update(database, ended)
            return ended

    def fail_batch(self, batch: StoredBatch, files: Sequence[StoredFile]) -> StoredBatch:
        """Note that a batch has failed. Where that can't be written either, this process alone knows it.

        Then the next process continues the batch.
        """
        try:
            return self.end_batch(batch, files)
        except sqlite3.Error:
            with self._lock:
                self._unsaved[batch.id] = batch
            return batch

    def _batch(self, data: str) -> StoredBatch:
        found = StoredBatch(**json.loads(data))
        return self._unsaved.get(found.id, found)

    def delete_batch(self, batch: StoredBatch) -> None:
        """Delete a batch and its results."""
        with self._transaction() as database:
            database.execute("DELETE FROM lines WHERE batch = ?", (batch.id,))
            database.execute("DELETE FROM requests WHERE batch = ?", (batch.id,))
            database.execute("DELETE FROM results WHERE batch = ?", (batch.id,))
            database.execute("DELETE FROM batches WHERE id = ?", (batch.id,))

    def counts(self, batch_id: str) -> BatchCounts:
        """Count lines and tokens of a batch."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT outcome, COUNT(*), SUM(prompt), SUM(cached), SUM(generated) FROM lines"
                " WHERE batch = ? AND outcome IS NOT NULL GROUP BY outcome",
                (batch_id,),
            ).fetchall()
        prompt, cached, generated = (sum(row[place] for row in rows) for place in (2, 3, 4))
        return BatchCounts({row[0]: row[1] for row in rows}, prompt, cached, generated)

    def results(self, batch_id: str, *, errors: bool | None = None) -> Iterator[bytes]:
        """Yield results as lines of JSON, in the order of the lines: those that succeeded or not (None: all)."""
        number = -1
        while True:
            with self._transaction() as database:
                rows = database.execute(
                    "SELECT number, text FROM results WHERE batch = ? AND number > ? AND (? IS NULL OR is_error = ?)"
                    " ORDER BY number",
                    (batch_id, number, errors, errors),
                )
                piece = bytearray()
                while len(piece) < _PAGE and (row := rows.fetchone()) is not None:
                    number = row[0]
                    piece += row[1] + b"\n"
                rows.close()
            if not piece:
                return
            yield bytes(piece)

    def _prepare(self) -> None:
        """Take the store for this process alone, and make its tables."""
        for setting in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
            self._database.execute(f"PRAGMA {setting}")
        with self._transaction() as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.split(";")[:-1]:
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {_VERSION}")
            elif version != _VERSION:
                raise InputError(
                    f"the state is of format {version}, this version of lmc has {_VERSION}",
                    remedy="give another --state",
                )

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        """Do all of a block, or nothing. Blocks may be in each other: then the outer one counts."""
        with self._lock:
            if self._database.in_transaction:
                yield self._database
                return
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:  # a full disk has ended it already
                    self._database.execute("ROLLBACK")
                raise


def _add_file(database: sqlite3.Connection, file: StoredFile, content: bytes | None) -> None:
    database.execute(
        "INSERT INTO files (id, purpose, expires, data, content) VALUES (?, ?, ?, ?, ?)",
        (file.id, file.purpose, file.expires, json.dumps(asdict(file)), content),
    )


def _delete_file(database: sqlite3.Connection, file: StoredFile) -> None:
    database.execute("DELETE FROM files WHERE id = ?", (file.id,))
    if file.batch is not None:
        database.execute("DELETE FROM results WHERE batch = ? AND is_error = ?", (file.batch, file.is_errors))


def _expire(database: sqlite3.Connection) -> None:
    for row in database.execute("SELECT data FROM files WHERE expires <= ?", (int(time.time()),)).fetchall():
        _delete_file(database, StoredFile(**json.loads(row[0])))


def _update(database: sqlite3.Connection, batch: StoredBatch) -> None:
    database.execute(
        "UPDATE batches SET status = ?, data = ? WHERE id = ?", (batch.status, json.dumps(asdict(batch)), batch.id)
    )


def _cursor(given: str | None, start: tuple[int] | None, sign: int) -> tuple[int | None, ...]:
    """Return the parameters of a condition on serial numbers; where no start is given, all are behind it."""
    if given is not None and start is None:
        raise InputError(f"a list can't start at {given!r}", remedy="give an id of the list")
    number = None if start is None else start[0]
    return number, sign, number, sign


def _unreadable(folder: Path | None, error: Any) -> InputError:
    return InputError(f"the state in {folder} can't be used: {error}", remedy="give another --state")
