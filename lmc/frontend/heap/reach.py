"""Reachability in a state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from lmc.frontend.heap.cells import (
    Cell,
    CoreCell,
    FrameCell,
    InstanceCell,
    PoisonCell,
)
from lmc.frontend.heap.state import Content, Place, State
from lmc.frontend.heap.values import Abstract, Function, Ref, Union, parts_of


def is_reached(state: State, address: int, roots: Iterable[Place], skip: Collection[Place] = ()) -> bool:
    """Return whether the cell at ``address`` is reached from a place of ``roots``, but through none of ``skip``."""
    seen: set[Place] = set(skip)
    waiting = [place for place in roots if place not in seen]
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        if place == address:
            return True
        seen.add(place)
        for found in references(state.get(place)):
            if found == address:
                return True
            waiting.append(found)
        if type(place) is int:
            held = state.get(place)
            assert isinstance(held, Cell)
            waiting += [(place, name) for name in names_of(held)]
    return False


def reached_from(state: State, values: Iterable[Abstract]) -> set[int]:
    """The addresses that are reached from ``values``."""
    found: set[int] = set()
    waiting = [address for value in values for address in references(value)]
    while waiting:
        address = waiting.pop()
        if address in found:
            continue
        found.add(address)
        held = state.get(address)
        if isinstance(held, Cell):
            places: list[Place] = [address, *((address, name) for name in names_of(held))]
            waiting += [each for place in places for each in references(state.get(place))]
    return found


def references(content: Content) -> list[int]:
    """The addresses that a place names itself."""
    found: list[int] = []
    waiting: list[Abstract] = []
    if isinstance(content, Cell):
        waiting += content.inner()
    else:
        waiting.append(content)
    while waiting:
        value = waiting.pop()
        if isinstance(value, Ref):
            found.append(value.address)
        elif isinstance(value, Function):
            found += value.frames
        waiting += parts_of(value)
    return found


def current(state: State, value: Abstract) -> Abstract:
    """Return what ``value`` names: its object may be one of the run by now, or differ between ways (``PoisonCell``)."""
    if isinstance(value, Union):
        return Union(value.flag, current(state, value.first), current(state, value.second))
    cell = state.get(value.address) if isinstance(value, Ref) else None
    return current(state, cell.value) if isinstance(cell, PoisonCell) and cell.value is not None else value


def names_of(cell: Cell) -> Sequence[str]:
    """The names of the places that belong to a cell."""
    if isinstance(cell, CoreCell):
        return (*cell.names, *(f"@meta:{name}" for name in cell.metas))
    if isinstance(cell, InstanceCell):
        return cell.names
    return sorted(cell.names) if isinstance(cell, FrameCell) else ()
