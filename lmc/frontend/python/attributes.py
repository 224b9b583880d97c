"""Attributes. They are looked up statically: no property, descriptor or ``__getattr__`` of the user's runs."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any, NoReturn

import pydantic

from lmc.frontend.emit import objects
from lmc.frontend.emit.operands import ANSWERS_ARE_SHARED, class_of, describe, host_call, pure, schema_of_value
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.heap.cells import InstanceCell
from lmc.frontend.heap.values import (
    NONE,
    UNBOUND,
    Abstract,
    BoundMethod,
    Const,
    Function,
    Partial,
    Poison,
    Raised,
    Ref,
    Slice,
    Super,
    Symbol,
    Tuple,
    Unbound,
    Union,
)
from lmc.frontend.language.binding import Bindable
from lmc.frontend.program.guards import MISSING
from lmc.frontend.python import foreign
from lmc.frontend.python.foreign import delete_attribute, get_attribute, set_attribute
from lmc.frontend.python.library import calls as library
from lmc.frontend.python.library import table
from lmc.frontend.schemas.schemas import JsonSchema, schema_of
from lmc.frontend.source.pure_types import is_standard_module
from lmc.ir.core import Effect
from lmc.ir.types import ANY, FLOAT, INT, TEXT, Type, json_of
from lmc.ir.types import NONE as NONE_TYPE
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_BUILTIN = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)
_VALUES: dict[Any, Type] = {str: TEXT, int: INT, float: FLOAT}
ABSENT: Any = object()
"""The member of a class for a name that it does not have."""


def of_class(kind: type, name: str) -> Any:
    """Return what the class of an object holds under a name; ``ABSENT`` where it does not have it."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), ABSENT)


def read(machine: Machine, owner: Abstract, name: str) -> Abstract:
    """``owner.name``."""
    if isinstance(owner, Union | Poison | Unbound):
        return machine.cases(owner, lambda one: read(machine, one, name))
    handled = machine.rules.attribute_of(owner, name) or _of_library(machine, owner, name)
    if handled is not None:
        return handled
    if isinstance(owner, Const):
        return _of_object(machine, owner, name)
    cell = machine.cell(owner)
    if isinstance(cell, InstanceCell):
        assert isinstance(owner, Ref)
        return _of_instance(machine, owner, cell, name)
    if isinstance(owner, Tuple) and owner.kind is not tuple:
        fields = getattr(owner.kind, "_fields", ())
        if name in fields:
            return owner.items[fields.index(name)]
        held = inspect.getattr_static(owner.kind, name, None)
        if isinstance(held, FunctionType):
            return BoundMethod(Const(held), owner)
    if isinstance(owner, Slice) and name in ("start", "stop", "step"):
        return getattr(owner, name)
    of_kind = _READERS.get(type(owner))
    if of_kind is not None:
        return of_kind(machine, owner, name)
    kind = class_of(machine, owner)
    if isinstance(owner, Symbol) and objects.is_object(machine, owner):
        return BoundMethod(name, owner)
    found = _of_run_value(machine, owner, name) if isinstance(owner, Symbol) else None
    if found is not None:
        return found
    if kind is not None:
        if of_class(kind, name) is ABSENT:
            _raise_for(machine, owner, name, f"'{kind.__name__}' object has no attribute '{name}'")
        return BoundMethod(name, owner)
    raise machine.unsupported(f"the attribute {name!r} of {describe(machine, owner)}")


def _of_library(machine: Machine, owner: Abstract, name: str) -> Abstract | None:
    """Data or a method of an object of the standard library; None where the table has no row."""
    kind = class_of(machine, owner)
    if kind is None or not isinstance(owner, Const | Symbol):
        return None
    if table.find_method(kind, name) is not None and kind not in (str, int, float):
        return BoundMethod(name, owner)
    return library.attribute(machine, owner, kind, name)


