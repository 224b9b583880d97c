"""Texts that are not known before a run, as parts of texts and prompts, and their tokens.

The mark of an unknown text in a known one is a number between two halves of surrogate pairs: no model can read these,
so no known text holds them. In a prompt, negative token ids are tokens that are not known, a ``PromptSpan`` each.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from lmc.cost.ranges import CostRange
from lmc.ir.cached import cached_property
from lmc.ir.tokens.boundaries import longest_token
from lmc.ir.tokens.messages import MessageTokenizer
from lmc.ir.tokens.tokenizer import Tokenizer
from lmc.ir.tokens.tokens import common_length

MARK = "\ud800"
LONGEST_TOKEN = 128
"""Bytes of one token at most, where the tokenizer is not known: the longest ones are runs of spaces."""
_MARKS = re.compile(f"{MARK}([0-9]+)\udfff")
_KEPT = 1 << 22
"""Characters of texts whose tokens are kept."""
_NORMALIZED = 12
"""Bytes that a normalizer makes of one at most: U+FDFA has 3, and 33 once it is decomposed."""
_ASCII, _TWO, _THREE, _FOUR = 0.25, 0.5, 0.8, 1.6
"""Tokens of a character by the length of its UTF-8: Latin text, Greek and Cyrillic, CJK, emoji."""
TOKEN_BYTES = round(1 / _ASCII)
"""Bytes of a token of text, where no profile tells them."""
_LENGTHS = ((_ASCII, range(0x80)), (_TWO, range(0xC2, 0xE0)), (_THREE, range(0xE0, 0xF0)), (_FOUR, range(0xF0, 0xF5)))
_OTHERS = tuple((weight, bytes(set(range(256)) - set(kept))) for weight, kept in _LENGTHS)
_BYTES = 256
"""Token ids below it are bytes of text, others the marks of turns."""
_TURN_MARKS = (0, 3, 16)
"""Tokens that a provider adds for each turn, beside its role and its text."""


@dataclass(frozen=True, slots=True)
class TextSize:
    """The size of an unknown text: at least nothing. None: no bound.

    ``expected`` are token ids of the tokenizer: bytes where it is that of messages. ``most`` are tokens, those of an
    output being as many as it has when it is part of a prompt. ``is_guess``: nothing tells how many are expected.
    """

    expected: int
    most: int | None
    most_bytes: int | None
    is_guess: bool = False


@dataclass(frozen=True, slots=True)
class PromptSpan:
    """Tokens of a part of a prompt. They may be less than none: a part may be shorter than what it is added to.

    ``expected`` are token ids, as those of a ``TextSize``. ``is_guess``: it holds texts with a size that is a guess.
    """

    least: int
    expected: int
    most: int | None
    is_guess: bool = False


class Texts:
    """The unknown texts and spans of a walk."""

    def __init__(self) -> None:
        self._sizes: list[TextSize] = []
        self._spans: list[PromptSpan] = []
        self._ids: dict[str, int] = {}
        self._encoded: dict[str, tuple[int, ...]] = {}
        self._characters = 0

    def text(self, size: TextSize) -> str:
        """Return a new unknown text."""
        self._sizes.append(size)
        return f"{MARK}{len(self._sizes) - 1}\udfff"

    def sizes(self, text: str) -> list[TextSize]:
        """Return the sizes of the unknown texts in a text."""
        return [self._sizes[int(number)] for number in _MARKS.findall(text)]

    def size(self, text: str, known_ids: int) -> TextSize:
        """Return the size of a text whose known parts have about so many token ids."""
        found, length = self.sizes(text), len(known(text).encode())
        return TextSize(
            known_ids + sum(size.expected for size in found),
            _sum([length, *(size.most for size in found)]),
            _sum([length, *(size.most_bytes for size in found)]),
            any(size.is_guess for size in found),
        )

    def token(self, span: PromptSpan, text: str | None = None) -> int:
        """Return the token id of a span; of equal texts that of the first one."""
        if text is not None and text in self._ids:
            return self._ids[text]
        self._spans.append(span)
        token_id = -len(self._spans)
        if text is not None:
            self._ids[text] = token_id
        return token_id

    def span(self, token_id: int) -> PromptSpan:
        """Return the span of a negative token id."""
        return self._spans[-token_id - 1]

    def is_guess(self, ids: Sequence[int]) -> bool:
        """Return True if tokens stand for a text with a size that is a guess."""
        return min(ids, default=0) < 0 and any(self.span(token_id).is_guess for token_id in ids if token_id < 0)

    def measured(self, ids: list[int]) -> tuple[int, int, int, int]:
        """Return the sums of the spans ``ids``: least, expected, most of those with a bound, and how many have none."""
        least = expected = most = unbounded = 0
        for token_id in ids:
            span = self.span(token_id)
            least, expected, most = least + span.least, expected + span.expected, most + (span.most or 0)
            unbounded += span.most is None
        return least, expected, most, unbounded

    def added(self, spans: Sequence[int], count: CostRange[int]) -> CostRange[int]:
        """Return the range of ``count`` and sums of ``measured``: at least one token, which every prompt has."""
        span_least, span_expected, span_most, unbounded = spans
        least = max(1, count.least + span_least)
        most = None if count.most is None or unbounded else count.most + span_most
        expected = max(least, count.expected + span_expected)
        return CostRange(least, expected if most is None else min(expected, max(least, most)), _at_least(most, least))

    def decoded(self, ids: Sequence[int]) -> str:
        """Return what tokens stand for, some of which are not known."""
        spans = [self.span(token_id) for token_id in ids if token_id < 0]
        expected = len(ids) - len(spans) + sum(span.expected for span in spans)
        return self.text(TextSize(max(0, expected), None, None, any(span.is_guess for span in spans)))

    def encoded(self, text: str, encode: Callable[[str], tuple[int, ...]]) -> tuple[int, ...]:
        """Return the tokens of a known text: calls and rows share most of their texts, so the last ones are kept."""
        found = self._encoded.get(text)
        if found is None:
            if self._characters > _KEPT:
                self._encoded.clear()
                self._characters = 0
            found = self._encoded[text] = encode(text)
            self._characters += len(text)
        return found

    def end_row(self) -> None:
        """Forget which texts have an id: those of another row are other ones."""
        self._ids.clear()


class _Sums:
    """Sums over the ids of prompts. Prompts that follow each other mostly share a beginning, whose sums are kept."""

    def __init__(self) -> None:
        self._last: tuple[tuple[int, ...], tuple[int, ...]] = (), ()

    def of(self, ids: tuple[int, ...], measure: Callable[[tuple[int, ...]], tuple[int, ...]]) -> tuple[int, ...]:
        """Return the sums of ``measure`` over all ``ids``."""
        last, sums = self._last
        shared = common_length(ids, last)
        if 2 * shared < max(len(ids), len(last)):
            sums = measure(ids)
        else:
            sums = tuple(map(operator.add, sums, measure(ids[shared:])))
            if shared < len(last):
                sums = tuple(map(operator.sub, sums, measure(last[shared:])))
        self._last = ids, sums
        return sums


@dataclass(frozen=True)
class ModelCounting(Tokenizer):
    """The tokenizer of a model. Texts without unknown parts have exactly their tokens."""

    texts: Texts = field(default_factory=Texts, repr=False)

    def encode(self, text: str) -> tuple[int, ...]:
        if MARK not in text:
            return self.texts.encoded(text, super().encode)
        stable = self.stable_prefix(text)
        return (*stable, self.texts.token(self._span(text, stable), text))

    def stable_prefix(self, text: str) -> tuple[int, ...]:
        return super().stable_prefix(text.partition(MARK)[0])

    def decode(self, ids: Sequence[int]) -> str:
        return self.texts.decoded(ids) if min(ids, default=0) < 0 else super().decode(ids)

    def exceeds(self, text: str, count: int) -> bool:
        return MARK not in text and super().exceeds(text, count)

    @cached_property
    def token_bytes(self) -> int:
        return self._most_bytes or LONGEST_TOKEN

    def length(self, ids: tuple[int, ...]) -> int:
        """Return the token ids that are expected."""
        return self.count(ids).expected

    def ids_of(self, tokens: float, token_bytes: float = TOKEN_BYTES) -> int:  # noqa: ARG002 - ids are tokens
        """Return the token ids that so many tokens are expected to have, of so many bytes each."""
        return round(tokens)

    def count(self, ids: tuple[int, ...]) -> CostRange[int]:
        known_count, *spans = self._sums.of(ids, self._measured)
        return self.texts.added(spans, CostRange.exactly(known_count))

    def _measured(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the known tokens and the sums of the spans."""
        spans = [token_id for token_id in ids if token_id < 0] if min(ids, default=0) < 0 else []
        return len(ids) - len(spans), *self.texts.measured(spans)

    @cached_property
    def _sums(self) -> _Sums:
        return _Sums()

    def _span(self, text: str, stable: tuple[int, ...]) -> PromptSpan:
        """Return the tokens of a text after its first ones: from the fewest that its bytes can have, to one for each.

        What is unknown decides where the words of a text begin, and so all tokens after it.
        """
        rest = known(text)
        expected = max(0, len(super().encode(rest)) - len(stable))
        length = max(0, len(rest.encode()) - len(self.decode(stable).encode()))
        size = self.texts.size(text, expected)
        least = 0 if self._most_bytes is None or self._normalizes else -(-length // self._most_bytes)
        most = _sum([length, *(each.most_bytes for each in self.texts.sizes(text))])
        if most is not None and self._normalizes:
            most = most * _NORMALIZED + 1
        return PromptSpan(least, size.expected, most, size.is_guess)

    @cached_property
    def _most_bytes(self) -> int | None:
        return longest_token(json.loads(self.definition))

    @cached_property
    def _normalizes(self) -> bool:
        definition = json.loads(self.definition)
        pre_tokenizer = json.dumps(definition.get("pre_tokenizer"))
        return definition.get("normalizer") is not None or "Metaspace" in pre_tokenizer


@dataclass(frozen=True)
class MessageCounting(MessageTokenizer):
    """The messages of a target whose tokens are not known: at most one for each byte, and what a turn adds."""

    texts: Texts = field(default_factory=Texts, repr=False)

    def encode(self, text: str) -> tuple[int, ...]:
        if MARK not in text:
            return super().encode(text)
        ids: list[int] = []
        for index, part in enumerate(_MARKS.split(text)):
            if index % 2 == 0:
                ids.extend(super().encode(part))
                continue
            mark = f"{MARK}{part}\udfff"
            size = self.texts.sizes(mark)[0]
            ids.append(self.texts.token(PromptSpan(0, size.expected, size.most, size.is_guess), mark))
        return tuple(ids)

    def decode(self, ids: Sequence[int]) -> str:
        return self.texts.decoded(ids) if min(ids, default=0) < 0 else super().decode(ids)

    def exceeds(self, text: str, count: int) -> bool:
        return MARK not in text and super().exceeds(text, count)

    @property
    def token_bytes(self) -> int:
        return LONGEST_TOKEN

    def length(self, ids: tuple[int, ...]) -> int:
        """Return the token ids that are expected: marks of turns, and bytes of texts."""
        marks, length, *_characters, _least, expected, _most, _unbounded = self._sums.of(ids, self._measured)
        return marks + length + expected

    def ids_of(self, tokens: float, token_bytes: float = TOKEN_BYTES) -> int:
        """Return the token ids that so many tokens are expected to have, of so many bytes each."""
        return round(tokens * token_bytes)

    def count(self, ids: tuple[int, ...]) -> CostRange[int]:
        marks, length, *counts = self._sums.of(ids, self._measured)
        characters, (span_least, span_bytes, *bounds) = counts[: len(_OTHERS)], counts[len(_OTHERS) :]
        least, expected, most = ((marks + 1) * tokens for tokens in _TURN_MARKS)
        tokens = sum(weight * count for (weight, _), count in zip(_OTHERS, characters, strict=True))
        least, most = least - (-length // LONGEST_TOKEN), most + length
        count = CostRange(least, min(max(least, expected + round(tokens)), most), most)
        return self.texts.added((span_least, round(span_bytes / TOKEN_BYTES), *bounds), count)

    def _measured(self, ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return the marks of turns, the bytes of text, the characters by their length, and the sums of the spans."""
        found = np.array(ids, np.int64)
        spans: list[int] = found[found < 0].tolist()
        text = found[(found >= 0) & (found < _BYTES)].astype(np.uint8).tobytes()
        characters = (len(text.translate(None, others)) for _, others in _OTHERS)
        return len(ids) - len(spans) - len(text), len(text), *characters, *self.texts.measured(spans)

    @cached_property
    def _sums(self) -> _Sums:
        return _Sums()


CountingTokenizer = ModelCounting | MessageCounting


def counting(tokenizer: Tokenizer) -> CountingTokenizer:
    """Return ``tokenizer`` for texts that hold unknown ones."""
    values = {each.name: getattr(tokenizer, each.name) for each in fields(Tokenizer)}
    return ModelCounting(**values) if tokenizer.is_of_model else MessageCounting(**values)


def known(text: str) -> str:
    """Return a text without its unknown parts."""
    return _MARKS.sub("", text)


def _sum(parts: list[int | None]) -> int | None:
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def _at_least(most: int | None, least: int) -> int | None:
    return None if most is None else max(most, least)
