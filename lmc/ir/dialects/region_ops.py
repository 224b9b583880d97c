"""Control flow: ops that run their regions once, several times, for each element of a list, or not at all.

A region sees the values of the blocks around it. What it gives is what its terminator lists; a region of ``cf.cond``
or ``cf.loop`` may end in ``lm.return`` or ``lm.break`` instead: then the program, or its captured part, ends there,
however deep that is; such an op leaves (``RegionOp.leaves``).

Where a value goes to a place with a type of its own (a parameter, a result), it has that type, or the place is
``!any``: so values of different types can meet.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from lmc.ir.cached import cached_property
from lmc.ir.core import Attribute, Block, Op, Value, arguments, attribute, operand, operands, region, register, walk
from lmc.ir.dialects.core_ops import AssumeOp, HostCallOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.dialects.rules import expect_flag
from lmc.ir.types import ANY, BOOL, INT, ListType, Type, fits, type_of


@register("cf.yield", ends=("region",))
class YieldOp(Op):
    """End a region with its results: values and literals."""

    values: tuple[Attribute | Value, ...] = arguments()

    def verify(self) -> None:
        if self.results:
            raise self.fail("has no results")


@register("cf.condition", ends=("region",))
class ConditionOp(Op):
    """End a loop's condition: if ``flag`` is true, a round begins with ``values``, else they are the results."""

    flag: Value = operand()
    values: tuple[Attribute | Value, ...] = arguments()

    def verify(self) -> None:
        expect_flag(self, self.flag)
        if self.results:
            raise self.fail("has no results")


@register("cf.cond")
class CondOp(RegionOp):
    """Run ``then`` if ``flag`` is true, else ``otherwise``; results are the values that the region yields.

    Each region ends in ``cf.yield`` or leaves, and has no parameters. ``probability`` is that of ``then``, if it
    is known: a hint for speculation (``lmc.ir.semantics.speculation``) without effect on results. The pass
    apply-profile replaces it by a measurement.
    """

    EXCLUSIVE: ClassVar[bool] = True

    flag: Value = operand()
    probability: float | None = attribute(None)
    then: Block = region()
    otherwise: Block = region()

    def verify(self) -> None:
        super().verify()
        expect_flag(self, self.flag)
        if self.probability is not None and not 0.0 <= self.probability <= 1.0:
            raise self.fail(f"probability is {self.probability}", "give a number between 0.0 and 1.0")

    def verify_regions(self) -> None:
        for name, block in (("then", self.then), ("otherwise", self.otherwise)):
            _expect_parameters(self, name, block, ())
            end = block.terminator
            if isinstance(end, YieldOp):
                _expect_flow(self, f"what {name} yields", end.values, "results", _types(self.results))
            elif not isinstance(end, LEAVING):
                raise self.fail(f"{name} ends in {end.NAME}", "end it with cf.yield, lm.return or lm.break")

    def flows(self) -> Iterator[tuple[Value, Value]]:
        for block in self.regions:
            yield from _values_of(zip(_yielded(block), self.results, strict=False))


@register("cf.loop")
class LoopOp(RegionOp):
    """Run ``body`` while ``condition`` holds.

    ``condition`` begins with ``initial``, later with the values that ``body`` yielded, and ends in ``cf.condition``.
    While its flag is true, its values are the parameters of ``body``; once it is false, they are the results. With
    ``limit``, one round more raises ``LoopLimitError``. Both regions may leave instead. ``expected_rounds`` is the
    average number of rounds, if it is known: a hint for plans without effect on results.
    """

    initial: tuple[Attribute | Value, ...] = arguments()
    limit: int | None = attribute(None)
    expected_rounds: float | None = attribute(None)
    condition: Block = region()
    body: Block = region()

    @property
    def raises_itself(self) -> bool:
        return self.limit is not None

    def verify(self) -> None:
        super().verify()
        if self.limit is not None and self.limit < 1:
            raise self.fail(f"limit is {self.limit}", "allow at least one round")
        if self.expected_rounds is not None and not 0.0 <= self.expected_rounds < math.inf:
            raise self.fail(f"expected_rounds is {self.expected_rounds}", "give a finite number from 0.0 on")

    def verify_regions(self) -> None:
        carried = _types(self.condition.parameters)
        _expect_flow(self, "initial", self.initial, "parameters of condition", carried)
        end = self.condition.terminator
        if isinstance(end, ConditionOp):
            _expect_flow(self, "values of condition", end.values, "parameters of body", _types(self.body.parameters))
            _expect_flow(self, "values of condition", end.values, "results", _types(self.results))
        elif not isinstance(end, LEAVING):
            raise self.fail(f"condition ends in {end.NAME}", "end it with cf.condition, lm.return or lm.break")
        end = self.body.terminator
        if isinstance(end, YieldOp):
            _expect_flow(self, "what body yields", end.values, "parameters of condition", carried)
        elif not isinstance(end, LEAVING):
            raise self.fail(f"body ends in {end.NAME}", "end it with cf.yield, lm.return or lm.break")

    def flows(self) -> Iterator[tuple[Value, Value]]:
        yield from _values_of(zip(self.initial, self.condition.parameters, strict=True))
        end = self.condition.terminator
        if isinstance(end, ConditionOp):
            yield from _values_of(zip(end.values, self.body.parameters, strict=True))
            yield from _values_of(zip(end.values, self.results, strict=True))

    def carried(self) -> Iterator[tuple[Value, Value]]:
        yield from _values_of(zip(_yielded(self.body), self.condition.parameters, strict=False))


