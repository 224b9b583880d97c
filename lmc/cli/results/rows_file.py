"""The file of output rows: replaced whole or not at all, then appended to, and continued by ``--resume``.

Files at each moment of a run, and so after a kill or a power failure:

1. Until a row succeeds, OUT and OUT.meta.json are as they were. Rows that failed by then are in a hidden temporary file
   beside OUT.
2. The old OUT.meta.json is deleted, the temporary file is renamed to OUT, the new OUT.meta.json is renamed into place:
   at no moment does a record describe the rows of another run, and ``--resume`` refuses rows without a record.
3. Rows are appended to OUT. A kill leaves whole rows and at most one torn line at the end, which ``--resume`` removes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from array import array
from collections.abc import Generator
from pathlib import Path
from types import TracebackType

from lmc import driver
from lmc.cli.output import cannot_write, write_whole
from lmc.ir.wording import with_count

RECORD_SUFFIX = ".meta.json"
FAILED_SUFFIX = ".failed"
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_OTHER_REMEDY = "run without --resume, which replaces the rows, or name another file for -o"


def is_stream(path: str) -> bool:
    """Return True if ``-o`` names standard output, a pipe or a device, whose rows can't be kept or continued."""
    if path == "-" or path.startswith(_STREAMS):
        return True
    place = Path(path)
    return place.exists() and not place.is_file() and not place.is_dir()


def record_path(path: str) -> str:
    """OUT.meta.json of the file that ``-o`` names, which may be a symbolic link."""
    return f"{os.path.realpath(path)}{RECORD_SUFFIX}"


