"""Errors that name the user's line, the cause and the remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from lmc.ir.usage import Attempt, Timing, Usage


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's program.

    ``column`` is that of the call there, in characters from 1, if it is known. It tells calls of one line apart for
    readers; locations that differ in it are equal, and texts leave it out.
    """

    file: str
    line: int
    column: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class LmcError(Exception):
    """The base of all errors of lmc.

    ``cause`` says what is wrong, ``remedy`` what to do about it, ``location`` where in the user's program. ``usage`` is
    what the engine computed for a request that failed with this error; None if no request did, or none was begun.
    ``attempts`` are its parts, where the request had several attempts, or answers that did not come whole.
    ``timing`` are its times, where the engine measures them.
    ``ends_run``: no handler of the program catches it (``cf.try``), because the run itself is over. ``ends_batch``: the
    other rows of a batch end with it, and none of them is finished by it: a later run may go on (``--resume``). An
    engine's error is, in a batch of Python, the result of each row that it stops.
    """

    usage: Usage | None = None
    attempts: tuple[Attempt, ...] = ()
    timing: Timing | None = None
    ends_run: ClassVar[bool] = False
    ends_batch: ClassVar[bool] = False

    def __init__(self, cause: str, *, remedy: str | None = None, location: Location | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy
        self.location = location

    @property
    def unknown_calls(self) -> int:
        """The number of attempts that may have cost more than they count."""
        return sum(not each.is_whole for each in self.attempts)

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


class LmcWarning(UserWarning):
    """A warning of lmc itself, at a line of the user's program."""


class CaptureError(LmcError):
    """A program that neither capture nor eager execution can run. The remedy is a change of the program's code."""


class ParseError(LmcError):
    """A syntax error in ``.lmir`` text. The message shows the line with a caret; the remedy is the form expected there.

    ``column`` counts from 1 in characters; ``excerpt`` is the source line and the line with the caret.
    """

    def __init__(self, cause: str, *, remedy: str, location: Location, column: int, excerpt: str) -> None:
        super().__init__(cause, remedy=remedy, location=location)
        self.column = column
        self.excerpt = excerpt

    def __str__(self) -> str:
        return f"{self.location}:{self.column}: error: {self.cause}\n{self.excerpt}\n  remedy: {self.remedy}"


class VerifyError(LmcError):
    """A module that breaks a rule of the IR. ``op`` is the op that breaks it, if it is one.

    The remedy is a change of the ``.lmir`` text. After a pass or a capture it is a defect of lmc.
    """

    op: object | None = None


class LoweringError(LmcError):
    """A module that asks for something the target cannot do, such as a constraint. The remedy is another target."""


class InputError(LmcError):
    """A wrong argument, option, row of data or file. The remedy names the accepted ones, or the nearest.

    ``argument`` is the name of the program's argument that is wrong; None where it is anything else.
    """

    argument: str | None = None


class PlanMismatchError(InputError):
    """A run that does not fit its plan: an assumption fails, or a host function is missing or has changed.

    The remedy is to pass the program that was compiled, or to compile it again.
    """

    ends_run = True


class EngineError(LmcError):
    """A request that an engine could not serve (NaN logits, no memory …). The remedy is an option of the engine."""


class EngineClosedError(EngineError):
    """The engine was closed before or during the request. The remedy is to call the program again."""

    ends_run = True


class ContextLengthError(EngineError):
    """Prompt and ``max_tokens`` do not fit in the model's context or in the KV pool.

    The remedy is a shorter prompt, a smaller ``max_tokens`` or a larger pool.
    """


class RequestTimeoutError(EngineError):
    """A request did not finish within its ``timeout``. The remedy is a longer one, or fewer rows at once."""


class BudgetError(EngineError):
    """A request that the budget of its run has no room for: it was not sent. Its row may go on in a later run.

    The remedy is a larger budget, with ``--resume`` where the run has a journal.
    """

    ends_run = True


class QuotaError(EngineError):
    """The provider refuses all requests of the account: its quota is used up, or it does not know the key or the model.

    The remedy is at the provider, or another key or model; then ``--resume``, where the run has a journal.
    """

    ends_run = True
    ends_batch = True


class RequestCancelledError(LmcError):
    """A request was cancelled: a stream was closed, a batch interrupted, or another branch of a race won."""

    ends_run = True


class JournalError(LmcError):
    """A journal that can't be written, or that lacks what a replay needs. It ends the whole run, which can be resumed.

    No handler of a program catches it, plain Python included (``lmc.ir.engine.hosts.ProgramStopped``).
    """

    ends_run = True
    ends_batch = True


class UnknownOutcomeError(JournalError):
    """A call of a tool that writes, which an earlier run began and whose result is not known. It ends its row alone.

    The remedy is to look what was written, then to let it be called again: ``--retry-writes``, or an idempotency key.
    """

    ends_batch = False


class ToolTimeoutError(LmcError, TimeoutError):
    """A tool did not finish within its ``timeout``. Also a ``TimeoutError``. The remedy is a longer one."""


class LoopLimitError(LmcError):
    """A loop had more rounds than its limit. The remedy is a higher limit, or a condition that ends the loop."""


class ConstraintError(LmcError):
    """A constraint that is refused or cannot be met, or an output that does not meet it.

    The remedy is a supported form of the constraint, or a larger ``max_tokens``. ``pointer`` is the JSON pointer of the
    schema's keyword that is to blame, ``position`` the character of the pattern (from 0).
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
