"""Rows that run while others are still being read: memory holds a few chunks of them, whatever their number."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lmc.cost.budget import BudgetLedger
from lmc.driver.run.ending import OnResult
from lmc.driver.run.money import RunMoney, Spending
from lmc.driver.run.result import Result
from lmc.driver.run.start import Arguments
from lmc.driver.targets.cancelling import error_of
from lmc.driver.targets.service import Running, Service
from lmc.ir.errors import InputError
from lmc.ir.profile import Profile, Recording

WINDOW = 512
"""Rows that come one by one and are scheduled together, and rows that are read ahead of those."""
START_BELOW = 256
"""The next window starts when fewer rows than this are under way, so that a slow row holds up no other."""
PATIENCE = 0.05
"""Seconds that a row waits for its window to fill: rows that come slowly are run as they come."""

_CLOSE_SECONDS = 10.0

Entry = tuple[int, Arguments | InputError]
"""A row's number and its arguments, or why it has none."""
Part = Sequence[Entry]
"""Rows that came together and are scheduled together."""
Waiting = deque[tuple[int, Arguments]]
"""Rows that are read and not started."""


class WindowRunner(Protocol):
    """Runs windows of rows."""

    @property
    def program(self) -> str:
        """Name of the program."""
        ...

    @property
    def is_over(self) -> bool:
        """True if the run has ended before all of its rows: no other row will start."""
        ...

    @property
    def money(self) -> RunMoney:
        """The money of the run."""
        ...

    def prepare(self, waiting: Waiting) -> Sequence[Any]:
        """Take rows that run together off ``waiting``, at least one; return the argument of ``run`` for each.

        Called in the thread of the iteration; may run the user's code.
        """
        ...

    async def run(self, prepared: Sequence[Any], on_result: OnResult, on_stopped: OnResult) -> None:
        """Run them, in the background loop; several windows may be under way.

        ``on_stopped`` gets the rows that had begun when they were cancelled.
        """
        ...

    def close(self) -> None:
        """Release the shared state of the windows. Called in the background loop, when none is under way."""
        ...


@dataclass(frozen=True)
class _Read:
    """Rows were read."""

    part: Part


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
class _Stopped:
    """A row had begun, and was cancelled."""

    result: Result


@dataclass(frozen=True)
class _Ended:
    """A window is finished; ``error`` if something other than a row failed."""

    window: int
    error: BaseException | None


@dataclass(frozen=True)
class _Interrupt:
    """A request to stop."""


_Event = _Read | _AllRead | _Found | _Stopped | _Ended | _Interrupt


