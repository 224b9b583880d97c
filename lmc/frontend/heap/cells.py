"""Cells: the contents of addresses. Immutable; a change puts another cell at the address.

Names of a frame, attributes of an instance and variables of a handle are places of their own (``(address, name)``),
so that a store and a join cost what was changed.
"""

from __future__ import annotations

import ast
import dataclasses
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lmc.frontend.heap.values import NONE, UNBOUND, Abstract, Domain, Poison, Ref, Symbol, Union
from lmc.ir.core import Value

if TYPE_CHECKING:
    from lmc.frontend.source.functions import Definition

ROLE_UNKNOWN = "?"
"""The role of an open turn that only a run knows."""


class Cell:
    """Base of all cells. ``held`` are the fields that hold values, contexts, numbers in holes, or addresses."""

    __slots__ = ()
    held: ClassVar[tuple[str, ...]] = ()

    def rebuilt(self, change: Callable[[Any, Abstract], Any]) -> Cell:
        """The cell with ``change(name, value)`` of each value that it holds itself."""
        found = {name: getattr(self, name) for name in self.held}
        made = {name: _rebuilt(part, name, change) for name, part in found.items()}
        changed = any(made[name] is not part for name, part in found.items())
        return dataclasses.replace(self, **made) if changed else self  # type: ignore[type-var] - all are dataclasses

    def inner(self) -> list[Abstract]:
        """The values that the cell holds itself."""
        found: list[Abstract] = []
        self.rebuilt(lambda _name, value: found.append(value) or value)
        return found

    def shape(self) -> list[Any]:
        """The fields that are no parts, with the number and the names of the parts."""
        bare = self.rebuilt(lambda _name, _value: UNBOUND)
        return [_typed(getattr(bare, field.name)) for field in dataclasses.fields(bare)]  # type: ignore[arg-type]


def _rebuilt(held: Any, name: Any, change: Callable[[Any, Abstract], Any]) -> Any:
    if isinstance(held, Abstract):
        return change(name, held)
    if isinstance(held, Value):
        return change(name, Symbol(held)).ir
    if type(held) is int:
        return change(name, Ref(held)).address
    if type(held) is tuple:
        made = tuple([_rebuilt(part, (name, index), change) for index, part in enumerate(held)])
        return held if all(map(operator.is_, made, held)) else made
    return held.rebuilt(change) if isinstance(held, Cell) else held


def _typed(held: Any) -> Any:
    """A key that is equal for equal literals of one class only: 1 and True differ."""
    return (type(held), tuple(map(_typed, held)) if isinstance(held, tuple) else held)


@dataclass(frozen=True, slots=True, eq=False)
class PoisonCell(Cell):
    """An object that differs between the ways through a condition in what can't become one. No use is captured.

    ``value`` is what all its names mean from then on; None where it has none. It is an object of the run, where a
    container of the run or a function took the object; or a union of references, one for each way of a condition.
    """

    held = ("value",)
    poison: Poison
    value: Symbol | Union | Ref | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FrameCell(Cell):
    """The names of one call of a function, each a place of its own."""

    names: frozenset[str]


class ListCell(Cell):
    """A list of known length.

    Cells that grew from one another share a buffer, of which each has the first ``_length`` items: to append is O(1).
    """

    __slots__ = ("_buffer", "_items", "_length")

    def __init__(self, items: tuple[Abstract, ...]) -> None:
        self._items: tuple[Abstract, ...] | None = items
        self._buffer: list[Abstract] | None = None
        self._length = len(items)

    @property
    def items(self) -> tuple[Abstract, ...]:
        """Its items, in order."""
        if self._items is None:
            assert self._buffer is not None
            self._items = tuple(self._buffer[: self._length])
        return self._items

    def rebuilt(self, change: Callable[[Any, Abstract], Any]) -> ListCell:
        """The list with ``change(index, item)`` of each item."""
        return ListCell(tuple([change(index, item) for index, item in enumerate(self.items)]))

    def appended(self, item: Abstract) -> ListCell:
        """Return the list with ``item`` at its end."""
        buffer = self._buffer
        if buffer is None or len(buffer) > self._length:  # another cell has grown from this one
            buffer = list(self.items)
        buffer.append(item)
        made = ListCell(())
        made._items, made._buffer, made._length = None, buffer, len(buffer)
        return made


@dataclass(frozen=True, slots=True, eq=False)
class GrownCell(Cell):
    """A list whose length only a run knows. ``value`` is the list as it is now, of type ``!list<…>``.

    Nothing else holds the value, so a change is another value: the list stays one object because the address does.
    """

    held = ("value",)
    value: Symbol


@dataclass(frozen=True, slots=True, eq=False)
class DequeCell(Cell):
    """A ``collections.deque`` of known length."""

    held = ("items",)
    items: tuple[Abstract, ...]
    maxlen: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DictCell(Cell):
    """A dict of known keys, which are literals, in order.

    ``kind`` is ``dict``, ``Counter``, ``OrderedDict`` or ``defaultdict``; ``factory`` what the last one makes of a key
    that is not there.
    """

    held = ("values", "factory")
    keys: tuple[Any, ...]
    values: tuple[Abstract, ...]
    kind: type = dict
    factory: Abstract = NONE

    def index(self, key: Any) -> int | None:
        """Return where a key stands that equals ``key``, as a dict compares keys."""
        return next((index for index, known in enumerate(self.keys) if known is key or known == key), None)


