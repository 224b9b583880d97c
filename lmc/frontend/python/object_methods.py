"""Methods of objects of the run, and what makes those: ``Counter``, ``defaultdict``, ``deque``, heaps."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lmc.frontend.emit.objects import (
    added_items,
    changed,
    escape,
    is_flat,
    is_object,
    item,
    kind_of,
    local,
    looked_into,
    made,
    pairs_in,
    stored,
    symbol_of,
    view,
)
from lmc.frontend.emit.operands import describe, merged_domain, united
from lmc.frontend.heap.cells import DictCell, ObjectCell, SetCell
from lmc.frontend.heap.values import NONE, Abstract, Concat, Const, Domain, Ref, Symbol, Tuple, View
from lmc.frontend.python.iteration import Counted, items_of, known_items
from lmc.frontend.source.nondeterminism import CAUSE, REMEDY
from lmc.ir.builtins import object_builtins
from lmc.ir.types import ANY, BOOL, INT, Type, list_of
from lmc.ir.types import NONE as NONE_TYPE

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]
Handler = Callable[..., Abstract]

_LOOKS = frozenset(
    [
        "get",
        "keys",
        "values",
        "items",
        "copy",
        "count",
        "index",
        "most_common",
        "elements",
        "total",
        "union",
        "intersection",
        "difference",
        "symmetric_difference",
        "issubset",
        "issuperset",
        "isdisjoint",
    ]
)
_NOTHING = frozenset(
    [
        "append",
        "appendleft",
        "extend",
        "extendleft",
        "insert",
        "remove",
        "clear",
        "sort",
        "reverse",
        "rotate",
        "add",
        "discard",
        "update",
        "subtract",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "move_to_end",
    ]
)
"""Methods that give None."""
_FRESH = frozenset(["copy", "union", "intersection", "difference", "symmetric_difference"])
"""Methods that give another container of the same class."""
_LISTS = frozenset(["most_common"])
_TYPES: Mapping[str, Type] = {
    "index": INT,
    "count": INT,
    **dict.fromkeys(("issubset", "issuperset", "isdisjoint"), BOOL),
}
_TAKE_ITEMS = _FRESH.union(
    ["extend", "extendleft", "update", "subtract", "issubset", "issuperset", "isdisjoint"],
    ["difference_update", "intersection_update", "symmetric_difference_update"],
)
"""Methods that take the items of their arguments, and keep no argument itself."""
_ADDED = {"append": 0, "add": 0, "setdefault": 0, "insert": 1}
"""The argument that is put into a container as an item, or as a key."""
_ADD_NOTHING = frozenset(["pop", "popitem", "remove", "discard", "clear", "sort", "reverse"])
_COMPARING = frozenset(["remove", "index", "count", "sort", "discard"])
"""Methods that compare items, which may run code of the user's where an item comes from outside."""


def taken(machine: Machine, value: Abstract) -> Abstract:
    """Return what goes over an argument gets of it: its items as they are now."""
    if isinstance(value, View) and kind_of(machine, value.owner) is not None:
        return view(machine, value)
    if isinstance(value, Symbol | Concat | Const) or is_object(machine, value):
        return value if is_object(machine, value) else stored(machine, value)
    cell = machine.cell(value)
    if isinstance(cell, SetCell):
        return Tuple(tuple(map(Const, sorted(cell.items, key=repr))))
    if is_flat(machine, value):
        return value
    if isinstance(cell, DictCell):
        return made(machine, "dict", pairs_in(machine, cell), dict)
    items = items_of(machine, value)
    if isinstance(items, Counted):
        return items.value
    items = known_items(machine, value, "its items are put into a container") if items is None else items
    return Tuple(tuple(stored(machine, each) for each in items))


def _argument(machine: Machine, name: str, value: Abstract) -> Abstract:
    """An argument of a method."""
    if isinstance(value, View) and is_object(machine, value.owner):
        return view(machine, value)
    if name not in _TAKE_ITEMS:
        return stored(machine, value)
    found = taken(machine, value)
    return looked_into(machine, found) if isinstance(machine.cell(found), ObjectCell) else found


