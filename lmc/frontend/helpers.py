"""Plain functions that a program calls without a state: captured as parts of it, or called whole by the graph.

A function is a part where all of it can be captured, and all it does is to work something out. Whether that is so is
found out by doing it: where its capture ends, another attempt at the whole program begins that calls it as it is.
"""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType
from typing import Any

from lmc.frontend.function import UserFunction, helper
from lmc.frontend.growing import is_grown
from lmc.frontend.locations import is_own_file
from lmc.frontend.misuse import Handle
from lmc.frontend.outside import Part
from lmc.frontend.programs import Programs
from lmc.frontend.recorder import Recorder
from lmc.frontend.transform import Transformed
from lmc.ir.errors import LmcError

_MOST_CODE = 1_500
_MOST_TICKS = 5_000
_MOST_OPS = 1_000
_MOST_CALLS = 8
_CONTAINERS = (list, dict, set)


class Helpers(Programs):
    """The part of ``Operators`` that makes plain functions parts of a program."""

    def as_part(
        self, recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[UserFunction, Part] | None:
        """What a function is where it may become a part of this program."""
        outside = recorder.outside
        if outside.final or outside.plain or not is_small(function):
            return None
        plain = plain_function(function)
        called = helper(plain)
        if called.has_effects or id(plain.__code__) in outside.whole or not isinstance(called.part, Transformed):
            return None
        lenient = any(_is_own(recorder, value) for value in (*args, *kwargs.values()))
        limits = recorder.ticks + _MOST_TICKS, recorder.op_count + _MOST_OPS
        if outside.parts:
            above = outside.parts[-1]
            limits = min(limits[0], above.most_ticks), min(limits[1], above.most_ops)
        return called, Part(called, id(plain.__code__), lenient, *limits)

    def run_part(
        self, recorder: Recorder, called: UserFunction, part: Part, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Capture a plain function as a part of this program. Breaks where that can't be done to its end."""
        tick = recorder.ticks
        outside = recorder.outside
        protected = bool(recorder.catching)
        outside.parts.append(part)
        outside.entered.add(tick)  # also where it raises what the program catches
        try:
            if recorder.inlined.count(called) >= _MOST_CALLS:
                raise recorder.stop(f"{called.name}() calls itself {_MOST_CALLS} calls deep", "write a loop")
            return self.inline_helper(recorder, called.function, args, kwargs)
        except (LmcError, RecursionError):
            raise
        except Exception as error:
            if not protected:
                raise recorder.stop(f"this raises {type(error).__name__}", "nothing has to change") from error
            raise
        finally:
            outside.parts.pop()

    def rerun_part(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """In a replay: what was a part of the program in its capture."""
        plain = plain_function(function)
        called = helper(plain)
        assert isinstance(called.part, Transformed)
        given = (function.__self__, *args) if isinstance(function, MethodType) else args
        return self.enter_helper(called, called.part, given, kwargs)


def plain_function(function: Any) -> FunctionType:
    """The function of a method, else the function itself."""
    return function.__func__ if isinstance(function, MethodType) else function


def is_small(function: Any) -> bool:
    """Whether it is a plain function or method of the user's own files, and short."""
    plain = plain_function(function)
    return (
        isinstance(plain, FunctionType)
        and len(plain.__code__.co_code) <= _MOST_CODE
        and not plain.__code__.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR)
        and is_own_file(plain.__code__.co_filename)
    )


def _is_own(recorder: Recorder, value: Any) -> bool:
    """Whether a host function could not be given ``value``, because it might change or keep it."""
    if issubclass(type(value), Handle) or is_grown(value):
        return True
    return type(value) in _CONTAINERS and (id(value) not in recorder.foreign or id(value) in recorder.argument_parts)
