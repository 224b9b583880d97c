"""``owner[key]``, read, set and deleted, and how dicts and sets of the program's are made.

Handles and functions are no values of a run: a number or key that only the run knows picks one of them by conditions.
"""

from __future__ import annotations

import enum
import inspect
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.conditions import common
from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import (
    ANSWERS_ARE_SHARED,
    describe,
    element_type,
    host_call,
    pure,
    schema_of_value,
    text_symbol,
)
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import (
    BranchArrayCell,
    BranchesCell,
    Cell,
    DictCell,
    GrownCell,
    HandleCell,
    InstanceCell,
    ListCell,
)
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    BoundMethod,
    Concat,
    Const,
    Function,
    Partial,
    Poison,
    Ref,
    Slice,
    Symbol,
    Tuple,
    Unbound,
    Union,
    is_literal,
    parts_of,
)
from lmc.frontend.language.binding import Bindable
from lmc.frontend.machine.budget import MAX_COPIED, MAX_UNION
from lmc.frontend.python import foreign
from lmc.frontend.python.iteration import known_items
from lmc.frontend.python.operators import run_now
from lmc.frontend.source.pure_types import is_standard_module
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL, INT, ListType
from lmc.ir.types import NONE as NONE_TYPE

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_HANDLES = (HandleCell, BranchesCell, BranchArrayCell)
_FUNCTIONS = (FunctionType, BuiltinFunctionType, Bindable)


def get_item(machine: Machine, owner: Abstract, key: Abstract) -> Abstract:
    """``owner[key]``."""
    if isinstance(owner, Union | Poison | Unbound):
        return machine.cases(owner, lambda one: get_item(machine, one, key))
    if isinstance(key, Union | Poison | Unbound):
        return machine.cases(key, lambda one: get_item(machine, owner, one))
    known = machine.plain(key)
    if isinstance(owner, Tuple):
        return _tuple_item(machine, owner, key)
    cell = machine.cell(owner)
    given = _given_list(machine, owner, key) if known is None else None
    if given is not None:
        return given
    if isinstance(cell, ListCell | DictCell) and known is None:
        _check_flat(machine, owner, cell)
    if objects.is_object(machine, owner):
        return objects.get_item(machine, owner, key)
    if isinstance(cell, ListCell | GrownCell):
        return _list_item(machine, cell, key)
    if isinstance(cell, DictCell):
        return _dict_item(machine, cell, key)
    handled = machine.rules.item_of(owner, key)
    if handled is not None:
        return handled
    if known is None and isinstance(owner, Const):
        copied = by_value(machine, owner)
        if copied is not owner:
            return get_item(machine, copied, key)
    own = machine.special("__getitem__", owner, key)
    return _outside(machine, foreign.current(machine, owner), key) if own is None else own


def by_value(machine: Machine, value: Const) -> Abstract:
    """A copy of a list or dict from outside, to look into, if it holds texts, numbers or functions; else ``value``."""
    held = value.value
    is_dict = type(held) is dict
    if not (is_dict or type(held) in (list, tuple)) or not 0 < len(held) <= MAX_COPIED:
        return value
    parts = list(held.values()) if is_dict else held
    functions = len(held) <= MAX_UNION and all(isinstance(part, _FUNCTIONS) for part in parts)
    known = is_dict and not all(map(is_literal, held))
    if known or not (functions or all(map(is_literal, parts))) or foreign.is_changed(machine, held):
        return value
    return machine.lifted(held)


def _check_flat(machine: Machine, owner: Abstract, cell: ListCell | DictCell) -> None:
    """Make a container an object of the run that gives one of its objects by what only a run knows."""
    held = cell.items if isinstance(cell, ListCell) else cell.values
    if not objects.is_flat(machine, owner) and not stays_apart(machine, held):
        assert isinstance(owner, Ref)
        objects.escape(machine, owner)


