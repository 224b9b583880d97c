"""What a capture knows of a name that the ways through a condition have left differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, eq=False)
class Unclear:
    """Stands for a value that could not be merged, or that is bound on some ways only: to read it ends the capture.

    ``because`` are cause and remedy, where they are not those of a condition.
    """

    name: str
    because: tuple[str, str] | None = None


ABSENT = Unclear("")
"""Stands for a name that is not bound at all."""


UNSURE = Unclear("")
"""Stands for what a handle notes of its context where the ways to here have left it differently."""


@dataclass(slots=True, eq=False)
class Maybe:
    """What is there only where ``present``, a bool or a symbolic one, is true: a variable of a function or a state."""

    present: Any
    value: Any


def one_or_unsure(left: Any, right: Any) -> Any:
    """What is ``left`` on one way and ``right`` on the other."""
    return left if left is right else UNSURE


class UnknownLength:
    """Base of what stands for items whose number only a run decides."""
