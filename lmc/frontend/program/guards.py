"""Guards: the shape of arguments, specialised values, and everything that a capture read outside itself."""

from __future__ import annotations

import builtins as python
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import BuiltinMethodType, CellType, MethodType, ModuleType
from typing import Any

from lmc.frontend.heap.expressions import Expression, evaluate
from lmc.frontend.language.binding import Bindable
from lmc.frontend.source.pure_types import VIEWS

_SCALARS = (type(None), bool, int, float, complex, str, bytes)
MUTABLE_CONTAINERS = (list, dict, set)
CONTAINERS = (*MUTABLE_CONTAINERS, tuple, frozenset)
MISSING: Any = object()
"""The result of a read of a missing name."""
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class ValueGuard:
    """``expression`` over the arguments gives ``expected``."""

    expression: Expression
    expected: Any

    def holds(self, inputs: Mapping[str, Any], known: dict[Expression, Any]) -> bool:
        """Return whether it does for ``inputs``; an expression that raises does not."""
        try:
            found = evaluate(self.expression, inputs, known)
        except Exception:
            return False
        return _freeze(found, 0) == _freeze(self.expected, 0)


class Snapshot:
    """A value as it was: equal by value for literals and containers of them, by identity for anything else.

    Containers whose ids are ``live`` count as anything else; those of ``held`` have to be the same objects as well.
    """

    __slots__ = ("_frozen", "_held", "_live", "value")

    def __init__(self, value: Any, live: frozenset[int] = frozenset(), held: frozenset[int] = frozenset()) -> None:
        self.value = value
        self._live = live
        self._held = held
        self._frozen = _freeze(value, 0, live, held)

    def holding(self, held: frozenset[int]) -> Snapshot:
        """Return the same where these containers have to be the same objects."""
        return Snapshot(self.value, self._live, held)

    def matches(self, value: Any) -> bool:
        """Return whether ``value`` is the same still."""
        if value is self.value and type(value) in _SCALARS:
            return True
        return _freeze(value, 0, self._live, self._held) == self._frozen


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


def _freeze(value: Any, depth: int, live: frozenset[int] = frozenset(), held: frozenset[int] = frozenset()) -> Any:
    kind = type(value)
    if live and id(value) in live:
        return _Same(value)
    if held and id(value) in held:
        return (_Same(value), _freeze(value, depth, live, held - {id(value)}))
    if kind in (float, complex):  # 0.0 equals -0.0, and no NaN equals itself
        return (kind.__name__, repr(value))
    if kind in _SCALARS:
        return (kind.__name__, value)
    if isinstance(value, MethodType):  # made anew at each access
        return ("method", _Same(value.__self__), _Same(value.__func__))
    if issubclass(kind, Bindable) and value.receiver:  # made anew at each access, too
        return ("bound", _Same(value.template), _Same(value.receiver[0]))
    if kind is BuiltinMethodType and value.__self__ is not None and not isinstance(value.__self__, ModuleType):
        return ("builtin method", _Same(value.__self__), value.__name__)
    if depth >= _MAX_DEPTH and kind in CONTAINERS:
        return _TooDeep()
    if kind is list or isinstance(value, tuple):
        return (_Same(kind), [_freeze(entry, depth + 1, live, held) for entry in value])
    if kind is dict:
        return (
            "dict",
            [
                (_freeze(key, depth + 1, live, held), _freeze(entry, depth + 1, live, held))
                for key, entry in value.items()
            ],
        )
    if kind in (set, frozenset):  # in the order in which it is gone over
        return (kind.__name__, [_freeze(entry, depth + 1, live, held) for entry in value])
    return _Same(value)


@dataclass(frozen=True, slots=True)
class _Read:
    read: Callable[[Any], Any]
    snapshot: Snapshot


