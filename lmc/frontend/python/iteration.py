"""The items of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit import objects
from lmc.frontend.emit.known import concrete, length_of, specialised_length
from lmc.frontend.emit.operands import describe, pure, text_symbol
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import BranchesCell, DictCell, GeneratorCell, GrownCell, IteratorCell, ListCell, SetCell
from lmc.frontend.heap.values import (
    Abstract,
    Concat,
    Const,
    NumberRange,
    Poison,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
    same_literal,
)
from lmc.frontend.machine.budget import MAX_UNROLLED_FOR
from lmc.frontend.python import foreign
from lmc.frontend.source.nondeterminism import CAUSE, REMEDY, is_disordered
from lmc.ir.builtins.statements import UNPACKING
from lmc.ir.types import ANY, TEXT, ListType, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_VIEWS = (type({}.keys()), type({}.values()), type({}.items()))
_NO_ITERATION = (int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Counted:
    """Items that only a run counts: a list or text, which is read by index.

    ``live`` is a list that may change; ``iterator`` is an iterator with these items, at its beginning.
    """

    value: Symbol
    live: Ref | None = None
    iterator: Ref | None = None


def items_of(machine: Machine, value: Abstract) -> list[Abstract] | Counted | None:
    """The items of ``value`` as they are now, where they are known, or how a run reads them; None for iterators."""
    if isinstance(value, Tuple):
        return list(value.items)
    value = value.items if isinstance(value, NumberRange) else foreign.current(machine, value)
    if isinstance(value, Const):
        return _of_constant(machine, value)
    if isinstance(value, Concat):
        return Counted(text_symbol(machine, value))
    if isinstance(value, Symbol):
        return _of_symbol(machine, value)
    if isinstance(value, View):
        return _of_view(machine, value)
    if objects.is_object(machine, value):
        return Counted(objects.listed(machine, value))
    cell = machine.cell(value)
    if isinstance(cell, GeneratorCell):
        assert isinstance(value, Ref)
        return items_of(machine, machine.rules.collected(value))
    if isinstance(cell, ListCell):
        return list(cell.items)
    if isinstance(cell, GrownCell):
        assert isinstance(value, Ref)
        return _specialised(machine, cell.value) or Counted(cell.value, value)
    if isinstance(cell, DictCell):
        return [Const(key) for key in cell.keys]
    if isinstance(cell, SetCell):
        if is_disordered(set(cell.items)):
            raise machine.stop(CAUSE, REMEDY)
        return [Const(item) for item in set(cell.items)]
    if isinstance(cell, IteratorCell) and isinstance(cell.source, Symbol):
        return opened(machine, value, cell)
    return list(cell.handles) if isinstance(cell, BranchesCell) else None


def _of_symbol(machine: Machine, value: Symbol) -> list[Abstract] | Counted | None:
    if value.type == TEXT or isinstance(value.type, ListType):
        return _specialised(machine, value) or Counted(value)
    if value.kind is tuple:
        return Counted(pure(machine, "list_from", (value,)))
    return Counted(objects.listed(machine, value)) if objects.is_object(machine, value) else None


def opened(machine: Machine, iterator: Abstract, cell: IteratorCell) -> Counted:
    """The items of an iterator that only a run counts, which this uses up."""
    assert isinstance(iterator, Ref)
    assert isinstance(cell.source, Symbol)
    if cell.index:
        raise machine.stop(
            "an iterator over items that only a run counts is gone over again",
            "make a list of it first: list(x)",
        )
    machine.state.put(iterator.address, replace(cell, index=-1))
    return Counted(cell.source, iterator=machine.new(cell))


def items_in_any_order(machine: Machine, value: Abstract) -> list[Abstract] | Counted | None:
    """The same as ``items_of``, for what looks at all items and gives the same in whatever order a set has them."""
    found = machine.set_items(value)
    return list(map(Const, found)) if found is not None and is_disordered({*found}) else items_of(machine, value)


def _specialised(machine: Machine, value: Symbol) -> list[Abstract] | None:
    """The items of a list or text of the run whose length the capture holds for already; None for any other."""
    count = specialised_length(machine, value)
    if count is None or value.foreign or not 0 < count <= MAX_UNROLLED_FOR:
        return None
    return [pure(machine, "getitem", (value, Const(index)), raises=False) for index in range(count)]


def _of_view(machine: Machine, view: View) -> list[Abstract] | Counted:
    if objects.is_object(machine, view.owner):
        return Counted(objects.listed(machine, view))
    cell = machine.cell(view.owner)
    assert isinstance(cell, DictCell)
    if view.what == "keys":
        return [Const(key) for key in cell.keys]
    if view.what == "values":
        return list(cell.values)
    return [Tuple((Const(key), value)) for key, value in zip(cell.keys, cell.values, strict=True)]


def _of_constant(machine: Machine, value: Const) -> list[Abstract] | None:
    found = _parts_of_constant(machine, value)
    return None if found is None else [foreign.held(machine, item) for item in found]


def _parts_of_constant(machine: Machine, value: Const) -> Sequence[Any] | None:
    """Return the items of a container from outside, as they are there."""
    held = value.value
    if type(held) in _NO_ITERATION:
        raise_new(machine, TypeError, f"'{type(held).__name__}' object is not iterable")
    if type(held) in _VIEWS:
        if machine.state.tainted:
            raise machine.stop(
                "a view of a dict from outside the program is gone over after a call that may have changed that",
                "make a list of it before the call: list(d.items())",
            )
        held = list(held)
    if type(held) in (str, bytes, range, tuple, frozenset, list, dict, set):
        if is_disordered(held):
            raise machine.stop(CAUSE, REMEDY)
        if len(held) > 100_000:
            raise machine.stop("this goes over very many items", "go over fewer of them")
        return held if isinstance(held, str | bytes | range | tuple | list) else list(held)
    if isinstance(held, type) and hasattr(held, "__members__"):
        return list(held.__members__.values())
    return None


def known_items(machine: Machine, value: Abstract, use: str) -> list[Abstract]:
    """The items of ``value``, used up. Ends the capture where their number is not known."""
    if isinstance(value, Union | Poison | Unbound):
        raise machine.stop(f"{describe(machine, value)} is gone over, and {use}", "bind it to one list on every way")
    found = items_of(machine, value)
    if isinstance(found, Counted):
        count = concrete(machine, length_of(machine, found.value), use)
        return [pure(machine, "getitem", (found.value, Const(index)), raises=False) for index in range(count)]
    if found is not None:
        return found
    items: list[Abstract] = []
    cell = machine.cell(value)
    while isinstance(cell, IteratorCell):
        item = next_item(machine, value)
        if item is None:
            return items
        items.append(item)
    raise machine.unsupported(f"going over {describe(machine, value)}")


class _Held(Sequence[Abstract]):
    """Items of a container from outside, each made when it is asked for."""

    def __init__(self, machine: Machine, items: Sequence[Any]) -> None:
        self._machine = machine
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return foreign.held(self._machine, self._items[index])


def indexed(machine: Machine, iterator: Abstract) -> Sequence[Abstract] | None:
    """The items that an iterator takes one by one, without a copy of all of them; None where only a run knows them."""
    cell = machine.cell(iterator)
    assert isinstance(cell, IteratorCell)
    source = cell.source
    if isinstance(source, Const) and isinstance(now := foreign.current(machine, source), Const):
        known = _parts_of_constant(machine, now)
        return None if known is None else _Held(machine, known)
    if isinstance(source, Tuple):
        return source.items
    held = machine.cell(source)
    if isinstance(held, ListCell):
        return held.items
    found = items_of(machine, source)
    return found if isinstance(found, list) else None


def over(machine: Machine, source: Abstract) -> Ref:
    """A new iterator over a container, which reads it at each step."""
    return machine.new(IteratorCell(source, 0, keys=_keys_of(machine, source)))


def _keys_of(machine: Machine, source: Abstract) -> tuple[Any, ...] | None:
    cell = machine.cell(source.owner if isinstance(source, View) else source)
    return cell.keys if isinstance(cell, DictCell) else None


def has_other_keys(machine: Machine, cell: IteratorCell) -> bool:
    """Return whether a dict got other keys since an iterator over it was made."""
    now, old = _keys_of(machine, cell.source), cell.keys
    if now is old or now is None or old is None:
        return False
    return len(now) != len(old) or not all(
        type(one) is type(other) and same_literal(one, other) for one, other in zip(now, old, strict=True)
    )


def _check_keys(machine: Machine, cell: IteratorCell) -> None:
    if not has_other_keys(machine, cell):
        return
    now = _keys_of(machine, cell.source)
    if now is not None and cell.keys is not None and len(now) != len(cell.keys):
        raise_new(machine, RuntimeError, "dictionary changed size during iteration")
    raise machine.stop("a dict gets other keys while the program goes over it", "go over a copy: list(x)")


def next_item(machine: Machine, iterator: Abstract) -> Abstract | None:
    """The next item of an iterator of known items; None at its end."""
    assert isinstance(iterator, Ref)
    cell = machine.cell(iterator)
    assert isinstance(cell, IteratorCell)
    found = indexed(machine, iterator)
    if found is None:
        raise machine.stop(
            "the next item is taken from an iterator over items that only a run counts",
            "go over the items with `for`, or make a list of them and take its items: list(x)[0]",
        )
    if not cell.exhausted:
        _check_keys(machine, cell)
    if cell.exhausted or cell.index >= len(found):
        machine.state.put(iterator.address, replace(cell, exhausted=True))
        return None
    machine.state.put(iterator.address, replace(cell, index=cell.index + 1))
    return found[cell.index]


def unpacked(machine: Machine, value: Abstract, count: int, starred: int | None) -> list[Abstract]:
    """Return what ``a, b, *c = value`` binds."""
    if isinstance(value, Union):
        found = machine.cases(value, lambda one: Tuple(tuple(unpacked(machine, one, count, starred))))
        assert isinstance(found, Tuple)
        return list(found.items)
    given = None if isinstance(value, Symbol) else items_of(machine, value)
    if given is None and machine.cell(value) is not None:
        given = known_items(machine, value, "it is taken apart")
    if isinstance(given, list):
        return _split(machine, given, count, starred)
    symbol = given.value if given is not None else value
    if isinstance(symbol, Symbol) and starred is None and count in UNPACKING:
        listed = pure(machine, f"unpack{count}", (symbol,))
        return [pure(machine, "getitem", (listed, Const(index)), raises=False) for index in range(count)]
    if isinstance(symbol, Symbol) and starred is not None:
        return _apart(machine, symbol, count, starred)
    return _split(machine, known_items(machine, value, "it is taken apart"), count, starred)


def _apart(machine: Machine, value: Symbol, count: int, starred: int) -> list[Abstract]:
    """Return what ``a, *b, c = value`` binds where only a run counts the items."""
    parts = pure(machine, "unpack_starred", (value, Const(starred), Const(count - 1 - starred)), gives=list_of(ANY))
    element = value.type.element if isinstance(value.type, ListType) else TEXT if value.type == TEXT else ANY
    found: list[Abstract] = []
    for index in range(count):
        is_rest = index == starred
        kind = list_of(element) if is_rest else element
        part = pure(machine, "getitem", (parts, Const(index)), gives=kind, raises=False)
        found.append(machine.list_of(part) if is_rest else part)
    return found


def _split(machine: Machine, items: Sequence[Abstract], count: int, starred: int | None) -> list[Abstract]:
    if starred is None:
        if len(items) < count:
            raise_new(machine, ValueError, f"not enough values to unpack (expected {count}, got {len(items)})")
        if len(items) > count:
            raise_new(machine, ValueError, f"too many values to unpack (expected {count})")
        return list(items)
    if len(items) < count - 1:
        raise_new(machine, ValueError, f"not enough values to unpack (expected at least {count - 1}, got {len(items)})")
    end = len(items) - (count - 1 - starred)
    rest = machine.new(ListCell(tuple(items[starred:end])))
    return [*items[:starred], rest, *items[end:]]
