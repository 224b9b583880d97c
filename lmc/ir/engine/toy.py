"""A deterministic engine without a model, for tests and for trying programs out: same answer on every machine.

Its tokens are bytes plus four special tokens; its "model" is a hash of all tokens before. Greedy and sampled draws,
stops, constraints, log-probabilities, scores and pins all follow the Engine protocol, so what agrees on it agrees in
meaning. How a constrained generation goes on is in ``toy_constraints.py``; with bytes as tokens, all modes of
``Request.jump_forward`` are one.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import count

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from lmc.ir.engine.constraint_protocol import TokenState
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
    TokenLogprob,
)
from lmc.ir.engine.stopping import Stopper
from lmc.ir.engine.token_masks import allowed_ids, mask_without, violation
from lmc.ir.engine.toy_constraints import Speaker
from lmc.ir.errors import ContextLengthError, EngineError, LmcError
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.usage import Usage

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|tool|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# What the toy says: letters, digits and the marks programs stop at, with weights that make words.
_ALPHABET = "eeeeetttaaooiinnsshrdlu      ,.\n0123456789yes"
_MASK = 2**64 - 1
_END_IN = 48  # one draw in this many ends the text


@lru_cache(maxsize=1)
def toy_tokenizer() -> Tokenizer:
    """Bytes as tokens 0–255 (in the order of the byte-level alphabet), then ``SPECIAL_TOKENS``."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = tokenizers.Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(alphabet)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL_TOKENS])
    return Tokenizer.from_json(raw.to_str(), eos_tokens=["<|endoftext|>", "<|im_end|>"], chat_template=CHAT_TEMPLATE)


