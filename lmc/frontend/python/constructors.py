"""Containers of other values: ``list``, ``tuple``, ``set``, ``dict``, ``range``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import pure
from lmc.frontend.heap.cells import (
    DictCell,
    GeneratorCell,
    GrownCell,
    IteratorCell,
    ListCell,
    SetCell,
)
from lmc.frontend.heap.values import (
    Abstract,
    Const,
    Symbol,
    Tuple,
)
from lmc.frontend.python import foreign, object_methods
from lmc.frontend.python.items import new_set, set_item
from lmc.frontend.python.iteration import Counted, items_in_any_order, items_of, known_items
from lmc.frontend.python.operators import run_now
from lmc.ir.types import ListType

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def new_list(machine: Machine, *given: Abstract) -> Abstract:
    """``list(…)``."""
    if not given:
        return machine.new(ListCell(()))
    items = items_of(machine, given[0])
    if isinstance(items, Counted):
        if isinstance(items.value.type, ListType) and not items.value.foreign:
            return machine.new(GrownCell(items.value))
        return machine.list_of(pure(machine, "list_from", (items.value,)))
    if items is None and isinstance(given[0], Symbol):
        return machine.list_of(pure(machine, "list_from", (given[0],)))
    if items is None:
        items = known_items(machine, given[0], "a list is made of it")
    return machine.new(ListCell(tuple(items)))


def new_tuple(machine: Machine, *given: Abstract) -> Abstract:
    """``tuple(…)``."""
    if not given:
        return Tuple(())
    items = items_of(machine, given[0])
    if isinstance(items, Counted) or (items is None and isinstance(given[0], Symbol)):
        value = items.value if isinstance(items, Counted) else given[0]
        made = pure(machine, "tuple_from", (value,))
        return Symbol(made.ir, made.origin, made.expression, kind=tuple)
    if items is None:
        items = known_items(machine, given[0], "a tuple is made of it")
    return Tuple(tuple(items))


def set_of(machine: Machine, *given: Abstract) -> Abstract:
    """``set(…)``."""
    if not given:
        return machine.new(SetCell(frozenset()))
    items = items_in_any_order(machine, given[0])
    if isinstance(items, Counted) or (items is None and isinstance(given[0], Symbol)):
        value = items.value if isinstance(items, Counted) else given[0]
        return objects.made(machine, "set_from", (value,), set)
    if items is None:
        items = known_items(machine, given[0], "a set is made of it")
    return new_set(machine, items)


def pairs_of(machine: Machine, given: Abstract) -> list[tuple[Abstract, Abstract]]:
    """Keys and values of what a dict is made of."""
    cell = machine.cell(given)
    if isinstance(cell, DictCell):
        return [(Const(key), value) for key, value in zip(cell.keys, cell.values, strict=True)]
    if isinstance(given, Const) and type(given.value) is dict and not foreign.is_changed(machine, given.value):
        return [(Const(key), foreign.held(machine, value)) for key, value in given.value.items()]
    pairs: list[tuple[Abstract, Abstract]] = []
    for item in known_items(machine, given, "a dict is made of it"):
        parts = known_items(machine, item, "a dict is made of it")
        if len(parts) != 2:
            raise machine.unsupported("a dict made of other things than pairs")
        pairs.append((parts[0], parts[1]))
    return pairs


def new_dict(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
    """``dict(…)``."""
    if len(given) == 1:
        cell = machine.cell(given[0])
        items = None if isinstance(cell, DictCell) else items_of(machine, given[0])
        if isinstance(items, list) and isinstance(cell, GeneratorCell | IteratorCell):  # which is used up now
            given = (Tuple(tuple(items)),)
        if objects.is_object(machine, given[0]) or isinstance(items, Counted):
            value = items.value if isinstance(items, Counted) and not _is_mapping(machine, given[0]) else given[0]
            found = objects.made(machine, "dict_from", (value,), dict)
            if named:
                object_methods.method(machine, found, "update", (), named)
            return found
    made = machine.new(DictCell((), ()))
    for each in given:
        for key, value in pairs_of(machine, each):
            set_item(machine, made, key, value)
    for name, value in named.items():
        set_item(machine, made, Const(name), value)
    return made


def _is_mapping(machine: Machine, value: Abstract) -> bool:
    """Return whether ``dict(value)`` may be a copy of a dict of the run."""
    kind = objects.kind_of(machine, value)
    return isinstance(value, Symbol) if kind is None else issubclass(kind, dict)


def new_range(machine: Machine, *bounds: Abstract) -> Abstract:
    """``range(…)``."""
    parts = [machine.plain(bound) for bound in bounds]
    if all(part is not None for part in parts):
        return run_now(machine, range, [part[0] for part in parts if part is not None], "range")
    return pure(machine, "range", bounds)
