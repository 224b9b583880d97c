"""A schedule as requests that the simulator serves: prompts by their lengths and by what they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lmc.backend.schedule.request_model import Answer, Known, Piece, RequestModel, Unknown
from lmc.cache.trace import MAX_TOKENS, TraceRequest
from lmc.ir.errors import InputError

CHARACTERS = 4
"""Characters of a token, about; a schedule knows texts, not tokens."""
_PART = 256
"""Characters in the sample from the beginning, and in that from the middle, of a text."""
_MOST_TEXTS = 512
_WORDS = np.array([1, 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D], dtype=np.uint64)

Tokens = NDArray[np.int32]
Length = tuple[int, int]
"""Characters of a value, and how many of them are those of the same value of the entry before."""


def requests_of(
    stages: Sequence[RequestModel], entries: Sequence[tuple[int, Sequence[Length]]], *, characters: float = CHARACTERS
) -> list[TraceRequest]:
    """The requests of instances, in the order of the schedule; ``entries`` hold their numbers and their values.

    A token stands for so many ``characters`` of a text. Equal numbers stand for equal texts; what is not known before
    the run has numbers of its own. Time and memory are linear in the prompts.

    Raises:
        InputError: prompts and answers have more than ``MAX_TOKENS`` tokens in all.
    """
    left = MAX_TOKENS
    for place, (_, lengths) in enumerate(entries):
        left -= tokens_of(stages, lengths, characters)
        if left < 0:
            raise InputError(
                f"the requests of the schedule have more than {MAX_TOKENS:,} tokens; those of its first {place:,} "
                "instances have not",
                remedy="schedule fewer instances",
            )
    made = _Requests(stages, characters)
    return [request for instance, lengths in entries for request in made.of(instance, lengths)]


def tokens_of(stages: Sequence[RequestModel], lengths: Sequence[Length], characters: float) -> int:
    """Tokens of the prompts and answers of one instance."""
    return sum(prompts_of(stages, lengths, characters)) + sum(stage.output for stage in stages)


def prompts_of(stages: Sequence[RequestModel], lengths: Sequence[Length], characters: float) -> list[int]:
    """Tokens of each prompt of one instance."""
    prompts: list[int] = []
    for stage in stages:
        size = 0
        if stage.base is not None:
            size = prompts[stage.base] + (stages[stage.base].answer if stage.answered else 0)
        size += sum(piece_size(piece, stages, lengths, characters) for piece in stage.pieces)
        prompts.append(max(size, 1))
    return prompts


def pieces_of(
    stages: Sequence[RequestModel], number: int, lengths: Sequence[Length], characters: float
) -> list[tuple[Piece, int]]:
    """The pieces of a prompt of one instance, each with its tokens."""
    parts: list[list[Piece]] = []
    at: int | None = number
    while at is not None:
        stage = stages[at]
        answered = [Answer(stage.base)] if stage.answered and stage.base is not None else []
        parts.append([*answered, *stage.pieces])
        at = stage.base
    pieces = [piece for part in reversed(parts) for piece in part]
    found = [(piece, piece_size(piece, stages, lengths, characters)) for piece in pieces]
    return found if any(size for _, size in found) else [(Unknown(1), 1)]


def piece_size(piece: Piece, stages: Sequence[RequestModel], lengths: Sequence[Length], characters: float) -> int:
    """Tokens of a piece of the prompts of one instance."""
    match piece:
        case str():
            return _size(len(piece), characters)
        case Known(number):
            return _size(lengths[number][0], characters) if number < len(lengths) else 1
        case Answer(answered):
            return stages[answered].answer
        case Unknown(tokens):
            return tokens


def _size(length: int, characters: float) -> int:
    return math.ceil(length / characters)


class _Requests:
    """Makes requests instance by instance."""

    def __init__(self, stages: Sequence[RequestModel], characters: float) -> None:
        self._stages = stages
        self._characters = characters
        literals = {piece for stage in stages for piece in stage.pieces if isinstance(piece, str)}
        self._literals = {piece: _hashed(piece, characters) for piece in literals}
        self._values: list[Tokens] = []
        self._fresh = -(2**31)
        self._known: list[int] = []

    def of(self, instance: int, lengths: Sequence[Length]) -> Iterator[TraceRequest]:
        self._values = list(self._next_values(lengths))
        prompts: list[Tokens] = []
        answers: list[Tokens] = []
        known: list[int] = []
        for number, stage in enumerate(self._stages):
            parts = [np.empty(0, np.int32)]
            is_known, length = True, 0
            if stage.base is not None:
                parts.append(prompts[stage.base])
                length = known[stage.base]
                is_known = known[stage.base] == prompts[stage.base].size and not stage.answered
                if stage.answered:
                    parts.append(answers[stage.base])
            for piece in stage.pieces:
                if isinstance(piece, str):
                    found = self._literals[piece]
                elif isinstance(piece, Known) and piece.number < len(self._values):
                    found = self._values[piece.number]
                elif isinstance(piece, Answer):
                    found, is_known = answers[piece.stage], False
                else:
                    found, is_known = self._new(1 if isinstance(piece, Known) else piece.tokens), False
                parts.append(found)
                length += found.size if is_known else 0
            tokens = np.concatenate(parts)
            if not tokens.size:
                tokens = self._new(1)
            prompts.append(tokens)
            answers.append(self._new(stage.answer))
            known.append(length)
            after = tuple(f"{instance}/{each}" for each in stage.after)
            yield TraceRequest(
                id=f"{instance}/{number}",
                tokens=tokens,
                generated=answers[-1][: stage.output],
                after=after,
                arrival=0.0,
                instance=instance,
                known=length,
                expected=stage.output,
                priority=0,
                location=None,
            )

    def _next_values(self, lengths: Sequence[Length]) -> Iterator[Tokens]:
        for number, (length, shared) in enumerate(lengths):
            size = _size(length, self._characters)
            before = self._values[number] if number < len(self._values) else np.empty(0, np.int32)
            kept = before[: size if shared == length else int(shared / self._characters)]
            yield np.concatenate([kept, self._new(size - kept.size)])

    def _new(self, count: int) -> Tokens:
        self._fresh += count
        return np.arange(self._fresh - count, self._fresh, dtype=np.int64).astype(np.int32)


def _hashed(text: str, characters: float) -> Tokens:
    """Numbers, one for so many characters, that are equal as long as texts are; they are not negative."""
    if not text:
        return np.empty(0, np.int32)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64) + np.uint64(1)
    numbers = np.arange(_size(points.size, characters))
    starts = np.minimum((numbers * characters).astype(np.int64), points.size - 1)
    mixed = np.add.reduceat(points * _WORDS[np.arange(points.size) % _WORDS.size], starts) + numbers.astype(np.uint64)
    return ((mixed * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)).astype(np.int32)


def characters_of_a_token(texts: Sequence[str], tokens_of: Callable[[str], int]) -> float:
    """Characters to a token on average, as ``tokens_of`` counts; ``CHARACTERS`` where there is no text."""
    characters, tokens = 0, 0.0
    for text in list(filter(None, texts))[:_MOST_TEXTS]:
        at = len(text) // 2
        part = text[:_PART] + text[max(at, _PART) : at + _PART]
        sendable = part.encode("utf-8", "replace").decode()  # what can't be encoded fails where it runs
        characters += len(text)
        tokens += tokens_of(sendable) / len(part) * len(text)
    return characters / tokens if tokens else CHARACTERS
