"""A call that has entered: instances are prepared here, and run in the background."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from lmc.driver.compile import DEFAULT_LEVEL, Variants
from lmc.driver.defaults import Wish
from lmc.driver.execute import Job, execute
from lmc.driver.result import Result
from lmc.driver.service import Service
from lmc.frontend.arguments import bind
from lmc.frontend.function import JittedFunction
from lmc.ir.profile import Profile
from lmc.ir.target import Target
from lmc.runtime.events import OnEvent

Arguments = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Positional and keyword arguments of one instance."""

_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a program runs, as far as the user said so: see ``Program.on``."""

    wish: Wish = field(default_factory=Wish)
    seed: int = 0
    level: str = DEFAULT_LEVEL


@dataclass(frozen=True)
class Start:
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
    ) -> Running:
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

        return Running(self.home.loop.start(work()), ended)

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
class Running:
    """Work in the background loop."""

    future: Future[None]
    ended: threading.Event

    def stop(self) -> None:
        """Cancel it, unless it is over, and wait until it is."""
        if self.future.cancel():
            self.ended.wait(_STOP_SECONDS)


def raise_error(result: Result) -> Result:
    """``result``; raises its error."""
    if result.error is not None:
        raise result.error
    return result