class ToyEngine:
    """Answers at once, in the caller's thread. ``context_length`` is in tokens.

    A temperature above 0 makes draws depend on the seed; truncations change nothing, because the toy has no
    probabilities. Penalties and ``logit_bias`` count: with them the toy says the token whose made-up logit is largest
    once they are applied.
    """

    def __init__(self, *, context_length: int = 1 << 20) -> None:
        self._tokenizer = toy_tokenizer()
        self._info = EngineInfo("toy", context_length)
        self._statistics = EngineStatistics()
        self._alphabet = [self._tokenizer.encode(letter)[0] for letter in _ALPHABET]
        self._speaker = Speaker(self._alphabet, _byte_tokens(), self._tokenizer.eos_ids)
        self._pins: dict[int, Pin] = {}
        self._keys = count(1)
        self._lock = threading.Lock()
        self._closed = False

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def info(self) -> EngineInfo:
        return self._info

    @property
    def statistics(self) -> EngineStatistics:
        return self._statistics

    @property
    def pinned(self) -> tuple[Pin, ...]:
        """The pins that are held now."""
        return tuple(self._pins.values())

    def submit(self, request: Request, on_delta: OnDelta | None = None) -> Handle[Generation]:
        try:
            self._check(len(request.prompt) + max(request.sampling.min_tokens, 1))
            return DoneHandle[Generation].of(self._generate(request, on_delta))
        except LmcError as error:
            return DoneHandle[Generation].failed(error)

    def score(self, request: ScoreRequest) -> Handle[Score]:
        try:
            self._check(len(request.prompt) + max(map(len, request.continuations), default=0))
        except EngineError as error:
            return DoneHandle[Score].failed(error)
        state = _fold(0, request.prompt)
        rows: list[tuple[float, ...]] = []
        for continuation in request.continuations:
            row: list[float] = []
            current = state
            for token_id in continuation:
                row.append(_logprob(current, token_id))
                current = _fold(current, (token_id,))
            rows.append(tuple(row))
        with self._lock:
            self._statistics.requests += 1
            self._statistics.prompt_tokens += len(request.prompt)
            self._statistics.prefilled_tokens += len(request.prompt) + sum(map(len, request.continuations))
        return DoneHandle[Score].of(Score(tuple(rows), prompt_tokens=len(request.prompt)))

    def prefill(
        self,
        prompt: tuple[int, ...],
        place: Place | None = None,  # noqa: ARG002
        priority: int = 0,  # noqa: ARG002
    ) -> Handle[Pin]:
        """Hold on to ``prompt``; there is nothing to compute."""
        try:
            self._check(len(prompt))
        except EngineError as error:
            return DoneHandle[Pin].failed(error)
        with self._lock:
            pin = Pin(next(self._keys), len(prompt))
            self._pins[pin.key] = pin
        return DoneHandle[Pin].of(pin)

    def unpin(self, pin: Pin) -> None:
        """Release ``pin``. Raises ``EngineError`` if it is not held."""
        with self._lock:
            if self._pins.pop(pin.key, None) is None:
                raise EngineError(f"pin {pin.key} is not held", remedy="unpin each pin once")

    def close(self) -> None:
        self._closed = True

    def _check(self, length: int) -> None:
        if self._closed:
            raise EngineError("the engine is closed", remedy="call the program again: that starts a new one")
        if length > self._info.context_length:
            raise ContextLengthError(
                f"{length} tokens do not fit in a context of {self._info.context_length}", remedy="shorten the prompt"
            )

    def _generate(self, request: Request, on_delta: OnDelta | None) -> Generation:
        room = self._info.context_length - len(request.prompt)
        max_tokens = min(request.sampling.max_tokens, room)
        stopper = Stopper(self._tokenizer, replace(request.sampling, max_tokens=max_tokens))
        position = None if request.constraint is None else request.constraint.start()
        try:
            return self._spoken(request, stopper, position, on_delta)
        except LmcError as error:
            error.usage = Usage(len(request.prompt), 0, len(stopper.token_ids), 1)
            raise

    def _spoken(
        self, request: Request, stopper: Stopper, position: TokenState | None, on_delta: OnDelta | None
    ) -> Generation:
        """Generate until ``stopper`` ends the output. Raises ``LmcError`` if it is not allowed as a whole."""
        state = _fold(0, request.prompt)
        logprobs: list[TokenLogprob] = []
        if position is not None and position.complete:
            stopper.complete()
        while stopper.finish_reason is None:
            token_id = self._next(state, request, stopper, position)
            if request.sampling.logprobs is not None:
                logprobs.append(TokenLogprob(token_id, _logprob(state, token_id), self._top(state, request)))
            deltas = [stopper.append(token_id)]
            if position is not None and token_id not in stopper.ends:
                position = position.advance(token_id)
                deltas += [stopper.complete()] if position.complete else []
            for delta in deltas:
                if delta is not None and on_delta is not None:
                    settled = stopper.settle()
                    tokens = tuple(stopper.token_ids[settled])
                    on_delta(replace(delta, token_ids=tokens, logprobs=tuple(logprobs[settled])))
            state = _fold(state, (token_id,))
        with self._lock:
            self._statistics.requests += 1
            self._statistics.prompt_tokens += len(request.prompt)
            self._statistics.prefilled_tokens += len(request.prompt)
            self._statistics.generated_tokens += len(stopper.token_ids)
        generation = stopper.generation(
            prompt_tokens=len(request.prompt),
            logprobs=tuple(logprobs) if request.sampling.logprobs is not None else None,
        )
        error = violation(request, generation, _output(generation, stopper))
        if error is not None:
            raise error
        return generation

    def _next(self, state: int, request: Request, stopper: Stopper, position: TokenState | None) -> int:
        """The token that is said after ``state``, where the constraint is at ``position``."""
        noise = 0 if request.sampling.greedy else _mix(request.seed ^ _mix(len(stopper.token_ids) + 1))
        draw = _mix(state ^ noise)
        adjusts = request.sampling.penalizes or bool(request.sampling.logit_bias)
        if position is None:
            return self._adjusted(draw, request, stopper) if adjusts else self._draw(draw, stopper.forbidden)
        allowed = allowed_ids(mask_without(position.mask(), stopper.forbidden))
        if not allowed:
            raise EngineError(
                f"no token can be said at position {len(stopper.token_ids)}: the constraint allows none",
                remedy="report this: a state of a constraint is complete or allows a token",
            )
        candidates = self._speaker.candidates(position, allowed, len(stopper.token_ids), draw)
        if not adjusts:
            return candidates[_mix(draw) % len(candidates)]
        biased = {token_id for token_id, _ in request.sampling.logit_bias}.intersection(allowed)
        return self._likeliest(draw, {*candidates, *biased}, request, stopper)

    def _draw(self, draw: int, forbidden: frozenset[int]) -> int:
        ends = self._tokenizer.eos_ids[0]
        if draw % _END_IN == 0 and ends not in forbidden:
            return ends
        start = draw // _END_IN
        for step in range(len(self._alphabet)):
            token_id = self._alphabet[(start + step) % len(self._alphabet)]
            if token_id not in forbidden:
                return token_id
        raise _speechless()

    def _adjusted(self, state: int, request: Request, stopper: Stopper) -> int:
        biased = {token_id for token_id, _ in request.sampling.logit_bias}
        candidates = {*self._alphabet, self._tokenizer.eos_ids[0], *biased} - stopper.forbidden
        if not candidates:
            raise _speechless()
        return self._likeliest(state, candidates, request, stopper)

    def _likeliest(self, state: int, candidates: set[int], request: Request, stopper: Stopper) -> int:
        """The token of the largest logit after bias and penalties, the lowest id among equals."""
        sampling, said = request.sampling, Counter(stopper.token_ids)
        biases = dict(sampling.logit_bias)
        seen = {*request.prompt, *said} if sampling.repetition_penalty != 1.0 else set[int]()
        logits: dict[int, float] = {}
        for token_id in candidates:
            logit = _logprob(state, token_id) + biases.get(token_id, 0.0)
            if token_id in seen:
                logit *= sampling.repetition_penalty if logit < 0 else 1 / sampling.repetition_penalty
            if token_id in said:
                logit -= sampling.frequency_penalty * said[token_id] + sampling.presence_penalty
            logits[token_id] = logit
        return min(logits, key=lambda token_id: (-logits[token_id], token_id))

    def _top(self, state: int, request: Request) -> tuple[tuple[int, float], ...]:
        wanted = request.sampling.logprobs or 0
        ranked = sorted(((_logprob(state, token_id), -token_id) for token_id in set(self._alphabet)), reverse=True)
        return tuple((-negative, logprob) for logprob, negative in ranked[:wanted])


