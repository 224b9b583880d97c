"""Engines for tests of the executor: the toy's answers, but later, in any order, when a test says so, or never."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from lmc.ir.engine.planned import Place
from lmc.ir.engine.protocol import EngineInfo, OnDelta, Pin, Request, ScoreRequest
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, RequestCancelledError


@dataclass
class LateHandle:
    future: Future[Any] = field(default_factory=Future)
    cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        self.cancelled.set()


class LateEngine(ToyEngine):
    """Answers after a random short time, each request from its own thread.

    ``most`` is the largest number of requests that ran at once, ``order`` their ids in the order they were submitted,
    ``cancels`` counts those that were cancelled. A request whose id is in ``stuck`` waits to be cancelled; one whose id
    is in ``failing`` fails.
    """

    def __init__(self, *, seed: int = 0, kv_tokens: int | None = None, most_seconds: float = 0.004) -> None:
        super().__init__()
        self._info = EngineInfo("late", 1 << 20, kv_tokens)
        self._random = random.Random(seed)
        self._guard = threading.Lock()
        self._running = 0
        self._seconds = most_seconds
        self.most = 0
        self.order: list[str] = []
        self.prefills: list[tuple[int, ...]] = []
        self.most_pinned = 0
        self.cancels = 0
        self.stuck: set[str] = set()
        self.failing: set[str] = set()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> LateHandle:
        answer = super().submit
        return self._later(request.op_id, lambda: answer(request, on_delta).future.result())

    def score(self, request: ScoreRequest) -> LateHandle:
        answer = super().score
        return self._later(request.op_id, lambda: answer(request).future.result())

    def prefill(self, prompt: tuple[int, ...], place: Place | None = None, priority: int = 0) -> LateHandle:
        answer = super().prefill

        def pin() -> Pin:
            pinned = answer(prompt, place, priority).future.result()
            self.most_pinned = max(self.most_pinned, sum(held.length for held in self.pinned))
            return pinned

        self.prefills.append(prompt)
        return self._later("prefill", pin)

    def _later(self, op_id: str, answer: Callable[[], Any]) -> LateHandle:
        handle = LateHandle()
        with self._guard:
            self.order.append(op_id)
            self._running += 1
            self.most = max(self.most, self._running)
            seconds = (0.3 + 0.7 * self._random.random()) * self._seconds
        threading.Thread(target=self._answer, args=(handle, op_id, answer, seconds), daemon=True).start()
        return handle

    def _answer(self, handle: LateHandle, op_id: str, answer: Callable[[], Any], seconds: float) -> None:
        time.sleep(seconds)
        if op_id in self.stuck:
            handle.cancelled.wait(10)
        with self._guard:
            self._running -= 1
            self.cancels += handle.cancelled.is_set()
        try:
            if handle.cancelled.is_set():
                raise RequestCancelledError("the request was cancelled")
            if op_id in self.failing:
                raise EngineError(f"{op_id} failed")
            handle.future.set_result(answer())
        except Exception as error:
            handle.future.set_exception(error)


@dataclass
class HeldHandle:
    future: Future[Any]
    cancelled: Callable[[], None]

    def cancel(self) -> None:
        self.cancelled()


class HeldEngine(ToyEngine):
    """Answers a request when the test calls ``answer`` with its id, from the event loop's own thread.

    ``waiting`` are the ids of requests under way in the order they came, ``cancelled`` of those that were cancelled.
    Prefills are answered at once, but for ``holds_prefills``, which makes them wait under the id ``prefill``.
    """

    def __init__(self, *, holds_prefills: bool = False) -> None:
        super().__init__()
        self.cancelled: list[str] = []
        self._holds_prefills = holds_prefills
        self._held: dict[str, list[tuple[Future[Any], Callable[[], Any]]]] = {}

    @property
    def waiting(self) -> list[str]:
        return [op_id for op_id, held in self._held.items() for _ in held]

    def answer(self, op_id: str) -> None:
        """Answer the first request with that id."""
        future, answer = self._take(op_id)
        future.set_result(answer())

    def fail(self, op_id: str) -> None:
        """Let the first request with that id fail."""
        future, _ = self._take(op_id)
        future.set_exception(EngineError(f"{op_id} failed"))

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> HeldHandle:
        answer = super().submit
        return self._hold(request.op_id, lambda: answer(request, on_delta).future.result())

    def score(self, request: ScoreRequest) -> HeldHandle:
        answer = super().score
        return self._hold(request.op_id, lambda: answer(request).future.result())

    def prefill(self, prompt: tuple[int, ...], place: Place | None = None, priority: int = 0) -> Any:
        answer = super().prefill
        if not self._holds_prefills:
            return answer(prompt, place, priority)
        return self._hold("prefill", lambda: answer(prompt, place, priority).future.result())

    def _hold(self, op_id: str, answer: Callable[[], Any]) -> HeldHandle:
        entry = (Future[Any](), answer)
        self._held.setdefault(op_id, []).append(entry)

        def cancel() -> None:
            if entry in self._held.get(op_id, ()):
                self._held[op_id].remove(entry)
                self.cancelled.append(op_id)
                entry[0].set_exception(RequestCancelledError("the request was cancelled"))

        return HeldHandle(entry[0], cancel)

    def _take(self, op_id: str) -> tuple[Future[Any], Callable[[], Any]]:
        return self._held[op_id].pop(0)
