"""Calls of tools: attempts, timeouts, threads and the loop of asynchronous ones.

All coroutines run in one event loop of their own, whatever calls them: what a client of the user's keeps open stays
usable, and a tool that blocks holds up no program but those that wait for tools.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import logging
import os
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any

from lmc.frontend.failures import too_deep
from lmc.frontend.language.running import ACTIVE, HOST
from lmc.ir.engine.forks import PerProcess
from lmc.ir.engine.hosts import (
    CANCELLATION,
    SCOPE,
    Answer,
    CallScope,
    Cancellation,
    ProgramCancelled,
    ProgramStopped,
    stops_program,
)
from lmc.ir.engine.loop_thread import LoopThread
from lmc.ir.errors import LmcError, Location, ToolTimeoutError

# Errors that indicate a bug in the tool or the program (NotImplementedError included): retrying can't help.
_HOPELESS = (
    LmcError,
    AssertionError,
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    RecursionError,
    SyntaxError,
    TypeError,
)
_LOGGER = logging.getLogger("lmc.tools")
_STAMINA_LOGGER = logging.getLogger("stamina")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_JITTER = random.Random()  # noqa: S311 - not the module's own, whose draws belong to the user's program


class _ToolName(str):
    """The name by which stamina knows a tool."""


def _is_no_tool(record: logging.LogRecord) -> bool:
    """Return False for stamina's own warnings of retries of tools: lmc's have their names."""
    return not isinstance(getattr(record, "stamina.callable", None), _ToolName)


@dataclass(frozen=True, slots=True)
class Retries:
    """The retries of a failing tool: their number, the errors, and the seconds that each attempt may take.

    With ``retry_on`` None that is every error but those of a program that is wrong itself.
    """

    retries: int = 0
    timeout: float | None = None
    retry_on: tuple[type[Exception], ...] | None = None


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """The call policy of the tool ``name``. ``stoppable``: an attempt that took too long is over.

    An async function is cancelled then, but a plain one that writes may still write.
    """

    name: str
    given: Retries
    is_async: bool = False
    stoppable: bool = True

    def is_retried(self, error: BaseException) -> bool:
        """Return True if a call that raised ``error`` is made again."""
        if isinstance(error, ToolTimeoutError) and not self.stoppable:
            return False
        if self.given.retry_on is not None:
            return isinstance(error, self.given.retry_on)
        return isinstance(error, ToolTimeoutError) or (
            isinstance(error, Exception) and not isinstance(error, _HOPELESS)
        )

    def call(self, work: Callable[[], Any], location: Location | None) -> Any:
        """Return the result of ``work``, with retries. Raises its last error, a timeout at ``location``."""
        if self.given.timeout is not None:
            work = partial(self._within, self.given.timeout, work, location)
        if not self.given.retries:
            return work()
        for attempt in self._attempts():
            with attempt:
                if attempt.num > 1:
                    check_cancelled()  # a pause is not interrupted
                return work()
        raise AssertionError("the last attempt gives or raises")

    async def call_async(self, work: Callable[[], Awaitable[Any]], location: Location | None) -> Any:
        """The same for a function that has to be awaited."""
        if not self.given.retries:
            return await self._once(work, location)
        async for attempt in self._attempts():
            with attempt:
                return await self._once(work, location)
        raise AssertionError("the last attempt gives or raises")

    def _attempts(self) -> Any:
        """The attempts of one call, plain or to be awaited. Pauses grow from 0.05-0.1 to 2.5-5 seconds."""
        import stamina  # where something is retried, and not whenever lmc is imported

        failures = 0

        def again(error: Exception) -> bool | float:
            nonlocal failures
            if not self.is_retried(error):
                return False
            pause = min(_FIRST_PAUSE * 2.0**failures, _LONGEST_PAUSE) * _JITTER.uniform(0.5, 1.0)
            failures += 1
            if failures <= self.given.retries:
                kind, left = type(error).__name__, self.given.retries - failures + 1
                message = "the tool %r failed (%s: %s); it is called again in %.2f seconds, %d more times at most"
                _LOGGER.warning(message, self.name, kind, error, pause, left)
            return pause

        _STAMINA_LOGGER.addFilter(_is_no_tool)
        attempts = stamina.retry_context(again, attempts=self.given.retries + 1, timeout=None)
        return attempts.with_name(_ToolName(self.name), (), {})  # hooks of stamina get no arguments of the user's

    async def _once(self, work: Callable[[], Awaitable[Any]], location: Location | None) -> Any:
        limit = asyncio.timeout(self.given.timeout)
        try:
            async with limit:
                return await work()
        except TimeoutError:
            if limit.expired():
                raise self._late(location) from None
            raise

    def _within(self, seconds: float, work: Callable[[], Any], location: Location | None) -> Any:
        """Return the result of ``work``, run in a thread of its own; nothing stops it if it takes too long."""
        future: Future[Any] = Future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                result = context.run(work)
            except BaseException as error:  # raised where it is waited for
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, name="lmc-tool", daemon=True).start()
        if not wait([future], seconds).done:
            raise self._late(location)
        return future.result()

    def _late(self, location: Location | None) -> ToolTimeoutError:
        more = "" if self.is_async else "; a plain function goes on in its thread, an async one is cancelled"
        return ToolTimeoutError(
            f"the tool {self.name!r} did not finish within {self.given.timeout:g} seconds",
            remedy=f"give it more time (@lmc.tool(timeout=…)), let it be tried again (retries=…), or catch this{more}",
            location=location,
        )


def check_cancelled() -> None:
    """Raise ``ProgramCancelled`` where the run that calls was cancelled."""
    cancellation = CANCELLATION.get()
    if cancellation is not None:
        cancellation.check()


def in_program() -> bool:
    """Return True while a program runs, as plain Python or as a graph that calls one of the user's functions."""
    return ACTIVE.get() is not None or HOST.get() is not None


