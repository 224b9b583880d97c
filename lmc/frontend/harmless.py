"""Which plain values Python's operators may touch during a capture without running code of the user's."""

from __future__ import annotations

import enum
import sys
from functools import lru_cache
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    GenericAlias,
    MethodType,
    ModuleType,
    NotImplementedType,
)
from typing import Any

_LITERALS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, range, slice, type(Ellipsis), NotImplementedType, GenericAlias}
)
_CONTAINERS = frozenset({list, tuple, dict, set, frozenset})
_CALLABLES = (BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, ModuleType)
# What an operator, a conversion or an iteration may call.
_SPECIAL = frozenset(
    f"__{name}__"
    for name in (
        "add radd iadd sub rsub isub mul rmul imul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul "
        "and or xor rand ror rxor lshift rshift rlshift rrshift neg pos abs invert eq ne lt le gt ge hash bool len "
        "contains iter next getitem setitem delitem reversed str repr format int float index complex round bytes "
        "getattribute missing length_hint instancecheck subclasscheck"
    ).split()
)


def is_harmless(value: Any) -> bool:
    """Whether operators on ``value`` run no code of the user's (items of a container are not looked at)."""
    kind = type(value)
    return kind in _LITERALS or kind in _CONTAINERS or is_harmless_type(kind)


def is_deeply_harmless(value: Any, depth: int = 16) -> bool:
    """The same for ``value`` and every item in it."""
    kind = type(value)
    if kind in _LITERALS:
        return True
    if kind is dict:
        return depth > 0 and all(
            is_deeply_harmless(key, depth - 1) and is_deeply_harmless(entry, depth - 1) for key, entry in value.items()
        )
    if kind in _CONTAINERS:
        return depth > 0 and all(is_deeply_harmless(entry, depth - 1) for entry in value)
    return is_harmless_type(kind)


@lru_cache(maxsize=4096)
def is_harmless_type(kind: type) -> bool:
    """Whether no special method of ``kind`` is the user's: all come from Python itself or its standard library."""
    if issubclass(kind, _CALLABLES) or kind.__module__ == "builtins":
        return True
    for base in kind.__mro__:
        if is_standard_module(base.__module__):
            continue
        own = vars(base)
        names = _SPECIAL.intersection(own)
        if issubclass(kind, enum.Enum):
            names = {
                name for name in names if not is_standard_module(getattr(own[name], "__module__", None) or "builtins")
            }
        if names:
            return False
    return True


def is_standard_module(name: str) -> bool:
    """Whether a module belongs to Python itself."""
    return name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"


def is_immutable(value: Any) -> bool:
    """Whether nothing in ``value`` can be changed in place."""
    kind = type(value)
    if kind in (tuple, frozenset):
        return all(map(is_immutable, value))
    return kind in _LITERALS or isinstance(value, enum.Enum)
