"""A deterministic engine without a model, for tests and for trying programs out: same answer on every machine.

Its tokens are bytes plus four special tokens; its "model" is a hash of all tokens before. Greedy and sampled draws,
stops, log-probabilities, scores and pins all follow the Engine protocol, so what agrees on it agrees in meaning.
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

from lmc.ir.engine import (
    DoneHandle,
    EngineInfo,
    EngineStatistics,
    Generation,
    Handle,
    OnDelta,
    Pin,
    Request,
    Score,
    ScoreRequest,
    TokenLogprob,
)
from lmc.ir.errors import ContextLengthError, EngineError
from lmc.ir.stopping import Stopper
from lmc.ir.tokenizer import Tokenizer

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
        except EngineError as error:
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

    def prefill(self, prompt: tuple[int, ...]) -> Handle[Pin]:
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
        """Let go of ``pin``. Raises ``EngineError`` where it is not held."""
        with self._lock:
            if self._pins.pop(pin.key, None) is None:
                raise EngineError(f"pin {pin.key} is not held", remedy="unpin each pin once")

    def close(self) -> None:
        self._closed = True

    def _check(self, length: int) -> None:
        if self._closed:
            raise EngineError("the engine is closed", remedy="make a new one")
        if length > self._info.context_length:
            raise ContextLengthError(
                f"{length} tokens do not fit in a context of {self._info.context_length}", remedy="shorten the prompt"
            )

    def _generate(self, request: Request, on_delta: OnDelta | None) -> Generation:
        room = self._info.context_length - len(request.prompt)
        max_tokens = min(request.sampling.max_tokens, room)
        stopper = Stopper(self._tokenizer, replace(request.sampling, max_tokens=max_tokens))
        greedy = request.sampling.greedy
        state = _fold(0, request.prompt)
        logprobs: list[TokenLogprob] = []
        while stopper.finish_reason is None:
            noise = 0 if greedy else _mix(request.seed ^ _mix(len(stopper.token_ids) + 1))
            if request.sampling.penalizes or request.sampling.logit_bias:
                token_id = self._adjusted(_mix(state ^ noise), request, stopper)
            else:
                token_id = self._draw(state, noise, stopper.forbidden)
            if request.sampling.logprobs is not None:
                logprobs.append(TokenLogprob(token_id, _logprob(state, token_id), self._top(state, request)))
            delta = stopper.append(token_id)
            if delta is not None and on_delta is not None:
                on_delta(delta)
            state = _fold(state, (token_id,))
        with self._lock:
            self._statistics.requests += 1
            self._statistics.prompt_tokens += len(request.prompt)
            self._statistics.prefilled_tokens += len(request.prompt)
            self._statistics.generated_tokens += len(stopper.token_ids)
        return stopper.generation(
            prompt_tokens=len(request.prompt),
            logprobs=tuple(logprobs) if request.sampling.logprobs is not None else None,
        )

    def _draw(self, state: int, noise: int, forbidden: frozenset[int]) -> int:
        draw = _mix(state ^ noise)
        ends = self._tokenizer.eos_ids[0]
        if draw % _END_IN == 0 and ends not in forbidden:
            return ends
        start = draw // _END_IN
        for step in range(len(self._alphabet)):
            token_id = self._alphabet[(start + step) % len(self._alphabet)]
            if token_id not in forbidden:
                return token_id
        raise EngineError("every token the toy can say is a stop token", remedy="name fewer stop_token_ids")

    def _adjusted(self, state: int, request: Request, stopper: Stopper) -> int:
        """The token of the largest logit after bias and penalties, the lowest id among equals."""
        sampling, said = request.sampling, Counter(stopper.token_ids)
        biases = dict(sampling.logit_bias)
        seen = {*request.prompt, *said} if sampling.repetition_penalty != 1.0 else set[int]()
        logits: dict[int, float] = {}
        for token_id in {*self._alphabet, self._tokenizer.eos_ids[0], *biases} - stopper.forbidden:
            logit = _logprob(state, token_id) + biases.get(token_id, 0.0)
            if token_id in seen:
                logit *= sampling.repetition_penalty if logit < 0 else 1 / sampling.repetition_penalty
            if token_id in said:
                logit -= sampling.frequency_penalty * said[token_id] + sampling.presence_penalty
            logits[token_id] = logit
        if not logits:
            raise EngineError("every token the toy can say is a stop token", remedy="name fewer stop_token_ids")
        return min(logits, key=lambda token_id: (-logits[token_id], token_id))

    def _top(self, state: int, request: Request) -> tuple[tuple[int, float], ...]:
        wanted = request.sampling.logprobs or 0
        ranked = sorted(((_logprob(state, token_id), -token_id) for token_id in set(self._alphabet)), reverse=True)
        return tuple((-negative, logprob) for logprob, negative in ranked[:wanted])


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
