"""Classes of the user's: which of them a capture makes objects of, and the methods that Python generates for them.

An object of a *plain* class is a cell: nothing but its ``__init__`` takes part in its making, and nothing but
properties in reading and setting its attributes. Objects of all other classes are made in the run.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import sys
from abc import ABC, ABCMeta
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import FunctionType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from lmc.frontend.emit.operands import PLAIN_TYPES, class_of, concat, host_call, is_scalar, may_run_code, operand
from lmc.frontend.emit.raising import raise_new, throw
from lmc.frontend.heap.cells import DictCell, GrownCell, InstanceCell, ListCell
from lmc.frontend.heap.values import NONE, Abstract, Const, Poison, Raised, Symbol, Tuple, Unbound, Union, alternatives
from lmc.frontend.python import attributes
from lmc.frontend.python.conversions import to_text
from lmc.frontend.python.operators import binary, negated, run_now, truth
from lmc.frontend.source.pure_types import is_standard_module
from lmc.ir.core import Effect
from lmc.ir.types import ANY

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]
NOT_IMPLEMENTED = Const(NotImplemented)
_NEUTRAL: tuple[Any, ...] = (object, ABC, Generic, Protocol)
_METACLASSES: tuple[Any, ...] = (type, ABCMeta, type(Protocol))
_HOOKS = ("__new__", "__getattribute__", "__getattr__", "__del__", "__setattr__", "__delattr__")


@lru_cache(maxsize=1024)
def is_plain(kind: type) -> bool:
    """Return whether objects of ``kind`` are cells of the heap: no code but ``__init__`` takes part in making them."""
    if type(kind) not in _METACLASSES or getattr(kind, "__abstractmethods__", None):
        return False
    for base in kind.__mro__:
        if base in _NEUTRAL:
            continue
        own = vars(base)
        if is_standard_module(base.__module__) or own.get("_is_protocol"):
            return False
        if any(name in own and not is_generated(own[name]) for name in _HOOKS):
            return False
    return isinstance(lookup(kind, "__init__"), FunctionType | WrapperDescriptorType)


def makes_its_own(kind: type) -> bool:
    """Return whether a call of ``kind`` gives an object of just this class, whatever its ``__init__`` does."""
    return type(kind).__call__ is type.__call__ and kind.__new__ is object.__new__


def lookup(kind: type, name: str) -> Any:
    """Return what the class of an object holds for a special method; ``None`` also where it has none."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)


def is_generated(function: Any) -> bool:
    """Return whether ``dataclasses`` wrote this method."""
    inner = getattr(function, "__wrapped__", function)
    return isinstance(inner, FunctionType) and inner.__code__.co_filename == "<string>"


def is_named_tuple(kind: type) -> bool:
    """Return whether ``kind`` is made by ``NamedTuple`` or ``namedtuple``, or a class under one that adds methods."""
    made = lookup(kind, "__new__") if issubclass(kind, tuple) else None
    made = made.__func__ if isinstance(made, staticmethod) else made
    named = isinstance(made, FunctionType) and str(made.__globals__.get("__name__")).startswith("namedtuple_")
    return named and not isinstance(lookup(kind, "__init__"), FunctionType)


def construct(machine: Machine, kind: type, args: Args, kwargs: Kwargs) -> Abstract | None:
    """``kind(*args, **kwargs)``; None for classes whose objects are made in the run."""
    if is_named_tuple(kind):
        return _named_tuple(machine, kind, args, kwargs)
    if issubclass(kind, enum.Enum):
        return _member(machine, kind, args, kwargs)
    return _instance(machine, kind, args, kwargs) if is_plain(kind) else None


def _instance(machine: Machine, kind: type, args: Args, kwargs: Kwargs) -> Abstract:
    made = machine.new(InstanceCell(kind))
    init = lookup(kind, "__init__")
    if not isinstance(init, FunctionType):
        if args or kwargs:
            raise_new(machine, TypeError, f"{kind.__name__}() takes no arguments")
        return made
    machine.graph.reads.add_attribute(kind, "__init__", init)
    found = machine.rules.call(Const(init), [made, *args], kwargs)
    if not isinstance(found, Const):
        raise machine.unsupported(f"what __init__ of {kind.__name__} returns")
    if found.value is not None:
        raise_new(machine, TypeError, f"__init__() should return None, not '{type(found.value).__name__}'")
    return made


def _named_tuple(machine: Machine, kind: Any, args: Args, kwargs: Kwargs) -> Abstract:
    new: Any = kind.__new__
    machine.graph.reads.add_attribute(new, "__defaults__", new.__defaults__)
    try:
        bound = inspect.signature(new).bind(kind, *args, **kwargs)
    except TypeError:
        return run_now(machine, kind, [None for _ in args], kind.__name__, **dict.fromkeys(kwargs))
    defaults = kind._field_defaults
    values = [
        bound.arguments[name] if name in bound.arguments else machine.rules.outside(defaults[name], f"{name!r}")
        for name in kind._fields
    ]
    return Tuple(tuple(values), kind)


