"""The conditions and loops of a capture that are open: where they begin and end, and how long one may take."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

from lmc.frontend.breaks import Exit
from lmc.frontend.emitting import Checkpoint, Emitter
from lmc.frontend.regions import MAX_OPEN

MAX_STEPS = 20_000
"""How many decisions an arm that may not be taken may come to before its capture is given up."""


class Constructs(Emitter):
    """The part of ``Recorder`` that counts what is open."""

    def begin_construct(self) -> None:
        """A condition or a loop begins whose way is known only when the program runs.

        What can't be captured in it ends the capture here: before the outermost of them.
        """
        if self.regions.depth >= MAX_OPEN:
            raise self.stop(
                f"conditions and loops stand deeper than {MAX_OPEN} in each other", "move a part into a function"
            )
        if self._entry is None:
            self._steps = 0
            self._entry = Checkpoint(len(self.regions.root.ops), len(self._recorded), self.ticks)
        self.last_host = None

    def end_construct(self) -> None:
        """It is in the graph."""
        if self.regions.depth == 0:
            self._entry = self._held_entry
        self.last_host = None

    @contextmanager
    def held_construct(self) -> Generator[None]:
        """Make one construct of what is captured inside: also behind a loop in it, a break ends the capture before."""
        outermost = self._held_entry is None
        self.begin_construct()
        if outermost:
            self._held_entry = self._entry
        try:
            yield
        finally:
            if outermost:
                self._held_entry = None
            self.end_construct()

    def leave_way(self) -> NoReturn:
        """End the way that runs now, of a condition or a loop of some function; where there is none, the program."""
        if self.branch is not None:
            self.branch.exited = True
        raise Exit(self.branch)

    def retrace(self, ticks: int) -> None:
        """A round of a loop is traced anew, which began after so many operations."""
        self.ticks = ticks
        self.served = {tick: op_id for tick, op_id in self.served.items() if tick <= ticks}
        self.constructs = {tick: ends for tick, ends in self.constructs.items() if tick <= ticks}
        self.last_host = None

    def step(self) -> None:
        """Count one decision. Breaks where an arm that may not be taken goes on and on."""
        self._steps += 1
        if self.regions.depth and self._steps > MAX_STEPS:
            raise self.stop(
                f"one way through a condition takes more than {MAX_STEPS:,} decisions",
                "bound the loops of that way, or do its work in a tool",
            )
