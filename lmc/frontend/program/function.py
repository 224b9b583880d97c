"""A jitted function: the user's function and its signature."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Self, TypeVar

from lmc.frontend.language.binding import Bindable
from lmc.frontend.language.core import Core
from lmc.frontend.language.running import ACTIVE, HOST
from lmc.frontend.language.state import State
from lmc.frontend.source.files import Unsupported, inner_codes
from lmc.frontend.source.functions import definition_of
from lmc.frontend.source.locations import user_location
from lmc.ir.cached import cached_property
from lmc.ir.errors import CaptureError, Location
from lmc.ir.wording import with_count

F = TypeVar("F", bound=Callable[..., Any])

LIBRARY: set[Callable[..., Any]] = set()
"""Functions of lmc's own that are given a handle, and so are a part of the program that calls them."""

AT_CAPTURE: set[Callable[..., Any]] = set()
"""Functions of lmc's own that a capture calls itself, with what is known to it: they change nothing."""


def part_of_programs(function: F) -> F:
    """Declare one of ``LIBRARY``: it is written like a function of the user's, and captured like one."""
    LIBRARY.add(function)
    return function


def called_at_capture(function: F) -> F:
    """Declare one of ``AT_CAPTURE``."""
    AT_CAPTURE.add(function)
    return function


def fits(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call with these arguments has this signature."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


class JittedFunction(Bindable):
    """A function of the user's that takes a state first. ``lmc.jit`` makes one, and adds the ways to run it.

    Called while another jitted function runs, it is a part of that one: it starts a context of its own, and
    ``on_state`` continues the caller's. Written in a class it is a method, whose object comes before the state.
    """

    may_be_method = True

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function) and not isinstance(function, classmethod):
            raise CaptureError(
                f"{function!r} is no function", remedy="decorate a function: @lmc.jit", location=user_location()
            )
        function = self.take(function)
        functools.update_wrapper(self, function)
        self.function: Any = function
        self.name: str = getattr(function, "__name__", type(function).__name__).strip("<>")
        self._code: Any = getattr(function, "__code__", None)
        self.location = None if self._code is None else Location(self._code.co_filename, self._code.co_firstlineno)
        names = ("__code__", "__defaults__", "__kwdefaults__")
        self.guarded: tuple[tuple[object, str], ...] = tuple((self.definition, name) for name in names)
        """Attributes that a capture of it depends on."""
        if self.is_method and not self.may_be_method:
            raise CaptureError(
                f"{self.name}() is a method: its first parameter is the object, not the state",
                remedy=f"make it a function, def {self.name}(s, …), and give it the object as an argument",
                location=self.location,
            )
        self.signature = self._signature()

    def settled(self) -> None:
        vars(self).pop("annotations", None)
        self.signature = self._signature()

    def _signature(self) -> inspect.Signature:
        """The parameters behind the state; of a method, those behind its object and the state."""
        parameters = list(inspect.signature(self.function).parameters.values())
        first = "s"
        if self.is_method and not self.receiver and parameters:
            first = f"{parameters.pop(0).name}, s"
        if not parameters or parameters[0].kind not in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        ):
            raise CaptureError(
                f"{self.name}() has no parameter for the state",
                remedy=f"write def {self.name}({first}, …)",
                location=self.location,
            )
        rest = parameters if parameters[0].kind is inspect.Parameter.VAR_POSITIONAL else parameters[1:]
        return inspect.Signature(rest)

    def meant(self, args: tuple[Any, ...]) -> tuple[Self, tuple[Any, ...]]:
        """The program that a call means, and its arguments: ``Agent.run(agent, …)`` is ``agent.run(…)``.

        Raises ``CaptureError`` where a method is called without its object.
        """
        if not self.is_method or self.receiver:
            return self, args
        if not args or issubclass(type(args[0]), State):
            raise self.without_object()
        return self.bound_to(args[0]), args[1:]

    def without_object(self) -> CaptureError:
        """Return the error for a method that is run unbound."""
        owner = getattr(self.definition, "__qualname__", self.name).rpartition(".")[0] or "Class"
        return CaptureError(
            f"{self.name}() is a method, and nothing says of which object",
            remedy=f"bind it to one: program = {owner}(…).{self.name}",
            location=user_location() or self.location,
        )

    def continuing(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[State, ...], tuple[Any, ...]]:
        """Return the state that a call passes to continue, as that of a plain function does, and the other arguments.

        A state is passed if the arguments do not fit without it.
        """
        if not args or not issubclass(type(args[0]), State) or not self.may_be_method:
            return (), args
        return ((), args) if fits(self.signature, args, kwargs) else (args[:1], args[1:])

    @property
    def codes(self) -> frozenset[int]:
        """Ids of the code objects that its own lines run in. Those of ``LIBRARY`` tell nothing."""
        if isinstance(self.function, FunctionType) and self.function in LIBRARY:
            return frozenset()
        code = getattr(self.definition, "__code__", None)
        return frozenset() if code is None else frozenset((id(code), *map(id, inner_codes(code))))

    def warn(self) -> None:
        """Give the warnings that its source calls for, unless they were given."""
        if isinstance(self.definition, FunctionType):
            with contextlib.suppress(Unsupported):
                definition_of(self.definition)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}{self.signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program and return what the function returns. Arguments are the function's, without the state."""
        frame = ACTIVE.get()
        if self.is_method and not self.receiver:
            meant, rest = self.meant(args)
            if frame is None and fits(self.signature, args, kwargs) and not fits(meant.signature, rest, kwargs):
                raise self.without_object()
            return meant(*rest, **kwargs)
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
        if self.is_method and not self.receiver:
            raise self.without_object()
        return frame.call_on(self, state, args, kwargs)

    def run_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run as a program of its own. What a target is, only ``lmc.jit`` knows; it overrides this."""
        raise CaptureError(
            f"{self.name}() was called outside of a run, with {with_count(len(args) + len(kwargs), 'argument')}",
            remedy="decorate it with @lmc.jit",
            location=user_location(),
        )

    # What a language that is written with other handles than ``State`` overrides

    @property
    def language(self) -> Any:
        """The tables by which a capture interprets its handles (``lmc.frontend.handles``); None for lmc's own."""
        return None

    @property
    def bound_arguments(self) -> Mapping[str, Any]:
        """Arguments that are given already, by name."""
        return {}

    def new_state(self, core: Core, path: str) -> State:
        """Return a handle of the function's language."""
        return State(core, path)

    def outputs(self, state: State) -> Mapping[str, Any]:
        """Return what a run keeps by name, from its handle at the end."""
        return state.core.variables

    def result(self, state: State, value: Any) -> Any:  # noqa: ARG002
        """Return what a call gives the program that calls this one; ``value`` is what the function returned."""
        return value

    def called_with(self, keywords: dict[str, Any]) -> tuple[JittedFunction, dict[str, Any]]:
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
            found = typing.get_type_hints(self.definition)
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
