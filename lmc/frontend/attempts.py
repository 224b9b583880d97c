"""Conversions in a ``try``: whether a text that is not known yet is a number becomes a condition of the graph.

What a ``try`` around one becomes is said in ``rewrite_tries``.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any

from lmc.frontend.branching import Branching
from lmc.frontend.catching import Kinds
from lmc.frontend.proxy import Proxy, symbol
from lmc.ir.types import TEXT

_CHECKS: dict[Any, tuple[str, str]] = {int: ("int", "is_int"), float: ("float", "is_float")}


class Attempt:
    """A block of a ``try``, as far as it was run: what was converted in it, and which handler takes what it raised."""

    __slots__ = ("caught", "error", "flag", "name", "value")

    def __init__(self) -> None:
        self.caught: int | None = None
        self.error: Any = None  # what was raised, or a symbolic value for it
        self.flag: Any = None  # a symbolic bool: whether the text can be converted
        self.name = ""
        self.value: Any = None


class Attempts(Branching, ABC):
    """The part of ``Operators`` that tries conversions."""

    anything = BaseException

    def attempt(self) -> Attempt:
        """A ``try`` begins."""
        return Attempt()

    def convert(self, attempt: Attempt, kinds: Kinds, function: Any, value: Any) -> None:
        """``function(value)``, a conversion whose ``ValueError`` one of ``kinds`` may take."""
        recorder = self.recorder
        if recorder is not None and type(value) is Proxy and symbol(value).type == TEXT and _is_check(function):
            number = _taken_by(kinds)
            if number is not None:
                tick = self.tick()
                attempt.name, check = _CHECKS[function]
                attempt.value = value
                attempt.caught = number
                attempt.flag = self.done(tick, recorder.pure(check, (value,)))
                return
        attempt.value = self.call(function, value)

    def passed(self, attempt: Attempt) -> Any:
        """Whether nothing was raised: a bool, or a symbolic one."""
        return attempt.caught is None if attempt.flag is None else attempt.flag

    def caught(self, attempt: Attempt, number: int) -> None:
        """The handler ``number`` takes what was raised."""
        attempt.caught = number
        attempt.error = sys.exc_info()[1]

    def handler(self, attempt: Attempt, number: int) -> bool:
        """Whether it was that one."""
        return attempt.caught == number

    def converted(self, attempt: Attempt) -> Any:
        """What the conversion gives."""
        if attempt.flag is None:
            return attempt.value
        recorder = self.recorder
        assert recorder is not None
        return recorder.pure(attempt.name, (attempt.value,), total=True)

    def handling(self, attempt: Attempt, reads: bool) -> None:
        """A handler begins; ``reads`` says whether it needs the exception."""
        recorder = self.recorder
        if recorder is None:
            return
        recorder.handling.append(attempt)
        if reads and attempt.flag is not None:
            attempt.error = recorder.pure("refusal", (attempt.name, attempt.value), total=True)

    def handled(self, attempt: Attempt) -> None:
        """It has come to its end."""
        recorder = self.recorder
        if recorder is not None and attempt in recorder.handling:
            del recorder.handling[recorder.handling.index(attempt) :]

    def error(self, attempt: Attempt) -> Any:
        """The exception that is handled."""
        return attempt.error

    def behind(self, attempt: Attempt, error: BaseException) -> None:
        """``error`` leaves the handler of ``attempt``: it was raised while that one's exception was handled."""
        if self.recorder is None:
            _put_behind(error, attempt.error)

    @abstractmethod
    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``function(*args, **kwargs)``."""


def _put_behind(error: BaseException, handled: BaseException) -> None:
    """Let ``handled`` be what ``error`` was raised in the context of, as in its own handler."""
    part = error
    while part is not handled and part.__context__ not in (None, handled.__context__):
        part = part.__context__
    if part is not handled and error is not handled.__context__:
        part.__context__ = handled


def _is_check(function: Any) -> bool:
    return function is int or function is float


def _taken_by(kinds: Kinds) -> int | None:
    """Which of ``kinds``, each a class or a tuple of classes, takes a ``ValueError`` first."""
    try:
        found = kinds()
    except NameError:
        return None
    for number, kind in enumerate(found):
        classes = kind if type(kind) is tuple else (kind,)
        if not all(type(part) is type for part in classes):
            return None
        if issubclass(ValueError, classes):
            return number
    return None
