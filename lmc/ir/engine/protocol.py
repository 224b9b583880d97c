"""The Engine protocol: what interpreter, eager mode and executor ask of a model.

It lives in this leaf package, and not in ``lmc.runtime``, because the reference interpreter and eager mode run over
any engine too, and neither may import the runtime.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

from lmc.ir.engine.capabilities import OWN, Capabilities
from lmc.ir.engine.constraint_protocol import TokenConstraint
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Attempt, Timing, Usage

FinishReason = Literal["stop", "length", "eos"]
JumpForward = Literal["exact", "canonical", "off"]
JUMP_FORWARD: tuple[JumpForward, ...] = ("exact", "canonical", "off")
T = TypeVar("T")
_RUNS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Parameters of the draw of tokens and of the end of a generation.

    ``temperature`` 0 is greedy (ties go to the lowest token id); None, where the program names none, is greedy on
    engines that can be, and the model's own default on others. ``top_k`` 0 means the whole vocabulary. ``stop``
    strings and ``stop_token_ids`` end the generation and are not kept; no stop is honoured before ``min_tokens``
    tokens. ``logprobs`` k asks for the log-probability of each kept token and of the k likeliest ones (0: only the kept
    token's; None: none); they are those of the model, before anything below.

    Logits are changed in this order before temperature and truncation, and before a greedy choice:

    1. ``logit_bias``, pairs of token id and number by ascending id, is added.
    2. ``repetition_penalty`` r: the logit of each token in prompt or generation is divided by r where it is positive
       and multiplied by r where it is not (Keskar et al. 2019; as in transformers and vLLM). The prompt is the whole
       context of the generation, earlier generations included.
    3. ``frequency_penalty`` times how often the token is in this generation so far, and ``presence_penalty`` where it
       is in it at all, are subtracted (as in OpenAI's API and vLLM). The prompt does not count.
    """

    max_tokens: int = 256
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    temperature: float | None = None
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    logprobs: int | None = None

    @property
    def greedy(self) -> bool:
        """True where the same prompt always gives the same tokens, on an engine that can be greedy."""
        return not self.temperature

    @property
    def penalizes(self) -> bool:
        """True if earlier tokens change the logits of the next one."""
        return bool(self.frequency_penalty or self.presence_penalty or self.repetition_penalty != 1.0)


