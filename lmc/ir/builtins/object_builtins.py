"""The builtins of ``py.local``: how objects of a run are made, changed and gone over.

An object of a run is a list, dict, set or another container of Python's own which the program makes while it runs and
nothing else holds. Looking into one without changing it is ``py.call``. To add a builtin, add a line to the table.
"""

from __future__ import annotations

import copy
import heapq
import operator
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.builtins.builtin_types import ResultType, Safe, always_gives, always_safe, never_safe, same_list
from lmc.ir.builtins.list_builtins import mapping_from
from lmc.ir.errors import CaptureError
from lmc.ir.types import ANY, NONE, SCALAR_TYPES, TEXT, ListType, Type, list_of
from lmc.ir.wording import with_article


@dataclass(frozen=True, slots=True)
class ObjectBuiltin:
    """A builtin: how to run it, the type of its result, and for which types of arguments it can't raise."""

    name: str
    run: Callable[..., Any]
    result_type: ResultType
    is_safe: Safe = never_safe

    def may_raise(self, types: Sequence[Type], keywords: Sequence[str] = ()) -> bool:
        """Return whether it can raise on values of ``types``, the last of them given as ``keywords``."""
        return bool(keywords) or not self.is_safe(types)


def lookup(name: str) -> ObjectBuiltin | None:
    """The builtin called ``name``; None where there is none."""
    return _TABLE.get(name)


FACTORIES: dict[str, Callable[[], Any]] = {
    kind.__name__: kind for kind in (list, dict, set, int, float, str, bool, tuple, deque, Counter)
}
"""The factories of a ``defaultdict`` of a run, by name."""
_METHODS = frozenset(
    name
    for kind in (list, dict, set, deque, Counter, OrderedDict, defaultdict, str, tuple, frozenset, bytes, int, float)
    for name in dir(kind)
    if not name.startswith("_")
)
_OWNERS = frozenset({"builtins", "collections"})
_END = object()


def _list(*items: Any) -> list[Any]:
    return [*items]


def _pairs(keys_and_values: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(keys_and_values[::2], keys_and_values[1::2], strict=True))


def _dict(*keys_and_values: Any) -> dict[Any, Any]:
    return dict(_pairs(keys_and_values))


def _ordered_dict(*keys_and_values: Any) -> OrderedDict[Any, Any]:
    return OrderedDict(_pairs(keys_and_values))


def _counter(*keys_and_values: Any) -> Counter[Any]:
    return Counter(_dict(*keys_and_values))


def _defaultdict(factory: str | None, *keys_and_values: Any) -> defaultdict[Any, Any]:
    made = None if factory is None else FACTORIES.get(factory)
    if factory is not None and made is None:
        raise CaptureError(f"a defaultdict of {factory!r}", remedy=f"use one of {', '.join(sorted(FACTORIES))}")
    return defaultdict(made, _pairs(keys_and_values))


def _set(*items: Any) -> set[Any]:
    return {*items}


def _deque(maxlen: int | None, *items: Any) -> deque[Any]:
    return deque(items, maxlen)


def _set_slice(items: Any, start: Any, stop: Any, step: Any, value: Any) -> None:
    items[start:stop:step] = value


def _delete_slice(items: Any, start: Any, stop: Any, step: Any) -> None:
    del items[start:stop:step]


def _next(iterator: Iterator[Any]) -> tuple[bool, Any]:
    """Return whether there is another item, and which."""
    item = next(iterator, _END)
    return (False, None) if item is _END else (True, item)


def _method(name: str, owner: Any, *args: Any, **kwargs: Any) -> Any:
    """``owner.name(…)`` of an object of Python's own classes: a text may name methods of these alone."""
    kind = type(owner)
    if kind.__module__ not in _OWNERS:
        raise CaptureError(
            f"the program calls {name}() of {with_article(kind.__name__)}, a container of Python's own is needed",
            remedy="keep only texts, numbers and containers of them in containers whose methods are called",
        )
    if name not in _METHODS:
        raise CaptureError(f"no container has a method {name!r}", remedy="see lmc/ir/builtins/object_builtins.py")
    return getattr(owner, name)(*args, **kwargs)


def _safe_for_keys(types: Sequence[Type]) -> bool:
    """Accept keys that Python hashes itself, each with a value."""
    return SCALAR_TYPES.issuperset(types[::2])


def _safe_for_lists(types: Sequence[Type]) -> bool:
    """Accept one list or text."""
    return len(types) == 1 and (types[0] == TEXT or isinstance(types[0], ListType))


def _safe_for_items(types: Sequence[Type]) -> bool:
    """Accept items that Python hashes itself."""
    return SCALAR_TYPES.issuperset(types)


_TABLE = {
    entry.name: entry
    for entry in (
        ObjectBuiltin("list", _list, always_gives(list_of(ANY)), always_safe),
        ObjectBuiltin("list_from", list, same_list, _safe_for_lists),
        ObjectBuiltin("dict", _dict, always_gives(ANY), _safe_for_keys),
        ObjectBuiltin("dict_from", dict, always_gives(ANY)),
        ObjectBuiltin("mapping_from", mapping_from, always_gives(ANY)),
        ObjectBuiltin("set", _set, always_gives(ANY), _safe_for_items),
        ObjectBuiltin("set_from", set, always_gives(ANY)),
        ObjectBuiltin("deque", _deque, always_gives(ANY)),
        ObjectBuiltin("Counter", _counter, always_gives(ANY), _safe_for_keys),
        ObjectBuiltin("OrderedDict", _ordered_dict, always_gives(ANY), _safe_for_keys),
        ObjectBuiltin("defaultdict", _defaultdict, always_gives(ANY)),
        ObjectBuiltin("getitem", operator.getitem, always_gives(ANY)),
        ObjectBuiltin("setitem", operator.setitem, always_gives(NONE)),
        ObjectBuiltin("delitem", operator.delitem, always_gives(NONE)),
        ObjectBuiltin("setslice", _set_slice, always_gives(NONE)),
        ObjectBuiltin("delslice", _delete_slice, always_gives(NONE)),
        ObjectBuiltin("deepcopy", copy.deepcopy, always_gives(ANY)),
        ObjectBuiltin("iter", iter, always_gives(ANY)),
        ObjectBuiltin("next", _next, always_gives(ANY)),
        ObjectBuiltin("method", _method, always_gives(ANY)),
        *(
            ObjectBuiltin(name, getattr(operator, name), always_gives(ANY))
            for name in ("iadd", "imul", "ior", "iand", "isub", "ixor", "or_", "and_", "sub", "xor", "add", "mul")
        ),
        *(
            ObjectBuiltin(name, getattr(heapq, name), always_gives(ANY))
            for name in ("heappush", "heappop", "heapify", "heappushpop", "heapreplace")
        ),
    )
}