def _given_list(machine: Machine, owner: Abstract, key: Abstract) -> Abstract | None:
    """One of the lists that an argument holds, which its caller sees as well; None where ``owner`` is no such thing."""
    cell = machine.cell(owner)
    if not isinstance(owner, Ref) or owner.address not in machine.read_only or isinstance(key, Slice):
        return None
    held = cell.items if isinstance(cell, ListCell) else cell.values if isinstance(cell, DictCell) else ()
    cells = [machine.cell(each) for each in held]
    grown = [each.value.type for each in cells if isinstance(each, GrownCell)]
    if not grown or not all(
        isinstance(each, GrownCell) or (isinstance(each, ListCell) and not each.items) for each in cells
    ):
        return None
    element = reduce(common, grown)
    made = machine.new(GrownCell(pure(machine, "getitem", (owner, key), gives=element)))
    machine.read_only.add(made.address)
    return made


def _outside(machine: Machine, owner: Abstract, key: Abstract) -> Abstract:
    """An item of a value that is known now, or of one that a run knows."""
    if isinstance(owner, Const) and type(owner.value) is enum.EnumMeta:
        return _member(machine, owner, key)
    known = machine.plain(key)
    whole = None if isinstance(owner, Const) and _gives_items(owner.value) else machine.plain(owner)
    if whole is not None and known is not None:
        return run_now(machine, operator.getitem, [whole[0], known[0]], "getitem")
    if isinstance(owner, Const) and whole is None:
        return machine.rules.object_call("getitem", operator.getitem, [owner, key])
    if isinstance(owner, Concat):
        owner = text_symbol(machine, owner)
    if isinstance(key, Slice):
        return _sliced(machine, owner, key)
    schema = schema_of_value(machine, owner)
    part = schema.items.get(known[0]) if schema is not None and known is not None and type(known[0]) is str else None
    gives = None if part is None or part.type == ANY or ANSWERS_ARE_SHARED in machine.written else part.type
    return pure(machine, "getitem", (owner, key), gives=gives)


def _gives_items(value: Any) -> bool:
    """Return whether ``value[…]`` is a method that a class of the user's has for itself."""
    held = inspect.getattr_static(value, "__class_getitem__", None) if isinstance(value, type) else None
    return isinstance(held, classmethod) and not is_standard_module(getattr(held, "__module__", None) or "")


def _member(machine: Machine, owner: Const, key: Abstract) -> Abstract:
    """``Kind["NAME"]``."""
    known = machine.plain(key)
    if known is not None:
        return run_now(machine, operator.getitem, [owner.value, known[0]], "getitem")
    found = host_call(machine, operator.getitem, (owner, key), effect=Effect.PURE)
    return Symbol(found.ir, found.origin, kind=owner.value)


def _tuple_item(machine: Machine, owner: Tuple, key: Abstract) -> Abstract:
    known = machine.plain(key)
    if known is None:
        return _listed(machine, owner, key)
    if isinstance(key, Slice):
        return Tuple(_now(machine, owner.items, known[0]))
    return _one(machine, owner.items, known[0], "tuple")


def _sliced(machine: Machine, owner: Abstract, key: Slice) -> Abstract:
    found = pure(machine, "slice", (owner, key.start, key.stop, key.step))
    return machine.list_of(found) if isinstance(found.type, ListType) else found


def _now(machine: Machine, items: tuple[Abstract, ...], key: Any) -> tuple[Abstract, ...]:
    try:
        return items[key]
    except (TypeError, ValueError) as error:
        raise_new(machine, type(error), *error.args)


def _one(machine: Machine, items: tuple[Abstract, ...], key: Any, name: str) -> Abstract:
    try:
        return items[key]
    except IndexError:
        raise_new(machine, IndexError, f"{name} index out of range")
    except TypeError as error:
        raise_new(machine, TypeError, *error.args if name == "tuple" else (str(error).replace("tuple", name),))


def _listed(machine: Machine, owner: Tuple, key: Abstract) -> Abstract:
    """An item of a tuple, by an index that only a run knows."""
    if not isinstance(key, Slice) and stays_apart(machine, owner.items):
        return picked(machine, owner.items, key, "tuple")
    if _holds_containers(machine, owner):
        objects.stored(machine, owner)
    if isinstance(key, Slice):
        return _sliced(machine, pure(machine, "tuple", owner.items), key)
    return pure(machine, "getitem", (owner, key))


