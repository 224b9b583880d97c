"""Methods of Python's own classes: texts, lists, dicts, sets."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lmc.frontend.control.conditions import common
from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import class_of, concat, describe, is_scalar, is_text, pure
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import CollectedCell, DictCell, GrownCell, ListCell, SetCell
from lmc.frontend.heap.reach import current
from lmc.frontend.heap.values import NONE, Abstract, Const, Ref, Symbol, Tuple, Union, View, is_literal, same
from lmc.frontend.python import object_methods
from lmc.frontend.python.conversions import formatted, to_text
from lmc.frontend.python.items import by_value, get_item, put, set_item, stays_apart
from lmc.frontend.python.iteration import Counted, items_of, known_items
from lmc.frontend.python.library import calls as library
from lmc.frontend.python.library.table import find_method
from lmc.frontend.python.operators import binary, is_harmless_symbol, run_now, truth
from lmc.frontend.source.nondeterminism import CAUSE, REMEDY, is_disordered
from lmc.ir.builtins import builtins
from lmc.ir.types import ANY, ListType, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]


def call_method(machine: Machine, receiver: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract:
    """``receiver.name(*args, **kwargs)`` of a class of Python's own."""
    receiver = current(machine.state, receiver)
    if isinstance(receiver, Union):
        return machine.cases(receiver, lambda one: call_method(machine, one, name, args, kwargs))
    for index, arg in enumerate(args):
        if isinstance(arg, Union):
            rest = list(args)

            def with_one(one: Abstract, index: int = index, rest: list[Abstract] = rest) -> Abstract:
                return call_method(machine, receiver, name, [*rest[:index], one, *rest[index + 1 :]], kwargs)

            return machine.cases(arg, with_one)
    if objects.is_object(machine, receiver):
        return object_methods.method(machine, receiver, name, args, kwargs)
    if isinstance(receiver, Const) and name not in CHANGING and any(machine.plain(arg) is None for arg in args):
        receiver = by_value(machine, receiver)
    cell = machine.cell(receiver)
    table: Mapping[str, Callable[..., Abstract]] = {}
    if isinstance(cell, ListCell | GrownCell):
        table = _LIST
    elif isinstance(cell, CollectedCell):
        table = _COLLECTED
    elif isinstance(cell, DictCell):
        table = _DICT
    elif isinstance(cell, SetCell):
        table = _SET
    handler = table.get(name)
    if handler is not None:
        return handler(machine, receiver, *args, **kwargs)
    if is_text(machine, receiver):
        return _text_method(machine, receiver, name, args, kwargs)
    kind = class_of(machine, receiver)
    found = None if kind is None else find_method(kind, name)
    if found is not None:
        return library.call(machine, *found, [receiver, *args], kwargs)
    return _now(machine, receiver, name, args, kwargs)


def _now(machine: Machine, receiver: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract:
    """A method that changes nothing, of a value that is known."""
    parts = [machine.plain(value) for value in (receiver, *args, *kwargs.values())]
    kind = class_of(machine, receiver)
    if kind not in _KNOWN or any(part is None for part in parts) or name in CHANGING:
        raise machine.unsupported(f"the method {name!r} of {describe(machine, receiver)}")
    values = [part[0] for part in parts if part is not None]
    split = len(values) - len(kwargs)
    named = dict(zip(kwargs, values[split:], strict=True))
    return run_now(machine, getattr(kind, name), values[:split], name, **named)


_KNOWN = frozenset({str, int, float, bool, bytes, list, tuple, dict, set, frozenset, range})
CHANGING = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "clear",
        "sort",
        "reverse",
        "update",
        "add",
        "discard",
        "setdefault",
        "popitem",
        "__setitem__",
    ]
)


