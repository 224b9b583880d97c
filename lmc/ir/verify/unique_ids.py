"""The ids of a function: each is there once, but for ways that exclude each other.

These are the regions of a ``cf.cond``, and what stands under flags that tell the same: behind a region
that is left with a ``break`` of the program, the rest of the round is a region of its own, under a flag that says that
the first one was not taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmc.ir.core import Op, Value
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, YieldOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.types import BOOL

_MAX_DEPTH = 64
_MAX_STEPS = 5000


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A value that only a run knows, or its negation."""

    value: Value
    negated: bool = False


@dataclass(slots=True)
class _Facts:
    """Flags that are ``known``, and the values ``found`` from them; ``loops`` had a round in which they were so."""

    known: dict[Value, bool]
    loops: Collection[LoopOp] = ()
    found: dict[Value, Any] = field(default_factory=dict[Value, Any])


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
        self._open: list[tuple[_Way | None, RegionOp | None, int]] = []
        self._ended: dict[tuple[RegionOp, int], _Way] = {}
        self._places: dict[object, list[_Way | None]] = {}
        self._made: dict[Value, tuple[CondOp | LoopOp | PyCallOp, int]] = {}
        self._steps = 0

    def take(self, key: object) -> bool:
        """Return whether no other op has ``key`` that may run where one here does."""
        places = self._places.setdefault(key, [])
        here = self._regions(self._way) if places else {}
        if not all(self._exclude(here, self._regions(place)) for place in places):
            return False
        places.append(self._way)
        return True

    def define(self, op: Op) -> None:
        """``op`` has the results that flags may follow from."""
        if isinstance(op, (CondOp, LoopOp, PyCallOp)):
            self._made.update((value, (op, index)) for index, value in enumerate(op.results))

    def enter(self, op: RegionOp | None, number: int) -> None:
        """A block begins: region ``number`` of ``op``."""
        self._open.append((self._way, op, number))
        if op is not None and (op.EXCLUSIVE or isinstance(op, LoopOp)):
            self._way = _Way(op, frozenset({number}), self._way)

    def leave(self) -> None:
        """It ends: a run that came through it and goes on took the ways that hold here."""
        inside = self._way
        self._way, op, number = self._open.pop()
        if op is not None and op.EXCLUSIVE and inside is not None and inside.op is not op:
            self._ended[op, number] = inside

    def join(self, op: RegionOp, goes_on: Sequence[bool]) -> None:
        """The regions of ``op`` have ended: behind it, one was taken from which the program goes on."""
        if op.EXCLUSIVE and not all(goes_on):
            self._way = _Way(op, frozenset(number for number, stays in enumerate(goes_on) if stays), self._way)

    def _regions(self, way: _Way | None) -> dict[RegionOp, frozenset[int]]:
        """The regions that a way leads through, by op: those it is in, and those that a run takes to their ends."""
        found: dict[RegionOp, frozenset[int]] = {}
        ways = [way]
        while ways:
            way = ways.pop()
            while way is not None:
                regions = found.get(way.op, way.regions) & way.regions
                if regions != found.get(way.op) and len(regions) == 1:
                    ways.append(self._ended.get((way.op, next(iter(regions)))))
                found[way.op] = regions
                way = way.outer
        return found

    def _exclude(self, left: Mapping[RegionOp, frozenset[int]], right: Mapping[RegionOp, frozenset[int]]) -> bool:
        """Return whether no run comes to ``right`` and then to ``left``, which stands behind it."""
        if any(_ends(op, regions) and left.get(op) != regions for op, regions in right.items()):
            return True
        both = {op: regions & right.get(op, regions) for op, regions in {**right, **left}.items()}
        if not all(taken or isinstance(op, LoopOp) for op, taken in both.items()):
            return True
        flags = [(op.flag, 0 in taken) for op, taken in both.items() if isinstance(op, CondOp)]
        return self._contradict(flags, [op for op in right if isinstance(op, LoopOp)])

    def _contradict(self, flags: Sequence[tuple[Any, bool]], loops: Collection[LoopOp]) -> bool:
        """Return whether it follows, step by step from how they are made, that these flags cannot all be so."""
        self._steps = 0
        known: dict[Value, bool] = {}
        learned = list(flags)
        while learned:
            for flag, expected in learned:
                if (known.setdefault(flag, expected) if isinstance(flag, Value) else bool(flag)) is not expected:
                    return True
            facts = _Facts(known, loops)
            found = [(self._derive(flag, facts, 0), expected) for flag, expected in known.items()]
            learned = [
                (each.value, expected is not each.negated) if isinstance(each, _Symbol) else (each, expected)
                for each, expected in found
            ]
            learned = [(flag, expected) for flag, expected in learned if known.get(flag) is not expected]
        return False

    def _value(self, value: Any, facts: _Facts, depth: int) -> Any:
        """Return the constant that ``value`` is under these facts, or a symbol."""
        if not isinstance(value, Value):
            return value
        if value in facts.known:
            return facts.known[value]
        if value not in facts.found:
            facts.found[value] = self._derive(value, facts, depth)
        return facts.found[value]

    def _derive(self, value: Value, facts: _Facts, depth: int) -> Any:
        """Return the same from how ``value`` is made."""
        self._steps += 1
        if value not in self._made or depth > _MAX_DEPTH or self._steps > _MAX_STEPS:
            return _Symbol(value)
        op, index = self._made[value]
        if isinstance(op, LoopOp):
            return self._left(op, index, facts, depth + 1)
        if isinstance(op, PyCallOp):
            return self._called(op, value, facts, depth + 1)
        found = [
            self._value(region.terminator.values[index], inner, depth + 1)
            for region, inner in zip(op.regions, self._ways(op.flag, facts, depth + 1), strict=True)
            if inner is not None and isinstance(region.terminator, YieldOp)
        ]
        return _same(found, value)

    def _left(self, op: LoopOp, index: int, facts: _Facts, depth: int) -> Any:
        """Return a result of a loop: of the round in which the facts are so where that is the last, else of any."""
        result, passes, ends = op.results[index], op.condition.terminator, op.body.terminator
        if op not in facts.loops or not isinstance(passes, ConditionOp) or not isinstance(ends, YieldOp):
            return _Symbol(result)
        carried: dict[Any, Any] = dict(zip(op.condition.parameters, ends.values, strict=True))
        is_last = self._value(carried.get(passes.flag), facts, depth) is False
        given = passes.values[index]
        found = self._value(carried.get(given, given), facts if is_last else _Facts({}), depth)
        return found if is_last or not isinstance(found, _Symbol) else _Symbol(result)

    def _ways(self, flag: Any, facts: _Facts, depth: int) -> tuple[_Facts | None, _Facts | None]:
        """Return the facts where ``flag`` is true, and where it is false; None where it is not."""
        found = self._value(flag, facts, depth)
        if not isinstance(found, _Symbol):
            return (facts, None) if found else (None, facts)
        if found.value.type != BOOL:
            return facts, facts
        then, otherwise = (_Facts({**facts.known, found.value: value}, facts.loops) for value in (True, False))
        return (otherwise, then) if found.negated else (then, otherwise)

    def _called(self, op: PyCallOp, result: Value, facts: _Facts, depth: int) -> Any:
        if op.function == "choose":
            ways = zip(op.arguments[1:], self._ways(op.arguments[0], facts, depth), strict=True)
            return _same([self._value(value, way, depth) for value, way in ways if way is not None], result)
        if op.function not in ("not", "eq", "and", "or"):
            return _Symbol(result)
        first, *rest = [self._value(value, facts, depth) for value in op.arguments]
        unknown = [each for each in (first, *rest) if isinstance(each, _Symbol)]
        if op.function in ("and", "or"):
            decides = op.function == "or"
            if any(each is decides for each in (first, *rest)):
                return decides
            if len(unknown) == 1 and any(each is (not decides) for each in (first, *rest)):
                return unknown[0]
        if op.function == "not" and unknown and unknown[0].value.type == BOOL:
            return _Symbol(unknown[0].value, not unknown[0].negated)
        if unknown:
            return _Symbol(result)
        if op.function == "not":
            return not first
        if op.function == "eq":
            return first == rest[0]
        return (first and rest[0]) if op.function == "and" else first or rest[0]


def _same(found: list[Any], value: Value) -> Any:
    """Return the one thing that all of ``found`` are, or ``value`` as a symbol."""
    return found[0] if found and all(each is found[0] or each == found[0] for each in found) else _Symbol(value)


def _ends(op: RegionOp, regions: frozenset[int]) -> bool:
    """Return whether the program ends at the end of these regions."""
    return all(isinstance(op.regions[number].terminator, LEAVING) for number in regions)
