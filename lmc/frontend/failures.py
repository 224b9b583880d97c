"""Errors on their way out of a program: each of lmc's names a line of the program, and a recursion that is too deep."""

from __future__ import annotations

from collections.abc import Collection
from types import TracebackType

from lmc.frontend.source.locations import recurs_at
from lmc.ir.errors import CaptureError, LmcError, Location

_BOUND = "bound the recursion, or write it as a loop"
TOO_DEEP = "the program calls itself too deep"


class RecursionDepthError(CaptureError, RecursionError):
    """A program, or a function that it calls, calls itself more often than Python allows. Also a ``RecursionError``."""


def too_deep(error: RecursionError) -> LmcError:
    """The error for ``error`` at the line of the user's that recurs."""
    if isinstance(error, LmcError):
        return error
    return RecursionDepthError(f"{TOO_DEEP} for Python", remedy=_BOUND, location=recurs_at(error.__traceback__))


def name_line(error: LmcError, codes: Collection[int]) -> None:
    """Give ``error``, where it has no line yet, the innermost one of the functions with these code objects (by id).

    That is where an op of the graph says it comes from: the program's line, not that of a function it calls.
    """
    if error.location is None:
        error.location = _innermost(error.__traceback__, codes)


def _innermost(traceback: TracebackType | None, codes: Collection[int]) -> Location | None:
    found: Location | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if id(code) in codes:
            found = Location(code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