def _member(machine: Machine, kind: type[enum.Enum], args: Args, kwargs: Kwargs) -> Abstract:
    """``Kind(value)``, a look-up."""
    own = any("_missing_" in vars(base) for base in kind.__mro__ if _is_own(base))
    if own or type(kind) is not enum.EnumMeta or len(args) != 1 or kwargs:
        raise machine.unsupported(f"a look-up in {kind.__name__}")
    plain = machine.plain(args[0])
    if plain is not None:
        return run_now(machine, kind, [plain[0]], kind.__name__)
    made = host_call(machine, kind, args, effect=Effect.PURE, result_type=ANY)
    return Symbol(made.ir, made.origin, kind=kind)


def _is_own(kind: type) -> bool:
    return not is_standard_module(kind.__module__)


# Methods that dataclasses write


def call_generated(machine: Machine, function: FunctionType, args: Args, kwargs: Kwargs) -> Abstract | None:
    """Call a method that ``dataclasses`` or ``namedtuple`` wrote for its first argument; None for other functions."""
    named = _OF_NAMED_TUPLES.get(function.__code__)
    if named is not None and args and isinstance(args[0], Tuple | Const):
        return named(machine, *args, **kwargs)
    if not is_generated(function) or not args:
        return None
    name = getattr(function, "__wrapped__", function).__name__
    kind = class_of(machine, args[0])
    owner = next((base for base in (kind.__mro__ if kind else ()) if vars(base).get(name) is function), None)
    if owner is None or "__dataclass_fields__" not in vars(owner) or name not in _GENERATED:
        return None
    return _GENERATED[name](machine, owner, *args, **kwargs)


