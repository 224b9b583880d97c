"""A short report of failed rows: the first ones, and the number of failures by cause."""

from __future__ import annotations

import re
from collections import Counter

from lmc import driver
from lmc.cli.output import shorten

_SHOWN_ERRORS = 3
_SHOWN_CAUSES = 5
_SHOWN_LINES = 6
_MAX_CAUSES = 1000
"""Causes that are counted apart; errors with a text of their own for each row are not worth more memory."""
_WIDTH = 160
_VALUES = re.compile(r"""'[^']*'|"[^"]*"|\d+(?:[.,:_-]\d+)*""")


class Failures:
    """Counts failed rows by cause: errors that differ only in numbers and quoted texts have one cause."""

    def __init__(self) -> None:
        self.count = 0
        self._first: list[list[str]] = []
        self._causes: Counter[str] = Counter()
        self._examples: dict[str, str] = {}
        self._others = 0

    def add(self, number: int, error: BaseException) -> None:
        """Count the error of row ``number``."""
        self.count += 1
        if len(self._first) < _SHOWN_ERRORS:
            self._first.append(_few_lines(f"row {number}: {driver.describe_error(error)}"))
        cause = shorten(_cause(error), _WIDTH)
        key = _VALUES.sub("…", cause)
        if key not in self._causes and len(self._causes) >= _MAX_CAUSES:
            self._others += 1
            return
        self._examples.setdefault(key, cause)
        self._causes[key] += 1

    def lines(self) -> list[str]:
        """Return the lines of the report; none if no row failed."""
        if not self.count:
            return []
        found = [f"the first {len(self._first)} of {self.count:,} errors:" if self.count > 1 else "the error:"]
        found += [f"  {line}" for lines in self._first for line in lines]
        if self.count <= _SHOWN_ERRORS:
            return found
        found.append("by cause:")
        shown = self._causes.most_common(_SHOWN_CAUSES)
        for key, count in shown:
            found.append(f"  {count:,} × {self._examples[key] if count == 1 else key}")
        rest = self.count - sum(count for _, count in shown)
        if rest:
            more = len(self._causes) - len(shown)
            found.append(f"  {rest:,} × {'other causes' if self._others else f'{more:,} other causes'}")
        return found


def _cause(error: BaseException) -> str:
    """The first line of an error, without the place in the data."""
    if isinstance(error, driver.LmcError):
        return error.cause.partition("\n")[0]
    return driver.describe_error(error).partition("\n")[0]


def _few_lines(text: str) -> list[str]:
    """The lines of an error, its remedy last, in bounded number and length."""
    lines = [shorten(line.rstrip(), 2 * _WIDTH) for line in text.splitlines()]
    if len(lines) <= _SHOWN_LINES:
        return lines
    return [*lines[: _SHOWN_LINES - 2], "  …", lines[-1]]
