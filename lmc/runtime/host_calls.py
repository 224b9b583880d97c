"""Calls of the user's functions: an async one in the loop of tools, any other in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from lmc.ir.engine.hosts import (
    Answer,
    CallScope,
    Cancellation,
    ProgramStopped,
    as_async,
    calling_in,
    cancelled_by,
)
from lmc.ir.engine.observing import CallEnded
from lmc.ir.errors import RequestCancelledError
from lmc.runtime.threads import DaemonPool

Observe = Callable[[], CallEnded]
"""Called when a call starts; gives the callback for its end."""


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
    scope: CallScope,
    early: bool = False,
    observe: Observe | None = None,
) -> HostRun:
    """Begin a call. A speculative one (``early``) gives way to all others that wait for a thread.

    ``scope`` numbers the tools that it calls, itself if it is one.
    """
    asynchronous = as_async(host)
    if asynchronous is not None:
        ended = None if observe is None else observe()
        with calling_in(scope):
            future = asynchronous.submit(*positional, **keyword)
        if ended is not None:
            future.add_done_callback(lambda done: ended(_error_of(done)))
        return HostRun(future, (future.cancel,), in_thread=False)
    cancellation = Cancellation()
    work = partial(_caught, cancellation, scope, partial(host, *positional, **keyword), observe)
    future = pool.submit_early(work) if early else pool.submit(work)
    return HostRun(future, (cancellation.cancel, partial(pool.abandon, future)), in_thread=True)


def _caught(cancellation: Cancellation, scope: CallScope, call: Callable[[], Any], observe: Observe | None) -> Answer:
    """Call a host function in its thread. What it raises comes back as a value: futures don't carry every exception."""
    ended = None if observe is None else observe()
    answer: Answer
    try:
        with cancelled_by(cancellation), calling_in(scope):
            answer = call(), None
        scope.called()
    except ProgramStopped as stopped:
        answer = None, stopped.error
    except BaseException as error:  # SystemExit of one instance must not end a worker of the batch
        answer = None, error
    if ended is not None:
        ended(answer[1])
    return answer


def _error_of(done: Future[Answer]) -> BaseException | None:
    if done.cancelled():
        return RequestCancelledError("the call of a tool was cancelled")
    return done.exception() or done.result()[1]
