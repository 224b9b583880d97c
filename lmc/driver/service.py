"""What one process keeps between calls: a thread with an event loop, and the engines that were started."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from lmc.driver.registry import load_tokenizer, make_engine
from lmc.ir.engine import Engine
from lmc.ir.errors import LmcError
from lmc.ir.target import Target
from lmc.ir.tokenizer import Tokenizer

T = TypeVar("T")


class EngineCache:
    """One engine and one tokenizer per target, made on first use, shared by all programs, closed together."""

    def __init__(self) -> None:
        self._engines: dict[Target, Engine] = {}
        self._tokenizers: dict[tuple[str, str | None], Tokenizer] = {}
        self._lock = threading.Lock()

    def engine(self, target: Target) -> Engine:
        """The engine of ``target``; loads it the first time."""
        target = _absolute(target)
        with self._lock:
            if target not in self._engines:
                self._engines[target] = make_engine(target)
            return self._engines[target]

    def tokenizer(self, target: Target) -> Tokenizer:
        """The tokenizer of ``target``, without its engine."""
        target = _absolute(target)
        key = (target.kind, target.path)
        with self._lock:
            if key not in self._tokenizers:
                self._tokenizers[key] = load_tokenizer(target)
            return self._tokenizers[key]

    def close(self) -> None:
        """Close every engine. Further calls start new ones."""
        with self._lock:
            engines, self._engines = list(self._engines.values()), {}
        for engine in engines:
            engine.close()


def _absolute(target: Target) -> Target:
    """The target with a path that stays the same folder wherever the process goes."""
    return target if target.path is None else replace(target, path=str(Path(target.path).expanduser().resolve()))


class BackgroundLoop:
    """An event loop in a daemon thread of its own: programs run from scripts, notebooks and other loops alike."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="lmc-loop", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run ``work`` there. Cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def check_outside(self) -> None:
        """Raise ``LmcError`` in the loop's own thread, where waiting for a program would wait forever."""
        if threading.current_thread() is self._thread:
            raise LmcError(
                "a program was run from a callback of another program's run",
                remedy="put what the callback gets into a queue, and run the program from your own thread",
            )

    def close(self) -> None:
        """Stop the loop and wait for its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


class Service:
    """Loop and engines of one process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self.loop = BackgroundLoop()
        self.engines = EngineCache()

    def close(self) -> None:
        """Stop what runs and close the engines. Nothing in a forked child, which has neither."""
        if os.getpid() != self._process:
            return
        self.loop.close()
        self.engines.close()


def service() -> Service:
    """The service of this process: made on first use, closed at exit. A forked child gets its own."""
    return _service_of(os.getpid())


@lru_cache(maxsize=1)
def _service_of(_process: int) -> Service:
    made = Service()
    atexit.register(made.close)
    return made
