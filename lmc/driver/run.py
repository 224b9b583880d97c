"""Running a program: one call, a batch, a stream; from plain code, from a notebook, from another event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from lmc.driver.compile import DEFAULT_LEVEL, Compiled, Variants, compile_program
from lmc.driver.defaults import Wish, resolve_target
from lmc.driver.execute import Job, execute
from lmc.driver.result import Result
from lmc.driver.service import Service, service
from lmc.frontend.arguments import bind
from lmc.frontend.eager import EagerSession, run_eager
from lmc.frontend.function import JittedFunction
from lmc.ir.errors import InputError, RequestCancelledError
from lmc.ir.profile import Profile
from lmc.ir.target import Target
from lmc.runtime.events import OnEvent, TokenEvent

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Positional and keyword arguments of one instance."""

_STOP_SECONDS = 10.0


class BatchInterruptedError(KeyboardInterrupt):
    """Ctrl-C in a batch. ``results`` holds what was finished; the other instances have a ``RequestCancelledError``."""

    def __init__(self, results: Sequence[Result]) -> None:
        kept = sum(result.error is None for result in results)
        super().__init__(f"{kept} of {len(results)} instances were finished; .results holds them")
        self.results = list(results)


@dataclass(frozen=True, slots=True)
class Options:
    """How a program runs, as far as the user said so: see ``Program.on``."""

    wish: Wish = field(default_factory=Wish)
    seed: int = 0
    level: str = DEFAULT_LEVEL


class Runner:
    """A program with the options it runs under. Compiled variants are shared by all runners of one program."""

    def __init__(self, function: JittedFunction, options: Options, variants: Variants | None = None) -> None:
        self.options = options
        self._function = function
        self._variants = variants or Variants()

    def with_options(self, function: JittedFunction, wish: Wish, *, seed: int | None, level: str | None) -> Runner:
        """A runner of ``function``, which is the same program, under other options; what is None stays as it is."""
        known = self.options.wish
        merged = Wish(
            wish.target or known.target,
            wish.dtype or known.dtype,
            known.kv_tokens if wish.kv_tokens is None else wish.kv_tokens,
        )
        options = Options(
            merged, self.options.seed if seed is None else seed, self.options.level if level is None else level
        )
        return Runner(function, options, self._variants)

    def target(self) -> Target:
        """Where a call that starts now runs."""
        return resolve_target(self.options.wish)

    def compile(self, arguments: Arguments | None) -> Compiled:
        """The program compiled for ``arguments``; without any, as far as that goes without values."""
        target = self.target()
        tokenizer = service().engines.tokenizer(target)
        if arguments is None:
            return compile_program(self._function, None, target, self.options.level, tokenizer)
        bound = bind(self._function, *arguments)
        return self._variants.find(self._function, bound, target, self.options.level, tokenizer)[0]

    def run(self, arguments: Arguments) -> Result:
        """One instance. Raises its error."""
        start = self._entered()
        return _raise_error(start.wait_for_one(start.prepare([arguments])))

    async def arun(self, arguments: Arguments) -> Result:
        """``run`` for use in an event loop."""
        start = self._entered()
        return _raise_error((await start.gather([arguments]))[0])

    def batch(self, batch: Iterable[Arguments]) -> list[Result]:
        """All instances, results in order; an instance's failure stands in its own result.

        Ctrl-C raises ``BatchInterruptedError``, which holds what was finished.
        """
        rows = _some(batch)
        cancelled = RequestCancelledError("the batch was interrupted before this instance was finished")
        results = [Result.failed(cancelled, Profile(self._function.name))] * len(rows)
        try:
            for number, result in self.iterate(rows):
                results[number] = result
        except KeyboardInterrupt:
            raise BatchInterruptedError(results) from None
        return results

    async def abatch(self, batch: Iterable[Arguments]) -> list[Result]:
        """``batch`` for use in an event loop."""
        start = self._entered()
        return await start.gather(_some(batch))

    def iterate(self, batch: Sequence[Arguments]) -> Iterator[tuple[int, Result]]:
        """Numbers and results as the instances finish. Closing the iterator cancels the others."""
        start = self._entered()
        return start.iterate(start.prepare(batch))

    def stream(self, arguments: Arguments) -> Stream:
        """One instance, token by token."""
        start = self._entered()
        events: queue.SimpleQueue[TokenEvent | None] = queue.SimpleQueue()
        return Stream(start, arguments, events)

    def astream(self, arguments: Arguments) -> AsyncStream:
        """``stream`` for use in an event loop."""
        return AsyncStream(self._entered(), arguments)

    def eager(self, arguments: Arguments) -> Result:
        """One instance as plain Python, operation by operation: the oracle. Raises its error."""
        engine = service().engines.engine(self.target())
        session = EagerSession(engine, run_seed=self.options.seed)
        outcome = run_eager(self._function, bind(self._function, *arguments), session)
        return Result(outcome.value, outcome.variables, outcome.text, outcome.profile)

    def _entered(self) -> _Start:
        """What is read once when a call enters."""
        home = service()
        home.loop.check_outside()
        return _Start(self._function, self._variants, self.options, self.target(), home)


