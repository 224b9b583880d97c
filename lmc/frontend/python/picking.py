"""An item at a number that only a run knows, of a known list that holds handles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmc.frontend.emit.budget import MAX_UNION
from lmc.frontend.emit.operands import pure
from lmc.frontend.heap.cells import BranchArrayCell, BranchesCell, HandleCell
from lmc.frontend.heap.values import Abstract, Const, Symbol, Tuple, Union
from lmc.ir.types import BOOL

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def holds_handles(machine: Machine, items: Sequence[Abstract]) -> bool:
    """Return whether handles are among ``items``, or in tuples of them."""
    return any(
        holds_handles(machine, item.items)
        if isinstance(item, Tuple)
        else isinstance(machine.cell(item), HandleCell | BranchesCell | BranchArrayCell)
        for item in items
    )


def picked(machine: Machine, items: Sequence[Abstract], key: Abstract) -> Abstract:
    """``items[key]`` of a list; a run raises what Python does where there is none."""
    numbers = pure(machine, "list", [Const(number) for number in range(len(items))], raises=False)
    return one_of(machine, items, pure(machine, "getitem", (numbers, key)))


def one_of(machine: Machine, items: Sequence[Abstract], index: Symbol) -> Abstract:
    """The item at ``index``, which is one of their numbers."""
    if not 0 < len(items) <= MAX_UNION:
        raise machine.unsupported("one of several states, by a number that only a run knows")
    value = items[-1]
    for number in reversed(range(len(items) - 1)):
        flag = pure(machine, "eq", (index, Const(number)), raises=False, gives=BOOL)
        value = Union(flag, items[number], value)
    return value
