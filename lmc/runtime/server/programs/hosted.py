"""Programs as the endpoints use them. The driver makes them: the runtime knows plans, not programs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lmc.ir.usage import Usage
from lmc.runtime.events import TokenEvent
from lmc.runtime.server.jobs import ClientLane


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """The end of a run: its result as JSON data (a row of ``lmc run -o``), its cost, and its error."""

    row: dict[str, Any]
    usage: Usage
    error: BaseException | None = None


class ProgramRun(Protocol):
    """One run of a program, on the engine of the server."""

    def events(self) -> AsyncGenerator[TokenEvent | ProgramEnd]:
        """Yield tokens as they come, and the end. Close it to cancel the run. Raises what the run can't begin with."""
        ...

    def cancel(self) -> None:
        """Let the run end now, with an error."""
        ...


class HostedProgram(Protocol):
    """A program under its name."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> Mapping[str, Any]:
        """JSON data: ``name``, ``description``, ``arguments`` and ``value`` (JSON schemas)."""
        ...

    def run(self, row: bytes, seed: int | None, lane: ClientLane) -> ProgramRun:
        """Prepare a run with the arguments of a row, JSON text. Raises ``InputError`` that names the wrong one.

        ``seed`` is that of its random draws (None: the program's own).
        """
        ...