def new_run() -> int:
    """Return the number of a run: no other in this process has it."""
    return next(_RUNS)


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a request in a plan: ``run`` is the number of the run in its process, ``rank`` its place.

    Ranks count requests of the run from 0, lower ones come first; several may have the same. ``lane`` is the client of
    the run: runs of one client share its turns (None: the run is a client of its own).
    """

    run: int
    rank: int
    lane: int | None = None


@dataclass(slots=True)
class StoredAnswer:
    """An answer that its provider may keep, so that it can be fetched after a crash.

    ``keep`` takes its id, as the engine writes it, as soon as that is known. ``id`` is the one that an earlier run got:
    it is fetched, and asked for anew only where the provider has it no more and it ``may_be_asked``: ``id`` is None
    then, and ``usage`` what it has cost, if the provider tells.
    """

    keep: Callable[[str], None]
    id: str | None = None
    may_be_asked: bool = True
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One generation: continue ``prompt`` (token ids). ``seed`` is the 64-bit key of all its random draws.

    ``number`` tells the requests of one run of an op apart: it counts the samples of ``lm.sample``.
    An engine may let ``instance``s take turns, or the runs that ``place`` names; then it serves the requests of a run
    in the order of their ranks. Those of higher ``priority`` go before others, but starve none. ``expected_tokens`` is
    the expected length of the generation (None: unknown). None of these changes an output.

    ``stored`` is for engines whose providers keep answers; others ignore it.

    A request that is not finished ``timeout`` seconds after it was submitted fails with ``RequestTimeoutError`` (None:
    it has all the time it needs); engines that answer at once may ignore it. Time in which a request waits in lmc for
    the limits of a remote target does not count.

    With a ``constraint`` tokens that its state does not allow are not drawn: they are masked after what
    ``SamplingParams`` does to logits and before temperature and truncation. Where the state is ``complete`` the
    generation ends as at EOS, without a draw; there, ``min_tokens`` has no say. An output that ends otherwise (a stop,
    ``max_tokens``) and is not allowed as it then is fails with ``ConstraintError``, unless it ``may_be_cut``: then it
    is the beginning of an allowed one. ``jump_forward`` is the treatment of forced text: "exact": its canonical tokens
    are computed in one pass as a draft, and each is kept only if it equals the draw at its place, so tokens and
    log-probabilities are those of "off"; "canonical": they are taken as they are, and the output's tokens are the
    encoding of its text; "off": token by token. Engines that gain nothing by it may treat "exact" as "off".
    """

    prompt: tuple[int, ...]
    sampling: SamplingParams
    seed: int = 0
    op_id: str = ""
    instance: int = 0
    timeout: float | None = None
    constraint: TokenConstraint | None = None
    may_be_cut: bool = False
    jump_forward: JumpForward = "exact"
    place: Place | None = None
    priority: int = 0
    expected_tokens: int | None = None
    number: int = 0
    stored: StoredAnswer | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probability (natural) of one kept token, and of the likeliest tokens at its position, best first."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Generation:
    """The result of a request.

    ``token_ids`` are the tokens that stay in the context: all whole tokens before the stop text, no stop, no EOS.
    ``remainder`` is the text of a token that straddles the start of the stop text; it becomes pending text. ``text`` is
    everything before the stop. ``generated_tokens`` counts every token the model was asked for, ``cached_tokens`` the
    prompt tokens that were not computed again. ``cache_written_tokens`` of the prompt were put into a provider's cache
    at a price; ``reasoning_tokens`` of the generated ones were spent on hidden reasoning. ``fallback`` is the name of
    the fallback that answered; None: the target itself. ``failed`` are the attempts before. An answer that is not whole
    (``is_whole``) may have cost more than it counts. ``timing``: see ``Timing``; None: the engine does not measure.
    """

    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    remainder: str = ""
    matched_stop: str | int | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    fallback: str | None = None
    failed: tuple[Attempt, ...] = ()
    is_whole: bool = True
    timing: Timing | None = field(default=None, repr=False, compare=False)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempt that answered, then those that failed before."""
        own = Usage(
            self.prompt_tokens,
            self.cached_tokens,
            self.generated_tokens,
            1,
            self.cache_written_tokens,
            self.reasoning_tokens,
        )
        return (Attempt(own, self.is_whole, self.fallback), *self.failed)

    @property
    def usage(self) -> Usage:
        """The cost of the request, failed attempts included."""
        own, *failed = self.attempts
        return sum((each.usage for each in failed), own.usage)


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Log-probabilities of several continuations of one prompt. ``prompt`` holds at least one token id.

    ``instance``, ``timeout``, ``place``, ``priority`` and ``number`` are as in ``Request``.
    """

    prompt: tuple[int, ...]
    continuations: tuple[tuple[int, ...], ...]
    op_id: str = ""
    instance: int = 0
    timeout: float | None = None
    place: Place | None = None
    priority: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class Score:
    """``logprobs[i][j]`` is the natural log-probability of token j of continuation i given all before it.

    ``fallback``, ``failed`` and ``attempts`` are as in ``Generation``.
    """

    logprobs: tuple[tuple[float, ...], ...]
    prompt_tokens: int = 0
    cached_tokens: int = 0
    fallback: str | None = None
    failed: tuple[Attempt, ...] = ()
    timing: Timing | None = field(default=None, repr=False, compare=False)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempt that answered, then those that failed before."""
        return (Attempt(Usage(self.prompt_tokens, self.cached_tokens, 0, 1), fallback=self.fallback), *self.failed)

    @property
    def usage(self) -> Usage:
        """The cost of the request, failed attempts included."""
        own, *failed = self.attempts
        return sum((each.usage for each in failed), own.usage)


@dataclass(frozen=True, slots=True)
class TokenDelta:
    """Newly settled text of a running generation, cut at code points and never part of a stop string.

    ``token_ids`` are the tokens that are settled since the delta before: they stay in the output, and their text is in
    this delta or an earlier one. ``logprobs`` has an entry for each of them where ``SamplingParams.logprobs`` asks for
    it. Tokens may lag behind the text; those that no delta has are in the result: with ``jump_forward="canonical"`` all
    of them, because the output is encoded again at its end. ``cached_tokens`` is that of the ``Generation`` to come.
    """

    text: str
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    cached_tokens: int = field(default=0, compare=False)


OnDelta = Callable[[TokenDelta], None]


class Handle(Protocol[T]):
    """A running request. ``future`` resolves to the result or raises an ``EngineError``; ``cancel`` is idempotent."""

    @property
    def future(self) -> Future[T]: ...

    def cancel(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """The limits of an engine for planners. ``context_length`` and ``kv_tokens`` are in tokens.

    At most ``max_running`` requests run at once (None: as many as there are). A context of messages is limited by the
    provider alone. The pool has pages of ``page_tokens``, and requests share whole ones. ``fallbacks`` are the names
    and capabilities of those that are asked where this one fails. ``attempts`` are the most attempts of a request at
    each of ``served``.
    """

    name: str
    context_length: int
    kv_tokens: int | None = None
    max_running: int | None = None
    capabilities: Capabilities = OWN
    fallbacks: tuple[tuple[str, Capabilities], ...] = ()
    attempts: tuple[int, ...] = (1,)
    page_tokens: int = 1

    @property
    def served(self) -> tuple[tuple[str, Capabilities], ...]:
        """Names and capabilities of all that may answer a request, this engine first."""
        return ((self.name, self.capabilities), *self.fallbacks)


@dataclass(slots=True)
class EngineStatistics:
    """Running totals, in tokens unless the name says otherwise.

    ``cached_tokens`` of ``prompt_tokens`` were in the cache, ``prefilled_tokens`` were computed. A step computes rows,
    one per token: ``rows`` in all ``steps`` together, ``largest_step`` in the largest one. Of ``drafted_tokens``, which
    constraints proposed, ``accepted_tokens`` were what was drawn. The engine's time is split
    into ``model_seconds`` (attention included), ``sampling_seconds`` (drawing and scoring; on a GPU also waiting for
    the model), ``scheduling_seconds`` (admission, pages, cache, which keys attention reads together) and
    ``delivery_seconds`` (detokenizing, stops, stream callbacks, results). An engine leaves at 0 what it does not have.
    """

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefilled_tokens: int = 0
    generated_tokens: int = 0
    evicted_tokens: int = 0
    preemptions: int = 0
    steps: int = 0
    rows: int = 0
    largest_step: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    model_seconds: float = 0.0
    sampling_seconds: float = 0.0
    scheduling_seconds: float = 0.0
    delivery_seconds: float = 0.0

    @property
    def mean_rows(self) -> float:
        """Rows per step."""
        return self.rows / self.steps if self.steps else 0.0


class Engine(Protocol):
    """A model that serves requests. ``submit`` and ``score`` are thread-safe and return at once."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def info(self) -> EngineInfo: ...

    @property
    def statistics(self) -> EngineStatistics: ...

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]: ...

    def score(self, request: ScoreRequest) -> Handle[Score]: ...

    def close(self) -> None: ...


