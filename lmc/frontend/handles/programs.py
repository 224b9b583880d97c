"""Calls of other programs: each is a part of the caller, with a context of its own or on a given state."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import TYPE_CHECKING, Any

from lmc.frontend.handles.cores import allocate, allocate_id, is_handle, new_handle, refuse
from lmc.frontend.heap.cells import DictCell, HandleCell, ListCell
from lmc.frontend.heap.values import Abstract, BoundMethod, Const, Poison, Tuple, Union
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction, fits
from lmc.ir.core import Value
from lmc.ir.errors import LmcError

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]
ON_STATE = "on_state"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def call(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> Abstract | None:
    """A call of a program; None for what is none."""
    if not isinstance(held, JittedFunction):
        return None
    receiver, args = _receiver(machine, held, args)
    if _continues(machine, held, receiver, args, kwargs):
        return _on_state(machine, held, receiver, args, kwargs)
    language = held.language
    if language is not None:
        held, kwargs = language.called(machine, held, kwargs)
        language = held.language
    path, holes = allocate_id(machine, machine.path, machine.holes, held.name)
    with at_path(machine, path, holes):
        handle = new_handle(machine, path, holes, language)
        value = _entered(machine, held, [*receiver, handle], args, kwargs)
        return value if language is None else language.result(machine, handle, value)


def attribute_of(machine: Machine, owner: Abstract, name: str) -> Abstract | None:
    """``program.on_state``; None for other attributes."""
    if name != ON_STATE:
        return None
    program = owner.function if isinstance(owner, BoundMethod) else owner
    if not isinstance(program, Const) or not isinstance(program.value, JittedFunction):
        return None
    del machine
    return BoundMethod(ON_STATE, owner)


def call_method(machine: Machine, owner: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract | None:
    """``program.on_state(s, …)``; None for other methods."""
    if name != ON_STATE:
        return None
    receiver: Args = ()
    if isinstance(owner, BoundMethod) and isinstance(owner.function, Const):
        owner, receiver = owner.function, (owner.receiver,)
    held = owner.value if isinstance(owner, Const) else None
    if not isinstance(held, JittedFunction):
        return None
    if args and isinstance(args[0], Union | Poison):
        return machine.cases(args[0], lambda one: called_on_state(machine, owner, receiver, (one, *args[1:]), kwargs))
    return called_on_state(machine, owner, receiver, args, kwargs)


def called_on_state(machine: Machine, owner: Abstract, receiver: Args, args: Args, kwargs: Kwargs) -> Abstract:
    """``program.on_state(s, …)`` of one state."""
    assert isinstance(owner, Const)
    held = owner.value
    if not args or not isinstance(machine.cell(args[0]), HandleCell):
        refuse(
            machine,
            f"{held.name}.on_state() continues the state of a jitted function that runs now",
            f"call it inside a jitted function: {held.name}.on_state(s, …)",
        )
    if held.is_method and not held.receiver and not receiver:
        _refuse_without_object(machine, held)
    return _on_state(machine, held, receiver or tuple(map(Const, held.receiver)), args, kwargs)


@contextmanager
def at_path(machine: Machine, path: str, holes: tuple[Value, ...]) -> Generator[None]:
    """Give ids that belong to no handle from ``path`` on."""
    around = machine.path, machine.holes
    machine.path, machine.holes = path, holes
    try:
        yield
    finally:
        machine.path, machine.holes = around


def _receiver(machine: Machine, held: JittedFunction, args: Args) -> tuple[Args, Args]:
    """The object that a method is called on, and the other arguments."""
    if held.receiver or not held.is_method:
        return tuple(map(Const, held.receiver)), args
    if not args or is_handle(machine, args[0]):
        _refuse_without_object(machine, held)
    return args[:1], args[1:]


def _refuse_without_object(machine: Machine, held: JittedFunction) -> None:
    error = held.without_object()
    refuse(machine, error.cause, error.remedy or "")


def _continues(machine: Machine, held: JittedFunction, receiver: Args, args: Args, kwargs: Kwargs) -> bool:
    """Return True if a call passes a state to continue: its arguments do not fit without it."""
    if not args or not isinstance(machine.cell(args[0]), HandleCell) or not held.may_be_method:
        return False
    return not fits(_program(held, receiver).signature, tuple(args), kwargs)


def _program(held: JittedFunction, receiver: Args) -> JittedFunction:
    """A program with the signature that a call on ``receiver`` has."""
    return held.bound_to(object()) if receiver and not held.receiver else held


def _on_state(machine: Machine, held: JittedFunction, receiver: Args, args: Args, kwargs: Kwargs) -> Abstract:
    cell = machine.cell(args[0])
    assert isinstance(cell, HandleCell)
    path, holes = allocate(machine, args[0], held.name)
    with at_path(machine, path, holes):
        handle = machine.new(HandleCell(cell.core, path, holes, cell.language))
        return _entered(machine, held, [*receiver, handle], args[1:], kwargs)


def _entered(machine: Machine, held: JittedFunction, first: Args, args: Args, kwargs: Kwargs) -> Abstract:
    """Interpret the body of a program that is given ``first``: its object, where it is a method, and its handle."""
    held.refuse_async()
    function = held.definition
    if not isinstance(function, FunctionType):
        raise machine.stop(f"{held.name}() is no plain function", "decorate a function written with def")
    _check_arguments(machine, held, first[:-1], args, kwargs)
    bring_language(machine, held)
    given = {**_defaults(machine, held, first[:-1], args, kwargs), **bound_before(machine, held), **kwargs}
    return machine.rules.inline(function, [*first, *args], given)


def _defaults(machine: Machine, held: JittedFunction, receiver: Args, args: Args, kwargs: Kwargs) -> Kwargs:
    """Return the defaults that a call takes: those of the time at which the program was made, as in plain Python."""
    parameters = _program(held, receiver).signature.parameters
    having = [name for name, parameter in parameters.items() if parameter.default is not parameter.empty]
    places = [name for name, parameter in parameters.items() if parameter.kind in _POSITIONAL] if having else []
    given = {*places[: len(args)], *kwargs}
    missing = {
        name: parameters[name].default
        for name in having
        if name not in given and parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    }
    return {name: machine.rules.outside(value, f"the default of {name!r}") for name, value in missing.items()}


def bring_language(machine: Machine, held: JittedFunction) -> None:
    """Let the functions of a program's language be known, and guard what a capture of the program depends on."""
    if held.language is not None:
        machine.functions.update(held.language.functions)
    for owner, name in held.guarded:
        machine.graph.reads.add_attribute(owner, name, getattr(owner, name, None))


