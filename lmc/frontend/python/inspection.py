"""Questions about values: ``len``, ``isinstance``, ``type``, ``getattr``, ``callable``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmc.frontend.emit import objects
from lmc.frontend.emit.known import concrete, is_length, length_of
from lmc.frontend.emit.operands import class_of, describe, host_call, pure
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import (
    BranchArrayCell,
    BranchesCell,
    DictCell,
    GrownCell,
    ListCell,
)
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    BoundMethod,
    Concat,
    Const,
    Function,
    NumberRange,
    Partial,
    Poison,
    Raised,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
)
from lmc.frontend.python import attributes
from lmc.frontend.python.operators import binary, run_now, truth
from lmc.frontend.source.pure_types import is_standard_module
from lmc.ir.core import Effect
from lmc.ir.types import BOOL, TEXT, ListType

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def size(machine: Machine, value: Abstract) -> Abstract:
    """``len(value)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: size(machine, one))
    if isinstance(value, View | NumberRange):
        return size(machine, value.owner if isinstance(value, View) else value.items)
    plain = machine.plain(value)
    if plain is not None:
        return run_now(machine, len, [plain[0]], "len")
    own = machine.special("__len__", value)
    if own is not None:
        return _checked_size(machine, own)
    if isinstance(value, Tuple):
        return Const(len(value.items))
    if objects.is_object(machine, value):
        return pure(machine, "len", (objects.looked_into(machine, value),))
    if isinstance(value, Symbol | Concat):
        if isinstance(value, Symbol) and (value.type == TEXT or isinstance(value.type, ListType)):
            return length_of(machine, value)
        return pure(machine, "len", (value,))
    if isinstance(value, Const):
        return machine.rules.object_call("len", len, [value])
    cell = machine.cell(value)
    if isinstance(cell, ListCell | DictCell):
        return Const(len(cell.items if isinstance(cell, ListCell) else cell.keys))
    if isinstance(cell, GrownCell):
        return length_of(machine, cell.value)
    if isinstance(cell, BranchesCell):
        return Const(len(cell.handles))
    if isinstance(cell, BranchArrayCell):
        return cell.count
    raise machine.unsupported(f"the length of {describe(machine, value)}")


def _checked_size(machine: Machine, found: Abstract) -> Abstract:
    """Return what ``__len__`` returned, as ``len`` gives it."""
    if class_of(machine, found) is not int:
        raise machine.unsupported("a length that may be no int")
    if isinstance(found, Symbol) and is_length(machine, found):
        return found
    flag = truth(machine, binary(machine, "lt", found, Const(0)))

    def negative() -> Abstract:
        raise_new(machine, ValueError, "__len__() should return >= 0")

    if isinstance(flag, Const):
        return negative() if flag.value else found
    assert isinstance(flag, Symbol)
    return machine.choose(flag, negative, lambda: found)


