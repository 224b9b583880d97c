"""The engine as the endpoints use it: jobs, their lanes, limits and cancellation."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from lmc.grammar.automata.building import WorkLimit
from lmc.grammar.calls import Outputs
from lmc.grammar.compiling import Source, Whitespace
from lmc.grammar.constraint import Constraint
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.engine.protocol import (
    CacheFlushing,
    Engine,
    Generation,
    Handle,
    OnDelta,
    PrefixCaching,
    Request,
    Score,
    ScoreRequest,
    TokenDelta,
)
from lmc.ir.errors import ConstraintError, ContextLengthError, EngineError, InputError, LmcError
from lmc.ir.usage import Usage
from lmc.runtime.server.errors import ApiError, error_of, refused
from lmc.runtime.server.jobs import ClientLane, Event, GenerationJob, ScoredPart
from lmc.runtime.server.prompts import Prompts
from lmc.runtime.server.tokens import TokenTexts

T = TypeVar("T")
_COMPILERS = 2
_ENDING_SECONDS = 1.0  # for the engine to end what is cancelled, which it does at its next step
_RUNNING = 256  # of an engine that runs everything at once
_BUDGET = WorkLimit(work=100_000, steps=10_000_000, work_of_token=30_000)
"""For a token it is less than in compilation: all generations wait for it."""
MOST_CHARACTERS = 128 << 10
"""Of a schema, or those of all tools: what is compiled within a second. Of other constraints it is a quarter."""


class Prompting(Protocol):
    """The body of a request that has prompts. They raise ``ApiError``."""

    def prompts(self, model: Model) -> list[tuple[int, ...]]: ...


class Cancellable(Protocol):
    """A request or a run; ``cancel`` is idempotent."""

    def cancel(self) -> None: ...


@dataclass
class Model:
    """An engine under the name that clients give. ``max_waiting`` jobs may wait beside those that it runs at once."""

    engine: Engine
    name: str
    max_waiting: int
    constraints: ConstraintCache = field(default_factory=lambda: ConstraintCache(budget=_BUDGET))
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self.tokenizer = self.engine.tokenizer
        self.texts = TokenTexts.of(self.tokenizer)
        self.prompts = Prompts(self.tokenizer, self.engine.info.context_length, self.texts)
        self.in_flight = 0
        self.batched = 0
        self._of_lanes: Counter[int] = Counter()
        self._handles: dict[int, Cancellable] = {}
        self._compiling = asyncio.Semaphore(_COMPILERS)

    @property
    def waiting(self) -> int:
        """The number of jobs beyond those that the engine runs at once."""
        most = self.engine.info.max_running
        return 0 if most is None else max(0, self.in_flight - most)

    @property
    def now(self) -> int:
        """The time of day, in seconds since 1970."""
        return int(time.time())

    @property
    def most_of_lane(self) -> int:
        """The most jobs of a lane at once: what runs, and half of what may wait, so that others find room."""
        most = self.engine.info.max_running
        return (_RUNNING if most is None else most) + self.max_waiting // 2

    def check_count(self, count: int, parameter: str) -> None:
        """Raise ``ApiError`` that blames ``parameter`` where a request asks for too many generations."""
        if count > self.most_of_lane:
            raise refused(parameter, f"it asks for {count} generations, and at most {self.most_of_lane} are taken")

    async def prompts_of(self, body: Prompting, lane: ClientLane) -> list[tuple[int, ...]]:
        """Return the prompts of a request. Large ones are made in a thread, so that others do not wait for them."""
        return await asyncio.to_thread(body.prompts, self) if lane.is_large else body.prompts(self)

    def ids(self, given: Sequence[int]) -> tuple[int, ...]:
        """Return a prompt that is given as token ids. Raises ``InputError`` for one that the model does not have."""
        strange = next((each for each in given if not 0 <= each < self.tokenizer.vocabulary_size), None)
        if strange is not None:
            raise InputError(f"there is no token {strange}", remedy="give ids of the model's tokenizer")
        if not given:
            raise InputError("the prompt has no token", remedy="give at least one token id, or a text")
        return tuple(given)

    def seed(self, given: int | None) -> int:
        """Return the seed of a request, drawn where it gives none."""
        return secrets.randbits(63) if given is None else given

    async def constraint(
        self, parameter: str, kind: str, definition: Any, whitespace: Whitespace | None = None
    ) -> Constraint:
        """Compile a constraint in a thread. Raises ``ApiError`` that blames ``parameter``.

        ``kind`` is regex, schema, choices or grammar (in the syntax of Lark), ``whitespace`` that of a schema's JSON.
        """
        return await self._compiled(
            parameter, lambda: Source.of(**{kind: definition}, whitespace=whitespace or "compact")
        )

    async def outputs(self, parameter: str, outputs: Outputs) -> Constraint:
        """Compile a constraint of calls and texts. As ``constraint``."""
        return await self._compiled(parameter, lambda: Source.of_outputs(outputs))

    async def _compiled(self, parameter: str, source: Callable[[], Source]) -> Constraint:
        def compiled() -> Constraint:
            made = source()
            most = MOST_CHARACTERS if made.kind in ("schema", "outputs") else MOST_CHARACTERS // 4
            if len(made.text) > most:
                raise ConstraintError(f"it has more than {most} characters", remedy="give a smaller one")
            constraint = self.constraints.compiled(made, self.tokenizer)
            constraint.start().mask()  # here, and not where all generations wait for it
            return constraint

        try:
            async with self._compiling:
                return await asyncio.to_thread(compiled)
        except ConstraintError as error:
            raise error_of(error, parameter) from error

    async def generate(self, *jobs: GenerationJob) -> list[Generation]:
        """Return the generations of jobs, in their order. If this is cancelled, so are the jobs."""
        requests, lane = _requests(jobs), jobs[0].lane
        async with self._running(len(requests), lane) as leave, _blaming(jobs[0].parameter):
            handles: list[Handle[Generation]] = []
            try:
                for each in requests:
                    handles.append(self.engine.submit(each))
                return await self._all(handles, leave)
            except BaseException:
                self._release(handles)
                lane.seen.update(zip(_places(jobs), await _seen(handles), strict=False))
                raise

    async def stream(self, *jobs: GenerationJob) -> AsyncGenerator[Event]:
        """Yield the events of jobs as they come; choices count through all of them. Close it to cancel the jobs."""
        requests, places = _requests(jobs), _places(jobs)
        async with self._running(len(requests), jobs[0].lane) as leave, _blaming(jobs[0].parameter):
            events: asyncio.Queue[Event | BaseException] = asyncio.Queue()
            loop = asyncio.get_running_loop()

            def put(event: Event | BaseException) -> None:
                loop.call_soon_threadsafe(events.put_nowait, event)

            handles: list[Handle[Generation]] = []
            try:
                for choice, request in enumerate(requests):
                    handle = self.engine.submit(request, _report(put, choice))
                    handles.append(handle)
                    self._handles[id(handle)] = handle
                    handle.future.add_done_callback(_end(put, choice))
                missing = len(handles)
                while missing:
                    event = await events.get()
                    if isinstance(event, BaseException):
                        raise event
                    if isinstance(event.content, Generation):
                        missing -= 1
                        leave()
                    _note(jobs[0].lane, places[event.choice], requests[event.choice], event)
                    yield event
            finally:
                self._release(handles)

    async def scores(self, parts: Sequence[ScoredPart], lane: ClientLane) -> list[Score]:
        """Return the log-probabilities of the ends of prompts. If this is cancelled, so are the requests."""
        requests = [
            ScoreRequest(part.prompt, (part.rest,), instance=lane.number, place=lane.place, priority=lane.priority)
            for part in parts
        ]
        async with self._running(len(requests), lane) as leave:
            return await self._all([self.engine.score(each) for each in requests], leave)

    async def keep(self, prompts: Sequence[tuple[int, ...]], lane: ClientLane) -> list[Generation]:
        """Compute prompts, so that the cache has them for later requests; gives generations without a token."""
        engine = self.engine
        if not isinstance(engine, PrefixCaching):
            raise ApiError("invalid", "this engine keeps no prefixes", "max_tokens")
        async with self._running(len(prompts), lane) as leave:
            pins = await self._all([engine.prefill(prompt, lane.place, lane.priority) for prompt in prompts], leave)
        for pin in pins:
            engine.unpin(pin)
        return [computed(prompt, pin.cached_tokens) for prompt, pin in zip(prompts, pins, strict=True)]

    async def computing(self, prompts: Sequence[tuple[int, ...]], lane: ClientLane) -> AsyncGenerator[Event]:
        """Yield the events of prompts that are only computed."""
        for choice, found in enumerate(await self.keep(prompts, lane)):
            yield Event(choice, found)

    @asynccontextmanager
    async def attending(self, run: Cancellable, lane: ClientLane) -> AsyncGenerator[None]:
        """Count a run that uses the engine itself as one job, which ends with the block. ``cut`` cancels it."""
        async with self._running(1, lane):
            self._handles[id(run)] = run
            try:
                yield
            finally:
                self._release([run])

    def flush(self) -> bool:
        """Forget computed prefixes; False where the engine keeps none."""
        if not isinstance(self.engine, CacheFlushing):
            return False
        self.engine.flush_cache()
        return True

    def cut(self) -> None:
        """Cancel all that runs. Their clients get an error in the form of their protocol."""
        for handle in list(self._handles.values()):
            handle.cancel()

    async def _all(self, handles: Sequence[Handle[T]], leave: Callable[[], None]) -> list[T]:
        """Wait for all results, and call ``leave`` at each. Cancel all where one fails, or where this is cancelled."""
        self._handles.update((id(handle), handle) for handle in handles)
        futures = [asyncio.wrap_future(handle.future) for handle in handles]
        for future in futures:
            future.add_done_callback(lambda _: leave())
        try:
            return list(await asyncio.gather(*futures))
        finally:
            self._release(handles)

    def _release(self, handles: Sequence[Cancellable]) -> None:
        for handle in handles:
            handle.cancel()
            self._handles.pop(id(handle), None)

    @asynccontextmanager
    async def _running(self, count: int, lane: ClientLane) -> AsyncGenerator[Callable[[], None]]:
        """Count jobs while they run; what it gives is called where one has ended before the others.

        Raises ``ApiError`` where too many wait; lines of a batch are let in by it.
        """
        if lane.place is None:
            own = self._of_lanes[lane.number]
            is_full = self.waiting + count > self.max_waiting and self.waiting
            if is_full or (own and own + count > self.most_of_lane):
                raise ApiError(
                    "busy",
                    f"{self.waiting} requests wait for the model, {own} are yours",
                    code="rate_limit_exceeded",
                    headers={"Retry-After": "1"},
                )
        left = count

        def leave(ended: int = 1) -> None:
            nonlocal left
            ended = min(ended, left)
            left -= ended
            self._count(-ended, lane)

        self._count(count, lane)
        try:
            yield leave
        finally:
            leave(left)

    def _count(self, more: int, lane: ClientLane) -> None:
        if lane.place is not None:
            self.batched += more
            return
        self.in_flight += more
        self._of_lanes[lane.number] += more
        if not self._of_lanes[lane.number]:
            del self._of_lanes[lane.number]


async def _seen(handles: Sequence[Handle[Generation]]) -> list[Usage | Generation]:
    """Return what cancelled generations, and those that have ended, have cost, once the engine has let go of them."""
    futures = [asyncio.wrap_future(handle.future) for handle in handles]
    if futures:
        await asyncio.wait(futures, timeout=_ENDING_SECONDS)
    seen: list[Usage | Generation] = []
    for future in futures:
        error = None if not future.done() or future.cancelled() else future.exception()
        if future.done() and not future.cancelled() and error is None:
            seen.append(future.result())
        else:
            seen.append((isinstance(error, LmcError) and error.usage) or Usage())
            future.cancel()
    return seen


@asynccontextmanager
async def _blaming(parameter: str) -> AsyncGenerator[None]:
    """Blame ``parameter`` for a prompt that is too long for the engine, as ``ApiError``."""
    try:
        yield
    except ContextLengthError as error:
        raise error_of(error, parameter) from error


def computed(prompt: Sequence[int], cached_tokens: int = 0) -> Generation:
    """Return the generation of a prompt that is only computed."""
    return Generation((), "", "length", prompt_tokens=len(prompt), cached_tokens=cached_tokens)


def _requests(jobs: Sequence[GenerationJob]) -> list[Request]:
    return [
        Request(
            job.prompt,
            job.sampling,
            seed=seed,
            constraint=job.constraint,
            may_be_cut=True,
            instance=job.lane.number,
            place=job.lane.place,
            priority=job.lane.priority,
            number=number,
        )
        for job in jobs
        for number, seed in enumerate(job.seeds)
    ]


def _places(jobs: Sequence[GenerationJob]) -> list[tuple[int, int]]:
    return [(place, number) for place, job in enumerate(jobs) for number in range(len(job.seeds))]


def _note(lane: ClientLane, place: tuple[int, int], request: Request, event: Event) -> None:
    """Note in a lane what a stream has shown."""
    content = event.content
    if isinstance(content, TokenDelta):
        count = lane.seen.get(place, Usage()).generated_tokens + len(content.token_ids)
        content = Usage(len(request.prompt), content.cached_tokens, count)
    lane.seen[place] = content


def _report(put: Callable[[Event], None], choice: int) -> OnDelta:
    def report(delta: TokenDelta) -> None:
        put(Event(choice, delta))

    return report


def _end(put: Callable[[Event | BaseException], None], choice: int) -> Callable[[Any], None]:
    def end(future: Any) -> None:
        if future.cancelled():
            return put(EngineError("the request was cancelled", remedy="send it again"))
        error = future.exception()
        return put(Event(choice, cast("Generation", future.result())) if error is None else error)

    return end
