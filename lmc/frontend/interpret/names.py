"""Names: those of the program's own frames, and what is read from closures, modules and builtins outside of it."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from lmc.frontend.guards import mutable_parts, unguarded_part
from lmc.frontend.heap.cells import FrameCell
from lmc.frontend.heap.values import UNBOUND, Abstract, Const, Poison, Symbol, Unbound, Union, is_literal
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def frame_of(machine: Machine, name: str) -> int | None:
    """The innermost frame of the program's that has ``name``."""
    for frame in machine.activation.frames:
        cell = machine.state.get(frame)
        assert isinstance(cell, FrameCell)
        if name in cell.names:
            return frame
    return None


def read_name(machine: Machine, name: str) -> Abstract:
    """The value of a name."""
    definition = machine.activation.definition
    frame = None if name in definition.scope.declared_global else frame_of(machine, name)
    if frame is None:
        return read_outside(machine, name)
    value = machine.state.get((frame, name))
    assert isinstance(value, Abstract)
    if isinstance(value, Poison):
        raise machine.stop(value.cause, value.remedy)
    if isinstance(value, Unbound) or (isinstance(value, Union) and isinstance(value.second, Unbound)):
        value = bound(machine, value, name, local=frame == machine.activation.frames[0])
        machine.state.put((frame, name), value)
    return value


def bound(machine: Machine, value: Abstract, name: str, *, local: bool) -> Abstract:
    """A value that may not be there; raises what Python does where it is not."""
    if local:
        kind: type[NameError] = UnboundLocalError
        text = f"cannot access local variable '{name}' where it is not associated with a value"
    else:
        kind, text = (
            NameError,
            f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope",
        )
    if isinstance(value, Unbound):
        machine.raise_new(kind, text)
    assert isinstance(value, Union)
    there = value.first
    if local and isinstance(there, Symbol) and not machine.protected:
        found = machine.pure("bound", value.flag, there, Const(name), gives=there.type)
        return Symbol(found.ir, there.origin, None, there.domain, there.kind, there.foreign)

    def missing() -> Abstract:
        machine.raise_new(kind, text)

    return machine.choose(value.flag, lambda: there, missing)


def read_outside(machine: Machine, name: str) -> Abstract:
    """A name that is not the program's own: a closure variable, a global, a builtin."""
    definition = machine.activation.definition
    reads = machine.graph.reads
    cell = definition.cells.get(name)
    if cell is not None and name not in definition.scope.declared_global:
        try:
            value = cell.cell_contents
        except ValueError:
            machine.raise_new(
                NameError,
                f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope",
            )
        _check_rebound(machine, name, value)
        if not reads.seen("cell", cell, name, value):
            reads.add_cell(cell, name, value)
        return outside(machine, value, f"the outer variable {name!r}")
    if name in definition.globals:
        value = definition.globals[name]
        _check_rebound(machine, name, value)
    elif hasattr(builtins, name):
        value = getattr(builtins, name)
    else:
        machine.raise_new(NameError, f"name '{name}' is not defined")
    if not reads.seen("global", definition.globals, name, value):
        reads.add_global(definition.globals, name, value)
    return outside(machine, value, f"the global {name!r}")


def _check_rebound(machine: Machine, name: str, _value: Any) -> None:
    if machine.state.tainted and name in machine.activation.definition.rebound:
        raise machine.stop(
            f"{name!r} may be bound anew by a function that the program has called",
            "read it before the call, or declare what the function does (@lmc.tool(effect=…))",
        )


def outside(machine: Machine, value: Any, what: str) -> Abstract:
    """An object from outside the program, which a guard looks at from here on."""
    if is_literal(value):
        return Const(value)
    found = unguarded_part(value)
    if found is not None:
        raise machine.stop(
            f"{with_article(found.__name__)} comes from outside the program, and may change without being seen",
            "make a list or a text of it before, and use that",
        )
    if machine.state.tainted:
        parts: dict[int, Any] = {}
        mutable_parts(value, parts)
        if parts:
            raise machine.stop(
                f"{what} may have been changed by a function that the program has called",
                "read it before the call, or declare what the function does (@lmc.tool(effect=…))",
            )
    return Const(value)


def store_name(machine: Machine, name: str, value: Abstract) -> None:
    """``name = value``."""
    scope = machine.activation.definition.scope
    if name in scope.declared_global:
        raise machine.stop(
            f"the program binds {name!r}, which belongs to its module",
            "return the value instead, or set it in a tool",
        )
    frames = machine.activation.frames
    if name in scope.declared_nonlocal:
        frame = next(
            (each for each in frames[1:] if name in _names(machine, each)),
            None,
        )
        if frame is None:
            raise machine.stop(
                f"the program binds {name!r}, which belongs to an enclosing function",
                "return the value instead, or set it in a tool",
            )
    else:
        found = frame_of(machine, name)
        assert found is not None, f"{name} has no frame"
        frame = found
    machine.state.put((frame, name), value)


def _names(machine: Machine, frame: int) -> frozenset[str]:
    cell = machine.state.get(frame)
    assert isinstance(cell, FrameCell)
    return cell.names


def delete_name(machine: Machine, name: str) -> None:
    """``del name``."""
    read_name(machine, name)
    store_name(machine, name, UNBOUND)


def new_frame(machine: Machine, names: frozenset[str] | set[str]) -> int:
    """A frame for one call, or for the names of a comprehension."""
    return machine.allocate(FrameCell(frozenset(names)))
