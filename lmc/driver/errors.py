"""Errors of the driver, and those of the IR that its clients handle."""

from __future__ import annotations

from lmc.ir.errors import InputError, LmcError, Location

__all__ = ["InputError", "LmcError", "ProgramImportError", "UsageError"]


class UsageError(InputError):
    """A wrong command line: no such file, no such program, wrong arguments. The remedy names the accepted ones."""


class TimelineMismatchError(InputError):
    """A timeline is of another program, other sources, another plan or other rows. The remedy is to record it again."""


class ProgramImportError(LmcError):
    """A file of the user raised while it was imported. ``traceback`` holds the frames of the user's own files.

    The remedy is a change at the line shown.
    """

    def __init__(self, cause: str, *, remedy: str, location: Location | None, trace: str) -> None:
        super().__init__(cause, remedy=remedy, location=location)
        self.traceback = trace