def bound_before(machine: Machine, held: JittedFunction) -> dict[str, Abstract]:
    """Arguments that a program is bound to, by name."""
    found = held.bound_arguments.items()
    return {name: machine.rules.outside(value, f"the argument {name!r}") for name, value in found}


def _check_arguments(machine: Machine, held: JittedFunction, receiver: Args, args: Args, kwargs: Kwargs) -> None:
    """Raise in the program what a call with these arguments raises, before the program begins."""
    program = _program(held, receiver)
    try:
        bind(program, tuple(_shape(machine, each) for each in args), {k: _shape(machine, v) for k, v in kwargs.items()})
    except LmcError as error:
        known = all(machine.plain(value) is not None for value in (*args, *kwargs.values()))
        if fits(program.signature, tuple(args), kwargs) and not known:  # its text shows values
            raise machine.stop(f"this raises {type(error).__name__}: {error.cause}", "correct the call") from None
        refuse(machine, error.cause, error.remedy or "", type(error))


class _Unknown:
    """Stands for an argument that only a run knows."""


def _shape(machine: Machine, value: Abstract) -> Any:
    """Return containers of the program's own as plain ones, for the checks of annotations."""
    plain = machine.plain(value)
    if plain is not None:
        return plain[0]
    if isinstance(value, Tuple):
        return tuple(_shape(machine, item) for item in value.items)
    cell = machine.cell(value)
    if isinstance(cell, ListCell):
        return [_shape(machine, item) for item in cell.items]
    if isinstance(cell, DictCell):
        return dict(zip(cell.keys, (_shape(machine, item) for item in cell.values), strict=True))
    return _Unknown()