class ReadGuards:
    """Everything a capture read of globals, closures and attributes, each with the value it saw.

    Attributes of ``receiver``, the object that a captured method belongs to, are read from that of the run: it is not
    kept alive. ``exclusive`` says that it was also read from somewhere else, so that they hold for this object alone.
    ``live`` are ids of containers that the graph itself changes, which are held by identity, ``held`` those of
    containers that the graph passes on: they are held by value and by identity. ``rebound`` are the globals that
    functions of other files may bind anew, by namespace and file of the function that reads.
    """

    def __init__(self, receiver: tuple[Any, ...] = ()) -> None:
        self._reads: dict[tuple[str, int, str], _Read] = {}
        self._owners: list[Any] = []  # keeps what ids stand for alive
        self._receiver = id(receiver[0]) if receiver else None
        self._live: frozenset[int] = frozenset()
        self._held: frozenset[int] = frozenset()
        self.exclusive = False
        self.rebound: dict[tuple[int, str], frozenset[str]] = {}

    def seen(self, kind: str, owner: Any, name: str, value: Any) -> bool:
        """Return whether just this read was recorded with just this object."""
        found = self._reads.get((kind, id(owner), name))
        return found is not None and found.snapshot.value is value

    def has(self, kind: str, owner: Any, name: str) -> bool:
        """Return whether this place was read."""
        return (kind, id(owner), name) in self._reads

    def reads_of(self, name: str) -> bool:
        """Return whether an attribute of this name was read of any object."""
        return any(kind in ("attribute", "method") and found == name for kind, _, found in self._reads)

    def add_global(self, owner: Mapping[str, Any], name: str, value: Any) -> None:
        """``name`` in a module's globals, or else in the builtins."""
        self._add("global", owner, name, lambda _: owner.get(name, getattr(python, name, MISSING)), value)

    def keep_live(self, value: Any) -> None:
        """Compare the lists, dicts and sets in ``value`` by identity in what is added from here on."""
        parts: dict[int, Any] = {}
        mutable_parts(value, parts)
        self._owners += parts.values()
        self._live |= parts.keys()

    def hold_objects(self, value: Any) -> None:
        """From here on what was read has to give the same lists, dicts and sets where it gave those in ``value``."""
        parts: dict[int, Any] = {}
        if type(value) in MUTABLE_CONTAINERS:
            parts[id(value)] = value
        else:
            mutable_parts(value, parts)
        if parts.keys() <= self._held:
            return
        self._owners += parts.values()
        self._held |= parts.keys()
        for key, entry in self._reads.items():
            self._reads[key] = _Read(entry.read, entry.snapshot.holding(self._held))

    def add_cell(self, cell: CellType, name: str, value: Any) -> None:
        """A variable of an enclosing function."""
        self._add("cell", cell, name, lambda _: cell.cell_contents, value)

    def add_attribute(self, owner: Any, name: str, value: Any) -> None:
        """``owner.name``."""
        if id(owner) == self._receiver:
            self._add("attribute", owner, name, lambda receiver: getattr(receiver, name, MISSING), value)
        else:
            self._add("attribute", owner, name, lambda _: getattr(owner, name, MISSING), value)

    def add_method(self, owner: Any, name: str) -> None:
        """Guard that ``owner.name`` is a method of its class, not shadowed by the object."""
        if id(owner) == self._receiver:
            self._add("method", owner, name, lambda receiver: _shadow(receiver, name), _shadow(owner, name))
        else:
            self._add("method", owner, name, lambda _: _shadow(owner, name), _shadow(owner, name))

    def hold(self, receiver: tuple[Any, ...] = ()) -> bool:
        """Return whether every read would give the same again, of ``receiver`` where it read the captured method's."""
        owner = receiver[0] if receiver else None
        return all(_unchanged(entry, owner) for entry in self._reads.values())

    @property
    def attributes(self) -> frozenset[str]:
        """Names of the attributes that were read."""
        return frozenset(name for kind, _, name in self._reads if kind == "attribute")

    def note(self, value: Any) -> None:
        """Take in a value from outside that is held by other means."""
        self.exclusive = self.exclusive or (self._receiver is not None and mentions(value, self._receiver))

    def _add(self, kind: str, owner: Any, name: str, read: Callable[[Any], Any], value: Any) -> None:
        key = (kind, id(owner), name)
        if key not in self._reads:
            self._reads[key] = _Read(read, Snapshot(value, self._live, self._held))
            self.note(value)
            if id(owner) != self._receiver:
                self._owners.append(owner)

    def __len__(self) -> int:
        return len(self._reads)

    def forget(self, count: int) -> None:
        """Keep the first ``count`` reads alone: the others belong to what was dropped."""
        for key in list(self._reads)[count:]:
            del self._reads[key]


def _shadow(owner: Any, name: str) -> Any:
    """The class of an object, and whether it has an attribute of its own of this name."""
    return type(owner), name in getattr(owner, "__dict__", ())


def _unchanged(entry: _Read, receiver: Any) -> bool:
    try:
        return entry.snapshot.matches(entry.read(receiver))
    except Exception:  # an emptied cell, an attribute that raises now
        return False


def mutable_parts(value: Any, found: dict[int, Any], depth: int = 0) -> None:
    """Put every list, dict, set and iterator in ``value``, itself included, into ``found`` by id."""
    kind = type(value)
    if hasattr(kind, "__next__"):
        found[id(value)] = value
    if kind not in CONTAINERS and not issubclass(kind, tuple):
        return
    if id(value) in found or depth > _MAX_DEPTH:
        return
    if kind in MUTABLE_CONTAINERS:
        found[id(value)] = value
    entries: Any = value.values() if isinstance(value, dict) else value
    for entry in entries:
        mutable_parts(entry, found, depth + 1)


def mentions(value: Any, owner: int, depth: int = 0) -> bool:
    """Return True if the object of the id ``owner`` is in ``value``, within the depth of guards."""
    if id(value) == owner or depth > _MAX_DEPTH:
        return True
    kind = type(value)
    if issubclass(kind, (MethodType, BuiltinMethodType)):
        return id(value.__self__) == owner
    if issubclass(kind, Bindable):
        return bool(value.receiver) and id(value.receiver[0]) == owner
    if kind is dict:
        return any(mentions(part, owner, depth + 1) for pair in value.items() for part in pair)
    return issubclass(kind, CONTAINERS) and any(mentions(part, owner, depth + 1) for part in value)


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
