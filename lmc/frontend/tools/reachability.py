"""Objects that a function of the user's can reach by the names in its code, and so may change."""

from __future__ import annotations

import dataclasses
import functools
import gc
import inspect
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import pydantic

from lmc.frontend.source.locations import is_own_file
from lmc.frontend.source.pure_types import SPECIAL, is_standard_module
from lmc.frontend.tools.tools import Tool
from lmc.ir.wording import with_article

_MOST = 20_000
"""The number of objects that are searched; a function that refers to more of them may reach any."""
_THREAD_STATE = {
    "sqlite3": ("connect", "Connection"),
    "decimal": ("getcontext", "setcontext", "localcontext"),
    "threading": ("local", "current_thread", "get_ident", "get_native_id"),
    "contextvars": ("ContextVar", "copy_context"),
}
"""The objects that belong to the thread that makes or asks for them, by standard module."""
RECEIVER = object()
"""Stands for the object that a captured method belongs to, which a capture keeps alive nowhere."""
_PLAIN = frozenset({str, int, float, bool, bytes, complex, type(None), range, CodeType})


def changeable(values: Mapping[str, Any]) -> set[int]:
    """The ids of all lists, dicts, sets and records in the arguments ``values``."""
    found: dict[int, Any] = {}
    left: list[Any] = list(values.values())
    while left:
        value = left.pop()
        kind = type(value)
        if kind in _PLAIN or id(value) in found:
            continue
        if kind in (list, tuple, set):
            left.extend(value)
        elif kind is dict:
            left.extend(value.values())
        elif dataclasses.is_dataclass(kind) or issubclass(kind, pydantic.BaseModel):
            left.extend(getattr(value, "__dict__", {}).values())
        else:
            continue
        if kind is not tuple:
            found[id(value)] = value
    return set(found)


def reaches(roots: Collection[Any], wanted: Collection[int], receiver: tuple[Any, ...] = ()) -> bool:
    """Return True if an object of an id in ``wanted`` is reachable from ``roots``, functions and their arguments.

    The search covers the globals that a function names, its closure, its defaults, the object of a method, and the
    contents of those; ``RECEIVER`` stands for the object of the captured method. Objects of installed packages, which
    know nothing of the user's, are not searched.
    """
    found = receiver if any(root is RECEIVER for root in roots) else ()
    return bool(wanted) and _finds([*roots, *found], lambda value: id(value) in wanted)


def reaches_hooks(root: Any) -> bool:
    """Return whether what a function of the user's gives, or an object holds, may run code where it is looked at.

    That is a generator, or an object of a class with special methods that ``root`` reaches by the same search.
    """
    function = root.function if isinstance(root, Tool) else root
    function = function.__func__ if isinstance(function, MethodType) else function
    if isinstance(function, FunctionType) and function.__code__.co_flags & inspect.CO_GENERATOR:
        return True
    return _finds([root], lambda value: has_hooks(value if isinstance(value, type) else type(value)))


def thread_state(root: Any) -> str | None:
    """Return the name of what belongs to one thread that ``root`` is or refers to; None where there is nothing."""
    loaded = {module: names for module, names in _THREAD_STATE.items() if module in sys.modules}
    bound = {id(getattr(sys.modules[module], name)) for module, names in loaded.items() for name in names}
    found: list[str] = []

    def is_state(value: Any) -> bool:
        kind = value if isinstance(value, type) else type(value)
        if id(value) in bound:
            found.append(value.__name__)
        elif issubclass(kind, threading.local | ContextVar):
            found.append(with_article(kind.__name__))
        return bool(found)

    _finds([root], is_state)
    return found[0] if found else None


def _finds(left: list[Any], is_wanted: Callable[[Any], bool]) -> bool:
    seen: dict[int, Any] = {}
    while left and len(seen) <= _MOST:
        value = left.pop()
        if type(value) in _PLAIN or id(value) in seen:
            continue
        if is_wanted(value):
            return True
        seen[id(value)] = value
        left.extend(_parts(value))
        if len(left) > _MOST:
            return True
    return bool(left)


@lru_cache(maxsize=4096)
def has_hooks(kind: type) -> bool:
    """Return whether operators and conversions run code of the user's for objects of ``kind``."""
    return any(
        isinstance(held, FunctionType) and is_own_file(held.__code__.co_filename)
        for base in kind.__mro__
        if _is_own(base)
        for name, held in vars(base).items()
        if name in SPECIAL
    )


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, MethodType | BuiltinMethodType):
        yield value.__self__
        yield getattr(value, "__func__", None)
    elif isinstance(value, Tool):
        yield value.function
    elif isinstance(value, FunctionType):
        if is_own_file(value.__code__.co_filename):
            yield from _named(value)
    elif isinstance(value, type):
        if _is_own(value):
            yield from vars(value).values()
            yield from value.__mro__[1:]
    elif isinstance(value, ModuleType):
        return
    elif isinstance(value, property | staticmethod | classmethod | functools.partial) or _is_searched(type(value)):
        yield from gc.get_referents(value)


def _named(function: FunctionType) -> Iterator[Any]:
    yield from (cell for cell in function.__closure__ or ())
    yield function.__defaults__
    yield function.__kwdefaults__
    yield vars(function)
    names = _names(function.__code__)
    left = [function.__globals__.get(name, sys.modules.get(name)) for name in names]
    modules: list[ModuleType] = []
    while left:
        value = left.pop()
        if not isinstance(value, ModuleType):
            yield value
        elif value not in modules:
            modules.append(value)
            left += [found for name in names if (found := vars(value).get(name)) is not None]


def _names(code: CodeType) -> set[str]:
    inner = [_names(entry) for entry in code.co_consts if isinstance(entry, CodeType)]
    return {*code.co_names, *(name for names in inner for name in names)}


def _is_own(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return not is_standard_module(kind.__module__) and (file is None or is_own_file(file))


def _is_searched(kind: type) -> bool:
    """Return True if instances are searched: of Python's own containers, and of the user's classes."""
    return is_standard_module(kind.__module__) or _is_own(kind)