def presence(machine: Machine, owner: Abstract, name: str) -> Const | Symbol | None:
    """Return whether ``owner`` has an attribute, where nothing of the user's has to run for that, else None."""
    kind = class_of(machine, owner)
    if kind is None or isinstance(owner, Super | Raised | BoundMethod | Partial | Function):
        return None
    held = of_class(kind, name)
    if isinstance(owner, Ref) and isinstance(machine.cell(owner), InstanceCell):
        value = machine.state.get((owner.address, name))
        if isinstance(held, MemberDescriptorType):
            held = ABSENT
        if not isinstance(value, Unbound) and not isinstance(value, Union):
            return Const(True)
        if isinstance(held, property | functools.cached_property) or _is_foreign_descriptor(held):
            return None
        if held is not ABSENT or isinstance(value, Unbound):
            return Const(held is not ABSENT)
        return value.flag if isinstance(value, Union) and isinstance(value.second, Unbound) else None
    if isinstance(owner, Const):
        return _presence_outside(machine, owner.value, held, name)
    builtin = kind.__module__ == "builtins" and kind is not type
    return Const(held is not ABSENT) if builtin or isinstance(owner, Tuple) else None


def _presence_outside(machine: Machine, held: Any, found: Any, name: str) -> Const | None:
    kind = type(held)
    if isinstance(held, type | ModuleType):
        if not _is_standard(kind) or machine.state.tainted:
            return None
    else:
        custom = not isinstance(inspect.getattr_static(kind, "__getattribute__"), WrapperDescriptorType)
        hooks = isinstance(found, property | functools.cached_property) or hasattr(type(found), "__set__")
        data = isinstance(found, MemberDescriptorType | GetSetDescriptorType)
        if custom or hasattr(kind, "__getattr__") or (hooks and not data) or _is_written(machine, held, name):
            return None
        if machine.state.tainted and not _is_standard(kind):
            return None
    value = getattr(held, name, MISSING)
    machine.graph.reads.add_attribute(held, name, value)
    return Const(value is not MISSING)


def _raise_for(machine: Machine, owner: Abstract, name: str, *args: Any) -> NoReturn:
    """Raise what Python does where ``owner.name`` can't be read."""
    raise_new(machine, AttributeError, *args, name=Const(name), obj=owner)


def _of_exception(machine: Machine, owner: Raised, name: str) -> Abstract:
    if name in owner.keywords:
        return owner.keywords[name]
    if name == "__cause__" and (owner.cause is not None or (owner.symbol is None and owner.made is None)):
        return NONE if owner.cause is None else owner.cause
    if name == "args" and owner.symbol is None and owner.made is None:
        return Tuple(owner.args)
    if owner.made is not None and name in ("cause", "remedy", "args"):
        return machine.lifted(getattr(owner.made, name))
    if owner.symbol is not None:
        return host_call(machine, get_attribute, (owner.symbol, Const(name)), effect=Effect.READS)
    raise machine.unsupported(f"the attribute {name!r} of an exception")


def _of_instance(machine: Machine, owner: Ref, cell: InstanceCell, name: str) -> Abstract:
    held = inspect.getattr_static(cell.kind, name, ABSENT)
    if isinstance(held, property):
        if held.fget is None:
            _raise_for(machine, owner, name, f"property {name!r} of '{cell.kind.__name__}' object has no getter")
        machine.graph.reads.add_attribute(cell.kind, name, held)
        return machine.rules.call(Const(held.fget), [owner], {})
    if _is_foreign_descriptor(held):
        raise machine.unsupported(f"the attribute {name!r} of {with_article(cell.kind.__name__)}")
    value = machine.state.get((owner.address, name))
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        there = value.first

        def missing() -> Abstract:
            return _of_class(machine, owner, cell.kind, held, name)

        return machine.choose(value.flag, lambda: there, missing)
    if not isinstance(value, Unbound):
        assert isinstance(value, Abstract)
        return value
    if isinstance(held, functools.cached_property):
        value = machine.rules.call(Const(held.func), [owner], {})
        put(machine, owner, name, value)
        return value
    return _of_class(machine, owner, cell.kind, held, name)


def _is_foreign_descriptor(held: Any) -> bool:
    """Return whether a class attribute of the user's decides itself about reading and setting an attribute."""
    return hasattr(type(held), "__set__") and not isinstance(held, property | MemberDescriptorType | type)


