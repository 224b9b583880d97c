"""Engines for tests of the executor: the toy's answers, but later, in any order, when a test says so, or never."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lmc.ir.engine.protocol import EngineInfo, OnDelta, Pin, Place, Request, ScoreRequest
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.errors import EngineError, RequestCancelledError


class Clock:
    """Calls functions at their times, from one thread: one for each request would take most of the time of a test.

    Of those whose time has come a random one is next.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[float, Callable[[], None]]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def call_at(self, seconds: float, function: Callable[[], None], draw: random.Random) -> None:
        """Call ``function`` at a time of ``time.monotonic``; ``draw`` gives its place among those of that time."""
        with self._changed:
            self._entries.insert(draw.randint(0, len(self._entries)), (seconds, function))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="late-answers", daemon=True)
                self._thread.start()
            self._changed.notify()

    def call_now(self, function: Callable[[], None]) -> None:
        """Call a function that waits before its time."""
        with self._changed:
            self._entries = [(0.0, entry[1]) if entry[1] is function else entry for entry in self._entries]
            self._changed.notify()

    def _run(self) -> None:
        try:
            while True:
                self._take()()
        finally:  # a function raised: the next one gets another thread
            self._thread = None

    def _take(self) -> Callable[[], None]:
        """Wait for the next function and take it out."""
        with self._changed:
            while True:
                now = time.monotonic()
                for index, (seconds, _) in enumerate(self._entries):
                    if seconds <= now:
                        return self._entries.pop(index)[1]
                self._changed.wait(min((seconds - now for seconds, _ in self._entries), default=None))


CLOCK = Clock()


@dataclass(eq=False)
class LateHandle:
    future: Future[Any] = field(default_factory=Future)
    answer: Callable[[], None] | None = None
    """Gives the answer of a request that waits to be cancelled."""
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True
        if self.answer is not None:
            CLOCK.call_now(self.answer)


class LateEngine(ToyEngine):
    """Answers after a random short time, in a thread of its own.

    ``most`` is the largest number of requests that ran at once, ``order`` their ids in the order they were submitted,
    ``cancels`` the ids of those that were cancelled. A request whose id is in ``stuck`` waits to be cancelled;
    one whose id is in ``failing`` fails.
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
        self.cancels: list[str] = []
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
        end = partial(self._answer, handle, op_id, answer)
        with self._guard:
            self.order.append(op_id)
            self._running += 1
            self.most = max(self.most, self._running)
            seconds = (0.3 + 0.7 * self._random.random()) * self._seconds
            if op_id in self.stuck:
                handle.answer, seconds = end, 10
            CLOCK.call_at(time.monotonic() + seconds, end, self._random)
        return handle

    def _answer(self, handle: LateHandle, op_id: str, answer: Callable[[], Any]) -> None:
        with self._guard:
            self._running -= 1
            if handle.is_cancelled:
                self.cancels.append(op_id)
        try:
            if handle.is_cancelled:
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
