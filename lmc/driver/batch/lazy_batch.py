"""A batch whose rows are read while others run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context

from lmc.driver.batch.windows import WindowedRun
from lmc.driver.run.result import Result
from lmc.driver.run.start import Arguments
from lmc.ir.errors import InputError

_STOP_SECONDS = 20.0

LazyRows = Iterable[Arguments | InputError]
"""Rows that are read as they are needed: arguments, or why a row has none."""


class LazyBatch:
    """Reads rows in the thread that owns their iterator, while others run and finish.

    ``run`` has no chunks of its own; a thread iterates over it.
    """

    def __init__(self, run: WindowedRun) -> None:
        self._run = run
        self._read = 0
        self._found: dict[int, Result] = {}
        self._end: Future[None] = Future()
        self._end.set_running_or_notify_cancel()  # only its own thread ends it

    def finish(self, rows: LazyRows) -> None:
        """Read ``rows`` and wait until all are finished. An error of reading or of waiting stops the rows that run."""
        self._begin()
        try:
            for row in rows:
                if not self._run.wait_for_room():
                    break
                self._put(row)
            self._run.end()
            self._end.result()
        except BaseException:
            self._run.cancel()
            wait([self._end], _STOP_SECONDS)
            raise

    async def afinish(self, rows: LazyRows) -> None:
        """``finish`` for use in an event loop, in whose thread ``rows`` are read."""
        self._begin()
        try:
            for row in rows:
                wait_for_room = self._run.wait_for_room
                if not (wait_for_room() if self._run.has_room else await asyncio.to_thread(wait_for_room)):
                    break
                self._put(row)
            self._run.end()
            await asyncio.wrap_future(self._end)
        except BaseException:
            self._run.cancel()
            await asyncio.wait([asyncio.ensure_future(asyncio.to_thread(wait, [self._end], _STOP_SECONDS))])
            raise

    def results(self, unfinished: Result) -> list[Result]:
        """The results of all rows that were read, in order; ``unfinished`` for those that have none."""
        return [self._found.get(number, unfinished) for number in range(self._read)]

    def _begin(self) -> None:
        context = copy_context()  # programs are captured there
        threading.Thread(target=context.run, args=(self._collect,), name="lmc-batch", daemon=True).start()

    def _put(self, row: Arguments | InputError) -> None:
        self._run.put([(self._read, row)])
        self._read += 1

    def _collect(self) -> None:
        try:
            self._found.update(self._run)
        except BaseException as error:
            self._end.set_exception(error)
        else:
            self._end.set_result(None)
