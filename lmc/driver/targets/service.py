"""The process-wide service: a thread with an event loop, and the engines that were started."""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from typing import Any, Generic, TypeVar

from lmc.driver.targets.cancelling import cancelled_error, error_of
from lmc.driver.targets.constraints import ConstraintCaches
from lmc.driver.targets.engine_cache import EngineCache
from lmc.ir.engine.forks import PerProcess, begin_work, end_work
from lmc.ir.engine.loop_thread import LoopThread
from lmc.ir.errors import LmcError

T = TypeVar("T")
_STOP_SECONDS = 10.0


class Running(Generic[T]):
    """Work in the background loop, and its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._work = begin_work()
        self._end: Future[T] = Future()
        self._end.set_running_or_notify_cancel()  # so that only the work ends it, not a loop that stops waiting
        loop.call_soon_threadsafe(self._begin, work)

    def result(self, timeout: float | None = None) -> T:
        """Wait for the end. Raises what the work raised, ``RequestCancelledError`` where it was cancelled."""
        return self._end.result(timeout)

    async def wait(self) -> T:
        """Wait for the end in another event loop; being cancelled there cancels the work, and waits until it is."""
        try:
            return await asyncio.wrap_future(self._end)
        except asyncio.CancelledError:
            self.cancel()
            await self._over()
            raise

    def cancel(self) -> None:
        """Cancel the work, unless it is over."""
        if not self._end.done():
            self._loop.call_soon_threadsafe(self._cancel)

    def stop(self) -> None:
        """Cancel the work, unless it is over, and wait until it is (for a while, if it does not listen)."""
        if not self._end.done():
            self.cancel()
            wait([self._end], _STOP_SECONDS)

    async def _over(self) -> None:
        """Wait for the end as ``stop`` does, whatever it is."""
        end = asyncio.wrap_future(self._end)
        try:
            await asyncio.wait([end], timeout=_STOP_SECONDS)
        finally:
            if not end.cancel():
                end.exception()  # asyncio reports errors that were never retrieved

    def _begin(self, work: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(work)
        self._task.add_done_callback(self._ended)

    def _cancel(self) -> None:
        self._task.cancel()

    def _ended(self, task: asyncio.Task[T]) -> None:
        end_work(self._work)
        error = cancelled_error() if task.cancelled() else task.exception()
        if error is None:
            self._end.set_result(task.result())
        else:
            self._end.set_exception(error_of(error))


class BackgroundLoop(LoopThread):
    """The event loop of programs, for scripts, notebooks and other loops alike."""

    def __init__(self) -> None:
        super().__init__("lmc-loop")

    def start(self, work: Coroutine[Any, Any, T]) -> Running[T]:
        """Run ``work`` there."""
        return Running(self._loop, work)

    def check_outside(self) -> None:
        """Raise ``LmcError`` in the loop's own thread, where waiting for a program would wait forever."""
        if self.is_here:
            raise LmcError(
                "a program was run from a callback of another program's run",
                remedy="put what the callback gets into a queue, and run the program from your own thread",
            )


class Service:
    """Loop, engines and compiled constraints of one process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.loop = BackgroundLoop()
        self.engines = EngineCache()
        self.constraints = ConstraintCaches()

    def close(self) -> None:
        """Stop what runs and close the engines. Nothing in a forked child, which has neither."""
        if os.getpid() != self._process:
            return
        self.loop.close()
        self.engines.close()


def service() -> Service:
    """The service of this process: made on first use, closed at exit. A forked child gets its own."""
    return _SERVICE.get()


def service_in_use() -> Service | None:
    """The service of this process; None where nothing has used it."""
    return _SERVICE.made


def _make_service() -> Service:
    made = Service()
    atexit.register(made.close)
    return made


_SERVICE = PerProcess(_make_service)
