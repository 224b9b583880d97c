"""The IR types of annotations, and values of them."""

from __future__ import annotations

import typing
from typing import Any

from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, Type, list_of

_SCALARS: dict[Any, Type] = {str: TEXT, int: INT, float: FLOAT, bool: BOOL, type(None): NONE}
_EXACT = {kind: python for python, kind in _SCALARS.items()}
MISFIT: Any = object()
"""The result of ``fit`` for a value of another type."""


def fit(value: Any, kind: Type) -> Any:
    """``value`` as exactly the Python type of ``kind``, else ``MISFIT``. An int becomes the float that was promised."""
    if kind == TEXT and isinstance(value, str):
        return str.__getitem__(value, slice(None))
    if kind == FLOAT and type(value) is int:
        return float(value)
    if kind == ANY:
        return value
    if kind in _EXACT:
        return value if type(value) is _EXACT[kind] else MISFIT
    if type(value) is not list:
        return MISFIT
    element = kind.element  # type: ignore[attr-defined] - every other type made here is a list's
    return value if all(type(entry) is _EXACT[element] for entry in value) else MISFIT


def annotated_type(annotation: Any) -> Type:
    """The IR type of a Python annotation; ``!any`` for what the IR has no type for."""
    if annotation is None:
        return NONE
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    arguments = typing.get_args(annotation)
    if typing.get_origin(annotation) is list and len(arguments) == 1 and arguments[0] in _SCALARS:
        return list_of(_SCALARS[arguments[0]])
    return ANY
