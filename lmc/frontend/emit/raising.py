"""Exceptions that the program raises where it is interpreted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from lmc.frontend.emit.operands import exception_parts, operand
from lmc.frontend.heap.values import Abstract, Const, Raised
from lmc.frontend.machine.exits import RAISE, Left, Outcome, Way
from lmc.frontend.machine.machine import MadeError
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.errors import LmcError
from lmc.ir.types import NONE

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

T = TypeVar("T")


def throw(machine: Machine, error: Raised) -> NoReturn:
    """Raise an exception of the program here."""
    if machine.handled and error is not machine.handled[-1] and error.context is None:
        error = replace(error, context=machine.handled[-1])
    if machine.protected:
        machine.close_turns(machine.try_marks[-1])
        raise Left(Outcome({RAISE: Way(machine.state, error)}, machine.state, machine.watermark()))
    if error.made is not None and machine.graph.builder is machine.graph.root:
        raise MadeError(error.made, machine.graph.location)
    (raised,) = machine.graph.emit(
        PyCallOp,
        (NONE,),
        function="raise" if error.context is None else "raise_while",
        arguments=tuple(operand(machine, each).ir for each in exception_parts(machine, error)),
    )
    if error.made is not None:
        machine.note_refused(raised, error.made)
    machine.leave()


def raise_new(machine: Machine, kind: type[BaseException], *args: Any, **keywords: Abstract) -> NoReturn:
    """Raise a new exception with literals."""
    throw(machine, Raised(kind, tuple(Const(arg) for arg in args), keywords=keywords))


def checked(machine: Machine, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """``function(*args)``, one of lmc's own checks; what it refuses is raised at the line of the program."""
    try:
        return function(*args, **kwargs)
    except LmcError as error:
        error.location = machine.graph.location
        throw(machine, Raised(type(error), made=error.with_traceback(None)))
