"""The local engine: an `lmc.ir.engine.protocol.Engine` (with `PrefixCaching`) over a model in this process."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from lmc.cache.memory import SequenceMemory
from lmc.cache.policies import POLICIES
from lmc.cache.scheduler import Scheduler
from lmc.cache.sequence import Namespace
from lmc.ir.engine.observing import OnStep
from lmc.ir.engine.protocol import (
    DoneHandle,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    OnDelta,
    Pin,
    Place,
    Request,
    Score,
    ScoreRequest,
)
from lmc.ir.errors import EngineError, LmcError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.local.model import PagedModel
from lmc.runtime.local.sampling.canonical import CanonicalTask
from lmc.runtime.local.sampling.drafting import Paths
from lmc.runtime.local.sampling.generation import GenerationTask
from lmc.runtime.local.tasks import PrefillTask, ScoreTask, Task
from lmc.runtime.local.validation import RequestChecker
from lmc.runtime.local.worker import Worker

T = TypeVar("T")

DEFAULT_PREFILL_TOKENS = 512
DEFAULT_MAX_RUNNING = 256
_NO_PIN = 0  # what `prefill` gives without a prefix cache; pins count from 1


@dataclass(frozen=True, slots=True)
class LocalHandle(Generic[T]):
    """A request that runs in the engine's worker thread."""

    _task: Task[T]
    _worker: Worker

    @property
    def future(self) -> Future[T]:
        """Resolves to the result or raises an `EngineError` or `RequestCancelledError`."""
        return self._task.future

    def cancel(self) -> None:
        """Stop the request at the next step; nothing where it is done."""
        self._worker.cancel(self._task)


