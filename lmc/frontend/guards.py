"""What a capture holds for: the arguments' shape, values it specialised for, and everything it read outside itself."""

from __future__ import annotations

import builtins as python
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import BuiltinMethodType, CellType, MethodType, ModuleType
from typing import Any

from lmc.frontend.harmless import VIEWS
from lmc.frontend.proxy import Expression, Proxy, evaluate

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
MUTABLE_CONTAINERS = (list, dict, set)
CONTAINERS = (*MUTABLE_CONTAINERS, tuple, frozenset)
_MISSING = object()
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class ValueGuard:
    """``expression`` over the arguments gives ``expected``."""

    expression: Expression
    expected: Any

    def holds(self, inputs: Mapping[str, Any], known: dict[Expression, Any]) -> bool:
        """Whether it does for ``inputs``; an expression that raises does not."""
        try:
            found = evaluate(self.expression, inputs, known)
        except Exception:
            return False
        return _freeze(found, 0) == _freeze(self.expected, 0)


class Snapshot:
    """A value as it was: equal by value for literals and containers of them, by identity for anything else."""

    __slots__ = ("_frozen", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self._frozen = _freeze(value, 0)

    def matches(self, value: Any) -> bool:
        """Whether ``value`` is the same still."""
        if value is self.value and type(value) in _SCALARS:
            return True
        return _freeze(value, 0) == self._frozen


class _Same:
    """Compares by identity, and keeps its object alive so that the identity stays its own."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.held is self.held

    __hash__ = None  # type: ignore[assignment] - only ever compared


class _TooDeep:
    """Equals nothing, itself included: what was not looked at can't be said to be the same."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment] - only ever compared


def _freeze(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind in (float, complex):  # 0.0 equals -0.0, and no NaN equals itself
        return (kind.__name__, repr(value))
    if kind in _SCALARS:
        return (kind.__name__, value)
    if isinstance(value, MethodType):  # made anew at each access
        return ("method", _Same(value.__self__), _Same(value.__func__))
    if kind is BuiltinMethodType and value.__self__ is not None and not isinstance(value.__self__, ModuleType):
        return ("builtin method", _Same(value.__self__), value.__name__)
    if depth >= _MAX_DEPTH and kind in CONTAINERS:
        return _TooDeep()
    if kind is list or isinstance(value, tuple):
        return (_Same(kind), [_freeze(entry, depth + 1) for entry in value])
    if kind is dict:
        return ("dict", [(_freeze(key, depth + 1), _freeze(entry, depth + 1)) for key, entry in value.items()])
    if kind in (set, frozenset):  # in the order in which it is gone over
        return (kind.__name__, [_freeze(entry, depth + 1) for entry in value])
    return _Same(value)


@dataclass(frozen=True, slots=True)
class _Read:
    read: Callable[[], Any]
    snapshot: Snapshot


class ReadGuards:
    """Everything a capture read of globals, closures and attributes, each with the value it saw."""

    def __init__(self) -> None:
        self._reads: dict[tuple[str, int, str], _Read] = {}
        self._owners: list[Any] = []  # keeps what ids stand for alive

    def seen(self, kind: str, owner: Any, name: str, value: Any) -> bool:
        """Whether just this read was recorded with just this object."""
        found = self._reads.get((kind, id(owner), name))
        return found is not None and found.snapshot.value is value

    def add_global(self, owner: dict[str, Any], name: str, value: Any) -> None:
        """``name`` in a module's globals, or else in the builtins."""
        self._add("global", owner, name, lambda: owner.get(name, getattr(python, name, _MISSING)), value)

    def add_cell(self, cell: CellType, name: str, value: Any) -> None:
        """A variable of an enclosing function."""
        self._add("cell", cell, name, lambda: cell.cell_contents, value)

    def add_attribute(self, owner: Any, name: str, value: Any) -> None:
        """``owner.name``."""
        self._add("attribute", owner, name, lambda: getattr(owner, name, _MISSING), value)

    def hold(self) -> bool:
        """Whether every read would give the same again."""
        return all(_unchanged(entry) for entry in self._reads.values())

    def earlier(self, kind: str, owner: Any, name: str, value: Any) -> Any:
        """What a read gave in the capture if that can't have been changed in place, else ``value``."""
        found = self._reads.get((kind, id(owner), name))
        return found.snapshot.value if found is not None and type(found.snapshot.value) in _SCALARS else value

    def _add(self, kind: str, owner: Any, name: str, read: Callable[[], Any], value: Any) -> None:
        key = (kind, id(owner), name)
        if key not in self._reads:
            self._reads[key] = _Read(read, Snapshot(value))
            self._owners.append(owner)

    def __len__(self) -> int:
        return len(self._reads)


def _unchanged(entry: _Read) -> bool:
    try:
        return entry.snapshot.matches(entry.read())
    except Exception:  # an emptied cell, an attribute that raises now
        return False


def mutable_parts(value: Any, found: dict[int, Any], depth: int = 0) -> None:
    """Put every list, dict, set and iterator in ``value``, itself included, into ``found`` by id."""
    kind = type(value)
    if kind is not Proxy and hasattr(kind, "__next__"):
        found[id(value)] = value
    if kind not in CONTAINERS and not (kind is not Proxy and isinstance(value, tuple)):
        return
    if id(value) in found or depth > _MAX_DEPTH:
        return
    if kind in MUTABLE_CONTAINERS:
        found[id(value)] = value
    entries: Any = value.values() if isinstance(value, dict) else value
    for entry in entries:
        mutable_parts(entry, found, depth + 1)


def unguarded_part(value: Any, depth: int = 0) -> type | None:
    """The class of a dict view or an exception in ``value``, itself included: these change where no guard looks."""
    kind = type(value)
    if kind in VIEWS or issubclass(kind, BaseException):
        return kind
    if depth > _MAX_DEPTH or not issubclass(kind, CONTAINERS):
        return None
    base: Any = next(base for base in CONTAINERS if issubclass(kind, base))
    entries = (*dict.keys(value), *dict.values(value)) if base is dict else base.__iter__(value)
    return next((found for entry in entries if (found := unguarded_part(entry, depth + 1)) is not None), None)
