"""Conditions and loops in transformed code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lmc.frontend.base import Base
from lmc.frontend.branches import Branches
from lmc.frontend.growing import TYPED_LIST, grown, is_grown
from lmc.frontend.harmless import is_harmless
from lmc.frontend.live_iterators import live_iterator, unchanged
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, holds_proxy, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.unknown_items import CAUSE, REMEDY, isinstance_of_unknown
from lmc.ir.builtins import lookup
from lmc.ir.types import ANY, BOOL, NONE, TEXT, JsonType, ListType
from lmc.ir.wording import with_article, with_count


class Iteration(Base):
    """The part of ``Operators`` that says which way a condition goes, and what a loop goes over."""

    def truth(self, value: Any) -> bool:
        """Which way a condition goes."""
        recorder = self.recorder
        if recorder is None:
            return bool(value)
        recorder.step()
        if type(value) is bool:
            return value
        value = self.settled(value)
        if type(value) is Proxy and symbol(value).type == NONE:
            return False
        if type(value) is Proxy:
            return self._known_truth(recorder, value)
        if issubclass(type(value), Handle) or is_harmless(value):
            self.check_unchanged(recorder, value)
            return bool(value)
        raise self.foreign_operator(recorder, "bool", value)

    def _known_truth(self, recorder: Recorder, value: Proxy) -> bool:
        """The truth of a symbolic value that follows from the arguments. Breaks before the graph computes any other."""
        use = "which way the program goes depends on it"
        if symbol(value).expression is None:
            raise recorder.unknown(value, use)
        return bool(recorder.specialise(self.as_bool(recorder, value), use))

    def iterate(self, items: Any) -> Iterable[Any]:
        """Return an iterable over ``items`` between whose steps the program may run, and change them."""
        recorder = self.recorder
        if recorder is None:
            return items
        if self.settled(items) is not items:
            steps = self.taken(items)
            return unchanged(recorder, items, steps) if is_grown(items) else steps
        live = live_iterator(recorder, items)
        return self.taken(items) if live is None else self._checked(recorder, items, live)

    def taken(self, items: Any) -> Iterable[Any]:
        """Return an iterable over ``items`` that is exhausted before anything else of the program runs."""
        recorder = self.recorder
        if recorder is None:
            return items
        items = self.settled(items)
        if isinstance_of_unknown(items):
            raise recorder.stop(CAUSE, REMEDY)
        if type(items) is Proxy:
            return recorder.born(self._symbolic_items(recorder, items))
        if issubclass(type(items), Branches):
            return items
        return self._checked(recorder, items, items)

    def _checked(self, recorder: Recorder, items: Any, steps: Iterable[Any]) -> Iterable[Any]:
        self.check_iterable(recorder, items)
        return self.watched(recorder, items, steps)

    def spread(self, items: Any) -> Iterable[Any]:
        """The items of ``items``, to be put into a list."""
        recorder = self.recorder
        if recorder is None or is_grown(items):
            return items
        if type(items) is Proxy and has_unknown_length(recorder, items):
            return [grown(recorder, items)]
        return self.taken(items)

    def watched(self, recorder: Recorder, owner: Any, items: Iterable[Any]) -> Iterable[Any]:
        """``items`` of ``owner``, with a look at each step whether a call may have changed it."""
        if id(owner) not in recorder.foreign or id(owner) in recorder.argument_parts:
            return items

        def steps() -> Iterator[Any]:
            for item in items:
                yield item
                self.check_unchanged(recorder, owner)

        return recorder.born(steps())

    def each(self, items: Any, spec: tuple[Any, ...]) -> Iterator[Any]:
        """What ``for a, b in items`` goes over: items that Python can unpack."""
        for item in self.iterate(items):
            yield item if self.recorder is None else self._spread(item, spec)

    def unpack(self, value: Any, spec: tuple[Any, ...]) -> Iterable[Any]:
        """``a, b = value``: something that Python can unpack."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self.served(tick, _itself, value)
        value = self.settled(value)
        if type(value) is not Proxy:
            return self.taken(value)
        unpacked = self._unpacked(recorder, value, spec)
        if unpacked is None:
            return self._items_for(recorder, value, spec)
        self.done(tick, unpacked)
        return self._parts_of(recorder, unpacked, spec)

    def mapping(self, value: Any) -> Any:
        """What stands after ``**``."""
        recorder = self.recorder
        if recorder is not None and type(value) is not dict:
            raise recorder.stop(
                f"{with_article(self.describe(value))} stands after `**`",
                "name the arguments, or take them from a dict made here",
            )
        if recorder is not None:
            self.check_unchanged(recorder, value)
        return value

    def _symbolic_items(self, recorder: Recorder, items: Proxy) -> Iterator[Any]:
        count = self._length(recorder, items)
        return (recorder.pure("getitem", (items, index), total=True) for index in range(count))

    def _items_for(self, recorder: Recorder, value: Proxy, spec: tuple[Any, ...]) -> list[Any]:
        unpacked = self._unpacked(recorder, value, spec)
        if unpacked is not None:
            return self._parts_of(recorder, unpacked, spec)
        wanted, star, _nested = spec
        count = self._length(recorder, value)
        if count != wanted if star is None else count < wanted - 1:
            raise recorder.stop(
                f"{with_count(wanted, 'name')} can't take {with_count(count, 'value')} apart",
                "name as many as there are",
            )
        return list(self._symbolic_items(recorder, value))

    def _unpacked(self, recorder: Recorder, value: Proxy, spec: tuple[Any, ...]) -> Proxy | None:
        """The list of as many items as there are names; None where the length has to be known during the capture."""
        wanted, star, _nested = spec
        if star is not None or lookup(f"unpack{wanted}") is None or recorder.is_known(value):
            return None
        return recorder.pure(f"unpack{wanted}", (value,))

    def _parts_of(self, recorder: Recorder, unpacked: Proxy, spec: tuple[Any, ...]) -> list[Any]:
        return [recorder.pure("getitem", (unpacked, index), total=True) for index in range(spec[0])]

    def _spread(self, value: Any, spec: tuple[Any, ...]) -> Any:
        recorder = self.recorder
        assert recorder is not None
        if type(value) is Proxy:
            value = self._items_for(recorder, value, spec)
        count, star, nested = spec
        plain = star is None and any(part is not None for part in nested)
        if plain and type(value) in (list, tuple) and len(value) == count:
            return [
                part if inner is None else self._spread(part, inner) for part, inner in zip(value, nested, strict=True)
            ]
        if star is not None and any(part is not None for part in nested) and holds_proxy(value):
            raise recorder.stop(
                "a starred target with others inside it takes symbolic values apart", "unpack in two steps"
            )
        return self.taken(value)

    def _length(self, recorder: Recorder, items: Proxy) -> int:
        kind = symbol(items).type
        if kind == ANY or (kind != TEXT and not isinstance(kind, ListType)):
            raise recorder.stop(
                f"{symbol(items).origin} is taken item by item, but its items are known only when the program runs",
                f"{TYPED_LIST}; or use one item at a time: value[0]",
            )
        return recorder.specialise(recorder.length(items), "how often the program goes round depends on it")

    def as_bool(self, recorder: Recorder, value: Proxy) -> Proxy:
        """``bool(value)``."""
        return value if symbol(value).type == BOOL else recorder.pure("bool", (value,))


def _itself(value: Any) -> Any:
    return value


def has_unknown_length(recorder: Recorder, items: Proxy) -> bool:
    """Whether only a run decides how many items it has."""
    found = symbol(items)
    kind = found.type
    may_have_items = kind in (TEXT, ANY) or isinstance(kind, (ListType, JsonType))
    return may_have_items and not found.constant and not recorder.is_known(items)
