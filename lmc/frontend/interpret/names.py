"""Names: of the program's own frames, and of closures, modules and builtins outside of it."""

from __future__ import annotations

import builtins
from contextlib import suppress
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.operands import host_call, pure
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import FrameCell
from lmc.frontend.heap.values import UNBOUND, Abstract, Const, Poison, Symbol, Unbound, Union, is_literal
from lmc.frontend.language.binding import Bindable
from lmc.frontend.program.guards import unguarded_part
from lmc.frontend.python import foreign
from lmc.frontend.source.files import Unsupported, index_of, parse_file, source_of_file
from lmc.frontend.source.functions import Definition
from lmc.ir.core import Effect
from lmc.ir.types import NONE as NONE_TYPE
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


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
        raise machine.stop(value.cause_of(name), value.remedy)
    if isinstance(value, Unbound) or (isinstance(value, Union) and isinstance(value.second, Unbound)):
        value = bound(machine, value, name, local=frame == machine.activation.frames[0])
        machine.state.put((frame, name), value)
    return foreign.current(machine, value)


def bound(machine: Machine, value: Abstract, name: str, *, local: bool) -> Abstract:
    """A value that may not be there; raises what Python does where it is not."""
    if local:
        kind: type[NameError] = UnboundLocalError
        said: dict[str, Abstract] = {}
        text = f"cannot access local variable '{name}' where it is not associated with a value"
    else:
        kind, text = (
            NameError,
            f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope",
        )
        said = {"name": Const(name)}
    if isinstance(value, Unbound):
        raise_new(machine, kind, text, **said)
    assert isinstance(value, Union)
    there = value.first
    if local and isinstance(there, Symbol) and not machine.protected:
        found = pure(machine, "bound", (value.flag, there, Const(name)), gives=there.type)
        return Symbol(found.ir, there.origin, None, there.domain, there.kind, there.foreign)

    def missing() -> Abstract:
        raise_new(machine, kind, text, **said)

    return machine.choose(value.flag, lambda: there, missing)


def read_outside(machine: Machine, name: str) -> Abstract:
    """A name that is not the program's own: a closure variable, a global, a builtin."""
    definition = machine.activation.definition
    cell = None if name in definition.scope.declared_global else definition.cells.get(name)
    holder = definition.globals if cell is None else cell
    kind = "global" if cell is None else "cell"
    if _may_be_rebound(machine, definition, name) or (kind, id(holder), name) in machine.written:
        return foreign.read_variable(machine, holder, name)
    if cell is not None:
        try:
            value = cell.cell_contents
        except ValueError:
            raise_new(
                machine,
                NameError,
                f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope",
                name=Const(name),
            )
    elif name in definition.globals:
        value = definition.globals[name]
    elif hasattr(builtins, name):
        value = getattr(builtins, name)
    else:
        raise_new(machine, NameError, f"name '{name}' is not defined", name=Const(name))
    reads = machine.graph.reads
    if not reads.seen(kind, holder, name, value):
        if foreign.is_changed(machine, value):
            reads.keep_live(value)
        if cell is None:
            reads.add_global(definition.globals, name, value)
        else:
            reads.add_cell(cell, name, value)
    return outside(machine, value, f"the global {name!r}" if cell is None else f"the outer variable {name!r}")


def _may_be_rebound(machine: Machine, definition: Definition, name: str) -> bool:
    """Return whether a call that was made may have bound a name anew that is not the program's own."""
    if not machine.state.tainted or name in definition.rebound:
        return machine.state.tainted
    if name in definition.cells:
        return False
    elsewhere = machine.graph.reads.rebound
    key = id(definition.globals), definition.file
    if key not in elsewhere:
        elsewhere[key] = _rebound_elsewhere(definition)
    return name in elsewhere[key]


def _rebound_elsewhere(definition: Definition) -> frozenset[str]:
    """Return the globals of ``definition`` that functions of other files, as cells of a notebook are, may bind anew."""
    namespace = definition.globals
    codes: dict[str, CodeType] = {}
    for value in list(namespace.values()):
        for held in list(vars(value).values()) if isinstance(value, type) else (value,):
            function = held.definition if isinstance(held, Bindable) else held
            if isinstance(function, FunctionType) and function.__globals__ is namespace:
                codes.setdefault(function.__code__.co_filename, function.__code__)
    codes.pop(definition.file, None)
    found: set[str] = set()
    for file, code in codes.items():
        with suppress(Unsupported):  # a file without a source
            found |= index_of(parse_file(source_of_file(code, namespace), file)).rebound
    return frozenset(found)


def outside(machine: Machine, value: Any, what: str) -> Abstract:
    """An object from outside the program, which a guard looks at from here on."""
    del what
    if is_literal(value):
        return Const(value)
    unseen = changes_unseen(value)
    if unseen is not None:
        raise machine.stop(unseen.cause, unseen.remedy)
    return foreign.current(machine, Const(value))


def changes_unseen(value: Any) -> Poison | None:
    """Return why no guard can look at an object from outside the program; None where guards can."""
    found = unguarded_part(value)
    if found is None:
        return None
    return Poison(
        f"{with_article(found.__name__)} comes from outside the program, and may change without being seen",
        "make a list or a text of it before, and use that",
    )


def store_name(machine: Machine, name: str, value: Abstract) -> None:
    """``name = value``."""
    scope = machine.activation.definition.scope
    if name in scope.declared_global:
        _store_outside(machine, machine.activation.definition.globals, name, value)
        return
    frames = machine.activation.frames
    if name in scope.declared_nonlocal:
        frame = next((each for each in frames[1:] if name in _names(machine, each)), None)
        if frame is None:
            _store_outside(machine, machine.activation.definition.cells[name], name, value)
            return
    else:
        found = frame_of(machine, name)
        assert found is not None, f"{name} has no frame"
        frame = found
    machine.state.put((frame, name), value)


def _store_outside(machine: Machine, holder: foreign.Holder, name: str, value: Abstract) -> None:
    """Bind a variable of the module, or of a function around the program, in the run."""
    kind = "cell" if isinstance(holder, CellType) else "global"
    machine.note_write((kind, id(holder), name), holder, was_read=machine.graph.reads.has(kind, holder, name))
    held = foreign.variable(machine, holder, name)
    if isinstance(value, Unbound):
        host_call(machine, held.delete, (), effect=Effect.WRITES, result_type=NONE_TYPE, taints=False)
        return
    machine.rules.check_kept(f"the variable {name!r}", [value])
    host_call(machine, held.write, (value,), effect=Effect.WRITES, result_type=NONE_TYPE, taints=False)


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
