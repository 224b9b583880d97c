"""What is gone over item by item where only a run decides how many items there are.

A list or text itself, and what ``enumerate``, ``zip``, ``reversed`` and ``range`` make of such ones: how long it is,
and its item at an index, both as values of the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from lmc.frontend.growing import as_value, grown, is_grown, is_value_list
from lmc.frontend.proxy import Proxy, items_of, symbol
from lmc.frontend.same_values import are_same, are_same_objects, is_count
from lmc.frontend.unclear import UnknownLength
from lmc.ir.types import ANY, BOOL, INT, TEXT, JsonType, ListType

if TYPE_CHECKING:
    from lmc.frontend.recorder import Recorder

# What can be gone over further than a run turns out to need, because that changes nothing.
REPEATABLE = (list, tuple, range, str, dict, set, frozenset, Proxy)
CAUSE = "how many items there are is known only when the program runs, and what goes over them has no counterpart"
REMEDY = "go over them in a `for` loop of the program itself, or make a list of what they are with lmc.map"


class UnknownItems(UnknownLength, ABC):
    """Items of unknown number. ``parts`` are those that these are made of."""

    parts: tuple[UnknownItems, ...] = ()

    @abstractmethod
    def length(self) -> Any:
        """How many there are."""

    @abstractmethod
    def item(self, index: Any) -> Any:
        """The one at ``index``, which is less than the length."""

    def finish(self, recorder: Recorder) -> None:
        """All items were gone over."""
        for part in self.parts:
            part.finish(recorder)

    def branch_items(self) -> list[Any]:
        """Those parts that are branches."""
        return [found for part in self.parts for found in part.branch_items()]

    def read_live(self) -> bool:
        """From now on, read lists that the user's functions may change each time. Whether there are any."""
        live = [part.read_live() for part in self.parts]
        return any(live)

    def is_used_up(self) -> bool:
        """Whether going over them takes all of what may only give one at a time."""
        return any(part.is_used_up() for part in self.parts)

    def is_changed(self) -> bool:
        """Whether a list of the program's own was changed in the innermost region."""
        return any(part.is_changed() for part in self.parts)

    def is_stale(self) -> bool:
        """Whether a list of the program's own holds other items than when these were made of it."""
        return any(part.is_stale() for part in self.parts)


class HoldsUnknownItems(ABC):
    """Base of what is no list, and can be gone over all the same."""

    __slots__ = ()

    @abstractmethod
    def as_items(self) -> UnknownItems:
        """What is gone over."""


class ListItems(UnknownItems):
    """Those of a list or text, as it is now."""

    def __init__(self, recorder: Recorder, items: Any) -> None:
        self._recorder = recorder
        own: Any = items
        self._own = own if type(items) is list else None
        self._before = list(own) if type(items) is list else []
        self._items: Proxy = as_value(recorder, own) if type(items) is list else own
        self._snapshot = items_of(grown(recorder, self._items))
        self._live = False

    def length(self) -> Any:
        if self._live:
            return self._recorder.pure("len", (self._items,))
        return self._recorder.length(self._snapshot)

    def item(self, index: Any) -> Any:
        return self._recorder.pure("getitem", (self._items if self._live else self._snapshot, index), total=True)

    def read_live(self) -> bool:
        self._live = symbol(self._items).volatile
        return self._live

    def is_changed(self) -> bool:
        region = self._recorder.regions.innermost
        return region is not None and self._own is not None and id(self._own) in region.touched

    def is_stale(self) -> bool:
        return self._own is not None and not are_same_objects(self._before, self._own)


class ObjectItems(ListItems):
    """Those of an object that a tool gave, or of parsed JSON: what ``list`` makes of it."""

    def read_live(self) -> bool:
        if symbol(self._items).volatile:
            raise self._recorder.stop(
                "a round may change what the loop goes over, which a tool gave", "go over a copy: list(items)"
            )
        return False

    def is_used_up(self) -> bool:
        return symbol(self._items).volatile


class IteratorItems(UnknownItems):
    """Items that can be gone over once."""

    used = False

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        recorder.born(self)

    def __next__(self) -> Any:
        raise self._recorder.stop(CAUSE, REMEDY)


class EnumeratedItems(IteratorItems):
    """``enumerate(items, start)``."""

    def __init__(self, recorder: Recorder, items: UnknownItems, start: Any) -> None:
        super().__init__(recorder)
        self._items = items
        self._start = start
        self.parts = (items,)

    def length(self) -> Any:
        return self._items.length()

    def item(self, index: Any) -> Any:
        number = index if type(self._start) is int and self._start == 0 else _add(self._recorder, index, self._start)
        return number, self._items.item(index)


