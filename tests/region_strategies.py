"""Draws ops with regions for ``modules()``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from lmc.ir.builder import Builder
from lmc.ir.core import Attribute, Block, Effect, HostFunction, Value
from lmc.ir.dialects.core_ops import ContextOp, PyCallOp, UnreachableOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, RaceOp, TryOp, YieldOp
from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, NONE, TEXT, ListType, Type, holds_context, list_of
from tests.ir import region_ops
from tests.strategies import literals, texts, value_types

# Types of what goes into regions and comes out of them.
flowing_types: st.SearchStrategy[list[Type]] = st.lists(
    st.one_of(value_types, st.just(ANY), st.just(CTX), st.just(list_of(CTX))), max_size=2
)
_PROBABILITIES = st.one_of(st.none(), st.floats(0.0, 1.0))
_LITERALS: dict[Type, st.SearchStrategy[Any]] = {
    NONE: st.none(),
    BOOL: st.booleans(),
    INT: st.integers(),
    FLOAT: st.floats(),
    TEXT: texts,
    ANY: literals,
}


class RegionBody(ABC):
    """Draws ops with regions.

    ``_may_leave`` says whether a region may leave the program at this place, ``_may_change`` whether ops on objects may
    stand there.
    """

    _draw: st.DrawFn
    _values: list[Value]
    _hosts: list[HostFunction]
    _may_leave: bool
    _may_change: bool

    @abstractmethod
    def _ops(self, builder: Builder, count: int, depth: int) -> None:
        """Append some ops."""

    @abstractmethod
    def _value(self, kind: Type) -> Value:
        """A new value."""

    @abstractmethod
    def _emit(self, builder: Builder, kind: type[Any], types: list[Type], **fields: Any) -> None:
        """Append an op."""

    @abstractmethod
    def _leave(self, builder: Builder) -> None:
        """Append an ``lm.return`` or an ``lm.break``."""

    def _region_op(self, builder: Builder, depth: int) -> None:
        kinds = [self._cond, self._loop, self._map, self._race, self._try, self._of_tests]
        self._draw(st.sampled_from(kinds))(builder, depth - 1)

    def _cond(self, builder: Builder, depth: int) -> None:
        flag, types = self._of(builder, BOOL), self._draw(flowing_types)
        arms = [self._region(depth, (), types) for _ in range(2)]
        probability = self._draw(_PROBABILITIES)
        self._emit(builder, CondOp, types, flag=flag, probability=probability, then=arms[0], otherwise=arms[1])

    def _loop(self, builder: Builder, depth: int) -> None:
        carried, given = self._draw(flowing_types), self._draw(flowing_types)
        initial = self._flowing(builder, carried)
        condition = self._region(depth, carried, given, ConditionOp)
        body = self._region(depth, given, carried)
        hints = {
            "limit": self._draw(st.one_of(st.none(), st.integers(1, 5))),
            "expected_rounds": self._draw(st.one_of(st.none(), st.floats(0.0, 9.0))),
        }
        self._emit(builder, LoopOp, given, initial=initial, condition=condition, body=body, **hints)

    def _map(self, builder: Builder, depth: int) -> None:
        lists, parameters, types = self._lists(builder)
        body = self._concurrent(depth, parameters, types)
        strict = self._draw(st.booleans())
        self._emit(builder, MapOp, list(map(list_of, types)), lists=lists, body=body, strict=strict)

    def _race(self, builder: Builder, depth: int) -> None:
        lists, parameters, types = self._lists(builder)
        hosts = self._hosts
        may_change, self._may_change = self._may_change, False
        self._hosts = [host for host in hosts if host.effect is not Effect.WRITES]
        body = self._concurrent(depth, parameters, [BOOL, *types])
        self._hosts, self._may_change = hosts, may_change
        self._emit(builder, RaceOp, [BOOL, *types], lists=lists, body=body)

    def _try(self, builder: Builder, depth: int) -> None:
        types = self._draw(flowing_types)
        fallback, base = self._flowing(builder, types), self._draw(st.booleans())
        body = self._concurrent(depth, (), types)
        self._emit(builder, TryOp, [BOOL, ANY, *types], fallback=fallback, base=base, body=body)

    def _of_tests(self, builder: Builder, depth: int) -> None:
        kind = self._draw(st.sampled_from([region_ops.MapOp, region_ops.BothOp]))
        over = [value for value in self._values if not holds_context(value.type)][:2]
        given, types = self._draw(flowing_types), self._draw(flowing_types)
        regions = {name: self._concurrent(depth, given, types, region_ops.YieldOp) for name in kind.REGION_FIELDS}
        self._emit(builder, kind, self._draw(flowing_types), over=tuple(over), **regions)

    def _lists(self, builder: Builder) -> tuple[tuple[Value, ...], list[Type], list[Type]]:
        """Lists, the types of a body's parameters over them, and those of what it gives."""
        lists = [value for value in self._values if isinstance(value.type, ListType)]
        chosen = self._draw(st.lists(st.sampled_from(lists), max_size=2)) if lists else []
        elements = [value.type.element for value in chosen if isinstance(value.type, ListType)]
        if not chosen:
            elements = [self._draw(value_types)]
            chosen = [self._of(builder, list_of(elements[0]))]
        return tuple(chosen), [INT, *elements], self._draw(flowing_types)

    def _concurrent(self, depth: int, parameters: Sequence[Type], gives: Sequence[Type], end: Any = YieldOp) -> Block:
        may_leave, self._may_leave = self._may_leave, False
        block = self._region(depth, parameters, gives, end)
        self._may_leave = may_leave
        return block

    def _region(self, depth: int, parameters: Sequence[Type], gives: Sequence[Type], end: Any = YieldOp) -> Block:
        outside = list(self._values)
        inner = Builder([self._value(kind) for kind in parameters])
        self._ops(inner, self._draw(st.integers(0, 3)), depth)
        if self._may_leave and self._draw(st.integers(0, 5)) == 0:
            if self._draw(st.booleans()):
                self._leave(inner)
            else:
                inner.emit(UnreachableOp)
        elif end is ConditionOp:
            inner.emit(end, flag=self._of(inner, BOOL), values=self._flowing(inner, gives))
        else:
            inner.emit(end, values=self._flowing(inner, gives) if end is YieldOp else self._of_all(inner, gives))
        self._values = outside
        return inner.block()

    def _flowing(self, builder: Builder, places: Sequence[Type]) -> tuple[Attribute | Value, ...]:
        """Values and literals that can go where those types are."""
        found: list[Attribute | Value] = []
        for place in places:
            if place in _LITERALS and self._draw(st.booleans()):
                found.append(self._draw(_LITERALS[place]))
                continue
            known = [value for value in self._values if not holds_context(value.type)]
            anything = place == ANY and known and self._draw(st.booleans())
            found.append(self._draw(st.sampled_from(known)) if anything else self._of(builder, place))
        return tuple(found)

    def _of_all(self, builder: Builder, kinds: Sequence[Type]) -> tuple[Value, ...]:
        return tuple(self._of(builder, kind) for kind in kinds)

    def _of(self, builder: Builder, kind: Type) -> Value:
        """A value of that type, an earlier one where there is one."""
        fitting = [value for value in self._values if value.type == kind]
        if fitting:
            return self._draw(st.sampled_from(fitting))
        if kind == CTX:
            self._emit(builder, ContextOp, [CTX])
        elif kind == list_of(CTX):
            context, items = self._of(builder, CTX), self._of(builder, list_of(ANY))
            outside = list(self._values)
            body = Builder([self._value(INT), self._value(ANY)])
            body.emit(YieldOp, values=(context,))
            self._values = outside
            self._emit(builder, MapOp, [kind], lists=(items,), body=body.block())
        else:
            self._emit(builder, PyCallOp, [kind], function="list")
        return self._values[-1]
