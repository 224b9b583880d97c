"""Lines of the user's program."""

from __future__ import annotations

import inspect
import linecache
import os
import sysconfig
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from lmc.ir.errors import Location

_FEWEST_TURNS = 3  # of a recursion; else it is one of a library
_LARGE = 10_000
_MOST = 64
# Of large functions: their code, where each span of it begins, and the line of that.
_LINES: dict[int, tuple[CodeType, list[int], list[int]]] = {}
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
# Frames of these folders are lmc's own: the frontend, and the surface that calls it.
_OWN = str(Path(__file__).resolve().parents[2]) + os.sep


def is_user_file(filename: str) -> bool:
    """Return True if code of ``filename`` is the user's: not lmc's, Python's or generated (``<string>``)."""
    if filename.startswith((_OWN, "<string>", "<frozen")):
        return False
    return not filename.startswith(_STANDARD) or "site-packages" in filename


def is_own_file(filename: str) -> bool:
    """Return True if the user writes ``filename``: it belongs to no installed package."""
    return is_user_file(filename) and "site-packages" not in filename


def location_of(file: str, line: int, offset: int) -> Location:
    """Return the place of a node of a file: ``offset`` counts bytes of UTF-8 from 0, as Python's trees do."""
    text = linecache.getline(file, line).encode("utf-8", "surrogatepass")[:offset]
    return Location(file, line, len(text.decode("utf-8", "replace")) + 1 if len(text) == offset else None)


def user_location() -> Location | None:
    """The innermost line of the user's code that is running now; None where there is none."""
    frame = inspect.currentframe()
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return Location(frame.f_code.co_filename, _line_of(frame))
        frame = frame.f_back
    return None


def _line_of(frame: FrameType) -> int:
    """``frame.f_lineno``, for which Python goes through all of a function's code each time."""
    code = frame.f_code
    if len(code.co_linetable) < _LARGE:
        return frame.f_lineno
    known = _LINES.get(id(code))
    if known is None:
        if len(_LINES) >= _MOST:
            _LINES.clear()
        spans = [(start, line) for start, _, line in code.co_lines() if line is not None]
        known = _LINES[id(code)] = (code, [start for start, _ in spans], [line for _, line in spans])
    _, starts, lines = known
    return lines[max(bisect_right(starts, frame.f_lasti) - 1, 0)]


def recurs_at(traceback: TracebackType | None) -> Location | None:
    """The line of the user's code by which the recursion in ``traceback`` goes on.

    The innermost line belongs to whatever function the recursion calls when Python's stack ends. The lines of the
    recursion itself are in the traceback once per turn, most often of all; of several, the first to run is taken.
    """
    lines: Counter[Location] = Counter()
    entry = traceback
    while entry is not None:
        filename = entry.tb_frame.f_code.co_filename
        if is_user_file(filename):
            lines[Location(filename, entry.tb_lineno)] += 1
        entry = entry.tb_next
    turns = max(lines.values(), default=0)
    if turns < _FEWEST_TURNS:
        return raised_at(traceback)
    return next(line for line, count in lines.items() if 2 * count >= turns)


def raised_at(traceback: TracebackType | None) -> Location | None:
    """The innermost line of the user's code in ``traceback``."""
    found: Location | None = None
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if is_user_file(filename):
            found = Location(filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
