"""Exits of a piece of the program, and the flags that tell which of them a run takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmc.frontend.heap.state import State
from lmc.frontend.heap.values import Abstract, Symbol
from lmc.ir.builder import Builder


@dataclass(frozen=True, slots=True)
class Exit:
    """One way out. ``target`` is the construct that it leaves for: a loop, or the activation of a function."""

    kind: str  # "normal", "break", "continue", "return", "raise"
    target: int = 0


NORMAL = Exit("normal")
RAISE = Exit("raise")


@dataclass(slots=True, eq=False)
class Way:
    """The state of an exit where it is taken. ``payload`` is the value returned or raised."""

    state: State
    payload: Abstract | None = None


@dataclass(slots=True, eq=False)
class Outcome:
    """The exits of a piece of the program. None: every run leaves the program in it.

    ``flags`` hold, for exits, the value that is true where a run takes it. Of two exits one of them has a flag, of more
    all have; one alone needs none. ``base`` is the state that all ways were derived from; addresses from ``watermark``
    on are younger than that.
    """

    ways: dict[Exit, Way]
    base: State
    watermark: int
    flags: Mapping[Exit, Symbol] = field(default_factory=dict[Exit, Symbol])

    def without(self, exit: Exit) -> Outcome:
        """The other exits."""
        return Outcome(
            {other: way for other, way in self.ways.items() if other != exit},
            self.base,
            self.watermark,
            {other: flag for other, flag in self.flags.items() if other != exit},
        )


class Left(Exception):  # noqa: N818 - a signal, which is always caught
    """Ends the interpretation of a piece of the program of which no run gets to the end.

    Python's own exception carries it from where the piece ends to the construct that takes its exits.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__()
        self.outcome = outcome


@dataclass(slots=True, eq=False)
class Narrowing:
    """An arm that is open: its block, what runs where another exit was taken, and the flag of the normal one.

    ``negated``: the flag is true where another exit was taken.
    """

    around: Builder
    inner: Builder
    others: Outcome
    flag: Symbol
    negated: bool
    location: Any
    other: Builder