def _holds_containers(machine: Machine, value: Abstract) -> bool:
    if isinstance(value, Tuple):
        return any(_holds_containers(machine, each) for each in value.items)
    return machine.cell(value) is not None


def _list_item(machine: Machine, cell: ListCell | GrownCell, key: Abstract) -> Abstract:
    known = machine.plain(key)
    if isinstance(cell, ListCell) and known is not None:
        if isinstance(key, Slice):
            return machine.new(ListCell(_now(machine, cell.items, known[0])))
        return _one(machine, cell.items, known[0], "list")
    if isinstance(cell, ListCell) and isinstance(key, Symbol) and stays_apart(machine, cell.items):
        return picked(machine, cell.items, key)
    value = pure(machine, "list", cell.items) if isinstance(cell, ListCell) else cell.value
    if isinstance(key, Slice):
        return _sliced(machine, value, key)
    return pure(machine, "getitem", (value, key))


def _dict_item(machine: Machine, cell: DictCell, key: Abstract) -> Abstract:
    known = machine.plain(key)
    if known is not None:
        index = cell.index(known[0])
        if index is None:
            raise_new(machine, KeyError, known[0])
        return cell.values[index]
    if isinstance(key, Symbol) and stays_apart(machine, cell.values):
        return by_key(machine, cell.keys, cell.values, key)
    parts = [part for name, held in zip(cell.keys, cell.values, strict=True) for part in (Const(name), held)]
    return pure(machine, "getitem", (pure(machine, "dict", parts), key), gives=element_type(machine, cell.values))


def set_item(machine: Machine, owner: Abstract, key: Abstract, value: Abstract) -> None:
    """``owner[key] = value``."""
    if isinstance(owner, Union | Poison | Unbound):
        _each(machine, owner, lambda one: set_item(machine, one, key, value))
        return
    if isinstance(key, Union | Poison | Unbound):
        _each(machine, key, lambda one: set_item(machine, owner, one, value))
        return
    cell = machine.cell(owner)
    known = machine.plain(key)
    if isinstance(cell, DictCell) and not (known is not None and is_literal(known[0])):
        assert isinstance(owner, Ref)
        objects.escape(machine, owner)
    if objects.is_object(machine, owner):
        objects.set_item(machine, owner, key, _taken(machine, value) if isinstance(key, Slice) else value)
        return
    if isinstance(cell, DictCell) and known is not None:
        _set_known_key(machine, owner, cell, known[0], value)
        return
    if isinstance(cell, ListCell | GrownCell):
        _set_in_list(machine, owner, cell, key, value)
        return
    if machine.rules.set_item_of(owner, key, value):
        return
    if machine.special("__setitem__", owner, key, value) is not None:
        return
    if isinstance(owner, Const | Symbol):
        _change_outside(machine, owner, operator.setitem, [key, value])
        return
    raise machine.unsupported(f"setting an item of {describe(machine, owner)}")


def _change_outside(machine: Machine, owner: Const | Symbol, change: Callable[..., None], args: list[Abstract]) -> None:
    """Set or delete an item of an object that exists outside the program, or in the run."""
    if isinstance(owner, Const):
        foreign.note_change(machine, owner.value)
    machine.rules.check_kept(describe(machine, owner), args)
    host_call(machine, change, [owner, *args], effect=Effect.WRITES, result_type=NONE_TYPE)


def _set_known_key(machine: Machine, owner: Abstract, cell: DictCell, key: Any, value: Abstract) -> None:
    index = cell.index(key)
    if index is None:
        changed = DictCell((*cell.keys, key), (*cell.values, value), cell.kind, cell.factory)
    else:
        values = (*cell.values[:index], value, *cell.values[index + 1 :])
        changed = DictCell(cell.keys, values, cell.kind, cell.factory)
    put(machine, owner, changed)


