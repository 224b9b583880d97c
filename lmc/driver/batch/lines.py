"""Lines of a file or of standard input, one at a time: a file of any size takes the memory of its longest line.

Elements of a JSON array count as lines, and files that hold no text are recognized.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lmc.driver.errors import UsageError
from lmc.ir.errors import InputError, Location

MAX_ROW_BYTES = 64 * 2**20
STANDARD_INPUT = "-"
MAX_ARRAY_BYTES = 2**29
_PART = 2**20
_SPACE = re.compile(r"[ \t\r\n]*")
_ZIP = b"PK\x03\x04"
_UTF16 = ("is UTF-16, not UTF-8", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 {path}")
_UTF32 = ("is UTF-32, not UTF-8", "save it as UTF-8: iconv -f UTF-32 -t UTF-8 {path}")
_TABLE = "write JSON Lines, in pandas: {reader}('{{path}}').to_json('rows.jsonl', orient='records', lines=True)"
_WORKBOOK = "save it as CSV (UTF-8) in the spreadsheet program"
_NOT_TEXT = {
    b"\xff\xfe\x00\x00": _UTF32,
    b"\x00\x00\xfe\xff": _UTF32,
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"\x1f\x8b": ("is compressed with gzip", "unpack it: zcat {path} | lmc …, with - for the file"),
    b"BZh91AY&SY": ("is compressed with bzip2", "unpack it: bzcat {path} | lmc …, with - for the file"),
    b"\xfd7zXZ\x00": ("is compressed with xz", "unpack it: xzcat {path} | lmc …, with - for the file"),
    b"(\xb5\x2f\xfd": ("is compressed with zstd", "unpack it: zstdcat {path} | lmc …, with - for the file"),
    _ZIP: ("is a zip archive", "unpack it first"),
    b"\xd0\xcf\x11\xe0": ("is a workbook of Excel", _WORKBOOK),
    b"PAR1\x15": ("is a Parquet file", _TABLE.format(reader="read_parquet")),
    b"ARROW1\x00\x00": ("is an Arrow file", _TABLE.format(reader="read_feather")),
    b"FEA1\x00": ("is a Feather file", _TABLE.format(reader="read_feather")),
    b"Obj\x01": ("is an Avro file", "write JSON Lines: avro-tools tojson {path} > rows.jsonl"),
    b"\x89HDF": ("is an HDF5 file", _TABLE.format(reader="read_hdf")),
    b"SQLite format 3": ("is an SQLite database", "write CSV: sqlite3 -csv -header {path} 'SELECT …' > rows.csv"),
    b"\x80\x04\x95": ("is a Python pickle", "write JSON Lines instead; lmc loads no pickles"),
    b"%PDF": ("is a PDF document", "write one JSON object of arguments to a line"),
}
_BY_NAME = {
    ".xlsx": ("is a workbook of Excel", _WORKBOOK),
    ".xlsm": ("is a workbook of Excel", _WORKBOOK),
    ".ods": ("is a workbook", _WORKBOOK),
}
"""Zip archives by the end of the file's name."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is not blank. ``data`` is cut off where its ``size`` in bytes is over ``MAX_ROW_BYTES``."""

    location: Location
    data: bytes
    size: int


def shown_path(path: str) -> str:
    """Return the name of a path in error messages."""
    return "<stdin>" if path == STANDARD_INPUT else path


def read_lines(path: str) -> Iterator[Line]:
    """The lines of ``path`` (``-``: standard input) that are not blank, without a byte order mark.

    Raises ``UsageError`` where the file can't be opened or is no text, ``InputError`` where reading breaks off.
    """
    for number, (data, size) in enumerate(_read_raw(path), start=1):
        if data.strip():
            yield Line(Location(shown_path(path), number), data, size)


def read_raw_lines(path: str) -> Iterator[bytes]:
    """All lines of ``path`` with their ends, without a byte order mark. Raises as ``read_lines`` does."""
    return (data for data, _ in _read_raw(path))


