"""The ids of a function: each is there once, but for ways that exclude each other.

These are the regions of a ``cf.cond``, and what stands under flags that tell the same: behind a region
that is left with a ``break`` of the program, the rest of the round is a region of its own, under a flag that says that
the first one was not taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.dialects.region_ops import CondOp, YieldOp
from lmc.ir.dialects.regions import LEAVING, RegionOp

_MAX_DEPTH = 64
_UNKNOWN: Any = object()


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """An op is in one of some regions of ``op``, or behind ``op`` where only these continue; ``outer`` as well."""

    op: RegionOp
    regions: frozenset[int]
    outer: _Way | None


class UniqueIds:
    """The ids of a function so far, with their occurrences, and where they stand."""

    def __init__(self) -> None:
        self._way: _Way | None = None
        self._open: list[_Way | None] = []
        self._places: dict[object, list[_Way | None]] = {}
        self._made: dict[Value, tuple[CondOp | PyCallOp, int]] = {}

    def take(self, key: object) -> bool:
        """Return whether no other op has ``key`` that may run where one here does."""
        places = self._places.setdefault(key, [])
        if places and not all(self._exclude(_regions(self._way), _regions(place)) for place in places):
            return False
        places.append(self._way)
        return True

    def define(self, op: Op) -> None:
        """``op`` has the results that flags may follow from."""
        if isinstance(op, (CondOp, PyCallOp)):
            self._made.update((value, (op, index)) for index, value in enumerate(op.results))

    def enter(self, op: RegionOp | None, number: int) -> None:
        """A block begins: region ``number`` of ``op``."""
        self._open.append(self._way)
        if op is not None and op.EXCLUSIVE:
            self._way = _Way(op, frozenset({number}), self._way)

    def leave(self) -> None:
        """It ends."""
        self._way = self._open.pop()

    def join(self, op: RegionOp, goes_on: Sequence[bool]) -> None:
        """The regions of ``op`` have ended: behind it, one was taken from which the program goes on."""
        if op.EXCLUSIVE and not all(goes_on):
            self._way = _Way(op, frozenset(number for number, stays in enumerate(goes_on) if stays), self._way)

    def _exclude(self, left: Mapping[RegionOp, frozenset[int]], right: Mapping[RegionOp, frozenset[int]]) -> bool:
        """Return whether no run comes to ``right`` and then to ``left``, which stands behind it."""
        if any(_ends(op, regions) and left.get(op) != regions for op, regions in right.items()):
            return True
        if any(not regions & right[op] for op, regions in left.items() if op in right):
            return True
        return self._contradicts(left, right) or self._contradicts(right, left)

    def _contradicts(self, given: Mapping[RegionOp, frozenset[int]], other: Mapping[RegionOp, frozenset[int]]) -> bool:
        """Return whether flags that are known in ``given`` lead to other regions than those of ``other``."""
        flags = {op.flag: 0 in regions for op, regions in given.items() if isinstance(op, CondOp) and len(regions) == 1}
        for op, regions in other.items():
            if isinstance(op, CondOp):
                flag = self._known(op.flag, flags, 0)
                if flag is not _UNKNOWN and (0 if flag else 1) not in regions:
                    return True
        return False

    def _known(self, value: Any, flags: Mapping[Value, bool], depth: int) -> Any:
        """The value that follows from flags."""
        if not isinstance(value, Value):
            return value
        if value in flags:
            return flags[value]
        if depth > _MAX_DEPTH or value not in self._made:
            return _UNKNOWN
        op, index = self._made[value]
        if isinstance(op, CondOp):
            flag = self._known(op.flag, flags, depth + 1)
            regions = op.regions if flag is _UNKNOWN else [op.then if flag else op.otherwise]
            ends = [region.terminator for region in regions]
            found = [self._known(end.values[index], flags, depth + 1) for end in ends if isinstance(end, YieldOp)]
        else:
            found = [self._called(op, flags, depth)]
        return found[0] if found and all(each is found[0] or each == found[0] for each in found) else _UNKNOWN

    def _called(self, op: PyCallOp, flags: Mapping[Value, bool], depth: int) -> Any:
        if op.function not in ("not", "eq", "choose", "and", "or"):
            return _UNKNOWN
        first, *rest = (self._known(value, flags, depth + 1) for value in op.arguments)
        if op.function == "choose":
            return _UNKNOWN if first is _UNKNOWN else rest[0 if first else 1]
        if op.function in ("and", "or") and (first is _UNKNOWN or rest[0] is _UNKNOWN):
            decides = op.function == "or"
            return decides if any(type(each) is bool and each is decides for each in (first, rest[0])) else _UNKNOWN
        if first is _UNKNOWN or _UNKNOWN in rest:
            return _UNKNOWN
        if op.function == "not":
            return not first
        if op.function == "eq":
            return first == rest[0]
        return (first and rest[0]) if op.function == "and" else first or rest[0]


def _ends(op: RegionOp, regions: frozenset[int]) -> bool:
    """Return whether the program ends at the end of these regions."""
    return all(isinstance(op.regions[number].terminator, LEAVING) for number in regions)


def _regions(way: _Way | None) -> dict[RegionOp, frozenset[int]]:
    """The regions that a way leads through, by op."""
    found: dict[RegionOp, frozenset[int]] = {}
    while way is not None:
        found[way.op] = found.get(way.op, way.regions) & way.regions
        way = way.outer
    return found
