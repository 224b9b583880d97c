"""Types whose operators run no code of the user's, so that a capture may use them on plain values.

Touching must also give the same answer each time the capture is used, so what can change in place counts as harmless
only if guards look into it (lists, dicts and sets themselves, not their subclasses).
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import re
import sys
import typing
import uuid
from abc import ABC
from collections.abc import Iterator
from functools import lru_cache
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    NotImplementedType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any


class Harmless(ABC):  # noqa: B024 - classes register with it
    """Classes of lmc whose instances hold no code of the user's; they are registered with it."""


_LITERALS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), NotImplementedType}
)
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_FIXED: tuple[Any, ...] = (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    MethodType,
    MethodDescriptorType,
    WrapperDescriptorType,
    ModuleType,
    GenericAlias,
    UnionType,
    BaseException,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    decimal.Decimal,
    fractions.Fraction,
    pathlib.PurePath,
    re.Pattern,
    re.Match,
    uuid.UUID,
    type(typing.Optional),  # Literal, Union and the like, and below what List and such are, with and without items
    type(typing.List),  # noqa: UP006
    type(typing.List[int]),  # noqa: UP006
)
_VALUES = (
    datetime.date,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
)
_FIXED_BASES = frozenset({object, str, bytes, int, float, complex, tuple, frozenset, type})
# What an operator, a conversion or an iteration may call.
SPECIAL = frozenset(
    f"__{name}__"
    for name in [
        "add",
        "radd",
        "iadd",
        "sub",
        "rsub",
        "isub",
        "mul",
        "rmul",
        "imul",
        "truediv",
        "rtruediv",
        "floordiv",
        "rfloordiv",
        "mod",
        "rmod",
        "pow",
        "rpow",
        "matmul",
        "rmatmul",
        "and",
        "or",
        "xor",
        "rand",
        "ror",
        "rxor",
        "lshift",
        "rshift",
        "rlshift",
        "rrshift",
        "neg",
        "pos",
        "abs",
        "invert",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "hash",
        "bool",
        "len",
        "contains",
        "iter",
        "next",
        "getitem",
        "setitem",
        "delitem",
        "reversed",
        "str",
        "repr",
        "format",
        "int",
        "float",
        "index",
        "complex",
        "round",
        "bytes",
        "getattribute",
        "missing",
        "length_hint",
        "instancecheck",
        "subclasscheck",
    ]
)


def is_deeply_harmless(value: Any, depth: int = 16) -> bool:
    """The same for ``value`` and every item in it."""
    kind = type(value)
    if kind in _LITERALS:
        return True
    if kind is dict:
        return depth > 0 and all(
            is_deeply_harmless(key, depth - 1) and is_deeply_harmless(entry, depth - 1) for key, entry in value.items()
        )
    if kind in _CONTAINERS or (isinstance(value, tuple) and is_harmless_type(kind)):
        return depth > 0 and all(is_deeply_harmless(entry, depth - 1) for entry in value)
    return is_harmless_type(kind)


@lru_cache(maxsize=4096)
def is_harmless_type(kind: Any) -> bool:
    """Return whether instances of ``kind`` never change, and have no special method of the user's; handles too."""
    if issubclass(kind, Harmless) or (issubclass(kind, _FIXED) and is_standard_module(kind.__module__)):
        return True
    if kind.__module__ == "builtins":
        # Iterators and views are looked after where they are used up.
        return kind in _FIXED_BASES or issubclass(kind, (BaseException, Iterator, *VIEWS))
    for base in kind.__mro__:
        if base in _FIXED_BASES or base in _FIXED:
            continue
        own = vars(base)
        names = SPECIAL.intersection(own)
        if issubclass(kind, enum.Enum) or issubclass(kind, type):
            names = {
                name for name in names if not is_standard_module(getattr(own[name], "__module__", "") or "builtins")
            }
        if names or base in _CONTAINERS:
            return False
    return True


def is_standard_module(name: str) -> bool:
    """Return whether a module belongs to Python itself."""
    return name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"


def is_fixed(value: Any) -> bool:
    """Return whether an object of the standard library never changes, and runs no code of the user's."""
    kind = type(value)
    return kind in (bytes, re.Pattern, re.Match) or (isinstance(value, _VALUES) and is_standard_module(kind.__module__))


def is_immutable(value: Any) -> bool:
    """Return whether nothing in ``value`` can be changed in place."""
    kind = type(value)
    if isinstance(value, tuple | frozenset):
        return all(map(is_immutable, value))
    return kind in _LITERALS or isinstance(value, enum.Enum)
