"""An engine over HTTP: a hosted model, or a server that somebody runs."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from lmc.cost.sending import sent_output
from lmc.grammar.constraint import Constraint
from lmc.grammar.provider_schema import ProviderForm, form_of
from lmc.ir.engine.loop_thread import LoopThread
from lmc.ir.engine.protocol import (
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    Leaving,
    OnDelta,
    Request,
    Score,
    ScoreRequest,
    TokenDelta,
)
from lmc.ir.engine.target import RemoteSettings, Target
from lmc.ir.errors import (
    ConstraintError,
    EngineClosedError,
    EngineError,
    InputError,
    LmcError,
    RequestCancelledError,
    RequestTimeoutError,
)
from lmc.ir.tokens.messages import conversation_of
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Attempt, Usage
from lmc.runtime.remote.asking import BYTES_PER_TOKEN, LOOP_NAME, Asked, ModelProtocol, RemoteService, Reply, place_of
from lmc.runtime.remote.attempts import Tries, attempts
from lmc.runtime.remote.failures import AttemptError, OwnError, malformed, shown_in_part, too_slow
from lmc.runtime.remote.limits import RateLimits

T = TypeVar("T")
R = TypeVar("R")
E = TypeVar("E", bound=LmcError)
_LOGGER = logging.getLogger("lmc.remote")
_UNBOUNDED = 1 << 40
_REFUSED = 1.0
"""Seconds without a request, after which a key or a quota that was refused may be good again."""
_NO_KEY = "none"
"""Sent to servers that need no key: the SDKs want one."""


class _Loop(LoopThread):
    """The event loop of one engine."""

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` there."""
        self._loop.call_soon_threadsafe(lambda: self._keep(self._loop.create_task(work)))

    def call(self, function: Callable[[], object]) -> None:
        """Call ``function`` there."""
        self._loop.call_soon_threadsafe(function)

    async def end_others(self) -> None:
        """Cancel what else runs there, and wait for its end: what is cancelled with the loop closes no connection."""
        others = self._tasks - {asyncio.current_task()}
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(LOOP_NAME)


@dataclass
class _Sent(Generic[T]):
    """A request that waits, or is under way."""

    loop: _Loop
    future: Future[T] = field(default_factory=Future)
    task: asyncio.Task[Any] | None = None
    is_cancelled: bool = False

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # who stops waiting cancels the request, and that ends the future

    def cancel(self) -> None:
        """Drop it: its connection is closed."""
        if not self.future.done():
            self.loop.call(self._cancel)

    def _cancel(self) -> None:
        self.is_cancelled = True
        if self.task is not None:
            self.task.cancel()


