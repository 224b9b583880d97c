"""Pure builtins for lists that a program changes, as functions that give the list as it is then, and for branches.

Each row is the name, what it does, the type of its result, and for which types it can't raise.
"""

from __future__ import annotations

import builtins as python
from collections.abc import Sequence
from typing import Any

from lmc.ir.builtin_types import ResultType, Safe, always_gives, never_safe
from lmc.ir.choices import checked_branch_count, checked_branch_index
from lmc.ir.types import ANY, INT, NONE, list_of


def _range(*bounds: int) -> list[int]:
    return list(python.range(*bounds))


def _interleaved(*sequences: Sequence[Any]) -> list[Any]:
    """The first item of each, then the second ones, and so on."""
    return [item for row in python.zip(*sequences, strict=True) for item in row]


def _check_lengths(*lengths: int) -> None:
    """Raise what ``zip(strict=True)`` does at the end of items of these numbers."""
    for _ in python.zip(*(python.range(min(lengths), length) for length in lengths), strict=True):
        pass


LIST_BUILTINS: tuple[tuple[str, Any, ResultType, Safe], ...] = (
    ("range", _range, always_gives(list_of(INT)), never_safe),
    ("interleaved", _interleaved, always_gives(list_of(ANY)), never_safe),
    ("check_lengths", _check_lengths, always_gives(NONE), never_safe),
    ("branch_count", checked_branch_count, always_gives(INT), never_safe),
    ("branch_index", checked_branch_index, always_gives(INT), never_safe),
)
