"""Rows of a batch as arguments by name."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sized
from typing import Any

from lmc.driver.run.start import Arguments
from lmc.frontend.source.locations import user_location
from lmc.ir.errors import InputError


def batch_arguments(rows: Iterable[Mapping[str, Any]]) -> list[Arguments] | Iterator[Arguments | InputError]:
    """Return each row as arguments by name; rows without a length are read on demand.

    Raises ``InputError`` for what is no list of rows, at the user's line, and for a row of a list that is no dict; for
    rows that are read later that error is the row's result.
    """
    if isinstance(rows, str | bytes | Mapping) or not _has_rows(type(rows)):
        raise _no_batch(rows)
    source = iter(rows)
    entries = (_by_name(number, row) for number, row in enumerate(source))
    if not isinstance(rows, Sized):
        return entries
    found: list[Arguments] = []
    for entry in entries:
        if isinstance(entry, InputError):
            raise entry
        found.append(entry)
    return found


def _has_rows(kind: type) -> bool:
    """Return True if ``iter`` accepts objects of a class; its own exceptions are the user's errors."""
    return getattr(kind, "__iter__", None) is not None or hasattr(kind, "__getitem__")


def _no_batch(rows: object) -> InputError:
    remedy = 'write [{"argument": value}, …]'
    if isinstance(rows, AsyncIterable):
        remedy = "read it first: [row async for row in rows]"
    return InputError(
        f"a batch is a list of rows, not of type {type(rows).__name__}", remedy=remedy, location=user_location()
    )


def _by_name(number: int, row: object) -> Arguments | InputError:
    """Return a copy of the row: it is bound later, and a generator may reuse its dict."""
    if isinstance(row, Mapping) and all(isinstance(key, str) for key in row):
        return (), dict(row)
    return InputError(f"row {number} of the batch is {row!r:.80}", remedy='give a dict: {"argument": value}')