def method(machine: Machine, owner: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract:
    """``owner.name(*args, **kwargs)``."""
    kind = kind_of(machine, owner)
    if kind is not None and name in ("keys", "values", "items") and issubclass(kind, dict):
        return View(owner, name)
    ordered = all(_is_ordered(machine, each) for each in (owner, *args))
    given = [_argument(machine, name, each) for each in args]
    named = {key: _argument(machine, name, each) for key, each in kwargs.items()}
    if machine.state.holds_foreign and name in _COMPARING:
        raise machine.stop(
            f"{name}() compares what tools gave, which may run code of their own", "compare texts or numbers instead"
        )
    if kind is list and name == "sort" and "key" in kwargs:
        raise machine.unsupported("`sort` by key of a list that only a run counts")
    if name not in _LOOKS:
        changed(machine, owner, _added(machine, owner, name, args, kwargs))
    values = (Const(name), symbol_of(machine, owner), *given)
    gives = NONE_TYPE if name in _NOTHING and kind is not None else _TYPES.get(name, ANY)
    if kind is not None and name in _LISTS:
        gives = list_of(ANY)
    found = local(machine, "method", values, named, gives)
    if gives == NONE_TYPE:
        if not ordered and isinstance(owner, Ref):
            cell = machine.cell(owner)
            assert isinstance(cell, ObjectCell)
            machine.state.put(owner.address, replace(cell, ordered=False))
        return NONE
    if gives in (INT, BOOL):
        return found
    if not ordered and name not in ("pop", *_FRESH):
        raise machine.stop(CAUSE, REMEDY)
    if kind is not None and name in _FRESH:
        return machine.new(ObjectCell(found, kind, ordered))
    if kind is not None and name in _LISTS:
        return machine.list_of(Symbol(found.ir, found.origin, foreign=machine.state.holds_foreign, local=True))
    if name == "pop" and not ordered and kind is set:
        raise machine.stop(CAUSE, REMEDY)
    return item(machine, found)


def _added(machine: Machine, owner: Abstract, name: str, args: Args, kwargs: Kwargs) -> Domain:
    """The texts among which all items are, or keys, that a method adds to an object of the run."""
    if name in _ADD_NOTHING:
        return ()
    if name in ("extend", "update"):
        return united(added_items(machine, owner, *args), tuple(kwargs))
    place = _ADDED.get(name)
    return None if place is None or len(args) <= place else merged_domain(args[place])


def _is_ordered(machine: Machine, value: Abstract) -> bool:
    cell = machine.state.get(value.address) if isinstance(value, Ref) else None
    if isinstance(cell, SetCell):
        return len(cell.items) < 2
    return not isinstance(cell, ObjectCell) or cell.ordered


# What makes them


def new_counter(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
    """``collections.Counter(…)``."""
    if len(given) > 1:
        raise machine.unsupported("a Counter of several arguments")
    counter = made(machine, "Counter", (), Counter)
    if given or named:
        method(machine, counter, "update", given, named)
    return counter


def new_ordered_dict(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
    """``collections.OrderedDict(…)``."""
    ordered = made(machine, "OrderedDict", (), OrderedDict)
    if given or named:
        method(machine, ordered, "update", given, named)
    return ordered


def new_defaultdict(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
    """``collections.defaultdict(factory, …)``."""
    factory = given[0] if given else NONE
    held = factory.value if isinstance(factory, Const) else factory
    name = getattr(held, "__name__", None) if isinstance(held, type) else None
    if held is not None and object_builtins.FACTORIES.get(name or "") is not held:
        raise machine.unsupported("a defaultdict whose factory is a function of the program")
    machine.objects.defaults = True
    found = made(machine, "defaultdict", (Const(name),), defaultdict)
    if given[1:] or named:
        method(machine, found, "update", given[1:], named)
    return found


def new_deque(machine: Machine, *given: Abstract, maxlen: Abstract = NONE) -> Abstract:
    """``collections.deque(items, maxlen)``."""
    limit = given[1] if len(given) > 1 else maxlen
    queue = made(machine, "deque", (limit,), deque)
    if given:
        method(machine, queue, "extend", given[:1], {})
    return queue


HEAPS = ("heappush", "heappop", "heapify", "heappushpop", "heapreplace")


def heap(name: str) -> Handler:
    """A function of ``heapq`` that changes its list."""

    def call(machine: Machine, owner: Abstract, *args: Abstract) -> Abstract:
        if isinstance(owner, Ref):
            escape(machine, owner)
        elif not is_object(machine, owner):
            raise machine.unsupported(f"`{name}` of {describe(machine, owner)}")
        given = [stored(machine, each) for each in args]
        if machine.state.holds_foreign:
            raise machine.stop(
                f"{name}() compares what tools gave, which may run code of their own",
                "put tuples of numbers and texts on the heap",
            )
        changed(machine, owner)
        found = local(machine, name, (owner, *given))
        return NONE if name in ("heappush", "heapify") else item(machine, found)

    return call
