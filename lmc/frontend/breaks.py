"""The end of a capture: the break shown to the user, and the exception that carries it out of the user's function."""

from __future__ import annotations

from dataclasses import dataclass

from lmc.ir.errors import Location


@dataclass(frozen=True, slots=True)
class Break:
    """Why the program could be captured only up to ``location``; from there it runs eagerly, once per instance."""

    location: Location | None
    cause: str
    remedy: str

    def __str__(self) -> str:
        where = "" if self.location is None else f"{self.location}: "
        return f"{where}{self.cause}\n  remedy: {self.remedy}"


class CaptureBreak(BaseException):
    """Ends a capture. A BaseException, so that no ``except Exception`` of the user's can swallow it."""

    def __init__(self, reason: Break) -> None:
        super().__init__(str(reason))
        self.reason = reason


class TooDeepBreak(CaptureBreak):
    """Ends it where conditions stand too deep in each other: a loop around may be one of the run, not known rounds."""
