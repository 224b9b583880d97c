"""``with`` and ``try``: blocks that look at exceptions and at what leaves them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from lmc.frontend.emit.operands import describe
from lmc.frontend.handles import handles
from lmc.frontend.heap.values import Abstract, Const, Raised, RoleTurn, Symbol

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def run_with(machine: Machine, node: ast.With) -> None:
    """``with manager as name: …``."""
    _enter(machine, node, 0)


def _enter(machine: Machine, node: ast.With, index: int) -> None:
    if index == len(node.items):
        machine.rules.execute(node.body)
        return
    item = node.items[index]
    manager = machine.rules.evaluate(item.context_expr)
    if not isinstance(manager, RoleTurn):
        raise machine.unsupported(f"`with` of {describe(machine, manager)}")
    handles.begin_role(machine, manager)
    if item.optional_vars is not None:
        machine.rules.assign(item.optional_vars, manager.handle)
    machine.turns.append(manager)
    try:
        _enter(machine, node, index + 1)
    finally:
        machine.turns.pop()
    handles.end_role(machine, manager)


def run_try(machine: Machine, node: ast.Try) -> None:
    """``try: … except …``."""
    del node
    raise machine.unsupported("`try`")


def as_exception(machine: Machine, value: Abstract) -> Raised:
    """What ``raise value`` raises."""
    if isinstance(value, Raised):
        return value
    if isinstance(value, Const) and isinstance(value.value, type) and issubclass(value.value, BaseException):
        made = machine.rules.call(value, [], {})
        assert isinstance(made, Raised)
        return made
    if isinstance(value, Symbol) and value.kind is not None and issubclass(value.kind, BaseException):
        return Raised(value.kind, (), value)
    raise machine.unsupported(f"raising {describe(machine, value)}")


def raise_again(machine: Machine) -> None:
    """``raise`` in a handler."""
    raise machine.unsupported("`raise` without an exception")
