"""``@lmc.tool``: a function of the user's program with a declared effect."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from lmc.frontend.locations import user_location
from lmc.ir.core import Effect
from lmc.ir.errors import CaptureError, InputError, Location
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, Type, list_of

P = ParamSpec("P")
R = TypeVar("R")

_EFFECTS = {"pure": Effect.PURE, "reads": Effect.READS, "writes": Effect.WRITES}
_SCALARS: dict[Any, Type] = {str: TEXT, int: INT, float: FLOAT, bool: BOOL, type(None): NONE}


class Tool(Generic[P, R]):
    """A declared host function. Called outside a jitted function it is the plain function.

    ``effect`` says what the function does: PURE (the result depends on the arguments alone), READS (looks at the
    world) or WRITES (changes it). The return annotation is a promise: a result of another type is an ``InputError``.
    """

    __name__: str

    def __init__(self, function: Callable[P, R], effect: Effect) -> None:
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise CaptureError(
                f"the tool {function.__name__!r} is async",
                remedy="give it a plain function (asyncio.run(...) inside it, if it has to await)",
                location=_defined_at(function),
            )
        functools.update_wrapper(self, function)
        self.function = function
        self.effect = effect
        self.name: str = getattr(function, "__name__", "tool")
        self.result_type = annotated_type(_return_annotation(function))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._checked(self.function(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<lmc tool {self.name} ({self.effect.value})>"

    def _checked(self, result: R) -> R:
        fitted = fit(result, self.result_type)
        if fitted is _MISFIT:
            raise InputError(
                f"the tool {self.name!r} is annotated to give {self.result_type}, but gave a {type(result).__name__}",
                remedy="correct its return annotation, or what it returns",
                location=_defined_at(self.function),
            )
        return fitted


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(*, effect: str = "writes") -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Any = None, /, *, effect: str = "writes") -> Any:
    """Declare a function that jitted functions may call: ``@lmc.tool`` or ``@lmc.tool(effect="reads")``.

    ``effect`` is "pure" (the result depends on the arguments alone), "reads" or "writes".

    Raises ``CaptureError`` for an unknown effect or an async function.
    """
    if effect not in _EFFECTS:
        raise CaptureError(
            f"unknown effect {effect!r}", remedy='use "pure", "reads" or "writes"', location=user_location()
        )
    if function is None:
        return lambda given: Tool(given, _EFFECTS[effect])
    return Tool(function, _EFFECTS[effect])


_MISFIT: Any = object()


def fit(value: Any, kind: Type) -> Any:
    """``value`` as exactly the Python type of ``kind`` (an int where a float was promised becomes one)."""
    if kind == TEXT and isinstance(value, str):
        return str.__getitem__(value, slice(None))
    if kind == FLOAT and type(value) is int:
        return float(value)
    if kind == ANY:
        return value
    if kind in _EXACT:
        return value if type(value) is _EXACT[kind] else _MISFIT
    if type(value) is not list:
        return _MISFIT
    element = kind.element  # type: ignore[attr-defined] - every other type made here is a list's
    return value if all(type(entry) is _EXACT[element] for entry in value) else _MISFIT


_EXACT = {kind: python for python, kind in _SCALARS.items()}


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


def _return_annotation(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function).get("return", inspect.Parameter.empty)
    except (NameError, TypeError, AttributeError, SyntaxError):  # an annotation that names what is not there (yet)
        return inspect.Parameter.empty


def _defined_at(function: Callable[..., Any]) -> Location | None:
    code = getattr(function, "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno)
