"""The values on the ways of a walk: those that are known, and new ones with sizes and bounds that are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmc.cost.ranges import largest_of
from lmc.cost.texts import MARK, CountingTokenizer, PromptSpan, TextSize, known
from lmc.ir.core import Value
from lmc.ir.engine.protocol import Generation
from lmc.ir.semantics.context import Context
from lmc.ir.types import CTX, TEXT, Type

_LONG_TEXT = 16
"""Tokens that are expected of a text of which nothing is known."""
_TURN_SLACK = 64
"""Tokens by which turns that are closed on one way and open on another may differ."""
_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_CHANGEABLE = (list, dict, set, deque)


@dataclass(frozen=True, slots=True, eq=False)
class UnknownValue:
    """A value of which nothing is known before the run; texts and contexts have sizes instead.

    A list has at most ``most`` items, and a number is at most so large; None: no bound. Items of a list may be parts of
    a text (``parts_of``), no longer than it all together.
    """

    most: int | None = None
    parts_of: TextSize | None = None

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = UnknownValue()


def holds_unknown(value: Any) -> bool:
    """Return True if a value, or one in it, is not known."""
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, dict):
        return any(map(holds_unknown, value)) or any(map(holds_unknown, value.values()))
    if isinstance(value, _CONTAINERS):
        return any(map(holds_unknown, value))
    return isinstance(value, UnknownValue)


@dataclass
class WalkedValues:
    """The values of a walk.

    An object is known as long as it is only changed on the ``way`` on which it was ``made``, by its address.
    ``changed`` are the others, kept so that the address stays theirs. ``lost`` are objects that values may be which are
    not known: a change of one of these may be theirs.
    """

    tokenizer: CountingTokenizer
    way: int = 0
    made: dict[int, tuple[Any, int]] = field(default_factory=dict[int, tuple[Any, int]])
    changed: dict[int, Any] = field(default_factory=dict[int, Any])
    lost: dict[int, Any] = field(default_factory=dict[int, Any])

    def unknown(self, kind: Type, size: TextSize | None = None) -> Any:
        """Return a new value of which nothing is known, but for the ``size`` of a text."""
        texts = self.tokenizer.texts
        if kind == TEXT:
            return texts.text(size or TextSize(self.tokenizer.ids_of(_LONG_TEXT), None, None, is_guess=True))
        if kind == CTX:
            return Context.empty(self.tokenizer).text(self.unknown(TEXT))
        return UNKNOWN

    def item(self, values: Any, kind: Type) -> Any:
        """Return an item of a list which is not known."""
        whole = values.parts_of if isinstance(values, UnknownValue) else None
        if whole is None:
            return self.unknown(kind)
        expected = min(whole.expected, self.tokenizer.ids_of(_LONG_TEXT))
        return self.unknown(TEXT, replace(whole, expected=expected, is_guess=True))

    def is_unknown(self, value: Any) -> bool:
        """Return True if a value, or one in it, is not known."""
        return holds_unknown(value) or (bool(self.changed) and self.is_changed(value))

    def is_changed(self, value: Any) -> bool:
        """Return True if an object, or one in it, may have been changed on a way that is not always taken."""
        if id(value) in self.changed:
            return True
        if isinstance(value, dict):
            return any(map(self.is_changed, value.values()))
        return isinstance(value, list | tuple) and any(map(self.is_changed, value))

    def is_whole(self, values: Iterable[Any]) -> bool:
        """Return True if all values are known themselves; what is in them may not be."""
        return not any(isinstance(value, UnknownValue) or self.is_changed(value) for value in values)

    def make(self, values: Iterable[Any]) -> None:
        """Note the objects that are made on the way that is walked."""
        for value in values:
            if isinstance(value, _CHANGEABLE):
                self.made.setdefault(id(value), (value, self.way))

    def touch(self, values: Iterable[Any], *, by_program: bool) -> None:
        """Forget what objects hold that an op may change: a function of the program may change those in them, too."""
        for value in values:
            if isinstance(value, UnknownValue):  # it may be any of these
                self.changed.update(self.lost)
            elif not isinstance(value, str | int | float | bool | Context | None):
                self.changed[id(value)] = value
                if by_program:
                    self.changed.update((id(each), each) for each in _held(value))

    def lose(self, values: Iterable[Any]) -> UnknownValue:
        """Return a value which is not known, and may be, or hold, objects that ``values`` are or hold."""
        for value in values:
            for each in (value, *_held(value)):
                if isinstance(each, _CHANGEABLE):
                    self.lost[id(each)] = each
        return UNKNOWN

    def most_of(self, value: Any) -> int | None:
        """Return the most items of a list, or the largest number that a value may be; None: not known."""
        if isinstance(value, UnknownValue):
            return value.most
        if type(value) is int:
            return value
        return len(value) if isinstance(value, list | tuple) and not self.is_changed(value) else None

    def is_made_here(self, value: Any) -> bool:
        """Return True if an object was made on the way that is walked, and so is only changed where that is taken."""
        return not isinstance(value, _CHANGEABLE) or self.made.get(id(value), (None, 0))[1] == self.way

    def size(self, text: str) -> TextSize:
        """Return the size of a text."""
        plain = known(text)
        tokenizer = self.tokenizer
        return tokenizer.texts.size(text, tokenizer.length(tokenizer.encode(plain)) if plain else 0)

    def either_text(self, texts: Sequence[str], share: float | None = None) -> str:
        """Return an unknown text which is one of ``texts``: of two, the first one with the probability ``share``."""
        if len(set(texts)) == 1:
            return texts[0]
        sizes = [self.size(text) for text in texts]
        expected = sum(size.expected for size in sizes) // len(sizes)
        if share is not None:
            expected = _mean(sizes[0].expected, sizes[1].expected, share)
        return self.unknown(
            TEXT,
            TextSize(
                expected,
                largest_of([size.most for size in sizes]),
                largest_of([size.most_bytes for size in sizes]),
                any(size.is_guess for size in sizes),
            ),
        )

    def either(self, left: Any, right: Any, kind: Type, share: float = 0.5) -> Any:
        """Return a value that is one of both: ``left`` with the probability ``share``."""
        if left is right or (type(left) in (str, int, float, bool) and type(left) is type(right) and left == right):
            return left
        if isinstance(left, Context) and isinstance(right, Context):
            return self._either_context(left, right, share)
        if isinstance(left, str) and isinstance(right, str):
            return self.either_text([left, right], share)
        if isinstance(left, UnknownValue) and isinstance(right, UnknownValue):
            whole = left.parts_of if left.parts_of == right.parts_of else None
            return UnknownValue(largest_of([left.most, right.most]), whole)
        self.lose((left, right))
        return self.unknown(kind)

    def either_of(
        self, left: Iterable[Any], right: Iterable[Any], results: Sequence[Value], share: float = 0.5
    ) -> list[Any]:
        """Return values of the ``results`` of a region: those on its ``left`` way or on its ``right`` one."""
        return [
            self.either(one, other, value.type, share) for one, other, value in zip(left, right, results, strict=True)
        ]

    def _either_context(self, left: Context, right: Context, share: float) -> Context:
        """Return a context that is one of both: what they begin with, and as many tokens more as either has."""
        first, second = left.prompt, right.prompt
        shared = 0
        while shared < min(len(first), len(second)) and first[shared] == second[shared]:
            shared += 1
        count, length = self.tokenizer.count, self.tokenizer.length
        one, other, begun = count(first), count(second), count(first[:shared])
        slack = 0 if _turns(left) == _turns(right) else _TURN_SLACK
        most = largest_of([one.most, other.most])
        # The beginning has a range of its own, which the rest may make up for.
        above = None if most is None else most - begun.least + slack
        below = min(one.least, other.least) - (begun.least if begun.most is None else begun.most) - slack
        middle = _mean(length(first), length(second), share) - length(first[:shared])
        texts = self.tokenizer.texts
        is_guess = texts.is_guess(first[shared:]) or texts.is_guess(second[shared:])
        token = texts.token(PromptSpan(below, middle, above, is_guess))
        longer = left if len(left.messages) >= len(right.messages) else right
        text = self.either_text([known_text(left), known_text(right)], share)
        joined = longer.generated(Generation((token,), text, "eos"))
        assert joined.synced is not None, "a generation settles the text before it"
        settled = replace(joined.synced.tokens, settled=(*first[:shared], token))
        return replace(joined, synced=replace(joined.synced, tokens=settled))

    def endless(self, value: Any) -> Any:
        """Return what a value may have become after any number of rounds."""
        if isinstance(value, Context):
            token = self.tokenizer.texts.token(PromptSpan(0, 0, None, is_guess=True))
            return value.generated(Generation((token,), self.unknown(TEXT, TextSize(0, None, None, True)), "eos"))
        if isinstance(value, str):
            return self.unknown(TEXT, replace(self.size(value), most=None, most_bytes=None))
        return self.lose((value,))


def known_text(context: Context) -> str:
    """Return the text of the open turn of a context, or of a raw completion."""
    return "".join(part if isinstance(part, str) else part.text for part in context.parts)


def _turns(context: Context) -> tuple[int, str | None]:
    return len(context.messages), context.role


def _mean(left: int, right: int, share: float) -> int:
    """Return the mean of two figures, the first one with the weight ``share``."""
    return int(left * share + right * (1.0 - share))


def _held(value: Any) -> Iterator[Any]:
    """Yield the objects in an object."""
    if not isinstance(value, _CONTAINERS):
        return
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, _CONTAINERS):
            yield each
            yield from _held(each)
