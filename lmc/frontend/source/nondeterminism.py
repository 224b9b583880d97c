"""Values that differ between processes: the order of a set of texts depends on a seed of the process.

What a capture works out at once becomes a part of the graph, and the graph shall be the same wherever it is made. So
the capture ends where the order of such a set, or the address of an object, would get into it.
"""

from __future__ import annotations

from operator import add, and_, contains, eq, ge, getitem, gt, le, lt, mul, ne, or_, sub, xor
from types import BuiltinMethodType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any

_SETS = (set, frozenset)
_FIXED_HASH = frozenset({int, bool, float, complex})
_SMALLEST_TABLE = 8
# Their text holds an address, or a path of the machine.
_ADDRESSED = (FunctionType, MethodType, ModuleType)
_OPERATORS = (getitem, contains, eq, ne, lt, le, gt, ge, or_, and_, xor, sub, add, mul)
# None of these looks at the order of a set, or shows it in what it gives.
_ORDER_FREE = frozenset(map(id, (len, bool, set, frozenset, any, all, *_OPERATORS)))
_ORDERING = frozenset(map(id, (sorted, min, max)))
# Methods of lists, dicts and tuples that only keep what they are given, or look for an equal.
_KEEPING = frozenset(
    {"append", "insert", "index", "count", "remove", "setdefault", "get", "pop", "copy", "clear", "__contains__"}
)
_TAKING_FIRST = frozenset({"pop", "__iter__", "__str__", "__repr__", "__format__", "__reduce__", "__reduce_ex__"})
_MAX_DEPTH = 16

CAUSE = "the order of a set differs from one run of Python to the next, or with how it was made, and is used here"
REMEDY = "sort it first: sorted(x)"
ADDRESS_CAUSE = "the text of this object holds its address or path, which differs from one run of Python to the next"
ADDRESS_REMEDY = "use a name or a field of it"


def is_disordered(value: Any) -> bool:
    """Return whether the order of the set ``value`` depends on hash randomization or on insertion order."""
    return type(value) in _SETS and len(value) > 1 and not all(map(_has_own_slot, value))


def _has_own_slot(value: Any) -> bool:
    """Return whether ``value`` has a slot of its own in the smallest hash table."""
    return type(value) in (int, bool) and 0 <= value < _SMALLEST_TABLE


def has_fixed_hash(value: Any) -> bool:
    """Return True if ``hash(value)`` is the same in every process."""
    kind = type(value)
    return kind in _FIXED_HASH or (kind is tuple and all(map(has_fixed_hash, value)))


def holds_disorder(value: Any, depth: int = 0) -> bool:
    """Return True if there is a disordered set in ``value``, itself included."""
    kind = type(value)
    if kind in _SETS:
        return is_disordered(value) or (depth < _MAX_DEPTH and any(holds_disorder(part, depth + 1) for part in value))
    if kind is dict:
        parts: Any = (*value, *value.values())
    elif kind in (list, tuple):
        parts = value
    else:
        return False
    return depth < _MAX_DEPTH and any(holds_disorder(part, depth + 1) for part in parts)


def holds_address(value: Any, depth: int = 0) -> bool:
    """Return True if the text of ``value`` differs between processes, other than by a set's order."""
    kind = type(value)
    if kind is dict:
        return depth < _MAX_DEPTH and any(holds_address(part, depth + 1) for part in (*value, *value.values()))
    if kind in (list, tuple, *_SETS):
        return depth < _MAX_DEPTH and any(holds_address(part, depth + 1) for part in value)
    if kind is BuiltinMethodType:
        return value.__self__ is not None and not isinstance(value.__self__, ModuleType)
    # issubclass(), not isinstance(): a value that is known only later refuses to be asked.
    return issubclass(kind, _ADDRESSED) or kind.__repr__ is object.__repr__


def depends_on_order(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if the result of one of Python's functions may depend on the order of a set in its arguments."""
    if id(function) in _ORDER_FREE:
        return False
    if id(function) in _ORDERING and not kwargs and all(map(has_one_order, args)):
        return False
    if isinstance(function, MethodDescriptorType) and args:
        return depends_on_order(getattr(args[0], function.__name__), args[1:], kwargs)
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if type(owner) in _SETS:
        return name in _TAKING_FIRST and is_disordered(owner)
    if type(owner) in (list, tuple, dict) and name in _KEEPING:
        return False
    return any(map(holds_disorder, (*args, *kwargs.values())))


def has_one_order(value: Any) -> bool:
    """Return True if the items of a set are of one kind that has one order."""
    return not is_disordered(value) or {*map(type, value)} in ({str}, {bytes}, {int})