class LocalEngine:
    """Continuous batching over one model. Make it with `load_local_engine`; close it, or use it as a context manager.

    Args:
        model: the model with its pages.
        tokenizer: the tokenizer of the same model folder.
        info: name, context length and pool size.
        prefill_tokens: prompt tokens and drafted ones computed in one step beside the decoding sequences: larger is
            faster for prompts, smaller steadier for running streams.
        max_running: sequences that decode together.
        prefix_cache: whether requests share computed prefixes. Without it every request computes its whole prompt, and
            `prefill` holds nothing: what caching saves can be measured against that.
        policy: order of service and eviction, by name (`lmc.cache.policies`).
    """

    def __init__(
        self,
        model: PagedModel,
        tokenizer: Tokenizer,
        info: EngineInfo,
        *,
        prefill_tokens: int = DEFAULT_PREFILL_TOKENS,
        max_running: int = DEFAULT_MAX_RUNNING,
        prefix_cache: bool = True,
        policy: str = "lmc",
    ) -> None:
        if policy not in POLICIES:
            raise EngineError(f"unknown policy {policy!r}", remedy=f"use one of {', '.join(POLICIES)}")
        if prefill_tokens < 1 or max_running < 1:
            raise EngineError(
                f"prefill_tokens is {prefill_tokens} and max_running {max_running}", remedy="give both at least 1"
            )
        self._policy = POLICIES[policy]
        memory = SequenceMemory(model.null_page, scratch_page=model.scratch_page, eviction=self._policy.eviction())
        self._checker = RequestChecker(
            vocabulary_size=model.vocabulary_size,
            context_length=info.context_length,
            kv_tokens=memory.pool.num_pages,
        )
        self._prefix_cache = prefix_cache
        self._owners = itertools.count()
        self._expectations = itertools.count()
        self._flushes = 0
        self._rope_length = model.rope_length
        self._paths = Paths(prefill_tokens)
        self._tokenizer = tokenizer
        self._info = replace(info, max_running=max_running)
        scheduler = Scheduler(
            memory,
            prefill_tokens=prefill_tokens,
            max_running=max_running,
            order=partial(self._policy.order, memory.radix),
        )
        self._worker = Worker(model, scheduler)
        self._finalizer = weakref.finalize(self, self._worker.close)  # also when the interpreter ends

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self._tokenizer

    @property
    def info(self) -> EngineInfo:
        """Name, context length and pool size."""
        return self._info

    @property
    def statistics(self) -> EngineStatistics:
        """A copy of the running totals; prompt and cached tokens count when a request has succeeded."""
        return self._worker.statistics()

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        """Start a generation. `on_delta` is called by the engine's thread and must return soon."""
        try:
            room = self._checker.check_generation(request)
            task = self._generation(request, room, on_delta)
        except LmcError as error:
            return DoneHandle[Generation].failed(error)
        length = min(len(request.prompt) + task.SPACE * request.sampling.max_tokens, self._info.context_length)
        return self._start(task, length - 1, request)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        """Start scoring continuations; the prompt is computed once for all of them."""
        try:
            self._checker.check_score(request)
        except EngineError as error:
            return DoneHandle[Score].failed(error)
        longest = max((len(each) for each in request.continuations), default=0)
        rows = len(request.prompt) + max(longest - 1, 0)
        return self._start(ScoreTask(request), rows, request)

    def prefill(self, prompt: tuple[int, ...], place: Place | None = None, priority: int = 0) -> Handle[Pin]:
        """Compute a prompt and hold it in the cache until `unpin`.

        A held prefix costs pool space; where a request could not run otherwise, the one held for longest is released.
        """
        try:
            self._checker.check_prefill(prompt)
        except EngineError as error:
            return DoneHandle[Pin].failed(error)
        if not self._prefix_cache:
            return DoneHandle[Pin].of(Pin(_NO_PIN, 0))
        task = PrefillTask(prompt)
        self._put(task, None, place, priority)
        return self._enter(task, len(prompt))

    def unpin(self, pin: Pin) -> None:
        """Release a prefix that `prefill` held. It stays cached until its space is needed.

        Raises:
            EngineError: it was released before.
        """
        if pin.key != _NO_PIN:
            self._worker.release_pin(pin.key)

    def expect(self, prompt: tuple[int, ...], place: Place) -> int:
        """Keep the cached part of a prompt until its place comes, while there is room (see `Planned`)."""
        key = next(self._expectations)
        self._worker.expect(key, prompt, self._namespace(len(prompt)), place)
        return key

    def withdraw(self, key: int) -> None:
        """Take back what `expect` said; nothing where that was done."""
        self._worker.withdraw(key)

    def flush_cache(self) -> None:
        """Let no later request find a prefix that was computed before.

        Requests that run, and held prefixes, keep theirs; the pages of the others are the first to be used again.
        """
        self._flushes += 1

    def observe(self, on_step: OnStep) -> Callable[[], None]:
        """Call `on_step` after each step, in the engine's thread (see `Observable`)."""
        return self._worker.observe(on_step)

    def close(self) -> None:
        """Stop after the current step. Requests that are still running fail; later ones are refused.

        Returns when the engine's thread has ended; at once where it is that thread that calls (from a callback).
        """
        self._worker.close()
        if not self._worker.is_alive:
            self._finalizer.detach()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _generation(self, request: Request, room: int, on_delta: OnDelta | None) -> GenerationTask:
        is_canonical = request.constraint is not None and request.jump_forward == "canonical"
        kind = CanonicalTask if is_canonical else GenerationTask
        return kind(request, self._tokenizer, room=room, paths=self._paths, on_delta=on_delta)

    def _start(self, task: Task[T], rows: int, request: Request | ScoreRequest) -> Handle[T]:
        """Hand a task that computes up to `rows` rows of a sequence to the worker."""
        self._put(task, request.instance, request.place, request.priority)
        expected = request.expected_tokens if isinstance(request, Request) else None
        if expected is not None:
            for sequence in task.sequences:
                sequence.expected_length = sequence.prompt_length + expected
        return self._enter(task, rows, request.timeout)

    def _put(self, task: Task[Any], instance: int | None, place: Place | None, priority: int) -> None:
        """Set lane, priority and place of the sequences of a task."""
        lane = instance
        if place is not None:
            lane = ("run", place.run) if place.lane is None else place.lane
        for sequence in task.sequences:
            sequence.lane = lane if self._policy.turns else None
            sequence.priority = priority
            if place is not None:
                sequence.run, sequence.rank = place.run, place.rank

    def _enter(self, task: Task[T], rows: int, timeout: float | None = None) -> Handle[T]:
        owner = None if self._prefix_cache else next(self._owners)
        namespace = self._namespace(rows, owner)
        for sequence in task.sequences:
            sequence.cache_key = namespace
        self._worker.submit(task, timeout)
        return LocalHandle(task, self._worker)

    def _namespace(self, rows: int, owner: int | None = None) -> Namespace:
        return Namespace(self._rope_length(rows), owner, self._flushes)
