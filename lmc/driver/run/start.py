"""A bound call: instances are prepared here, and run in the background."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.backend.plan import Plan
from lmc.driver.compile.compile import MAX_VARIANTS, Variants
from lmc.driver.compile.compiled import Compiled
from lmc.driver.options import Options
from lmc.driver.run.ending import OnResult
from lmc.driver.run.execute import Job, execute, limits_of
from lmc.driver.run.journals import OpenJournal, is_blocked, mark_row
from lmc.driver.run.money import RunMoney
from lmc.driver.run.result import Result
from lmc.driver.targets.constraints import compiler
from lmc.driver.targets.service import Service
from lmc.frontend.program.arguments import Bound, bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.source.locations import user_location
from lmc.frontend.tools.tool_calls import in_tool_loop
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.cached import cached_property
from lmc.ir.engine.forks import at_work
from lmc.ir.engine.target import Target
from lmc.ir.errors import JournalError, LmcError
from lmc.ir.profile import Profile
from lmc.ir.semantics.constraint_runtime import Compile
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.runtime.events import OnEvent
from lmc.runtime.journal.journal import RunJournal

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Positional and keyword arguments of one instance."""

Prepared = tuple[int, Job | Result]
"""An instance's number and what is to run, or its result where that is settled."""


@dataclass(frozen=True)
class BoundCall:
    """A call with its target, options and services resolved. Nothing below reads the environment."""

    function: JittedFunction
    variants: Variants
    options: Options
    target: Target
    home: Service
    constraints: ConstraintCache
    open_journal: OpenJournal | None = None
    money: RunMoney | None = None

    @property
    def compile(self) -> Compile:
        """Return the compiler of constraints for the target of the call."""
        return compiler(self.constraints, self.tokenizer)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer of the target's folder at first use. Raises ``InputError`` for an unknown model."""
        return self.home.engines.tokenizer(self.target)

    def variant(self, bound: Bound) -> tuple[Compiled, Mapping[str, Any]]:
        """The program compiled for ``bound``, and its inputs."""
        pipeline = self.options.pipeline
        return self.variants.find(self.function, bound, self.target, pipeline, self.tokenizer, cache=self.constraints)

    def prepare(self, batch: Sequence[Arguments]) -> list[Prepared]:
        """Bind and compile each instance; a result where that fails. Loads the engine."""
        with at_work():
            _ = self.tokenizer  # a target that is not there is an error of the call, not of each row
            prepared = [self._prepare_one(number, arguments) for number, arguments in enumerate(batch)]
            self._load_engine(prepared)
        return prepared

    def prepare_window(self, waiting: deque[tuple[int, Arguments]], *, is_loaded: bool) -> list[Prepared]:
        """``prepare`` rows taken off ``waiting``, by their numbers, which key their random draws.

        ``is_loaded``: the call has its engine already.

        Rows that would need more variants than are kept are left: rows of few variants are scheduled together, and rows
        of many variants have little in common.
        """
        _ = self.tokenizer
        prepared: list[Prepared] = []
        plans: set[Plan] = set()
        while waiting:
            number, entry = self._prepare_one(*waiting[0])
            if isinstance(entry, Job):
                plans.add(entry.compiled.plan)
                if len(plans) > MAX_VARIANTS:
                    break
            prepared.append((number, entry))
            waiting.popleft()
        if not is_loaded:
            self._load_engine(prepared)
        return prepared

    def _prepare_one(self, number: int, arguments: Arguments) -> Prepared:
        try:
            bound = bind(self.function, *arguments)
            return number, Job(number, bound, *self.variant(bound))
        except Exception as error:  # the user's own code may raise while it is captured
            return number, Result.failed(error, Profile(self.function.name))

    def _load_engine(self, prepared: Sequence[Prepared]) -> None:
        if any(isinstance(entry, Job) for _, entry in prepared):
            self.home.engines.engine(self.target)

    def iterate(self, prepared: Sequence[Prepared]) -> Iterator[tuple[int, Result]]:
        """Run prepared instances; yield results as they come."""
        return iterate_in_background(self.home, lambda on_result: self.work(prepared, on_result))

    async def work(self, prepared: Sequence[Prepared], on_result: OnResult, on_event: OnEvent | None = None) -> None:
        """Run prepared instances, in the background loop."""
        jobs = report_failed(prepared, on_result)
        if not jobs:
            return
        if self.open_journal is None:
            await self._execute(jobs, on_result, on_event, None)
            return
        journal = self.open_journal()
        is_finished = True

        def marked(number: int, result: Result) -> None:
            nonlocal is_finished
            is_finished = is_finished and not is_blocked(result)
            mark_row(journal, number, result)
            on_result(number, result)

        try:
            await self._execute(jobs, marked, on_event, journal)
            if is_finished:
                journal.finish()
        except BaseException:
            with contextlib.suppress(JournalError):  # the run ends with its own error
                journal.close()
            raise
        await asyncio.to_thread(journal.close)

    async def _execute(
        self, jobs: Sequence[Job], on_result: OnResult, on_event: OnEvent | None, journal: RunJournal | None
    ) -> None:
        with self.home.engines.use(self.target) as engine:
            await execute(
                self.function,
                jobs,
                engine,
                on_result,
                seed=self.options.seed,
                compile=self.compile,
                limits=limits_of(self.options),
                on_event=on_event,
                journal=journal,
                money=self.money,
            )

    def wait_for_one(self, prepared: Sequence[Prepared]) -> Result:
        """The result of the only instance."""
        [(_, result)] = list(self.iterate(prepared))
        return result

    async def gather(self, batch: Sequence[Arguments], on_event: OnEvent | None = None) -> list[Result]:
        """All results in order, without blocking the loop this runs in."""
        prepared = await asyncio.to_thread(self.prepare, batch)
        results: dict[int, Result] = {}
        await self.home.loop.start(self.work(prepared, results.__setitem__, on_event)).wait()
        return [results[number] for number in range(len(batch))]


def report_failed(prepared: Sequence[Prepared], on_result: OnResult) -> list[Job]:
    """Report the results that are known already; return the jobs to run."""
    for number, entry in prepared:
        if isinstance(entry, Result):
            on_result(number, entry)
    return [entry for _, entry in prepared if isinstance(entry, Job)]


def iterate_in_background(
    home: Service, work: Callable[[OnResult], Coroutine[Any, Any, None]]
) -> Iterator[tuple[int, Result]]:
    """Run ``work`` in the background and yield its reports. Closing the iterator cancels it."""
    check_may_wait()
    found: queue.SimpleQueue[tuple[int, Result] | None] = queue.SimpleQueue()

    async def main() -> None:
        try:
            await work(lambda number, result: found.put((number, result)))
        finally:
            found.put(None)

    running = home.loop.start(main())
    try:
        while (entry := found.get()) is not None:
            yield entry
        running.result()
    finally:
        running.stop()


def check_may_wait() -> None:
    """Raise ``LmcError`` in an async tool: the tools of a program that it waits for would wait for it."""
    if in_tool_loop():
        raise LmcError(
            "a program was run from an async tool, which holds up all other async tools until it is over",
            remedy="await program.arun(…) there, or write a plain function",
            location=user_location(),
        )


def raise_error(result: Result) -> Result:
    """``result``; raises its error."""
    if result.error is not None:
        raise result.error
    return result
