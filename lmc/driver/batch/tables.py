"""Tables in text files: CSV and TSV with a header row, one record at a time."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmc.driver.batch.lines import MAX_ROW_BYTES, STANDARD_INPUT, read_raw_lines
from lmc.driver.programs import UsageError
from lmc.ir.errors import InputError, Location
from lmc.ir.wording import with_count

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table: the text of each column, or its ``error``. ``size`` is its length in characters."""

    location: Location
    cells: Sequence[str]
    size: int
    error: InputError | None = None


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, the line of the header, and its records, each read when it is asked for."""

    names: Sequence[str]
    location: Location
    records: Iterator[TableRow]


def is_table(path: str) -> bool:
    """Return True if the name of a file ends in ``.csv`` or ``.tsv``."""
    return path != STANDARD_INPUT and Path(path).suffix.lower() in _DELIMITERS


def read_table(path: str) -> Table:
    """The table in a file: RFC 4180 with commas, or with tabs in ``.tsv``; UTF-8; lines that are blank are left out.

    Raises ``UsageError`` where the file can't be read, is no text, is empty, or has no good header.
    """
    records = _records(path, _DELIMITERS[Path(path).suffix.lower()])
    header = next(records, None)
    if header is None:
        raise UsageError(f"{path} holds no rows", remedy="write a header row with the names of the arguments")
    if header.error is not None:
        raise _bad_header(header.location, header.error.cause, header.error.remedy or "correct the header row")
    _check_header(path, header)
    return Table(header.cells, header.location, _checked(records, len(header.cells)))


def count_records(path: str) -> int:
    """Return the number of rows of the table in a file. Raises as ``read_table`` does."""
    return sum(1 for _ in read_table(path).records)


def _records(path: str, delimiter: str) -> Generator[TableRow]:
    """The records of a file with their header. A record that can't be read comes with its error."""
    counted = _Counted(read_raw_lines(path))
    csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW_BYTES))
    reader = csv.reader(counted, delimiter=delimiter, strict=True)
    while True:
        location = Location(path, counted.lines + 1)
        counted.size = 0
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield TableRow(location, (), counted.size, _not_a_record(error))
            continue
        if cells is None:
            return
        if not any(cell.strip() for cell in cells) and len(cells) <= 1:
            continue
        yield TableRow(location, cells, counted.size, _content_error(cells, counted.size))


class _Counted:
    """Lines as text, with a count of the characters read."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self.lines = 0
        self.size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines).decode("utf-8", "surrogateescape")
        self.lines += 1
        self.size += len(line)
        return line


def _checked(records: Iterable[TableRow], columns: int) -> Generator[TableRow]:
    for record in records:
        if record.error is None and len(record.cells) != columns:
            error = InputError(
                f"the row has {with_count(len(record.cells), 'cell')}, and the header has {columns}",
                remedy="put cells that hold a separator or a line end in double quotes",
            )
            yield TableRow(record.location, (), record.size, error)
        else:
            yield record


def _content_error(cells: Sequence[str], size: int) -> InputError | None:
    if size > MAX_ROW_BYTES:
        return InputError(f"a row of {size} characters is too large", remedy=f"at most {MAX_ROW_BYTES}")
    if any("\udc80" <= character <= "\udcff" for cell in cells if not cell.isascii() for character in cell):
        return InputError("the row is not UTF-8", remedy="save the file as UTF-8")
    return None


def _check_header(path: str, header: TableRow) -> None:
    names = header.cells
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise _bad_header(
                header.location,
                f"column {number} of the header has no name",
                "name it, or leave it out (pandas: to_csv(…, index=False))",
            )
    twice = next((name for name, other in itertools.combinations(names, 2) if name == other), None)
    if twice is not None:
        raise _bad_header(header.location, f"the header has two columns {twice!r}", "keep one of them")
    other = next((mark for mark in _OTHER_DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        is_csv = Path(path).suffix.lower() == ".csv"
        expected, rename = ("commas", ", or name it .tsv" if other == "\t" else "") if is_csv else ("tabs", "")
        raise _bad_header(
            header.location,
            f"the columns are separated by {_OTHER_DELIMITERS[other]}, not by {expected}",
            f"save the file with {expected}{rename}",
        )


def _bad_header(location: Location, cause: str, remedy: str) -> UsageError:
    return UsageError(cause, remedy=remedy, location=location)


def _not_a_record(error: csv.Error) -> InputError:
    if "field larger" in str(error):
        return InputError("the row is too large", remedy=f"a cell has at most {MAX_ROW_BYTES} characters")
    if "unexpected end" in str(error):
        return InputError("a quote that opens a cell of the row is not closed", remedy='write a quote in a cell as ""')
    return InputError(f"the row is no CSV: {error}", remedy='put the cell in double quotes, and write a quote as ""')
