"""A jitted function: the user's function, its signature, and its transformed twin."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from types import CellType, FunctionType
from typing import Any, TypeVar

from lmc.frontend.breaks import Break
from lmc.frontend.eager import ACTIVE
from lmc.frontend.locations import user_location
from lmc.frontend.session import Session
from lmc.frontend.state import Core, State
from lmc.frontend.tool_calls import HOST
from lmc.frontend.transform import Transformed, codes_of, transform
from lmc.ir.errors import CaptureError, Location

F = TypeVar("F", bound=Callable[..., Any])

LIBRARY: set[Callable[..., Any]] = set()
"""Functions of lmc's own that are given a handle, and so are a part of the program that calls them."""


def part_of_programs(function: F) -> F:
    """Declare one of ``LIBRARY``: it is written like a function of the user's, and captured like one."""
    LIBRARY.add(function)
    return function


class UserFunction:
    """A function of the user's and its transformed twin. ``guarded`` are attributes that a capture of it depends on."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__).strip("<>")
        code = getattr(function, "__code__", None)
        self.location = None if code is None else Location(code.co_filename, code.co_firstlineno)
        self.guarded: tuple[tuple[object, str], ...] = ((function, "__defaults__"), (function, "__kwdefaults__"))

    @cached_property
    def transformed(self) -> Transformed | Break:
        """The transformed twin, or why there is none."""
        return transform(self.function)

    @cached_property
    def part(self) -> Transformed | Break:
        """The same for runs as a part of another program."""
        return transform(self.function, part=True)

    @cached_property
    def codes(self) -> frozenset[int]:
        """Ids of the code objects that its own lines run in, transformed or not. Those of ``LIBRARY`` tell nothing."""
        if isinstance(self.function, FunctionType) and self.function in LIBRARY:
            return frozenset()
        code = getattr(self.function, "__code__", None)
        own = frozenset() if code is None else codes_of(code)
        twins = [found.codes for found in (self.transformed, self.part) if isinstance(found, Transformed)]
        return own.union(*twins)

    @property
    def globals(self) -> dict[str, Any]:
        """The names of the function's module."""
        assert isinstance(self.function, FunctionType)
        return self.function.__globals__

    @property
    def rebound(self) -> frozenset[str]:
        """Names that some function of its file may bind anew while the program runs."""
        return self.transformed.rebound if isinstance(self.transformed, Transformed) else frozenset()

    def cell(self, name: str) -> CellType:
        """The variable of an enclosing function."""
        assert isinstance(self.function, FunctionType)
        return (self.function.__closure__ or ())[self.function.__code__.co_freevars.index(name)]


@lru_cache(maxsize=512)
def helper(function: FunctionType) -> UserFunction:
    """A plain function that is given a handle of a program, and so is a part of it."""
    return UserFunction(function)


class JittedFunction(UserFunction):
    """A function of the user's that takes a state first. ``lmc.jit`` makes one, and adds the ways to run it.

    Called while another jitted function runs, it is a part of that one: it starts a context of its own, and
    ``on_state`` goes on with the caller's.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise CaptureError(
                f"{function!r} is no function", remedy="decorate a function: @lmc.jit", location=user_location()
            )
        functools.update_wrapper(self, function)
        super().__init__(function)
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].kind not in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        ):
            raise CaptureError(
                f"{self.name}() has no parameter for the state",
                remedy=f"write def {self.name}(s, …)",
                location=self.location,
            )
        if parameters[0].name in ("self", "cls"):
            raise CaptureError(
                f"{self.name}() is a method: its first parameter is {parameters[0].name}, not the state",
                remedy=f"make it a function, def {self.name}(s, …), and give it the object as an argument",
                location=self.location,
            )
        rest = parameters if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL else parameters[1:]
        self.signature = inspect.Signature(rest)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{self.signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program and return what the function returns. Arguments are the function's, without the state."""
        frame = ACTIVE.get()
        if frame is not None:
            return frame.call(self, args, kwargs)
        host = HOST.get()
        if host is not None:
            raise CaptureError(
                f"{host}() calls the program {self.name}(), but is not transformed",
                remedy=f"decorate {host} with @lmc.jit too, or call {self.name} in the program itself",
                location=user_location(),
            )
        return self.run_alone(args, kwargs)

    def on_state(self, state: State, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program on ``state``, a state of the jitted function that runs now."""
        frame = ACTIVE.get()
        if frame is None or not issubclass(type(state), State):
            raise CaptureError(
                f"{self.name}.on_state() continues the state of a jitted function that runs now",
                remedy=f"call it inside a jitted function: {self.name}.on_state(s, …)",
                location=user_location(),
            )
        return frame.call_on(self, state, args, kwargs)

    def run_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run as a program of its own. What a target is, only ``lmc.jit`` knows; it overrides this."""
        raise CaptureError(
            f"{self.name}() was called outside of a run, with {len(args) + len(kwargs)} arguments",
            remedy="decorate it with @lmc.jit",
            location=user_location(),
        )

    # What a language that is written with other handles than ``State`` overrides

    def new_state(self, session: Session, path: str) -> State:
        """The handle that a run of the function begins with."""
        return State(Core(session), path)

    def outputs(self, state: State) -> Mapping[str, Any]:
        """What a run keeps by name, from its handle at the end."""
        return state.core.variables

    def result(self, state: State, value: Any) -> Any:  # noqa: ARG002
        """What a call gives the program that calls this one; ``value`` is what the function returned."""
        return value

    def called_with(self, keywords: dict[str, Any], session: Session) -> tuple[JittedFunction, dict[str, Any]]:  # noqa: ARG002
        """The program that a call from another program means, and the keyword arguments of its function."""
        return self, keywords

    def refuse_async(self) -> None:
        """Raise ``CaptureError`` where the function can't run at all: it is async, or a generator."""
        for test, what in (
            (inspect.iscoroutinefunction, "is async"),
            (inspect.isasyncgenfunction, "is async"),
            (inspect.isgeneratorfunction, "is a generator"),
        ):
            if test(self.function):
                raise CaptureError(
                    f"{self.name}() {what}",
                    remedy="write it as a plain function that returns its result; program.arun() is async",
                    location=self.location,
                )

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """Annotations of the parameters as types; those that name what is not there are left out."""
        raw = {name: parameter.annotation for name, parameter in self.signature.parameters.items()}
        try:
            found = typing.get_type_hints(self.function)
        except (NameError, TypeError, AttributeError, SyntaxError):
            found = {}
        return {
            name: found.get(name, annotation)
            for name, annotation in raw.items()
            if annotation is not inspect.Parameter.empty and not isinstance(found.get(name, annotation), str)
        }

    @property
    def defaults(self) -> dict[str, Any]:
        """The parameters that have a default, and what it is."""
        parameters = self.signature.parameters.items()
        return {name: found.default for name, found in parameters if found.default is not found.empty}