def _of_class(machine: Machine, owner: Abstract, kind: type, held: Any, name: str) -> Abstract:
    """Return what the class of an object holds, bound to the object."""
    if name == "__class__":
        return Const(kind)
    if held is ABSENT or isinstance(held, MemberDescriptorType):
        _raise_for(machine, owner, name, f"'{kind.__name__}' object has no attribute '{name}'")
    if isinstance(held, FunctionType):
        machine.graph.reads.add_attribute(kind, name, getattr(kind, name, None))
        return BoundMethod(Const(held), owner)
    if isinstance(held, staticmethod):
        machine.graph.reads.add_attribute(kind, name, getattr(kind, name, None))
        return Const(held.__func__)
    if isinstance(held, classmethod):
        machine.graph.reads.add_attribute(kind, name, getattr(kind, name, None))
        return BoundMethod(Const(held.__func__), Const(kind))
    if isinstance(held, functools.partialmethod):
        return _partial_method(machine, owner, kind, name, held)
    if isinstance(held, Bindable):
        found: Any = getattr(kind, name)
        machine.graph.reads.add_attribute(kind, name, found)
        return BoundMethod(Const(found), owner) if found.is_method and not found.receiver else Const(found)
    if hasattr(type(held), "__get__"):
        raise machine.unsupported(f"the attribute {name!r} of {with_article(kind.__name__)}")
    return _guarded(machine, kind, name)


def _partial_method(machine: Machine, owner: Abstract, kind: type, name: str, held: Any) -> Partial:
    """``functools.partialmethod`` of a method, or of a program, bound to an object."""
    base = next(base for base in kind.__mro__ if name in vars(base))
    machine.graph.reads.add_global(vars(base), name, held)
    function: Any = held.func
    if isinstance(function, FunctionType):
        bound: Abstract = BoundMethod(Const(function), owner)
    elif isinstance(function, Bindable) and isinstance(owner, Const):
        bound = Const(function.__get__(owner.value, kind))
    else:
        raise machine.unsupported(f"the attribute {name!r} of {with_article(kind.__name__)}")
    given = {key: Const(value) for key, value in held.keywords.items()}
    return Partial(bound, tuple(map(Const, held.args)), given)


def _of_super(machine: Machine, owner: Super, name: str) -> Abstract:
    """``super().name``."""
    receiver = owner.receiver
    of_class = isinstance(receiver, Const) and isinstance(receiver.value, type)
    kind = receiver.value if of_class and isinstance(receiver, Const) else class_of(machine, receiver)
    if kind is None or owner.start not in kind.__mro__:
        raise machine.unsupported("this `super()`")
    bases = kind.__mro__[kind.__mro__.index(owner.start) + 1 :]
    base = next((each for each in bases if name in vars(each)), None)
    if base is None:
        _raise_for(machine, owner, name, f"'super' object has no attribute '{name}'")
    for each in bases[: bases.index(base) + 1]:
        machine.graph.reads.add_attribute(each, name, getattr(each, name, MISSING))
    held = vars(base)[name]
    if isinstance(held, property) and held.fget is not None and not of_class:
        return machine.rules.call(Const(held.fget), [receiver], {})
    if isinstance(held, classmethod):
        return BoundMethod(Const(held.__func__), Const(kind))
    if isinstance(held, FunctionType):
        return Const(held) if of_class else BoundMethod(Const(held), receiver)
    if isinstance(held, staticmethod):
        return Const(held.__func__)
    if isinstance(held, WrapperDescriptorType) and base is object and not of_class:
        return BoundMethod(Const(held), receiver)
    if isinstance(held, Bindable) and isinstance(receiver, Const):
        return Const(held.__get__(None if of_class else receiver.value, kind))
    if not hasattr(type(held), "__get__"):
        return _guarded(machine, base, name)
    raise machine.unsupported(f"`super().{name}`")


def _of_function(machine: Machine, owner: Function, name: str) -> Abstract:
    if name != "__name__":
        raise machine.unsupported(f"the attribute {name!r} of {describe(machine, owner)}")
    return Const(owner.definition.name)


_READERS: dict[type[Abstract], Callable[..., Abstract]] = {
    Raised: _of_exception,
    Super: _of_super,
    Function: _of_function,
}
"""Attribute readers by kind of abstract value."""