def _speechless() -> EngineError:
    return EngineError("every token the toy can say is a stop token", remedy="name fewer stop_token_ids")


@lru_cache(maxsize=1)
def _byte_tokens() -> dict[int, int]:
    """The byte of each token that is part of some text."""
    firsts = [*range(0x800), *range(0x800, 0xD800, 64), *range(0xE000, 0x10000, 64), *range(0x10000, 0x110000, 4096)]
    text = "".join(map(chr, firsts))  # together they hold every byte of UTF-8
    return dict(zip(toy_tokenizer().encode(text), text.encode(), strict=True))


def _output(generation: Generation, stopper: Stopper) -> str | bytes:
    """Return the output to check against a constraint: bytes, if the text does not determine them."""
    if stopper.text_is_exact:
        return generation.text
    known = _byte_tokens()
    return bytes(known.get(token_id, 0xFF) for token_id in generation.token_ids) + generation.remainder.encode()


def _mix(state: int) -> int:
    """A bijective scrambler of 64 bits (the finalizer of SplitMix64, Steele et al. 2014)."""
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)


def _fold(state: int, token_ids: tuple[int, ...]) -> int:
    """The state after ``token_ids``; the same however they are cut into calls."""
    for token_id in token_ids:
        state = ((state ^ token_id) * 0x9E3779B97F4A7C15 + 0x7F4A7C15) & _MASK
        state ^= state >> 29
    return state


def _logprob(state: int, token_id: int) -> float:
    """A made-up but fixed log-probability in (-8, 0)."""
    return -8.0 * (_mix(state ^ _mix(token_id + 7)) + 1) / 2.0**64 - math.ulp(1.0)
