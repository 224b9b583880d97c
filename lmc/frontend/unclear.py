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


@dataclass(slots=True, eq=False)
class Maybe:
    """What is there only where ``present``, a bool or a symbolic one, is true: a variable of a function or a state."""

    present: Any
    value: Any


class UnknownLength:
    """Base of what stands for items whose number only a run decides."""
