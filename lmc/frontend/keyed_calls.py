"""``sorted``, ``min`` and ``max`` with ``key``: what a function says of each item decides, which a run may know alone.

Keys are made first, one after the other, as Python does. Where all are known, so is the order; else it is worked out in
the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.growing import grown, is_grown, is_value_list
from lmc.frontend.proxy import holds_proxy

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

KEYED: tuple[Callable[..., Any], ...] = (sorted, min, max)


def is_one_of(function: Any, functions: tuple[Callable[..., Any], ...]) -> bool:
    """Whether it is one of them; asks for its identity alone."""
    return any(function is one for one in functions)


def by_key(ops: Operators, function: Any, items: list[Any], kwargs: dict[str, Any]) -> Any:
    """``function(items, key=…)``; the list is made right here, and nothing else refers to it."""
    recorder = ops.recorder
    rest = {name: value for name, value in kwargs.items() if name != "key"}
    key = kwargs["key"]
    if recorder is not None:
        ops.check_key(recorder, function, key)
    keys = ops.listed(items, None, lambda item: key_of(ops, key, item))
    if recorder is None or not (is_grown(items) or any(map(holds_proxy, keys))):
        return _known(function, items, keys, rest)
    if not is_value_list(items):
        raise recorder.stop(
            f"{function.__name__}() puts states, functions or objects in an order that only a run knows",
            "put their numbers in order: max(range(len(items)), key=lambda i: …)",
        )
    if function is not sorted:
        return recorder.pure(f"{function.__name__}_by", (items, keys, *rest.values()))
    whole = recorder.pure("sorted_by", (items, keys), rest)
    if is_grown(items):
        return recorder.born([grown(recorder, whole)])
    return recorder.born([recorder.pure("getitem", (whole, index), total=True) for index in range(len(items))])


def key_of(ops: Operators, key: Any, item: Any) -> Any:
    """``key(item)``; it counts as no operation, since Python calls it itself."""
    recorder = ops.recorder
    if recorder is None or type(key) is FunctionType:
        return key(item)
    return ops.called(recorder, key, item)


def _known(function: Any, items: list[Any], keys: list[Any], rest: dict[str, Any]) -> Any:
    if function is sorted:
        return [items[index] for index in sorted(range(len(items)), key=keys.__getitem__, **rest)]
    if not items and "default" in rest:
        return rest["default"]
    return items[function(range(len(items)), key=keys.__getitem__)]
