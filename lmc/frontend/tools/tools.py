"""``@lmc.tool``: a function of the user's program with a declared effect."""

from __future__ import annotations

import functools
import inspect
import math
import typing
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from types import CoroutineType
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from lmc.frontend.language.annotations import MISFIT, annotated_type, fit
from lmc.frontend.language.binding import Bindable
from lmc.frontend.language.refusals import bad, described
from lmc.frontend.language.running import ACTIVE, observed_tool
from lmc.frontend.source.locations import user_location
from lmc.frontend.tools.tool_calls import CallPolicy, Retries, in_program, in_tool_loop, submit, wait_for
from lmc.ir.core import Effect
from lmc.ir.engine.hosts import SCOPE, Answer, CalledTool, CallScope, calling_in
from lmc.ir.errors import CaptureError, InputError, Location
from lmc.ir.wording import with_article

P = ParamSpec("P")
R = TypeVar("R")

_EFFECTS = {"pure": Effect.PURE, "reads": Effect.READS, "writes": Effect.WRITES}
_MOST_RETRIES = 1000


class Tool(Bindable, Generic[P, R]):
    """A declared host function. Called outside a jitted function it is the plain function, or the async one.

    Written in a class it is a method.

    ``effect`` says what the function does: PURE (the result depends on the arguments alone), READS (looks at the
    world) or WRITES (changes it). ``retries`` is its retry policy with the timeout. The return
    annotation is a promise: a result of another type is an ``InputError``. ``early``: a program may call it before it
    is known whether the result is needed.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, Any],
        effect: Effect,
        retries: Retries | None = None,
        *,
        early: bool = False,
        key: bool = False,
    ) -> None:
        function = self.take(function)
        if inspect.isasyncgenfunction(function):
            raise CaptureError(
                f"the tool {function.__name__!r} is an async generator",
                remedy="return a list of what it yields",
                location=_defined_at(function),
            )
        functools.update_wrapper(self, function)
        self.function: Callable[P, Any] = function
        self.effect = effect
        self.early = early
        self.key = key
        self.name: str = getattr(function, "__name__", "tool")
        self.is_async = inspect.iscoroutinefunction(function)
        stoppable = self.is_async or effect is not Effect.WRITES
        self._policy = None if retries is None else CallPolicy(self.name, retries, self.is_async, stoppable)
        self._returns = _return_annotation(function)
        self.result_type = annotated_type(self._returns)
        if key:
            _check_key(function, self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the function's result; in a program an async one is waited for, elsewhere it has to be awaited."""
        if not self.is_async:
            with observed_tool(self.name, _line):
                return self._recorded(args, kwargs)
        if in_tool_loop() and ACTIVE.get() is not None:
            raise CaptureError(
                f"the async tool {self.name!r} is called by a program that another async tool runs without awaiting it",
                remedy="await program.arun(…) there",
                location=user_location(),
            )
        if in_program() and not in_tool_loop():
            with observed_tool(self.name, _line):
                return wait_for(partial(self.submit, *args, **kwargs))
        return cast(R, self._awaited(_here(), args, self._keyed(kwargs)))

    def settled(self) -> None:
        """Return no facts: a tool does not depend on the object it is bound to."""

    def __repr__(self) -> str:
        return f"<lmc tool {self.name} ({self.effect.value})>"

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Future[Answer]:
        """Begin a call of an async tool that a program makes, in the loop of tools."""
        scope = SCOPE.get()
        if scope is None:
            return submit(partial(self._awaited, None, args, self._keyed(kwargs)), self.name, None)
        place, given = scope.next_place(), kwargs
        if self.key:
            given = {"key": place.key, **kwargs}
        begin = partial(submit, partial(self._awaited, None, args, given), self.name, scope.inside(place))
        if scope.journal is None:
            return begin()
        return scope.journal.submit(place, self._asked(scope, args, kwargs), begin)

    def _recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        """Call the plain function; in a run whose journal holds the result, return that."""
        scope = SCOPE.get()
        if scope is None:
            return self._run(args, self._keyed(kwargs))
        place, given = scope.next_place(), kwargs
        if self.key:
            given = {"key": place.key, **kwargs}
        with calling_in(scope.inside(place)):
            if scope.journal is None:
                return self._run(args, given)
            return scope.journal.call(place, self._asked(scope, args, kwargs), partial(self._run, args, given))

    def _asked(self, scope: CallScope, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CalledTool:
        line = user_location() if scope.line is None else scope.line
        shown = None if line is None else str(line)
        returns = None if self._returns is inspect.Parameter.empty else self._returns
        return CalledTool(self.name, self.effect.value, args, kwargs, returns, self.key, shown)

    def _keyed(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Add an idempotency key for a call that no run numbers, in a program or another tool."""
        if not self.key or "key" in kwargs or not in_program():
            return kwargs
        scope = SCOPE.get()
        return {**kwargs, "key": f"lmc-{uuid.uuid4().hex}" if scope is None else scope.next_place().key}

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        if self._policy is None:
            result = self.function(*args, **kwargs)
        else:
            result = self._policy.call(partial(self.function, *args, **kwargs), _here())
        if type(result) is CoroutineType:
            result.close()
            raise InputError(
                f"the tool {self.name!r} gave a coroutine, which nothing awaits",
                remedy="write it with async def",
                location=_defined_at(self.function),
            )
        return self._checked(result)

    async def _awaited(self, location: Location | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        work = partial(self.function, *args, **kwargs)
        return self._checked(await (work() if self._policy is None else self._policy.call_async(work, location)))

    def _checked(self, result: Any) -> R:
        fitted = fit(result, self.result_type)
        if fitted is MISFIT:
            raise InputError(
                f"the tool {self.name!r} is annotated to give {self.result_type}, but gave "
                f"{with_article(type(result).__name__)}",
                remedy="correct its return annotation, or what it returns",
                location=_defined_at(self.function),
            )
        return fitted


def _here() -> Location | None:
    """The line that calls, outside of programs: a run says itself at which of its lines something went wrong."""
    return None if in_program() else user_location()


def _line() -> int | None:
    location = user_location()
    return None if location is None else location.line


class _Declare(Protocol):
    """``@lmc.tool(…)``."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Tool[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(function: Callable[P, Coroutine[Any, Any, R]], /) -> Tool[P, R]: ...


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    effect: str = "writes",
    retries: int = 0,
    timeout: float | None = None,
    retry_on: type[Exception] | tuple[type[Exception], ...] | None = None,
    early: bool = False,
    key: bool = False,
) -> _Declare: ...


def tool(
    function: Any = None,
    /,
    *,
    effect: str = "writes",
    retries: int = 0,
    timeout: float | None = None,
    retry_on: Any = None,
    early: bool = False,
    key: bool = False,
) -> Any:
    """Declare a function that jitted functions may call: ``@lmc.tool`` or ``@lmc.tool(effect="reads", retries=2)``.

    The function may be async: a program calls it like any other and gets its result; all async tools of a process run
    in one event loop, and none takes a thread. Tools run beside generations and each other, unless one needs
    the other's result: those that read come after what was written before them, those that write after all before
    them that reads, writes or may fail. So one that reads may have been called although an error ends the program
    before its line.

    Args:
        function: what is declared.
        effect: "pure" (the result depends on the arguments alone), "reads" or "writes".
        retries: how many times more a call that fails is made, after pauses that double and differ by chance (0). Each
            is a warning of the logger "lmc.tools", with the tool's name and the error.
        timeout: seconds that each attempt may take; what is late is a ``ToolTimeoutError``. An async function is
            cancelled then, a plain one can't be: it goes on in its thread, and what it gives is dropped.
        retry_on: the exceptions after which it is called again (a ``ToolTimeoutError`` is a ``TimeoutError``). Without
            it: any but those of a program that is wrong itself (``TypeError``, ``NameError``, lmc's own …). What
            writes is called again only where this says so, and a plain function that writes not after its timeout.
        early: whether it may be called for a way that the program then does not take. A compiled program starts such a
            call, in an arm of an ``if`` or in the first round of a loop, as soon as its arguments are known, beside
            the generation that decides; it never does so across anything that writes. If the program comes to the
            call, what it gave or raised is used, once; if not, an async call is cancelled, and a plain function runs
            to its end in its thread, where its result is dropped. For cheap tools that only read.
        key: whether a tool that writes takes an idempotency key: a program passes it as the keyword ``key``, a text
            that is the same when the row is run again. So a run that is resumed may call the tool again
            (``lmc run --resume``), where it stops the row otherwise.

    Raises ``CaptureError`` for an unknown effect, for options that make no sense, and for an async generator.
    """
    if effect not in _EFFECTS:
        raise CaptureError(
            f"unknown effect {effect!r}", remedy='use "pure", "reads" or "writes"', location=user_location()
        )
    found = _EFFECTS[effect]
    policy = _retries(found, retries, timeout, retry_on)
    _check_early(found, early)
    if type(key) is not bool or (key and found is not Effect.WRITES):
        raise bad(
            f"key is {described(key)}", 'give True with effect="writes": other tools are called again as they are'
        )
    if function is not None:
        return Tool(function, found, policy)
    return lambda given: Tool(given, found, policy, early=early, key=key)


def _check_early(effect: Effect, early: Any) -> None:
    if type(early) is not bool:
        raise bad(f"early is {described(early)}", "give True or False")
    if early and effect is Effect.WRITES:
        raise bad(
            "early is True, but a tool that writes is never called for a way that the program may not take",
            'declare what it does, if it changes nothing: effect="reads" or "pure"; or leave out early',
        )


def _retries(effect: Effect, retries: Any, timeout: Any, retry_on: Any) -> Retries | None:
    if type(retries) is not int or not 0 <= retries <= _MOST_RETRIES:
        raise bad(f"retries is {described(retries)}", f"give a whole number between 0 and {_MOST_RETRIES}")
    if timeout is not None and (type(timeout) not in (int, float) or not 0 < timeout < math.inf):
        raise bad(f"timeout is {described(timeout)}", "give a number of seconds greater than 0, or None")
    if retry_on is None:
        if retries and effect is Effect.WRITES:
            raise bad(
                f"retries is {retries}, but a tool that writes is called again only after errors that are named",
                "name those after which nothing was written: retry_on=(ConnectionError,); "
                'or declare what it does: effect="reads" or "pure"',
            )
        return Retries(retries, timeout) if retries or timeout is not None else None
    kinds = retry_on if isinstance(retry_on, tuple) else (retry_on,)
    if not kinds or not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise bad(f"retry_on is {described(retry_on)}", "give an exception class, or a tuple of them")
    if not retries:
        raise bad("retry_on says after which errors a tool is called again, but retries is 0", "give retries=… too")
    return Retries(retries, timeout, kinds)


def _check_key(function: Callable[..., Any], name: str) -> None:
    """Raise ``CaptureError`` for a function that can't be given a keyword ``key``."""
    parameters = inspect.signature(function).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    found = parameters.get("key")
    if not takes_any and (found is None or found.kind in (found.POSITIONAL_ONLY, found.VAR_POSITIONAL)):
        raise CaptureError(
            f"the tool {name!r} has key=True and no parameter for it",
            remedy="add a keyword: def save(text, *, key=)",
            location=_defined_at(function),
        )


def _return_annotation(function: Callable[..., Any]) -> Any:
    try:
        return typing.get_type_hints(function).get("return", inspect.Parameter.empty)
    except (NameError, TypeError, AttributeError, SyntaxError):  # an annotation that names what is not there (yet)
        return inspect.Parameter.empty


def _defined_at(function: Callable[..., Any]) -> Location | None:
    code = getattr(function, "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno)
