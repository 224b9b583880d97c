"""Attributes of values that only a run knows: fields of answers, members of enums, objects of tools."""

from __future__ import annotations

import enum
import inspect
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType
from typing import TYPE_CHECKING, Any

import pydantic

from lmc.frontend.emit.operands import ANSWERS_ARE_SHARED, class_of, host_call, pure, schema_of_value
from lmc.frontend.heap.values import Abstract, BoundMethod, Const, Symbol
from lmc.frontend.python.foreign import get_attribute
from lmc.frontend.schemas.schemas import JsonSchema, schema_of
from lmc.frontend.source.pure_types import is_standard_module
from lmc.ir.core import Effect
from lmc.ir.types import ANY, FLOAT, INT, TEXT, Type, json_of

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine

_MISSING: Any = object()
_VALUES: dict[Any, Type] = {str: TEXT, int: INT, float: FLOAT}


def read(machine: Machine, owner: Symbol, name: str) -> Abstract | None:
    """``owner.name`` where its class is one of the user's, or unknown; None for classes of Python's own."""
    schema = schema_of_value(machine, owner)
    if schema is not None and name in schema.attributes:
        return _field(machine, owner, schema, name)
    kind = class_known(machine, owner)
    if kind is None:
        return _in_run(machine, owner, name, Effect.WRITES)
    if issubclass(kind, enum.Enum):
        return _of_member(machine, owner, kind, name)
    return None if is_standard_module(kind.__module__) else _of_object(machine, owner, kind, name)


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
    held = inspect.getattr_static(kind, name, _MISSING)
    if isinstance(held, FunctionType) and not is_standard_module(held.__module__ or ""):
        machine.graph.reads.add_attribute(kind, name, held)
        return BoundMethod(Const(held), owner)
    if isinstance(held, property) and held.fget is not None:
        return machine.rules.call(Const(held.fget), [owner], {})
    return _in_run(machine, owner, name, Effect.WRITES)


def _of_object(machine: Machine, owner: Symbol, kind: type, name: str) -> Abstract:
    """Data runs no code of the user's; methods are looked up in the run, where the object may hide them."""
    held = inspect.getattr_static(kind, name, _MISSING)
    plain = isinstance(inspect.getattr_static(kind, "__getattribute__"), WrapperDescriptorType)
    own_hook = inspect.getattr_static(kind, "__getattr__", None)
    hooked = own_hook is not None and own_hook is not pydantic.BaseModel.__dict__.get("__getattr__")
    data = held is _MISSING or isinstance(held, FunctionType | MemberDescriptorType | GetSetDescriptorType)
    data = data or not hasattr(type(held), "__get__")
    effect = Effect.READS if plain and data and not hooked else Effect.WRITES
    return _in_run(machine, owner, name, effect)


def _in_run(machine: Machine, owner: Symbol, name: str, effect: Effect) -> Symbol:
    origin = f"the attribute {name!r} of {owner.origin}"
    return host_call(machine, get_attribute, (owner, Const(name)), effect=effect, origin=origin)