def is_instance(machine: Machine, value: Abstract, kinds: Abstract) -> Abstract:
    """``isinstance(value, kinds)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: is_instance(machine, one, kinds))
    wanted = _classes(machine, kinds)
    found = attributes.class_known(machine, value) if isinstance(value, Symbol) else class_of(machine, value)
    if isinstance(value, Function):
        found = type(is_instance)
    if wanted is None:
        raise machine.unsupported(f"the class of {describe(machine, value)}")
    _check_plain(machine, wanted)
    if found is None and isinstance(value, Symbol):
        given = Const(wanted[0]) if len(wanted) == 1 else Tuple(tuple(map(Const, wanted)))
        return host_call(machine, isinstance, (value, given), effect=Effect.PURE, result_type=BOOL)
    if found is None:
        raise machine.unsupported(f"the class of {describe(machine, value)}")
    return Const(issubclass(found, tuple(wanted)))


def _check_plain(machine: Machine, kinds: Sequence[type]) -> None:
    """End the capture where a class says by its own code what belongs to it."""
    for each in kinds:
        plain = type(each) is type or type(each).__module__.partition(".")[0] in ("abc", "enum", "pydantic")
        own = any("__subclasshook__" in vars(base) and not is_standard_module(base.__module__) for base in each.__mro__)
        if not plain or own:
            raise machine.stop(
                f"only code of the class {each.__name__} can tell what belongs to this class",
                "nothing has to change: it runs eagerly from here; to have it compiled, ask in a tool",
            )


def _classes(machine: Machine, kinds: Abstract) -> list[type] | None:
    if isinstance(kinds, Tuple):
        found = [_classes(machine, each) for each in kinds.items]
        return None if any(each is None for each in found) else [kind for each in found if each for kind in each]
    if isinstance(kinds, Const) and isinstance(kinds.value, type):
        return [kinds.value]
    if isinstance(kinds, Const) and isinstance(kinds.value, tuple):
        return list(kinds.value)
    args = getattr(kinds.value, "__args__", None) if isinstance(kinds, Const) else None
    return None if args is None else list(args)


def get_attribute(machine: Machine, owner: Abstract, name: Abstract, *default: Abstract) -> Abstract:
    """``getattr(owner, name)`` and ``getattr(owner, name, default)``."""
    if isinstance(owner, Union | Poison | Unbound):
        return machine.cases(owner, lambda one: get_attribute(machine, one, name, *default))
    known = concrete(machine, name, "the name of an attribute is needed now")
    if type(known) is not str:
        raise_new(machine, TypeError, "attribute name must be string, not " + repr(type(known).__name__))
    if not default:
        return attributes.read(machine, owner, known)
    there = attributes.presence(machine, owner, known)
    if isinstance(there, Const):
        return attributes.read(machine, owner, known) if there.value else default[0]
    if there is not None:
        return machine.choose(there, lambda: attributes.read(machine, owner, known), lambda: default[0])
    return host_call(machine, getattr, (owner, name, *default), effect=Effect.WRITES)


def has_attribute(machine: Machine, owner: Abstract, name: Abstract) -> Abstract:
    """``hasattr(owner, name)``."""
    if isinstance(owner, Union | Poison | Unbound):
        return machine.cases(owner, lambda one: has_attribute(machine, one, name))
    known = concrete(machine, name, "the name of an attribute is needed now")
    if type(known) is not str:
        raise machine.unsupported("`hasattr` with a name that is no text")
    there = attributes.presence(machine, owner, known)
    if there is not None:
        return there
    return host_call(machine, hasattr, (owner, name), effect=Effect.WRITES, result_type=BOOL)


def set_attribute(machine: Machine, owner: Abstract, name: Abstract, value: Abstract) -> Abstract:
    """``setattr(owner, name, value)``."""
    attributes.write(machine, owner, concrete(machine, name, "the name of an attribute is needed now"), value)
    return NONE


def delete_attribute(machine: Machine, owner: Abstract, name: Abstract) -> Abstract:
    """``delattr(owner, name)``."""
    attributes.delete(machine, owner, concrete(machine, name, "the name of an attribute is needed now"))
    return NONE


def is_subclass(machine: Machine, kind: Abstract, kinds: Abstract) -> Abstract:
    """``issubclass(kind, kinds)``."""
    wanted = _classes(machine, kinds)
    if not isinstance(kind, Const) or not isinstance(kind.value, type) or wanted is None:
        raise machine.unsupported("`issubclass` of this")
    _check_plain(machine, wanted)
    return Const(issubclass(kind.value, tuple(wanted)))


def type_of(machine: Machine, *given: Abstract) -> Abstract:
    """``type(value)``."""
    value = given[0]
    if len(given) == 1 and isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: type_of(machine, one))
    found = class_of(machine, value) if len(given) == 1 else None
    if len(given) == 1 and isinstance(value, Symbol):
        found = attributes.class_known(machine, value)
    if found is not None:
        return Const(found)
    if len(given) != 1 or not isinstance(value, Raised | Symbol):
        raise machine.stop("the program makes a class", "write the class in the module")
    made = host_call(machine, type, (value,), effect=Effect.PURE)
    return Symbol(made.ir, made.origin, kind=type)


def is_callable(machine: Machine, value: Abstract) -> Abstract:
    """``callable(value)``."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: is_callable(machine, one))
    if isinstance(value, Function | BoundMethod | Partial):
        return Const(True)
    if isinstance(value, Const):
        return Const(callable(value.value))
    kind = class_of(machine, value)
    if kind is None:
        raise machine.unsupported(f"whether {describe(machine, value)} can be called")
    return Const(attributes.of_class(kind, "__call__") is not attributes.ABSENT)
