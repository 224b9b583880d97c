"""Loops over an unknown number of branches whose rounds change their own branch alone: one ``cf.map``.

One round stands for all, so nothing in it may reach another round. It is interpreted several times, to find out what it
puts into lists of the program and how many ids it takes on paths of others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.conditions import adopt, branch, scope
from lmc.frontend.control.join import DEAD
from lmc.frontend.emit.operands import is_scalar, operand, pure
from lmc.frontend.heap.cells import CollectedCell, Column, GrownCell, ListCell
from lmc.frontend.heap.state import Place, State
from lmc.frontend.heap.values import (
    UNBOUND,
    ZERO,
    Abstract,
    Const,
    Poison,
    Symbol,
    Unbound,
    Union,
    same,
)
from lmc.frontend.machine.budget import MAX_ATTEMPTS
from lmc.frontend.machine.exits import NORMAL, Exit, Way
from lmc.ir.builder import Builder
from lmc.ir.core import Value
from lmc.ir.dialects.region_ops import MapOp, RaceOp, YieldOp
from lmc.ir.ids import without_holes
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, ListType, Type, list_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

SHAPE = (
    "go over branches in a loop each round of which touches its own branch alone (for branch, item in "
    "zip(branches, items)), or write lmc.map(f, items, on=s), where f(branch, item) returns what it finds"
)
_FILLERS: dict[Type, Any] = {TEXT: "", INT: 0, FLOAT: 0.0, BOOL: False}
"""Stand before the items of a list, so that an empty one has a last item, which nothing reads."""


@dataclass(slots=True, eq=False)
class MapParts:
    """The parts of a map's rounds. ``length`` is the number of rounds, ``total`` the number of elements: no fewer.

    ``covers``: the two are the same. ``dead`` are the places that nothing reads behind the loop. ``begin`` is called
    where a round begins, ``finish`` at its end; it returns the work to do behind the op. ``race``: it is a ``cf.race``,
    whose results are those of one round.
    """

    target: int
    total: Abstract
    length: Callable[[], Abstract]
    covers: bool
    body: Callable[[Region], None]
    begin: Callable[[Region], None]
    finish: Callable[[Region, State], Callable[[], None]]
    dead: frozenset[Place] = frozenset()
    race: bool = False


class Region:
    """The body of a ``cf.map`` under construction: its parameters, which are added as they are asked for."""

    def __init__(self, machine: Machine, builder: Builder, *, race: bool = False) -> None:
        self.machine = machine
        self.race = race
        self.builder = builder
        self.index = Symbol(machine.graph.value(INT), "the number of a branch")
        self.entry = machine.state
        self.lists: list[Value] = []
        self.yields: list[Any] = []
        self.results: list[Value] = []
        self._elements: dict[Value, Symbol] = {}
        self._order: list[Value] = []

    def element(self, values: Symbol) -> Symbol:
        """The item of a list, as long as the map, that belongs to the round."""
        if values.ir not in self._elements:
            kind = values.type
            assert isinstance(kind, ListType)
            self._elements[values.ir] = Symbol(self.machine.graph.value(kind.element), values.origin)
            self.lists.append(values.ir)
            self._order.append(self._elements[values.ir].ir)
        return self._elements[values.ir]

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The index, and an element of each list."""
        return (self.index.ir, *self._order)

    def own(self) -> set[Value]:
        """The values that only a round has."""
        return {value for op in self.builder.ops for value in op.results} | set(self.parameters)

    def listed(self, value: Any, kind: Type) -> Value:
        """The list of what an IR value or literal is in each round; of a race what it is in the round that wins."""
        self.yields.append(value)
        self.results.append(self.machine.graph.value(kind if self.race else list_of(kind)))
        return self.results[-1]

    def column(self, value: Abstract) -> Column:
        """The column of what a value is in each round."""
        found = operand(self.machine, value)
        like = value if isinstance(value, Symbol) else Symbol(Value("", found.type), found.origin or "a value")
        return Column(Symbol(self.listed(found.ir, found.type), like.origin, foreign=found.foreign), like)


