"""The file of a journal: one SQLite database, its tables, and every statement that reads or writes them.

A file is untrusted until it is checked: its tables must be exactly those of ``_SCHEMA``, so that it holds no trigger or
view that a statement would run. Values are texts, numbers and digests; nothing that is read is executed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import threading
from collections.abc import Collection, Generator, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from lmc.ir.errors import InputError, JournalError
from lmc.ir.usage import Usage

APPLICATION = 0x6C6D636A  # "lmcj"
VERSION = 4
MAX_TEXT_BYTES = 1 << 28
"""The longest text or number of bytes that is read from a journal, or written to one."""

Kind = Literal["generate", "score", "call"]
BEGUN, DONE, FAILED, DROPPED, LOST = range(5)
"""States of an entry: the intent is on disk; so is the result; so is the error; what it ended with is not used any
more; it was in flight when its run ended or when it was cancelled, and has left again since, as a later entry."""

_SCHEMA = (
    "CREATE TABLE head (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    "CREATE TABLE entries (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, row INTEGER NOT NULL, op TEXT NOT NULL, "
    "number INTEGER NOT NULL, digest BLOB NOT NULL, request TEXT NOT NULL, bound INTEGER NOT NULL, "
    "most INTEGER NOT NULL, attempts TEXT NOT NULL, state INTEGER NOT NULL, result TEXT, prompt INTEGER NOT NULL, "
    "cached INTEGER NOT NULL, generated INTEGER NOT NULL, written INTEGER NOT NULL, reasoning INTEGER NOT NULL) STRICT",
    "CREATE INDEX entry ON entries (row, op, number, digest)",
    "CREATE TABLE rows (number INTEGER PRIMARY KEY, failed INTEGER NOT NULL, line TEXT) STRICT",
)
_FIND = (
    "SELECT id, kind, digest, request, state, result FROM entries WHERE row = ? AND op = ? AND number = ? ORDER BY id"
)
_COLUMNS = (
    "id, kind, row, op, number, digest, request, bound, most, attempts, state, result, "
    "prompt, cached, generated, written, reasoning"
)
# An entry that is there already gets its end: the other columns are not looked at then.
_WRITE = (
    f"INSERT INTO entries ({_COLUMNS}) VALUES {{values}} "  # noqa: S608 - the columns are those above
    "ON CONFLICT (id) DO UPDATE SET state = excluded.state, result = excluded.result, prompt = excluded.prompt, "
    "cached = excluded.cached, generated = excluded.generated, written = excluded.written, "
    "reasoning = excluded.reasoning"
)
_VALUES = f"({', '.join('?' * len(_COLUMNS.split(',')))})"
_MOST_VALUES = 256
"""Entries that one statement writes at most: a power of two. SQLite allows 32,766 parameters."""
_NO_TOKENS = (0, 0, 0, 0, 0)
"""The tokens of an entry without an end."""
_UNUSED = ("", 0, "", 0, b"", "", 0, 0, "")
"""The columns of an entry that has begun before."""
# The result of one that is in flight is the id under which its provider keeps the answer.
_SUPERSEDE = (
    "UPDATE entries SET result = CASE state WHEN 0 THEN NULL ELSE result END, state = CASE state WHEN 0 THEN 4 ELSE 3 "
    "END WHERE id = ?"
)
_KEPT = "UPDATE entries SET result = ? WHERE id = ? AND state = 0"
_OPEN = (
    "SELECT row = 0 OR row NOT IN (SELECT number FROM rows), id, kind, row, op, number, request, bound, most "
    "FROM entries WHERE state = 0 ORDER BY id"
)
_SENT = "SELECT kind, state, result, bound, most, attempts FROM entries WHERE kind IN ('generate', 'score') ORDER BY id"
_AGAIN = (
    "SELECT kind, sum(again) FROM (SELECT kind, count(*) - 1 AS again FROM entries "
    "GROUP BY kind, row, op, number, digest HAVING count(*) > 1) GROUP BY kind"
)
_WORTH = (
    "SELECT EXISTS (SELECT 1 FROM rows) OR "
    "EXISTS (SELECT 1 FROM entries WHERE state != 3 OR prompt != 0 OR generated != 0)"
)
# What all rows share runs under the number 0, whether that row is finished or not.
UNKEPT = '{"$": "unkept"'
"""The beginning of the result of a call that could not be kept. No value is written so."""
_MAGIC = b"SQLite format 3\0"
_HEAD_BYTES = 100
_RESERVED_BYTES = 1001 * (4096 + 24)
"""The size of the ``-wal`` file from its first transaction on: that at which SQLite writes it into the database."""
_HELD: set[str] = set()
"""Journals that this process has open. Opening a file again and closing it would drop SQLite's locks on it."""
_HELD_LOCK = threading.Lock()