class ZippedItems(IteratorItems):
    """``zip(*items, strict=strict)``."""

    def __init__(self, recorder: Recorder, items: tuple[UnknownItems, ...], *, strict: bool = False) -> None:
        super().__init__(recorder)
        self.parts = items
        self._strict = strict

    def length(self) -> Any:
        lengths = [part.length() for part in self.parts]
        if all(self._are_same(lengths[0], length) for length in lengths[1:]):
            return lengths[0]
        return self._recorder.pure("min", lengths)

    def item(self, index: Any) -> Any:
        return tuple(part.item(index) for part in self.parts)

    def finish(self, recorder: Recorder) -> None:
        super().finish(recorder)
        lengths = [part.length() for part in self.parts]
        if self._strict and not all(self._are_same(lengths[0], length) for length in lengths[1:]):
            recorder.pure("check_lengths", lengths)

    def _are_same(self, left: Any, right: Any) -> bool:
        recorder = self._recorder
        return are_same(recorder, *(recorder.value_of(part) if type(part) is Proxy else part for part in (left, right)))


class ReversedItems(IteratorItems):
    """``reversed(items)``, as long as ``items`` was when it began."""

    def __init__(self, recorder: Recorder, items: UnknownItems) -> None:
        super().__init__(recorder)
        if isinstance(items, IteratorItems):
            raise recorder.stop("reversed() of an iterator", "go over a list from its end")
        self._items = items
        self._count = items.length()
        self.parts = (items,)

    def length(self) -> Any:
        return self._count

    def item(self, index: Any) -> Any:
        last = self._recorder.pure("sub", (self._count, 1), total=True)
        return self._items.item(self._recorder.pure("sub", (last, index), total=True))

    def read_live(self) -> bool:
        if self._items.read_live():
            raise self._recorder.stop(
                "a round may change the list that the loop goes over from its end", "go over a copy: list(items)"
            )
        return False


class RangeItems(UnknownItems):
    """``range(start, stop)`` of whole numbers."""

    def __init__(self, recorder: Recorder, start: Any, stop: Any) -> None:
        self._recorder = recorder
        self._start = start
        self._count = stop
        if not (
            type(start) is int and start == 0 and type(stop) is Proxy and is_count(recorder, recorder.value_of(stop))
        ):
            self._count = recorder.pure("max", (0, recorder.pure("sub", (stop, start), total=True)), total=True)

    def length(self) -> Any:
        return self._count

    def item(self, index: Any) -> Any:
        known = type(self._start) is int and self._start == 0
        return index if known else _add(self._recorder, index, self._start)


def unknown_items(recorder: Recorder, items: Any) -> UnknownItems | None:
    """``items`` where their number is not known; None where it is, or where they are no such thing."""
    if isinstance_of_unknown(items):
        return items
    if issubclass(type(items), HoldsUnknownItems):
        return items.as_items()
    if type(items) is Proxy:
        kind = symbol(items).type
        if recorder.is_known(items):
            return None
        if kind == ANY or isinstance(kind, JsonType):
            return None if symbol(items).constant else ObjectItems(recorder, items)
        return ListItems(recorder, items) if kind == TEXT or isinstance(kind, ListType) else None
    return ListItems(recorder, items) if is_grown(items) else None


def taken_items(recorder: Recorder, items: Any) -> UnknownItems | None:
    """``unknown_items``, which are gone over now: an iterator can't be another time."""
    found = unknown_items(recorder, items)
    if isinstance(found, IteratorItems):
        if found.used or recorder.regions.is_older(found):
            raise recorder.stop(
                "an iterator whose number of items only a run decides is gone over again, or in a part of the program "
                "that it is older than",
                "make it where it is gone over: for x in enumerate(items)",
            )
        if found.is_stale():
            raise recorder.stop(
                "a list whose length only a run decides is changed after an iterator over it was made",
                "make the iterator where it is gone over: for x in enumerate(items)",
            )
        found.used = True
    return found


def listed_items(recorder: Recorder, items: Any) -> UnknownItems | None:
    """The same, also of a list that is known where that can be a value; None where it can't."""
    found = taken_items(recorder, items)
    if found is None and is_value_list(items) and id(items) not in recorder.foreign:
        return ListItems(recorder, items)
    return found


def isinstance_of_unknown(items: Any) -> bool:
    """Whether ``items`` is an ``UnknownItems``; asks for its type only."""
    return issubclass(type(items), UnknownItems)


def whole(value: Any) -> bool:
    """Whether ``value`` is a whole number."""
    return type(value) in (int, bool) or (type(value) is Proxy and symbol(value).type in (INT, BOOL))


def _add(recorder: Recorder, left: Any, right: Any) -> Any:
    return recorder.pure("add", (left, right), total=True)
