"""Misuse of handles, raised at the line of the user in the words of ``lmc.frontend.language.misuse``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmc.frontend.handles.cores import language_of, refuse
from lmc.frontend.heap.cells import BranchArrayCell, BranchesCell, HandleCell
from lmc.frontend.heap.values import NONE, Abstract
from lmc.frontend.language.misuse import BranchesMisuse, Handle, StateMisuse
from lmc.frontend.language.state import Branches, State
from lmc.ir.errors import LmcError

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def _kind(machine: Machine, value: Abstract) -> type[StateMisuse | BranchesMisuse] | None:
    cell = machine.cell(value)
    if isinstance(cell, HandleCell):
        return StateMisuse
    return BranchesMisuse if isinstance(cell, BranchesCell | BranchArrayCell) else None


def class_of_handle(machine: Machine, value: Abstract) -> type[Handle]:
    """The class of a handle, or of branches, as plain Python has it."""
    cell = machine.cell(value)
    if isinstance(cell, HandleCell):
        return State if cell.language is None else cell.language.handle
    source = cell.source if isinstance(cell, BranchesCell) else NONE
    return Branches if source is NONE else language_of(machine, source).branches


def _refuse(machine: Machine, work: Callable[..., Any], *given: Any) -> None:
    """Raise what ``work`` of a stand-in for the handle raises."""
    try:
        work(*given)
    except LmcError as error:
        refuse(machine, error.cause, error.remedy or "")
    raise AssertionError("this is no misuse")


def refuse_addition(machine: Machine, left: Abstract, right: Abstract) -> None:
    """Raise what ``left + right`` raises where one of the two is a handle."""
    first, second = _kind(machine, left), _kind(machine, right)
    if first is not None:
        _refuse(machine, operator.add, first(), "")
    if second is not None:
        _refuse(machine, operator.add, "", second())


def refuse_deletion(machine: Machine, owner: Abstract, key: Abstract) -> None:
    """Raise what ``del owner[key]`` raises where ``owner`` is a handle."""
    kind = _kind(machine, owner)
    if kind is not None:
        _refuse(machine, operator.delitem, kind(), _shown(machine, key))


def refuse_variable(machine: Machine, key: Abstract) -> None:
    """Raise what ``s[key] = …`` raises."""
    _refuse(machine, operator.setitem, StateMisuse(), _shown(machine, key), None)


def _shown(machine: Machine, key: Abstract) -> Any:
    plain = machine.plain(key)
    if plain is None:
        raise machine.unsupported("a variable of a state that is set or deleted")
    return plain[0]
