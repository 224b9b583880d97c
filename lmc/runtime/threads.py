"""Threads for the user's functions: bounded, and never waited for at the end of the process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")
_Work = tuple[Future[Any], Callable[[], Any]]


class DaemonPool(Executor):
    """At most ``limit`` daemon threads, started as work comes.

    The standard ``ThreadPoolExecutor`` joins its threads when the interpreter ends: Ctrl-C would hang until the slowest
    tool answers. A daemon thread ends with the process.
    """

    def __init__(self, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run ``fn(*args, **kwargs)`` in a thread. Raises ``RuntimeError`` after ``shutdown``."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is shut down")
            self._work.put((future, lambda: fn(*args, **kwargs)))
            if self._idle > 0:
                self._idle -= 1
            elif self._threads < self._limit:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; nothing is waited for. What runs goes on, ``cancel_futures`` cancels what waits."""
        del wait
        with self._lock:
            self._closed = True
            while cancel_futures:
                try:
                    work = self._work.get_nowait()
                except queue.Empty:
                    break
                if work is not None:
                    work[0].cancel()
            for _ in range(self._threads):
                self._work.put(None)

    def _serve(self) -> None:
        while True:
            work = self._work.get()
            if work is None:
                return
            future, call = work
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:  # handed to whoever waits for the future, as executors do
                    future.set_exception(error)
                else:
                    future.set_result(result)
            del work, future, call
            with self._lock:
                self._idle += 1
