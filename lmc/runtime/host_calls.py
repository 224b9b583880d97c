"""Calls of the user's functions: an async one in the loop of tools, any other in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from lmc.ir.engine.hosts import Answer, Cancellation, as_async, cancelled_by
from lmc.runtime.threads import DaemonPool


@dataclass(frozen=True, eq=False, slots=True)
class HostRun:
    """A call that has begun, or waits for a thread. ``cancels`` are called when its result is not needed any more.

    An async call ends then; a plain one can't be stopped, but is notified (``lmc.ir.engine.hosts.CANCELLATION``).
    """

    future: Future[Answer]
    cancels: tuple[Callable[[], object], ...]
    in_thread: bool

    def cancel(self) -> None:
        """Cancel it: its result is not needed any more."""
        for cancel in self.cancels:
            cancel()


def begin(
    host: Callable[..., Any],
    positional: Sequence[Any],
    keyword: dict[str, Any],
    pool: DaemonPool,
    *,
    early: bool = False,
) -> HostRun:
    """Begin a call. A speculative one (``early``) gives way to all others that wait for a thread."""
    asynchronous = as_async(host)
    if asynchronous is not None:
        future = asynchronous.submit(*positional, **keyword)
        return HostRun(future, (future.cancel,), in_thread=False)
    cancellation = Cancellation()
    work = partial(_caught, cancellation, host, positional, keyword)
    future = pool.submit_early(work) if early else pool.submit(work)
    return HostRun(future, (cancellation.cancel, partial(pool.abandon, future)), in_thread=True)


def _caught(
    cancellation: Cancellation, host: Callable[..., Any], positional: Sequence[Any], keyword: dict[str, Any]
) -> Answer:
    """Call a host function in its thread. What it raises comes back as a value: futures don't carry every exception."""
    try:
        with cancelled_by(cancellation):
            return host(*positional, **keyword), None
    except BaseException as error:  # SystemExit of one instance must not end a worker of the batch
        return None, error