class RemoteEngine:
    """Sends requests to the model of ``target``; ``tokenizer`` is that of its contexts.

    The key is read from the environment at the first request. ``fallback`` makes the engine that is asked where a
    request fails after all its attempts; it is made when it is needed, and closed with this one. Results name it by
    ``fallback_name``. ``place`` is that of the engine among the target and its fallbacks. ``near`` are models with
    names like that of the target.

    Raises ``InputError`` where a variable that should hold the key is not set.
    """

    def __init__(
        self,
        target: Target,
        tokenizer: Tokenizer,
        fallback: Callable[[], RemoteEngine] | None = None,
        near: Sequence[str] = (),
        *,
        fallback_name: str = "",
        place: int = 0,
    ) -> None:
        assert target.remote is not None
        assert target.path is not None
        self._settings: RemoteSettings = target.remote
        self._spec = target.spec
        self._tokenizer = tokenizer
        self._capabilities = target.capabilities
        # The lengths of other contexts are no tokens of the model.
        has_tokens = target.capabilities.contexts == "tokens"
        length = target.remote.context_length if has_tokens else None
        self._info = EngineInfo(
            target.spec,
            length or _UNBOUNDED,
            target.remote.kv_tokens if has_tokens else None,
            max_running=target.remote.concurrency,
            capabilities=target.capabilities,
            fallbacks=target.served[1:],
            attempts=target.attempts,
            page_tokens=target.remote.kv_page,
        )
        self._service = RemoteService(
            model_named(target),
            target.remote if target.kind != "server" else replace(target.remote, base_url=address_of(target)),
            target.capabilities,
            key_of(target),
            tokenizer,
            target.kind == "server",
            tuple(near),
            place,
        )
        self._make_fallback = fallback
        self._fallback_name = fallback_name
        self._place = place
        self._is_noticed = False
        self._fallback: RemoteEngine | None = None
        self._statistics = EngineStatistics()
        self._lock = threading.Lock()
        self._forms: dict[str, ProviderForm | None] = {}
        self._closed = False
        self._loop = _Loop()
        self._protocol: ModelProtocol | None = None
        self._limits: RateLimits | None = None
        self._refused: tuple[EngineError, float] | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def statistics(self) -> EngineStatistics:
        with self._lock:
            return replace(self._statistics)

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        return self.submit_announced(request, on_delta, None)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        return self.score_announced(request, None)

    def submit_announced(
        self, request: Request, on_delta: OnDelta | None, leaving: Leaving | None
    ) -> Handle[Generation]:
        try:
            asked = self._asked(request)
        except (ConstraintError, EngineError, InputError) as error:
            return _failed(self._loop, error)
        deadline = _Deadline(request.timeout)
        is_of_fallback = request.stored is not None and place_of(request.stored.id) > self._place
        return self._send(
            lambda: self._generate(asked, on_delta, leaving, deadline),
            lambda engine: engine.submit_announced(replace(request, timeout=deadline.left), on_delta, leaving),
            is_of_fallback=is_of_fallback,
        )

    def score_announced(self, request: ScoreRequest, leaving: Leaving | None) -> Handle[Score]:
        deadline = _Deadline(request.timeout)
        return self._send(
            lambda: self._score(request, leaving, deadline),
            lambda engine: engine.score_announced(replace(request, timeout=deadline.left), leaving),
        )

    def stored_usage(self, stored: str) -> Handle[Usage | None]:
        if place_of(stored) > self._place and self._make_fallback is not None:
            try:
                return self._second().stored_usage(stored)
            except LmcError as error:  # the fallback can't be made
                return _failed(self._loop, error)
        return self._send(lambda: self._usage_of(stored), lambda engine: engine.stored_usage(stored))

    def close(self) -> None:
        """Cancel what is under way, and close the connections."""
        if self._closed:
            return
        self._closed = True
        done = threading.Event()

        async def end() -> None:
            await self._loop.end_others()
            if self._protocol is not None:
                await self._protocol.close()
            done.set()

        self._loop.start(end())
        done.wait(2.0)
        self._loop.close()
        if self._fallback is not None:
            self._fallback.close()

    def _send(
        self,
        ask: Callable[[], Coroutine[Any, Any, T]],
        fall_back: Callable[[RemoteEngine], Handle[Any]],
        *,
        is_of_fallback: bool = False,
    ) -> Handle[T]:
        """Ask, and ask the fallback where that fails. ``is_of_fallback``: it keeps the answer of an earlier run."""
        sent: _Sent[T] = _Sent(self._loop)
        if self._closed:
            return _failed(self._loop, EngineClosedError(f"the connection to {self._spec} was closed"))

        async def work() -> None:
            sent.task = asyncio.current_task()
            try:
                if sent.is_cancelled:
                    raise self._cancelled(())
                try:
                    if is_of_fallback and self._make_fallback is not None:
                        answer = await self._from_fallback(fall_back, None)
                    else:
                        answer = await ask()
                except AttemptError as failure:
                    if self._make_fallback is None or failure.is_last:
                        raise
                    answer = await self._from_fallback(fall_back, failure)
                sent.future.set_result(answer)
            except AttemptError as failure:
                sent.future.set_exception(_with_cost(failure.error, failure.attempts))
            except asyncio.CancelledError:  # as it began, or ended
                sent.future.set_exception(self._cancelled(None))
            except BaseException as error:
                sent.future.set_exception(error)

        self._loop.start(work())
        return sent

    def _cancelled(self, attempts: tuple[Attempt, ...] | None) -> LmcError:
        """Return the error of a request that is cancelled, with its attempts; None: they are not known."""
        error = (EngineClosedError if self._closed else RequestCancelledError)("the request was cancelled")
        return error if attempts is None else _with_cost(error, attempts)

    async def _from_fallback(self, ask: Callable[[RemoteEngine], Handle[Any]], failure: AttemptError | None) -> Any:
        """Return the answer of the fallback, with the cost of the failed attempts. Raises ``failure`` without one."""
        try:
            handle = ask(self._second())
        except LmcError as error:  # it can't be made: the user has to know why this target failed
            if failure is None:
                raise
            found = failure.error
            cause = f"{found.cause}; its fallback {self._fallback_name} can't be asked: {error.cause} ({error.remedy})"
            failure.error = type(found)(cause, remedy=found.remedy)
            raise failure from error
        own = () if failure is None else failure.attempts
        try:
            answer = await _ended(handle)
        except LmcError as error:
            attempts = (*own, *map(self._of_fallback, error.attempts))
            is_cancelled = isinstance(error, RequestCancelledError)
            raise (self._cancelled(attempts) if is_cancelled else _with_cost(error, attempts)) from None
        self._notice_fallback()
        failed = (*own, *map(self._of_fallback, answer.failed))
        return replace(answer, fallback=answer.fallback or self._fallback_name, failed=failed)

    def _of_fallback(self, attempt: Attempt) -> Attempt:
        return replace(attempt, fallback=attempt.fallback or self._fallback_name)

    def _notice_fallback(self) -> None:
        """Log the first answer of the fallback: what the target said may quote a text."""
        if not self._is_noticed:
            self._is_noticed = True
            _LOGGER.warning("requests to %s fail; its fallback %s answers them", self._spec, self._fallback_name)

    def _second(self) -> RemoteEngine:
        with self._lock:  # the loop and the thread that looks up costs may need it at the same time
            if self._fallback is None:
                assert self._make_fallback is not None
                self._fallback = self._make_fallback()
            return self._fallback

    def _asked(self, request: Request) -> Asked:
        """Return what is sent for a request. Raises ``ConstraintError`` for a constraint that the provider lacks."""
        capabilities, sampling = self._capabilities, request.sampling
        conversation = None if capabilities.contexts == "tokens" else conversation_of(request.prompt)
        form = self._form(request)
        # The JSON around a constrained output is not the text that stops are looked for in.
        stops = sampling.stop if form is None and len(sampling.stop) <= capabilities.stops else ()
        if not capabilities.blank_stops:
            stops = tuple(each for each in stops if each.strip())
        return Asked(
            request,
            conversation,
            stops,
            form,
            sent_output(sampling.max_tokens, capabilities),
            self._settings.timeout if request.timeout is None else min(request.timeout, self._settings.timeout),
        )

    def _form(self, request: Request) -> ProviderForm | None:
        constraint = request.constraint
        if constraint is None or self._capabilities.structured != "schema":
            return None
        source = constraint.source if isinstance(constraint, Constraint) else None
        if source is None:
            raise EngineError("the definition of a constraint is not known", remedy="run the program through lmc.jit")
        if constraint.digest not in self._forms:
            self._forms[constraint.digest] = form_of(source, self._capabilities.schema_keywords, self._spec)
        return self._forms[constraint.digest]

    async def _generate(
        self, asked: Asked, on_delta: OnDelta | None, leaving: Leaving | None, deadline: _Deadline
    ) -> Generation:
        tries, has_left = Tries(), False
        shown = _Shown(on_delta)
        planned = len(asked.request.prompt) // self._bytes_per_token + asked.max_tokens

        async def once() -> Generation:
            nonlocal has_left
            limits, most = self._opened(), _most_bytes(asked.max_tokens)
            waits = deadline.stopped()
            async with limits.under_way(planned, most, asked.request.place, self._stop_where_refused, waits) as charge:
                reader = _Reader(asked, self._tokenizer, shown)
                try:
                    reply = await self._fetched(asked)
                    if reply is None:
                        tries.begin(charge)
                        await self._announced(leaving)
                        has_left = True
                        on_text = reader.text if self._streams(asked, on_delta) else None
                        reply = await self._within(asked.timeout, self._api().generate(asked, on_text))
                    found = reader.generation(reply)
                except AttemptError as failure:
                    if failure.usage.prompt_tokens:  # an answer, which may have been fetched
                        tries.begin(charge)
                        failure.again = failure.again and has_left  # to fetch it again gives the same
                    if failure.usage.prompt_tokens and not charge.counts_plan:
                        self._opened().correct(charge, failure.usage.prompt_tokens + failure.usage.generated_tokens)
                    if failure.error.ends_run:
                        self._refused = failure.error, time.monotonic()
                    if shown.text:
                        failure.is_last = True
                        if failure.again and not self._capabilities.greedy:
                            raise shown_in_part(failure) from failure
                    raise
                except OwnError as own:
                    raise own.error from None
                cost = reply.cost(asked)
                output = asked.max_tokens if charge.counts_plan else cost.generated_tokens
                self._opened().correct(charge, cost.prompt_tokens + output)
                self._count(cost)
                tries.begin(None)
                return found

        work = attempts(once, self._settings.attempts, self._opened().hold, tries)
        found = await self._in_time(work, deadline, tries)
        return replace(found, failed=tries.ended())

    async def _score(self, request: ScoreRequest, leaving: Leaving | None, deadline: _Deadline) -> Score:
        if not self._capabilities.scores:
            raise EngineError(f"{self._spec} gives no log-probabilities of texts", remedy="leave out the method")
        tries = Tries()
        planned = sum(len(request.prompt) + len(each) for each in request.continuations)  # each is a prompt of its own

        async def once() -> Score:
            limits, most = self._opened(), _most_bytes(planned)
            waits = deadline.stopped()
            async with limits.under_way(planned, most, request.place, self._stop_where_refused, waits) as charge:
                tries.begin(charge)
                await self._announced(leaving)
                found = await self._api().score(request, self._settings.timeout)
                tries.begin(None)
                return found

        work = attempts(once, self._settings.attempts, self._opened().hold, tries)
        found = await self._in_time(work, deadline, tries)
        return replace(found, failed=tries.ended())

    async def _announced(self, leaving: Leaving | None) -> None:
        """Wait until an attempt may leave. Raises the error that it ends with instead."""
        if leaving is None:
            return
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Exception | None] = loop.create_future()

        def settle(error: Exception | None) -> None:
            if not found.done():
                found.set_result(error)

        def answered(error: Exception | None) -> None:
            with suppress(RuntimeError):  # the engine was closed meanwhile
                loop.call_soon_threadsafe(settle, error)

        leaving(self._place, answered)
        error = await found
        if error is not None:
            raise error

    def _stop_where_refused(self) -> None:
        """Raise the error that all requests would have: while others still come, none of them is sent."""
        if self._refused is None:
            return
        error, at = self._refused
        if time.monotonic() - at > _REFUSED:
            self._refused = None
            return
        self._refused = error, time.monotonic()
        again = type(error)(error.cause, remedy=error.remedy)
        raise AttemptError(again, again=False, usage=Usage())

    async def _in_time(self, work: Coroutine[Any, Any, T], deadline: _Deadline, tries: Tries) -> T:
        """Wait for an answer until the request's own deadline, attempts and pauses included."""
        try:
            async with deadline.running():
                return await work
        except TimeoutError:
            error = RequestTimeoutError(
                f"{self._spec} gave no answer within the request's timeout", remedy="give it a longer one"
            )
            failure = AttemptError(error, again=False)
        except AttemptError as last:
            failure = last
        except asyncio.CancelledError:
            failure = None  # its frames hold the connection: the error of the request does not keep them
        if failure is not None:
            failure.attempts = tries.ended()
            raise failure from None
        raise self._cancelled(tries.ended())

    async def _fetched(self, asked: Asked) -> Reply | None:
        """Fetch the answer that the provider has kept since an earlier run. None: it is to be asked for."""
        stored = asked.request.stored
        if stored is None or stored.id is None or place_of(stored.id) != self._place:
            return None
        try:
            reply, usage = await self._within(asked.timeout, self._api().fetch(stored.id.partition("@")[0]))
        except AttemptError as failure:
            failure.is_last = True  # the answer may be there later: a fallback would be paid for the same
            raise
        if reply is None:
            stored.id, stored.usage = None, usage
            if not stored.may_be_asked:
                error = EngineError(
                    f"{asked.request.op_id} of row {asked.request.instance} was in flight when the run ended, may have "
                    f"been billed, and {self._spec} has no answer stored",
                    remedy="repeat such requests: --in-flight repeat, after the row is deleted from the output",
                )
                refused = AttemptError(error, again=False, usage=Usage())
                refused.is_last = True
                raise refused
        return reply

    async def _usage_of(self, stored: str) -> Usage | None:
        """Fetch the usage of an answer that the provider keeps. None: it does not tell."""

        async def once() -> Usage | None:
            most = _most_bytes(self._capabilities.max_output_tokens or _UNBOUNDED)
            async with self._opened().under_way(0, most, None, self._stop_where_refused):
                found = await self._within(self._settings.timeout, self._api().fetch(stored.partition("@")[0]))
                return found.usage

        try:
            return await attempts(once, self._settings.attempts, self._opened().hold, Tries())
        except AttemptError as failure:  # an answer without text of use tells its usage
            return failure.usage if failure.is_whole and failure.usage.prompt_tokens else None

    async def _within(self, seconds: float, work: Coroutine[Any, Any, R]) -> R:
        """Wait for an answer."""
        try:
            async with asyncio.timeout(seconds):
                return await work
        except TimeoutError:
            raise too_slow(self._spec, "whole answer", seconds) from None

    def _streams(self, asked: Asked, on_delta: OnDelta | None) -> bool:
        cuts = asked.form is None and asked.stops != asked.request.sampling.stop
        settings = self._settings
        return cuts or on_delta is not None or bool(settings.first_token_timeout or settings.idle_timeout)

    @property
    def _bytes_per_token(self) -> int:
        return 1 if self._capabilities.contexts == "tokens" else BYTES_PER_TOKEN

    def _api(self) -> ModelProtocol:
        """Return the protocol: its SDK loads with the first request."""
        if self._protocol is None:
            try:
                self._protocol = _protocol(self._service)
            except ModuleNotFoundError as missing:
                if missing.name not in ("openai", "anthropic", "httpx2"):
                    raise
                error = EngineError(f"{self._spec} needs {missing.name}", remedy="pip install 'lmc-compiler[api]'")
                raise AttemptError(error, again=False) from missing
        return self._protocol

    def _opened(self) -> RateLimits:
        if self._limits is None:
            settings = self._settings
            self._limits = RateLimits(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
        return self._limits

    def _count(self, usage: Usage) -> None:
        with self._lock:
            self._statistics.requests += 1
            self._statistics.prompt_tokens += usage.prompt_tokens
            self._statistics.cached_tokens += usage.cached_tokens
            self._statistics.prefilled_tokens += usage.prompt_tokens - usage.cached_tokens
            self._statistics.generated_tokens += usage.generated_tokens


async def _ended(handle: Handle[T]) -> T:
    """Return the result of a request to another engine. Where this task is cancelled, the request is cancelled too.

    It is waited for then, because its error names its attempts.
    """
    done = asyncio.wrap_future(handle.future)
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError:
            handle.cancel()
    return done.result()


class _Deadline:
    """The time that a request has for its attempts, pauses and fallbacks: ``left`` seconds; None: there is no end.

    Time in which it waits for its turn under the limits of a target does not count: a narrow limit makes a batch slow,
    and fails none of its requests. A fallback has the time that is left.
    """

    def __init__(self, seconds: float | None) -> None:
        self.left = seconds
        self._since = 0.0
        self._scope: asyncio.Timeout | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Let the time run in the block. Raises ``TimeoutError`` at its end."""
        async with asyncio.timeout(self.left) as self._scope:
            self._since = time.monotonic()
            try:
                yield
            finally:
                self._count()

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Let no time pass in the block, which is inside of one of ``running``."""
        if self.left is None or self._scope is None:
            yield
            return
        self._count()
        self._scope.reschedule(None)
        try:
            yield
        finally:
            self._since = time.monotonic()
            self._scope.reschedule(asyncio.get_running_loop().time() + self.left)

    def _count(self) -> None:
        """Subtract the time that has passed."""
        now = time.monotonic()
        if self.left is not None:
            self.left = max(self.left - (now - self._since), 0.0)
        self._since = now


class _Shown:
    """The ``text`` that a listener was shown of a reply.

    Another attempt has to begin with it. So there is none but at servers whose outputs are greedy, and one that begins
    otherwise is an error.
    """

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta = on_delta
        self.text = ""

    def show(self, text: str, *, is_whole: bool = False) -> None:
        """Show what is new of ``text``, the settled text of the reply so far. Raises ``AttemptError``: it differs."""
        if self._on_delta is None:
            return
        is_same = text.startswith(self.text) or (not is_whole and self.text.startswith(text))
        if not is_same:
            raise shown_in_part(malformed("the server", "another text than before"))
        if len(text) > len(self.text):
            self._on_delta(TokenDelta(text[len(self.text) :]))
            self.text = text


class _Reader:
    """Reads one reply: stops that are not the provider's, constraints, and the tokens that stay."""

    def __init__(self, asked: Asked, tokenizer: Tokenizer, shown: _Shown) -> None:
        self._asked = asked
        self._tokenizer = tokenizer
        self._shown = shown
        self._text = ""

    def text(self, added: str) -> bool:
        """Take new text of a stream; False once a stop is met. Raises ``OwnError`` for the errors of its listener."""
        if self._asked.form is not None:
            return True
        self._text += added
        stop = self._stop(self._text)
        end = len(self._text) - self._held_back() if stop is None else stop[0]
        try:
            self._shown.show(self._text[:end])
        except AttemptError:
            raise
        except Exception as error:
            raise OwnError(error) from error
        return stop is None

    def generation(self, reply: Reply) -> Generation:
        """Return the result of a reply. Raises ``AttemptError`` for one that is not what was asked for."""
        request, cost = self._asked.request, reply.cost(self._asked)
        text, end, matched = reply.text, reply.end, reply.matched_stop
        if self._asked.form is not None and end == "eos":
            try:
                text = self._asked.form.output(text)
            except (ValueError, RecursionError) as error:
                raise malformed("the model", f"an output that is no JSON of its schema: {error}", cost) from None
        stop = self._stop(text) if self._asked.form is None or end == "eos" else None
        if stop is not None:
            (at, matched), end = stop, "stop"
            text = text[:at]
        constraint = request.constraint
        if constraint is not None and not request.may_be_cut and end != "eos" and not constraint.matches(text):
            error = EngineError(
                f"the output of {request.op_id!r} was cut after {cost.generated_tokens:,} tokens, "
                "before it was what its constraint allows",
                remedy="raise max_tokens; reasoning counts too (reasoning_tokens of the target)",
            )
            raise AttemptError(error, again=False, usage=cost)
        kept, remainder = _kept(text, reply.token_ids, self._tokenizer)
        self._shown.show(text, is_whole=True)
        return Generation(
            token_ids=kept,
            text=text,
            finish_reason=end,
            remainder=remainder,
            matched_stop=matched,
            logprobs=None if reply.logprobs is None else reply.logprobs[: len(kept)],
            prompt_tokens=cost.prompt_tokens,
            cached_tokens=cost.cached_tokens,
            generated_tokens=cost.generated_tokens,
            cache_written_tokens=cost.cache_written_tokens,
            reasoning_tokens=cost.reasoning_tokens,
            is_whole=reply.usage is not None and reply.is_whole,
        )

    def _stop(self, text: str) -> tuple[int, str] | None:
        """Return where the first stop string begins, and which it is."""
        found = [(at, stop) for stop in self._asked.request.sampling.stop if (at := text.find(stop)) >= 0]
        return min(found) if found else None

    def _held_back(self) -> int:
        """Return the length of the longest end of the text that a stop string could begin with."""
        stops = self._asked.request.sampling.stop
        longest = min(max(map(len, stops), default=1) - 1, len(self._text))
        lengths = range(longest, 0, -1)
        return next((size for size in lengths if any(stop.startswith(self._text[-size:]) for stop in stops)), 0)


def _kept(text: str, token_ids: tuple[int, ...] | None, tokenizer: Tokenizer) -> tuple[tuple[int, ...], str]:
    """Return the tokens of a reply that stay in the context, and the text behind them that is less than a token."""
    if token_ids is None:
        return tokenizer.encode(text), ""
    ids = token_ids
    while ids and ids[-1] in tokenizer.eos_ids:
        ids = ids[:-1]
    while ids and not text.startswith(decoded := tokenizer.decode(ids)):
        del decoded
        ids = ids[:-1]
    return ids, text[len(tokenizer.decode(ids)) :]


def _protocol(service: RemoteService) -> ModelProtocol:
    """Return the protocol of a service. Loads its SDK, which takes a second."""
    if service.settings.api == "chat":
        from lmc.runtime.remote.protocols.openai_chat import ChatProtocol

        return ChatProtocol(service)
    if service.settings.api == "responses":
        from lmc.runtime.remote.protocols.openai_responses import ResponsesProtocol

        return ResponsesProtocol(service)
    if service.settings.api == "completions":
        from lmc.runtime.remote.protocols.openai_completions import CompletionsProtocol

        return CompletionsProtocol(service)
    from lmc.runtime.remote.protocols.anthropic_messages import MessagesProtocol

    return MessagesProtocol(service)


def _with_cost(error: E, attempts: tuple[Attempt, ...]) -> E:
    """Return ``error`` with the cost of all attempts of its request."""
    error.attempts = attempts
    error.usage = sum((each.usage for each in attempts), Usage())
    return error


def _most_bytes(tokens: int) -> int:
    """Return the most bytes of an answer of so many tokens: an event for each, with log-probabilities."""
    return (1 << 20) + (tokens << 13)


def model_named(target: Target) -> str:
    """Return the name of the model: behind ``#`` of a server; empty: the one that it has."""
    assert target.path is not None
    return target.path.partition("#")[2] if target.kind == "server" else target.path


def address_of(target: Target) -> str:
    """Return the address of the API of a server: one without a path gets ``/v1``."""
    assert target.path is not None
    address = target.path.partition("#")[0].rstrip("/")
    return address if urlsplit(address).path else f"{address}/v1"


def key_of(target: Target) -> str:
    """Return the key of a target, from the environment. Raises ``InputError`` where it is not set."""
    assert target.remote is not None
    name = target.remote.api_key_env
    if name is None:
        return _NO_KEY
    key = os.environ.get(name, "").strip()
    if not key:
        raise InputError(
            f"{target.spec} needs a key, and {name} is not set", remedy=f"export {name}=… in the environment"
        )
    return key


def _failed(loop: _Loop, error: Exception) -> Handle[Any]:
    sent: _Sent[Any] = _Sent(loop)
    if isinstance(error, LmcError):
        error.usage = Usage()  # nothing was sent
    sent.future.set_exception(error)
    return sent