class WindowedRun:
    """A run over rows: iterate over it for numbers and results, in the order in which the rows finish.

    A thread reads ``parts`` ahead; without any, ``put`` and ``end`` supply rows, from another thread than that of the
    iteration. ``read`` counts the rows so far, ``all_read`` is set after the last. Errors outside of rows,
    ``interrupt`` and ``cancel`` stop what runs; finished results still come, and then the error.
    """

    def __init__(self, home: Service, parts: Iterable[Part] | None, work: WindowRunner) -> None:
        self.read = 0
        self.all_read = False
        self._unfinished = Recording()
        self._beside: list[Spending] = []
        self._home = home
        self._parts = parts
        self._work = work
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._room = threading.Condition()
        self._ahead = 0
        self._stopped = False
        self._preparing = False
        self._read_error: BaseException | None = None
        self._waiting: Waiting = deque()
        self._waiting_since = 0.0
        self._windows: dict[int, Running[None]] = {}
        self._started = 0
        self._under_way = 0

    def __iter__(self) -> Generator[tuple[int, Result]]:
        if self._parts is not None:
            threading.Thread(target=self._read_ahead, args=(self._parts,), name="lmc-rows", daemon=True).start()
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
        """Return the profile of the rows that were stopped."""
        return self._unfinished.profile(self._work.program)

    @property
    def budget(self) -> BudgetLedger | None:
        """The account of the run's budget; None: it has none."""
        return self._work.money.ledger

    def take_beside(self) -> Sequence[Spending]:
        """Remove the costs of rows that were stopped, and of requests that ended after their rows; return them."""
        found, self._beside = self._beside, []
        rest = self._work.money.rest()
        return found if rest is None else [*found, rest]

    def interrupt(self) -> None:
        """End the iteration with ``KeyboardInterrupt``. For the handler of a signal, in the iterating thread.

        No result gets lost: the iteration gets an event, except in the user's code, which is interrupted.
        """
        if self._preparing:
            raise KeyboardInterrupt
        self.cancel()

    def cancel(self) -> None:
        """End the iteration with ``KeyboardInterrupt``. For any thread."""
        self._events.put(_Interrupt())

    @property
    def has_room(self) -> bool:
        """Return True if ``wait_for_room`` would not wait."""
        return self._stopped or self._ahead < WINDOW

    def wait_for_room(self) -> bool:
        """Wait until fewer than ``WINDOW`` rows are read and not started; False where no more of them will be."""
        with self._room:
            self._room.wait_for(lambda: self.has_room)
        return not self._stopped

    def put(self, part: Part) -> None:
        """Add rows."""
        with self._room:
            self._ahead += len(part)
        self._events.put(_Read(part))

    def end(self, error: BaseException | None = None) -> None:
        """Mark the end of the rows. ``error`` is raised once those before it are run."""
        self._events.put(_AllRead(error))

    def _read_ahead(self, parts: Iterable[Part]) -> None:
        error: BaseException | None = None
        try:
            source = iter(parts)
            while self.wait_for_room() and (part := next(source, None)) is not None:
                self.put(part)
        except BaseException as raised:
            error = raised
        self.end(error)

    def _follow(self) -> Generator[tuple[int, Result]]:
        while not (self.all_read or self._stopped_reading()) or self._waiting or self._windows:
            if self._is_time_to_start():
                self._start_window()
            match self._next_event():
                case _Read(part):
                    yield from self._take(part)
                case _Found(number, result):
                    self._under_way -= 1
                    yield number, result
                case _Stopped(result):
                    self._stop_one(result)
                case _AllRead(error):
                    self.all_read = True
                    self._read_error = error
                case _Ended(window, error):
                    del self._windows[window]
                    if error is not None:
                        raise error_of(error)
                case _Interrupt():
                    raise KeyboardInterrupt
                case None:
                    pass
        if self._read_error is not None:
            raise self._read_error

    def _stopped_reading(self) -> bool:
        """Return True if no further rows are read, because none would start. Those of ``put`` all get results."""
        return self._parts is not None and self._work.is_over

    def _stop_one(self, result: Result) -> None:
        self._unfinished.add(result.profile)
        if result.spending is not None:
            self._beside.append(result.spending)

    def _next_event(self) -> _Event | None:
        """Return the next event; None if rows have waited long enough for others."""
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

    def _take(self, part: Part) -> Generator[tuple[int, Result]]:
        self.read += len(part)
        for number, arguments in part:
            if isinstance(arguments, InputError):
                self._leave_room(1)
                yield number, Result.failed(arguments, Profile(self._work.program))
                continue
            if not self._waiting:
                self._waiting_since = time.monotonic()
            self._waiting.append((number, arguments))

    def _start_window(self) -> None:
        self._preparing = True
        try:
            prepared = self._work.prepare(self._waiting)
        finally:
            self._preparing = False
        self._leave_room(len(prepared))
        self._started += 1
        self._under_way += len(prepared)
        self._windows[self._started] = self._home.loop.start(self._run(self._started, prepared))

    def _leave_room(self, rows: int) -> None:
        with self._room:
            self._ahead -= rows
            self._room.notify_all()

    async def _run(self, window: int, prepared: Sequence[Any]) -> None:
        error: BaseException | None = None
        try:
            await self._work.run(
                prepared,
                lambda number, result: self._events.put(_Found(number, result)),
                lambda _, result: self._events.put(_Stopped(result)),
            )
        except Exception as raised:
            error = raised
        finally:
            self._events.put(_Ended(window, error))

    def _stop(self) -> None:
        """Stop reading and running. A reader that waits for input is left behind."""
        if self._stopped:
            return
        with self._room:
            self._stopped = True
            self._room.notify_all()
        for window in self._windows.values():
            window.cancel()
        for window in self._windows.values():
            window.stop()
        self._home.loop.start(self._close()).result(_CLOSE_SECONDS)

    async def _close(self) -> None:
        self._work.close()

    def _left(self) -> Generator[tuple[int, Result]]:
        """Yield the rows that were finished when everything was stopped, and the invalid ones."""
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if isinstance(event, _Stopped):
                self._stop_one(event.result)
            elif isinstance(event, _Found):
                yield event.number, event.result
