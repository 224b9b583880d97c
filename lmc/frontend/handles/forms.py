"""``lmc.cond``, ``lmc.while_loop``, ``lmc.map`` and ``lmc.race``: each becomes its op where only a run decides."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.control.loops import LoopParts, run_loop
from lmc.frontend.control.maps import MapParts, NotAMapError, Region, run_map
from lmc.frontend.emit.known import decided
from lmc.frontend.emit.operands import class_name, is_scalar, pure
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.handles.cores import allocate, allocate_id, another, refuse
from lmc.frontend.handles.programs import at_path
from lmc.frontend.heap.cells import Column, GrownCell, HandleCell, ListCell
from lmc.frontend.heap.state import State
from lmc.frontend.heap.values import NONE, ONE, Abstract, Const, Symbol, Tuple
from lmc.frontend.machine.budget import MAX_UNROLLED_WHILE
from lmc.frontend.program import forms
from lmc.frontend.python.iteration import Counted, items_of, known_items
from lmc.frontend.python.methods import check_stored
from lmc.frontend.python.operators import truth
from lmc.ir.core import Value
from lmc.ir.types import BOOL, TEXT, list_of
from lmc.ir.wording import with_count

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_REMEDY = "give each element a branch of its own (on=s), and return what it finds"


def cond(machine: Machine, flag: Abstract, then: Abstract, otherwise: Abstract) -> Abstract:
    """``lmc.cond(flag, then, otherwise)``."""
    found = decided(machine, truth(machine, flag))
    if isinstance(found, Const):
        return machine.rules.call(then if found.value else otherwise, [], {})
    assert isinstance(found, Symbol)
    return machine.choose(
        found, lambda: machine.rules.call(then, [], {}), lambda: machine.rules.call(otherwise, [], {})
    )


class _UnknownError(Exception):
    """The condition of another round is unknown now."""


def while_loop(machine: Machine, test: Abstract, body: Abstract, *state: Abstract) -> Abstract:
    """``lmc.while_loop(test, body, *state)``."""
    target = machine.begin_target()
    places = [(target, f"value {index}") for index in range(len(state))]

    def values() -> list[Any]:
        return [machine.state.get(place) for place in places]

    def again() -> Abstract:
        return decided(machine, truth(machine, machine.rules.call(test, values(), {})))

    def once() -> None:
        found = machine.rules.call(body, values(), {})
        if not isinstance(found, Tuple) or found.kind is not tuple:
            if isinstance(found, Symbol):
                raise machine.unsupported("a body of while_loop whose result only a run knows")
            raise_new(machine, TypeError, _wrong_state(class_name(machine, found), len(state)))
        if len(found.items) != len(state):
            raise_new(machine, TypeError, _wrong_state("tuple", len(state)))
        for place, value in zip(places, found.items, strict=True):
            machine.state.put(place, value)

    def unrolled() -> None:
        for _ in range(MAX_UNROLLED_WHILE):
            flag = again()
            if not isinstance(flag, Const):
                raise _UnknownError
            if not flag.value:
                return
            once()
        raise _UnknownError

    for place, value in zip(places, state, strict=True):
        machine.state.put(place, value)
    machine.attempt(unrolled, lambda: run_loop(machine, LoopParts(target, again, once, continues=False)), _UnknownError)
    return Tuple(tuple(values()))


def _wrong_state(given: str, count: int) -> str:
    return f"the body of while_loop gives {given}, it should give a tuple of {with_count(count, 'value')}"


def map_elements(machine: Machine, function: Abstract, *lists: Abstract, on: Abstract = NONE) -> Abstract:
    """``lmc.map(function, *lists, on=s)``."""
    elements = _Elements(machine, "map", function, on)
    columns = [_items(machine, items) for items in lists]
    if all(isinstance(column, list) for column in columns):
        known = [column for column in columns if isinstance(column, list)]
        rows = enumerate(zip(*known, strict=False))
        return machine.new(ListCell(tuple(elements.one(index, list(row)) for index, row in rows)))
    return machine.new(GrownCell(elements.at_once([_as_value(machine, column) for column in columns])))


def race(
    machine: Machine,
    function: Abstract,
    *lists: Abstract,
    good: Abstract,
    default: Abstract = NONE,
    on: Abstract = NONE,
) -> Abstract:
    """``lmc.race(function, *lists, good=…, default=…, on=s)``."""
    if machine.protected:
        raise machine.unsupported("a race in a `try`")
    elements = _Elements(machine, "race", function, on, good)
    columns = [_as_value(machine, _items(machine, items)) for items in lists]
    writes = machine.writes
    winner = elements.at_once(columns)
    if machine.writes > writes:
        raise machine.stop(
            "an element of a race calls a function that may write, and it may be cancelled",
            'declare what it does (@lmc.tool(effect="reads") or "pure"), or write after the race',
        )
    return pure(machine, "choose", (elements.found, winner, default), raises=False)


def _items(machine: Machine, items: Abstract) -> list[Abstract] | Counted:
    """Return what elements are given, as it is now: what they change, or what comes later, changes nothing here."""
    found = items_of(machine, items)
    return known_items(machine, items, "lmc.map goes over it") if found is None else found


def _as_value(machine: Machine, items: list[Abstract] | Counted) -> Symbol:
    if isinstance(items, Counted):
        if items.value.type == TEXT:
            return pure(machine, "list_from", (items.value,), gives=list_of(TEXT))
        return pure(machine, "list_from", (items.value,)) if items.value.foreign else items.value
    if not all(map(is_scalar, items)):
        raise machine.stop(
            "a list whose elements run at the same time holds states, functions or objects",
            "go over the values that the elements need",
        )
    return pure(machine, "list", items, raises=False)


class _Elements:
    def __init__(
        self, machine: Machine, name: str, function: Abstract, on: Abstract, good: Abstract | None = None
    ) -> None:
        self.machine = machine
        self.name = name
        self.function = function
        self.on = on
        self.good = good
        self.found: Abstract = NONE
        if on is not NONE and not isinstance(machine.cell(on), HandleCell):
            refuse(
                machine,
                f"lmc.{name}(…, on=…) is given something else than a state",
                f"give it one: lmc.{name}(…, on=s)",
            )
        if on is NONE:
            self.base, self.holes = allocate_id(machine, machine.path, machine.holes, name)
        else:
            self.base, self.holes = allocate(machine, on, name)

    def one(self, index: int, items: list[Abstract]) -> Abstract:
        """An element of a known number."""
        return self._called(f"{self.base}/{index}", self.holes, items)

    def _called(self, path: str, holes: tuple[Value, ...], items: list[Abstract]) -> Abstract:
        machine = self.machine
        branch = []
        if self.on is not NONE:
            branch = [another(machine, self.on, path, holes)]
        with at_path(machine, path, holes):
            return machine.rules.call(self.function, [*branch, *items], {})

    def at_once(self, lists: list[Symbol]) -> Symbol:
        """All elements in one op, in which one stands for all; gives the results, or the winner."""
        machine = self.machine
        if not lists:
            raise machine.stop("there is no list to go over", "give at least one list")
        target = machine.begin_target()
        results: list[Symbol] = []
        place: tuple[int, str] = (0, "")

        def begin(_region: Region) -> None:
            nonlocal place
            place = (machine.allocate(), "result")

        def body(region: Region) -> None:
            items: list[Abstract] = [region.element(each) for each in lists]
            found = self._called(f"{self.base}/$", (*self.holes, region.index.ir), items)
            check_stored(machine, [found], NONE)
            if self.good is not None:
                machine.state.put((place[0], "good"), truth(machine, machine.rules.call(self.good, [found], {})))
            machine.state.put(place, found)

        def finish(region: Region, end: State) -> Callable[[], None]:
            made: list[Column] = []
            for name in ("good", "result") if self.good is not None else ("result",):
                value = end.get((place[0], name))
                assert isinstance(value, Abstract)
                made.append(region.column(value))
            results[:] = [column.values for column in made]
            return lambda: None

        # The lists may differ in length, of which the op knows the shortest: nothing is asked for it.
        parts = MapParts(target, ONE, lambda: ONE, True, body, begin, finish, race=self.good is not None)
        try:
            run_map(machine, parts)
        except NotAMapError as reason:
            raise machine.stop(reason.cause.replace("a round of a loop over branches", "an element"), _REMEDY) from None
        if self.good is not None:
            self.found = Symbol(results[0].ir, "whether there is a winner") if results[0].type == BOOL else results[0]
            return results[1]
        return results[0]


def _spelt_out(rule: Callable[..., Abstract], name: str) -> Callable[..., Abstract]:
    """``rule``; what can't be captured of it refuses the program: who writes a form wants to know."""

    @functools.wraps(rule)
    def form(machine: Machine, *args: Abstract, **kwargs: Abstract) -> Abstract:
        machine.take_direct()
        try:
            return rule(machine, *args, **kwargs)
        except CaptureBreak as stop:
            machine.ends.forms.setdefault(stop.reason, f"lmc.{name}")
            raise

    return form


_RULES: Mapping[Any, Callable[..., Abstract]] = {
    forms.cond: cond,
    forms.while_loop: while_loop,
    forms.map: map_elements,
    forms.race: race,
}
FUNCTIONS = {function: _spelt_out(rule, function.__name__) for function, rule in _RULES.items()}
