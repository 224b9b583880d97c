"""An engine that notes the attempts of its requests by row, so that each of them can be priced by itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from lmc.ir.engine.layer import EngineLayer, outcome_of
from lmc.ir.engine.protocol import Engine, Generation, Handle, OnDelta, Request, Score, ScoreRequest
from lmc.ir.errors import LmcError
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.budget.account import attempts_of

_END_SECONDS = 1.0
"""The longest that the attempts of requests which are cancelled are waited for."""
_UNKNOWN = Attempt(Usage(calls=1), is_whole=False)


class AttemptMeter:
    """The attempts of a run, by row. Thread-safe."""

    def __init__(self) -> None:
        self._by_row: dict[int, list[Attempt]] = {}
        self._under_way = 0
        self._lock = threading.Condition()

    def begin(self) -> None:
        """Note that a request begins: ``add`` follows."""
        with self._lock:
            self._under_way += 1

    def add(self, row: int, result: Any) -> None:
        """Note the attempts of a request that ended with a result or an error."""
        with self._lock:
            self._under_way -= 1
            self._add(row, result)
            self._lock.notify_all()

    def _add(self, row: int, result: Any) -> None:
        attempts = attempts_of(result)
        if attempts is None:  # an error without a cost is one of a request that was not sent
            attempts = () if isinstance(result, LmcError) else (_UNKNOWN,)
        if attempts:
            self._by_row.setdefault(row, []).extend(attempts)

    def take(self, row: int) -> Sequence[Attempt]:
        """Remove the attempts of a row, and return them."""
        with self._lock:
            return self._by_row.pop(row, ())

    def take_all(self) -> Sequence[Attempt]:
        """Remove the attempts of all rows, and return them: those of what was cancelled come a moment after the run."""
        with self._lock:
            self._lock.wait_for(lambda: not self._under_way, _END_SECONDS)
            found, self._by_row = self._by_row, {}
        return [attempt for attempts in found.values() for attempt in attempts]


class MeteredEngine(EngineLayer):
    """``engine``, whose requests are noted by ``meter``. It is the outermost: answers from a journal count too."""

    def __init__(self, engine: Engine, meter: AttemptMeter) -> None:
        super().__init__(engine)
        self._meter = meter

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        return self._noted(request.instance, self.below.submit(request, on_delta))

    def score(self, request: ScoreRequest) -> Handle[Score]:
        return self._noted(request.instance, self.below.score(request))

    def _noted(self, row: int, handle: Handle[Any]) -> Handle[Any]:
        self._meter.begin()
        handle.future.add_done_callback(lambda done: self._meter.add(row, outcome_of(done)))
        return handle