Leaving = Callable[[int, Callable[[Exception | None], object]], object]
"""Called before an attempt of a request leaves, with the place of its target (0; those of fallbacks from 1 on) and a
function that is called once it may leave, or with the error it ends with."""


@runtime_checkable
class Queueing(Protocol):
    """Optional capability: engines in which requests wait for a limit, and that tell when one leaves.

    ``leaving`` is called before each attempt, from any thread.
    """

    def submit_announced(
        self, request: Request, on_delta: OnDelta | None, leaving: Leaving | None
    ) -> Handle[Generation]: ...

    def score_announced(self, request: ScoreRequest, leaving: Leaving | None) -> Handle[Score]: ...


@runtime_checkable
class KeepsAnswers(Protocol):
    """Optional capability: engines whose providers keep answers, and tell what these have cost."""

    def stored_usage(self, stored: str) -> Handle[Usage | None]:
        """Return the usage of the answer that is kept under an id; None: it is not known. To look costs nothing."""
        ...


@runtime_checkable
class PrefixCaching(Protocol):
    """Optional capability: engines that can compute a prefix once and hold on to it."""

    def prefill(self, prompt: tuple[int, ...], place: Place | None = None, priority: int = 0) -> Handle[Pin]:
        """Compute ``prompt`` (if it is not cached) and pin it until ``unpin``; the rest is as in ``Request``."""
        ...

    def unpin(self, pin: Pin) -> None: ...


@runtime_checkable
class Planned(Protocol):
    """Optional capability: engines that accept hints about the next uses of prefixes.

    Both calls are hints: they are thread-safe, return at once and never fail, whatever state the engine is in, and no
    output depends on them.
    """

    def expect(self, prompt: tuple[int, ...], place: Place) -> int:
        """Requests that begin with ``prompt`` are still to come, the next of them at ``place``.

        Gives the key that takes this back. One prompt may be expected several times; an empty one says that the run
        goes on. While a run has expectations, tokens that only it used and that it does not expect are evicted first.
        """
        ...

    def withdraw(self, key: int) -> None:
        """Withdraw the expectation of ``key``. Unknown or withdrawn keys do nothing."""
        ...


@runtime_checkable
class CacheFlushing(Protocol):
    """Optional capability: engines that can forget what they have computed."""

    def flush_cache(self) -> None:
        """Let no later request find a prefix that was computed before. Requests that run, and pins, keep theirs."""
        ...


@dataclass(frozen=True, slots=True)
class Pin:
    """A held prefix of ``length`` tokens. ``cached_tokens`` of them were in the cache before."""

    key: int
    length: int
    cached_tokens: int = 0
    timing: Timing | None = field(default=None, repr=False, compare=False)


R = TypeVar("R", Request, ScoreRequest)


def timed(requests: Sequence[R], timeout: float | None) -> list[R]:
    """The requests, each to be finished ``timeout`` seconds after it is submitted (None: whenever)."""
    return [replace(request, timeout=timeout) for request in requests]


def derive_seed(run_seed: int, instance: int, op_id: str, iteration: int = 0, sample: int = 0) -> int:
    """The 64-bit key of one generation's random draws; independent of batch, order and machine."""
    text = f"{run_seed}\x00{instance}\x00{op_id}\x00{iteration}\x00{sample}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@dataclass(slots=True)
class DoneHandle(Generic[T]):
    """A handle whose result is there already; for engines that answer at once."""

    future: Future[T] = field(default_factory=Future)

    @classmethod
    def of(cls, value: T) -> DoneHandle[T]:
        handle = cls()
        handle.future.set_result(value)
        return handle

    @classmethod
    def failed(cls, error: BaseException) -> DoneHandle[T]:
        handle = cls()
        handle.future.set_exception(error)
        return handle

    def cancel(self) -> None:
        """Nothing is left to cancel."""
