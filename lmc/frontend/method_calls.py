"""Calls of Python's own functions and methods in transformed code, on plain and on symbolic values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, GeneratorType, MethodDescriptorType
from typing import TYPE_CHECKING, Any, cast

from lmc.frontend import disorder, sizes
from lmc.frontend.growing import BLIND_METHODS
from lmc.frontend.guards import mutable_parts
from lmc.frontend.harmless import VIEWS, is_deeply_harmless, is_harmless
from lmc.frontend.helpers import Helpers
from lmc.frontend.list_methods import is_for_a_run, list_method
from lmc.frontend.misuse import Handle
from lmc.frontend.proxy import Proxy, ProxyMethod, holds_proxy, symbol
from lmc.frontend.pure_calls import HANDLERS, MUTATORS, PURE_TYPES
from lmc.frontend.recorder import Recorder
from lmc.frontend.text_calls import check_format, text_method
from lmc.ir.types import ANY, TEXT, JsonType
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.operators import Operators

_COMPARING = frozenset({"index", "count", "remove", "sort"})


class MethodCalls(Helpers):
    """The part of ``Operators`` that calls what Python itself brings along."""

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
            self.check_key(recorder, function, kwargs["key"])
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

    def check_key(self, recorder: Recorder, function: Any, key: Any) -> None:
        """Break where ``key`` is the user's own code, unless that is transformed."""
        own = type(key) is FunctionType and id(key.__code__) in recorder.codes
        python = id(key) in HANDLERS or (type(key) is MethodDescriptorType and key.__objclass__ in PURE_TYPES)
        if key is not None and not own and not python:
            if holds_proxy(key):
                raise recorder.stop(
                    f"{function.__name__}() orders by {symbol(key).origin}, which is known only when the program runs"
                    if type(key) is Proxy
                    else f"{function.__name__}() orders by a function that is known only when the program runs",
                    "order by a lambda of the program, or in a function of your own outside of the program",
                )
            name = getattr(key, "__name__", type(key).__name__)
            raise recorder.stop(
                f"{function.__name__}() calls {name}(), which is not transformed",
                f"write a lambda around it: lambda x: {name}(x)",
            )

    def unfolded(
        self, recorder: Recorder, found: functools.partial[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The function of a partial one, with all its arguments."""
        if recorder.outside.own.get(id(found)) is not found:
            for name in ("args", "keywords"):
                value = getattr(found, name)
                recorder.reads.add_attribute(found, name, value)
                recorder.check_guarded(value)
                mutable_parts(value, recorder.foreign)
                self.check_unchanged(recorder, value)
        return found.func, (*found.args, *args), {**found.keywords, **kwargs}

    def partly(self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``functools.partial(...)``: it only keeps what it is given."""
        made = functools.partial(*args, **kwargs)
        recorder.outside.own[id(made)] = made
        return made

    def mapped(self, function: Any, *iterables: Iterable[Any]) -> Iterator[Any]:
        """``map(function, *iterables)``."""
        return (self.call(function, *values) for values in zip(*iterables, strict=False))

    def filtered(self, function: Any, items: Iterable[Any]) -> Iterator[Any]:
        """``filter(function, items)``."""
        return (item for item in items if self.truth(item if function is None else self.call(function, item)))

    def method_of_value(
        self, recorder: Recorder, method: ProxyMethod, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A method of a symbolic value."""
        kind = symbol(method.proxy).type
        if kind == TEXT:
            return text_method(self, recorder, method.proxy, method.name, args=args, kwargs=kwargs)
        if kind == ANY or isinstance(kind, JsonType):
            raise AssertionError("attributes of such values are host calls")
        if method.name in MUTATORS:
            raise self.mutation(recorder, method.proxy)
        raise recorder.stop(
            f"{symbol(method.proxy).origin} is {with_article(str(kind))}; its method {method.name!r} has no "
            "counterpart in the graph",
            "make a list of it first (list(x)), or do it in a tool",
        )

    def method_of_plain(
        self,
        recorder: Recorder,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        fresh: tuple[Any, ...] = (),
    ) -> Any:
        """A method of a value of one of Python's own classes."""
        owner = function.__self__
        if type(owner) is str and (holds_proxy(args) or holds_proxy(kwargs) or function.__name__ == "join"):
            return text_method(self, recorder, owner, function.__name__, args=args, kwargs=kwargs)
        if type(owner) is str:
            check_format(recorder, owner, function.__name__, args, kwargs)
        own: Any = owner
        own_list = type(own) is list and id(own) not in recorder.foreign
        if own_list and is_for_a_run(recorder, own, function.__name__, args, kwargs):
            if kwargs.get("key") is not None:
                self.check_key(recorder, function, kwargs["key"])
            return list_method(cast("Operators", self), recorder, own, function.__name__, *args, **kwargs)
        if function.__name__ in MUTATORS and type(owner) in (list, dict, set):
            if id(owner) in recorder.foreign:
                return self.change_outside(recorder, function, args, kwargs, fresh)
            if function.__name__ not in BLIND_METHODS:
                self.check_settled(recorder, owner)
            recorder.touch(owner)
            if function.__name__ in ("append", "insert", "setdefault"):
                return self._kept(recorder, function, args, kwargs)
            if function.__name__ == "extend" and len(args) == 1:
                return function(self.spread(args[0]))
        if id(owner) in recorder.outside.containers:
            return self.look_outside(recorder, function, args, kwargs)
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
            args = (recorder.concrete(self.hashed(args[0])), *args[1:])
        if function.__name__ == "setdefault" and args:
            self.hashed(args[0])
        return function(*args, **kwargs)