@dataclass(frozen=True, slots=True, eq=False)
class SetCell(Cell):
    """A set of known items, which are literals."""

    items: frozenset[Any]


@dataclass(frozen=True, slots=True, eq=False)
class InstanceCell(Cell):
    """An object of a plain class that the program makes; ``names`` are its attributes, in order."""

    kind: type
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class IteratorCell(Cell):
    """An iterator of known items that has given ``index`` of them.

    ``source`` is a list's reference, which is read at each step as Python does, a tuple of the items, or a list of the
    run. ``made`` is the call that makes such an iterator, where the items are those at the time of the call. ``index``
    is below 0 where a list of the run was gone over: only a run knows how far. ``keys`` are those of a dict when it
    was made, which may not get others.
    """

    held = ("made", "source")
    source: Abstract
    index: int
    exhausted: bool = False
    made: Abstract | None = None
    keys: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GeneratorCell(Cell):
    """A generator that has not begun, is used up, or is running: something goes over it, or did in part.

    ``definition`` is the function or generator expression, ``frames`` those that it closes over, ``given`` its
    arguments, or the first iterable of an expression under the name "".
    """

    held = ("given", "frames")
    definition: Definition | ast.GeneratorExp
    frames: tuple[int, ...]
    given: tuple[tuple[str, Abstract], ...]
    activation: Any = None
    used: bool = False
    running: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class HandleCell(Cell):
    """A handle ``s``: its context, the path that its ids begin with, and the state of its turns.

    Several handles may share one context (``core`` is the address of what they share). ``holes`` are the numbers in the
    path's holes. ``language`` is that of the program, None for lmc's own; ``result`` what the program gave that the
    handle belongs to, where the language keeps that.
    """

    held = ("holes", "core", "result")
    core: int
    path: str
    holes: tuple[Value, ...] = ()
    language: Any = None
    result: Abstract = NONE


@dataclass(frozen=True, slots=True, eq=False)
class CoreCell(Cell):
    """The shared state of handles on one context. Fields are those of ``lmc.frontend.language.core.Core``."""

    held = ("answer", "context")
    context: Symbol
    names: tuple[str, ...] = ()
    metas: tuple[str, ...] = ()
    answer: Abstract | None = None
    role: str | None = None
    chat: bool | None = False
    bare: bool = False
    unsure: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class BranchesCell(Cell):
    """The result of ``s.fork(n)`` for a known ``n``: the branches, in order.

    ``source`` is the state that was forked, and ``base`` a copy of it as it was then, where the language asks for them.
    """

    held = ("source", "base", "handles")
    handles: tuple[Abstract, ...]
    source: Abstract = NONE
    base: Abstract = NONE


@dataclass(frozen=True, slots=True, eq=False)
class Column(Cell):
    """A value that differs between branches, as a list. ``like`` is the abstract element.

    ``present`` is a list of flags if the value may be missing in some branches.
    """

    held = ("present", "values")
    values: Symbol
    like: Symbol
    present: Symbol | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BranchArrayCell(Cell):
    """The result of ``s.fork(n)`` for a symbolic ``n``.

    The common state of all branches is the core at the address ``core``. ``contexts`` is the list of their contexts,
    None if it is that of the core; ``columns`` are the variables that differ, ``numbers`` the counts of ids on bases
    below ``path``: a constant, or a list with one number for each branch.
    """

    held = ("columns", "count", "holes", "core", "contexts", "numbers")
    count: Abstract
    path: str
    holes: tuple[Value, ...]
    core: int
    contexts: Symbol | None = None
    columns: tuple[tuple[str, Column], ...] = ()
    numbers: tuple[tuple[str, Abstract], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class RowsCell(Cell):
    """``zip(*parts)`` or ``enumerate(*parts, start)`` (``what``) over branches that only a run counts.

    It can be gone over once; ``strict`` is that of ``zip``.
    """

    held = ("start", "parts")
    what: str
    parts: tuple[Abstract, ...]
    start: Abstract = NONE
    strict: bool = False
    used: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CollectedCell(Cell):
    """A list as one round of a ``cf.map`` sees it, which may put ``items`` behind those of other rounds."""

    held = ("items",)
    items: tuple[Abstract, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ObjectCell(Cell):
    """A Python object that exists in the run only, made there by the program; each operation on it is an ordered op.

    ``kind`` is its class, one of Python's own. ``value`` names the object: no change gives another one. ``ordered``
    says whether its items have the order that they have in plain Python, which is not so of some sets. ``domain`` are
    the texts that may be among its items, or its keys.
    """

    held = ("value",)
    value: Symbol
    kind: type
    ordered: bool = True
    domain: Domain = None
