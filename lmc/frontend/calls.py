"""Calls in transformed code: which run during the capture, which become ops, which become host calls."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Iterator
from types import (
    BuiltinMethodType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
)
from typing import TYPE_CHECKING, Any, cast

from lmc.frontend import disorder, sizes
from lmc.frontend.captured_forms import run_form
from lmc.frontend.emitting import SCALARS
from lmc.frontend.forms import FORMS
from lmc.frontend.function import LIBRARY, JittedFunction, helper
from lmc.frontend.growing import BLIND_METHODS
from lmc.frontend.harmless import VIEWS, is_deeply_harmless, is_harmless
from lmc.frontend.host_calls import FRAME_FUNCTION_IDS, is_known_now
from lmc.frontend.locations import is_user_file
from lmc.frontend.messages import OWN_FUNCTIONS
from lmc.frontend.misuse import Handle
from lmc.frontend.programs import Programs
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, symbol
from lmc.frontend.pure_calls import HANDLERS, MUTATORS, PURE_TYPES
from lmc.frontend.recorder import Recorder
from lmc.frontend.rewrite import OPERATORS
from lmc.frontend.state import State
from lmc.frontend.text_calls import check_format, text_method
from lmc.frontend.transform import Transformed
from lmc.ir.types import ANY, TEXT, JsonType

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

_COMPARING = frozenset({"index", "count", "remove", "sort"})


class Fresh:
    """A callable together with what is known of its arguments: which are containers that nothing else refers to."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments


