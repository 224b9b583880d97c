"""Items of a known list or dict of handles or functions, by a number or key that only the run knows."""

from __future__ import annotations

from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.operands import pure
from lmc.frontend.heap.cells import BranchArrayCell, BranchesCell, Cell, HandleCell, InstanceCell
from lmc.frontend.heap.values import Abstract, BoundMethod, Const, Function, Partial, Symbol, Tuple, Union, parts_of
from lmc.frontend.language.binding import Bindable
from lmc.frontend.machine.budget import MAX_UNION
from lmc.ir.types import BOOL, INT

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


_HANDLES = (HandleCell, BranchesCell, BranchArrayCell)


def holds_handles(machine: Machine, items: Sequence[Abstract], kinds: tuple[type[Cell], ...] = _HANDLES) -> bool:
    """Return whether handles, or objects of other ``kinds``, are among ``items``, or in tuples of them."""
    return any(
        holds_handles(machine, parts_of(item), kinds)
        if isinstance(item, Tuple | Union)
        else isinstance(machine.cell(item), kinds)
        for item in items
    )


def are_numbered(machine: Machine, items: Sequence[Abstract]) -> bool:
    """Return whether a number that only a run knows picks one of ``items``, which can't be values of the run."""
    return holds_handles(machine, items, (*_HANDLES, InstanceCell))


FUNCTIONS = (FunctionType, BuiltinFunctionType, Bindable)


def holds_functions(items: Sequence[Abstract]) -> bool:
    """Return whether functions are among ``items``: which one is called is then a case of its own."""
    return any(
        isinstance(item, Function | BoundMethod | Partial)
        or (isinstance(item, Const) and isinstance(item.value, FUNCTIONS))
        for item in items
    )


def stays_apart(machine: Machine, items: Sequence[Abstract]) -> bool:
    """Return whether a container of ``items`` is no object of the run: one of them is picked by a condition."""
    few = len(items) <= MAX_UNION and (holds_functions(items) or are_numbered(machine, items))
    return few or holds_handles(machine, items)


def by_key(machine: Machine, keys: Sequence[Any], values: Sequence[Abstract], key: Symbol) -> Abstract:
    """The value at ``key`` of a dict, which is one of its keys."""
    parts = [Const(part) for number, known in enumerate(keys) for part in (known, number)]
    table = pure(machine, "dict", parts, raises=False)
    return one_of(machine, values, pure(machine, "getitem", (table, key), gives=INT))


def picked(machine: Machine, items: Sequence[Abstract], key: Abstract, kind: str = "list") -> Abstract:
    """``items[key]`` of a list or tuple; a run raises what Python does where there is none."""
    numbers = pure(machine, kind, [Const(number) for number in range(len(items))], raises=False)
    return one_of(machine, items, pure(machine, "getitem", (numbers, key)))


def one_of(machine: Machine, items: Sequence[Abstract], index: Symbol) -> Abstract:
    """The item at ``index``, which is one of their numbers."""
    if not 0 < len(items) <= MAX_UNION:
        raise machine.unsupported(f"one of {len(items)} states or objects, by a number that only a run knows")
    value = items[-1]
    for number in reversed(range(len(items) - 1)):
        flag = pure(machine, "eq", (index, Const(number)), raises=False, gives=BOOL)
        value = Union(flag, items[number], value)
    return value