def _read_raw(path: str) -> Iterator[tuple[bytes, int]]:
    # Closed when the iterator is dropped; a reader that is left behind in a pipe keeps no other from ending.
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(_open(path))
        except OSError as error:
            raise UsageError(f"{path} can't be read: {error.strerror}", remedy="name a JSON Lines file") from error
        number = 0
        while True:
            number += 1
            try:
                data, size = _read_line(file)
            except OSError as error:
                raise InputError(
                    f"reading broke off: {error.strerror}",
                    remedy="the rows before it are done",
                    location=Location(shown_path(path), number),
                ) from error
            if not data:
                return
            if number == 1:
                check_text(data, path)
                data = data.removeprefix(b"\xef\xbb\xbf")
            yield data, size


def read_array(path: str) -> Iterator[Line]:
    """The elements of a JSON array in a plain file, each with the line where it begins.

    Raises ``UsageError`` where that is too large to be held in memory (512 MiB) or no array as a whole.
    """
    place = Path(path)
    if place.stat().st_size > MAX_ARRAY_BYTES:
        raise UsageError(
            f"{path} is a JSON array of more than {MAX_ARRAY_BYTES >> 20} MiB",
            remedy=f"write JSON Lines: jq -c '.[]' {path} > rows.jsonl",
        )
    try:
        text = place.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}", remedy="save the file as UTF-8") from error
    return iter(_elements(text, path))


def _elements(text: str, path: str) -> list[Line]:
    """Return the elements of an array, all of them before the first is used: a truncated array runs no row."""
    found: list[Line] = []
    scan = json.JSONDecoder().raw_decode
    line, counted = 1, 0
    at = _skip(text, _skip(text, 0) + 1)
    try:
        while text[at : at + 1] != "]" or found:
            line, counted = line + text.count("\n", counted, at), at
            _, end = scan(text, at)
            data = text[at:end].encode("utf-8", "surrogatepass")
            found.append(Line(Location(path, line), data, len(data)))
            at = _skip(text, end)
            if text[at : at + 1] == "]":
                break
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _skip(text, at + 1)
        rest = _skip(text, at + 1)
        if rest < len(text):
            raise json.JSONDecodeError("Extra data", text, rest)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"the JSON array is broken: {error.msg} at column {error.colno}",
            remedy="correct it; no row was run",
            location=Location(path, error.lineno),
        ) from error
    except RecursionError as error:
        raise UsageError("the row is nested too deep", remedy="flatten it", location=Location(path, line)) from error
    return found


def _skip(text: str, at: int) -> int:
    """Return the position of the next character from ``at`` on that is not JSON whitespace."""
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def is_array(path: str) -> bool:
    """Return True if a plain file named ``.json`` holds a JSON array. Raises ``UsageError`` if it is not text."""
    if path == STANDARD_INPUT or Path(path).suffix.lower() != ".json" or not Path(path).is_file():
        return False
    first = next(read_lines(path), None)
    return first is not None and first.data.lstrip().startswith(b"[")


def is_plain_file(path: str) -> bool:
    """Return True if all lines are there already; those of standard input and of pipes may not be."""
    return path != STANDARD_INPUT and Path(path).is_file()


def _open(path: str) -> BinaryIO:
    if path == STANDARD_INPUT:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    return Path(path).open("rb")


def _read_line(file: BinaryIO) -> tuple[bytes, int]:
    """Return the next line without its end, and its size. The rest of a line that is too large is dropped."""
    data = file.readline(MAX_ROW_BYTES + 2)
    size = len(data)
    if size <= MAX_ROW_BYTES or data.endswith(b"\n"):
        return data, len(data.rstrip(b"\r\n"))
    part = data
    while part and not part.endswith(b"\n"):
        part = file.readline(_PART)
        size += len(part)
    return data, size - part.endswith(b"\n")


def check_text(data: bytes, path: str) -> None:
    """Raise ``UsageError`` if the first bytes of a file are not UTF-8 text."""
    found = next((kind for mark, kind in _NOT_TEXT.items() if data.startswith(mark)), None)
    if found is None and b"\0" in data[:2]:  # ASCII text without a byte order mark
        found = _UTF16
    if found is not None and data.startswith(_ZIP):
        found = _BY_NAME.get(Path(path).suffix.lower(), found)
    if found is not None:
        raise UsageError(f"{shown_path(path)} {found[0]}", remedy=found[1].format(path=path))
