"""Conversions in a ``try``: whether a text that is not known yet is a number becomes a condition of the graph.

What a ``try`` around one becomes is said in ``rewrite_tries``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.frontend.branching import Branching
from lmc.frontend.proxy import Proxy, symbol
from lmc.ir.errors import LmcError
from lmc.ir.types import TEXT

Kinds = Callable[[], tuple[Any, ...]]
_CHECKS: dict[Any, tuple[str, str]] = {int: ("int", "is_int"), float: ("float", "is_float")}
# What engines never raise: their errors are LmcErrors, or those of the system and the network.
_OF_VALUES = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, NameError)


class Attempt:
    """A block of a ``try``, as far as it was run: what was converted in it, and which handler takes what it raised."""

    __slots__ = ("caught", "flag", "name", "value")

    def __init__(self) -> None:
        self.caught: int | None = None
        self.flag: Any = None  # a symbolic bool: whether the text can be converted
        self.name = ""
        self.value: Any = None


class Attempts(Branching):
    """The part of ``Operators`` that tries conversions."""

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

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``function(*args, **kwargs)``."""
        raise NotImplementedError


def catches_values_alone(kinds: Kinds | None) -> bool:
    """Whether ``except kinds`` takes nothing that a call of a model raises."""
    try:
        found = () if kinds is None else kinds()
    except NameError:
        return False
    return bool(found) and all(map(_is_of_values, found))


def _is_of_values(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _OF_VALUES) and not issubclass(kind, LmcError)


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