def _set_in_list(machine: Machine, owner: Abstract, cell: ListCell | GrownCell, key: Abstract, value: Abstract) -> None:
    known = machine.plain(key)
    if isinstance(cell, ListCell) and known is not None:
        items = list(cell.items)
        given: Any = value
        if isinstance(key, Slice):
            given = known_items(machine, value, "it takes the place of a part of a list")
        try:
            items[known[0]] = given
        except (IndexError, TypeError, ValueError) as error:
            raise_new(machine, type(error), *error.args)
        put(machine, owner, ListCell(tuple(items)))
    elif not isinstance(key, Slice) and _stays_list(machine, owner, value):
        given = objects.handed_over(machine, [value], owner)
        put(machine, owner, GrownCell(pure(machine, "list.replaced", (owner, key, *given))))
    else:
        assert isinstance(owner, Ref)
        objects.escape(machine, owner)
        set_item(machine, owner, key, value)


def delete_item(machine: Machine, owner: Abstract, key: Abstract) -> None:
    """``del owner[key]``."""
    if isinstance(owner, Union | Poison | Unbound):
        _each(machine, owner, lambda one: delete_item(machine, one, key))
        return
    if isinstance(key, Union | Poison | Unbound):
        _each(machine, key, lambda one: delete_item(machine, owner, one))
        return
    cell = machine.cell(owner)
    known = machine.plain(key)
    if isinstance(cell, DictCell) and known is None:
        assert isinstance(owner, Ref)
        objects.escape(machine, owner)
    if objects.is_object(machine, owner):
        objects.delete_item(machine, owner, key)
        return
    if isinstance(cell, DictCell) and known is not None:
        index = cell.index(known[0])
        if index is None:
            raise_new(machine, KeyError, known[0])
        keys, values = list(cell.keys), list(cell.values)
        del keys[index], values[index]
        put(machine, owner, DictCell(tuple(keys), tuple(values)))
        return
    if isinstance(cell, ListCell) and known is not None:
        items = list(cell.items)
        try:
            del items[known[0]]
        except (IndexError, TypeError) as error:
            raise_new(machine, type(error), *error.args)
        put(machine, owner, ListCell(tuple(items)))
        return
    if isinstance(cell, ListCell | GrownCell):
        if not isinstance(key, Slice) and _stays_list(machine, owner, NONE):
            put(machine, owner, GrownCell(pure(machine, "list.deleted", (owner, key))))
            return
        assert isinstance(owner, Ref)
        objects.escape(machine, owner)
        objects.delete_item(machine, owner, key)
        return
    if machine.special("__delitem__", owner, key) is not None:
        return
    if isinstance(owner, Const | Symbol):
        _change_outside(machine, owner, operator.delitem, [key])
        return
    raise machine.unsupported(f"deleting an item of {describe(machine, owner)}")


def _each(machine: Machine, value: Abstract, change: Callable[[Abstract], None]) -> None:
    """``change(value)``, of a union for each of the values that it may be."""

    def changed(one: Abstract) -> Abstract:
        change(one)
        return NONE

    machine.cases(value, changed)


def _stays_list(machine: Machine, owner: Abstract, value: Abstract) -> bool:
    """Return whether a list may go on as a value of the run, with ``value`` in it: nothing can change what it holds."""
    assert isinstance(owner, Ref)
    return objects.is_flat(machine, owner) and machine.can_be_stored(value, {owner.address})


def _taken(machine: Machine, value: Abstract) -> Abstract:
    """The items of what takes the place of a part of a list."""
    if isinstance(value, Symbol) or objects.is_flat(machine, value) or objects.is_object(machine, value):
        return value
    items = known_items(machine, value, "it takes the place of a part of a list")
    return Tuple(tuple(objects.stored(machine, each) for each in items))


def put(machine: Machine, owner: Abstract, cell: Cell) -> None:
    """Change a container of the program's."""
    assert isinstance(owner, Ref)
    machine.check_change(owner)
    machine.state.put(owner.address, cell)


def new_set(machine: Machine, items: Sequence[Abstract]) -> Abstract:
    """A set of these items."""
    found = [machine.plain(item) for item in items]
    if all(each is not None for each in found):
        plain = [each[0] for each in found if each is not None]
        made = run_now(machine, set, [plain], "set")
        if not isinstance(made, Const):
            return made
    return objects.made(machine, "set", [objects.stored(machine, each) for each in items], set)


