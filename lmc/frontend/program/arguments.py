"""Arguments as pytrees: which leaves are symbolic, which are part of what a capture holds for.

======================================  ==================================================================
an argument that is                     becomes
======================================  ==================================================================
a ``str``, ``int`` or ``float``         one symbolic parameter
a list of those, of one type            one symbolic parameter, whose length is symbolic too
another list, a tuple, a ``dict``       its items, each by its own path (``examples.0.q``); its shape is fixed
a dataclass or pydantic instance        its fields, by path; its class is fixed
anything else (``None``, ``bool`` …)    itself: the capture holds for this value
======================================  ==================================================================
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pydantic

from lmc.frontend.language.annotations import annotated_type
from lmc.frontend.program.annotation_checks import check_promises
from lmc.frontend.program.argument_specs import (
    PYTHON_TYPES,
    TYPES_OF_ARGUMENTS,
    Arguments,
    DictSpec,
    LeafSpec,
    RecordSpec,
    SequenceSpec,
    Spec,
    StaticSpec,
)
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.guards import Snapshot
from lmc.frontend.source.locations import user_location
from lmc.ir.errors import InputError
from lmc.ir.types import ANY, NONE, ListType, Type, list_of


@dataclass(frozen=True)
class Bound:
    """Arguments of one call of ``program``, defaults filled in; ``values`` by parameter name, without the state."""

    program: JittedFunction
    values: Mapping[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def bind(function: JittedFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
    """Bind the arguments of a call. Raises ``InputError`` where they don't fit the signature (see ``promises.py``)."""
    signature = function.signature
    try:
        found = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise InputError(
            f"{function.name}(): {error}",
            remedy=f"its arguments are {signature}",
            location=user_location() or function.location,
        ) from None
    check_promises(function, found.arguments)
    found.apply_defaults()
    return Bound(function, dict(found.arguments), found.args, found.kwargs)


def shape_of(function: JittedFunction, bound: Bound) -> Arguments:
    """The shapes of these arguments."""
    names = _Names()
    annotations = function.annotations
    return Arguments(
        {name: _spec(value, (name,), names, annotations.get(name)) for name, value in bound.values.items()}
    )


def shape_of_annotations(function: JittedFunction) -> Arguments:
    """The shapes for compiling without inputs: of the defaults, else what the annotations promise.

    A parameter with neither is ``!any``: it can be passed on and turned into text, anything else breaks.
    """
    names = _Names()
    specs: dict[str, Spec] = {}
    for name, parameter in function.signature.parameters.items():
        annotation = function.annotations.get(name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            specs[name] = SequenceSpec(tuple, ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            specs[name] = DictSpec(())
        elif parameter.default is not parameter.empty:
            specs[name] = _spec(parameter.default, (name,), names, annotation)
        else:
            specs[name] = _promised(annotation, (name,), names)
    return Arguments(specs)


class _Names:
    """Names of parameters from their paths, each once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def make(self, path: tuple[Any, ...]) -> str:
        wish = ".".join(map(str, path))
        name = wish
        suffix = 0
        while name in self._taken:
            suffix += 1
            name = f"{wish}_{suffix}"
        self._taken.add(name)
        return name


def _spec(value: Any, path: tuple[Any, ...], names: _Names, annotation: Any) -> Spec:
    kind = type(value)
    if kind in TYPES_OF_ARGUMENTS:
        return LeafSpec(names.make(path), TYPES_OF_ARGUMENTS[kind])
    if kind is list:
        promised = annotated_type(annotation)
        element = _common_type(value) if value else getattr(promised, "element", None)
        if element is not None and element in PYTHON_TYPES:
            return LeafSpec(names.make(path), list_of(element))
    if kind in (list, tuple):
        return SequenceSpec(kind, tuple(_spec(item, (*path, index), names, None) for index, item in enumerate(value)))
    if kind is dict and all(type(key) in (str, int, bool, type(None)) for key in value):
        return DictSpec(tuple((key, _spec(item, (*path, key), names, None)) for key, item in value.items()))
    fields = _record_fields(kind)
    if fields is not None and all(name in vars(value) for name in fields):
        return RecordSpec(kind, tuple((name, _spec(vars(value)[name], (*path, name), names, None)) for name in fields))
    return StaticSpec(Snapshot(value))


def _promised(annotation: Any, path: tuple[Any, ...], names: _Names) -> Spec:
    fields = _record_fields(annotation) if isinstance(annotation, type) else None
    if fields is not None:
        hints = _hints(annotation)
        return RecordSpec(
            annotation, tuple((name, _promised(hints.get(name), (*path, name), names)) for name in fields)
        )
    promised = ANY if annotation is None else annotated_type(annotation)
    if promised == NONE:
        return StaticSpec(Snapshot(None))
    if isinstance(promised, ListType) and promised.element not in PYTHON_TYPES:
        promised = ANY
    return LeafSpec(names.make(path), promised)


def _common_type(values: list[Any]) -> Type | None:
    kinds = {type(value) for value in values}
    return TYPES_OF_ARGUMENTS.get(kinds.pop()) if len(kinds) == 1 else None


def _record_fields(kind: type) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass or pydantic class whose instances keep them in a plain ``__dict__``."""
    if kind.__getattribute__ is not object.__getattribute__:
        return None
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        plain = not hasattr(kind, "__slots__") and "__getattr__" not in vars(kind)
    elif issubclass(kind, pydantic.BaseModel):
        names = tuple(kind.model_fields)
        plain = True
    else:
        return None
    return (
        names if plain and not any(isinstance(inspect.getattr_static(kind, n, None), property) for n in names) else None
    )


def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except (NameError, TypeError, AttributeError, SyntaxError):
        return {}
