"""Values that follow from the arguments: reading them makes the capture valid for those arguments alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from lmc.frontend.emit.operands import concat_expression, describe, pure, text_symbol
from lmc.frontend.heap.sizes import CAUSE as SIZE_CAUSE
from lmc.frontend.heap.sizes import REMEDY as SIZE_REMEDY
from lmc.frontend.heap.sizes import is_too_large
from lmc.frontend.heap.values import Abstract, Concat, Const, Symbol, is_literal
from lmc.frontend.machine.graph import UNKNOWN
from lmc.ir.dialects.core_ops import AssumeOp
from lmc.ir.types import ANY

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

NEEDED = "its value is needed now"


def known_value(machine: Machine, value: Abstract) -> Any:
    """Return what ``value`` is for the arguments that are given; ``UNKNOWN`` where they do not tell."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Symbol):
        return machine.graph.known(value.expression)
    return machine.graph.known(concat_expression(value)) if isinstance(value, Concat) else UNKNOWN


def concrete(machine: Machine, value: Abstract, use: str = NEEDED) -> Any:
    """``value`` as a plain one. Where it follows from the arguments, the capture then holds for that value only.

    Ends the capture where it does not.
    """
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Concat):
        value = text_symbol(machine, value)
    if isinstance(value, Symbol) and value.ir in machine.specialised:
        return machine.specialised[value.ir]
    found = known_value(machine, value)
    if found is UNKNOWN or not isinstance(value, Symbol) or not is_literal(found) or found != found:  # noqa: PLR0124
        _refuse_unknown(machine, value, use)
    assert value.expression is not None
    if is_too_large(found):
        raise machine.stop(SIZE_CAUSE, SIZE_REMEDY)
    machine.graph.emit(AssumeOp, value=value.ir, expected=found)
    machine.graph.guard(value.expression, found)
    if machine.graph.builder is machine.graph.root:
        machine.specialised[value.ir] = found
    return found


def _refuse_unknown(machine: Machine, value: Abstract, use: str) -> NoReturn:
    what = describe(machine, value)
    if isinstance(value, Symbol) and value.expression is not None and not machine.graph.inputs:
        raise machine.stop(
            f"{what} is not given, but {use}", "compile with example inputs, which the program specialises for"
        )
    raise machine.stop(
        f"{what} is known only when the program runs, but {use}",
        "nothing has to change: the rest runs eagerly; what should be compiled, do before it",
    )


def decided(machine: Machine, flag: Abstract) -> Abstract:
    """A flag as a constant, where it follows from the arguments: the capture then holds for those alone."""
    if not isinstance(flag, Symbol) or not machine.activation.decides:
        return flag
    if known_value(machine, flag) is UNKNOWN:
        return flag
    return Const(concrete(machine, flag))


def length_of(machine: Machine, value: Symbol) -> Symbol:
    """``len`` of a list or text of the run, once for each in a block."""
    known = machine.lengths.get(value.ir)
    if known is not None and not value.foreign and value.type != ANY and machine.is_open(known[1]):
        return known[0]
    found = pure(machine, "len", (value,))
    machine.lengths[value.ir] = (found, machine.graph.builder)
    return found


def note_length(machine: Machine, value: Symbol, like: Symbol) -> None:
    """Note that a list of the run is as long as another one."""
    if not like.foreign:
        machine.lengths[value.ir] = (length_of(machine, like), machine.graph.builder)


def is_length(machine: Machine, value: Symbol) -> bool:
    """Return whether ``value`` is the length of a list or text."""
    return any(known.ir == value.ir for known, _ in machine.lengths.values())


def specialised_length(machine: Machine, value: Symbol) -> int | None:
    """The length of a list or text that the capture holds for already; None where it does not."""
    known = machine.lengths.get(value.ir)
    return None if known is None else machine.specialised.get(known[0].ir)
