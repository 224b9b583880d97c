"""Functions that call other functions or take items one by one: which polyfill of theirs is inlined, and when."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit import objects
from lmc.frontend.emit.known import concrete
from lmc.frontend.heap.cells import GeneratorCell, InstanceCell, IteratorCell
from lmc.frontend.heap.values import (
    Abstract,
    BoundMethod,
    Const,
    Function,
    Partial,
    Tuple,
)
from lmc.frontend.python import attributes
from lmc.frontend.python.items import get_item
from lmc.frontend.python.iteration import Counted, items_of, known_items
from lmc.frontend.python.library import polyfills
from lmc.frontend.python.library.rows import resolve

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]
_MOST_ROWS = 4_000
_SIMPLE = (type, BuiltinFunctionType, MethodDescriptorType)


def is_of_program(machine: Machine, value: Abstract) -> bool:
    """Return whether a callback is a function of the program, or of the user's."""
    if isinstance(value, Function | BoundMethod | Partial):
        return True
    if isinstance(value, Const):
        return isinstance(value.value, FunctionType | MethodType) and not isinstance(value.value, _SIMPLE)
    return isinstance(machine.cell(value), InstanceCell)


def _is_lazy(machine: Machine, value: Abstract) -> bool:
    is_iterator = isinstance(machine.cell(value), GeneratorCell | IteratorCell | InstanceCell)
    return is_iterator or objects.kind_of(machine, value) is objects.ITERATOR


def _one(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _machine, _args: function


def _mapping(machine: Machine, args: Args) -> Callable[..., Any] | None:
    counted = any(isinstance(items_of(machine, each), Counted) for each in args[1:] if not _is_lazy(machine, each))
    if not counted and not is_of_program(machine, args[0]) and not any(_is_lazy(machine, each) for each in args[1:]):
        return None
    return polyfills.map_ if len(args) == 2 else polyfills.map_rows


def _filtering(machine: Machine, args: Args) -> Callable[..., Any] | None:
    items = None if _is_lazy(machine, args[1]) else items_of(machine, args[1])
    known = isinstance(items, list) and all(machine.plain(item) is not None for item in items)
    return None if known and not is_of_program(machine, args[0]) else polyfills.filter_


def _over_iterators(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda machine, args: function if args and any(_is_lazy(machine, each) for each in args) else None


def _slicing(_machine: Machine, args: Args) -> Callable[..., Any] | None:
    return {2: polyfills.islice, 3: polyfills.islice_from, 4: polyfills.islice_from}.get(len(args))


_CHOICES: Mapping[str, Callable[[Machine, Args], Callable[..., Any] | None]] = {
    "builtins.map": _mapping,
    "builtins.filter": _filtering,
    "builtins.dict.fromkeys": _one(polyfills.from_keys),
    "builtins.enumerate": _over_iterators(polyfills.enumerate_),
    "builtins.zip": _over_iterators(polyfills.zip_),
    "bisect.insort_left": lambda _machine, args: polyfills.insort_left if len(args) == 2 else None,
    "bisect.insort_right": lambda _machine, args: polyfills.insort_right if len(args) == 2 else None,
    "contextlib.suppress": _one(polyfills.suppress),
    "functools.reduce": _one(polyfills.reduce),
    "heapq.nlargest": _one(polyfills.nlargest),
    "heapq.nsmallest": _one(polyfills.nsmallest),
    "itertools.accumulate": _one(polyfills.accumulate),
    "itertools.chain": _one(polyfills.chain),
    "itertools.chain.from_iterable": _one(polyfills.from_iterable),
    "itertools.compress": _one(polyfills.compress),
    "itertools.count": _one(polyfills.Count),
    "itertools.cycle": _one(polyfills.cycle),
    "itertools.dropwhile": _one(polyfills.dropwhile),
    "itertools.filterfalse": _one(polyfills.filterfalse),
    "itertools.groupby": _one(polyfills.groupby),
    "itertools.islice": _slicing,
    "itertools.pairwise": _one(polyfills.pairwise),
    "itertools.repeat": lambda _machine, args: polyfills.repeat if len(args) == 2 else None,
    "itertools.starmap": _one(polyfills.starmap),
    "itertools.takewhile": _one(polyfills.takewhile),
}
_MODULES = frozenset(path.rpartition(".")[0] for path in _CHOICES)
_COMBINING = frozenset({"product", "permutations", "combinations", "combinations_with_replacement", "zip_longest"})


def chosen(machine: Machine, held: Any, args: Args) -> Callable[..., Any] | None:
    """Return the polyfill to inline for a call of ``held``; None where there is none, or none is needed."""
    name = getattr(held, "__name__", None)
    for module in _MODULES:
        path = f"{module}.{name}"
        if path in _CHOICES and resolve(path) == held:
            return _CHOICES[path](machine, args)
    return None


def combined(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> Abstract | None:
    """The rows of ``itertools.product`` and its like, over items that are known; None for other functions."""
    name = getattr(held, "__name__", "")
    if name not in _COMBINING or getattr(itertools, name) is not held:
        return None
    with_items = [not isinstance(each, Const) or not isinstance(each.value, int | None) for each in args]
    columns = [
        known_items(machine, each, f"{name}() goes over it") if takes else []
        for each, takes in zip(args, with_items, strict=True)
    ]
    lazy = name == "zip_longest"
    if lazy:
        for each in args:
            if _is_lazy(machine, each):
                raise machine.unsupported("an iterator over another iterator")
    given: list[Any] = [
        [(place, index) for index in range(len(column))] if takes else concrete(machine, each)
        for place, (each, column, takes) in enumerate(zip(args, columns, with_items, strict=True))
    ]
    fill = kwargs.get("fillvalue", Const(None))
    named = {key: concrete(machine, value) for key, value in kwargs.items() if key != "fillvalue"}
    rows = list(itertools.islice(getattr(itertools, name)(*given, **named), _MOST_ROWS + 1))
    if len(rows) > _MOST_ROWS:
        raise machine.stop(f"{name}() gives more than {_MOST_ROWS:,} rows", "combine fewer items")
    made = [Tuple(tuple(fill if part is None else columns[part[0]][part[1]] for part in row)) for row in rows]
    call = Partial(Const(itertools.zip_longest), tuple(args), dict(kwargs)) if lazy else None
    found = machine.new(IteratorCell(Tuple(tuple(made)), 0, made=call))
    if lazy:
        machine.watch(found, *args)
    return found


GETTERS = (operator.itemgetter, operator.attrgetter)
"""Classes of ``operator`` whose objects read items or attributes of what they are called with."""


def got(machine: Machine, getter: Any, value: Abstract) -> Abstract:
    """Return what an object of ``GETTERS`` reads of ``value``."""
    names: tuple[Any, ...] = getter.__reduce__()[1]
    found: list[Abstract] = []
    for name in names:
        if isinstance(getter, operator.itemgetter):
            found.append(get_item(machine, value, Const(name)))
            continue
        one = value
        for part in name.split("."):
            one = attributes.read(machine, one, part)
        found.append(one)
    return found[0] if len(found) == 1 else Tuple(tuple(found))
