"""The host functions of a capture: symbols for what the graph calls back into the user's program."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache, partial
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import Any

from lmc.frontend.failures import too_deep
from lmc.frontend.language.binding import weakly
from lmc.frontend.language.running import HOST
from lmc.frontend.schemas.conversions import Conversion
from lmc.frontend.tools.tool_calls import wait_for
from lmc.frontend.tools.tools import Tool
from lmc.ir.builtins.builtins import PureBuiltin
from lmc.ir.core import Effect, HostFunction
from lmc.ir.engine.hosts import Answer

_NOTHING = object()


class HostTable:
    """Symbols by what they call. ``callables`` is what a run needs to resolve them.

    ``receiver``, the object that a captured method belongs to, is held weakly: who runs the graph holds it.
    ``exclusive`` says that the graph refers to it.
    """

    def __init__(self, receiver: tuple[Any, ...] = ()) -> None:
        self._receiver = receiver[0] if receiver else _NOTHING
        self.exclusive = False
        self.symbols: dict[str, HostFunction] = {}
        self.callables: dict[str, Callable[..., Any]] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self._held: list[Any] = []  # keeps what ids stand for alive

    def function(self, function: Any, effect: Effect) -> tuple[str, str]:
        """Symbol of a callable of the user's, and the plain name it goes by in ids."""
        inner = function.function if isinstance(function, Tool) else function
        name = plain_name(inner)
        key = (*_identity(function), effect)
        if key not in self._names:
            target, digest = _target(inner)
            run = _alone(self._kept(function), name)
            early = isinstance(function, Tool) and function.early
            self._add(key, name, target=target, digest=digest, effect=effect, run=run, early=early)
        return self._names[key], name

    def symbol_of_builtin(self, name: str) -> str | None:
        """The symbol of the builtin ``name``, where a call of it has to stay in order with the user's functions."""
        return self._names.get(("builtin", name, Effect.READS))

    def _kept(self, function: Any) -> Callable[[], Any]:
        """Return what gives ``function`` when it is called; of the receiver's methods it keeps the function alone."""
        method = function.function if isinstance(function, Tool) else function
        if not isinstance(method, MethodType) or method.__self__ is not self._receiver:
            self._held.append(function)
            return lambda: function
        self.exclusive = True
        receiver = weakly(method.__self__)
        if isinstance(function, Tool):
            template = function.template or function
            return lambda: template.bound_to(receiver())
        plain = method.__func__
        return lambda: MethodType(plain, receiver())

    def builtin(self, builtin: PureBuiltin, effect: Effect = Effect.READS) -> str:
        """Symbol of one of lmc's pure builtins, for calls that have to stay in order with the user's functions."""
        key = ("builtin", builtin.name, effect)
        if key not in self._names:
            target = f"lmc.ir.builtins:{builtin.name}"
            self._add(
                key,
                f"py.{builtin.name}",
                target=target,
                digest=_sha256(target),
                effect=effect,
                run=builtin.run,
            )
        return self._names[key]

    def constant(self, value: Any) -> str:
        """Symbol of a function that gives ``value``, an object that has no literal."""
        key = ("constant", id(value))
        if key not in self._names:
            give = lambda: value  # noqa: E731
            if value is self._receiver:
                self.exclusive = True
                give = weakly(value)
            else:
                self._held.append(value)
            kind = type(value)
            own = isinstance(value, type | FunctionType | BuiltinFunctionType)  # other objects may answer themselves
            named = value.__qualname__ if own else None
            target = f"{kind.__module__}:{kind.__qualname__}()" if named is None else f"{value.__module__}:{named}"
            self._add(key, "constant", target=target, digest=_sha256(target), effect=Effect.PURE, run=give)
        return self._names[key]

    def _add(
        self,
        key: tuple[Any, ...],
        wish: str,
        *,
        target: str,
        digest: str,
        effect: Effect,
        run: Callable[..., Any],
        early: bool = False,
    ) -> None:
        name = wish
        suffix = 0
        while name in self.symbols:
            suffix += 1
            name = f"{wish}_{suffix}"
        self._names[key] = name
        self.symbols[name] = HostFunction(name, target, digest, effect, early)
        self.callables[name] = run


class AsyncTool:
    """An async tool as the graph calls it; see ``lmc.ir.engine.hosts.AsyncHost``."""

    def __init__(self, give: Callable[[], Tool[..., Any]]) -> None:
        self._give = give

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it, and wait for what it gives."""
        return wait_for(partial(self._give().submit, *args, **kwargs))

    def submit(self, *args: Any, **kwargs: Any) -> Future[Answer]:
        """Begin a call."""
        return self._give().submit(*args, **kwargs)


def _alone(give: Callable[[], Any], name: str) -> Callable[..., Any]:
    """The function as the graph calls it: a program that it calls in turn has no run to be a part of."""
    function = give()
    if isinstance(function, Tool) and function.is_async:
        return AsyncTool(give)
    del function

    def run(*args: Any, **kwargs: Any) -> Any:
        token = HOST.set(name)
        try:
            return give()(*args, **kwargs)
        except RecursionError as error:
            raise too_deep(error) from None
        finally:
            HOST.reset(token)

    return run


def _identity(function: Any) -> tuple[Any, ...]:
    """Equal for equal callables: bound methods are made anew at each access."""
    if isinstance(function, MethodType):
        return ("method", id(function.__self__), id(function.__func__))
    if isinstance(function, Tool) and function.template is not None:
        return ("tool", id(function.receiver[0]), id(function.template))
    if isinstance(function, BuiltinMethodType):
        return ("builtin method", id(function.__self__), function.__name__)
    return ("function", id(function))


def plain_name(function: Any) -> str:
    """Return what ``function`` is called in symbols and ids."""
    name = getattr(function, "__name__", None)
    plain = re.sub(r"\W", "_", name if isinstance(name, str) else type(function).__name__, flags=re.ASCII)
    return "function" if not plain.strip("_") else plain


def _target(function: Any) -> tuple[str, str]:
    """``module:qualname`` and the SHA-256 of the source (of the name, where Python has no source)."""
    module = getattr(function, "__module__", None) or type(function).__module__
    qualname = getattr(function, "__qualname__", None) or f"{type(function).__qualname__}()"
    target = f"{module}:{qualname}"
    if isinstance(function, Conversion):
        return target, _sha256(function.source)
    code = getattr(inspect.unwrap(function), "__code__", None)
    source = None if code is None else _source_of(code)
    return target, _sha256(target if source is None else source)


@lru_cache(maxsize=512)
def _source_of(code: CodeType) -> str | None:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError, IndexError, SyntaxError):
        return None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
