"""Lists of the capture's whose length only a run decides: grown in a loop, or on one way through a condition.

Such a list stays the list object it is, so that all its names see it change. In the place of the items that are not
known one by one stands a ``Grown``. ``append`` and the like need not know about it; what looks at the list as a whole
asks for its value (``as_value``), and what could not be told from a list of other items ends the capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lmc.frontend.emitting import SCALARS
from lmc.frontend.proxy import Grown, Proxy, items_of, symbol
from lmc.ir.types import ANY, TEXT, ListType, Type, list_of, type_of

if TYPE_CHECKING:
    from lmc.frontend.values import ValueRecorder

TYPED_LIST = "let a tool return it as a list: @lmc.tool, with the type of the result, such as -> list[str]"
"""The advice where a capture needs to know that a value is a list."""
# Methods of a list that do the right thing whatever its items are.
BLIND_METHODS = frozenset({"append", "extend", "clear", "copy"})


def is_grown(value: Any) -> bool:
    """Whether ``value`` is a list some items of which are not known one by one."""
    return type(value) is list and any(type(part) is Grown for part in value)


def holds_grown(value: Any, depth: int = 8) -> bool:
    """Whether such a list is in ``value``."""
    kind = type(value)
    if kind is Grown:
        return True
    if depth == 0 or kind not in (list, tuple, dict):
        return False
    return any(holds_grown(part, depth - 1) for part in (value.values() if kind is dict else value))


def is_value_list(value: Any) -> bool:
    """Whether ``value`` is a list of what can be values: it can be one value of the graph itself."""
    return type(value) is list and all(type(part) is Grown or _can_be_value(part) for part in value)


def is_flat_list(value: Any) -> bool:
    """Whether ``value`` is such a list, and holds no lists and dicts."""
    return is_value_list(value) and not any(True for part in value for _ in containers_in(part))


def containers_in(value: Any) -> Iterator[Any]:
    """The lists and dicts in ``value``, itself included."""
    kind = type(value)
    if kind in (list, dict):
        yield value
    if kind in (list, tuple, dict):
        for part in value.values() if kind is dict else value:
            yield from containers_in(part)


def freeze(recorder: ValueRecorder, items: Sequence[Any]) -> None:
    """See to it that lists and dicts in ``items``, which are copied into the graph, do not change any more."""
    for part in items:
        for held in containers_in(part):
            recorder.freeze(held)


def element_type(items: Sequence[Any]) -> Type | None:
    """The type of all items of a list of the capture's; None where it has none."""
    types = {_type(part) for part in items}
    return None if not types else types.pop() if len(types) == 1 else ANY


def is_volatile(items: Sequence[Any]) -> bool:
    """Whether an item may be an object that the user's own functions can still change."""
    symbols = [
        symbol(items_of(part) if type(part) is Grown else part) for part in items if type(part) in (Grown, Proxy)
    ]
    return any(found.volatile for found in symbols)


def as_value(recorder: ValueRecorder, items: Sequence[Any], element: Type | None = None) -> Proxy:
    """The list of ``items`` as one value, whose elements are of type ``element``. Lists and dicts in it are frozen."""
    freeze(recorder, items)
    kind = list_of(element or element_type(items) or ANY)
    pieces: list[Proxy] = []
    for known, group in groupby(items, lambda part: type(part) is not Grown):
        parts = list(group)
        pieces += [recorder.pure("list", parts, gives=kind)] if known else map(items_of, parts)
    if not pieces:
        return recorder.pure("list", (), gives=kind)
    return reduce(lambda whole, piece: recorder.pure("add", (whole, piece), total=True, gives=kind), pieces)


def grown(recorder: ValueRecorder, items: Proxy) -> Grown:
    """What stands for the items of ``items`` as it is now."""
    recorder.grows = True
    found = symbol(items)
    if found.type == TEXT:
        return Grown(recorder.pure("list_from", (items,), total=True))
    if found.volatile or not isinstance(found.type, ListType):
        items = listed_now(recorder, items)
    return Grown(items)


def copied(recorder: ValueRecorder, items: Proxy) -> Proxy:
    """A copy of ``items``, a list that the user's functions may change."""
    copy = recorder.pure("list_from", (items,))
    kind = symbol(copy).type
    symbol(copy).volatile = not (isinstance(kind, ListType) and kind.element in map(type_of, _PLAIN))
    return copy


def listed_now(recorder: ValueRecorder, items: Proxy) -> Proxy:
    """``list(items)``, whatever it is, as it is now.

    No operation is answered by it: a continuation makes it again. What may be an iterator it would find used up, so a
    capture that breaks ends before.
    """
    if not symbol(items).volatile:
        return recorder.pure("list_from", (items,))
    if not isinstance(symbol(items).type, ListType):
        if recorder.careful:
            raise recorder.stop(
                f"{symbol(items).origin} is gone over, which can be done once if it is an iterator, and a later part "
                "of the program runs eagerly",
                TYPED_LIST,
            )
        recorder.hazard = True
    made = copied(recorder, items)
    recorder.last_host = None
    recorder.mutable_reads += 1
    return made


_PLAIN = ("", 0, 0.0, False, None)


def _can_be_value(value: Any, depth: int = 4) -> bool:
    kind = type(value)
    if kind in (list, tuple, dict):
        parts = value.values() if kind is dict else value
        keys = all(type(key) in SCALARS for key in value) if kind is dict else True
        return depth > 0 and keys and all(_can_be_value(part, depth - 1) for part in parts)
    return kind is Proxy or kind in SCALARS


def _type(part: Any) -> Type:
    if type(part) is Grown:
        kind = symbol(items_of(part)).type
        return kind.element if isinstance(kind, ListType) else ANY
    return symbol(part).type if type(part) is Proxy else type_of(part)
