"""Python's own functions that go over items: ``sum``, ``sorted``, ``any``, ``zip``, ``map`` and the like."""

from __future__ import annotations

import builtins as python
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from lmc.frontend.branches import Branches
from lmc.frontend.disorder import is_disordered
from lmc.frontend.growing import TYPED_LIST, is_volatile
from lmc.frontend.keyed_calls import by_key
from lmc.frontend.live_iterators import live_iterator
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.unknown_items import (
    REPEATABLE,
    EnumeratedItems,
    RangeItems,
    ReversedItems,
    ZippedItems,
    listed_items,
    taken_items,
    unknown_items,
    whole,
)
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, ListType, type_of

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

Handler = Callable[..., Any]


def is_symbolic(value: Any) -> bool:
    """Whether ``value`` is, or holds, what is known only when the program runs."""
    return type(value) is Proxy or type(value) is ProxyMethod or holds_proxy(value)


class _SymbolicItem(BaseException):
    """Ends a builtin that goes over plain items when a symbolic one comes; private to ``_over_items``."""


def _over_items(name: str) -> Handler:
    """``sum``, ``min`` and ``max``: they look at each item before they take the next one."""
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
        if args and kwargs.get("key") is not None:
            return by_key(ops, function, args[0] if args[1:] == () else list(args), kwargs)
        several = name != "sum" and len(args) > 1
        if not args or "key" in kwargs or several or type(args[0]) in (list, tuple, Proxy) or is_disordered(args[0]):
            if "key" not in kwargs and is_symbolic(args):
                return recorder.pure(name, args, kwargs)
            return ops.at_capture(recorder, function, args, kwargs)
        items = iter(ops.iterate(args[0]))
        taken: list[Any] = []

        def plain() -> Iterator[Any]:
            for item in items:
                taken.append(item)
                if type(item) is Proxy:
                    raise _SymbolicItem
                yield item

        try:
            return ops.at_capture(recorder, function, (recorder.born(plain()), *args[1:]), kwargs)
        except _SymbolicItem:
            pass
        # From here on the items are looked at when the program runs, after all of them are made: the same only where
        # looking at them can't raise.
        for _ in _until_unlike(taken, name):
            try:
                taken.append(next(items))
            except StopIteration:
                return recorder.pure(name, (taken, *args[1:]), kwargs)
        raise recorder.stop(
            f"{name}() looks at each item before it takes the next, and some are known only when the program runs",
            f"make a list of them first: {name}([...])",
        )

    return handle


def _until_unlike(items: list[Any], name: str) -> Iterator[None]:
    """Go on as long as all ``items``, which grow meanwhile, are numbers, or for ``min`` and ``max`` all texts."""
    texts = [TEXT] if name != "sum" else []
    while True:
        kinds = {symbol(item).type if type(item) is Proxy else type_of(item) for item in items}
        if not (kinds <= {INT, FLOAT, BOOL} or list(kinds) == texts):
            return
        yield


def _sorted(ops: Operators, recorder: Recorder, items: Any, /, **kwargs: Any) -> Any:
    if kwargs.get("key") is not None:
        return by_key(ops, sorted, items, kwargs)
    items = ops.settled(items)
    if type(items) is Proxy and "key" not in kwargs:
        return recorder.pure("sorted", (items,), kwargs)
    if is_disordered(items) and not kwargs:
        return ops.at_capture(recorder, sorted, (items,), {})
    found = list(ops.taken(items))
    if "key" in kwargs or not is_symbolic(found):
        return recorder.born(ops.at_capture(recorder, sorted, (found,), kwargs))
    # Only the order is not known: the result is a list of as many items, made here.
    if is_volatile(found):
        raise recorder.stop("sorted() looks at values that the user's functions may still change", TYPED_LIST)
    whole = recorder.pure("sorted", (found,), kwargs)
    return recorder.born([recorder.pure("getitem", (whole, index), total=True) for index in range(len(found))])


