"""Chunks of the rows of a file: each is scheduled over all of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lmc.driver.batch.lines import is_plain_file
from lmc.driver.batch.rows import Row
from lmc.driver.batch.windows import Entry, Part

PART_BYTES = 2**29
"""The memory of rows that are scheduled together, in bytes: those of most files.

Any machine that runs a model has it twice: of larger files a chunk is read while the one before it runs.
"""
ROW_BYTES = 2**11
"""The memory of a row beside its text, in bytes: measured on rows of two texts."""


def entry_of(number: int, row: Row) -> Entry:
    """A row with its number."""
    return number, row.error or ((), row.arguments)


def parts_of(path: str, rows: Iterable[Row]) -> Iterator[Part]:
    """Yield ``rows`` of the file ``path`` in as few chunks as memory allows; one by one if they may arrive slowly.

    An error of reading is raised after the chunk of the rows before it.
    """
    if is_plain_file(path):
        return _large_parts(rows)
    return ([entry_of(number, row)] for number, row in enumerate(rows))


def _large_parts(rows: Iterable[Row]) -> Iterator[Part]:
    part: list[Entry] = []
    size = 0
    try:
        for number, row in enumerate(rows):
            part.append(entry_of(number, row))
            size += row.size + ROW_BYTES
            if size >= PART_BYTES:
                whole, part, size = part, [], 0
                yield whole
    except Exception:
        yield part
        raise
    yield part