@register("cf.map")
class MapOp(RegionOp):
    """Run ``body`` for each element of ``lists`` at the same time; results are lists of its values, in order.

    Parameters of ``body`` are the index and one element of each list. There are as many elements as the shortest list
    has; with ``strict``, lists of different lengths raise ``ValueError``, as ``zip`` does.
    """

    lists: tuple[Value, ...] = operands()
    strict: bool = attribute(False)
    body: Block = region()

    @property
    def raises_itself(self) -> bool:
        return self.strict and len(self.lists) > 1

    def verify(self) -> None:
        super().verify()
        _expect_lists(self, self.lists)
        for value in self.results:
            if not isinstance(value.type, ListType):
                raise self.fail(f"result {value} is {value.type}", "results are lists of what body yields")

    def verify_regions(self) -> None:
        yielded = _yielded_by_elements(self, self.lists, self.body)
        elements = [value.type.element for value in self.results if isinstance(value.type, ListType)]
        _expect_flow(self, "what body yields", yielded, "elements of results", elements)

    def flows(self) -> Iterator[tuple[Value, Value]]:
        yield from zip(self.lists, self.body.parameters[1:], strict=True)
        yield from _values_of(zip(_yielded(self.body), self.results, strict=True))


@register("cf.race")
class RaceOp(RegionOp):
    """Run ``body`` for each element of ``lists`` at the same time until one is good.

    ``body`` is that of ``cf.map``, but the first value it yields says whether the element is good. The good element of
    the lowest index wins, so that runs are repeatable; those after it are cancelled. The first result is true if there
    is a good element; the others are the values of the winner, or of the last element if there is none. Lists without
    elements raise ``InputError``. Nothing in ``body`` may write, since elements may be cancelled.
    """

    lists: tuple[Value, ...] = operands()
    body: Block = region()

    @property
    def raises_itself(self) -> bool:
        return True

    def verify(self) -> None:
        super().verify()
        _expect_lists(self, self.lists)
        if not self.results:
            raise self.fail("has no results", "the first one is whether an element is good")
        expect_flag(self, self.results[0])

    def verify_regions(self) -> None:
        yielded = _yielded_by_elements(self, self.lists, self.body)
        if not yielded:
            raise self.fail("body yields nothing", "the first value says whether the element is good")
        if _types(yielded[:1]) != [BOOL]:
            raise self.fail(f"the first value that body yields is {_listed(_types(yielded[:1]))}, {BOOL} is needed")
        _expect_flow(self, "what body yields", yielded, "results", _types(self.results))
        if self.writes:
            raise self.fail("an op in body writes", "elements may be cancelled: write after the race")
        if self.changes_objects:
            raise self.fail("an op in body may change an object", "elements may be cancelled: change it after the race")

    def flows(self) -> Iterator[tuple[Value, Value]]:
        yield from zip(self.lists, self.body.parameters[1:], strict=True)
        yield from _values_of(zip(_yielded(self.body), self.results, strict=True))


