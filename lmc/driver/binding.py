"""Binding the arguments of a call from Python, as Python would: nothing is converted."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import pydantic

from lmc.frontend.arguments import Bound, bind
from lmc.frontend.function import JittedFunction
from lmc.frontend.locations import user_location
from lmc.ir.errors import InputError


def bind_checked(function: JittedFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
    """Bind the arguments of a call. Raises ``InputError`` where they don't fit the signature.

    A dict where the annotation promises an object of a class is refused: rows of data often hold one, and what the
    program then raises at the first field says nothing of that. Converting it is left to the caller, because a program
    that is called gets the caller's objects, as any Python function does; only rows of files are made to fit.
    """
    bound = bind(function, args, kwargs)
    for name, value in bound.values.items():
        if isinstance(value, dict | list | tuple) and name in function.annotations:
            _check(function, name, value, function.annotations[name])
    return bound


def _check(function: JittedFunction, name: str, value: Any, annotation: Any) -> None:
    kinds = _alternatives(annotation)
    if isinstance(value, list | tuple):
        elements = next((found for kind in kinds if (found := _element(kind)) is not None), None)
        for index, item in enumerate(value if elements is not None else ()):
            if isinstance(item, dict):
                _check(function, f"{name}[{index}]", item, elements)
        return
    records = [kind for kind in kinds if _is_record(kind)]
    if not records or not all(kind in records or kind is type(None) for kind in kinds):
        return
    kind = records[0]
    made = f"{kind.__name__}(**…)"
    if issubclass(kind, pydantic.BaseModel):
        made = f"{kind.__name__}.model_validate(…)"
    raise InputError(
        f"{function.name}(): argument {name} is a dict, {_shorten(value)}; it is annotated {_name(annotation)}",
        remedy=f"give an object: {made}; `lmc run --input` makes them of the rows of a file",
        location=user_location() or function.location,
    )


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union; what is none is its only one."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _alternatives(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(kind for member in typing.get_args(annotation) for kind in _alternatives(member))
    return (annotation,)


def _element(annotation: Any) -> Any:
    """What a list's annotation says of its items; None where it says nothing."""
    if typing.get_origin(annotation) in (list, Sequence, typing.Iterable):
        return typing.get_args(annotation)[0]
    return None


def _is_record(kind: Any) -> bool:
    """Whether a dict is never an instance of ``kind``."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, pydantic.BaseModel))


def _shorten(value: Any) -> str:
    said = repr(value)
    return said if len(said) <= 60 else said[:59] + "…"


def _name(annotation: Any) -> str:
    return inspect.formatannotation(annotation)
