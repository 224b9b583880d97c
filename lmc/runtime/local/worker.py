"""The thread that runs the model: takes requests in, steps, hands results out."""

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from lmc.cache.expected import Expectation
from lmc.cache.memory import Slice
from lmc.cache.scheduler import Scheduler
from lmc.cache.sequence import Namespace, Sequence
from lmc.ir.engine.forks import forked
from lmc.ir.engine.observing import ObservedStep, OnStep
from lmc.ir.engine.protocol import EngineStatistics, Place
from lmc.ir.errors import EngineError, LmcError, RequestCancelledError
from lmc.runtime.local.deadlines import Deadlines
from lmc.runtime.local.failures import callback_failed, closed, stopped, too_late
from lmc.runtime.local.forking import hold_after_fork
from lmc.runtime.local.model import LogitsRows, PagedModel
from lmc.runtime.local.phases import PhaseClock
from lmc.runtime.local.sampling.device_draws import draws_on
from lmc.runtime.local.sampling.generation import GenerationTask
from lmc.runtime.local.sampling.reading import Reading, read_logits
from lmc.runtime.local.sampling.sampler import DrawnToken
from lmc.runtime.local.tasks import PrefillTask, Task

_LOGGER = logging.getLogger(__name__)


class Worker:
    """Owns model, scheduler and memory; all of them are touched by its thread only.

    Other threads put commands into the inbox. Futures are resolved and stream callbacks called by the worker's thread
    with no lock held, so they may submit further requests, but they must return soon.
    """

    def __init__(self, model: PagedModel, scheduler: Scheduler) -> None:
        self._model = model
        self._on_device = draws_on(model.device)
        self._scheduler = scheduler
        self._statistics = EngineStatistics()
        self._clock = PhaseClock(self._statistics)
        self._observers: tuple[OnStep, ...] = ()
        self._found_tokens = 0  # by requests that were admitted
        self._observed = self.statistics(), 0
        self._attended = self._held = self._drawn = 0  # in this step
        self._tasks: dict[Sequence, Task[Any]] = {}
        self._deadlines = Deadlines[Task[Any]]()
        self._inbox: deque[Callable[[], None]] = deque()
        self._unresolved: set[Task[Any]] = set()  # from `submit` on, so that no moment of failure leaves one waiting
        self._pins: set[int] = set()
        self._expected: dict[int, Expectation | None] = {}
        self._condition = threading.Condition()
        self._closing = False
        self._process = os.getpid()
        hold_after_fork(self)
        self._failure: Callable[[], EngineError] | None = None
        self._thread = threading.Thread(target=self._run, name="lmc-local-engine", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """True while the thread runs."""
        return self._thread.is_alive()

    def submit(self, task: Task[Any], timeout: float | None = None) -> None:
        """Queue a task that is to be done in `timeout` seconds; one that comes too late is failed at once."""
        start = time.monotonic()
        if self._is_forked:
            task.fail(forked())
            return
        with self._condition:
            failure = self._failure
            if failure is None:
                self._unresolved.add(task)
        if failure is None:
            self._command(lambda: self._enter(task, start, timeout))
        else:
            task.fail(failure())

    def cancel(self, task: Task[Any]) -> None:
        """Stop a task at the next step; nothing where it is done."""
        self._command(lambda: self._end(task, error=RequestCancelledError("the request was cancelled")))

    def release_pin(self, key: int) -> None:
        """Release a held prefix at the next step.

        Raises:
            EngineError: it was released before, or the engine is another process's.
        """
        if self._is_forked:
            raise forked()
        with self._condition:
            if key not in self._pins:
                raise EngineError(f"pin {key} is not held", remedy="unpin each pin once")
            self._pins.remove(key)
        self._command(lambda: self._scheduler.memory.release_held(key))

    def expect(self, key: int, prompt: tuple[int, ...], namespace: Namespace, place: Place) -> None:
        """Note under `key` that a prompt will be asked for."""
        self._command(lambda: self._expect(key, prompt, namespace, place))

    def withdraw(self, key: int) -> None:
        """Take back what was noted under `key`; nothing where that was done."""
        self._command(lambda: self._scheduler.memory.withdraw(self._expected.pop(key, None)))

    def statistics(self) -> EngineStatistics:
        """A copy of the running totals. Each is exact; those of the step under way may be counted in part."""
        memory = self._scheduler.memory
        return replace(
            self._statistics, evicted_tokens=memory.radix.evicted_tokens, preemptions=self._scheduler.preemptions
        )

    def observe(self, on_step: OnStep) -> Callable[[], None]:
        """Call `on_step` after each step until the function that is returned is called, and with None at the end."""
        self._command(lambda: self._begin_observing(on_step))
        return lambda: self._command(lambda: self._end_observing(on_step))

    def close(self) -> None:
        """Stop after the current step, fail what is outstanding, and wait for the thread to end."""
        if self._is_forked:
            return
        with self._condition:
            self._closing = True
            self._condition.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    @property
    def _is_forked(self) -> bool:
        """True in a child of the process that has the thread. There the lock may be held for ever."""
        return os.getpid() != self._process

    def _command(self, command: Callable[[], None]) -> None:
        """Have the thread carry something out; nothing where it ended, and every task with it."""
        if self._is_forked:
            return
        with self._condition:
            if self._failure is None:
                self._inbox.append(command)
                self._condition.notify()

    def _run(self) -> None:
        failure = closed
        try:
            while self._take_commands():
                self._turn()
        except BaseException as error:  # whatever stopped the thread, no request may wait for ever
            failure = partial(stopped, error)
        with self._condition:
            self._failure = failure
            outstanding = tuple(self._unresolved)
            self._inbox.clear()
        for task in outstanding:
            error = failure()
            error.usage = task.usage
            self._resolve(task, error)
        for on_step in self._observers:
            on_step(None)
        self._model.release()

    def _turn(self) -> None:
        """End what is out of time, and compute a step of what is left."""
        for task, timeout in self._deadlines.expired():
            self._end(task, error=too_late(timeout))
        if self._scheduler.has_work:
            start = time.perf_counter() if self._observers else 0.0
            self._step()
            if self._observers:
                self._report(start)

    def _begin_observing(self, on_step: OnStep) -> None:
        if not self._observers:
            self._observed = self.statistics(), self._found_tokens
        self._observers += (on_step,)

    def _end_observing(self, on_step: OnStep) -> None:
        if on_step in self._observers:
            self._observers = tuple(each for each in self._observers if each != on_step)
            on_step(None)

    def _report(self, start: float) -> None:
        """Tell the observers of the step that began at `start`, and of the cache since the step before."""
        scheduler, (before, found) = self._scheduler, self._observed
        now = self.statistics()
        self._observed = now, self._found_tokens
        step = ObservedStep(
            start=start,
            end=time.perf_counter(),
            rows=now.rows - before.rows,
            prefilled=now.prefilled_tokens - before.prefilled_tokens,
            drawn=self._drawn,
            attended=self._attended,
            held=self._held,
            running=len(scheduler.running),
            waiting=scheduler.waiting_count,
            found=self._found_tokens - found,
            evicted=now.evicted_tokens - before.evicted_tokens,
            preempted=now.preemptions - before.preemptions,
        )
        for on_step in self._observers:
            on_step(step)

    def _take_commands(self) -> bool:
        """Carry out what other threads asked for, waiting for it if there is nothing else to do; False to end."""
        with self._condition:
            while not (self._inbox or self._closing or self._scheduler.has_work):
                self._condition.wait()
                self._clock.restart()
            if self._closing:
                return False
            commands = tuple(self._inbox)
            self._inbox.clear()
        for command in commands:
            command()
        return True

    def _expect(self, key: int, prompt: tuple[int, ...], namespace: Namespace, place: Place) -> None:
        self._expected[key] = self._scheduler.memory.expect(prompt, namespace, place.run, place.rank)

    def _enter(self, task: Task[Any], start: float, timeout: float | None) -> None:
        self._statistics.requests += 1
        if timeout is not None:
            self._deadlines.watch(task, start=start, timeout=timeout)
        if isinstance(task, GenerationTask):
            self._act(task, partial(task.begin, self._statistics))
        if not task.future.done():
            for sequence in task.sequences:
                self._tasks[sequence] = task
                self._scheduler.memory.fit(sequence)
                self._scheduler.add(sequence)

    def _step(self) -> None:
        slices = self._scheduler.next_step()
        self._count(slices)
        if self._observers:
            self._attended = sum((each.end - each.start) * (each.start + each.end + 1) // 2 for each in slices)
            self._held = self._scheduler.memory.held_pages
        self._clock.lap("scheduling_seconds")
        with torch.inference_mode():
            logits, owners = self._model.forward(slices)
            self._drawn = sum(len(owner.read) for owner in owners)
            self._clock.lap("model_seconds")
            self._clock.move(self._model.take_planning_seconds(), "model_seconds", "scheduling_seconds")
            for rows in slices:
                rows.sequence.computed = rows.end
            read = read_logits(logits, owners, self._tasks, self._on_device)
        self._clock.lap("sampling_seconds")
        self._settle(owners, read)
        self._clock.lap("delivery_seconds")
        for rows in slices:
            self._complete(rows)
        self._clock.lap("scheduling_seconds")

    def _count(self, slices: Items[Slice]) -> None:
        totals, rows, now = self._statistics, sum(each.end - each.start for each in slices), time.perf_counter()
        for sequence, start, end, _ in slices:
            if not sequence.is_decoding:
                prefilled = max(min(end, sequence.admitted) - start, 0)
                sequence.prefilled += prefilled
                totals.prefilled_tokens += prefilled
                task = self._tasks[sequence]
                if task.admitted is None:
                    task.admitted = now
                    self._found_tokens += task.cached_tokens
        totals.steps += 1
        totals.rows += rows
        totals.largest_step = max(totals.largest_step, rows)

    def _settle(self, owners: Items[LogitsRows], read: Items[Reading]) -> None:
        """Act on what was read, in the order in which rows were planned: later ones may be built on earlier ones.

        Whoever has NaN only because of another's rows is back in the queue before its own logits are looked at.
        """
        for owner, found in zip(owners, read, strict=True):
            sequence = owner.rows.sequence
            task = self._tasks.get(sequence)
            if task is None or sequence.node is None or found is None:
                continue
            if isinstance(found, EngineError):
                self._reject(task, found)
            elif isinstance(task, GenerationTask):
                self._advance(task, owner.read, found)

    def _advance(self, task: GenerationTask, rows: Items[int], drawn: Items[DrawnToken | LmcError]) -> None:
        """Have a generation take what was drawn for it, up to the first token that its draft did not foresee."""
        if task.first_token is None:
            task.first_token = time.perf_counter()
        error = self._act(task, partial(task.advance, rows, drawn))
        if error is not None:
            self._reject(task, error)
        elif task.is_constrained and task.sequence.node is not None:
            self._scheduler.memory.fit(task.sequence)

    def _act(self, task: GenerationTask, action: Callable[[], EngineError | None]) -> EngineError | None:
        """Have a generation do something, stream what that settled, and end it if it ended; else what it gave."""
        given: EngineError | None = None
        error: LmcError | None = None
        try:
            given = action()
            if task.ended:
                error = task.violation()
        except LmcError as failure:
            error = failure
        try:
            task.deliver()
        except BaseException as failure:  # whatever the user's callback raises fails this request only
            error = error or callback_failed(failure)
        if error is not None or task.ended:
            self._end(task, error=error)
            return None
        return given

    def _complete(self, rows: Slice) -> None:
        """Take out a sequence that was computed to its end, and finish its task if it was the last one."""
        task = self._tasks.get(rows.sequence)
        if task is None or isinstance(task, GenerationTask) or rows.sequence.pending:
            return
        if isinstance(task, PrefillTask):
            task.pin_key = self._scheduler.hold(rows.sequence)
            with self._condition:
                self._pins.add(task.pin_key)
        else:
            self._scheduler.finish(rows.sequence)
        del self._tasks[rows.sequence]
        if not any(sequence in self._tasks for sequence in task.sequences):
            self._end(task)

    def _end(self, task: Task[Any], error: LmcError | None = None) -> None:
        """Take a task's sequences out and resolve it: with its result, or with `error`."""
        if task.future.done():
            return
        if error is not None:
            error.usage = task.usage
        self._take_out(task, self._scheduler.finish if error is None else self._scheduler.drop)
        if error is None:
            self._statistics.prompt_tokens += task.prompt_tokens
            self._statistics.cached_tokens += task.cached_tokens
        self._resolve(task, error)

    def _reject(self, task: Task[Any], error: EngineError) -> None:
        """End a task whose logits are no numbers; its keys and values may be invalid too and must not be shared."""
        error.usage = task.usage
        self._take_out(task, self._scheduler.drop)
        for sequence in task.sequences:
            self._scheduler.purge(sequence)
        self._resolve(task, error)

    def _take_out(self, task: Task[Any], how: Callable[[Sequence], None]) -> None:
        self._deadlines.forget(task)
        for sequence in task.sequences:
            if self._tasks.pop(sequence, None) is not None:
                how(sequence)
        namespace = task.sequences[0].cache_key
        if namespace.owner is not None:
            self._scheduler.memory.forget_owner(namespace)

    def _resolve(self, task: Task[Any], error: LmcError | None) -> None:
        """Give a task its result or its error, whatever the functions do that users had called when it is done."""
        if error is not None:
            error.timing = task.timing
        settle = task.succeed if error is None else partial(task.fail, error)
        try:
            if not task.future.done():
                settle()
        except BaseException:
            if not task.future.done():
                raise  # something of the engine, or the thread is to end
            _LOGGER.exception("a function that was to be called at the end of a request raised")
        with self._condition:
            self._unresolved.discard(task)