def submit(work: Callable[[], Coroutine[Any, Any, Any]], name: str, scope: CallScope | None) -> Future[Answer]:
    """Begin a call of the async function ``name`` in the loop of tools. Cancelling the future cancels it.

    ``scope`` is that of the tools which it calls.
    """
    return asyncio.run_coroutine_threadsafe(_answer(work, name, scope), tool_loop().loop)


def wait_for(begin: Callable[[], Future[Answer]]) -> Any:
    """The result of the call that ``begin`` begins.

    Raises what it raised, and ``ProgramCancelled`` where the run is cancelled meanwhile; one that was cancelled before
    may call what it needs to tidy up.
    """
    cancellation = CANCELLATION.get()
    if cancellation is None or cancellation.is_cancelled:
        cancellation = Cancellation()
    future = begin()
    try:
        with cancellation.calling(future.cancel):
            result, error = future.result()
    except CancelledError:
        raise ProgramCancelled from None
    except BaseException:  # Ctrl-C, in a thread that waits
        future.cancel()
        raise
    if stops_program(error):
        raise ProgramStopped(error)
    if error is not None:
        raise error
    return result


async def _answer(work: Callable[[], Coroutine[Any, Any, Any]], name: str, scope: CallScope | None) -> Answer:
    # Programs that it calls are no part of the run: there is nothing here that could wait for them.
    ACTIVE.set(None)
    HOST.set(name)
    SCOPE.set(scope)
    try:
        return await work(), None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, LmcError(
            f"the tool {name!r} was cancelled, and not by the run that called it",
            remedy="catch asyncio.CancelledError in it where it awaits what others may cancel",
        )
    except RecursionError as error:
        return None, too_deep(error)
    except BaseException as error:  # SystemExit must not end the loop
        return None, error


class ToolLoop(LoopThread):
    """The event loop of all async tools of a process."""

    def __init__(self) -> None:
        super().__init__("lmc-tools")

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop itself."""
        return self._loop


def tool_loop() -> ToolLoop:
    """The loop of this process: made on first use, closed at exit. A forked child gets its own."""
    return _LOOP.get()


def in_tool_loop() -> bool:
    """Return True in an async tool, which must not wait for another one."""
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return False
    return running is tool_loop().loop


def _make_loop() -> ToolLoop:
    made, process = ToolLoop(), os.getpid()
    atexit.register(lambda: made.close() if os.getpid() == process else None)
    return made


_LOOP = PerProcess(_make_loop)