@contextlib.contextmanager
def reading(shown: str) -> Generator[None]:
    """Raise ``InputError`` for what a sound journal never holds, however it is read in the block."""
    try:
        yield
    except (sqlite3.Error, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(shown, str(error)) from error


def is_full(error: sqlite3.Error) -> bool:
    """Return True if there is no room for what was to be written."""
    full = sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE
    return getattr(error, "sqlite_errorcode", None) in full


def _damaged(shown: str, cause: str) -> InputError:
    return InputError(
        f"the journal {shown} is damaged: {cause}",
        remedy="restore the file, or name another one for --journal, which runs everything again",
    )


class Stored(NamedTuple):
    """An entry as it was found under its key."""

    id: int
    kind: str
    digest: bytes
    request: str
    state: int
    result: str | None


class Sent(NamedTuple):
    """A request that has left. An attempt has at most ``bound`` tokens of the prompt, and ``most`` of the output.

    ``attempts``: those that have left to the target and to each of its fallbacks, as a JSON list; never fewer.
    """

    kind: str
    state: int
    result: str | None
    bound: int
    most: int
    attempts: str


class Listed(NamedTuple):
    """An entry as it is listed. ``bound`` are its prompt tokens at most, ``most`` its output tokens."""

    id: int
    kind: str
    row: int
    op: str
    number: int
    request: str
    bound: int
    most: int


class JournalFile:
    """A journal that is open: for writing, under a lock that ends with the process, or for reading alone.

    Raises ``InputError`` where the file is none, or is damaged, or is of a later version, or is in use. Other errors of
    SQLite are ``sqlite3.Error``. Used by one thread at a time. ``begin`` and ``end`` collect what they write until
    ``transaction`` ends, and one statement writes many entries: each statement of SQLite gives the interpreter's lock
    away, and waits up to 5 ms for it where another thread computes. Where it is the only one it is its own transaction.
    """

    def __init__(self, path: str, *, writable: bool) -> None:
        self.shown = path
        self._path = os.path.realpath(path)
        self._lock: int | None = None
        self._held = False
        self._is_made = False
        self._last = 0
        self._written: list[tuple[object, ...]] = []
        """Entries to write, by age: their beginnings, and their ends."""
        self._begun_keys: set[tuple[int, str, int]] = set()
        """The keys of these beginnings."""
        self._ended_ids: set[int] = set()
        """The entries of these ends."""
        self._places: dict[int, set[tuple[str, int]] | None] | None = None
        """The keys of all entries, by row; None: those of an earlier session, or of a finished row, are not here."""
        self._reserved = False
        self.database: sqlite3.Connection | None = None
        try:
            if writable:
                self._take()
            elif not Path(self._path).is_file():
                raise InputError(
                    f"there is no journal {path}",
                    remedy="name the file of lmc run --journal, or OUT.jsonl.lmcj beside the output of a hosted model",
                )
            elif self._path not in _HELD:
                self._look()
            self._open(writable=writable)
            if self._lock is not None:
                with contextlib.suppress(PermissionError):
                    os.fchmod(self._lock, 0o600)
        except BaseException:
            self.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection. Raises ``JournalError`` after ``close``."""
        if self.database is None:
            raise JournalError(f"the journal {self.shown} is closed", remedy="resume the run")
        return self.database

    @property
    def path(self) -> str:
        """The absolute path."""
        return self._path

    @property
    def is_fresh(self) -> bool:
        """True if no run has begun in it."""
        return not self._has_tables

    def head(self) -> dict[str, str]:
        """The facts about the run, by name."""
        if self.is_fresh:
            return {}
        return dict(self.connection.execute("SELECT name, value FROM head"))

    def set_head(self, name: str, value: str) -> None:
        """Write a fact about the run."""
        self._change("INSERT OR REPLACE INTO head VALUES (?, ?)", (name, value))

    def create(self) -> None:
        """Make the tables, or empty them: a run begins. Inside of a transaction."""
        self._places = {}
        if self.is_fresh:
            for statement in _SCHEMA:
                self._change(statement)
            self._change(f"PRAGMA application_id = {APPLICATION}")
            self._change(f"PRAGMA user_version = {VERSION}")
            self._has_tables = True
            return
        for table in ("head", "entries", "rows"):
            self._change(f"DELETE FROM {table}")  # noqa: S608 - three names
        self._last = 0

    @contextlib.contextmanager
    def transaction(self) -> Generator[None]:
        """Commit what the block writes, or none of it."""
        try:
            yield
            if len(self._written) > 1:
                self._begin()
            self._flush()
            if self.connection.in_transaction:
                self.connection.execute("COMMIT")
        except BaseException:
            self._forget()
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            raise
        if not self._reserved:
            self._reserved = True
            self._reserve()

    def find(self, row: int, op: str, number: int) -> list[Stored]:
        """The entries under a key, by age: several where a request left again, or a program made several out of one."""
        key = row, op, number
        if self._is_new(row, op, number):
            return []
        if key in self._begun_keys:
            self._flush_now()
        found = self.connection.execute(_FIND, key).fetchall()
        if any(entry[0] in self._ended_ids for entry in found):
            self._flush_now()
            found = self.connection.execute(_FIND, key).fetchall()
        return [Stored(*entry) for entry in found]

    def begin(
        self,
        kind: Kind,
        row: int,
        op: str,
        number: int,
        *,
        digest: bytes,
        request: str,
        bound: int,
        most: int,
        attempts: str,
    ) -> int:
        """Write an intent; return its id."""
        if self._places is not None and (places := self._places.setdefault(row, set())) is not None:
            places.add((op, number))
        self._last += 1
        self._begun_keys.add((row, op, number))
        about = (kind, row, op, number, digest, request, bound, most, attempts)
        self._written.append((self._last, *about, BEGUN, None, *_NO_TOKENS))
        return self._last

    def leaves_again(self, entry: int, attempts: str) -> None:
        """Write the attempts of a request that is in flight: another one leaves."""
        self._change("UPDATE entries SET attempts = ? WHERE id = ?", (attempts, entry))

    def supersede(self, entry: int) -> None:
        """Write that a request or call leaves once more, as a new entry: what the old one cost is kept."""
        self._change(_SUPERSEDE, (entry,))

    def keep(self, entry: int, stored: str) -> None:
        """Write the id under which the provider keeps the answer to a request that is in flight."""
        self._change(_KEPT, (stored, entry))

    def end(self, entry: int, state: int, result: str, usage: Usage) -> None:
        """Write a result or an error."""
        tokens = usage.prompt_tokens, usage.cached_tokens, usage.generated_tokens
        more = usage.cache_written_tokens, usage.reasoning_tokens
        self._ended_ids.add(entry)
        self._written.append((entry, *_UNUSED, state, result, *tokens, *more))

    def put_row(self, number: int, line: str | None, *, failed: bool) -> None:
        """Write a finished row."""
        if self._places is not None:
            self._places[number] = None
        self._change("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", (number, int(failed), line))

    def rows(self) -> Iterator[tuple[int, bool, str | None]]:
        """Number, failure and line of each finished row, by number."""
        if self.is_fresh:
            return
        for number, failed, line in self.connection.execute("SELECT number, failed, line FROM rows ORDER BY number"):
            yield number, bool(failed), line

    def failed_rows(self) -> set[int]:
        """The numbers of the rows that failed."""
        return {number for (number,) in self.connection.execute("SELECT number FROM rows WHERE failed")}

    def run_again(self, number: int) -> None:
        """Forget that a row is finished, and the errors in it: what failed is asked again."""
        self._change("DELETE FROM rows WHERE number = ?", (number,))
        self._change("UPDATE entries SET state = ? WHERE row = ? AND state = ?", (DROPPED, number, FAILED))

    def open_entries(self, again: Collection[int] = ()) -> list[Listed]:
        """The entries without a result, of rows that are not finished, or run ``again``."""
        if self.is_fresh:
            return []
        found = ((is_open, Listed(*entry)) for is_open, *entry in self.connection.execute(_OPEN))
        return [entry for is_open, entry in found if is_open or entry.row in again]

    def sent(self) -> Iterator[Sent]:
        """Yield all requests that have left, by age."""
        if not self.is_fresh:
            for found in self.connection.execute(_SENT):
                yield Sent(*found)

    def holds_nothing(self) -> bool:
        """Return True if no row is finished, and every request that left was refused at no cost."""
        return self.is_fresh or not self.connection.execute(_WORTH).fetchone()[0]

    def totals(self) -> dict[tuple[str, int], tuple[int, Usage]]:
        """Number and usage of the entries, by kind and state. The usage counts no calls."""
        if self.is_fresh:
            return {}
        statement = (
            "SELECT kind, state, count(*), sum(prompt), sum(cached), sum(generated), 0, sum(written), sum(reasoning) "
            "FROM entries GROUP BY kind, state"
        )
        return {
            (kind, state): (count, Usage(*tokens)) for kind, state, count, *tokens in self.connection.execute(statement)
        }

    def again(self) -> dict[str, int]:
        """Return the number of times that requests and calls left again, by kind."""
        return {} if self.is_fresh else dict(self.connection.execute(_AGAIN))

    def count_rows(self) -> tuple[int, int]:
        """The number of finished rows, and of those that failed."""
        if self.is_fresh:
            return 0, 0
        count, failed = self.connection.execute("SELECT count(*), sum(failed) FROM rows").fetchone()
        return count, failed or 0

    def forget_texts(self) -> None:
        """Remove every text of users and models, and the space that they took."""
        database = self.connection
        with self.transaction():
            self._change("UPDATE entries SET result = NULL")
            self._change("UPDATE rows SET line = NULL")
            self.set_head("forgotten", "1")
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close it and release its lock. A file that it made, and in which no run began, is removed."""
        fresh = self._is_made and self.database is not None and self.is_fresh
        if self.database is not None:
            with contextlib.suppress(sqlite3.Error):
                self.database.close()
            self.database = None
        if self._lock is not None:
            if fresh:
                with contextlib.suppress(OSError):
                    Path(self._path).unlink()
            os.close(self._lock)
            self._lock = None
        if self._held:
            with _HELD_LOCK:
                _HELD.discard(self._path)
            self._held = False

    def _is_new(self, row: int, op: str, number: int) -> bool:
        """Return True if it is known without the file that no entry has this key."""
        if self._places is None:
            return False
        places = self._places.get(row, ())
        return places is not None and (op, number) not in places

    def _change(self, statement: str, values: tuple[object, ...] = ()) -> None:
        """Execute another statement that writes, behind what was collected, in a transaction."""
        self._flush_now()
        self.connection.execute(statement, values)

    def _begin(self) -> None:
        if not self.connection.in_transaction:
            self.connection.execute("BEGIN IMMEDIATE")

    def _flush_now(self) -> None:
        """Write what ``begin`` and ``end`` collected before ``transaction`` ends."""
        self._begin()
        self._flush()

    def _flush(self) -> None:
        """Write what ``begin`` and ``end`` collected, by statements for powers of two of them: each is parsed once."""
        at, size = 0, _MOST_VALUES
        while at < len(self._written):
            while size > len(self._written) - at:
                size //= 2
            entries = chain.from_iterable(self._written[at : at + size])
            self.connection.execute(_WRITE.format(values=", ".join([_VALUES] * size)), [*entries])
            at += size
        self._forget()

    def _forget(self) -> None:
        self._written.clear()
        self._begun_keys.clear()
        self._ended_ids.clear()

    def _reserve(self) -> None:
        """Fill the ``-wal`` file with zeros up to the size that it gets anyway.

        The disk takes several times as long for a commit that makes the file longer. SQLite reads no frame of zeros.
        """
        with contextlib.suppress(OSError), Path(f"{self._path}-wal").open("r+b", buffering=0) as wal:
            size = wal.seek(0, os.SEEK_END)
            missing = _RESERVED_BYTES - size
            if missing > 0 and wal.write(bytes(missing)) != missing:
                wal.truncate(size)  # there is no room

    def _take(self) -> None:
        """Open the file, make it where it is not there, and lock it."""
        with _HELD_LOCK:
            if self._path in _HELD:
                raise self._in_use()
            _HELD.add(self._path)
            self._held = True
        found = Path(self._path)
        self._is_made = not found.exists()
        if not self._is_made and not found.is_file() and not found.is_dir():  # a device such as /dev/null
            raise InputError(f"{self.shown} is no file", remedy="name a file for --journal, or give --no-journal")
        try:
            self._lock = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise self._cannot_write(error) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._in_use() from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):  # a file system without locks
                raise self._cannot_write(error) from error
        self._check_size(os.pread(self._lock, _HEAD_BYTES, 0), os.fstat(self._lock).st_size)

    def _look(self) -> None:
        """Check the size of a file that is only read."""
        try:
            with Path(self._path).open("rb") as file:
                self._check_size(file.read(_HEAD_BYTES), os.fstat(file.fileno()).st_size)
        except OSError as error:
            raise InputError(f"{self.shown} can't be read: {error.strerror}", remedy="make it readable") from error

    def _open(self, *, writable: bool) -> None:
        """Connect, and refuse what is no sound journal of this version."""
        self._has_tables = False
        mode = "rw" if writable else "ro"
        try:
            uri = f"{Path(self._path).as_uri()}?mode={mode}"
            self.database = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
            self.database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT_BYTES)
            for setting in ("trusted_schema = OFF", "cell_size_check = ON", "busy_timeout = 10000"):
                self.database.execute(f"PRAGMA {setting}")
            self._check()
            if writable:
                settings = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY")
                for setting in settings:  # temporary tables and files hold answers: they stay in memory
                    self.database.execute(f"PRAGMA {setting}").fetchall()
                self.database.execute(f"PRAGMA journal_size_limit = {1 << 26}")
        except sqlite3.OperationalError as error:
            if is_full(error):
                raise InputError(f"{self.shown} can't be written: {error}", remedy="make room") from error
            if "unable to open" in str(error) or "readonly" in str(error):
                raise InputError(
                    f"{self.shown} can't be opened: {error}", remedy="make the file and its folder writable"
                ) from error
            raise _damaged(self.shown, str(error)) from error
        except sqlite3.Error as error:
            raise _damaged(self.shown, str(error)) from error

    def _check(self) -> None:
        database = self.connection
        found = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master")]
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if not found and application == 0 and version == 0:
            return
        if application != APPLICATION:
            raise self._no_journal()
        if version != VERSION:
            raise InputError(
                f"{self.shown} has version {version}, and this lmc reads version {VERSION}",
                remedy="use the lmc that wrote it, or name another file for --journal",
            )
        expected = [*_SCHEMA, None]  # None: the index of a primary key
        if len(found) != len(expected) or {*found} != {*expected}:
            raise self._no_journal()
        (sound,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if sound != "ok":
            raise _damaged(self.shown, " ".join(str(sound).split()))
        self._has_tables = True
        (self._last,) = database.execute("SELECT ifnull(max(id), 0) FROM entries").fetchone()

    def _check_size(self, head: bytes, size: int) -> None:
        """Refuse a file that ends before the pages that its header counts, where no ``-wal`` file may hold them."""
        wal = Path(f"{self._path}-wal")
        has_wal = wal.is_file() and wal.stat().st_size > 0
        if not size and has_wal:
            raise _damaged(self.shown, f"it is empty, and {wal.name} beside it is not")
        if not size:
            return
        page = int.from_bytes(head[16:18], "big")
        promised = int.from_bytes(head[28:32], "big") * (1 << 16 if page == 1 else page)
        if head[: len(_MAGIC)] != _MAGIC[: len(head)]:
            raise self._no_journal()
        if len(head) < _HEAD_BYTES or (size < promised and not has_wal):
            raise _damaged(self.shown, f"it is cut: {size:,} bytes of {max(promised, _HEAD_BYTES):,} are there")

    def _no_journal(self) -> InputError:
        remedy = "name another file for --journal"
        if not self._held:  # it is only read
            remedy = "name the file of lmc run --journal, or OUT.jsonl.lmcj beside the output of a hosted model"
        return InputError(f"{self.shown} is no journal of lmc", remedy=remedy)

    def _in_use(self) -> InputError:
        return InputError(
            f"another run is using the journal {self.shown}",
            remedy="wait until it has ended, or name another file for --journal",
        )

    def _cannot_write(self, error: OSError) -> InputError:
        return InputError(
            f"{self.shown} can't be written: {error.strerror}", remedy="name a file in a folder you may write to"
        )
