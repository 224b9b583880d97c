"""Calls in transformed code: which run during the capture, which become ops, which become host calls."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Iterable
from types import (
    BuiltinMethodType,
    FrameType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
)
from typing import TYPE_CHECKING, Any, cast

from lmc.frontend.captured_forms import run_form
from lmc.frontend.emitting import SCALARS
from lmc.frontend.forms import FORMS
from lmc.frontend.function import LIBRARY, JittedFunction, helper
from lmc.frontend.helpers import is_small
from lmc.frontend.host_calls import FRAME_FUNCTION_IDS, is_known_now
from lmc.frontend.keyed_calls import KEYED, by_key, is_one_of
from lmc.frontend.locations import is_user_file
from lmc.frontend.messages import OWN_FUNCTIONS
from lmc.frontend.method_calls import MethodCalls
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, ProxyMethod
from lmc.frontend.pure_calls import HANDLERS, PURE_TYPES
from lmc.frontend.recorder import Recorder
from lmc.frontend.rewrite import OPERATORS
from lmc.frontend.state import State
from lmc.frontend.transform import Transformed

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators


class Fresh:
    """A callable together with what is known of its arguments: which are containers that nothing else refers to."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments


class Calls(MethodCalls):
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

    def called(self, recorder: Recorder, function: Any, *args: Any) -> Any:
        """``function(*args)``, which one of Python's own functions calls: that counts as no operation."""
        return self._captured(recorder, function, args, {}, ())

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
            return self.method_of_value(recorder, function, args, kwargs)
        if id(function) in FORMS:
            return run_form(cast("Operators", self), function, args, kwargs)
        if id(function) in OWN_FUNCTIONS:
            return function(*args, **kwargs)
        if isinstance(function, JittedFunction):
            return self.inline(recorder, function, None, args, kwargs)
        if kind is functools.partial:
            return self._captured(recorder, *self.unfolded(recorder, function, args, kwargs), fresh)
        if isinstance(function, MethodType):
            owner = function.__self__
            if issubclass(type(owner), Handle):
                return function(*args, **kwargs)
            if isinstance(owner, JittedFunction) and function.__name__ == "on_state":
                return self.inline(recorder, owner, args[:1], args[1:], kwargs)
        if isinstance(function, FunctionType) and id(function.__code__) in recorder.codes:
            found = function(*args, **kwargs)
            return recorder.born(found) if function.__code__.co_flags & inspect.CO_GENERATOR else found
        return self._plain_call(recorder, function, args, kwargs, fresh)

    def _plain_call(
        self,
        recorder: Recorder,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fresh: tuple[Any, ...],
    ) -> Any:
        """A function that is no part of this program or of another."""
        kind: Any = type(function)
        handler = HANDLERS.get(id(function))
        if handler is not None:
            return handler(cast("Operators", self), recorder, *args, **kwargs)
        known: Any = function
        if kind is MethodDescriptorType and args and known.__objclass__ in PURE_TYPES:
            # str.upper(x): the method of the first argument
            return self._captured(recorder, self.attribute_of(args[0], function.__name__), args[1:], kwargs, fresh)
        if known is functools.partial:
            return self.partly(recorder, args, kwargs)
        if kind is BuiltinMethodType and type(known.__self__) in PURE_TYPES:
            return self.method_of_plain(recorder, function, args, kwargs, fresh)
        if isinstance(function, type) and issubclass(function, BaseException) and function.__module__ == "builtins":
            return recorder.own_error(function(*args, **kwargs))
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
            return self.inline_helper(recorder, *_plain(function, args), kwargs)
        part = self.as_part(recorder, function, args, kwargs)
        if part is not None:
            return self.run_part(recorder, *part, _plain(function, args)[1], kwargs)
        if is_known_now(function, args, kwargs) and not self.holds_live(recorder, (args, kwargs)):
            found = self.at_capture(recorder, function, args, kwargs)
            if type(found) in SCALARS:
                return found
        return self.call_host(recorder, function, args, kwargs, fresh)

    def _replayed(self, tick: int, called: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        session = self.session
        if tick in session.served:
            return self.served(tick, called)
        function: Any = called
        if id(function) in FORMS:
            return run_form(cast("Operators", self), function, args, kwargs)
        if type(function) is functools.partial:
            function, args, kwargs = function.func, (*function.args, *args), {**function.keywords, **kwargs}
            called = function
        if is_one_of(called, KEYED) and args and kwargs.get("key") is not None:
            first, *others = args
            return by_key(cast("Operators", self), called, [first, *others] if others else first, kwargs)
        if called is map and len(args) > 1 and not kwargs:
            return self.mapped(*args)
        if called is filter and len(args) == 2 and not kwargs:
            return self.filtered(*args)
        on: tuple[Any, ...] | None = None
        program = function
        continues = isinstance(function, MethodType) and function.__name__ == "on_state"
        if continues and isinstance(function.__self__, JittedFunction) and args and issubclass(type(args[0]), State):
            program, on, args = function.__self__, args[:1], args[1:]
        if isinstance(program, JittedFunction) and on is None:
            program, args = program.meant(args)
        if isinstance(program, JittedFunction) and isinstance(program.part, Transformed):
            return self.enter(program, program.part, on, args, kwargs)
        if _is_helper(function, args, kwargs):
            plain, args = _plain(function, args)
            called = helper(plain)
            if isinstance(called.part, Transformed):
                return self.enter_helper(called, called.part, args, kwargs)
        if tick in session.entered and is_small(function):
            return self.rerun_part(function, args, kwargs)
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
    """Whether it is a plain function or method, the user's or a library's, that is given a handle.

    Nothing else could run it.
    """
    function = function.__func__ if isinstance(function, MethodType) else function
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


def _plain(function: Any, args: tuple[Any, ...]) -> tuple[FunctionType, tuple[Any, ...]]:
    """A function or method as a function, and its arguments."""
    return (function.__func__, (function.__self__, *args)) if isinstance(function, MethodType) else (function, args)


def _is_method_of_class(function: Any) -> bool:
    """Whether it is a method of one of Python's own classes itself: ``str.maketrans``, ``dict.fromkeys``."""
    owner = function.__self__ if type(function) is BuiltinMethodType else None
    return isinstance(owner, type) and owner in PURE_TYPES


def _finds_members_itself(kind: Any) -> bool:
    """Whether ``kind(value)`` is Python's own lookup of a member of an enumeration."""
    return type(kind) is enum.EnumMeta and len(kind) > 0 and "_missing_" not in vars(kind)
