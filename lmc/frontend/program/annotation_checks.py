"""Checks of arguments against annotations: a dict where the program expects an object.

Python converts no argument, and neither does a call of a program: it gets the caller's own objects. But rows of data
are dicts, and what a program raises at the first field of one says nothing of that.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from inspect import Parameter
from typing import Any

import pydantic

from lmc.frontend.program.function import JittedFunction
from lmc.frontend.source.locations import user_location
from lmc.ir.errors import InputError
from lmc.ir.types import SCALARS

_LONGEST = 60
_ITEMS_OF = (list, tuple, set, frozenset, Sequence, Collection)


def check_promises(function: JittedFunction, given: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for a dict among the arguments ``given`` where an object of a class is promised."""
    for name, value in given.items():
        annotation = function.annotations.get(name)
        if annotation is None:
            continue
        kind = function.signature.parameters[name].kind
        if kind is Parameter.VAR_POSITIONAL:
            annotation = list[annotation]
        elif kind is Parameter.VAR_KEYWORD:
            annotation = dict[str, annotation]
        _check(function, name, value, annotation)


def _check(function: JittedFunction, path: str, value: Any, annotation: Any) -> None:
    # type(), not isinstance(): in a capture, a value that is known later refuses to be asked.
    if type(value) not in (dict, list, tuple):
        return
    members = _members(annotation)
    if type(value) is not dict:
        promised = next((found for member in members for found in _item_types(member, len(value))), None)
        for index, item in enumerate(value if promised is not None else ()):
            _check(function, f"{path}[{index}]", item, promised[index] if promised else None)
        return
    for member in members:
        if typing.get_origin(member) in (dict, Mapping) and len(typing.get_args(member)) == 2:
            for key, item in value.items():
                _check(function, f"{path}[{key!r:.40}]", item, typing.get_args(member)[1])
    records = [member for member in members if _is_record(member)]
    if not records or any(map(_takes_dict, members)):
        return
    kind = records[0]
    made = f"{kind.__name__}.model_validate(…)" if issubclass(kind, pydantic.BaseModel) else f"{kind.__name__}(**…)"
    raise InputError(
        f"{function.name}(): argument {path} is a dict, {_shown(value)}; it is annotated "
        f"{inspect.formatannotation(annotation)}",
        remedy=f"give an object: {made}; `lmc run --input` makes them of the rows of a file",
        location=user_location() or function.location,
    )


def _members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union; what is none is its only one."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _members(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return tuple(kind for member in typing.get_args(annotation) for kind in _members(member))
    return (annotation,)


def _item_types(annotation: Any, count: int) -> list[Sequence[Any]]:
    """Return the annotation of each of ``count`` items of a list or tuple: one entry, or none."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) not in _ITEMS_OF or not parts:
        return []
    if typing.get_origin(annotation) is tuple and parts[-1] is not Ellipsis:
        return [parts] if len(parts) == count else []
    return [[parts[0]] * count]


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or issubclass(kind, pydantic.BaseModel))


def _takes_dict(member: Any) -> bool:
    """Return True if a dict may fit ``member`` of a union; also for an unknown one."""
    kind = typing.get_origin(member) or member
    if not isinstance(kind, type) or typing.is_typeddict(kind):
        return kind is not None
    try:
        return issubclass(dict, kind)
    except TypeError:
        return True


def _shown(value: dict[Any, Any]) -> str:
    """The start of ``value``; only its keys where its values may have a ``__repr__`` of their own."""
    plain = all(type(part) in SCALARS for part in (*value, *value.values()))
    said = repr(value) if plain else "of " + ", ".join(str(key) for key in value if type(key) in SCALARS)
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
