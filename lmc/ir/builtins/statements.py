"""Semantics of Python statements on values of a run, with the errors that Python raises."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NoReturn

from lmc.ir.builtins.builtin_types import (
    ResultType,
    Safe,
    always_gives,
    always_safe,
    never_safe,
    safe_for_texts,
    same_list,
    second,
)
from lmc.ir.errors import InputError
from lmc.ir.types import ANY, BOOL, NONE, list_of

EXCEPTIONS: dict[str, type[BaseException]] = {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
}
"""Python's own classes of exceptions, by name."""


def bound(present: bool, value: Any, name: str) -> Any:
    """A variable of a function, which may not be bound."""
    if not present:
        raise UnboundLocalError(f"cannot access local variable '{name}' where it is not associated with a value")
    return value


def asserted(holds: object, *message: object) -> None:
    """``assert holds, message``."""
    if not holds:
        raise AssertionError(*message)


def exception(kind: str, *arguments: object, **said: object) -> BaseException:
    """An instance of one of Python's own classes. Raises ``InputError`` for other names."""
    found = EXCEPTIONS.get(kind)
    if found is None:
        raise InputError(f"Python has no exception {kind!r}", remedy="name one of Python's own, such as ValueError")
    return found(*arguments, **said)


def raised(error: Any, *cause: Any) -> NoReturn:
    """``raise error``, or where there is a ``cause``, ``raise error from cause``."""
    if cause:
        raise error from cause[0]
    raise error


def raised_while(handled: BaseException, error: Any, *cause: Any) -> NoReturn:
    """``raise error`` in a handler of the exception ``handled``, whatever the caller handles."""
    context = in_context(error, handled).__context__
    try:
        raised(error, *cause)
    except BaseException as found:
        if found is error:
            found.__context__ = context
        raise


def in_context(error: BaseException, handled: BaseException) -> BaseException:
    """``error``, which was raised while ``handled`` was: that is the context of the first error of its chain."""
    first, seen = error, {id(error)}
    while first.__context__ is not None and id(first.__context__) not in seen:
        first = first.__context__
        seen.add(id(first))
    if id(handled) not in seen:
        first.__context__ = handled
    return error


def caused(error: BaseException, cause: Any) -> BaseException:
    """``error`` as ``raise error from cause`` leaves it."""
    try:
        raise error from cause
    except BaseException as raised_error:
        return raised_error.with_traceback(None)


def is_exception(error: object, *kinds: str) -> bool:
    """Return whether ``error`` is of one of Python's own classes of exceptions, by name."""
    return isinstance(error, tuple(EXCEPTIONS[kind] for kind in kinds if type(kind) is str and kind in EXCEPTIONS))


def unused(*_arguments: object) -> None:
    """Return what stands for a value that nothing asks for."""


def refusal(kind: str, text: str) -> ValueError:
    """Return what ``int(text)`` or ``float(text)``, by ``kind``, raises. Raises ``InputError`` where neither does."""
    try:
        CONVERSIONS[kind](text)
    except ValueError as error:
        return error.with_traceback(None)
    raise InputError(f"{text!r} can be converted with {kind}", remedy="ask first whether it can")


def is_int(text: str) -> bool:
    """Return whether ``int`` takes it."""
    return _converts(int, text)


def is_float(text: str) -> bool:
    """Return whether ``float`` takes it."""
    return _converts(float, text)


def _converts(kind: Callable[[str], Any], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _unpack_two(items: Any) -> list[Any]:
    first, second = items
    return [first, second]


def _unpack_three(items: Any) -> list[Any]:
    first, second, third = items
    return [first, second, third]


def _unpack_four(items: Any) -> list[Any]:
    first, second, third, fourth = items
    return [first, second, third, fourth]


def _unpack_starred(items: Any, before: int, after: int) -> list[Any]:
    """``before`` items, a list of those between, and ``after`` items, as a starred assignment binds them."""
    (*found,) = items
    if len(found) < before + after:
        raise ValueError(f"not enough values to unpack (expected at least {before + after}, got {len(found)})")
    end = len(found) - after
    return [*found[:before], found[before:end], *found[end:]]


RAISING = frozenset({"raise", "raise_while"})
"""The builtins that stand for ``raise``."""
CONVERSIONS: dict[str, Callable[[str], Any]] = {"int": int, "float": float}
"""Conversions from texts to numbers, by name."""
# ``a, b = items`` by how many names there are; what does not fit raises what Python says then.
UNPACKING: dict[int, Callable[[Any], list[Any]]] = {2: _unpack_two, 3: _unpack_three, 4: _unpack_four}
STATEMENT_BUILTINS: tuple[tuple[str, Any, ResultType, Safe], ...] = (
    ("bound", bound, second, never_safe),
    ("assert", asserted, always_gives(NONE), never_safe),
    ("exception", exception, always_gives(ANY), never_safe),
    ("raise", raised, always_gives(NONE), never_safe),
    ("raise_while", raised_while, always_gives(NONE), never_safe),
    ("in_context", in_context, always_gives(ANY), never_safe),
    ("caused", caused, always_gives(ANY), never_safe),
    ("is_exception", is_exception, always_gives(BOOL), bool),
    ("unused", unused, always_gives(ANY), always_safe),
    ("is_int", is_int, always_gives(BOOL), safe_for_texts(1)),
    ("is_float", is_float, always_gives(BOOL), safe_for_texts(1)),
    ("refusal", refusal, always_gives(ANY), never_safe),
    ("unpack_starred", _unpack_starred, always_gives(list_of(ANY)), never_safe),
    *((f"unpack{count}", unpack, same_list, never_safe) for count, unpack in UNPACKING.items()),
)
"""Rows of the table of builtins: name, what it does, type of its result, for which types it can't raise."""