def _text_method(machine: Machine, receiver: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract:
    if name == "join" and len(args) == 1 and not kwargs:
        joined = _join(machine, receiver, args[0])
        if joined is not None:
            return joined
    if name in ("format", "format_map"):
        _check_fields(machine, receiver, [*args, *kwargs.values()])
    if all(machine.plain(value) is not None for value in (receiver, *args, *kwargs.values())):
        return _now(machine, receiver, name, args, kwargs)
    if name == "format" and isinstance(receiver, Const):
        made = _format(machine, receiver.value, args, kwargs)
        if made is not None:
            return made
    row = find_method(str, name)
    if row is not None:
        return library.call(machine, *row, [receiver, *args], kwargs)
    if builtins.lookup(f"str.{name}") is None:
        raise machine.unsupported(f"the text method {name!r}")
    found = pure(machine, f"str.{name}", (receiver, *args), kwargs)
    if not isinstance(found.type, ListType):
        return found
    if name in ("partition", "rpartition"):
        return Tuple(tuple(pure(machine, "getitem", (found, Const(index)), raises=False) for index in range(3)))
    return machine.list_of(found)


def _check_fields(machine: Machine, template: Abstract, values: Args) -> None:
    """End the capture where ``format`` would read attributes of an object, which may run code of the user's."""
    known = machine.plain(template)
    if (known is None or _reads_parts(known[0])) and not all(_is_data(machine, value) for value in values):
        raise machine.stop(
            "`format` looks into an object that is no text, number or container of these",
            'read what is needed of it in the program: f"{x.title}"',
        )


def _reads_parts(template: str) -> bool:
    """Return whether a field of a template is more than a number or a name."""
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return False
    return any(set(".[") & set(name) or _reads_parts(spec or "") for _, name, spec, _ in fields if name is not None)


def _is_data(machine: Machine, value: Abstract) -> bool:
    """Return whether ``value`` is a text, a number or a container of Python's own that holds nothing else."""
    if is_scalar(value):
        return True
    if isinstance(value, Symbol):
        return is_harmless_symbol(value)
    if isinstance(value, Const):
        held = machine.plain(value)
        found = None if held is None else machine.lifted(held[0])
        return found is not None and not isinstance(found, Const) and _is_data(machine, found)
    if isinstance(value, Tuple):
        return all(_is_data(machine, item) for item in value.items)
    cell = machine.cell(value)
    return isinstance(cell, ListCell | GrownCell | DictCell | SetCell) and all(
        _is_data(machine, item) for item in cell.inner()
    )


def _format(machine: Machine, template: str, args: Args, kwargs: Kwargs) -> Abstract | None:
    """``template.format(…)`` field by field; None where a field is more than a number or a name."""
    parts: list[Abstract] = []
    following = 0
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return None
    for literal, name, spec, conversion in fields:
        parts.append(Const(literal))
        if name is None:
            continue
        given: Abstract | None = kwargs.get(name)
        if name == "" or name.isdecimal():
            place = following if name == "" else int(name)
            following = following + 1 if name == "" else -len(fields) - len(args)
            given = args[place] if 0 <= place < len(args) else None
        if given is None or "{" in (spec or "") or conversion not in (None, "s", "r", "a"):
            return None
        value = given if conversion is None else to_text(machine, given, _CONVERSIONS[conversion])
        parts.append(formatted(machine, value, Const(spec or "")))
    return concat(machine, parts)


_CONVERSIONS = {"s": "str", "r": "repr", "a": "ascii"}


def _join(machine: Machine, separator: Abstract, given: Abstract) -> Abstract | None:
    items = items_of(machine, given)
    if isinstance(items, Counted):
        return pure(machine, "str.join", (separator, items.value))
    if items is None and isinstance(given, Symbol):
        return pure(machine, "str.join", (separator, given))
    if items is None:
        items = known_items(machine, given, "it is joined")
    if not all(is_text(machine, item) for item in items):
        if all(machine.plain(item) is not None for item in items):
            return None
        return pure(machine, "str.join", (separator, pure(machine, "list", items)))
    parts: list[Abstract] = []
    for item in items:
        parts += [separator, item] if parts else [item]
    return concat(machine, parts)


# Lists


def check_stored(machine: Machine, items: Sequence[Abstract], own: Abstract) -> None:
    """End the capture where a list of the run would hold a copy of what the program can still change."""
    skip = {own.address} if isinstance(own, Ref) else set[int]()
    for item in items:
        if not machine.can_be_stored(item, skip):
            raise machine.stop(
                f"{describe(machine, item)} is put into a list whose length only a run knows, and may change there",
                "put in a copy (list(x), dict(x)), a tuple or a text",
            )


def grown(machine: Machine, value: Abstract, further: Sequence[Abstract], own: Abstract) -> Symbol:
    """Return the value of the list ``own`` with ``further`` items at its end."""
    check_stored(machine, further, own)
    more = pure(machine, "list", objects.handed_over(machine, further, own), raises=False)
    if not isinstance(value, Symbol):
        return more
    assert isinstance(value.type, ListType)
    assert isinstance(more.type, ListType)
    kind = list_of(common(value.type.element, more.type.element))
    return pure(machine, "add", (value, more), gives=kind, raises=False)


def _append(machine: Machine, receiver: Abstract, item: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    if isinstance(cell, ListCell):
        put(machine, receiver, cell.appended(item))
        return NONE
    kept = machine.can_be_stored(item, {receiver.address} if isinstance(receiver, Ref) else ())
    if not kept and not objects.put_into_run(machine, item):
        return _of_object(machine, receiver, "append", item)
    assert isinstance(cell, GrownCell)
    put(machine, receiver, GrownCell(grown(machine, cell.value, (item,), receiver)))
    return NONE


def _extend(machine: Machine, receiver: Abstract, given: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    items = items_of(machine, given)
    if items is None and isinstance(given, Symbol):
        items = Counted(pure(machine, "list_from", (given,)))
    if items is None:
        items = known_items(machine, given, "a list is extended by it")
    if isinstance(cell, ListCell) and isinstance(items, list):
        put(machine, receiver, ListCell((*cell.items, *items)))
        return NONE
    if not objects.is_flat(machine, receiver):
        taken = Tuple(tuple(items)) if isinstance(items, list) else items.value  # ``given`` may be used up
        return _of_object(machine, receiver, "extend", taken)
    value = pure(machine, "list", cell.items) if isinstance(cell, ListCell) else None
    if isinstance(cell, GrownCell):
        value = cell.value
    assert value is not None
    if isinstance(items, list):
        made = grown(machine, value, items, receiver)
    else:
        more = items.value if isinstance(items.value.type, ListType) else pure(machine, "list_from", (items.value,))
        kinds = [each.type.element if isinstance(each.type, ListType) else ANY for each in (value, more)]
        made = pure(machine, "add", (value, more), gives=list_of(common(*kinds)), raises=False)
    put(machine, receiver, GrownCell(made))
    return NONE


def _insert(machine: Machine, receiver: Abstract, index: Abstract, item: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    known = machine.plain(index)
    if isinstance(cell, ListCell) and known is not None:
        items = list(cell.items)
        items.insert(known[0], item)
        put(machine, receiver, ListCell(tuple(items)))
        return NONE
    if not objects.is_flat(machine, receiver) or not machine.can_be_stored(item, ()):
        return _of_object(machine, receiver, "insert", index, item)
    given = objects.handed_over(machine, [item])
    put(machine, receiver, GrownCell(pure(machine, "list.with", (receiver, index, *given))))
    return NONE


def _pop(machine: Machine, receiver: Abstract, *index: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    known = [machine.plain(each) for each in index]
    if isinstance(cell, ListCell) and all(each is not None for each in known):
        items = list(cell.items)
        try:
            found = items.pop(*[each[0] for each in known if each is not None])
        except (IndexError, TypeError) as error:
            raise_new(machine, type(error), *error.args)
        put(machine, receiver, ListCell(tuple(items)))
        return found
    if not objects.is_flat(machine, receiver):
        return _of_object(machine, receiver, "pop", *index)
    value = pure(machine, "list", cell.items) if isinstance(cell, ListCell) else cell.value  # type: ignore[union-attr]
    found = pure(machine, "list.popped", (value, *index))
    put(machine, receiver, GrownCell(pure(machine, "list.without", (value, *index), raises=False)))
    return found


def _remove(machine: Machine, receiver: Abstract, item: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    if isinstance(cell, ListCell):
        for index, each in enumerate(cell.items):
            flag = TRUE_IF_SAME if same(each, item) else truth(machine, binary(machine, "eq", each, item))
            if not isinstance(flag, Const):
                break
            if flag.value:
                put(machine, receiver, ListCell((*cell.items[:index], *cell.items[index + 1 :])))
                return NONE
        else:
            raise_new(machine, ValueError, "list.remove(x): x not in list")
    if not objects.is_flat(machine, receiver):
        return _of_object(machine, receiver, "remove", item)
    put(machine, receiver, GrownCell(pure(machine, "list.without_first", (receiver, item))))
    return NONE


TRUE_IF_SAME = Const(True)


def _of_object(machine: Machine, receiver: Abstract, name: str, *args: Abstract) -> Abstract:
    """A method of a list whose items may change: it becomes an object of the run."""
    assert isinstance(receiver, Ref)
    objects.escape(machine, receiver)
    return object_methods.method(machine, receiver, name, args, {})


def _clear(machine: Machine, receiver: Abstract) -> Abstract:
    put(machine, receiver, ListCell(()))
    return NONE


def _copy(machine: Machine, receiver: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    assert cell is not None
    return machine.new(cell)


def _reverse(machine: Machine, receiver: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    if isinstance(cell, ListCell):
        put(machine, receiver, ListCell(cell.items[::-1]))
    else:
        put(machine, receiver, GrownCell(pure(machine, "reversed", (receiver,))))
    return NONE


def _index(machine: Machine, receiver: Abstract, *args: Abstract) -> Abstract:
    if all(machine.plain(each) is not None for each in (receiver, *args)):
        return _now(machine, receiver, "index", args, {})
    return pure(machine, "list.index", (receiver, *args))


def _count(machine: Machine, receiver: Abstract, item: Abstract) -> Abstract:
    if machine.plain(receiver) is not None and machine.plain(item) is not None:
        return _now(machine, receiver, "count", (item,), {})
    return pure(machine, "list.count", (receiver, item))


def _sort(machine: Machine, receiver: Abstract, **options: Abstract) -> Abstract:
    from lmc.frontend.python.folds import sorted_items

    before = machine.cell(receiver)
    assert before is not None
    items = machine.new(before)
    emptied = ListCell(())  # what a key function sees of it
    put(machine, receiver, emptied)
    made = machine.cell(sorted_items(machine, items, **options))
    assert made is not None
    seen = machine.cell(receiver)
    put(machine, receiver, made)
    if isinstance(seen, ListCell) and seen.items:
        raise_new(machine, ValueError, "list modified during sort")
    if seen is not emptied:
        raise machine.unsupported("`sort` of a list that the key function may change")
    return NONE


# Dicts


def _get(machine: Machine, receiver: Abstract, key: Abstract, default: Abstract = NONE) -> Abstract:
    cell = machine.cell(receiver)
    assert isinstance(cell, DictCell)
    known = machine.plain(key)
    if known is not None:
        index = cell.index(known[0])
        return default if index is None else cell.values[index]
    apart = objects.is_flat(machine, receiver) or stays_apart(machine, cell.values)
    if not is_scalar(key) or (cell.keys and not apart):  # only a hash table asks a key for its hash
        return _of_object(machine, receiver, "get", key, default)
    if not cell.keys:
        return default
    there = pure(machine, "contains", (Tuple(tuple(map(Const, cell.keys))), key))
    return machine.choose(truth_symbol(machine, there), lambda: get_item(machine, receiver, key), lambda: default)


def truth_symbol(machine: Machine, value: Abstract) -> Symbol:
    """A flag that is known to be symbolic."""
    flag = truth(machine, value)
    assert isinstance(flag, Symbol)
    return flag


def _view(what: str) -> Callable[..., Abstract]:
    def view(machine: Machine, receiver: Abstract) -> Abstract:  # noqa: ARG001
        return View(receiver, what)

    return view


def _setdefault(machine: Machine, receiver: Abstract, key: Abstract, default: Abstract = NONE) -> Abstract:
    cell = machine.cell(receiver)
    known = machine.plain(key)
    assert isinstance(cell, DictCell)
    if known is None:
        return _of_object(machine, receiver, "setdefault", key, default)
    index = cell.index(known[0])
    if index is not None:
        return cell.values[index]
    set_item(machine, receiver, key, default)
    return default


def _dict_pop(machine: Machine, receiver: Abstract, key: Abstract, *default: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    known = machine.plain(key)
    assert isinstance(cell, DictCell)
    if known is None:
        return _of_object(machine, receiver, "pop", key, *default)
    index = cell.index(known[0])
    if index is None:
        if default:
            return default[0]
        raise_new(machine, KeyError, known[0])
    keys = (*cell.keys[:index], *cell.keys[index + 1 :])
    put(machine, receiver, DictCell(keys, (*cell.values[:index], *cell.values[index + 1 :])))
    return cell.values[index]


def _update(machine: Machine, receiver: Abstract, *given: Abstract, **named: Abstract) -> Abstract:
    from lmc.frontend.python.constructors import pairs_of

    for each in given:
        if objects.is_object(machine, each) or isinstance(each, Symbol):
            _of_object(machine, receiver, "update", each)
            continue
        for key, value in pairs_of(machine, each):
            set_item(machine, receiver, key, value)
    for name, value in named.items():
        set_item(machine, receiver, Const(name), value)
    return NONE


def _dict_clear(machine: Machine, receiver: Abstract) -> Abstract:
    put(machine, receiver, DictCell((), ()))
    return NONE


def _popitem(machine: Machine, receiver: Abstract) -> Abstract:
    cell = machine.cell(receiver)
    assert isinstance(cell, DictCell)
    if not cell.keys:
        raise_new(machine, KeyError, "popitem(): dictionary is empty")
    put(machine, receiver, DictCell(cell.keys[:-1], cell.values[:-1]))
    return Tuple((Const(cell.keys[-1]), cell.values[-1]))


# Sets


def _set_change(name: str) -> Callable[..., Abstract]:
    def change(machine: Machine, receiver: Abstract, *args: Abstract) -> Abstract:
        cell = machine.cell(receiver)
        assert isinstance(cell, SetCell)
        parts = [machine.plain(arg) for arg in args]
        if any(part is None for part in parts):
            return _of_object(machine, receiver, name, *args)
        values = [part[0] for part in parts if part is not None]
        if name == "add" and not is_literal(values[0]):
            return _of_object(machine, receiver, name, *args)
        held = set(cell.items)
        try:
            found = getattr(held, name)(*values)
        except (KeyError, TypeError) as error:
            raise_new(machine, type(error), *error.args)
        if len(held) > 1 and is_disordered({*cell.items}) and not is_disordered(held):
            raise machine.stop(CAUSE, REMEDY)  # what is gone may have moved the items that stay
        put(machine, receiver, SetCell(frozenset(held)))
        return machine.lifted(found)

    return change


def _set_pop(machine: Machine, receiver: Ref) -> Abstract:
    machine.check_change(receiver)
    cell = machine.cell(receiver)
    assert isinstance(cell, SetCell)
    if not cell.items:
        raise_new(machine, KeyError, "pop from an empty set")
    if len(cell.items) > 1:
        raise machine.stop(CAUSE, REMEDY)
    machine.state.put(receiver.address, SetCell(frozenset()))
    return Const(*cell.items)


def _set_look(name: str) -> Callable[..., Abstract]:
    """A method that changes nothing: of what only a run knows, one of a copy."""

    def look(machine: Machine, receiver: Abstract, *args: Abstract) -> Abstract:
        if all(machine.plain(arg) is not None for arg in args):
            return _now(machine, receiver, name, args, {})
        return _of_object(machine, _copy(machine, receiver), name, *args)

    return look


def _collect(machine: Machine, own: Abstract, item: Abstract) -> Abstract:
    """``append`` in a round of a ``cf.map``: rounds see what they put in themselves alone."""
    check_stored(machine, [item], own)
    cell = machine.cell(own)
    assert isinstance(own, Ref)
    assert isinstance(cell, CollectedCell)
    machine.state.put(own.address, CollectedCell((*cell.items, item)))
    return NONE


def _collect_all(machine: Machine, own: Abstract, given: Abstract) -> Abstract:
    for item in known_items(machine, given, "it is put into a list that other rounds see"):
        _collect(machine, own, item)
    return NONE


COMBINING = ("intersection", "difference", "symmetric_difference")
_COLLECTED: Mapping[str, Callable[..., Abstract]] = {"append": _collect, "extend": _collect_all}
_LIST: Mapping[str, Callable[..., Abstract]] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "remove": _remove,
    "clear": _clear,
    "copy": _copy,
    "reverse": _reverse,
    "index": _index,
    "count": _count,
    "sort": _sort,
}
_DICT: Mapping[str, Callable[..., Abstract]] = {
    "get": _get,
    "keys": _view("keys"),
    "values": _view("values"),
    "items": _view("items"),
    "setdefault": _setdefault,
    "pop": _dict_pop,
    "popitem": _popitem,
    "update": _update,
    "clear": _dict_clear,
    "copy": _copy,
}
_SET: Mapping[str, Callable[..., Abstract]] = {
    "copy": _copy,
    "pop": _set_pop,
    **{name: _set_change(name) for name in ("add", "discard", "remove", "update", "clear")},
    **{f"{name}_update": _set_change(f"{name}_update") for name in COMBINING},
    **{name: _set_look(name) for name in ("union", *COMBINING, "issubset", "issuperset", "isdisjoint")},
}
