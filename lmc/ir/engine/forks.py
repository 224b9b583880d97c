"""Objects of one process in a child that ``os.fork`` makes: the child gets its own, and frees none of its parent's."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from lmc.ir.errors import EngineError

T = TypeVar("T")


class _Process:
    """The state of this process that decides what its forked children may do."""

    def __init__(self) -> None:
        self.runs_model = False
        self.is_refused = False
        self.busy: set[object] = set()  # adding and discarding are atomic: no lock that a child could inherit

    def begin_child(self) -> None:
        """Refuse programs in a child whose parent had the threads of a model, or was at work for lmc in any thread.

        A thread at work may hold locks, those of modules that it imports among them, which are never released here.
        """
        self.is_refused = self.is_refused or self.runs_model or bool(self.busy)


_PROCESS = _Process()
os.register_at_fork(after_in_child=_PROCESS.begin_child)


def forked() -> EngineError:
    """Return the error for a child made by ``os.fork``, which has no thread but the one that forked."""
    return EngineError(
        "no model can run in this process: it was forked from one that runs a model, and threads do not survive a fork",
        remedy='start processes with the spawn method (multiprocessing.get_context("spawn")), or before a model runs',
    )


def check_process() -> None:
    """Raise ``EngineError`` in a forked child that can run no program. Takes no lock and imports nothing."""
    if _PROCESS.is_refused:
        raise forked()


def claim_process() -> None:
    """Note that the threads of a model start in this process.

    Raises:
        EngineError: they started in a parent of it, and did not survive the fork.
    """
    check_process()
    _PROCESS.runs_model = True


def begin_work() -> object:
    """Note that lmc is at work in some thread until ``end_work``: children forked meanwhile are refused."""
    token = object()
    _PROCESS.busy.add(token)
    return token


def end_work(token: object) -> None:
    """End what ``begin_work`` began."""
    _PROCESS.busy.discard(token)


@contextmanager
def at_work() -> Generator[None]:
    """Note that lmc is at work during the block.

    Raises:
        EngineError: see ``check_process``.
    """
    check_process()
    token = begin_work()
    try:
        yield
    finally:
        end_work(token)


def is_at_work() -> bool:
    """Return True if lmc is at work in any thread of this process."""
    return bool(_PROCESS.busy)


def keep_for_ever(inherited: object) -> None:
    """Take a reference to ``inherited`` that is never given back, not even when the interpreter ends.

    Threads, event loops and models that a child inherits are copies without their threads: what frees them may wait
    for these, or take the file descriptors that the child shares from its parent.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


class PerProcess(Generic[T]):
    """One object for each process, made on first use by ``make``, for threads that come at the same time too.

    Make it at the level of a module: its fork handler stays registered for as long as the process lives.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._lock = threading.Lock()
        self._holds_for_fork = False
        os.register_at_fork(before=self._hold, after_in_parent=self._release, after_in_child=self._begin_child)

    def get(self) -> T:
        """Return the object of this process; made on first use."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    @property
    def made(self) -> T | None:
        """The object of this process, or None before its first use."""
        return self._made

    def _hold(self) -> None:
        self._lock.acquire()
        self._holds_for_fork = True

    def _release(self) -> None:
        if self._holds_for_fork:  # not where this was made while the process was about to fork
            self._holds_for_fork = False
            self._lock.release()

    def _begin_child(self) -> None:
        keep_for_ever(self._made)
        self._made = None
        self._holds_for_fork = False
        self._lock = threading.Lock()