class RowsFile:
    """Output rows in the file that ``path`` names, directly or by a symbolic link. A context manager.

    Nothing is opened for writing before the first ``write``. With ``ordered`` the rows are put in input order at the
    end. A block that ends in order or by Ctrl-C keeps all rows; one that ends by another error before a row succeeded
    leaves the files as they were. Raises ``UsageError`` where the file can't be written.
    """

    def __init__(self, path: str, *, ordered: bool = False) -> None:
        self._shown = path
        self._path = Path(os.path.realpath(path))
        self._record_path = Path(record_path(path))
        self._check_place()
        self._temporary = _hidden(self._path)
        self._ordered = ordered
        self._record: driver.RunRecord | None = None
        self._locked: int | None = None
        self._file: int | None = None
        self._is_published = False
        self._end = 0
        self._rows_kept = 0
        self._numbers = array("q")
        self._offsets = array("q")
        self.failed_before: set[int] = set()
        """Numbers of the rows with an error that ``resume`` found."""
        self.note: str | None = None
        """A line for the user at the end, where the rows went to another file."""

    @property
    def shown(self) -> str:
        """The path as the user named it."""
        return self._shown

    def start(self, record: driver.RunRecord) -> set[int]:
        """Begin a run that replaces the file: none of its rows are kept.

        Raises ``UsageError`` where another run writes it, or OUT.meta.json is none of lmc's.
        """
        self._record = record
        self._read_record()
        self._lock()
        self._unlock()
        return set()

    def resume(self, record: driver.RunRecord, *, replaces: bool = False) -> set[int]:
        """Begin a run that continues the file; return the numbers of the rows that it holds.

        A file that is not there or is empty is begun. The file of another run is replaced as by ``start`` if the run
        ``replaces`` it: its journal has it go on, and no row of it has succeeded yet. So is that of a run over a pipe,
        whose rows can't be compared: all of them run again, answered by the journal. Raises ``UsageError`` where
        another run writes the file, where its run has no record or had another program, model, option or input, and
        where a line is no output row.
        """
        self._record = record
        before = self._read_record()
        self._lock()
        if not self._holds_rows():
            self._unlock()
            return set()
        if record.rows is None and not replaces:
            raise driver.UsageError(
                f"--resume can't compare the rows of {record.rows_name} with those of the earlier run",
                remedy="save the rows to a file, and name it with --input",
            )
        difference = None if before is None else record.difference(before)
        if replaces and (record.rows is None or before is None or difference is not None):
            self._unlock()
            return set()
        if before is None:
            raise self._cannot_resume(f"{self._record_path.name}, which describes its run, is not beside it")
        if difference is not None:
            raise self._cannot_resume(difference)
        self._is_published = True
        return self._scan()

    def __enter__(self) -> RowsFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        try:
            if kind is None or issubclass(kind, KeyboardInterrupt):
                self._finish()
        finally:
            with contextlib.suppress(OSError):
                self._temporary.unlink(missing_ok=True)
            self._close()

    def write(self, number: int, line: str, *, succeeded: bool) -> None:
        """Append the row ``number``. Raises ``LmcError`` where that fails; the rows before it are whole."""
        data = line.encode()
        try:
            if self._file is None:
                self._file = self._continued() if self._is_published else self._created()
            write_whole(self._file, data)
        except OSError as error:
            raise self._broken_off(error) from error
        self._note(number, self._end)
        self._end += len(data)
        self._rows_kept += 1
        if succeeded and not self._is_published:
            self._publish()

    def _finish(self) -> None:
        if self._file is None:
            if not self._is_published or self._is_sorted():
                return
            self._file = self._continued()
        if not self._is_published and self._holds_rows():
            failed = Path(f"{self._path}{FAILED_SUFFIX}")
            self._temporary.replace(failed)
            self.note = f"every row failed: {self._shown} keeps the rows it held; the failed rows are in {failed}"
            return
        if not self._is_published:
            self._publish()
        try:
            os.fsync(self._file)
        except OSError as error:
            raise self._broken_off(error) from error
        if not self._is_sorted():
            self._sort()

    def _created(self) -> int:
        """A new temporary file, with mode and owner of the file that it is to replace."""
        self._temporary.unlink(missing_ok=True)
        file = os.open(self._temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        with contextlib.suppress(FileNotFoundError):
            before = self._path.stat()
            with contextlib.suppress(PermissionError):  # only root may give a file away
                os.fchown(file, before.st_uid, before.st_gid)
            os.fchmod(file, stat.S_IMODE(before.st_mode))
        _flock(file)
        return file

    def _continued(self) -> int:
        """The file of the earlier run, without its torn last line."""
        file = os.open(self._path, os.O_RDWR)
        os.ftruncate(file, self._end)
        os.lseek(file, 0, os.SEEK_END)
        if self._end and os.pread(file, 1, self._end - 1) != b"\n":
            write_whole(file, b"\n")
            self._end += 1
        return file

    def _publish(self) -> None:
        """Rename the temporary file to OUT, and its record. Raises ``LmcError``; then OUT is as it was."""
        assert self._file is not None
        assert self._record is not None
        record = _hidden(self._record_path)
        self._lock()
        try:
            os.fsync(self._file)
            _write_file(record, self._record.to_json().encode(), os.fstat(self._file).st_mode)
            self._record_path.unlink(missing_ok=True)
            self._temporary.replace(self._path)
            self._is_published = True
            record.replace(self._record_path)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise self._broken_off(error) from error
        finally:
            self._unlock()
            with contextlib.suppress(OSError):
                record.unlink(missing_ok=True)

    def _sort(self) -> None:
        """Replace the file by one with its rows in input order."""
        assert self._file is not None
        count = len(self._numbers)
        ends = [*self._offsets[1:], self._end]
        try:
            file = self._created()
            try:
                for at in sorted(range(count), key=self._numbers.__getitem__):
                    line = os.pread(self._file, ends[at] - self._offsets[at], self._offsets[at])
                    write_whole(file, line.strip() + b"\n")
                os.fsync(file)
                self._temporary.replace(self._path)
            finally:
                os.close(file)
            _sync_folder(self._path.parent)
        except OSError as error:
            raise driver.LmcError(
                f"{self._shown} holds all rows ({count:,}), and can't be put in input order: {error.strerror}",
                remedy="make room, then run the same command with --resume, which sorts the file",
            ) from error

    def _is_sorted(self) -> bool:
        """Return True if the rows are in input order, or may be in any."""
        return all(self._numbers[at] <= self._numbers[at + 1] for at in range(len(self._numbers) - 1))

    def _scan(self) -> set[int]:
        """Read the rows of the file. A last line that is no row is torn, and ends the rows before it."""
        found: set[int] = set()
        for number, failed, offset, end in self._rows():
            found.add(number)
            self._note(number, offset)
            if failed:
                self.failed_before.add(number)
            self._rows_kept += 1
            self._end = end
        return found

    def _rows(self) -> Generator[tuple[int, bool, int, int]]:
        """Yield for each row its number, whether it failed, and its first and last offset in bytes."""
        end, torn = 0, 0
        with self._path.open("rb") as file:
            for line_number, line in enumerate(file, start=1):
                offset, end = end, end + len(line)
                if not line.strip():
                    continue
                if torn:
                    raise driver.UsageError(
                        f"{self._shown}:{torn} is no output row", remedy="delete the line, or name another file for -o"
                    )
                row = _parse_row(line)
                if row is None:
                    torn = line_number
                else:
                    yield (*row, offset, end)

    def _note(self, number: int, offset: int) -> None:
        if self._ordered:
            self._numbers.append(number)
            self._offsets.append(offset)

    def _holds_rows(self) -> bool:
        return self._path.exists() and self._path.stat().st_size > 0

    def _check_place(self) -> None:
        folder = self._path.parent
        code = 0
        if self._path.is_dir():
            code = errno.EISDIR
        elif self._path.is_symlink():  # it is resolved: a loop
            code = errno.ELOOP
        elif not folder.is_dir():
            code = errno.ENOENT
        elif not os.access(folder, os.W_OK) or (self._path.exists() and not os.access(self._path, os.W_OK)):
            code = errno.EACCES
        if code:
            raise cannot_write(self._shown, OSError(code, os.strerror(code)))

    def _read_record(self) -> driver.RunRecord | None:
        """Return the record beside the file. Raises ``UsageError`` for any other file, which would be lost."""
        shown = f"{self._shown}{RECORD_SUFFIX}"
        try:
            with self._record_path.open("rb") as file:
                data = file.read(driver.MAX_RECORD_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise driver.UsageError(f"{shown} can't be read: {error.strerror}", remedy="delete it") from error
        return driver.RunRecord.from_json(data, shown)

    def _lock(self) -> None:
        """Lock OUT as it is now, so that two runs never replace or continue one file at a time."""
        try:
            self._locked = os.open(self._path, os.O_RDONLY)
        except OSError:  # it is not there, or may only be written
            return
        try:
            _flock(self._locked)
        except BlockingIOError:
            self._unlock()
            raise driver.UsageError(
                f"another run is writing {self._shown}", remedy="wait until it has ended, or name another file for -o"
            ) from None

    def _unlock(self) -> None:
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None

    def _close(self) -> None:
        self._unlock()
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def _cannot_resume(self, cause: str) -> driver.UsageError:
        return driver.UsageError(f"{self._shown} can't be resumed: {cause}", remedy=_OTHER_REMEDY)

    def _broken_off(self, error: OSError) -> driver.LmcError:
        """Return the error of a failed write, and remove the partial row."""
        if not self._is_published:
            kept = f"nothing of this run is kept, and {self._shown} is as it was"
            return driver.LmcError(f"{self._shown} can't be written: {error.strerror}; {kept}", remedy="make room")
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
        return driver.LmcError(
            f"{self._shown} can't be written any further: {error.strerror}; "
            f"{with_count(self._rows_kept, 'row is', 'rows are')} kept",
            remedy="make room, then run the same command with --resume, which runs the others",
        )


def _hidden(path: Path) -> Path:
    """The temporary file of this process for ``path``, in the same folder."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def _flock(file: int) -> None:
    """Lock an open file. Raises ``BlockingIOError`` where another run has it; file systems without locks have none."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


def _write_file(path: Path, data: bytes, mode: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        os.fchmod(file, stat.S_IMODE(mode))
        write_whole(file, data)
        os.fsync(file)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder last over a power failure, where the file system can."""
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _parse_row(line: bytes) -> tuple[int, bool] | None:
    """Return the number of an output row and whether it failed; None for any other line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or type(row.get("index")) is not int or row["index"] < 0:
        return None
    return row["index"], row.get("error") is not None
