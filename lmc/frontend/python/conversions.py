"""Texts, numbers and bools of values: ``str``, ``format``, ``int``, ``bool`` and the like."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import concat, describe, is_text, pure, type_of_value
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import (
    InstanceCell,
    ListCell,
)
from lmc.frontend.heap.values import (
    Abstract,
    Const,
    Poison,
    Raised,
    Symbol,
    Unbound,
    Union,
    View,
)
from lmc.frontend.python.iteration import known_items
from lmc.frontend.python.operators import run_now, truth
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, Type
from lmc.ir.types import NONE as NONE_TYPE

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Handler = Callable[..., Abstract]


def to_text(machine: Machine, value: Abstract, name: str = "str") -> Abstract:
    """``str(value)``, ``repr(value)`` or ``ascii(value)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: to_text(machine, one, name))
    if name == "str" and is_text(machine, value):
        return value
    plain = machine.plain(value)
    if plain is not None:
        return run_now(machine, getattr(builtins, name), [plain[0]], name)
    own = machine.special("__str__", value) if name == "str" else None
    own = machine.special("__repr__", value) if own is None else own
    if own is not None:
        if not is_text(machine, own):
            raise machine.unsupported(f"a text of {describe(machine, value)} that may be none")
        return own
    if isinstance(value, Const):
        return machine.rules.object_call(name, getattr(builtins, name), [value])
    if isinstance(value, View) and not objects.is_object(machine, value.owner):
        items = machine.new(ListCell(tuple(known_items(machine, value, "its text is needed"))))
        return concat(machine, (Const(f"dict_{value.what}("), to_text(machine, items, "repr"), Const(")")))
    if isinstance(machine.cell(value), InstanceCell):
        raise machine.stop("the text of this object holds its address", "use a field of it")
    if isinstance(value, Raised) and name == "str" and value.symbol is None and value.made is None:
        if not value.args:
            return Const("")
        if len(value.args) == 1 and value.kind is not KeyError:
            return to_text(machine, value.args[0])
    return pure(machine, name, (value,), gives=TEXT)


def formatted(machine: Machine, value: Abstract, spec: Abstract) -> Abstract:
    """``format(value, spec)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: formatted(machine, one, spec))
    parts = machine.plain(value), machine.plain(spec)
    if parts[0] is not None and parts[1] is not None:
        return run_now(machine, format, [parts[0][0], parts[1][0]], "format")
    own = machine.special("__format__", value, spec)
    if own is not None:
        return own
    if isinstance(spec, Const) and spec.value == "" and not (isinstance(value, Symbol) and value.foreign):
        return to_text(machine, value)
    cell = machine.cell(value)
    if isinstance(cell, InstanceCell):
        raise_new(machine, TypeError, f"unsupported format string passed to {cell.kind.__name__}.__format__")
    if isinstance(value, Const):
        return machine.rules.object_call("format", format, [value, spec])
    return pure(machine, "format", (value, spec))


def conversion(name: str) -> Handler:
    """A function that makes a number or a text of values."""
    function = getattr(builtins, name)

    def convert(machine: Machine, *given: Abstract, **named: Abstract) -> Abstract:
        if given and isinstance(given[0], Union | Poison | Unbound):
            return machine.cases(given[0], lambda one: convert(machine, one, *given[1:], **named))
        plain = [machine.plain(value) for value in (*given, *named.values())]
        if all(each is not None for each in plain):
            values = [each[0] for each in plain if each is not None]
            split = len(given)
            return run_now(machine, function, values[:split], name, **dict(zip(named, values[split:], strict=True)))
        own = machine.special(f"__{name}__", given[0])
        if own is not None:
            return own
        if isinstance(given[0], Const):
            return machine.rules.object_call(name, function, list(given))
        return pure(
            machine, name, given, named, gives=_rounded(machine, (*given, *named.values())) if name == "round" else None
        )

    return convert


def _rounded(machine: Machine, given: Sequence[Abstract]) -> Type | None:
    """The type of ``round(number)`` or ``round(number, digits)``."""
    kinds = [type_of_value(machine, value) for value in given]
    if len(kinds) == 1 or kinds[1] == NONE_TYPE:
        return INT if kinds[0] in (INT, FLOAT, BOOL) else None
    return {INT: INT, BOOL: INT, FLOAT: FLOAT}.get(kinds[0]) if kinds[1] in (INT, BOOL) else None


def to_bool(machine: Machine, *given: Abstract) -> Abstract:
    """``bool(…)``."""
    return truth(machine, given[0]) if given else Const(False)


def new_text(machine: Machine, *given: Abstract) -> Abstract:
    """``str(…)``."""
    return to_text(machine, given[0]) if given else Const("")