def _quantifier(name: str) -> Handler:
    function = getattr(python, name)

    def handle(ops: Operators, recorder: Recorder, items: Any, /) -> Any:
        if type(items) is Proxy or (type(items) in (list, tuple) and holds_proxy(items)):
            return recorder.pure(name, (items,))
        if is_disordered(items):
            return ops.at_capture(recorder, function, (items,), {})

        def plain() -> Any:
            for item in ops.iterate(items):
                if type(item) is Proxy:
                    raise recorder.stop(
                        f"{name}() stops at the first item that decides, which is known only when the program runs",
                        f"make a list of the conditions first: {name}([...])",
                    )
                yield ops.truth(item)

        return function(plain())

    return handle


def _list(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and not kwargs:
        return recorder.born(list(ops.spread(args[0])))
    return recorder.born(ops.at_capture(recorder, list, args, kwargs))


def _range(ops: Operators, recorder: Recorder, /, *args: Any) -> Any:
    unknown = any(type(value) is Proxy and not recorder.is_known(value) for value in args)
    if unknown and len(args) in (1, 2) and all(map(whole, args)):
        start, stop = args if len(args) == 2 else (0, *args)
        return RangeItems(recorder, start, stop)
    return ops.at_capture(recorder, range, tuple(recorder.concrete(value) for value in args), {})


def _zip(ops: Operators, recorder: Recorder, /, *args: Any, **kwargs: Any) -> Any:
    strict = kwargs.get("strict", False)
    if set(kwargs) <= {"strict"} and type(strict) is bool and any(unknown_items(recorder, value) for value in args):
        found = tuple(listed_items(recorder, value) for value in args)
        if all(part is not None for part in found):
            return ZippedItems(recorder, tuple(part for part in found if part is not None), strict=strict)
    items = tuple(recorder.born(iter(ops.iterate(value))) for value in args)
    return _iterator(recorder, ops.at_capture(recorder, zip, items, kwargs), args)


def _enumerate(ops: Operators, recorder: Recorder, items: Any, start: Any = 0) -> Any:
    unknown = taken_items(recorder, items) if whole(start) else None
    if unknown is not None:
        return EnumeratedItems(recorder, unknown, start)
    return _iterator(recorder, enumerate(ops.iterate(items), recorder.concrete(start)), (items,))


def _iterator(recorder: Recorder, made: Any, sources: tuple[Any, ...]) -> Any:
    """``made``, which goes over ``sources`` as they come."""
    recorder.plain_iterator = made if all(type(source) in REPEATABLE for source in sources) else None
    return recorder.born(made)


def _reversed(ops: Operators, recorder: Recorder, items: Any, /) -> Any:
    if type(items) is Proxy and symbol(items).volatile and not isinstance(symbol(items).type, ListType):
        raise recorder.stop(f"reversed() of {symbol(items).origin} may run a __reversed__ of its own", TYPED_LIST)
    unknown = unknown_items(recorder, items)
    if unknown is not None:
        return ReversedItems(recorder, unknown)
    if type(items) is Proxy:
        items = list(ops.taken(items))
    if issubclass(type(items), Branches):
        return recorder.born(reversed(cast("Any", items)))
    found = ops.at_capture(recorder, reversed, (items,), {})
    live = live_iterator(recorder, items, backwards=True)
    return recorder.born(ops.watched(recorder, items, found if live is None else live))


def _iter(ops: Operators, recorder: Recorder, /, *args: Any) -> Any:
    if len(args) == 1:
        return recorder.born(iter(ops.iterate(args[0])))
    raise recorder.stop("iter() with a sentinel calls a function again and again", "write a loop")


def _map(ops: Operators, recorder: Recorder, function: Any, /, *iterables: Any) -> Any:
    return recorder.born(ops.mapped(function, *(ops.iterate(items) for items in iterables)))


def _filter(ops: Operators, recorder: Recorder, function: Any, items: Any, /) -> Any:
    return recorder.born(ops.filtered(function, ops.iterate(items)))


ITEM_HANDLERS: dict[str, Handler] = {
    "min": _over_items("min"),
    "max": _over_items("max"),
    "sum": _over_items("sum"),
    "sorted": _sorted,
    "any": _quantifier("any"),
    "all": _quantifier("all"),
    "list": _list,
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "iter": _iter,
    "map": _map,
    "filter": _filter,
}
