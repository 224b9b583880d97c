"""Places outside the program: the run reads what the capture can't know, and writes what the program writes.

The capture reads such a place now, and guards it, while no call can have changed it. A place that the program itself
writes is read in the run everywhere (``Machine.written``): the capture begins again where it was read before.
"""

from __future__ import annotations

import builtins
import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from types import CellType
from typing import TYPE_CHECKING, Any

from lmc.frontend.emit.operands import constant, host_call, pure
from lmc.frontend.heap.values import Abstract, Const, Symbol, Tuple
from lmc.frontend.program.guards import CONTAINERS, mutable_parts
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]
Holder = dict[str, Any] | CellType
_READING = frozenset(
    {"copy", "count", "index", "get", "keys", "values", "items", "isdisjoint", "issubset", "issuperset"}
)
_READING_SETS = frozenset(
    {"union", "intersection", "difference", "symmetric_difference", "isdisjoint", "issubset", "issuperset"}
)


class Variable:
    """A global, or a variable of an enclosing function, as host functions."""

    def __init__(self, holder: Holder, name: str) -> None:
        self.holder = holder
        self.name = name
        self.read = _named(self._read, f"read_{name}")
        self.write = _named(self._write, f"set_{name}")
        self.delete = _named(self._delete, f"delete_{name}")

    def _read(self) -> Any:
        if isinstance(self.holder, CellType):
            try:
                return self.holder.cell_contents
            except ValueError:
                place = "where it is not associated with a value in enclosing scope"
                raise NameError(f"cannot access free variable '{self.name}' {place}") from None
        if self.name in self.holder:
            return self.holder[self.name]
        if hasattr(builtins, self.name):
            return getattr(builtins, self.name)
        raise NameError(f"name '{self.name}' is not defined")

    def _write(self, value: Any) -> None:
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        else:
            self.holder[self.name] = value

    def _delete(self) -> None:
        self._read()
        if isinstance(self.holder, CellType):
            del self.holder.cell_contents
        else:
            del self.holder[self.name]


def _named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        return function(*values)

    run.__name__ = run.__qualname__ = name
    return run


def variable(machine: Machine, holder: Holder, name: str) -> Variable:
    """The host functions of a variable; the same ones each time."""
    key = (id(holder), name)
    if key not in machine.variables:
        machine.variables[key] = Variable(holder, name)
    return machine.variables[key]


def read_variable(machine: Machine, holder: Holder, name: str) -> Symbol:
    """Read a variable in the run."""
    machine.graph.note_hooks(holder.get(name) if isinstance(holder, dict) else holder)
    return host_call(machine, variable(machine, holder, name).read, (), effect=Effect.READS, origin=f"{name!r}")


def loaded_module(machine: Machine, name: str) -> Const:
    """Return a module that ``import`` gives: where it is loaded already, that runs nothing."""
    module = sys.modules.get(name)
    if module is None:
        raise machine.stop(f"importing {name!r} runs it", "import it at the top of the file")
    machine.graph.reads.add_global(sys.modules, name, module)
    return Const(module)


# Objects that can change


def is_changed(machine: Machine, value: Any) -> bool:
    """Return whether what ``value`` holds may differ from what it holds now, and nothing but a run knows."""
    if not machine.state.tainted and not machine.written:
        return False
    if type(value) not in CONTAINERS and not isinstance(value, tuple):
        return False
    parts: dict[int, Any] = {}
    mutable_parts(value, parts)
    return bool(parts) and (machine.state.tainted or any(("object", part) in machine.written for part in parts))


def current(machine: Machine, value: Abstract) -> Abstract:
    """``value``; an object of the run in the place of a container from outside that may have changed."""
    return live(machine, value.value) if isinstance(value, Const) and is_changed(machine, value.value) else value


def live(machine: Machine, value: Any) -> Symbol:
    """An object from outside that is looked into in the run alone."""
    return constant(machine, value)


def note_change(machine: Machine, value: Any) -> None:
    """The program changes a container from outside, which is read in the run from the beginning on."""
    machine.note_write(("object", id(value)), value, was_read=True)


def held(machine: Machine, value: Any) -> Abstract:
    """A part of an object from outside: containers stay the objects that they are."""
    if type(value) is tuple:
        return Tuple(tuple(held(machine, part) for part in value))
    return current(machine, Const(value))


# Objects of the run


def call_container(machine: Machine, receiver: Symbol, name: str, args: Args, kwargs: Kwargs) -> Abstract:
    """A method of a list, dict or set that functions of the user's can change as well."""
    kind = receiver.kind
    assert kind is not None
    reads = name in _READING or (name in _READING_SETS and kind is set)
    effect = Effect.READS if reads and not machine.graph.hooked else Effect.WRITES
    return host_call(machine, getattr(kind, name), [receiver, *args], kwargs, effect=effect, result_type=ANY)


def iterator(machine: Machine, value: Abstract) -> Symbol:
    """``iter(value)`` of an object whose iteration may run code of the user's."""
    return host_call(machine, iter, (value,), effect=Effect.WRITES)


def advanced(machine: Machine, given: Abstract) -> tuple[Symbol, Symbol]:
    """Return whether such an iterator has another item, and which."""
    step = host_call(machine, next_item, (given,), effect=Effect.WRITES)
    step = dataclasses.replace(step, kind=tuple)
    goes_on = pure(machine, "getitem", (step, Const(0)), gives=BOOL, raises=False)
    return goes_on, pure(machine, "getitem", (step, Const(1)), raises=False)


def next_item(given: Any) -> tuple[bool, Any]:
    """Return whether an iterator has another item, and which, as a host function."""
    for item in given:
        return True, item
    return False, None


def call_value(function: Any, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, as a host function."""
    return function(*args, **kwargs)


def get_attribute(owner: Any, name: str) -> Any:
    """``owner.name``, as a host function."""
    return getattr(owner, name)


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """``owner.name = value``, as a host function."""
    setattr(owner, name, value)


def delete_attribute(owner: Any, name: str) -> None:
    """``del owner.name``, as a host function."""
    delattr(owner, name)
