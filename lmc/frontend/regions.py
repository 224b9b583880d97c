"""The open regions of a capture: blocks that are being built, and what is put back when one of them is left.

A region is traced by running the user's code on the capture's own objects: handles, lists, dicts. What it changes of
those is kept from the first change on (``touch``), so that the other arm of a condition finds them as they were. Values
of a region are not visible outside: whatever remembers one forgets it when the region is left (``note``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from lmc.frontend.core import Core
from lmc.frontend.proxy import Proxy
from lmc.ir.builder import Builder
from lmc.ir.core import Block, Op, Value

MAX_OPEN = 48
"""How deep conditions and loops may stand in each other; the verifier allows somewhat more."""
_MISSING = object()
_HOLDERS = frozenset({list, dict, set, Core})


@dataclass(eq=False)
class Region:
    """One block under construction.

    ``touched`` holds each older object that was changed in it and what that was before; ``born`` the containers,
    iterators and handles that were made in it, as far as that is known; ``holds`` what is true or false in it.
    """

    number: int
    builder: Builder
    holds: dict[Value, bool] = field(default_factory=dict[Value, bool])
    born: dict[int, Any] = field(default_factory=dict[int, Any])
    touched: dict[int, tuple[Any, Any]] = field(default_factory=dict[int, tuple[Any, Any]])
    counts: dict[Any, Any] = field(default_factory=dict[Any, Any])
    undo: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    def block(self, end: Op | None = None) -> Block:
        """The block, with ``end`` behind what it holds."""
        ops = (*self.builder.ops, end) if end is not None else tuple(self.builder.ops)
        return Block(self.builder.parameters, ops)


@dataclass(frozen=True)
class Ended:
    """A region that was left: what each touched object, and each count of ids, was at its end."""

    region: Region
    objects: dict[int, tuple[Any, Any]]
    counts: dict[Any, Any]


class Regions:
    """The stack of open regions; below them is the program's own block, ``root``."""

    def __init__(self, parameters: Sequence[Value], counts: dict[Any, Any]) -> None:
        self.root = Builder(parameters)
        self._counts = counts
        self._open: list[Region] = []
        self._homes: dict[str, int] = {}
        self._visible: set[int] = set()
        self._numbers = count(1)
        self._implied: dict[Value, dict[bool, dict[Value, bool]]] = {}

    @property
    def innermost(self) -> Region | None:
        """The region that ops go to; None where that is the program's own block."""
        return self._open[-1] if self._open else None

    @property
    def builder(self) -> Builder:
        """Where ops go."""
        return self._open[-1].builder if self._open else self.root

    @property
    def builders(self) -> list[Builder]:
        """Of all blocks under construction, the outermost first."""
        return [self.root, *(region.builder for region in self._open)]

    @property
    def depth(self) -> int:
        """How many regions are open."""
        return len(self._open)

    def open(self, parameters: Sequence[Value] = ()) -> Region:
        """Begin a region in the innermost one."""
        region = Region(next(self._numbers), self.root.nested(parameters))
        self._push(region)
        for value in parameters:
            self._homes[value.name] = region.number
        return region

    def leave(self) -> Ended:
        """End the innermost region, and put everything back as it was when it began."""
        region = self._open[-1]
        objects = {key: (held, _copy(held)) for key, (held, _) in region.touched.items()}
        counts = {base: self._counts[base] for base in region.counts}
        for held, before in region.touched.values():
            put_back(held, before)
        for base, before in region.counts.items():
            if before is _MISSING:
                del self._counts[base]
            else:
                self._counts[base] = before
        self._pop()
        return Ended(region, objects, counts)

    def reopen(self, region: Region) -> None:
        """Let ops go to a region that was left, behind those it holds, until ``close``."""
        self._push(region)

    def close(self) -> None:
        """End the innermost region again; nothing that it could change was touched."""
        self._pop()

    def defined(self, values: Sequence[Value]) -> None:
        """Note where ``values`` were made."""
        if self._open:
            number = self._open[-1].number
            self._homes.update((value.name, number) for value in values)

    def sees(self, value: Value) -> bool:
        """Whether ``value`` may be used here."""
        home = self._homes.get(value.name)
        return home is None or home in self._visible

    def note(self, undo: Callable[[], None]) -> None:
        """Something remembers a value that is made now; ``undo`` lets it forget that."""
        if self._open:
            self._open[-1].undo.append(undo)

    def touch(self, held: Any) -> None:
        """``held``, which the capture made, is about to change."""
        if not self._open:
            return
        region = self._open[-1]
        if id(held) not in region.touched and id(held) not in region.born:
            region.touched[id(held)] = (held, _copy(held))

    def born(self, made: Any) -> None:
        """``made``, a container, an iterator or a part of a handle, is new: nothing refers to it but what runs now."""
        if self._open and (type(made) in _HOLDERS or is_iterator(made)):
            self._open[-1].born[id(made)] = made

    def hand_out(self, ended: Region) -> None:
        """What was made in a region that was left belongs to the one around it now."""
        if self._open:
            self._open[-1].born.update(ended.born)

    def decide(self, value: Value, truth: bool) -> None:
        """In the innermost region ``value`` is known, and with it what follows."""
        holds = self._open[-1].holds
        found = [(value, truth)]
        while found:
            known, as_what = found.pop()
            if known not in holds:
                holds[known] = as_what
                found += self._implied.get(known, {}).get(as_what, {}).items()

    def imply(self, value: Value, truth: bool, other: Value, other_truth: bool) -> None:
        """Where ``value`` is ``truth``, ``other`` is ``other_truth``."""
        self._implied.setdefault(value, {}).setdefault(truth, {})[other] = other_truth

    def implies(self, value: Value, other: Value) -> bool:
        """Whether ``other`` is true where ``value`` is."""
        return value == other or self._implied.get(value, {}).get(True, {}).get(other, False)

    def known(self, value: Value) -> bool | None:
        """Whether ``value`` is true here, where an open condition has decided that."""
        return next((region.holds[value] for region in reversed(self._open) if value in region.holds), None)

    def touch_count(self, base: Any) -> None:
        """The number of ids on ``base`` is about to change."""
        if self._open and base not in self._open[-1].counts:
            self._open[-1].counts[base] = self._counts.get(base, _MISSING)

    def is_older(self, held: Any) -> bool:
        """Whether ``held`` may be older than an open construct."""
        return bool(self._open) and id(held) not in self._open[-1].born

    def abandon(self) -> None:
        """Leave all regions: the capture ends before the outermost of them."""
        while self._open:
            self._pop()

    def _push(self, region: Region) -> None:
        self._open.append(region)
        self._visible.add(region.number)

    def _pop(self) -> None:
        region = self._open.pop()
        self._visible.discard(region.number)
        for undo in reversed(region.undo):
            undo()
        region.undo.clear()


def is_iterator(value: Any) -> bool:
    """Whether to go over ``value`` uses it up."""
    return type(value) is not Proxy and hasattr(type(value), "__next__")


def _copy(held: Any) -> Any:
    return held.like() if type(held) is Core else held.copy()


def put_back(held: Any, content: Any) -> None:
    """Make ``held`` (a list, dict or Core) what ``content``, a copy of it, is."""
    if type(held) is Core:
        held.take(content)
    elif type(held) is list:
        held[:] = content
    else:
        held.clear()
        held.update(content)
