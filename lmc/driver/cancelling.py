"""An engine whose requests can all be cancelled at once: it stops what runs eagerly in threads."""

from __future__ import annotations

import threading
from typing import Any

from lmc.ir.engine import (
    Engine,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    OnDelta,
    Request,
    Score,
    ScoreRequest,
)
from lmc.ir.errors import RequestCancelledError
from lmc.ir.tokenizer import Tokenizer


class CancellableEngine:
    """``engine``, until ``cancel``: then running requests are cancelled and new ones refused."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running: dict[int, Handle[Any]] = {}
        self._cancelled = False
        self._lock = threading.Lock()

    @property
    def tokenizer(self) -> Tokenizer:
        return self._engine.tokenizer

    @property
    def info(self) -> EngineInfo:
        return self._engine.info

    @property
    def statistics(self) -> EngineStatistics:
        return self._engine.statistics

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        self._check()
        return self._watch(self._engine.submit(request, on_delta))

    def score(self, request: ScoreRequest) -> Handle[Score]:
        self._check()
        return self._watch(self._engine.score(request))

    def close(self) -> None:
        """Cancel; the engine itself belongs to somebody else."""
        self.cancel()

    def cancel(self) -> None:
        """Cancel what runs, and whatever comes."""
        with self._lock:
            self._cancelled = True
            running = list(self._running.values())
        for handle in running:
            handle.cancel()

    def _check(self) -> None:
        if self._cancelled:
            raise RequestCancelledError("the run was cancelled")

    def _watch(self, handle: Any) -> Any:
        if handle.future.done():
            return handle
        with self._lock:
            self._running[id(handle)] = handle
            cancelled = self._cancelled
        handle.future.add_done_callback(lambda _: self._forget(handle))
        if cancelled:
            handle.cancel()
        return handle

    def _forget(self, handle: Any) -> None:
        with self._lock:
            self._running.pop(id(handle), None)
