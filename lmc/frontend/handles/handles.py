"""The methods of a handle, and the functions of lmc: a table of their rules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.known import concrete, known_value
from lmc.frontend.emit.operands import pure
from lmc.frontend.emit.raising import checked, raise_new
from lmc.frontend.handles import forms, programs
from lmc.frontend.handles.appending import append
from lmc.frontend.handles.arrays import item
from lmc.frontend.handles.branches import copy, fork
from lmc.frontend.handles.cores import language_of, refuse, takes
from lmc.frontend.handles.generating import gen, select
from lmc.frontend.handles.making import FUNCTIONS
from lmc.frontend.handles.misuse import refuse_variable
from lmc.frontend.handles.reading import get, holds, meta, text, variable
from lmc.frontend.heap.cells import BranchArrayCell, BranchesCell, HandleCell, ListCell
from lmc.frontend.heap.values import NONE, Abstract, Appended, BoundMethod, Const, Ref, RoleTurn, Symbol, Tuple, same
from lmc.frontend.language.messages import Message
from lmc.frontend.machine.graph import UNKNOWN
from lmc.frontend.program.function import AT_CAPTURE, LIBRARY
from lmc.frontend.python.foreign import current
from lmc.frontend.python.items import one_of
from lmc.frontend.source.functions import POLYFILLS
from lmc.ir.errors import CaptureError
from lmc.ir.types import TEXT
from lmc.ir.wording import with_count

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]


def _role(role: str) -> Callable[..., Abstract]:
    def method(machine: Machine, handle: Abstract, *content: Abstract) -> Abstract:
        if not content:
            assert isinstance(handle, Ref)
            return role_turn(machine, handle, role)
        append(machine, handle, Appended(Message(role, content[0])))
        return NONE

    return method


def role_turn(machine: Machine, handle: Ref, role: str) -> RoleTurn:
    """``s.user()``, which ``with`` opens. Ends the capture where it does not."""
    statement = machine.activation.statement
    if isinstance(statement, ast.With):
        return RoleTurn(handle, role)
    error = CaptureError(
        f"s.{role}() with neither a text nor `with` does nothing",
        remedy=f"write with s.{role}(): and append inside the block, or s.{role}(text)",
        location=machine.graph.location,
    )
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name), args=[])) if name == role and not machine.protected:
            raise machine.made_error(error)  # the run raises it at the next use of a state
        case _:
            raise machine.stop(error.cause, error.remedy or "")


def _append_method(machine: Machine, handle: Abstract, content: Abstract) -> Abstract:
    append(machine, handle, content)
    return NONE


METHODS: Mapping[str, Callable[..., Abstract]] = {
    "gen": gen,
    "select": select,
    "fork": fork,
    "copy": copy,
    "get": get,
    "meta": meta,
    "text": text,
    "append": _append_method,
    **{role: _role(role) for role in ("system", "user", "assistant")},
}


def _methods(cell: HandleCell) -> Mapping[str, Callable[..., Abstract]]:
    return METHODS if cell.language is None else cell.language.methods


def _branch_methods(machine: Machine, cell: BranchesCell | BranchArrayCell) -> Mapping[str, Callable[..., Abstract]]:
    source = cell.source if isinstance(cell, BranchesCell) else NONE
    return {} if source is NONE else language_of(machine, source).branch_methods


def _fitting(machine: Machine, name: str, handler: Callable[..., Abstract], args: Args, kwargs: Kwargs) -> Abstract:
    """Call a rule. Ends the capture for arguments that what it stands for does not take."""
    if not takes(handler, len(args) + 1, tuple(kwargs)):
        raise machine.stop(f"the arguments do not fit {name}()", "give it the arguments that it takes")
    return handler(machine, *args, **kwargs)


def call_method(machine: Machine, receiver: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract | None:
    """A method of a handle; None for other receivers."""
    found = programs.call_method(machine, receiver, name, args, kwargs)
    if found is not None:
        return found
    cell = machine.cell(receiver)
    if isinstance(cell, HandleCell):
        handler = _methods(cell).get(name)
        if handler is None:
            raise machine.unsupported(f"s.{name}()")
        return _fitting(machine, name, handler, [receiver, *args], kwargs)
    if isinstance(cell, BranchesCell | BranchArrayCell):
        handler = _branch_methods(machine, cell).get(name)
        if handler is None:
            raise machine.unsupported(f"{name}() of branches")
        return _fitting(machine, name, handler, [receiver, *args], kwargs)
    return None


def attribute_of(machine: Machine, owner: Abstract, name: str) -> Abstract | None:
    """An attribute of a handle, ``on_state`` of a program; None for others."""
    found = programs.attribute_of(machine, owner, name)
    if found is not None:
        return found
    cell = machine.cell(owner)
    if isinstance(cell, HandleCell):
        if name in _methods(cell):
            return BoundMethod(name, owner)
        if cell.language is not None and name in cell.language.attributes:
            return cell.language.attributes[name](machine, owner)
        raise machine.unsupported(f"s.{name}")
    if isinstance(cell, BranchesCell | BranchArrayCell) and name in _branch_methods(machine, cell):
        return BoundMethod(name, owner)
    return None


def item_of(machine: Machine, owner: Abstract, key: Abstract) -> Abstract | None:
    """``s["name"]``, ``branches[0]``, ``branches["name"]``; None for other owners."""
    cell = machine.cell(owner)
    if isinstance(cell, HandleCell):
        return variable(machine, owner, key)
    if isinstance(cell, BranchArrayCell):
        return item(machine, owner, key)
    if isinstance(cell, BranchesCell):
        count = with_count(len(cell.handles), "branch", "branches")
        if isinstance(key, Symbol) and key.type != TEXT and known_value(machine, key) is UNKNOWN:
            return one_of(machine, cell.handles, pure(machine, "branch_index", (Const(len(cell.handles)), key)))
        plain = machine.plain(key)
        found = plain[0] if plain is not None else concrete(machine, key, "which branch this is must be known now")
        if type(found) is str:
            return machine.new(ListCell(tuple(variable(machine, each, Const(found)) for each in cell.handles)))
        if type(found) is slice:
            return machine.new(ListCell(cell.handles[found]))
        if type(found) is not int:
            refuse(machine, f"branches[{found!r}]", "index branches by number, or by the name of a variable")
        if not -len(cell.handles) <= found < len(cell.handles):
            raise_new(machine, IndexError, f"the fork has {count}, none at {found}")
        return cell.handles[found]
    return None


def set_item_of(machine: Machine, owner: Abstract, key: Abstract, value: Abstract) -> bool:
    """``branches[i] += …`` puts back the branch that it took. Return whether ``owner`` are branches."""
    cell = machine.cell(owner)
    if isinstance(cell, HandleCell):
        if cell.language is not None:
            cell.language.set_item(machine, owner, key, value)
            return True
        refuse_variable(machine, key)
    if isinstance(cell, BranchArrayCell):
        found, given = machine.cell(item(machine, owner, key)), machine.cell(value)
        if not isinstance(found, HandleCell) or not isinstance(given, HandleCell) or found.core != given.core:
            refuse(machine, "a branch can't be replaced", "change the branch itself: branches[i] += …")
        return True
    if not isinstance(cell, BranchesCell):
        return False
    index = concrete(machine, key, "which branch this is must be known now")
    if not same(cell.handles[index], value):
        refuse(machine, "a branch can't be replaced", "change the branch itself: branches[i] += …")
    return True


def contains_of(machine: Machine, container: Abstract, item: Abstract) -> Abstract | None:
    """``"name" in s``; None for other containers."""
    return holds(machine, container, item) if isinstance(machine.cell(container), HandleCell) else None


def _object(machine: Machine, value: Abstract, use: str) -> Any:
    """``value`` for a function of lmc's own that is called now, which runs no code of the user's."""
    value = current(machine, value)
    cell = machine.cell(value)
    if isinstance(value, Tuple) and value.kind is tuple:
        return tuple(_object(machine, each, use) for each in value.items)
    if isinstance(cell, ListCell):
        return [_object(machine, each, use) for each in cell.items]
    return concrete(machine, value, use)


_FUNCTIONS: Mapping[Any, Callable[..., Abstract]] = {**FUNCTIONS, **forms.FUNCTIONS}


def call_function(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> Abstract | None:
    """A program, or a function of lmc's own; None for others."""
    is_key = type(held).__hash__ is not None and callable(held)
    handler = (_FUNCTIONS.get(held) or machine.functions.get(held)) if is_key else None
    if handler is not None:
        return _fitting(machine, held.__name__, handler, args, kwargs)
    own = isinstance(held, FunctionType) and (held.__module__ or "").partition(".")[0] == "lmc"
    if own and held.__code__.co_filename != POLYFILLS:
        if held in AT_CAPTURE:
            use = f"{held.__name__}() needs it now"
            given = [_object(machine, each, use) for each in args]
            named = {name: _object(machine, each, use) for name, each in kwargs.items()}
            return machine.lifted(checked(machine, held, *given, **named))
        if held not in LIBRARY:
            raise machine.unsupported(f"{held.__name__}() of lmc's own")
        return machine.rules.inline(held, args, kwargs)
    return programs.call(machine, held, args, kwargs)
