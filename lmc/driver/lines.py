"""Lines of a file or of standard input, one at a time: a file of any size takes the memory of its longest line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lmc.driver.programs import UsageError
from lmc.ir.errors import InputError, Location

MAX_ROW_BYTES = 64 * 2**20
STANDARD_INPUT = "-"
_PART = 2**20
_NOT_UTF8 = {
    b"\xff\xfe": ("is UTF-16, not UTF-8", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 {path}"),
    b"\xfe\xff": ("is UTF-16, not UTF-8", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 {path}"),
    b"\x1f\x8b": ("is compressed with gzip", "unpack it: zcat {path} | lmc …, with - for the file"),
    b"PK\x03\x04": ("is a zip archive", "unpack it first"),
    b"(\xb5\x2f\xfd": ("is compressed with zstd", "unpack it: zstdcat {path} | lmc …, with - for the file"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank. ``data`` is cut off where its ``size`` in bytes is over ``MAX_ROW_BYTES``."""

    location: Location
    data: bytes
    size: int


def shown_path(path: str) -> str:
    """How a path is called in errors."""
    return "<stdin>" if path == STANDARD_INPUT else path


def read_lines(path: str) -> Iterator[Line]:
    """The lines of ``path`` (``-``: standard input) that are not blank, without a byte order mark.

    Raises ``UsageError`` where the file can't be opened or is no text, ``InputError`` where reading breaks off.
    """
    # Closed when the iterator is dropped; a reader that is left behind in a pipe keeps no other from ending.
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(_open(path))
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}", remedy="name a JSON Lines file") from error
        number = 0
        while True:
            number += 1
            location = Location(shown_path(path), number)
            try:
                data, size = _read_line(file)
            except OSError as error:
                raise InputError(
                    f"reading broke off: {error.strerror}", remedy="the rows before it are done", location=location
                ) from error
            if not data:
                return
            if number == 1:
                _check_text(data, path)
                data = data.removeprefix(b"\xef\xbb\xbf")
            if data.strip():
                yield Line(location, data, size)


def is_plain_file(path: str) -> bool:
    """Whether all lines are there already, as those of standard input and of pipes may not be."""
    return path != STANDARD_INPUT and Path(path).is_file()


def count_lines(path: str, limit: int) -> int | None:
    """How many lines ``read_lines`` would give; None for what is no plain file, or larger than ``limit`` bytes."""
    if not is_plain_file(path) or Path(path).stat().st_size > limit:
        return None
    return sum(1 for _ in read_lines(path))


def _open(path: str) -> BinaryIO:
    if path == STANDARD_INPUT:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return Path(path).open("rb")


def _read_line(file: BinaryIO) -> tuple[bytes, int]:
    """The next line without its end and its size; of one that is too large the rest is dropped as it is read."""
    data = file.readline(MAX_ROW_BYTES + 2)
    size = len(data)
    if size <= MAX_ROW_BYTES or data.endswith(b"\n"):
        return data, len(data.rstrip(b"\r\n"))
    part = data
    while part and not part.endswith(b"\n"):
        part = file.readline(_PART)
        size += len(part)
    return data, size - part.endswith(b"\n")


def _check_text(data: bytes, path: str) -> None:
    for mark, (cause, remedy) in _NOT_UTF8.items():
        if data.startswith(mark):
            raise UsageError(f"{shown_path(path)} {cause}", remedy=remedy.format(path=path))
