"""Containers of other values: ``list``, ``tuple``, ``set``, ``dict``, ``range``; copies of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import PLAIN_TYPES, describe, is_scalar, pure
from lmc.frontend.heap.cells import (
    Cell,
    DictCell,
    GeneratorCell,
    GrownCell,
    InstanceCell,
    IteratorCell,
    ListCell,
    ObjectCell,
    SetCell,
)
from lmc.frontend.heap.values import (
    Abstract,
    BoundMethod,
    Const,
    NumberRange,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
)
from lmc.frontend.python import classes, foreign, object_methods
from lmc.frontend.python.items import new_set, set_item
from lmc.frontend.python.iteration import Counted, items_in_any_order, items_of, known_items
from lmc.frontend.python.operators import run_now
from lmc.frontend.source.pure_types import is_immutable
from lmc.ir.types import ANY, ListType

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


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
        made = pure(machine, "tuple_from", (value,), gives=ANY)  # a list type would make lists of tuples
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
            return _with_names(machine, objects.made(machine, "dict_from", (value,), dict), named)
        if isinstance(given[0], Symbol):
            found = machine.new(ObjectCell(objects.copied(machine, "dict_from", given[0]), dict))
            return _with_names(machine, found, named)
    made = machine.new(DictCell((), ()))
    for each in given:
        for key, value in pairs_of(machine, each):
            set_item(machine, made, key, value)
    for name, value in named.items():
        set_item(machine, made, Const(name), value)
    return made


def _with_names(machine: Machine, made: Ref, named: Mapping[str, Abstract]) -> Ref:
    if named:
        object_methods.method(machine, made, "update", (), named)
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
    return NumberRange(Tuple(bounds), pure(machine, "range", bounds))


def shallow_copy(machine: Machine, value: Abstract) -> Abstract:
    """``copy.copy(value)``."""
    cell = machine.cell(value)
    if isinstance(cell, InstanceCell):
        return _copied_instance(machine, value, cell, lambda each: each)
    if isinstance(cell, ListCell | GrownCell | DictCell | SetCell | ObjectCell):
        return machine.rules.call(BoundMethod("copy", value), [], {})
    return value if isinstance(value, Tuple) else _uncopied(machine, value, "copy")


def deep_copy(machine: Machine, value: Abstract) -> Abstract:
    """``copy.deepcopy(value)``."""
    made: dict[int, Abstract] = {}

    def copied(each: Abstract) -> Abstract:
        if isinstance(each, Union):
            return machine.cases(each, copied)
        if isinstance(each, Tuple):
            return Tuple(tuple(map(copied, each.items)), each.kind)
        if not isinstance(each, Ref):
            if objects.is_object(machine, each) and not machine.state.holds_foreign:
                return objects.item(machine, objects.local(machine, "deepcopy", (each,)))
            return _uncopied(machine, each, "deepcopy")
        if each.address not in made:
            made[each.address] = copied_object(each, machine.cell(each))
        return made[each.address]

    def copied_object(each: Ref, cell: Cell | None) -> Abstract:
        if isinstance(cell, InstanceCell):
            return _copied_instance(machine, each, cell, copied, made)
        if isinstance(cell, ListCell):
            made[each.address] = found = machine.new(ListCell(()))
            machine.state.put(found.address, ListCell(tuple(map(copied, cell.items))))
            return found
        if isinstance(cell, DictCell):
            made[each.address] = found = machine.new(DictCell((), (), cell.kind, cell.factory))
            values = tuple(map(copied, cell.values))
            machine.state.put(found.address, DictCell(cell.keys, values, cell.kind, cell.factory))
            return found
        if isinstance(cell, SetCell) or (isinstance(cell, GrownCell) and _holds_scalars(cell)):
            return machine.rules.call(BoundMethod("copy", each), [], {})
        if isinstance(cell, ObjectCell) and cell.ordered and not machine.state.holds_foreign:
            return objects.made(machine, "deepcopy", (each,), cell.kind)
        return _uncopied(machine, each, "deepcopy")

    return copied(value)


def _holds_scalars(cell: GrownCell) -> bool:
    return isinstance(cell.value.type, ListType) and cell.value.type.element in PLAIN_TYPES


def _uncopied(machine: Machine, value: Abstract, name: str) -> Abstract:
    """A value that nothing can change is its own copy."""
    if is_scalar(value) or (isinstance(value, Const) and is_immutable(value.value)):
        return value
    raise machine.stop(
        f"what {name}() does is not known to the capture for {describe(machine, value)}",
        "call it in a tool: a function of your own with @lmc.tool",
    )


def _copied_instance(
    machine: Machine,
    value: Abstract,
    cell: InstanceCell,
    copied: Callable[[Abstract], Abstract],
    made: dict[int, Abstract] | None = None,
) -> Abstract:
    """A new object of the same class, which has a copy of each attribute."""
    if any(classes.lookup(cell.kind, name) is not vars(object).get(name) for name in _COPYING):
        raise machine.unsupported(f"a copy of {describe(machine, value)}, which has methods for that")
    assert isinstance(value, Ref)
    found = machine.new(InstanceCell(cell.kind, cell.names))
    if made is not None:
        made[value.address] = found
    for name in cell.names:
        held = machine.state.get((value.address, name))
        assert isinstance(held, Abstract)
        machine.state.put((found.address, name), held if isinstance(held, Unbound) else copied(held))
    return found


_COPYING = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__")
