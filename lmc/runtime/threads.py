"""Threads for the user's functions: bounded, and never waited for at the end of the process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")
_Work = tuple[Future[Any], Callable[[], Any]]
_MOST_ABANDONED = 16
"""Threads in abandoned calls, for each one of the limit, before they count as threads again."""


class DaemonPool(Executor):
    """At most ``limit`` daemon threads, started as work comes.

    The standard ``ThreadPoolExecutor`` joins its threads when the interpreter ends: Ctrl-C would hang until the slowest
    tool answers. A daemon thread ends with the process.

    Speculative work (``submit_early``) waits until no other work does, and has at most half of the threads, so
    that some are left for what comes meanwhile. Abandoned work (``abandon``) takes no place of the
    limit: it can't be stopped, and may hang for ever.
    """

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._changed = threading.Condition()
        self._certain: deque[_Work] = deque()
        self._early: deque[_Work] = deque()
        self._running: dict[Future[Any], bool] = {}  # whether it is early, of each one that somebody waits for
        self._abandoned = 0
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` in a thread. Raises ``RuntimeError`` after ``shutdown``."""
        return self._submit(self._certain, lambda: fn(*args, **kwargs))

    def submit_early(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """``submit`` for speculative work."""
        return self._submit(self._early, lambda: fn(*args, **kwargs))

    def abandon(self, future: Future[Any]) -> None:
        """Stop waiting for ``future``. If it has begun, its thread ends with it, and a new one may start."""
        if future.cancel():
            return
        with self._changed:
            if future in self._running and self._abandoned < _MOST_ABANDONED * self._limit:
                del self._running[future]
                self._abandoned += 1
                self._threads -= 1
                self._serve_waiting()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; nothing is waited for. What runs goes on, ``cancel_futures`` cancels what waits."""
        del wait
        with self._changed:
            self._closed = True
            waiting = [*self._certain, *self._early] if cancel_futures else []
            if cancel_futures:
                self._certain.clear()
                self._early.clear()
            self._changed.notify_all()
        for future, _ in waiting:
            future.cancel()

    def _submit(self, queue: deque[_Work], call: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._changed:
            if self._closed:
                raise RuntimeError("the pool is shut down")
            while queue and queue[0][0].cancelled():
                queue.popleft()
            queue.append((future, call))
            self._serve_waiting()
        return future

    def _serve_waiting(self) -> None:
        """See to it that a thread comes to what waits."""
        waiting = len(self._certain) + min(len(self._early), self._room_for_early)
        if waiting > self._idle and self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._threads}", daemon=True).start()
        else:
            self._changed.notify()

    @property
    def _room_for_early(self) -> int:
        return self._limit // 2 - sum(self._running.values())

    def _serve(self) -> None:
        while True:
            with self._changed:
                while not self._certain and not (self._early and self._room_for_early > 0):
                    if self._closed:
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                is_early = not self._certain
                future, call = (self._early if is_early else self._certain).popleft()
                self._running[future] = is_early
            _run(future, call)
            with self._changed:
                if self._running.pop(future, None) is None:
                    self._abandoned -= 1
                    return
            del future, call


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # handed to whoever waits for the future, as executors do
        future.set_exception(error)
    else:
        future.set_result(result)
