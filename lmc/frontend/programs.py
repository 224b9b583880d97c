"""Programs that a program calls: their transformed twins run as a part of it, in a capture and in a replay."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from types import FunctionType
from typing import Any

from lmc.frontend.arguments import Bound, bind
from lmc.frontend.eager import EagerSession
from lmc.frontend.eager_runs import EagerFrame, activate
from lmc.frontend.failures import name_line
from lmc.frontend.function import JittedFunction, UserFunction, helper
from lmc.frontend.guards import mutable_parts
from lmc.frontend.recorder import Recorder
from lmc.frontend.state import State
from lmc.frontend.transform import Transformed
from lmc.frontend.writes import Writes
from lmc.ir.errors import InputError, LmcError

_MAX_DEPTH = 100
# Calls of a program in itself on a way that may not be taken: each may hold several more.
_MAX_UNDECIDED = 3


class Programs(Writes):
    """The part of ``Operators`` that enters other programs."""

    def inline(
        self,
        recorder: Recorder,
        function: JittedFunction,
        on: tuple[Any, ...] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Capture a program that this one calls, as a part of it."""
        if on is None:
            function, args = self._meant(recorder, function, args)
        transformed = function.part
        if not isinstance(transformed, Transformed):
            raise recorder.stop(transformed.cause, transformed.remedy)
        if on is not None and (not on or not issubclass(type(on[0]), State)):
            raise recorder.stop(
                f"{function.name}.on_state() needs a state first", f"write {function.name}.on_state(s, …)"
            )
        self._begin_inlined(recorder, function)
        return self.enter(function, transformed, on, args, kwargs)

    def _meant(
        self, recorder: Recorder, function: JittedFunction, args: tuple[Any, ...]
    ) -> tuple[JittedFunction, tuple[Any, ...]]:
        try:
            return function.meant(args)
        except LmcError as error:
            raise recorder.stop(error.cause, error.remedy or "") from error

    def inline_helper(
        self, recorder: Recorder, function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Capture a plain function that is given a handle of this program: it is a part of it."""
        called = helper(function)
        transformed = called.part
        if not isinstance(transformed, Transformed):
            raise recorder.stop(transformed.cause, transformed.remedy)
        self._begin_inlined(recorder, called)
        if args and recorder.outside.is_receiver(args[0]) and called.attributes is None:
            recorder.outside.escaped = True
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            recorder.check_guarded(default)
            mutable_parts(default, recorder.foreign)
        return self.enter_helper(called, transformed, args, kwargs)

    def enter_helper(
        self, called: UserFunction, transformed: Transformed, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run the transformed twin of a plain function as a part of the program that calls it."""
        if not _fits(called.function, args, kwargs):
            return called.function(*args, **kwargs)  # raises it in Python's own words
        inner = type(self)(self.session, called, self.path)
        twin = transformed.function
        twin.__defaults__, twin.__kwdefaults__ = called.function.__defaults__, called.function.__kwdefaults__
        if self.recorder is not None:
            self.recorder.inlined.append(called)
            self.recorder.goes_through(transformed)
        try:
            return transformed.function(inner, *args, **kwargs)
        except LmcError as error:
            name_line(error, called.codes)
            raise
        finally:
            if self.recorder is not None:
                self.recorder.inlined.pop()

    def _begin_inlined(self, recorder: Recorder, function: UserFunction) -> None:
        """Check that one more function may become a part of this program, and note what it depends on."""
        if recorder.depth >= _MAX_DEPTH:
            recorder.too_deep = True
            raise recorder.stop(
                f"{function.name}() is {_MAX_DEPTH} calls deep in itself or in others",
                "bound the recursion by a value that is known when the program is compiled, or use a loop",
            )
        if recorder.regions.depth and recorder.inlined.count(function) >= _MAX_UNDECIDED:
            raise recorder.stop(
                f"{function.name}() calls itself on one way through a condition, {_MAX_UNDECIDED} calls deep",
                "write a loop, or bound the recursion by a value that is known when the program is compiled",
            )
        for owner, name in function.guarded:
            recorder.reads.add_attribute(owner, name, getattr(owner, name, None))

    def enter(
        self,
        function: JittedFunction,
        transformed: Transformed,
        on: tuple[Any, ...] | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Run the transformed twin of ``function`` as a part of this run."""
        session = self.session
        if on is None:
            found, args = function.continuing(args, kwargs)
            on = found or None
        if on is None:
            function, kwargs = function.called_with(kwargs, session)
            path = session.allocate(self.path, function.name)
            state = function.new_state(session, path)
        else:
            state = on[0].continued(function.name)
            path = state.path
        bound = self._bound(function, args, kwargs)
        inner = type(self)(session, function, path)
        before = session.path
        session.path = path
        if self.recorder is not None:
            self.recorder.inlined.append(function)
            self.recorder.goes_through(transformed)
        # In a replay, programs that the user's own functions call find the run they belong to.
        active = activate(EagerFrame(session, path)) if isinstance(session, EagerSession) else nullcontext()
        try:
            with active:
                value = transformed.function(inner, state, *bound.args, **bound.kwargs)
                return function.result(state, value) if on is None else value
        except LmcError as error:
            name_line(error, function.codes)
            raise
        finally:
            session.path = before
            if self.recorder is not None:
                self.recorder.inlined.pop()

    def _bound(self, function: JittedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
        try:
            return bind(function, args, kwargs)
        except InputError as error:
            if self.recorder is None:
                raise
            # Not raised here: what it says of values that are not known yet would be something else.
            raise self.recorder.stop(
                f"this raises {type(error).__name__}: {error.cause}", error.remedy or "correct the call"
            ) from error


def _fits(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether ``function`` can be called with these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
