"""Objects of one process in a child that ``os.fork`` makes: the child gets its own, and frees none of its parent's."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def keep_for_ever(inherited: object) -> None:
    """Take a reference to ``inherited`` that is never given back, not even when the interpreter ends.

    Threads, event loops and models that a child inherits are copies without their threads: what frees them may wait
    for these, or take the file descriptors that the child shares from its parent.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class PerProcess(Generic[T]):
    """One object for each process, made on first use by ``make``, for threads that come at the same time too.

    Make it at the level of a module: it is told of each fork for as long as the process lives.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._lock = threading.Lock()
        os.register_at_fork(
            before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._begin_child
        )

    def get(self) -> T:
        """That of this process."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    @property
    def made(self) -> T | None:
        """That of this process; None where nothing has used it."""
        return self._made

    def _begin_child(self) -> None:
        keep_for_ever(self._made)
        self._made = None
        self._lock.release()