class Calls(Programs):
    """The calling part of ``Operators``."""

    def fresh(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """``function`` with what the source says of its arguments."""
        return function if self.recorder is None else Fresh(function, arguments)

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """``function(*args, **kwargs)``."""
        tick = self.tick()
        recorder = self.recorder
        if recorder is None:
            return self._replayed(tick, function, args, kwargs)
        fresh: tuple[Any, ...] = ()
        if type(function) is Fresh:
            function, fresh = function.function, function.arguments
        return self.done(tick, self._captured(recorder, function, args, kwargs, fresh))

    def _captured(
        self,
        recorder: Recorder,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fresh: tuple[Any, ...],
    ) -> Any:
        kind: Any = type(function)
        if kind is Proxy:
            return self.call_value(recorder, function, args, kwargs, fresh)
        if kind is ProxyMethod:
            return self._method_of_value(recorder, function, args, kwargs)
        if id(function) in FORMS:
            return run_form(cast("Operators", self), function, args, kwargs)
        if id(function) in OWN_FUNCTIONS:
            return function(*args, **kwargs)
        if isinstance(function, JittedFunction):
            return self.inline(recorder, function, None, args, kwargs)
        if isinstance(function, MethodType):
            owner = function.__self__
            if issubclass(type(owner), Handle):
                return function(*args, **kwargs)
            if isinstance(owner, JittedFunction) and function.__name__ == "on_state":
                return self.inline(recorder, owner, args[:1], args[1:], kwargs)
        if isinstance(function, FunctionType) and id(function.__code__) in recorder.codes:
            found = function(*args, **kwargs)
            return recorder.born(found) if function.__code__.co_flags & inspect.CO_GENERATOR else found
        handler = HANDLERS.get(id(function))
        if handler is not None:
            return handler(cast("Operators", self), recorder, *args, **kwargs)
        known: Any = function
        if kind is MethodDescriptorType and args and known.__objclass__ in PURE_TYPES:
            # str.upper(x): the method of the first argument
            return self._captured(recorder, self.attribute_of(args[0], function.__name__), args[1:], kwargs, fresh)
        if kind is BuiltinMethodType and type(known.__self__) in PURE_TYPES:
            return self._method_of_plain(recorder, function, args, kwargs)
        if isinstance(function, type) and issubclass(function, BaseException) and function.__module__ == "builtins":
            return function(*args, **kwargs)
        if _is_method_of_class(function) or _finds_members_itself(function):
            return self.at_capture(recorder, function, args, kwargs)
        return self._call_outside(recorder, known, args, kwargs, fresh)

    def _call_outside(
        self,
        recorder: Recorder,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fresh: tuple[Any, ...],
    ) -> Any:
        """A function that is neither a program nor one of Python's own."""
        bound: Any = function
        if type(bound) is MethodWrapperType:  # such as [].__len__
            self.check_settled(recorder, bound.__self__)
        if _is_helper(function, args, kwargs):
            return self.inline_helper(recorder, function, args, kwargs)
        if is_known_now(function, args, kwargs):
            found = self.at_capture(recorder, function, args, kwargs)
            if type(found) in SCALARS:
                return found
        return self.call_host(recorder, function, args, kwargs, fresh)

    def attribute_of(self, owner: Any, name: str) -> Any:
        """A method of a plain or symbolic value of a builtin type."""
        if type(owner) is Proxy:
            return ProxyMethod(owner, name)
        return getattr(owner, name)

    def at_capture(
        self, recorder: Recorder, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run one of Python's own functions now. What it raises counts only if no symbolic value was involved."""
        if "key" in kwargs:
            self._check_key(recorder, function, kwargs["key"])
        self.check_settled(recorder, *args, *kwargs.values())
        for value in (*args, *kwargs.values()):
            self.check_operand(recorder, function, value)
        name = getattr(function, "__name__", "")
        owner = getattr(function, "__self__", None)
        if sizes.grows(name, (owner, *args) if type(owner) is str else args):
            raise recorder.stop(sizes.CAUSE, sizes.REMEDY)
        if disorder.depends_on_order(function, args, kwargs):
            raise recorder.stop(disorder.CAUSE, disorder.REMEDY)
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise
        except Exception as error:
            if holds_proxy((*args, *kwargs.values())):
                raise recorder.stop(
                    f"{getattr(function, '__name__', 'a call')}() can't take a value that is known only when the "
                    f"program runs ({type(error).__name__}: {error})",
                    "do it in a tool, or with operators and text methods",
                ) from error
            raise

    def check_operand(self, recorder: Recorder, function: Any, value: Any) -> None:
        """Break where one of Python's own functions would run the user's code, or read what may have changed."""
        kind = type(value)
        if issubclass(kind, (Proxy, ProxyMethod, Handle)) or (
            isinstance(value, FunctionType) and id(value.__code__) in recorder.codes
        ):
            return
        if kind is GeneratorType or hasattr(kind, "__next__"):
            self.check_iterable(recorder, value)
        elif not (is_harmless(value) if holds_proxy(value) else is_deeply_harmless(value)):
            raise self.foreign_operator(recorder, getattr(function, "__name__", "call"), value)
        self.check_unchanged(recorder, value)

    def _check_key(self, recorder: Recorder, function: Any, key: Any) -> None:
        """Break where ``key`` is the user's own code, unless that is transformed."""
        own = type(key) is FunctionType and id(key.__code__) in recorder.codes
        python = id(key) in HANDLERS or (type(key) is MethodDescriptorType and key.__objclass__ in PURE_TYPES)
        if key is not None and not own and not python:
            name = "a function" if holds_proxy(key) else getattr(key, "__name__", type(key).__name__)
            raise recorder.stop(
                f"{function.__name__}() calls {name}(), which is not transformed",
                f"write a lambda around it: lambda x: {name}(x)",
            )

    def mapped(self, function: Any, *iterables: Iterable[Any]) -> Iterator[Any]:
        """``map(function, *iterables)``."""
        return (self.call(function, *values) for values in zip(*iterables, strict=False))

    def filtered(self, function: Any, items: Iterable[Any]) -> Iterator[Any]:
        """``filter(function, items)``."""
        return (item for item in items if self.truth(item if function is None else self.call(function, item)))

    def _method_of_value(
        self, recorder: Recorder, method: ProxyMethod, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        kind = symbol(method.proxy).type
        if kind == TEXT:
            return text_method(self, recorder, method.proxy, method.name, args=args, kwargs=kwargs)
        if kind == ANY or isinstance(kind, JsonType):
            raise AssertionError("attributes of such values are host calls")
        if method.name in MUTATORS:
            raise self.mutation(recorder, method.proxy)
        raise recorder.stop(
            f"{symbol(method.proxy).origin} is a {kind}; its method {method.name!r} has no counterpart in the graph",
            "make a list of it first (list(x)), or do it in a tool",
        )

    def _method_of_plain(self, recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        owner = function.__self__
        if type(owner) is str and (holds_proxy(args) or holds_proxy(kwargs) or function.__name__ == "join"):
            return text_method(self, recorder, owner, function.__name__, args=args, kwargs=kwargs)
        if type(owner) is str:
            check_format(recorder, owner, function.__name__, args, kwargs)
        if function.__name__ in MUTATORS and type(owner) in (list, dict, set):
            if id(owner) in recorder.foreign:
                raise self.mutation(recorder, owner)
            if function.__name__ not in BLIND_METHODS:
                self.check_settled(recorder, owner)
            recorder.touch(owner)
            if function.__name__ in ("append", "insert", "setdefault"):
                return self._kept(recorder, function, args, kwargs)
            if function.__name__ == "extend" and len(args) == 1:
                return function(self.spread(args[0]))
        self.check_unchanged(recorder, owner)
        if function.__name__ not in BLIND_METHODS:
            self.check_settled(recorder, owner)
        if function.__name__ in _COMPARING and not holds_proxy(owner) and not is_deeply_harmless(owner):
            raise self.foreign_operator(recorder, function.__name__, owner)
        result = self.at_capture(recorder, function, args, kwargs)
        if type(owner) is str or function.__name__ == "copy":
            recorder.born(result)
        if type(result) in VIEWS and id(owner) in recorder.foreign and id(owner) not in recorder.argument_parts:
            recorder.foreign[id(result)] = result
        return result

    def _kept(self, recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is put in is only kept, never looked at."""
        if function.__name__ == "insert" and args:
            args = (recorder.concrete(args[0]), *args[1:])
        return function(*args, **kwargs)

    def _replayed(self, tick: int, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        session = self.session
        if tick in session.served:
            return self.served(tick, called)
        function: Any = called
        if id(function) in FORMS:
            return run_form(cast("Operators", self), function, args, kwargs)
        if called is map and len(args) > 1 and not kwargs:
            return self.mapped(*args)
        if called is filter and len(args) == 2 and not kwargs:
            return self.filtered(*args)
        on: tuple[Any, ...] | None = None
        program = function
        continues = isinstance(function, MethodType) and function.__name__ == "on_state"
        if continues and isinstance(function.__self__, JittedFunction) and args and issubclass(type(args[0]), State):
            program, on, args = function.__self__, args[:1], args[1:]
        if isinstance(program, JittedFunction) and isinstance(program.part, Transformed):
            return self.enter(program, program.part, on, args, kwargs)
        if _is_helper(function, args, kwargs):
            called = helper(function)
            if isinstance(called.part, Transformed):
                return self.enter_helper(called, called.part, args, kwargs)
        if id(function) in FRAME_FUNCTION_IDS:
            return in_frame(function, args, kwargs, inspect.currentframe())
        return function(*args, **kwargs)


def in_frame(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> Any:
    """A function that looks at the frame it is called from (under another name: by its own it is not transformed).

    That frame is the innermost of the user's around ``frame``.
    """
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    assert frame is not None
    names = {name: value for name, value in frame.f_locals.items() if not name.startswith(OPERATORS)}
    if function in (eval, exec) and len(args) == 1 and not kwargs:
        return function(args[0], frame.f_globals, names)
    if args or kwargs or function is breakpoint:
        return function(*args, **kwargs)
    return {locals: names, vars: names, globals: frame.f_globals, dir: sorted(names)}[function]


def _is_helper(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it is a plain function, the user's or a library's, that is given a handle: nothing else could run it."""
    return (
        isinstance(function, FunctionType)
        and (is_user_file(function.__code__.co_filename) or function in LIBRARY)
        and _holds_handle((*args, *kwargs.values()))
    )


def _holds_handle(values: Iterable[Any], depth: int = 3) -> bool:
    for value in values:
        kind = type(value)
        if issubclass(kind, Handle):
            return True
        if kind in (list, tuple) and depth and _holds_handle(value, depth - 1):
            return True
    return False


def _is_method_of_class(function: Any) -> bool:
    """Whether it is a method of one of Python's own classes itself: ``str.maketrans``, ``dict.fromkeys``."""
    owner = function.__self__ if type(function) is BuiltinMethodType else None
    return isinstance(owner, type) and owner in PURE_TYPES


def _finds_members_itself(kind: Any) -> bool:
    """Whether ``kind(value)`` is Python's own lookup of a member of an enumeration."""
    return type(kind) is enum.EnumMeta and len(kind) > 0 and "_missing_" not in vars(kind)
