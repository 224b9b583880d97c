"""Calls of the user's functions, as those see them who run a module: asynchronous ones, and runs that are cancelled.

They live in this leaf package because tools (``lmc.frontend``), the executor and the driver have to agree on them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, cast

Answer = tuple[Any, BaseException | None]
"""The result of a call, or its exception: not every exception may be set on a future."""


class AsyncHost(Protocol):
    """A host function that takes no thread while it waits. Called, it blocks until its result is there."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def submit(self, *args: Any, **kwargs: Any) -> Future[Answer]:
        """Begin a call. Cancelling the future cancels it."""
        ...


def as_async(host: Callable[..., Any]) -> AsyncHost | None:
    """``host`` where it is one; None for a plain function."""
    return cast(AsyncHost, host) if hasattr(type(host), "submit") else None


class ProgramCancelled(BaseException):
    """Ends a program that was cancelled where it waits, as ``asyncio.CancelledError`` ends a task.

    No ``Exception``, because ``except Exception`` in a user's retry loop must not take it for a failure and go on.
    """


class Cancellation:
    """The cancellation of a run, or of a call that it waits for. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._calls: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Cancel what is under way."""
        with self._lock:
            self._cancelled = True
            calls, self._calls = self._calls, []
        for call in calls:
            call()

    @property
    def is_cancelled(self) -> bool:
        """True after ``cancel``: code that begins now belongs to a program that ends, and tidies up."""
        return self._cancelled

    def check(self) -> None:
        """Raise ``ProgramCancelled`` where it was cancelled."""
        if self._cancelled:
            raise ProgramCancelled

    @contextmanager
    def calling(self, cancel: Callable[[], object]) -> Generator[None]:
        """Have ``cancel`` called if it is cancelled before the block ends. Raises as ``check`` does."""
        with self._lock:
            self.check()
            self._calls.append(cancel)
        try:
            yield
        finally:
            with self._lock:
                if cancel in self._calls:
                    self._calls.remove(cancel)


CANCELLATION: ContextVar[Cancellation | None] = ContextVar("lmc_cancellation", default=None)
"""The cancellation of the run whose code runs now, or None."""


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Generator[None]:
    """Let ``cancellation`` stop the user's functions that are called in the block."""
    token = CANCELLATION.set(cancellation)
    try:
        yield
    finally:
        CANCELLATION.reset(token)