def _of_object(machine: Machine, owner: Const, name: str) -> Abstract:
    held = owner.value
    kind = type(held)
    if isinstance(held, ModuleType):
        if name not in vars(held) and not is_standard_module(held.__name__) and held.__name__ != "lmc":
            raise _runs_code(machine, owner, name)
        return _guarded(machine, held, name)
    if isinstance(held, type):
        found = inspect.getattr_static(held, name, ABSENT)
        if not _is_standard(type(held)) and not _is_plainly_read(type(held), name, found):
            return _read_by_user_code(machine, owner, name)
        if isinstance(found, classmethod) and isinstance(found.__func__, FunctionType):
            machine.graph.reads.add_attribute(held, name, getattr(held, name))
            return BoundMethod(Const(found.__func__), owner)
        if isinstance(found, property):
            return Const(found)
        return _guarded(machine, held, name)
    if kind.__module__ == "builtins" or _is_standard(kind):
        if kind in (str, int, float, bool, type(None), list, dict, tuple, set, frozenset, bytes, range):
            if of_class(kind, name) is ABSENT:
                _raise_for(machine, owner, name, f"'{kind.__name__}' object has no attribute '{name}'")
            found = inspect.getattr_static(kind, name)
            return BoundMethod(name, owner) if isinstance(found, _BUILTIN) else machine.lifted(getattr(held, name))
        return _guarded(machine, held, name)
    return _of_user_object(machine, owner, name)


def _of_user_object(machine: Machine, owner: Const, name: str) -> Abstract:
    """An attribute of an object of the user's: data is read now and guarded, methods are bound, properties run."""
    held: Any = owner.value
    kind = type(held)
    found = inspect.getattr_static(kind, name, ABSENT)
    own = getattr(held, "__dict__", {})
    data = isinstance(found, MemberDescriptorType | GetSetDescriptorType)
    if not isinstance(inspect.getattr_static(kind, "__getattribute__"), WrapperDescriptorType):
        return _read_by_user_code(machine, owner, name)
    if isinstance(found, property):
        return _read_by_user_code(machine, owner, name)
    if _is_written(machine, held, name) or (name in own and not hasattr(type(found), "__set__")):
        return _guarded(machine, held, name)
    if isinstance(found, FunctionType | staticmethod | classmethod | Bindable):
        machine.graph.reads.add_attribute(kind, name, getattr(kind, name))
        machine.graph.reads.add_method(held, name)
    if isinstance(found, FunctionType):
        return BoundMethod(Const(found), owner)
    if isinstance(found, staticmethod):
        return Const(found.__func__)
    if isinstance(found, classmethod):
        return BoundMethod(Const(found.__func__), Const(kind))
    if isinstance(found, functools.partialmethod):
        machine.graph.reads.add_method(held, name)
        return _partial_method(machine, owner, kind, name, found)
    if isinstance(found, Bindable):
        return Const(getattr(held, name))
    if isinstance(held, enum.Enum) and name in ("name", "value"):
        return machine.lifted(getattr(held, name))
    if isinstance(held, tuple) and name in getattr(kind, "_fields", ()):
        return foreign.held(machine, getattr(held, name))
    if data or (found is not ABSENT and not hasattr(type(found), "__get__")):
        return _guarded(machine, held, name)
    if found is ABSENT and not hasattr(kind, "__getattr__"):
        return _guarded(machine, held, name)
    if found is not ABSENT and not isinstance(found, functools.cached_property):
        raise _runs_code(machine, owner, name)
    return _read_by_user_code(machine, owner, name)


def _read_by_user_code(machine: Machine, owner: Abstract, name: str) -> Symbol:
    """Read an attribute in the run, where that may run code of the user's."""
    return host_call(
        machine, get_attribute, (owner, Const(name)), effect=Effect.WRITES, origin=f"the attribute {name!r}"
    )


def _is_written(machine: Machine, owner: Any, name: str) -> bool:
    """Return whether the program itself sets this attribute of an object from outside, or one of a class so called."""
    written = machine.written
    return bool(written) and (("attribute", id(owner), name) in written or ("attribute", "class", name) in written)


