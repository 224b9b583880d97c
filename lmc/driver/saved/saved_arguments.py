"""The arguments of a saved plan: conversion from its program's arguments to its inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pydantic

from lmc.backend.json.arguments_json import json_text, leaves
from lmc.backend.plan import Argument, Condition, Fields, Frozen, Items, Leaf, NodeRef, Plan, Shape
from lmc.driver.batch.rows import Signature, describe_value
from lmc.frontend.heap.expressions import Expression
from lmc.frontend.program.guards import ValueGuard
from lmc.ir.errors import InputError
from lmc.ir.types import BOOL, FLOAT, INT, NONE, TEXT, ListType, Type

_PYTHON: dict[Type, Any] = {TEXT: str, INT: int, FLOAT: float, BOOL: bool, NONE: None}
_REMEDY = "compile the plan again for this, or run the program itself"
_MISSING = object()


def signature_of(plan: Plan) -> Signature:
    """Return the arguments of a plan: its program's, or else its parameters. Paths (``opts.k``) name parts too."""
    types = {parameter.name: annotation_of(parameter.value.type) for parameter in plan.parameters}
    if plan.arguments is None:
        return Signature(plan.name, tuple(types), (), types)
    known = {entry.name: _argument_type(entry.shape, types) for entry in plan.arguments}
    needed = tuple(entry.name for entry in plan.arguments if not _is_settled(entry.shape) and entry.default is None)
    optional = tuple(name for name in known if name not in needed)
    arranger = _Arranger(plan.arguments, plan.conditions, types)
    paths = tuple(name for name in types if name not in known)
    return Signature(
        plan.name,
        tuple(name for name in needed if not arranger.has_paths(name)),
        (*(name for name in needed if arranger.has_paths(name)), *optional, *paths),
        {**types, **known},
        arrange=arranger.arrange,
    )


def annotation_of(kind: Type) -> Any:
    """The annotation of a parameter of this type."""
    return list[annotation_of(kind.element)] if isinstance(kind, ListType) else _PYTHON.get(kind, Any)


def _argument_type(shape: Shape, types: Mapping[str, Any]) -> Any:
    if isinstance(shape, Leaf):
        return types[shape.parameter]
    if isinstance(shape, Frozen) and shape.is_json:
        kind = type(json.loads(shape.text))
        return kind if kind in (str, bool, int, float) else Any
    return Any


def _is_settled(shape: Shape) -> bool:
    """Return True if the plan is valid for one value only."""
    return all(leaf.fixed is not None for leaf in leaves(shape))


class _Arranger:
    """Makes a plan's inputs of its program's arguments."""

    def __init__(
        self, arguments: tuple[Argument, ...], conditions: tuple[Condition, ...], types: Mapping[str, Any]
    ) -> None:
        self._arguments = arguments
        self._guards = [_guard(entry) for entry in conditions]
        self._adapters = {name: pydantic.TypeAdapter(kind) for name, kind in types.items()}

    def has_paths(self, name: str) -> bool:
        """Return True if the argument can be given in parts."""
        return any(entry.name == name and not isinstance(entry.shape, Leaf | Frozen) for entry in self._arguments)

    def arrange(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs. Raises ``InputError`` for arguments that the plan is not valid for."""
        inputs: dict[str, Any] = {}
        for argument in self._arguments:
            self._take(argument, given, inputs)
        known: dict[Expression, Any] = {}
        for guard, names in self._guards:
            if not guard.holds(inputs, known):
                raise InputError(f"the plan was made for other values of {', '.join(names)}", remedy=_REMEDY)
        return inputs

    def _take(self, argument: Argument, given: Mapping[str, Any], into: dict[str, Any]) -> None:
        name, shape = argument.name, argument.shape
        parts = [] if isinstance(shape, Leaf) else [leaf for leaf in leaves(shape) if leaf.parameter in given]
        if name in given:
            if parts:
                raise InputError(
                    f"argument {name!r} and its part {parts[0].parameter!r} are both given", remedy="give one"
                )
            self._walk(name, shape, given[name], into)
        elif parts or _is_settled(shape):
            for leaf in leaves(shape):
                self._walk(leaf.parameter, leaf, given.get(leaf.parameter, _MISSING), into)
        elif argument.default is not None:
            self._walk(name, shape, json.loads(argument.default), into)
        else:
            raise InputError(f"argument {name!r} is missing", remedy=f"add {name}")

    def _walk(self, path: str, shape: Shape, value: Any, into: dict[str, Any]) -> None:
        match shape:
            case Leaf():
                into[shape.parameter] = self._leaf(path, shape, value)
            case Frozen(text, is_json):
                if value is not _MISSING and (not is_json or json_text(value) != text):
                    raise _frozen(path, value, text)
            case Items(items):
                if not isinstance(value, list | tuple) or len(value) != len(items):
                    raise _other(path, value, f"a list of {len(items)}")
                for index, (item, entry) in enumerate(zip(items, value, strict=True)):
                    self._walk(f"{path}.{index}", item, entry, into)
            case Fields(fields):
                names = [name for name, _ in fields]
                if not isinstance(value, dict) or not set(value) <= set(names):
                    raise _other(path, value, f"an object with {', '.join(names) or 'no fields'}")
                for name, field in fields:
                    self._walk(f"{path}.{name}", field, value.get(name, _MISSING), into)

    def _leaf(self, path: str, leaf: Leaf, value: Any) -> Any:
        if value is _MISSING:
            text = leaf.default if leaf.fixed is None else leaf.fixed
            if text is None:
                raise InputError(f"argument {path} is missing", remedy=f"add {path}")
            value = json.loads(text)
        found = self._converted(path, leaf, value)
        if leaf.fixed is not None and repr(found) != repr(self._converted(path, leaf, json.loads(leaf.fixed))):
            raise _frozen(path, value, leaf.fixed)
        if leaf.length is not None and (not isinstance(found, str | list) or len(found) != leaf.length):
            raise _other(path, value, f"a length of {leaf.length}")
        return found

    def _converted(self, path: str, leaf: Leaf, value: Any) -> Any:
        try:
            return self._adapters[leaf.parameter].validate_python(value)
        except pydantic.ValidationError as error:
            said = error.errors(include_url=False)[0]["msg"]
            raise InputError(f"argument {path} is {describe_value(value)}: {said}", remedy=_REMEDY) from None


def _guard(condition: Condition) -> tuple[ValueGuard, list[str]]:
    """Return a condition as a guard of capture, and its parameters."""
    found: list[Expression] = []
    for function, operands, keywords in condition.nodes:
        operands_found = tuple(found[entry.index] if isinstance(entry, NodeRef) else entry for entry in operands)
        found.append(Expression(function, operands_found, keywords))
    names = sorted({str(operands[0]) for function, operands, _ in condition.nodes if not function})
    return ValueGuard(found[-1], condition.expected), names


def _frozen(path: str, value: Any, text: str) -> InputError:
    shown = text if len(text) <= 60 else text[:59] + "…"
    return InputError(f"argument {path} is {describe_value(value)}, but the plan is for {shown} only", remedy=_REMEDY)


def _other(path: str, value: Any, wanted: str) -> InputError:
    given = "missing" if value is _MISSING else describe_value(value)
    return InputError(f"argument {path} is {given}, but the plan is for {wanted}", remedy=_REMEDY)
