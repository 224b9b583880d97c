"""Rows that are run while they are still being read: memory holds a few windows of them, however many there are."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lmc.driver.execute import OnResult
from lmc.driver.result import Result
from lmc.driver.service import Running, Service
from lmc.driver.start import Arguments
from lmc.ir.errors import InputError, RequestCancelledError
from lmc.ir.profile import Profile, Recording

WINDOW = 512
"""Rows that are scheduled together, and rows that are read ahead of those."""
START_BELOW = 256
"""The next window starts when fewer rows than this are under way, so that a slow row holds up no other."""
PATIENCE = 0.05
"""Seconds that a row waits for its window to fill: rows that come slowly are run as they come."""

_CLOSE_SECONDS = 10.0

Entry = tuple[int, Arguments | InputError]
"""A row's number and its arguments, or why it has none."""


class Work(Protocol):
    """How windows of rows are run."""

    @property
    def program(self) -> str:
        """Name of the program."""
        ...

    def prepare(self, numbers: Sequence[int], batch: Sequence[Arguments]) -> Any:
        """What ``run`` needs of these rows. Called in the thread of the iteration; may run the user's code."""
        ...

    async def run(self, prepared: Any, on_result: OnResult) -> None:
        """Run them, in the background loop; several windows may be under way."""
        ...

    def close(self) -> None:
        """Let go of what the windows shared. Called in the background loop, when none is under way."""
        ...


@dataclass(frozen=True)
class _Read:
    """A row was read."""

    entry: Entry


@dataclass(frozen=True)
class _AllRead:
    """There are no more rows, or reading them failed."""

    error: BaseException | None


@dataclass(frozen=True)
class _Found:
    """A row is finished."""

    number: int
    result: Result


@dataclass(frozen=True)
class _Ended:
    """A window is finished; ``error`` where it was not its rows that failed."""

    window: int
    error: BaseException | None


@dataclass(frozen=True)
class _Interrupt:
    """Somebody wants this to stop."""


_Event = _Read | _AllRead | _Found | _Ended | _Interrupt


class WindowedRun:
    """A run over rows: iterate over it for numbers and results, in the order in which the rows finish.

    A thread reads ahead. ``read`` counts the rows so far, ``all_read`` says whether there are more. What goes wrong
    outside of a row, and ``interrupt``, stop what runs; what is finished by then still comes, and then the error.
    """

    def __init__(self, home: Service, rows: Iterable[Entry], work: Work) -> None:
        self.read = 0
        self.all_read = False
        self._unfinished = Recording()
        self._home = home
        self._rows = rows
        self._work = work
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._ahead = threading.Semaphore(WINDOW)
        self._stopped = False
        self._preparing = False
        self._read_error: BaseException | None = None
        self._waiting: list[tuple[int, Arguments]] = []
        self._waiting_since = 0.0
        self._windows: dict[int, Running[None]] = {}
        self._started = 0
        self._under_way = 0

    def __iter__(self) -> Generator[tuple[int, Result]]:
        threading.Thread(target=self._read_ahead, name="lmc-rows", daemon=True).start()
        try:
            try:
                yield from self._follow()
            except GeneratorExit:
                raise
            except BaseException:
                self._stop()
                yield from self._left()
                raise
        finally:
            self._stop()

    @property
    def unfinished(self) -> Profile:
        """What the rows did that were stopped."""
        return self._unfinished.profile(self._work.program)

    def interrupt(self) -> None:
        """End the iteration with ``KeyboardInterrupt``. For the handler of a signal, in the iterating thread.

        No result gets lost on the way: the iteration is told, except in the user's code, which is interrupted.
        """
        if self._preparing:
            raise KeyboardInterrupt
        self._events.put(_Interrupt())

    def _read_ahead(self) -> None:
        error: BaseException | None = None
        try:
            for entry in self._rows:
                self._ahead.acquire()
                if self._stopped:
                    return
                self._events.put(_Read(entry))
        except BaseException as raised:
            error = raised
        self._events.put(_AllRead(error))

    def _follow(self) -> Generator[tuple[int, Result]]:
        while not self.all_read or self._waiting or self._windows:
            if self._is_time_to_start():
                self._start_window()
            match self._next_event():
                case _Read((number, arguments)):
                    yield from self._take(number, arguments)
                case _Found(number, result):
                    self._under_way -= 1
                    yield number, result
                case _AllRead(error):
                    self.all_read = True
                    self._read_error = error
                case _Ended(window, error):
                    del self._windows[window]
                    if error is not None:
                        raise error
                case _Interrupt():
                    raise KeyboardInterrupt
                case None:
                    pass
        if self._read_error is not None:
            raise self._read_error

    def _next_event(self) -> _Event | None:
        """What happens next; None where rows have waited long enough for others."""
        if not self._waiting or self._under_way >= START_BELOW:
            return self._events.get()
        try:
            return self._events.get(timeout=max(0.0, self._waiting_since + PATIENCE - time.monotonic()))
        except queue.Empty:
            return None

    def _is_time_to_start(self) -> bool:
        if not self._waiting or self._under_way >= START_BELOW:
            return False
        full = self.all_read or len(self._waiting) >= WINDOW
        return full or time.monotonic() >= self._waiting_since + PATIENCE

    def _take(self, number: int, arguments: Arguments | InputError) -> Generator[tuple[int, Result]]:
        self.read += 1
        if isinstance(arguments, InputError):
            self._ahead.release()
            yield number, Result.failed(arguments, Profile(self._work.program))
            return
        if not self._waiting:
            self._waiting_since = time.monotonic()
        self._waiting.append((number, arguments))

    def _start_window(self) -> None:
        rows, self._waiting = self._waiting, []
        self._ahead.release(len(rows))
        self._preparing = True
        try:
            prepared = self._work.prepare([number for number, _ in rows], [arguments for _, arguments in rows])
        finally:
            self._preparing = False
        self._started += 1
        self._under_way += len(rows)
        self._windows[self._started] = self._home.loop.start(self._run(self._started, prepared))

    async def _run(self, window: int, prepared: Any) -> None:
        error: BaseException | None = None
        try:
            await self._work.run(prepared, lambda number, result: self._events.put(_Found(number, result)))
        except Exception as raised:
            error = raised
        finally:
            self._events.put(_Ended(window, error))

    def _stop(self) -> None:
        """Stop reading and running. What the reader waits for may never come: it is left behind."""
        if self._stopped:
            return
        self._stopped = True
        self._ahead.release()
        for window in self._windows.values():
            window.cancel()
        for window in self._windows.values():
            window.stop()
        self._home.loop.start(self._close()).result(_CLOSE_SECONDS)

    async def _close(self) -> None:
        self._work.close()

    def _left(self) -> Generator[tuple[int, Result]]:
        """The rows that were finished when everything was stopped, and those that were found to be no good."""
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if not isinstance(event, _Found):
                continue
            if isinstance(event.result.error, RequestCancelledError):
                self._unfinished.add(event.result.profile)
                continue
            yield event.number, event.result
