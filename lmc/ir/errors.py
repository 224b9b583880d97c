"""Errors that name the user's line, the cause and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.usage import Usage


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LmcError(Exception):
    """Base of every error lmc raises on purpose.

    ``cause`` says what is wrong, ``remedy`` what to do about it, ``location`` where in the user's program. ``usage`` is
    what the engine computed for a request that failed with this error; None where no request did, or none was begun.
    ``ends_run``: no handler of the program catches it (``cf.try``), because the run itself is over.
    """

    usage: Usage | None = None
    ends_run: ClassVar[bool] = False

    def __init__(self, cause: str, *, remedy: str | None = None, location: Location | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.location = location

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location is not None else ""
        remedy = f"\n  remedy: {self.remedy}" if self.remedy is not None else ""
        return f"{where}{self.cause}{remedy}"


def located(error: BaseException, location: Location | None) -> BaseException:
    """``error``, with the user's line where it has none yet: one of lmc's own as ``location``, any other as a note."""
    if location is None:
        return error
    if isinstance(error, LmcError):
        error.location = error.location or location
        return error
    note = f"in the program at {location}"
    if note not in getattr(error, "__notes__", ()):  # one exception may be raised for several instances
        error.add_note(note)
    return error


class CaptureError(LmcError):
    """The program is wrong in a way that neither capture nor eager execution could run."""


class ParseError(LmcError):
    """A text that is no ``.lmir``: where it goes wrong, with the line itself and a caret under the place.

    ``column`` counts from 1 in characters; ``excerpt`` is the source line and the line with the caret.
    """

    def __init__(self, cause: str, *, remedy: str, location: Location, column: int, excerpt: str) -> None:
        super().__init__(cause, remedy=remedy, location=location)
        self.column = column
        self.excerpt = excerpt

    def __str__(self) -> str:
        return f"{self.location}:{self.column}: error: {self.cause}\n{self.excerpt}\n  remedy: {self.remedy}"


class VerifyError(LmcError):
    """A module breaks a rule of the IR; ``op`` is the op that does, where it is one."""

    op: object | None = None


class LoweringError(LmcError):
    """A module asks for something the target can't do."""


class InputError(LmcError):
    """An argument, a row of data or a file that the program can't take."""


class PlanMismatchError(InputError):
    """The run does not fit what was compiled: an assumption fails, or a host function is missing."""

    ends_run = True


class EngineError(LmcError):
    """An engine could not serve a request (prompt too long, NaN logits, closed engine …)."""


class EngineClosedError(EngineError):
    """The engine was closed before the request or during it."""

    ends_run = True


class ContextLengthError(EngineError):
    """Prompt and ``max_tokens`` do not fit in the model's context or in the KV pool."""


class RequestTimeoutError(EngineError):
    """The request did not finish within its ``timeout``."""


class RequestCancelledError(LmcError):
    """The request was cancelled by its owner."""

    ends_run = True


class ToolTimeoutError(LmcError, TimeoutError):
    """A tool did not finish within its ``timeout``. Also a ``TimeoutError``."""


class LoopLimitError(LmcError):
    """A loop of the program went on for more rounds than its limit allows."""


class ConstraintError(LmcError):
    """A constraint that is refused, can't be met, or that an output does not meet.

    ``pointer`` is the JSON pointer of the schema's keyword that is to blame, ``position`` the character of the pattern
    (from 0).
    """

    def __init__(
        self,
        cause: str,
        *,
        remedy: str | None = None,
        location: Location | None = None,
        pointer: str | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(cause, remedy=remedy, location=location)
        self.pointer = pointer
        self.position = position
