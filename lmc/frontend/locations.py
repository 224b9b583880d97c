"""Where in the user's program something happened."""

from __future__ import annotations

import inspect
import os
import sysconfig
from pathlib import Path
from types import TracebackType

from lmc.ir.errors import Location

_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
# Frames of these folders are lmc's own: the frontend, and the surface that calls it.
_OWN = str(Path(__file__).resolve().parents[1]) + os.sep


def is_user_file(filename: str) -> bool:
    """Whether code of ``filename`` is the user's: not lmc's or Python's own, and not generated (``<string>``)."""
    if filename.startswith((_OWN, "<string>", "<frozen")):
        return False
    return not filename.startswith(_STANDARD) or "site-packages" in filename


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
