"""One run, token by token."""

from __future__ import annotations

import asyncio
import os
import queue
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

from lmc.driver.run.result import Result
from lmc.driver.run.start import Arguments, BoundCall, check_may_wait, raise_error
from lmc.driver.targets.cancelling import cancelled_error
from lmc.driver.targets.service import Running
from lmc.ir.engine.forks import forked
from lmc.ir.errors import InputError, RequestCancelledError
from lmc.ir.profile import Profile
from lmc.runtime.events import OnEvent, TokenEvent


class Stream:
    """Token events of one run, as they come. Iterating raises the run's error at its end; ``result`` is set then.

    Use it in a ``with`` block, or ``close`` it, to cancel a run before its end. A stream that nothing refers to is
    cancelled too. Every use in a child that ``os.fork`` made during the run raises ``EngineError``.
    """

    def __init__(self, start: BoundCall, arguments: Arguments) -> None:
        check_may_wait()
        self._process = os.getpid()
        events: queue.SimpleQueue[TokenEvent | None] = queue.SimpleQueue()
        results: dict[int, Result] = {}
        prepared = start.prepare([arguments])
        self._program = start.function.name

        async def main() -> None:
            try:
                await start.work(prepared, results.__setitem__, events.put)
            finally:
                events.put(None)

        self._results = results
        self._events = events
        self._over = False
        self._running = start.home.loop.start(main())
        weakref.finalize(self, _leave, self._running, self._process).atexit = False

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> TokenEvent:
        self._check_process()
        event = None if self._over else self._events.get()
        if event is not None:
            return event
        if not self._over:
            self._over = True
            raise_error(self.result)
        raise StopIteration

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def result(self) -> Result:
        """The result; waits for the run to end, without taking its events. The run's error is ``Result.error``.

        That is a ``RequestCancelledError`` where the stream was closed before the run was over.
        """
        self._check_process()
        try:
            self._running.result()
        except RequestCancelledError as error:
            self._results.setdefault(0, Result.failed(error, Profile(self._program)))
        return self._results[0]

    def close(self) -> None:
        """Cancel the run, unless it is over."""
        self._check_process()
        self._over = True
        self._running.stop()

    def _check_process(self) -> None:
        """Raise ``EngineError`` in a forked child: the run is in its parent."""
        if os.getpid() != self._process:
            raise forked()


def _leave(running: Running[None], process: int) -> None:
    """Cancel a run whose events and result can be taken by no one any more: it would go on at a cost."""
    if os.getpid() == process:
        with suppress(RuntimeError):  # the loop is closed
            running.cancel()


class AsyncStream:
    """``Stream`` for ``async for``; the run of the program starts with the first step."""

    def __init__(self, program: str, start: Callable[[], Awaitable[BoundCall]], arguments: Arguments) -> None:
        self._program = program
        self._start = start
        self._arguments = arguments
        self._result: Result | None = None
        self._work: asyncio.Future[Result] | None = None
        self._closed = False

    @property
    def is_over(self) -> bool:
        """True if there is a ``result``."""
        return self._result is not None

    def close(self) -> None:
        """Cancel the run, unless it is over: it ends with ``RequestCancelledError``. Call it in the event loop."""
        self._closed = True
        if self._work is not None:
            self._work.cancel()

    @property
    def result(self) -> Result:
        """The result. Raises ``InputError`` before the last event was taken."""
        if self._result is None:
            raise InputError("the stream is not at its end yet", remedy="take its events first: async for …")
        return self._result

    async def __aiter__(self) -> AsyncGenerator[TokenEvent]:
        events: asyncio.Queue[TokenEvent | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(event: TokenEvent | None) -> None:
            with suppress(RuntimeError):  # the loop is closed: late events of the engine are dropped
                loop.call_soon_threadsafe(events.put_nowait, event)

        work = self._work = asyncio.ensure_future(self._run(tell))
        work.add_done_callback(lambda _: tell(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            self._result = await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        raise_error(self._result)

    async def _run(self, tell: OnEvent) -> Result:
        """The result. An interrupt by the user's code is one: raised in this task, it would end the event loop."""
        try:
            if not self._closed:
                start = await self._start()
                return (await start.gather([self._arguments], tell))[0]
        except asyncio.CancelledError:
            if not self._closed:
                raise
        except KeyboardInterrupt as error:
            return Result.failed(error, Profile(self._program))
        return Result.failed(cancelled_error(), Profile(self._program))
