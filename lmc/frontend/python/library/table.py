"""Finds the row of a function, a method or an attribute. Nothing is imported for that: a program has done so."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any

from lmc.frontend.python.library import numbers, texts, times
from lmc.frontend.python.library.rows import CLASSES, LibraryFunction, parsed, resolve

_ALIASES = {
    "_bisect": "bisect",
    "_datetime": "datetime",
    "_decimal": "decimal",
    "_hashlib": "hashlib",
    "_json": "json",
    "_operator": "operator",
    "_random": "random",
    "_sre": "re",
    "_statistics": "statistics",
    "ntpath": "posixpath",
}
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)


@lru_cache(maxsize=1)
def rows() -> Mapping[str, LibraryFunction]:
    """All rows, by ``module.name``; attributes by ``kind.name`` with a dot in front."""
    found: dict[str, LibraryFunction] = {}
    for tables in (numbers.TABLE, texts.TABLE, times.TABLE):
        for module, text in tables.items():
            for name, row in parsed(module, text).items():
                found[name if name.startswith(".") else f"{module}.{name}"] = row
    return found


def find(held: Any) -> LibraryFunction | None:
    """The row of a function or class; None where there is none."""
    if not isinstance(held, (*_FUNCTIONS, type)):
        return None
    module, name = _named(held)
    if module is None:
        return None
    public = _ALIASES.get(module, module)
    row = rows().get(f"{public}.{name}")
    if row is None:
        return None
    return row if any(resolve(f"{each}.{name}") == held for each in (public, module)) else None


def _named(held: Any) -> tuple[str | None, str]:
    owner = getattr(held, "__self__", None) if isinstance(held, BuiltinFunctionType) else None
    owner = getattr(held, "__objclass__", owner)
    if isinstance(owner, type):
        return owner.__module__, f"{owner.__qualname__}.{held.__name__}"
    if owner is not None and not isinstance(owner, ModuleType):
        return None, ""
    return held.__module__ or "builtins", held.__qualname__.removeprefix("openssl_")


def find_method(kind: type, name: str) -> tuple[Any, LibraryFunction] | None:
    """A method of a class that has a row, and that row."""
    return _find_fixed(kind, name) if kind.__flags__ & _IMMUTABLE_TYPE else _find_method(kind, name)


def _find_method(kind: type, name: str) -> tuple[Any, LibraryFunction] | None:
    held = inspect.getattr_static(kind, name, None)
    row = find(held)
    return None if row is None else (held, row)


_find_fixed = lru_cache(maxsize=1024)(_find_method)
_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


def find_attribute(kind: type, name: str) -> LibraryFunction | None:
    """The row of data that instances of a class hold."""
    known = kind_name(kind)
    return None if known is None else rows().get(f".{known}.{name}")


def kind_name(kind: type) -> str | None:
    """The kind of arguments that are instances of a class."""
    named = _CLASSES_NAMED.get(kind.__name__, ())
    return next((name for name in named if resolve(CLASSES[name]) is kind), None)


_CLASSES_NAMED: Mapping[str, list[str]] = {
    last: [name for name, path in CLASSES.items() if path.endswith(f".{last}")]
    for last in {path.rpartition(".")[2] for path in CLASSES.values()}
}
