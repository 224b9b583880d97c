"""Random programs with control flow that run on the toy engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from lmc.ir.core import Attribute, Block, Value
from lmc.ir.dialects.core_ops import BreakOp, GenOp, HostCallOp, PyCallOp, UnreachableOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, RaceOp, TryOp, YieldOp
from lmc.ir.types import ANY, BOOL, CTX, INT, TEXT, ListType, Type, holds_context, list_of
from tests.program_strategies import Author, Program

_DIMS = Value("dims", list_of(TEXT))
_LITERALS: dict[Type, list[Attribute]] = {
    TEXT: ["", "é"],
    INT: [0, -7],
    BOOL: [True, False],
    ANY: [None, 0.5, "yes", (1, "a")],
}
_flowing = st.lists(st.sampled_from([TEXT, INT, ANY, CTX]), max_size=2)


@st.composite
def flow_programs(draw: st.DrawFn, *, max_ops: int = 8, depth: int = 2, leaves: bool = True) -> Program:
    """As ``programs``, with regions up to ``depth`` in each other. Where ``leaves``, some of them end the program."""
    author = FlowAuthor(draw, depth=depth, may_leave=leaves)
    for _ in range(draw(st.integers(1, max_ops))):
        draw(st.sampled_from(author.steps))()
    return author.program()


@dataclass
class FlowAuthor(Author):
    """Writes regions too. ``runs`` are the numbers that tell the runs of the open regions apart.

    ``views`` are the lists of contexts. A context that comes into a region, or out of one, counts as raw text, which
    only forbids more. ``guards`` counts the open bodies of ``cf.try``: in those ops may raise.
    """

    depth: int = 0
    may_leave: bool = False
    runs: tuple[Value, ...] = ()
    views: list[Value] = field(default_factory=list[Value])
    errors: list[tuple[Value, ...]] = field(default_factory=list[tuple[Value, ...]])
    regions_so_far: int = 0
    guards: int = 0

    @property
    def steps(self) -> list[Callable[[], None]]:
        regions = [self.cond, self.loop, self.map, self.race, self.protect]
        raising = self.raising * 2 if self.guards else []
        return [*super().steps, *raising, *(regions * 2 if self.depth else [])]

    @property
    def raising(self) -> list[Callable[[], None]]:
        """Return what may raise."""
        return [self.convert, self.index, self.refuse, self.cut_off, self.cut_off, self.raise_again]

    def id(self) -> dict[str, Any]:
        fields = super().id()
        if not self.runs:
            return fields
        holes = "/$" * (len(self.runs) - 1) + "*"
        return {"id": fields["id"] + holes, "occurrences": self.runs}

    def cond(self) -> None:
        kinds, flag = self.draw(_flowing), self.flag()
        then, otherwise = self.region((), kinds), self.region((), kinds)
        self.take(self.emit(CondOp, *kinds, id=self.region_id(), flag=flag, then=then, otherwise=otherwise))

    def loop(self) -> None:
        kinds, bound = self.draw(_flowing), self.draw(st.integers(0, 2))
        (zero,) = self.emit(PyCallOp, INT, function="add", arguments=(0, 0))
        initial = (zero, *self.flowing(kinds))
        parameters = [INT, *kinds]
        with self.inside(parameters) as given:
            self.runs = (*self.runs, given[0])
            self.some()
            (goes_on,) = self.emit(PyCallOp, BOOL, function="lt", arguments=(given[0], bound))
            self.builder.emit(ConditionOp, flag=goes_on, values=(given[0], *self.flowing(kinds)))
            condition = self.builder.block()
        with self.inside(parameters) as given:
            self.runs = (*self.runs, given[0])
            self.some()
            (following,) = self.emit(PyCallOp, INT, function="add", arguments=(given[0], 1))
            if not self.ended():
                self.builder.emit(YieldOp, values=(following, *self.flowing(kinds)))
            body = self.builder.block()
        regions = {"condition": condition, "body": body}
        self.take(self.emit(LoopOp, *parameters, id=self.region_id(), initial=initial, limit=self.limit(), **regions))

    def map(self) -> None:
        kinds = self.draw(_flowing)
        known = [value for value in self.values if value.type == list_of(TEXT)]
        lists = tuple(self.draw(st.lists(st.sampled_from([*known, *self.views]), min_size=1, max_size=2)))
        body = self.concurrent(lists, kinds)
        strict = self.is_strict(lists)
        self.take(self.emit(MapOp, *map(list_of, kinds), id=self.region_id(), lists=lists, strict=strict, body=body))

    def protect(self) -> None:
        """A ``cf.try``. What it caught is seen as text: an exception equals itself alone."""
        kinds = self.draw(_flowing)
        fallback = self.flowing(kinds)
        may_leave, self.may_leave = self.may_leave, False
        self.guards += 1
        with self.inside(()):
            self.some()
            for _ in range(self.draw(st.integers(0, 2))):
                self.draw(st.sampled_from(self.raising))()
                self.some()
            self.builder.emit(YieldOp, values=self.flowing(kinds))
            body = self.builder.block()
        self.guards -= 1
        self.may_leave = may_leave
        fields = {"id": self.region_id(), "fallback": fallback, "base": self.draw(st.booleans()), "body": body}
        results = self.emit(TryOp, BOOL, ANY, *kinds, **fields)
        self.values.remove(results[1])
        self.errors.append(results[:2])
        self.take(results)
        if self.draw(st.booleans()):
            self.emit(PyCallOp, TEXT, function="repr", arguments=(results[1],))
        if self.depth and self.draw(st.booleans()):
            self.handle(results[0])

    def handle(self, ok: Value) -> None:
        """A call that is made where the body of a ``cf.try`` raised."""
        with self.inside(()):
            self.builder.emit(YieldOp)
            then = self.builder.block()
        with self.inside(()):
            self.generate()
            self.builder.emit(YieldOp)
            otherwise = self.builder.block()
        self.emit(CondOp, id=self.region_id(), flag=ok, then=then, otherwise=otherwise)

    def convert(self) -> None:
        """Raises where the text is no number."""
        self.emit(PyCallOp, INT, function="int", arguments=(self.draw(st.sampled_from([self.value(TEXT), "1"])),))

    def index(self) -> None:
        """Raises where the text is short."""
        self.emit(PyCallOp, TEXT, function="getitem", arguments=(self.value(TEXT), self.draw(st.integers(-1, 2))))

    def refuse(self) -> None:
        """A function that raises for some texts."""
        self.ids += 1
        fields: dict[str, Any] = {"id": f"main/@{self.ids}", "declared": "reads", "host": "refuse"}
        self.emit(HostCallOp, TEXT, arguments=(self.value(TEXT),), **fields)

    def cut_off(self) -> None:
        """A generation that its constraint may not let end."""
        fields: dict[str, Any] = {"constraint": "nested", "max_tokens": self.draw(st.integers(1, 3)), **self.id()}
        before = self.context()
        context, _ = self.emit(GenOp, CTX, TEXT, context=before, **fields)
        self.modes[context] = "chat" if self.modes[before] == "chat" else "raw"

    def raise_again(self) -> None:
        """Raises what a ``cf.try`` before it caught, if anything."""
        if not self.errors or self.depth <= 0:
            return
        ok, error = self.draw(st.sampled_from(self.errors))
        with self.inside(()):
            self.builder.emit(YieldOp)
            then = self.builder.block()
        with self.inside(()):
            self.emit(PyCallOp, ANY, function="raise", arguments=(error,))
            self.builder.emit(UnreachableOp)
            otherwise = self.builder.block()
        self.emit(CondOp, flag=ok, then=then, otherwise=otherwise)

    def region_id(self) -> str | None:
        """An id for an op with regions: most have one."""
        self.regions_so_far += 1
        return f"m/@region#{self.regions_so_far}" if self.regions_so_far % 4 else None

    def limit(self) -> int | None:
        """The limit of a loop, which has at most two rounds."""
        return self.draw(st.sampled_from([None, 2]))

    def is_strict(self, lists: Sequence[Value]) -> bool:
        """Return whether a map is strict, which must not raise."""
        return len(set(lists)) == 1 and self.draw(st.booleans())

    def race(self) -> None:
        kinds, hosts = self.draw(_flowing), self.hosts
        self.hosts = [host for host in hosts if host[1] != "writes"]
        lists = (_DIMS,) * self.draw(st.integers(1, 2))
        body = self.concurrent(lists, [BOOL, *kinds])
        self.hosts = hosts
        self.take(self.emit(RaceOp, BOOL, *kinds, id=self.region_id(), lists=lists, body=body))

    def concurrent(self, lists: Sequence[Value], kinds: Sequence[Type]) -> Block:
        """A body whose elements run at the same time."""
        elements = [value.type.element for value in lists if isinstance(value.type, ListType)]
        may_leave, self.may_leave = self.may_leave, False
        block = self.region([INT, *elements], kinds, counts=True)
        self.may_leave = may_leave
        return block

    def region(self, parameters: Sequence[Type], kinds: Sequence[Type], *, counts: bool = False) -> Block:
        """A region that yields values of ``kinds``. Where it ``counts``, its first parameter tells its runs apart."""
        with self.inside(parameters) as given:
            if counts:
                self.runs = (*self.runs, given[0])
            self.some()
            if not self.ended():
                self.builder.emit(YieldOp, values=self.flowing(kinds))
            return self.builder.block()

    @contextmanager
    def inside(self, parameters: Sequence[Type]) -> Generator[tuple[Value, ...]]:
        """Let ops go to a region; gives its parameters."""
        around = (self.builder, self.values, self.modes, self.views, self.runs, self.errors)
        given = tuple(Value(self.builder.fresh_name(), kind) for kind in parameters)
        self.builder = self.builder.nested(given)
        self.values, self.modes, self.views = list(self.values), dict(self.modes), list(self.views)
        self.errors = list(self.errors)
        self.values.extend(value for value in given if not holds_context(value.type))
        self.take(given)
        self.depth -= 1
        yield given
        self.depth += 1
        self.builder, self.values, self.modes, self.views, self.runs, self.errors = around

    def take(self, values: Sequence[Value]) -> None:
        """Remember contexts."""
        self.modes.update((value, "raw") for value in values if value.type == CTX)
        self.views.extend(value for value in values if value.type == list_of(CTX))

    def some(self) -> None:
        """A few ops."""
        for _ in range(self.draw(st.integers(0, 3))):
            self.draw(st.sampled_from(self.steps))()

    def ended(self) -> bool:
        """Perhaps leave the program here."""
        if not self.may_leave or self.draw(st.integers(0, 5)):
            return False
        if self.draw(st.booleans()):
            self.leave()
            return True
        listed = tuple(self.draw(st.lists(st.sampled_from([*self.values, *self.modes]), max_size=3)))
        frame = {"names": [[f"x{index}", {"leaf": index}] for index in range(len(listed))]}
        record = json.dumps({"cells": [], "frames": [frame]})
        self.builder.emit(BreakOp, values=listed, cause="eval(x)", record=record)
        return True

    def flag(self) -> Value:
        """Something that is true or false."""
        known = [value for value in self.values if value.type == BOOL]
        if known and self.draw(st.booleans()):
            return self.draw(st.sampled_from(known))
        return self.emit(PyCallOp, BOOL, function="eq", arguments=(self.value(TEXT), "yes"))[0]

    def flowing(self, kinds: Sequence[Type]) -> tuple[Attribute | Value, ...]:
        """Values and literals for places of ``kinds``."""
        return tuple(self.one(kind) for kind in kinds)

    def one(self, kind: Type) -> Attribute | Value:
        """A value or a literal for a place of ``kind``."""
        if kind == CTX:
            return self.context()
        if kind in _LITERALS and not self.draw(st.integers(0, 3)):
            return self.draw(st.sampled_from(_LITERALS[kind]))
        if kind == BOOL:
            return self.flag()
        return self.draw(st.sampled_from(self.values)) if kind == ANY else self.value(kind)