def _guarded(machine: Machine, owner: Any, name: str) -> Abstract:
    """Data that is read now: the capture holds while it is the same."""
    value = _static(owner, name)
    code = isinstance(value, FunctionType | type | ModuleType | BuiltinFunctionType | Bindable)
    fixed = isinstance(owner, enum.Enum) or (
        isinstance(owner, type | ModuleType) and (code or _is_own_of_python(owner))
    )
    if (machine.state.tainted and not fixed) or _is_written(machine, owner, name):
        return host_call(
            machine, get_attribute, (Const(owner), Const(name)), effect=Effect.READS, origin=f"the attribute {name!r}"
        )
    reads = machine.graph.reads
    if not reads.seen("attribute", owner, name, value):
        if foreign.is_changed(machine, value):
            reads.keep_live(value)
        reads.add_attribute(owner, name, value)
    if value is MISSING:
        _missing(machine, owner, name)
    return machine.rules.outside(value, f"the attribute {name!r}")


def _static(owner: Any, name: str) -> Any:
    """Return what an attribute holds that is known to run no code of the user's; ``MISSING`` where there is none."""
    return getattr(owner, name, MISSING)


def _missing(machine: Machine, owner: Any, name: str) -> NoReturn:
    try:
        getattr(owner, name)
    except AttributeError as error:
        _raise_for(machine, Const(owner), name, *error.args)
    raise machine.unsupported(f"the attribute {name!r}")


def _is_plainly_read(metaclass: type, name: str, found: Any) -> bool:
    """Return whether a class with this metaclass of the user's gives ``found`` without running code of it."""
    plain = isinstance(inspect.getattr_static(metaclass, "__getattribute__"), WrapperDescriptorType)
    above = inspect.getattr_static(metaclass, name, None)
    return plain and found is not ABSENT and not hasattr(type(above), "__set__")


def _is_own_of_python(owner: type | ModuleType) -> bool:
    return is_standard_module(owner.__module__ if isinstance(owner, type) else owner.__name__)


def _is_standard(kind: type) -> bool:
    return is_standard_module(kind.__module__)


def _runs_code(machine: Machine, owner: Const, name: str) -> BaseException:
    return machine.stop(
        f"reading {name!r} of {with_article(type(owner.value).__name__)} may run its own code",
        "read it before the program is called and pass it in, or read it in a tool",
    )


def write(machine: Machine, owner: Abstract, name: str, value: Abstract) -> None:
    """``owner.name = value``."""
    if isinstance(owner, Union | Poison | Unbound):
        _each(machine, owner, lambda one: write(machine, one, name, value))
        return
    cell = machine.cell(owner)
    if not isinstance(cell, InstanceCell):
        _write_outside(machine, owner, name, value)
        return
    _check_own(machine, owner, cell, name)
    custom = inspect.getattr_static(cell.kind, "__setattr__", None)
    held = inspect.getattr_static(cell.kind, name, None)
    if isinstance(custom, FunctionType):
        machine.rules.call(Const(custom), [owner, Const(name), value], {})
    elif isinstance(held, property):
        if held.fset is None:
            raise_new(machine, AttributeError, f"property {name!r} of '{cell.kind.__name__}' object has no setter")
        machine.graph.reads.add_attribute(cell.kind, name, held)
        machine.rules.call(Const(held.fset), [owner, value], {})
    elif _is_foreign_descriptor(held):
        raise machine.unsupported(f"setting {name!r} of {with_article(cell.kind.__name__)}")
    else:
        put(machine, owner, name, value)


def _write_outside(machine: Machine, owner: Abstract, name: str, value: Abstract) -> None:
    """Set an attribute of an object that exists outside the program, or in the run."""
    taints = True
    if isinstance(owner, Const):
        kind = type(owner.value)
        held = inspect.getattr_static(kind, name, None)
        if isinstance(held, property) and held.fset is not None and _plainly_set(kind):
            machine.rules.call(Const(held.fset), [owner, value], {})
            return
        if isinstance(owner.value, type | ModuleType):
            _check_class_variable(machine, owner.value, name)
        taints = not _plainly_set(kind) or hasattr(type(held), "__set__")
        note_write(machine, owner.value, name)
    elif not isinstance(owner, Symbol):
        raise machine.unsupported(f"setting an attribute of {describe(machine, owner)}")
    machine.rules.check_kept(f"{describe(machine, owner)}", [value])
    host_call(
        machine,
        set_attribute,
        (owner, Const(name), value),
        effect=Effect.WRITES,
        result_type=NONE_TYPE,
        taints=taints,
    )


def _plainly_set(kind: type) -> bool:
    return isinstance(inspect.getattr_static(kind, "__setattr__", None), WrapperDescriptorType)


