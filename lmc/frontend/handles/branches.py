"""``s.fork``, ``s.copy``, and what branches are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmc.frontend.handles.cores import allocate, copy_core
from lmc.frontend.heap.cells import BranchesCell, HandleCell
from lmc.frontend.heap.values import ONE, Abstract
from lmc.ir.choices import checked_branch_count

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def fork(machine: Machine, handle: Abstract, n: Abstract = ONE) -> Abstract:
    """``s.fork(n)``."""
    count = machine.concrete(n, "how many branches a fork has must be known now")
    checked = machine.checked(checked_branch_count, count, None)
    path, holes = allocate(machine, handle, "fork")
    branches = [
        machine.new(HandleCell(copy_core(machine, handle), f"{path}/{index}", holes)) for index in range(checked)
    ]
    return machine.new(BranchesCell(tuple(branches)))


def copy(machine: Machine, handle: Abstract) -> Abstract:
    """``s.copy()``."""
    path, holes = allocate(machine, handle, "copy")
    return machine.new(HandleCell(copy_core(machine, handle), path, holes))