def update_dict(machine: Machine, made: Abstract, given: Abstract) -> None:
    """``{**given}``."""
    if isinstance(given, Union | Poison | Unbound):
        _each(machine, given, lambda one: update_dict(machine, made, one))
        return
    if objects.is_object(machine, given) or isinstance(given, Symbol):
        assert isinstance(made, Ref)
        kind = objects.kind_of(machine, given)
        if kind is None or not issubclass(kind, dict):
            given = objects.item(machine, objects.copied(machine, "mapping_from", given))
        objects.escape(machine, made)
        objects.in_place(machine, "or_", made, given)
        return
    for key, value in keyword_pairs(machine, given):
        set_item(machine, made, Const(key), value)


def keyword_pairs(machine: Machine, given: Abstract) -> list[tuple[Any, Abstract]]:
    """Keys and values of a dict whose keys are known."""
    cell = machine.cell(given)
    if isinstance(cell, DictCell):
        return list(zip(cell.keys, cell.values, strict=True))
    if isinstance(given, Const) and type(given.value) is dict and not foreign.is_changed(machine, given.value):
        return [(key, foreign.held(machine, value)) for key, value in given.value.items()]
    raise machine.unsupported(f"`**` of {describe(machine, given)}")


def keyword_arguments(machine: Machine, given: Abstract) -> list[tuple[str, Abstract]]:
    """Return what ``f(**given)`` gives, by name."""
    pairs = keyword_pairs(machine, given)
    if not all(type(key) is str for key, _ in pairs):
        raise machine.stop("`**` takes a dict whose keys are not all texts", "use texts as keys")
    return pairs


def holds_handles(machine: Machine, items: Sequence[Abstract], kinds: tuple[type[Cell], ...] = _HANDLES) -> bool:
    """Return whether handles, or objects of other ``kinds``, are among ``items``, or in tuples of them."""
    return any(
        holds_handles(machine, parts_of(item), kinds)
        if isinstance(item, Tuple | Union)
        else isinstance(machine.cell(item), kinds)
        for item in items
    )


def are_numbered(machine: Machine, items: Sequence[Abstract]) -> bool:
    """Return whether a number that only a run knows picks one of ``items``, which can't be values of the run."""
    return holds_handles(machine, items, (*_HANDLES, InstanceCell))


def holds_functions(items: Sequence[Abstract]) -> bool:
    """Return whether functions are among ``items``: which one is called is then a case of its own."""
    return any(
        isinstance(item, Function | BoundMethod | Partial)
        or (isinstance(item, Const) and isinstance(item.value, _FUNCTIONS))
        for item in items
    )


def stays_apart(machine: Machine, items: Sequence[Abstract]) -> bool:
    """Return whether a container of ``items`` is no object of the run: one of them is picked by a condition."""
    few = len(items) <= MAX_UNION and (holds_functions(items) or are_numbered(machine, items))
    return few or holds_handles(machine, items)


def by_key(machine: Machine, keys: Sequence[Any], values: Sequence[Abstract], key: Symbol) -> Abstract:
    """The value at ``key`` of a dict, which is one of its keys."""
    parts = [Const(part) for number, known in enumerate(keys) for part in (known, number)]
    table = pure(machine, "dict", parts, raises=False)
    return one_of(machine, values, pure(machine, "getitem", (table, key), gives=INT))


def picked(machine: Machine, items: Sequence[Abstract], key: Abstract, kind: str = "list") -> Abstract:
    """``items[key]`` of a list or tuple; a run raises what Python does where there is none."""
    numbers = pure(machine, kind, [Const(number) for number in range(len(items))], raises=False)
    return one_of(machine, items, pure(machine, "getitem", (numbers, key)))


def one_of(machine: Machine, items: Sequence[Abstract], index: Symbol) -> Abstract:
    """The item at ``index``, which is one of their numbers."""
    if not 0 < len(items) <= MAX_UNION:
        raise machine.unsupported(f"one of {len(items)} states or objects, by a number that only a run knows")
    value = items[-1]
    for number in reversed(range(len(items) - 1)):
        flag = pure(machine, "eq", (index, Const(number)), raises=False, gives=BOOL)
        value = Union(flag, items[number], value)
    return value
