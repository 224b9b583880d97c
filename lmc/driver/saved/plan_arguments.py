"""The signature of a program in a saved plan: shapes, defaults, and specialised values."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic
from pydantic_core import PydanticSerializationError, to_jsonable_python

from lmc.backend.json.arguments_json import json_text
from lmc.backend.json.attributes_json import MAX_DEPTH
from lmc.backend.plan import Argument, Condition, Fields, Frozen, Items, Leaf, NodeRef, Shape
from lmc.frontend.heap.expressions import Expression
from lmc.frontend.program.argument_specs import DictSpec, LeafSpec, RecordSpec, SequenceSpec, Spec, StaticSpec
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.guards import ValueGuard
from lmc.frontend.program.variants import Captured
from lmc.ir.errors import InputError

_REPR = 200


def arguments_of(captured: Captured, given: tuple[tuple[Any, ...], Mapping[str, Any]] | None) -> tuple[Argument, ...]:
    """Return the arguments of a plan compiled for ``given`` (None: for no values but the defaults).

    Raises ``InputError`` if JSON can't represent them: keys of a dict that become one.
    """
    function = captured.function
    values = function.defaults if given is None else bind(function, *given).values
    inputs: dict[str, Any] = {}
    for name, value in values.items():
        captured.shape.specs[name].extract(value, inputs)
    builder = _Builder(_fixed(captured, inputs), _lengths(captured))
    arguments: list[Argument] = []
    for name, parameter in function.signature.parameters.items():
        spec = captured.shape.specs[name]
        if parameter.kind is parameter.VAR_KEYWORD and isinstance(spec, DictSpec):
            arguments.extend(Argument(key, builder.shape(item)) for key, item in spec.items)
        elif parameter.kind is parameter.VAR_POSITIONAL and spec == SequenceSpec(tuple, ()):
            continue
        else:
            default = None
            if parameter.default is not parameter.empty and spec.extract(parameter.default, {}):
                default = _as_json(parameter.default)
            arguments.append(Argument(name, builder.shape(spec), default))
    return tuple(arguments)


def frozen_arguments(arguments: tuple[Argument, ...]) -> Iterator[str]:
    """Yield each frozen argument and its value."""
    for argument in arguments:
        yield from _frozen(argument.name, argument.shape)


def _frozen(path: str, shape: Shape) -> Iterator[str]:
    match shape:
        case Frozen(text) | Leaf(fixed=str(text)):
            yield f"{path} = {text if len(text) <= _REPR else text[:_REPR] + '…'}"
        case Leaf(length=int(length)):
            yield f"len({path}) = {length}"
        case Items(items):
            for index, item in enumerate(items):
                yield from _frozen(f"{path}.{index}", item)
        case Fields(fields):
            for name, field in fields:
                yield from _frozen(f"{path}.{name}", field)
        case _:
            return


def conditions_of(captured: Captured) -> tuple[Condition, ...]:
    """Return the other conditions of the capture on the values of parameters."""
    found = (_condition(guard) for guard in captured.guards)
    return tuple(entry for entry in found if entry is not None)


def _condition(guard: ValueGuard) -> Condition | None:
    """Return the guard; None if a parameter is frozen instead: its value, its length, or no literal form."""
    if not guard.expression.function or _length_of(guard.expression) is not None or not _is_literal(guard.expected):
        return None
    nodes: list[tuple[str, tuple[Any, ...], tuple[str, ...]]] = []
    places: dict[Expression, NodeRef] = {}
    pending = [guard.expression]
    while pending:
        node = pending[-1]
        missing = [entry for entry in node.operands if isinstance(entry, Expression) and entry not in places]
        if missing:
            pending.extend(missing)
            continue
        pending.pop()
        if node in places:
            continue
        if not all(isinstance(entry, Expression) or _is_literal(entry) for entry in node.operands):
            return None
        operands = tuple(places[entry] if isinstance(entry, Expression) else entry for entry in node.operands)
        places[node] = NodeRef(len(nodes))
        nodes.append((node.function, operands, node.keywords))
    return Condition(tuple(nodes), guard.expected)


def _is_literal(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_literal, value))
    return value is None or type(value) in (bool, int, float, str)


def _fixed(captured: Captured, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that must keep their values, because no weaker condition implies validity."""
    names: set[str] = set()
    seen: set[Expression] = set()
    guards = (guard for guard in captured.guards if _length_of(guard.expression) is None)
    pending = [guard.expression for guard in guards if _condition(guard) is None]
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if not node.function:
            names.add(node.operands[0])
        pending.extend(entry for entry in node.operands if isinstance(entry, Expression))
    return {name: inputs[name] for name in names if name in inputs}


def _lengths(captured: Captured) -> dict[str, int]:
    found = ((_length_of(guard.expression), guard.expected) for guard in captured.guards)
    return {name: expected for name, expected in found if name is not None}


def _length_of(expression: Expression) -> str | None:
    """Return the parameter whose length this is, or None."""
    if expression.function != "len" or len(expression.operands) != 1:
        return None
    [operand] = expression.operands
    return operand.operands[0] if isinstance(operand, Expression) and not operand.function else None


@dataclass(frozen=True)
class _Builder:
    fixed: Mapping[str, Any]
    lengths: Mapping[str, int]

    def shape(self, spec: Spec, default: str | None = None) -> Shape:
        match spec:
            case LeafSpec(name):
                fixed = _as_json(self.fixed[name]) if name in self.fixed else None
                return Leaf(name, fixed, default, self.lengths.get(name))
            case SequenceSpec(_, items):
                return Items(tuple(map(self.shape, items)))
            case DictSpec(items):
                if len({str(key) for key, _ in items}) < len(items):
                    raise InputError(
                        "a dict among the arguments has keys that JSON can't tell apart",
                        remedy="rename one: a saved plan is run with rows of JSON",
                    )
                return Fields(tuple((str(key), self.shape(item)) for key, item in items))
            case RecordSpec(kind, items):
                defaults = _defaults(kind)
                return Fields(tuple((name, self.shape(item, defaults.get(name))) for name, item in items))
            case StaticSpec(snapshot):
                text = _as_json(snapshot.value)
                return Frozen(repr(snapshot.value)[:_REPR] if text is None else text, text is not None)
            case _:
                raise AssertionError(spec)


def _defaults(kind: type) -> dict[str, str | None]:
    """The defaults of a record's fields, as JSON text."""
    if issubclass(kind, pydantic.BaseModel):
        return {name: _as_json(field.default) for name, field in kind.model_fields.items() if not field.is_required()}
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {field.name: _as_json(field.default) for field in fields if field.default is not dataclasses.MISSING}


def _as_json(value: Any) -> str | None:
    """Return ``value`` as JSON text; None if JSON has no form for it."""
    if inspect.isroutine(value):
        return None
    try:
        data = to_jsonable_python(value, inf_nan_mode="strings")
        return json_text(data) if _depth(data) <= MAX_DEPTH else None
    except (PydanticSerializationError, ValueError, RecursionError, TypeError):
        return None


def _depth(data: Any) -> int:
    entries = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return 1 + max(map(_depth, entries), default=0)
