"""An engine whose requests can all be cancelled at once: it stops what runs eagerly in threads.

``except Exception`` in a user's retry loop must not take the cancelling for a failure of the model and go on, so what
is raised inside of programs is ``ProgramCancelled``, no ``Exception``. ``error_of`` makes of it what callers get.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from lmc.ir.engine.hosts import ProgramCancelled, ProgramStopped, stops_program
from lmc.ir.engine.layer import EngineLayer
from lmc.ir.engine.observing import AskedRequest, Observer, RequestKind
from lmc.ir.engine.protocol import (
    Engine,
    Generation,
    Handle,
    OnDelta,
    Place,
    Request,
    Score,
    ScoreRequest,
)
from lmc.ir.errors import LmcError, RequestCancelledError
from lmc.runtime.observed import submit_observed

T = TypeVar("T")


def cancelled_error() -> RequestCancelledError:
    """Return the error for the caller of a cancelled run."""
    return RequestCancelledError("the run was cancelled")


class RunInterruptedError(Exception):
    """An instance ends the whole run: the user's code raised ``KeyboardInterrupt``, or an error ends the batch.

    Callers get ``interrupt``. An event loop would end with ``KeyboardInterrupt`` itself.
    """

    def __init__(self, interrupt: KeyboardInterrupt | LmcError) -> None:
        super().__init__("the run was interrupted")
        self.interrupt = interrupt


def error_of(error: BaseException) -> BaseException:
    """Return ``error`` for the caller: ``ProgramCancelled`` and ``RunInterruptedError`` stay inside of runs."""
    if isinstance(error, RunInterruptedError):
        return error.interrupt
    if isinstance(error, ProgramStopped):
        return error.error.with_traceback(error.__traceback__)
    if isinstance(error, ProgramCancelled):
        return cancelled_error().with_traceback(error.__traceback__)
    return error


@dataclass(frozen=True, slots=True)
class _Answer:
    """A request that is under way: the program's end of it, which cancelling settles at once."""

    future: Future[Any]
    cancel: Callable[[], None]


class CancellableEngine(EngineLayer):
    """``engine``, until ``cancel``: then running requests are cancelled and new ones refused.

    Both raise ``ProgramCancelled``, whatever the engine answers to being cancelled, and when. Requests get the
    ``place`` and the ``priority`` that are given here. ``observer`` takes them.
    """

    def __init__(
        self, engine: Engine, place: Place | None = None, priority: int = 0, observer: Observer | None = None
    ) -> None:
        super().__init__(engine)
        self._observer = observer
        self._place = place
        self._priority = priority
        self._running: dict[Future[Any], _Answer] = {}
        self._cancelled = False
        self._lock = threading.Lock()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        self._check()
        placed = replace(request, place=self._place, priority=self._priority)
        return self._watch(self._submit("generate", placed, lambda: self.below.submit(placed, on_delta)))

    def score(self, request: ScoreRequest) -> Handle[Score]:
        self._check()
        placed = replace(request, place=self._place, priority=self._priority)
        return self._watch(self._submit("score", placed, lambda: self.below.score(placed)))

    def close(self) -> None:
        """Cancel; the engine itself belongs to somebody else."""
        self.cancel()

    def cancel(self) -> None:
        """Cancel running and future requests."""
        with self._lock:
            self._cancelled = True
            running, self._running = list(self._running.values()), {}
        for answer in running:
            answer.cancel()
            answer.future.set_exception(ProgramCancelled())

    def _submit(self, kind: RequestKind, request: Request | ScoreRequest, submit: Callable[[], Handle[T]]) -> Handle[T]:
        if self._observer is None:
            return submit()
        now = time.perf_counter()
        asked = AskedRequest(kind, None, request.op_id, request.instance, request.number, now)
        return submit_observed(self._observer, asked, submit)

    def _check(self) -> None:
        if self._cancelled:
            raise ProgramCancelled

    def _watch(self, handle: Handle[T]) -> Handle[T]:
        if handle.future.done():
            stopped = None if handle.future.cancelled() else handle.future.exception()
            if stops_program(stopped):
                raise ProgramStopped(stopped)
            return handle
        answer = _Answer(Future(), handle.cancel)
        with self._lock:
            cancelled = self._cancelled
            if not cancelled:
                self._running[handle.future] = answer
        if cancelled:
            handle.cancel()
            raise ProgramCancelled
        handle.future.add_done_callback(self._settle)
        return answer

    def _settle(self, future: Future[Any]) -> None:
        with self._lock:
            answer = self._running.pop(future, None)
        if answer is None:
            return
        error = cancelled_error() if future.cancelled() else future.exception()
        if error is None:
            answer.future.set_result(future.result())
        else:
            answer.future.set_exception(ProgramStopped(error) if stops_program(error) else error)
