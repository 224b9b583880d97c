"""Settled token ids and pending text: what a prompt is made of while it grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.tokens.tokenizer import SpecialToken, Tokenizer


@dataclass(frozen=True, slots=True)
class Generated:
    """Tokens that a model gave, and their text."""

    token_ids: tuple[int, ...]
    text: str


Part = str | Generated


@dataclass(frozen=True, slots=True)
class Tokens:
    """Settled token ids and the text after them that is not encoded yet."""

    settled: tuple[int, ...] = ()
    pending: str = ""

    def extend(self, parts: Iterable[Part | SpecialToken], tokenizer: Tokenizer) -> Tokens:
        """Append ``parts`` in order."""
        chunks: list[int] = []
        pending = self.pending
        for part in parts:
            if isinstance(part, str):
                pending += part
                continue
            chunks.extend(tokenizer.encode(pending))
            pending = ""
            if isinstance(part, SpecialToken):
                chunks.append(part.id)
            else:
                chunks.extend(part.token_ids)
        return Tokens(self.settled + tuple(chunks), pending) if chunks else Tokens(self.settled, pending)

    def exceeds(self, parts: Iterable[Part | SpecialToken], tokenizer: Tokenizer, count: int) -> bool:
        """Return True if there are surely more than ``count`` tokens after ``parts``, without encoding them."""
        if len(self.settled) > count:
            return True
        pending = [self.pending]
        for part in parts:
            if isinstance(part, str):
                pending.append(part)
                continue
            if tokenizer.exceeds("".join(pending), count):
                return True
            pending.clear()
        return tokenizer.exceeds("".join(pending), count)


def parts_text(parts: Iterable[Part]) -> str:
    """The text of ``parts``."""
    return "".join(part if isinstance(part, str) else part.text for part in parts)


def common_length(left: Sequence[Any], right: Sequence[Any]) -> int:
    """Length of the common prefix of two texts or tuples, by bisection over slices: linear, without a Python loop."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def token_texts(token_ids: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    """The text of each token by itself."""
    return [tokenizer.decode([token_id]) for token_id in token_ids]


def common_prefix_length(sequences: Sequence[Sequence[int]]) -> int:
    """Length of the longest prefix all ``sequences`` share, in tokens (0 for none)."""
    for index, column in enumerate(zip(*sequences, strict=False)):
        if any(token_id != column[0] for token_id in column):
            return index
    return min(map(len, sequences), default=0)