def _check_class_variable(machine: Machine, owner: Any, name: str) -> None:
    """End the capture where what is set may be code that the capture inlined, or was not there."""
    found = vars(owner).get(name, ABSENT)
    code = hasattr(type(found), "__get__") or isinstance(found, type)
    if found is ABSENT or code or not isinstance(owner, type) or not _is_standard(type(owner)):
        raise machine.stop(
            f"the program sets {name!r} of {with_article(type(owner).__name__)}", "set it before the program is called"
        )


def note_write(machine: Machine, owner: Any, name: str) -> None:
    """The program sets or deletes an attribute of an object from outside."""
    reads = machine.graph.reads
    if isinstance(owner, type):
        machine.note_write(("attribute", "class", name), owner, was_read=reads.reads_of(name))
    else:
        was_read = reads.has("attribute", owner, name) or reads.has("method", owner, name)
        machine.note_write(("attribute", id(owner), name), owner, was_read=was_read)


def _check_own(machine: Machine, owner: Abstract, cell: InstanceCell, name: str) -> None:
    """End the capture where the object is an argument: its caller would see the change."""
    if isinstance(owner, Ref) and owner.address in machine.read_only:
        raise machine.stop(
            f"the program sets {name!r} of {with_article(cell.kind.__name__)} that it was given, which its caller sees",
            "make a copy first, or return the value",
        )


def _each(machine: Machine, value: Abstract, then: Callable[[Abstract], None]) -> None:
    def done(one: Abstract) -> Abstract:
        then(one)
        return NONE

    machine.cases(value, done)


def put(machine: Machine, owner: Abstract, name: str, value: Abstract) -> None:
    """Set an attribute of an object of the program's, as ``object.__setattr__`` does."""
    cell = machine.cell(owner)
    assert isinstance(owner, Ref)
    assert isinstance(cell, InstanceCell)
    if not has_dict(cell.kind) and not isinstance(inspect.getattr_static(cell.kind, name, None), MemberDescriptorType):
        _refused(machine, owner, cell.kind, lambda made: object.__setattr__(made, name, None))
    if name not in cell.names:
        machine.state.put(owner.address, InstanceCell(cell.kind, (*cell.names, name)))
    machine.state.put((owner.address, name), value)


def has_dict(kind: type) -> bool:
    """Return whether objects of ``kind`` take attributes of any name."""
    return any("__dict__" in vars(base) for base in kind.__mro__)


def _refused(machine: Machine, owner: Abstract, kind: type, change: Callable[[Any], None]) -> NoReturn:
    """Raise what a change of an object without attributes raises. The class has no code of its own in its making."""
    try:
        change(object.__new__(kind))
    except AttributeError as error:
        if error.name is not None:
            _raise_for(machine, owner, error.name, *error.args)
        raise_new(machine, AttributeError, *error.args)
    raise machine.unsupported(f"this change of {with_article(kind.__name__)}")


def delete(machine: Machine, owner: Abstract, name: str) -> None:
    """``del owner.name``."""
    cell = machine.cell(owner)
    if not isinstance(cell, InstanceCell):
        if not isinstance(owner, Symbol | Const) or isinstance(getattr(owner, "value", None), type | ModuleType):
            raise machine.unsupported(f"deleting an attribute of {describe(machine, owner)}")
        if isinstance(owner, Const):
            note_write(machine, owner.value, name)
        host_call(machine, delete_attribute, (owner, Const(name)), effect=Effect.WRITES, result_type=NONE_TYPE)
        return
    _check_own(machine, owner, cell, name)
    custom = inspect.getattr_static(cell.kind, "__delattr__", None)
    held = inspect.getattr_static(cell.kind, name, None)
    if isinstance(custom, FunctionType):
        machine.rules.call(Const(custom), [owner, Const(name)], {})
    elif isinstance(held, property) or _is_foreign_descriptor(held):
        raise machine.unsupported(f"deleting {name!r} of {with_article(cell.kind.__name__)}")
    else:
        remove(machine, owner, name)


