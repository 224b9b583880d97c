"""Reads of a handle: variables, their metadata, its text and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.known import concrete
from lmc.frontend.handles.cores import context_of, core_of, named, refuse, variables
from lmc.frontend.heap.cells import ObjectCell
from lmc.frontend.heap.values import NONE, UNBOUND, Abstract, Const, Poison, Symbol, Unbound, Union
from lmc.frontend.language.refusals import near
from lmc.frontend.language.state import UnknownVariableError
from lmc.ir.dialects.core_ops import MessagesOp, TranscriptOp
from lmc.ir.types import ANY, TEXT

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


@named
def variable(machine: Machine, handle: Abstract, key: Abstract) -> Abstract:
    """``s["name"]``."""
    name = concrete(machine, key, "the name of a variable is needed now")
    address, core = core_of(machine, handle)
    value = machine.state.get((address, name)) if type(name) is str and name in core.names else UNBOUND
    if isinstance(value, Unbound):
        _unknown_variable(machine, handle, name)
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        there = value.first

        def missing() -> Abstract:
            _unknown_variable(machine, handle, name)
            return NONE

        return machine.choose(value.flag, lambda: there, missing)
    assert isinstance(value, Abstract)
    if isinstance(value, Poison):
        raise machine.stop(value.cause, value.remedy)
    return value


def _unknown_variable(machine: Machine, handle: Abstract, name: Any) -> None:
    refuse(
        machine,
        f"the state has no variable {name!r}",
        near(str(name), list(variables(machine, handle))),
        UnknownVariableError,
    )


@named
def holds(machine: Machine, handle: Abstract, key: Abstract) -> Abstract:
    """``"name" in s``."""
    name = concrete(machine, key, "the name of a variable is needed now")
    value = variables(machine, handle).get(name, UNBOUND)
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        return value.flag
    return Const(not isinstance(value, Unbound))


@named
def get(machine: Machine, handle: Abstract, key: Abstract, default: Abstract = NONE) -> Abstract:
    """``s.get("name", default)``."""
    name = concrete(machine, key, "the name of a variable is needed now")
    value = variables(machine, handle).get(name, UNBOUND)
    if isinstance(value, Unbound):
        return default
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        there = value.first
        return machine.choose(value.flag, lambda: there, lambda: default)
    return value


@named
def meta(machine: Machine, handle: Abstract, key: Abstract) -> Abstract:
    """``s.meta("name")``."""
    name = concrete(machine, key, "the name of a variable is needed now")
    address, core = core_of(machine, handle)
    if name not in variables(machine, handle):
        _unknown_variable(machine, handle, name)
    value = machine.state.get((address, f"@meta:{name}")) if name in core.metas else UNBOUND
    if isinstance(value, Unbound):
        refuse(machine, f"{name!r} has no meta data", "ask for it: s.gen(name, logprobs=…)")
    if not isinstance(value, Symbol):
        raise machine.unsupported("meta data that only some ways have")
    return value


def text(machine: Machine, handle: Abstract) -> Abstract:
    """``s.text()``."""
    (result,) = machine.emit(TranscriptOp, (TEXT,), context=context_of(machine, handle).ir)
    return Symbol(result, "the text of the state")


def messages(machine: Machine, handle: Abstract) -> Abstract:
    """``s.messages()`` of SGLang's language."""
    (result,) = machine.emit(MessagesOp, (ANY,), context=context_of(machine, handle).ir)
    return machine.new(ObjectCell(Symbol(result, "the messages of the state"), list))
