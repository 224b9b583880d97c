"""Running a program: one call, a batch, a stream; from plain code, from a notebook, from another event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from lmc.backend.plan import Plan
from lmc.cache.batch_order.ranks import Layout
from lmc.driver.batch.lazy_batch import LazyBatch
from lmc.driver.batch.run_journal import Resumption, begin_journal, open_journal, record_call
from lmc.driver.batch.windows import Part, Waiting, WindowedRun
from lmc.driver.compile.compile import Variants, compile_program
from lmc.driver.compile.compiled import Compiled
from lmc.driver.options import Options
from lmc.driver.run.ending import OnResult
from lmc.driver.run.execute import Execution, limits_of
from lmc.driver.run.journals import (
    OpenJournal,
    acquire_engine,
    is_blocked,
    log_resumed,
    mark_row,
    release_engine,
)
from lmc.driver.run.money import RunMoney
from lmc.driver.run.result import Result
from lmc.driver.run.start import Arguments, BoundCall, Prepared, check_may_wait, raise_error, report_failed
from lmc.driver.run.stream import AsyncStream, Stream
from lmc.driver.targets.cancelling import CancellableEngine, error_of
from lmc.driver.targets.defaults import resolve_grammar_cache, resolve_target, target_of_run
from lmc.driver.targets.hosted import is_unprobed, needs_probe
from lmc.driver.targets.service import service
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.eager_runs import run_eager
from lmc.frontend.program.function import JittedFunction
from lmc.ir.engine.forks import check_process
from lmc.ir.engine.hosts import CallScope, ProgramStopped, calling_in
from lmc.ir.engine.observing import Observer
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.target import Target
from lmc.ir.errors import InputError, LoweringError, RequestCancelledError
from lmc.ir.profile import Profile
from lmc.ir.wording import with_count
from lmc.runtime.journal.calls import JournaledCalls
from lmc.runtime.journal.journal import RunJournal

T = TypeVar("T", bound=Sequence[Any])


class BatchInterruptedError(KeyboardInterrupt):
    """Ctrl-C in a batch. ``results`` holds what was finished; the other instances have a ``RequestCancelledError``."""

    def __init__(self, results: Sequence[Result]) -> None:
        kept = sum(result.error is None for result in results)
        super().__init__(f"{kept} of {with_count(len(results), 'instance')} finished; .results holds them")
        self.results = list(results)


class Runner:
    """A program with the options it runs under. Compiled variants are shared by all runners of one program."""

    def __init__(self, function: JittedFunction, options: Options, variants: Variants | None = None) -> None:
        self.options = options
        self._function = function
        self._variants = variants or Variants()

    @property
    def program(self) -> str:
        """Name of the program."""
        return self._function.name

    @property
    def function(self) -> JittedFunction:
        """The program."""
        return self._function

    def with_options(self, options: Options) -> Runner:
        """Return the program with other options; it shares the compiled variants."""
        return Runner(self._function, options, self._variants)

    def target(self) -> Target:
        """Return the target of a call that starts now."""
        return resolve_target(self.options)

    def compile(self, arguments: Arguments | None) -> Compiled:
        """Return the program compiled for ``arguments``; without any, for unknown ones.

        Raises an ``LmcError`` of the run that is known at compile time.
        """
        start = self._start(self.target())
        with _naming_probe(start.target):
            if arguments is not None:
                compiled = start.variant(bind(self._function, *arguments))[0]
            else:
                compiled = self._variants.latest = self._compile_for_annotations(start)
        if compiled.captured.refused is not None:
            raise compiled.captured.refused
        return compiled

    def _compile_for_annotations(self, start: BoundCall) -> Compiled:
        pipeline = self.options.pipeline
        return compile_program(self._function, None, start.target, pipeline, start.tokenizer, cache=start.constraints)

    def place(self, arguments: Arguments) -> tuple[Plan, Mapping[str, Any]]:
        """The plan that runs arguments, and its inputs. Nothing is run, and no engine is loaded."""
        start = self._start(self.target())
        with _naming_probe(start.target):
            compiled, inputs = start.variant(bind(self._function, *arguments))
        return compiled.plan, inputs

    def place_all(self, batch: Iterable[Arguments]) -> Iterator[tuple[Compiled, Mapping[str, Any]]]:
        """Yield the program compiled for each of some arguments, and its inputs: as ``place``, for many."""
        start = self._start(self.target())
        with _naming_probe(start.target):
            for arguments in batch:
                yield start.variant(bind(self._function, *arguments))

    def run(self, arguments: Arguments) -> Result:
        """One instance. Raises its error."""
        start = self._entered([arguments])
        return raise_error(start.wait_for_one(start.prepare([arguments])))

    async def arun(self, arguments: Arguments) -> Result:
        """``run`` for use in an event loop."""
        await self._ask_server()
        start = self._entered([arguments])
        return raise_error((await start.gather([arguments]))[0])

    def batch(self, batch: Sequence[Arguments] | Iterator[Arguments | InputError]) -> list[Result]:
        """Run all instances, results in order; an instance's error is in its own result.

        A sequence is scheduled as a whole. An iterator is read while others run, here, and scheduled in windows; its
        exception stops those that run. Ctrl-C raises ``BatchInterruptedError``, which holds the finished results.
        """
        if isinstance(batch, Iterator):
            check_may_wait()
            with self._lazy_batch() as lazy:
                try:
                    lazy.finish(batch)
                except KeyboardInterrupt:
                    raise BatchInterruptedError(lazy.results(self._interrupted())) from None
            return _some(lazy.results(self._interrupted()))
        results = [self._interrupted()] * len(_some(batch))
        try:
            for number, result in self.iterate(batch):
                results[number] = result
        except KeyboardInterrupt:
            raise BatchInterruptedError(results) from None
        return results

    async def abatch(self, batch: Sequence[Arguments] | Iterator[Arguments | InputError]) -> list[Result]:
        """``batch`` for use in an event loop."""
        await self._ask_server()
        if isinstance(batch, Iterator):
            with self._lazy_batch() as lazy:
                await lazy.afinish(batch)
            return _some(lazy.results(self._interrupted()))
        start = self._entered(_some(batch))
        return await start.gather(batch)

    def iterate(self, batch: Sequence[Arguments]) -> Iterator[tuple[int, Result]]:
        """Numbers and results as the instances finish. Closing the iterator cancels the others."""
        start = self._entered(batch)
        return start.iterate(start.prepare(batch))

    def run_rows(
        self,
        parts: Iterable[Part],
        layout: Layout | None = None,
        observer: Observer | None = None,
        journal: RunJournal | None = None,
    ) -> WindowedRun:
        """Numbers and results of rows that are read while others run, as they finish.

        With a ``layout`` they start as they come, in its blocks; else in the order that is found for each part, and
        for each window of parts that are small. ``observer`` takes requests, calls and steps, ``journal``
        records requests and calls of tools; rows are recorded by the caller.
        """
        start = self._entered(is_replay=journal is not None and journal.is_replay)
        return WindowedRun(start.home, parts, _Windows(start, layout, observer, journal))

    def stream(self, arguments: Arguments) -> Stream:
        """One instance, token by token."""
        return Stream(self._entered([arguments]), arguments)

    def astream(self, arguments: Arguments) -> AsyncStream:
        """``stream`` for use in an event loop."""

        async def start() -> BoundCall:
            await self._ask_server()
            return self._entered([arguments])

        return AsyncStream(self.program, start, arguments)

    def eager(self, arguments: Arguments) -> Result:
        """One instance as plain Python, operation by operation: the oracle. Raises its error."""
        start = self._start(target_of_run(self.options))
        start = replace(start, money=RunMoney.of(self.options.budget, start.target))
        opened = self._journal(start, [arguments])
        if opened is not None:
            with opened() as journal:
                result = self._eager(start, arguments, journal)
                journal.finish()
                return result
        return self._eager(start, arguments, None)

    def _eager(self, start: BoundCall, arguments: Arguments, journal: RunJournal | None) -> Result:
        options, scope = self.options, None
        with start.home.engines.use(start.target) as own:
            money = start.money or RunMoney()
            engine = money.layered(own, journal)
            if journal is not None:
                scope = CallScope(JournaledCalls(journal), journal.run, 0, f"{self.program}/@after")
            if engine is not own:
                engine = CancellableEngine(engine)  # outermost: what ends a run is raised where plain Python waits
            session = EagerSession(
                engine,
                run_seed=options.seed,
                timeout=options.timeout,
                compile=start.compile,
                order_sections=options.order_sections,
            )
            try:
                with calling_in(scope):
                    outcome = run_eager(self._function, bind(self._function, *arguments), session)
            except ProgramStopped as stopped:
                raise error_of(stopped) from None
        return replace(Result.of(outcome), spending=money.spent_by(0))

    @contextmanager
    def _lazy_batch(self) -> Generator[LazyBatch]:
        """A batch whose rows come one by one. Its journal is finished where the block ends in order."""
        start = self._entered()
        open_journal = self._journal(start, None)
        if open_journal is None:
            yield LazyBatch(WindowedRun(start.home, None, _Windows(start, None, None, None, is_batch=True)))
            return
        with open_journal() as journal:
            windows = _Windows(start, None, None, journal, is_batch=True)
            yield LazyBatch(WindowedRun(start.home, None, windows))
            if not windows.is_blocked:
                journal.finish()

    async def _ask_server(self) -> None:
        """Probe a server without blocking the loop: the entering call finds it probed."""
        if any(map(needs_probe, self.target().chain)):
            await asyncio.to_thread(target_of_run, self.options)

    def _interrupted(self) -> Result:
        """The result of an instance that has none."""
        error = RequestCancelledError("the batch was interrupted before this instance was finished")
        return Result.failed(error, Profile(self._function.name))

    def _entered(self, rows: Sequence[Arguments] | None = None, *, is_replay: bool = False) -> BoundCall:
        """A call that enters the background loop, over ``rows`` where they are known. A replay asks no server."""
        start = self._start(self.target() if is_replay else target_of_run(self.options))
        start.home.loop.check_outside()
        start = replace(start, money=RunMoney.of(None if is_replay else self.options.budget, start.target))
        return start if rows is None else replace(start, open_journal=self._journal(start, rows))

    def _journal(self, start: BoundCall, rows: Sequence[Arguments] | None) -> OpenJournal | None:
        """Return what opens the journal that the options name."""
        options = self.options
        if options.journal is None:
            if options.resume:
                raise InputError("resume is True, and there is no journal", remedy='name it: journal="FILE.lmcj"')
            return None
        record = record_call(self._function, start.target, options, rows)
        path = os.fspath(options.journal)
        resumption = Resumption() if options.resume is True else options.resume or None

        def opened() -> RunJournal:
            journal = open_journal(path)
            try:
                begin_journal(journal, record, options, start.target, resumption=resumption)
            except BaseException:
                journal.close()
                raise
            log_resumed(journal)
            return journal

        return opened

    def _start(self, target: Target) -> BoundCall:
        """Read the ambient state of a call. Raises ``EngineError`` in a forked child that can run no program."""
        check_process()
        home = service()
        constraints = home.constraints.of(resolve_grammar_cache())
        return BoundCall(self._function, self._variants, self.options, target, home, constraints)


class _Windows:
    """Windows of one program's rows.

    ``is_batch``: rows that are finished are written to the journal.
    """

    def __init__(
        self,
        start: BoundCall,
        layout: Layout | None,
        observer: Observer | None,
        journal: RunJournal | None,
        *,
        is_batch: bool = False,
    ) -> None:
        self.is_blocked = False
        """True if a row was stopped that may go on in a later run."""
        self._observer = observer
        self._journal = journal
        self._is_batch = is_batch
        self._start = start
        self._layout = layout
        self._execution: Execution | None = None
        self._engine: Engine | None = None

    @property
    def program(self) -> str:
        return self._start.function.name

    @property
    def is_over(self) -> bool:
        return self._execution is not None and self._execution.end.has_refused

    @property
    def money(self) -> RunMoney:
        assert self._start.money is not None, "the call has been entered"
        return self._start.money

    def prepare(self, waiting: Waiting) -> Sequence[Prepared]:
        is_replay = self._journal is not None and self._journal.is_replay
        return self._start.prepare_window(waiting, is_loaded=is_replay or self._engine is not None)

    async def run(self, prepared: Sequence[Prepared], on_result: OnResult, on_stopped: OnResult) -> None:
        jobs = report_failed(prepared, on_result)
        if not jobs:
            return
        if self._execution is None:
            start = self._start
            self._engine = acquire_engine(start.home, start.target, self._journal, start.tokenizer)
            self._execution = Execution(
                start.function,
                self._engine,
                partial(self._found, on_result) if self._is_batch else on_result,
                seed=start.options.seed,
                compile=start.compile,
                limits=limits_of(start.options),
                on_stopped=on_stopped,
                layout=self._layout,
                observer=self._observer,
                journal=self._journal,
                money=start.money,
            )
        await self._execution.run(jobs)

    def close(self) -> None:
        if self._execution is not None:
            self._execution.close()
        if self._engine is not None:
            release_engine(self._start.home, self._engine)
            self._engine = None

    def _found(self, on_result: OnResult, number: int, result: Result) -> None:
        if self._journal is not None:
            mark_row(self._journal, number, result)
        self.is_blocked = self.is_blocked or is_blocked(result)
        on_result(number, result)


@contextmanager
def _naming_probe(target: Target) -> Generator[None]:
    """Name the probe in errors of lowering for a server that was not asked yet: it may have what is missing."""
    try:
        yield
    except LoweringError as error:
        if is_unprobed(target) and error.remedy is not None:
            error.remedy += f"; or ask the server what it can do: lmc targets {target.spec}"
        raise


def _some(rows: T) -> T:
    if not rows:
        raise InputError("the batch is empty", remedy="give at least one instance")
    return rows