def remove(machine: Machine, owner: Abstract, name: str) -> None:
    """Delete an attribute of an object of the program's, as ``object.__delattr__`` does."""
    cell = machine.cell(owner)
    assert isinstance(owner, Ref)
    assert isinstance(cell, InstanceCell)
    value = machine.state.get((owner.address, name))
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        raise machine.unsupported("deleting an attribute that may not be there")
    if isinstance(value, Unbound):
        _refused(machine, owner, cell.kind, lambda made: object.__delattr__(made, name))
    names = tuple(each for each in cell.names if each != name)
    machine.state.put(owner.address, InstanceCell(cell.kind, names))
    machine.state.put((owner.address, name), UNBOUND)


def _of_run_value(machine: Machine, owner: Symbol, name: str) -> Abstract | None:
    """``owner.name`` where its class is one of the user's, or unknown; None for classes of Python's own."""
    schema = schema_of_value(machine, owner)
    if schema is not None and name in schema.attributes:
        return _field(machine, owner, schema, name)
    kind = class_known(machine, owner)
    if kind is None:
        return _in_run(machine, owner, name, Effect.WRITES)
    if issubclass(kind, enum.Enum):
        return _of_member(machine, owner, kind, name)
    return None if is_standard_module(kind.__module__) else _of_run_object(machine, owner, kind, name)


def class_known(machine: Machine, owner: Symbol) -> type | None:
    """The class that ``owner`` has, where that is known: that of a schema as well."""
    schema = schema_of_value(machine, owner)
    if schema is not None and schema.attributes and isinstance(schema.kind, type):
        return schema.kind
    return class_of(machine, owner)


def _field(machine: Machine, owner: Symbol, schema: JsonSchema, name: str) -> Abstract:
    """A field of an answer. Once anything else may hold the object, it is read in order."""
    part = schema.attributes[name]
    origin = f"the attribute {name!r} of {owner.origin}"
    if ANSWERS_ARE_SHARED in machine.written:
        return host_call(machine, get_attribute, (owner, Const(name)), effect=Effect.READS, origin=origin)
    machine.reads_answers = True
    kind = part.type if part.kind is None else json_of(machine.graph.json_types.name(schema_of(part.kind)))
    default = () if part.required else (Const(part.default),)
    value = pure(machine, "field", (owner, Const(name), Const(part.key), *default), gives=kind, origin=origin)
    # A whole number is one in JSON, whatever its class makes of it.
    return pure(machine, "float", (value,)) if part.type == FLOAT else value


def _of_member(machine: Machine, owner: Symbol, kind: type[enum.Enum], name: str) -> Abstract:
    if name in ("name", "value", "_name_", "_value_"):
        values = {type(member.value) for member in kind}
        known = _VALUES.get(values.pop(), ANY) if len(values) == 1 else ANY
        return host_call(
            machine,
            get_attribute,
            (owner, Const(name)),
            effect=Effect.PURE,
            result_type=TEXT if "name" in name else known,
            origin=f"the attribute {name!r} of {owner.origin}",
        )
    held = inspect.getattr_static(kind, name, ABSENT)
    if isinstance(held, FunctionType) and not is_standard_module(held.__module__ or ""):
        machine.graph.reads.add_attribute(kind, name, held)
        return BoundMethod(Const(held), owner)
    if isinstance(held, property) and held.fget is not None:
        return machine.rules.call(Const(held.fget), [owner], {})
    return _in_run(machine, owner, name, Effect.WRITES)


def _of_run_object(machine: Machine, owner: Symbol, kind: type, name: str) -> Abstract:
    """Data runs no code of the user's; methods are looked up in the run, where the object may hide them."""
    held = inspect.getattr_static(kind, name, ABSENT)
    plain = isinstance(inspect.getattr_static(kind, "__getattribute__"), WrapperDescriptorType)
    own_hook = inspect.getattr_static(kind, "__getattr__", None)
    hooked = own_hook is not None and own_hook is not pydantic.BaseModel.__dict__.get("__getattr__")
    data = held is ABSENT or isinstance(held, FunctionType | MemberDescriptorType | GetSetDescriptorType)
    data = data or not hasattr(type(held), "__get__")
    effect = Effect.READS if plain and data and not hooked else Effect.WRITES
    return _in_run(machine, owner, name, effect)


def _in_run(machine: Machine, owner: Symbol, name: str, effect: Effect) -> Symbol:
    origin = f"the attribute {name!r} of {owner.origin}"
    return host_call(machine, get_attribute, (owner, Const(name)), effect=effect, origin=origin)