def _init(machine: Machine, owner: Any, made: Abstract, *args: Abstract, **kwargs: Abstract) -> Abstract:
    function = vars(owner)["__init__"]
    signature = inspect.signature(function)
    try:
        given = signature.bind(made, *args, **kwargs).arguments
    except TypeError:
        raise machine.stop(
            f"the arguments do not fit {owner.__name__}{signature}", "give it the arguments that it takes"
        ) from None
    found: dict[str, Abstract] = {}
    for field in vars(owner)["__dataclass_fields__"].values():
        kind = field._field_type.name
        if kind == "_FIELD_CLASSVAR":
            continue
        if field.init and field.name in given:
            found[field.name] = given[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            machine.graph.reads.add_attribute(field, "default_factory", field.default_factory)
            found[field.name] = machine.rules.call(Const(field.default_factory), [], {})
        elif field.default is not dataclasses.MISSING and (field.init or "__slots__" in vars(owner)):
            machine.graph.reads.add_attribute(field, "default", field.default)
            found[field.name] = machine.rules.outside(field.default, f"the default of {field.name!r}")
        else:
            continue
        if kind != "_FIELD_INITVAR":
            _set(machine, owner, made, field.name, found[field.name])
    if hasattr(owner, "__post_init__"):
        fields = vars(owner)["__dataclass_fields__"].values()
        variables = [found[each.name] for each in fields if each._field_type.name == "_FIELD_INITVAR"]
        machine.rules.call(attributes.read(machine, made, "__post_init__"), variables, {})
    return NONE


def _set(machine: Machine, owner: Any, made: Abstract, name: str, value: Abstract) -> None:
    if owner.__dataclass_params__.frozen:
        attributes.put(machine, made, name, value)
    else:
        attributes.write(machine, made, name, value)


def _fields(owner: Any, option: str) -> list[str]:
    return [each.name for each in dataclasses.fields(owner) if getattr(each, option)]


def _repr(machine: Machine, owner: Any, made: Abstract) -> Abstract:
    kind = class_of(machine, made)
    assert kind is not None
    pieces: list[Abstract] = [Const(f"{kind.__qualname__}(")]
    for index, name in enumerate(_fields(owner, "repr")):
        pieces.append(Const(f"{', ' if index else ''}{name}="))
        pieces.append(to_text(machine, attributes.read(machine, made, name), "repr"))
    return concat(machine, [*pieces, Const(")")])


def _comparison(name: str) -> Callable[..., Abstract]:
    def compare(machine: Machine, owner: Any, made: Abstract, other: Abstract) -> Abstract:
        kinds = class_of(machine, made), class_of(machine, other)
        if kinds[1] is None:
            raise machine.unsupported("the comparison of a dataclass and a value that only a run knows")
        if kinds[0] is not kinds[1]:
            return NOT_IMPLEMENTED
        names = _fields(owner, "compare")
        if name == "eq" and sys.version_info >= (3, 13):
            return _all_equal(machine, made, other, names)
        sides = [Tuple(tuple(attributes.read(machine, one, each) for each in names)) for one in (made, other)]
        return binary(machine, name, *sides)

    return compare


def _all_equal(machine: Machine, made: Abstract, other: Abstract, names: Sequence[str]) -> Abstract:
    """``self.a == other.a and …``."""
    if not names:
        return Const(True)
    sides = [attributes.read(machine, one, names[0]) for one in (made, other)]
    found = binary(machine, "eq", *sides)
    flag = truth(machine, found)
    if len(names) == 1:
        return found
    if isinstance(flag, Const):
        return _all_equal(machine, made, other, names[1:]) if flag.value else found
    assert isinstance(flag, Symbol)
    return machine.choose(flag, lambda: _all_equal(machine, made, other, names[1:]), lambda: found)


def _frozen(method: str, verb: str) -> Callable[..., Abstract]:
    def refuse(machine: Machine, owner: Any, made: Abstract, name: Abstract, *value: Abstract) -> Abstract:
        assert isinstance(name, Const)
        kind = class_of(machine, made)
        assert kind is not None
        if kind is owner or name.value in {each.name for each in dataclasses.fields(owner)}:
            message = f"cannot {verb} field {name.value!r}"
            throw(machine, Raised(dataclasses.FrozenInstanceError, (Const(message),)))
        further = kind.__mro__[kind.__mro__.index(owner) + 1 :]
        if any(isinstance(vars(base).get(method), FunctionType) for base in further):
            raise machine.unsupported("an attribute of an object of a class under two frozen dataclasses")
        if value:
            attributes.put(machine, made, name.value, value[0])
        else:
            attributes.remove(machine, made, name.value)
        return NONE

    return refuse


_GENERATED: Mapping[str, Callable[..., Abstract]] = {
    "__init__": _init,
    "__repr__": _repr,
    "__setattr__": _frozen("__setattr__", "assign to"),
    "__delattr__": _frozen("__delattr__", "delete"),
    **{f"__{name}__": _comparison(name) for name in ("eq", "lt", "le", "gt", "ge")},
}


def ordering_keys(machine: Machine, items: Sequence[Abstract]) -> list[Abstract] | None:
    """Return the tuples that ``dataclass(order=True)`` compares in the place of ``items``; None for other items."""
    cells = [machine.cell(each) for item in items for each in alternatives(item)]
    kinds = {cell.kind if isinstance(cell, InstanceCell) else None for cell in cells}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        return None
    names = ("__lt__", "__gt__")
    owner = next((base for base in kind.__mro__ if "__lt__" in vars(base)), None)
    if owner is None or not all(is_generated(vars(owner).get(name)) for name in names):
        return None
    if any(lookup(kind, name) is not vars(owner)[name] for name in names) or not dataclasses.is_dataclass(owner):
        return None
    for name in names:
        machine.graph.reads.add_attribute(kind, name, lookup(kind, name))
    fields = _fields(owner, "compare")
    return [Tuple(tuple(attributes.read(machine, item, name) for name in fields)) for item in items]


# Methods that namedtuple writes


def _named_replaced(machine: Machine, given: Abstract, /, **changes: Abstract) -> Abstract:
    """``given._replace(**changes)``."""
    fields = _fields_of_named_tuple(machine, given)
    if not set(changes) <= set(fields):
        raise machine.unsupported("`_replace` of what is no field")
    assert isinstance(given, Tuple)
    values = [changes.get(name, held) for name, held in zip(fields, given.items, strict=True)]
    return Tuple(tuple(values), given.kind)


def _named_as_dict(machine: Machine, given: Abstract, /) -> Abstract:
    """``given._asdict()``."""
    fields = _fields_of_named_tuple(machine, given)
    assert isinstance(given, Tuple)
    return machine.new(DictCell(fields, given.items))


def _fields_of_named_tuple(machine: Machine, given: Abstract) -> tuple[str, ...]:
    if not isinstance(given, Tuple) or not is_named_tuple(given.kind):
        raise machine.unsupported("this method of a named tuple")
    return getattr(given.kind, "_fields")  # noqa: B009 - only named tuples have it


class _Sample(NamedTuple):
    field: None


_METHODS: Any = vars(_Sample)
_OF_NAMED_TUPLES: Mapping[Any, Callable[..., Abstract]] = {
    _METHODS["_replace"].__code__: _named_replaced,
    _METHODS["_asdict"].__code__: _named_as_dict,
}
"""By their code, which all named tuples share."""


# Functions of dataclasses


def fields_of(machine: Machine, given: Abstract) -> Abstract:
    """``dataclasses.fields(given)``."""
    kind = given.value if isinstance(given, Const) and isinstance(given.value, type) else class_of(machine, given)
    if kind is None or not dataclasses.is_dataclass(kind):
        raise machine.unsupported("`fields` of this")
    found = dataclasses.fields(kind)
    machine.graph.reads.add_attribute(kind, "__dataclass_fields__", getattr(kind, "__dataclass_fields__"))  # noqa: B009
    return Tuple(tuple(map(Const, found)))


def replaced(machine: Machine, given: Abstract, **changes: Abstract) -> Abstract:
    """``dataclasses.replace(given, **changes)``."""
    kind = class_of(machine, given)
    if kind is None or not _is_dataclass(kind):
        raise machine.unsupported("`replace` of this")
    every = dataclasses.fields(kind)
    if not every or not all(each.init for each in every):
        raise machine.unsupported("`replace` of this")
    kept = {each.name: attributes.read(machine, given, each.name) for each in every if each.name not in changes}
    return machine.rules.call(Const(kind), [], {**changes, **kept})


def _is_dataclass(kind: Any) -> bool:
    """Return whether ``kind`` is a dataclass without parameters of ``__init__`` that are no fields."""
    return dataclasses.is_dataclass(kind) and len(dataclasses.fields(kind)) == len(kind.__dataclass_fields__)


def as_dict(machine: Machine, given: Abstract) -> Abstract:
    """``dataclasses.asdict(given)``."""
    cell = machine.cell(given)
    if isinstance(given, Symbol):
        effect = Effect.WRITES if may_run_code(machine, "", [operand(machine, given)]) else Effect.READS
        return host_call(machine, dataclasses.asdict, [given], effect=effect, origin="the result of asdict()")
    if not isinstance(cell, InstanceCell) or not _is_dataclass(cell.kind):
        raise machine.unsupported("`asdict` of this")
    return _as_data(machine, given)


def _as_data(machine: Machine, value: Abstract) -> Abstract:
    """A field as ``asdict`` gives it: containers are new ones."""
    if isinstance(value, Union | Poison | Unbound):
        return machine.cases(value, lambda one: _as_data(machine, one))
    cell = machine.cell(value)
    if isinstance(cell, InstanceCell) and _is_dataclass(cell.kind):
        names = tuple(each.name for each in dataclasses.fields(cell.kind))
        values = [_as_data(machine, attributes.read(machine, value, name)) for name in names]
        return machine.new(DictCell(names, tuple(values)))
    if isinstance(cell, ListCell):
        return machine.new(ListCell(tuple(_as_data(machine, item) for item in cell.items)))
    if isinstance(cell, DictCell) and cell.kind is dict:
        return machine.new(DictCell(cell.keys, tuple(_as_data(machine, item) for item in cell.values)))
    if isinstance(cell, GrownCell) and cell.value.type.element in PLAIN_TYPES:  # type: ignore[attr-defined] - a list's
        return machine.list_of(cell.value)
    if isinstance(value, Tuple) and value.kind is tuple:
        return Tuple(tuple(_as_data(machine, item) for item in value.items))
    if not is_scalar(value):
        raise machine.unsupported("`asdict` of an object that holds this")
    return value


# Special methods


def special(machine: Machine, name: str, owner: Abstract, args: Args) -> Abstract | None:
    """Call a special method that the class of ``owner`` defines in Python; None where it has none of its own."""
    kind = _class_with_methods(machine, owner)
    if kind is None:
        return None
    held = _method_in_python(machine, kind, name)
    if name == "__ne__" and held is None:
        found = special(machine, "__eq__", owner, args)
        return found if found is None or is_not_implemented(found) else negated(machine, found)
    if held is None:
        return None
    machine.graph.reads.add_attribute(kind, name, held)
    return machine.rules.call(Const(held), [owner, *args], {})


def has_special(machine: Machine, name: str, owner: Abstract) -> bool:
    """Return whether ``special`` finds a method."""
    kind = _class_with_methods(machine, owner)
    return kind is not None and _method_in_python(machine, kind, name) is not None


def _class_with_methods(machine: Machine, owner: Abstract) -> type | None:
    cell = machine.cell(owner)
    if isinstance(cell, InstanceCell):
        return cell.kind
    if isinstance(owner, Tuple) and owner.kind is not tuple:
        return owner.kind
    if isinstance(owner, Const) and _is_own(type(owner.value)) and not isinstance(owner.value, type):
        return type(owner.value)
    return None


def _method_in_python(machine: Machine, kind: type, name: str) -> FunctionType | None:
    held = lookup(kind, name)
    if isinstance(held, FunctionType):
        return None if is_standard_module(held.__module__ or "") or held.__module__ == "collections" else held
    if held is None or inspect.isbuiltin(held) or inspect.ismethoddescriptor(held):
        return None
    raise machine.unsupported(f"{name} of {kind.__name__}")


def is_not_implemented(value: Abstract) -> bool:
    """Return whether a special method does not know the other operand."""
    return isinstance(value, Const) and value.value is NotImplemented
