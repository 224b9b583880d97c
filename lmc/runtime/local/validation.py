"""Checks of requests before they enter the engine; each names what is wrong and what to do."""

import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from lmc.ir.engine.protocol import JUMP_FORWARD, Request, SamplingParams, ScoreRequest
from lmc.ir.errors import ContextLengthError, EngineError


class RequestChecker:
    """Knows the limits of one engine, in tokens."""

    def __init__(self, *, vocabulary_size: int, context_length: int, kv_tokens: int) -> None:
        self._vocabulary_size = vocabulary_size
        self._context_length = context_length
        self._kv_tokens = kv_tokens

    def check_generation(self, request: Request) -> int:
        """Check prompt, parameters and length; gives how many tokens context and KV pool leave for the generation.

        A `max_tokens` beyond that is no error: most generations end by themselves.

        Raises:
            ContextLengthError: prompt and `min_tokens` exceed the model's context or the KV pool.
            EngineError: anything else.
        """
        _check_terms(request)
        _check_kind("seed", request.seed, _is_integer, "an integer")
        self._check_prompt(request.prompt)
        check_sampling(request.sampling)
        self._check_ids(request.sampling.stop_token_ids, "stop_token_ids")
        self._check_ids([token_id for token_id, _ in request.sampling.logit_bias], "logit_bias")
        length = len(request.prompt)
        _check_constraint(request)
        self._check_length(length, max(request.sampling.min_tokens, 1), "the least the generation needs")
        return min(self._context_length, self._kv_tokens + 1) - length

    def check_score(self, request: ScoreRequest) -> None:
        """Check prompt, continuations and length. Raises like `check_generation`."""
        _check_terms(request)
        _check_kind("continuations", request.continuations, _is_list, "a tuple of tuples of token ids")
        self._check_prompt(request.prompt)
        for index, continuation in enumerate(request.continuations):
            self._check_ids(continuation, f"continuation {index}")
        longest = max((len(each) for each in request.continuations), default=0)
        self._check_length(len(request.prompt), longest, "the longest continuation")

    def check_prefill(self, prompt: Sequence[int]) -> None:
        """Check a prompt and its length. Raises like `check_generation`."""
        self._check_prompt(prompt)
        self._check_length(len(prompt), 0, "nothing is generated")

    def _check_prompt(self, prompt: Sequence[int]) -> None:
        if _is_list(prompt) and not prompt:
            raise EngineError(
                "the prompt is empty", remedy="put some text into the context; this model has no token to begin with"
            )
        self._check_ids(prompt, "the prompt")

    def _check_ids(self, ids: Sequence[int], where: str) -> None:
        _check_kind(where, ids, _is_list, "a tuple of token ids")
        strange: set[type] = set(map(type, ids)) - {int}  # quick where there is none: prompts are long
        if any(kind is bool or not issubclass(kind, Integral) for kind in strange):
            raise EngineError(f"{where} holds {_named(strange)} beside token ids", remedy="give integers only")
        if ids and not 0 <= min(ids) <= max(ids) < self._vocabulary_size:
            wrong = next(token for token in ids if not 0 <= token < self._vocabulary_size)
            raise EngineError(
                f"{where} holds token id {wrong}, outside the model's vocabulary of {self._vocabulary_size}",
                remedy="use the tokenizer of the model's own folder",
            )

    def _check_length(self, prompt: int, further: int, what: str) -> None:
        total = f"{prompt} prompt tokens and {further} ({what})"
        if prompt + further > self._context_length:
            raise ContextLengthError(
                f"{total} exceed the model's context of {self._context_length}",
                remedy="shorten the prompt",
            )
        if prompt + max(further - 1, 0) > self._kv_tokens:  # the last token's keys and values are never computed
            raise ContextLengthError(
                f"{total} exceed the KV pool of {self._kv_tokens}", remedy="give the engine more kv_tokens"
            )


