"""``s.fork``, ``s.copy``, and the operations of branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmc.frontend.emit.known import concrete, known_value
from lmc.frontend.emit.operands import pure
from lmc.frontend.emit.raising import checked
from lmc.frontend.handles.arrays import new_array, stop
from lmc.frontend.handles.cores import allocate, another, copy_core, language_of, refuse
from lmc.frontend.handles.rows import is_count
from lmc.frontend.heap.cells import BranchesCell
from lmc.frontend.heap.values import ONE, Abstract, Poison, Symbol, Unbound, Union
from lmc.frontend.machine.graph import UNKNOWN
from lmc.ir.builtins.checks import checked_branch_count
from lmc.ir.types import ANY, INT, JsonType
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def fork(machine: Machine, handle: Abstract, n: Abstract = ONE) -> Abstract:
    """``s.fork(n)``."""
    if isinstance(n, Union | Poison | Unbound):
        return machine.cases(n, lambda one: fork(machine, handle, one))
    if isinstance(n, Symbol) and known_value(machine, n) is UNKNOWN:
        return _counted_by_run(machine, handle, n)
    count = concrete(machine, n, "how many branches a fork has must be known now")
    number = checked(machine, checked_branch_count, count, None)
    path, holes = allocate(machine, handle, "fork")
    branches = [another(machine, handle, f"{path}/{index}", holes) for index in range(number)]
    return machine.new(BranchesCell(tuple(branches)))


def _counted_by_run(machine: Machine, handle: Abstract, n: Symbol) -> Abstract:
    if n.type not in (INT, ANY) and not isinstance(n.type, JsonType):
        refuse(
            machine,
            f"fork({n.origin}): n is {with_article(n.type.name)}",
            "fork into a whole number of branches, at least 0",
        )
    count = n if is_count(machine, n) else pure(machine, "branch_count", (n,))
    path, holes = allocate(machine, handle, "fork")
    if language_of(machine, handle) is not None:
        raise stop(machine, "branches are taken one by one")
    return new_array(machine, count, path, holes, copy_core(machine, handle))


def copy(machine: Machine, handle: Abstract) -> Abstract:
    """``s.copy()``."""
    path, holes = allocate(machine, handle, "copy")
    return another(machine, handle, path, holes)
