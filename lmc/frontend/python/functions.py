"""Python's own functions and classes: a table of their rules for abstract values."""

from __future__ import annotations

import builtins
import copy
import dataclasses
import functools
import heapq
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from lmc.frontend.heap.values import (
    EMPTY,
    NONE,
    Abstract,
    Partial,
)
from lmc.frontend.python import classes, object_methods
from lmc.frontend.python.constructors import (
    deep_copy,
    new_dict,
    new_list,
    new_range,
    new_tuple,
    set_of,
    shallow_copy,
)
from lmc.frontend.python.conversions import conversion, formatted, new_text, to_bool, to_text
from lmc.frontend.python.folds import extreme, quantifier, sorted_items, sum_of
from lmc.frontend.python.inspection import (
    delete_attribute,
    get_attribute,
    has_attribute,
    is_callable,
    is_instance,
    is_subclass,
    set_attribute,
    size,
    type_of,
)
from lmc.frontend.python.items import get_item
from lmc.frontend.python.iterators import advanced, enumerated, filtered, iterator, mapped, reversed_items, zipped
from lmc.frontend.python.library import calls as library
from lmc.frontend.python.library import table
from lmc.frontend.python.operators import BINARY, COMPARISONS, binary, contains, negated, truth, unary

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Handler = Callable[..., Abstract]

BINARY_NAMES = (*BINARY.values(), *COMPARISONS.values())


def _operated(name: str, machine: Machine, left: Abstract, right: Abstract) -> Abstract:
    """A function of ``operator`` that takes two values."""
    return binary(machine, name, left, right)


def _applied(name: str, machine: Machine, value: Abstract) -> Abstract:
    """A function of ``operator`` that takes one value."""
    return unary(machine, name, value)


def power(machine: Machine, base: Abstract, exp: Abstract, mod: Abstract = NONE) -> Abstract:
    """``pow(base, exp, mod)``."""
    if mod is NONE:
        return binary(machine, "pow", base, exp)
    row = table.rows()["builtins.pow"]
    return library.call(machine, pow, row, [base, exp, mod], {})


FUNCTIONS: Mapping[Any, Handler] = {
    Counter: object_methods.new_counter,
    OrderedDict: object_methods.new_ordered_dict,
    defaultdict: object_methods.new_defaultdict,
    deque: object_methods.new_deque,
    **{getattr(heapq, name): object_methods.heap(name) for name in object_methods.HEAPS},
    copy.copy: shallow_copy,
    copy.deepcopy: deep_copy,
    len: size,
    str: new_text,
    repr: lambda machine, value: to_text(machine, value, "repr"),
    ascii: lambda machine, value: to_text(machine, value, "ascii"),
    format: lambda machine, value, spec=EMPTY: formatted(machine, value, spec),
    bool: to_bool,
    list: new_list,
    tuple: new_tuple,
    set: set_of,
    dict: new_dict,
    range: new_range,
    enumerate: enumerated,
    zip: zipped,
    reversed: reversed_items,
    sorted: sorted_items,
    min: extreme("min"),
    max: extreme("max"),
    sum: sum_of,
    any: quantifier(wanted=True),
    all: quantifier(wanted=False),
    isinstance: is_instance,
    issubclass: is_subclass,
    getattr: get_attribute,
    hasattr: has_attribute,
    setattr: set_attribute,
    delattr: delete_attribute,
    functools.partial: lambda _, function, *args, **kwargs: Partial(function, args, kwargs),
    type: type_of,
    dataclasses.fields: classes.fields_of,
    dataclasses.replace: classes.replaced,
    dataclasses.asdict: classes.as_dict,
    iter: iterator,
    next: advanced,
    map: mapped,
    filter: filtered,
    pow: power,
    **{getattr(operator, name): partial(_operated, name) for name in BINARY_NAMES},
    **{getattr(operator, name): partial(_applied, name) for name in ("neg", "pos", "invert")},
    operator.not_: negated,
    operator.truth: truth,
    operator.contains: contains,
    operator.getitem: get_item,
    callable: is_callable,
    **{getattr(builtins, name): conversion(name) for name in ("int", "float", "abs", "round", "ord", "chr")},
}
"""The functions of Python's own that a program calls, without the module ``library``."""
TAKING_ITEMS = frozenset(
    {list, tuple, set, dict, sorted, sum, min, max, any, all, enumerate, zip, reversed, iter, map, filter}
)
"""Functions that go over their arguments."""
_MADE_CODE = "the program runs code that it makes itself", "choose among functions with a dict, or run it in a tool"
_NAMES = "the program asks for the names of its own frame", "keep the values in a dict, and look them up there"
_OUTSIDE = "the program reads from outside itself", "read it in a tool: a function of your own with @lmc.tool"
REFUSED: Mapping[Any, tuple[str, str]] = {
    **dict.fromkeys((eval, exec, compile, vars(builtins)["__import__"]), _MADE_CODE),
    **dict.fromkeys((locals, globals, vars, dir), _NAMES),
    **dict.fromkeys((open, input), _OUTSIDE),
    breakpoint: ("the program stops for a debugger", "debug program.eager(...)"),
    id: ("the program asks for the address of an object", "compare with `is`, or keep a number of your own"),
}
"""Functions that no capture can call, with the cause and the remedy of the break."""