class NotAMapError(Exception):
    """A round reaches others."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


def run_map(machine: Machine, parts: MapParts) -> None:
    """Interpret a loop as a ``cf.map``. Raises ``NotAMapError`` where its rounds reach others."""
    _Rounds(machine, parts).run()


class _Rounds:
    def __init__(self, machine: Machine, parts: MapParts) -> None:
        self.machine = machine
        self.parts = parts
        self.entry = machine.state
        self.watermark = machine.watermark()
        self.carried: dict[Place, None] = {}
        self.lists: dict[int, None] = {}
        self.steps: dict[Place, int | None] = {}
        self.tainted = machine.state.tainted

    def run(self) -> None:
        machine, graph = self.machine, self.machine.graph
        location, counts, mark = graph.location, dict(machine.host_counts), len(graph.builder.ops)
        for _ in range(MAX_ATTEMPTS):
            machine.host_counts = dict(counts)
            machine.drop_ops(graph.builder, mark)
            machine.state = self.entry.child()
            machine.state.tainted = self.tainted
            length = self.parts.length()
            around = machine.state
            with graph.nested() as builder:
                region = Region(machine, builder, race=self.parts.race)
                machine.state = around.child()
                end = self._round(region, length)
            graph.location = location
            if not self._changes_more(end, around):
                machine.state = around
                self._append(region, end, around, length)
                self.entry.absorb(machine.state)
                machine.state = self.entry
                return
        raise NotAMapError("what a round does takes no form that all rounds share")

    def _round(self, region: Region, length: Abstract) -> State:
        machine = self.machine
        base = machine.state
        for place in self.carried:
            base.put(place, _carried(place))
        for address in self.lists:
            base.put(address, CollectedCell())
        for place, step in self.steps.items():
            base.put(place, ZERO if step is None else self._after(place, region.index, step))
        self.parts.begin(region)
        again = Exit("continue", self.parts.target)

        def once() -> None:
            adopt(machine, scope(machine, lambda: self.parts.body(region), settle))

        def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
            return (NORMAL, None) if exit == again else (exit, way.payload)

        def whole() -> None:
            if self.parts.covers:
                once()
                return
            flag = pure(machine, "lt", (region.index, length), raises=False)
            adopt(machine, branch(machine, flag, once, lambda: None))

        machine.guarded_returns += 1  # a return of the program is an exit of the round, not an end of its region
        try:
            outcome = scope(machine, whole)
        finally:
            machine.guarded_returns -= 1
        if list(outcome.ways) != [NORMAL]:
            raise NotAMapError("a round of a loop over branches leaves it early")
        return outcome.ways[NORMAL].state

    def _after(self, place: Place, rounds: Abstract, step: int) -> Symbol:
        count = self.entry.get(place)
        assert isinstance(count, Abstract)
        taken = pure(self.machine, "mul", (rounds, Const(step)), gives=INT, raises=False)
        return pure(self.machine, "add", (count, taken), gives=INT, raises=False)

    def _changes_more(self, end: State, around: State) -> bool:
        """Return whether a round does what the next attempt has to begin with."""
        again = end.tainted and not self.tainted
        self.tainted = end.tainted
        outer = self._outer()
        for place, held in end.changed_since(around).items():
            if self._is_young(place, outer):
                continue
            if type(place) is tuple and place[0] == "count":
                assert isinstance(held, Abstract)
                again |= self._measured(place, held)
            elif type(place) is tuple:
                if place not in self.carried:
                    before = self.entry.get(place)
                    assert isinstance(held, Abstract)
                    assert isinstance(before, Abstract)
                    if not same(held, before):
                        self.carried[place] = None
                        again = True
            elif type(place) is int and place not in self.lists:
                if not isinstance(self.entry.get(place), ListCell | GrownCell):
                    raise NotAMapError("a round of a loop over branches changes a state or an object that others see")
                self.lists[place] = None
                again = True
            elif not isinstance(held, CollectedCell):
                raise NotAMapError("a round of a loop over branches puts a number of items into a list that varies")
        return again

    def _is_young(self, place: Place, outer: set[Value]) -> bool:
        if type(place) is tuple and place[0] == "count":
            return any(hole not in outer for hole in place[2])
        address = place[0] if type(place) is tuple else place
        return type(address) is int and address >= self.watermark

    def _outer(self) -> set[Value]:
        found = {value for builder in self.machine.graph.stack for op in builder.ops for value in op.results}
        return found | {value for builder in self.machine.graph.stack for value in builder.parameters}

    def _measured(self, place: Place, count: Abstract) -> bool:
        if place not in self.steps:
            self.steps[place] = None
            return True
        if self.steps[place] is not None:
            return False
        if not isinstance(count, Const):
            raise NotAMapError("how many ids a round over branches takes depends on what is generated in it")
        self.steps[place] = count.value
        return True

    # Behind the loop

    def _append(self, region: Region, end: State, around: State, length: Abstract) -> None:
        machine = self.machine
        with machine.appending(region.builder, end):
            put = self.parts.finish(region, end)
            lists = {address: self._added(region, end.get(address)) for address in self.lists}
            names = {place: self._last(region, place, end.get(place)) for place in self.carried}
            region.builder.emit(YieldOp, values=tuple(region.yields))
        if not region.lists:
            region.element(pure(machine, "range", (self.parts.total,), gives=list_of(INT), raises=False))
        region.builder.parameters = region.parameters
        kind, options = (RaceOp, {}) if self.parts.race else (MapOp, {"strict": False})
        machine.graph.append(
            kind,
            region.results,
            lists=tuple(region.lists),
            **options,
            body=region.builder.block(),
            id=f"{without_holes(machine.path)}/@{kind.NAME}",
        )
        around.tainted = end.tainted
        put()
        for place, step in self.steps.items():
            if step is not None:
                around.put(place, self._after(place, length, step))
        for address, columns in lists.items():
            self._extend(address, columns)
        for place, column in names.items():
            self._bind(place, column, length)

    def _added(self, region: Region, cell: Any) -> list[Column]:
        assert isinstance(cell, CollectedCell)
        return [region.column(item) for item in cell.items]

    def _extend(self, address: int, columns: list[Column]) -> None:
        machine = self.machine
        if not columns:
            return
        added = [column.values for column in columns]
        kinds = {each.type for each in added}
        gives = kinds.pop() if len(kinds) == 1 else None
        more = added[0] if len(added) == 1 else pure(machine, "interleaved", added, gives=gives, raises=False)
        before = self.entry.get(address)
        assert isinstance(before, ListCell | GrownCell)
        if isinstance(before, ListCell) and not before.items:
            machine.state.put(address, GrownCell(more))
            return
        old = before.value if isinstance(before, GrownCell) else pure(machine, "list", before.items, raises=False)
        machine.state.put(address, GrownCell(pure(machine, "add", (old, more), raises=False)))

    def _last(self, region: Region, place: Place, value: Any) -> Column | None:
        if place in self.parts.dead or isinstance(value, Union) or not self.parts.covers or not is_scalar(value):
            return None
        return region.column(value)

    def _bind(self, place: Place, column: Column | None, length: Abstract) -> None:
        """The value of a name behind the loop: that of the last round, or without a round the one before it."""
        machine = self.machine
        if place in self.parts.dead:
            machine.state.put(place, DEAD)
            return
        if column is None:
            machine.state.put(place, _carried(place))
            return
        like = column.like
        filler = pure(machine, "list", (Const(_FILLERS.get(like.type)),), raises=False)
        items = pure(machine, "add", (filler, column.values), raises=False)
        last = pure(machine, "getitem", (items, Const(-1)), raises=False, gives=like.type)
        flag = pure(machine, "lt", (ZERO, length), raises=False)
        before = self.entry.get(place)
        assert isinstance(before, Abstract)
        found = Symbol(last.ir, like.origin, None, like.domain, like.kind, like.foreign)
        if isinstance(before, Unbound):
            machine.state.put(place, Union(flag, found, UNBOUND))
        elif is_scalar(before):
            machine.state.put(place, machine.choose(flag, lambda: found, lambda: before))
        else:
            machine.state.put(place, _carried(place))


def _carried(place: Place) -> Poison:
    return Poison(
        f"{place[1]!r} is taken over from one round of a loop over branches to the next, and rounds run at the same "
        "time",
        f"do in one loop what branches need, and collect in another; {SHAPE}",
    )
