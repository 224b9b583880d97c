"""Where in the user's program something happened."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from types import TracebackType

from lmc.ir.errors import Location

# Frames of these folders are lmc's own: the frontend, and the surface that calls it.
_OWN = str(Path(__file__).resolve().parents[1]) + os.sep


def is_user_file(filename: str) -> bool:
    """Whether code of ``filename`` is the user's: not lmc's own and not generated (``<string>``)."""
    return not filename.startswith(_OWN) and not filename.startswith("<string>")


def user_location() -> Location | None:
    """The innermost line of the user's code that is running now; None where there is none."""
    frame = inspect.currentframe()
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return Location(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


def raised_at(traceback: TracebackType | None) -> Location | None:
    """The innermost line of the user's code in ``traceback``."""
    found: Location | None = None
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if is_user_file(filename):
            found = Location(filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