@dataclass(frozen=True)
class _Start:
    """A call that has entered: everything ambient is settled."""

    function: JittedFunction
    variants: Variants
    options: Options
    target: Target
    home: Service

    def prepare(self, batch: Sequence[Arguments]) -> list[Job | Result]:
        """Bind and compile each instance; a result where that fails. Loads the engine."""
        tokenizer = self.home.engines.tokenizer(self.target)
        prepared: list[Job | Result] = []
        for number, (args, kwargs) in enumerate(batch):
            try:
                bound = bind(self.function, args, kwargs)
                found = self.variants.find(self.function, bound, self.target, self.options.level, tokenizer)
            except Exception as error:  # the user's own code may raise while it is captured
                prepared.append(Result.failed(error, Profile(self.function.name)))
                continue
            prepared.append(Job(number, bound, *found))
        if any(isinstance(entry, Job) for entry in prepared):
            self.home.engines.engine(self.target)
        return prepared

    def iterate(
        self, prepared: Sequence[Job | Result], on_event: OnEvent | None = None
    ) -> Iterator[tuple[int, Result]]:
        """Run what was prepared; results as they come."""
        found: queue.SimpleQueue[tuple[int, Result] | None] = queue.SimpleQueue()
        running = self.begin(
            prepared, lambda number, result: found.put((number, result)), on_event, lambda: found.put(None)
        )
        try:
            while (entry := found.get()) is not None:
                yield entry
            running.future.result()
        finally:
            running.stop()

    def begin(
        self,
        prepared: Sequence[Job | Result],
        on_result: Callable[[int, Result], None],
        on_event: OnEvent | None,
        on_end: Callable[[], None],
    ) -> _Running:
        """Start it in the background. ``on_end`` is called last, whatever happened."""
        jobs = [entry for entry in prepared if isinstance(entry, Job)]
        ended = threading.Event()

        async def work() -> None:
            try:
                for number, entry in enumerate(prepared):
                    if isinstance(entry, Result):
                        on_result(number, entry)
                if jobs:
                    engine = self.home.engines.engine(self.target)
                    await execute(self.function, jobs, engine, on_result, seed=self.options.seed, on_event=on_event)
            finally:
                ended.set()
                on_end()

        return _Running(self.home.loop.start(work()), ended)

    def wait_for_one(self, prepared: Sequence[Job | Result], on_event: OnEvent | None = None) -> Result:
        """The result of the only instance."""
        [(_, result)] = list(self.iterate(prepared, on_event))
        return result

    async def gather(self, batch: Sequence[Arguments], on_event: OnEvent | None = None) -> list[Result]:
        """All results in order, without blocking the loop this runs in."""
        prepared = await asyncio.to_thread(self.prepare, batch)
        results: dict[int, Result] = {}
        running = self.begin(prepared, results.__setitem__, on_event, lambda: None)
        try:
            await asyncio.wrap_future(running.future)
        finally:
            running.future.cancel()
        return [results[number] for number in range(len(batch))]


@dataclass(frozen=True)
class _Running:
    """Work in the background loop."""

    future: Future[None]
    ended: threading.Event

    def stop(self) -> None:
        """Cancel it, unless it is over, and wait until it is."""
        if self.future.cancel():
            self.ended.wait(_STOP_SECONDS)


class Stream:
    """Token events of one run, as they come. Iterating raises the run's error at its end; ``result`` is set then.

    Use it in a ``with`` block, or ``close`` it, to cancel a run that is not wanted to its end.
    """

    def __init__(self, start: _Start, arguments: Arguments, events: queue.SimpleQueue[TokenEvent | None]) -> None:
        self._results: dict[int, Result] = {}
        self._events = events
        self._over = False
        self._running = start.begin(
            start.prepare([arguments]), self._results.__setitem__, events.put, lambda: events.put(None)
        )

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> TokenEvent:
        event = None if self._over else self._events.get()
        if event is not None:
            return event
        if not self._over:
            self._over = True
            self._running.future.result()
            _raise_error(self._results[0])
        raise StopIteration

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def result(self) -> Result:
        """The result; waits for the run to end, without taking its events. Raises nothing: see ``Result.error``."""
        self._running.future.result()
        return self._results[0]

    def close(self) -> None:
        """Cancel the run, unless it is over."""
        self._over = True
        self._running.stop()


class AsyncStream:
    """``Stream`` for ``async for``; the run starts with the first step."""

    def __init__(self, start: _Start, arguments: Arguments) -> None:
        self._start = start
        self._arguments = arguments
        self._result: Result | None = None

    @property
    def result(self) -> Result:
        """The result. Raises ``InputError`` before the last event was taken."""
        if self._result is None:
            raise InputError("the stream is not at its end yet", remedy="take its events first: async for …")
        return self._result

    async def __aiter__(self) -> AsyncIterator[TokenEvent]:
        events: asyncio.Queue[TokenEvent | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def tell(event: TokenEvent | None) -> None:
            loop.call_soon_threadsafe(events.put_nowait, event)

        work = asyncio.ensure_future(self._start.gather([self._arguments], tell))
        work.add_done_callback(lambda _: tell(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            self._result = (await work)[0]
        finally:
            work.cancel()
        _raise_error(self._result)


def _some(batch: Iterable[Arguments]) -> list[Arguments]:
    rows = list(batch)
    if not rows:
        raise InputError("the batch is empty", remedy="give at least one instance")
    return rows


def _raise_error(result: Result) -> Result:
    if result.error is not None:
        raise result.error
    return result