def check_sampling(sampling: SamplingParams) -> None:
    """Check that parameters make sense by themselves.

    Raises:
        EngineError: naming the first that does not.
    """
    for names, is_kind, kind in _KINDS:
        for name in names:
            _check_kind(name, getattr(sampling, name), is_kind, kind)
    rules = (
        (sampling.max_tokens >= 1, f"max_tokens is {sampling.max_tokens}", "at least 1"),
        (
            0 <= sampling.min_tokens <= sampling.max_tokens,
            f"min_tokens is {sampling.min_tokens}",
            f"between 0 and max_tokens ({sampling.max_tokens})",
        ),
        (
            0 <= (sampling.temperature or 0.0) < math.inf,
            f"temperature is {sampling.temperature}",
            "a number from 0 on",
        ),
        (0 < sampling.top_p <= 1, f"top_p is {sampling.top_p}", "above 0 and at most 1"),
        (sampling.top_k >= 0, f"top_k is {sampling.top_k}", "0 (no limit) or more"),
        (0 <= sampling.min_p <= 1, f"min_p is {sampling.min_p}", "between 0 and 1"),
        (
            -2 <= sampling.frequency_penalty <= 2,
            f"frequency_penalty is {sampling.frequency_penalty}",
            "a number between -2 and 2",
        ),
        (
            -2 <= sampling.presence_penalty <= 2,
            f"presence_penalty is {sampling.presence_penalty}",
            "a number between -2 and 2",
        ),
        (
            0.01 <= sampling.repetition_penalty <= 100,  # far beyond use; what lies further away overflows logits
            f"repetition_penalty is {sampling.repetition_penalty}",
            "a number between 0.01 and 100",
        ),
        (
            all(-100 <= bias <= 100 for _, bias in sampling.logit_bias),
            f"logit_bias is {sampling.logit_bias}",
            "numbers between -100 and 100",
        ),
        (all(sampling.stop), "a stop string is empty", "at least one character"),
        (sampling.logprobs is None or sampling.logprobs >= 0, f"logprobs is {sampling.logprobs}", "None, 0 or more"),
    )
    for valid, cause, allowed in rules:
        if not valid:
            raise EngineError(cause, remedy=f"give {allowed}")


def _check_terms(request: Request | ScoreRequest) -> None:
    """Check what a request says of its turn and its time."""
    _check_kind("instance", request.instance, _is_integer, "an integer")
    _check_kind("timeout", request.timeout, lambda value: value is None or _is_number(value), "seconds, or None")
    if request.timeout is not None and math.isnan(request.timeout):
        raise EngineError("timeout is nan", remedy="give seconds, or None for no limit")


def _check_constraint(request: Request) -> None:
    if request.jump_forward not in JUMP_FORWARD:
        raise EngineError(f"jump_forward is {request.jump_forward!r}", remedy=f"give one of {', '.join(JUMP_FORWARD)}")
    _check_kind(
        "constraint",
        request.constraint,
        lambda value: value is None or (hasattr(value, "start") and hasattr(value, "matches")),
        "what lmc.grammar.compile returns, or None",
    )


def _check_kind(name: str, value: Any, is_kind: Callable[[Any], bool], kind: str) -> None:
    if not is_kind(value):
        raise EngineError(f"{name} is {value!r:.80}, of type {type(value).__name__}", remedy=f"give {kind}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, tuple | list)


def _is_bias(value: Any) -> bool:
    return _is_list(value) and all(_is_list(pair) and len(pair) == 2 and _is_number(pair[1]) for pair in value)


def _named(types: Iterable[type]) -> str:
    return ", ".join(sorted(kind.__name__ for kind in types))


# Attributes of `SamplingParams`, what they have to be, and how to say so.
_KINDS: tuple[tuple[tuple[str, ...], Callable[[Any], bool], str], ...] = (
    (("max_tokens", "min_tokens", "top_k"), _is_integer, "an integer"),
    (("logprobs",), lambda value: value is None or _is_integer(value), "an integer, or None"),
    (("temperature",), lambda value: value is None or _is_number(value), "a number, or None"),
    (
        ("top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"),
        _is_number,
        "a number",
    ),
    (
        ("stop",),
        lambda value: _is_list(value) and all(isinstance(text, str) for text in value),
        "a tuple of strings; for a single one write ('text',)",
    ),
    (("logit_bias",), _is_bias, "a tuple of pairs of token id and number"),
)
