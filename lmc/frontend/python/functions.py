"""Python's own functions and classes, by the function: what each does with abstract values."""

from __future__ import annotations

import builtins
import functools
import heapq
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmc.frontend.heap.values import (
    EMPTY,
    Abstract,
    Partial,
)
from lmc.frontend.python import object_methods
from lmc.frontend.python.constructors import new_dict, new_list, new_range, new_tuple, set_of
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
from lmc.frontend.python.iterators import advanced, enumerated, filtered, iterator, mapped, reversed_items, zipped

if TYPE_CHECKING:
    pass

Handler = Callable[..., Abstract]

FUNCTIONS: Mapping[Any, Handler] = {
    Counter: object_methods.new_counter,
    OrderedDict: object_methods.new_ordered_dict,
    defaultdict: object_methods.new_defaultdict,
    deque: object_methods.new_deque,
    **{getattr(heapq, name): object_methods.heap(name) for name in object_methods.HEAPS},
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
    iter: iterator,
    next: advanced,
    map: mapped,
    filter: filtered,
    callable: is_callable,
    **{getattr(builtins, name): conversion(name) for name in ("int", "float", "abs", "round", "ord", "chr", "pow")},
}
"""What a program calls of Python's own, without the module ``library``."""
