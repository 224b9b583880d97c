"""Ctrl-C and SIGTERM: both end a command in order, with the conventional exit code."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
SIGNALLED = 128
"""Plus the number of a signal: the exit code of a process that it ended."""


def end_at_once(number: int, _frame: FrameType | None) -> NoReturn:
    """Handle a signal while Python starts or ends, when there are no results to keep."""
    os._exit(SIGNALLED + number)


def _raise() -> None:
    raise KeyboardInterrupt


class Interrupts:
    """In the block, the first signal calls ``tell`` (at first: raises ``KeyboardInterrupt``), the second kills.

    A signal that the process was started to ignore stays ignored.
    """

    def __init__(self) -> None:
        self.tell: Callable[[], None] = _raise
        self._number = int(signal.SIGINT)
        self._before: dict[int, Any] = {}

    @property
    def exit_code(self) -> int:
        """The exit code of a process that the signal ended: 130 for Ctrl-C, 143 for SIGTERM."""
        return SIGNALLED + self._number

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def raising(self) -> Generator[None]:
        """In the block, the first signal raises ``KeyboardInterrupt``: it waits for something outside the process."""
        tell, self.tell = self.tell, _raise
        try:
            yield
        finally:
            self.tell = tell

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._number = number
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        self.tell()