@register("cf.try")
class TryOp(RegionOp):
    """Run ``body``, and turn an exception that it raises into values.

    If ``body`` reaches its end, results are true, none and the values it yields. If it raises an ``Exception``, or
    with ``base`` any ``BaseException``, they are false, that exception and ``fallback``. Errors that end the run
    (``LmcError.ends_run``) are never caught. ``body`` ends in ``cf.yield`` and does not leave the program.

    Of several ops in ``body`` that raise, the first one in program order counts. So passes keep the order of all ops in
    it that may raise, model calls included, and move none of them in or out.
    """

    EXCLUSIVE: ClassVar[bool] = True

    fallback: tuple[Attribute | Value, ...] = arguments()
    base: bool = attribute(False)
    body: Block = region()

    @property
    def may_raise(self) -> bool:
        """If an exception may pass through: one that ends the run, or without ``base`` one that is no ``Exception``."""
        return self.may_exit

    @cached_property
    def may_exit(self) -> bool:
        inner = walk(self.regions)
        return any(isinstance(op, AssumeOp) for op in inner) if self.base else super().may_exit

    @cached_property
    def gives_objects(self) -> bool:
        """An exception of a host function is an object of its own, which others may change."""
        return any(isinstance(op, HostCallOp) for op in walk(self.regions))

    def verify(self) -> None:
        super().verify()
        if _types(self.results[:2]) != [BOOL, ANY]:
            raise self.fail(
                f"the first results are ({_listed(_types(self.results[:2]))}), should be ({BOOL}, {ANY})",
                "they say whether body came to its end, and what it raised",
            )

    def verify_regions(self) -> None:
        _expect_parameters(self, "body", self.body, ())
        if self.leaves:
            raise self.fail("body leaves the program", "leave after it, in a cf.cond on its first result")
        end = self.body.terminator
        if not isinstance(end, YieldOp):
            raise self.fail(f"body ends in {end.NAME}", "end it with cf.yield")
        places = _types(self.results[2:])
        _expect_flow(self, "what body yields", end.values, "results after the first two", places)
        _expect_flow(self, "fallback", self.fallback, "results after the first two", places)

    def flows(self) -> Iterator[tuple[Value, Value]]:
        yield from _values_of(zip(self.fallback, self.results[2:], strict=True))
        yield from _values_of(zip(_yielded(self.body), self.results[2:], strict=True))


def guarded_ops(body: Block) -> frozenset[Op]:
    """The ops of a function in the body of a ``cf.try``, at any depth. Linear."""
    guarded: set[Op] = set()
    for op in walk((body,)):
        if op.REGION_FIELDS and (isinstance(op, TryOp) or op in guarded):
            guarded.update(inner for region in op.regions for inner in region.ops)
    return frozenset(guarded)


def _yielded(block: Block) -> tuple[Attribute | Value, ...]:
    """Return what a region yields; nothing where it ends otherwise."""
    return block.terminator.values if isinstance(block.terminator, YieldOp) else ()


def _values_of(flows: Iterable[tuple[Attribute | Value, Value]]) -> Iterator[tuple[Value, Value]]:
    """``flows`` without those of literals."""
    return ((given, place) for given, place in flows if isinstance(given, Value))


def _expect_lists(op: Op, lists: Sequence[Value]) -> None:
    if not lists:
        raise op.fail("no lists", "give at least one")
    for value in lists:
        if not isinstance(value.type, ListType):
            raise op.fail(f"{value} is {value.type}, a list is needed", 'make one with py.call "list"')


def _yielded_by_elements(op: RegionOp, lists: Sequence[Value], body: Block) -> tuple[Attribute | Value, ...]:
    """Return what ``body`` yields, whose elements run at the same time."""
    elements = [value.type.element for value in lists if isinstance(value.type, ListType)]
    _expect_parameters(op, "body", body, (INT, *elements))
    if op.leaves:
        raise op.fail("a body whose elements run at the same time leaves the program", "leave before or after it")
    end = body.terminator
    if not isinstance(end, YieldOp):
        raise op.fail(f"body ends in {end.NAME}", "end it with cf.yield")
    return end.values


def _expect_parameters(op: Op, name: str, block: Block, given: Sequence[Type]) -> None:
    types = _types(block.parameters)
    if len(types) != len(given) or not all(map(fits, given, types)):
        raise op.fail(f"parameters of {name} are ({_listed(types)}), should be ({_listed(given)})")


def _expect_flow(op: Op, what: str, values: Sequence[Attribute | Value], where: str, places: Sequence[Type]) -> None:
    found = _types(values)
    if len(found) != len(places) or not all(map(fits, found, places)):
        raise op.fail(f"{what} are ({_listed(found)}), but {where} ({_listed(places)})", f"a place of {ANY} takes any")


def _types(values: Sequence[Attribute | Value]) -> list[Type]:
    return [value.type if isinstance(value, Value) else type_of(value) for value in values]


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))
