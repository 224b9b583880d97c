"""``sorted``, ``min`` and ``max`` with ``key``, where a key may be known only when the program runs.

``sorted`` takes all items before it makes the first key; ``min`` and ``max`` make the key of an item before they take
the next one. Where all keys are known, so is the order; else it is worked out in the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.growing import grown, is_grown, is_value_list
from lmc.frontend.proxy import holds_proxy
from lmc.frontend.same_values import are_same_objects
from lmc.frontend.unknown_items import unknown_items

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators
    from lmc.frontend.recorder import Recorder

KEYED: tuple[Callable[..., Any], ...] = (sorted, min, max)


def is_one_of(function: Any, functions: tuple[Callable[..., Any], ...]) -> bool:
    """Whether it is one of them; asks for its identity alone."""
    return any(function is one for one in functions)


def by_key(ops: Operators, function: Any, source: Any, kwargs: dict[str, Any]) -> Any:
    """``function(source, key=…)``."""
    recorder = ops.recorder
    rest = {name: value for name, value in kwargs.items() if name != "key"}
    key = kwargs["key"]
    if recorder is not None:
        ops.check_key(recorder, function, key)
    if recorder is not None and unknown_items(recorder, source) is not None:
        items: list[Any] = recorder.born(list(ops.spread(source)))
        keys = _keys_of_unknown(ops, recorder, function, source, key=key, items=items)
    else:
        # The keys of ``min`` and ``max`` may change what these iterate over, and see what comes of it.
        items = []
        steps = list(ops.spread(source)) if function is sorted else source
        keys = ops.listed(steps, None, lambda item: _kept_key(ops, key, item, items))
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


def _kept_key(ops: Operators, key: Any, item: Any, items: list[Any]) -> Any:
    items.append(item)
    return key_of(ops, key, item)


def _keys_of_unknown(
    ops: Operators, recorder: Recorder, function: Any, source: Any, *, key: Any, items: list[Any]
) -> list[Any]:
    """The keys of ``items``, all of which are taken from ``source`` before: the same as long as no key changes it."""
    before, writes = list(source) if type(source) is list else [], recorder.user_writes

    def key_of_one(item: Any) -> Any:
        found = key_of(ops, key, item)
        changed = type(source) is list and not are_same_objects(before, source)
        if function is not sorted and (changed or recorder.user_writes > writes):
            raise recorder.stop(
                f"the key of {function.__name__}() may change what {function.__name__}() iterates over",
                f"iterate over a copy: {function.__name__}(list(items), key=…)",
            )
        return found

    return ops.listed(items, None, key_of_one)


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
