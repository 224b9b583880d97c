"""Branches whose number only the run knows: one core for what they share, lists of the graph for what differs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.join import UNSURE
from lmc.frontend.control.maps import SHAPE, Region
from lmc.frontend.emit.operands import is_scalar, operand, pure
from lmc.frontend.handles.cores import refuse
from lmc.frontend.heap.cells import BranchArrayCell, Column, CoreCell, GrownCell, HandleCell
from lmc.frontend.heap.state import State
from lmc.frontend.heap.values import (
    UNBOUND,
    Abstract,
    Concat,
    Const,
    Lent,
    Poison,
    Ref,
    Symbol,
    Unbound,
    Union,
    same,
)
from lmc.ir.core import Value
from lmc.ir.types import CTX, INT, TEXT

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_NO_CONTEXT = Value("lent", CTX)


def item(machine: Machine, owner: Abstract, key: Abstract) -> Abstract:
    """``branches[key]``: the values of a variable by name, or a branch by number, which can be read only."""
    cell = _cell(machine, owner)
    plain = key.value if isinstance(key, Const) else None
    if isinstance(key, Const) and type(plain) is str:
        return _variable_of_all(machine, cell, plain)
    if isinstance(key, Const) and type(plain) is not int:
        refuse(machine, f"branches[{plain!r}]", "index branches by number, or by the name of a variable")
    assert isinstance(owner, Ref)
    for loop in reversed(machine.array_loops):
        if loop.is_position(key):
            return loop.branch(owner)
    if not is_scalar(key) or (isinstance(key, Symbol) and key.type == TEXT):
        raise stop(machine, "some of the branches are taken")
    return lent(machine, owner, pure(machine, "branch_index", (cell.count, key)), None)


def stop(machine: Machine, what: str) -> BaseException:
    """The end of a capture where branches are used as only those of a known number can be."""
    return machine.stop(f"{what}, and only a run decides how many branches there are", SHAPE)


def _cell(machine: Machine, owner: Abstract) -> BranchArrayCell:
    cell = machine.cell(owner)
    assert isinstance(cell, BranchArrayCell)
    return cell


def template(machine: Machine, cell: BranchArrayCell) -> CoreCell:
    """Return what all branches have in common."""
    core = machine.state.get(cell.core)
    assert isinstance(core, CoreCell)
    return core


def _variable_of_all(machine: Machine, cell: BranchArrayCell, name: str) -> Abstract:
    column = dict(cell.columns).get(name)
    if column is not None:
        if column.present is not None:
            raise stop(machine, f"the variable {name!r} may be missing in some branches, and is asked of all")
        return machine.new(GrownCell(column.values))
    core = template(machine, cell)
    value = machine.state.get((cell.core, name)) if name in core.names else UNBOUND
    if isinstance(value, Unbound | Union | Poison):
        raise stop(machine, f"the variable {name!r} may be missing in some branches, and is asked of all")
    assert isinstance(value, Abstract)
    return machine.new(GrownCell(pure(machine, "mul", (pure(machine, "list", (value,)), cell.count), raises=False)))


def lent(machine: Machine, owner: Abstract, index: Symbol, signal: Any) -> Ref:
    """A handle on the branch at ``index`` that can be read; where its context is used, ``signal`` is raised."""
    cell = _cell(machine, owner)
    assert isinstance(owner, Ref)
    context = Lent(_NO_CONTEXT, "a branch", signal=signal, array=owner.address)
    entries = {
        name: _entry(
            column,
            *(
                pure(machine, "getitem", (values, index), raises=False)
                for values in (column.values, column.present)
                if values is not None
            ),
        )
        for name, column in cell.columns
    }
    return _handle(machine, cell, context, index, entries)


def _entry(column: Column, value: Symbol, present: Symbol | None = None) -> Abstract:
    found = dataclasses.replace(column.like, ir=value.ir, expression=None)
    return found if present is None else Union(present, found, UNBOUND)


def _handle(
    machine: Machine, cell: BranchArrayCell, context: Symbol, index: Symbol, entries: dict[str, Abstract]
) -> Ref:
    """A handle on one branch, given what is its own."""
    core = template(machine, cell)
    names, metas = dict.fromkeys(core.names), dict.fromkeys(core.metas)
    for name in entries:
        (metas if name.startswith("@meta:") else names)[name.removeprefix("@meta:")] = None
    made = machine.allocate(dataclasses.replace(core, context=context, names=tuple(names), metas=tuple(metas)))
    for name in (*names, *(f"@meta:{each}" for each in metas)):
        held = entries[name] if name in entries else machine.state.get((cell.core, name))
        machine.state.put((made, name), held)
    return machine.new(HandleCell(made, f"{cell.path}/$", (*cell.holes, index.ir)))


class Lane:
    """One branch of an array in the round of a map over all of them."""

    def __init__(self, machine: Machine, address: int, region: Region) -> None:
        self.machine = machine
        self.address = address
        self.cell = _cell(machine, Ref(address))
        common = template(machine, self.cell).context
        context = common if self.cell.contexts is None else region.element(self.cell.contexts)
        entries = {
            name: _entry(
                column, *(region.element(each) for each in (column.values, column.present) if each is not None)
            )
            for name, column in self.cell.columns
        }
        self.handle = _handle(machine, self.cell, context, region.index, entries)
        found = machine.cell(self.handle)
        assert isinstance(found, HandleCell)
        self.holes = found.holes
        self.core = found.core
        for base, number in self.cell.numbers:
            given = number if isinstance(number, Const) else region.element(_symbol(number))
            machine.state.put(("count", base, self.holes), given)
        self._begun = self._values(machine.state)

    def _values(self, state: State) -> dict[str, Any]:
        core = state.get(self.core)
        assert isinstance(core, CoreCell)
        names = (*core.names, *(f"@meta:{name}" for name in core.metas))
        return {"": core, **{name: state.get((self.core, name)) for name in names}}

    def finish(self, region: Region, end: State) -> BranchArrayCell:
        """Yield what the round left in the branch; gives the array behind the map, but for its core."""
        found = self._values(end)
        core, begun = found.pop(""), self._begun.pop("")
        contexts = self.cell.contexts
        if not same(core.context, begun.context):
            contexts = Symbol(region.listed(core.context.ir, CTX), "the states of branches")
        columns = dict(self.cell.columns)
        self.common: dict[str, Abstract] = {}
        for name, value in found.items():
            if name in self._begun and same(value, self._begun[name]):
                continue
            columns.pop(name, None)
            made = self._column(region, value)
            if isinstance(made, Column):
                columns[name] = made
            self.common[name] = UNBOUND if isinstance(made, Column) else made
        self._end = core
        numbers = dict(self.cell.numbers)
        for place, count in end.changed_since(region.entry).items():
            if type(place) is tuple and place[0] == "count" and place[2] == self.holes:
                assert isinstance(count, Abstract)
                numbers[place[1]] = self._number(region, count)
        return dataclasses.replace(
            self.cell, contexts=contexts, columns=tuple(columns.items()), numbers=tuple(numbers.items())
        )

    def _number(self, region: Region, count: Abstract) -> Abstract:
        if isinstance(count, Const):
            return count
        return Symbol(region.listed(_symbol(count).ir, INT), "how many ids there are")

    def _column(self, region: Region, value: Abstract) -> Column | Abstract:
        if isinstance(value, Union) and isinstance(value.second, Unbound):
            there = value.first
            column = region.column(there) if isinstance(there, Const) else self._column(region, there)
            if not isinstance(column, Column):
                return column
            flags = Symbol(region.listed(operand(self.machine, value.flag).ir, value.flag.type), value.flag.origin)
            return dataclasses.replace(column, present=flags)
        if isinstance(value, Const):
            return value
        if isinstance(value, Symbol | Concat):
            return region.column(value)
        return Poison("a variable of branches takes no form that all of them share", SHAPE)

    def put(self, made: BranchArrayCell) -> None:
        """Put the array behind the map in its place."""
        machine, end = self.machine, self._end
        core = template(machine, self.cell)
        machine.state.put(self.address, made)
        names = tuple(dict.fromkeys((*core.names, *end.names)))
        metas = tuple(dict.fromkeys((*core.metas, *end.metas)))
        answer = core.answer if end.answer is core.answer else UNSURE if end.answer is not None else None
        machine.state.put(
            self.cell.core,
            dataclasses.replace(end, context=core.context, names=names, metas=metas, answer=answer),
        )
        for name, value in self.common.items():
            machine.state.put((self.cell.core, name), value)


def _symbol(value: Abstract) -> Symbol:
    assert isinstance(value, Symbol)
    return value


def new_array(machine: Machine, count: Abstract, path: str, holes: tuple[Value, ...], core: int) -> Ref:
    """The branches that ``s.fork(count)`` gives."""
    machine.has_arrays = True
    return machine.new(BranchArrayCell(count, path, holes, core))
