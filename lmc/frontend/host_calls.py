"""Calls of the user's own functions: ordered host calls of the graph, run once per instance."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import html
import inspect
import json
import math
import operator
import re
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MemberDescriptorType, MethodType
from typing import Any, Generic

import pydantic

from lmc.frontend.emitting import SCALARS
from lmc.frontend.function import JittedFunction
from lmc.frontend.growing import element_type
from lmc.frontend.harmless import is_harmless_type, is_standard_module
from lmc.frontend.leaving import Leaving
from lmc.frontend.locations import is_own_file, is_user_file
from lmc.frontend.proxy import Grown, Proxy, holds_proxy, items_of, symbol
from lmc.frontend.recorder import Recorder
from lmc.frontend.rewrite import FRAME_FUNCTIONS
from lmc.frontend.tools import Tool
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, Type
from lmc.ir.wording import with_article

_PURE_FUNCTIONS = {
    id(function): function
    for function in (
        json.dumps,
        json.loads,
        *(getattr(re, name) for name in ("sub", "subn", "findall", "search", "match", "fullmatch", "split", "escape")),
        *(getattr(textwrap, name) for name in ("dedent", "indent", "fill", "wrap", "shorten")),
        html.escape,
        html.unescape,
        *(function for function in vars(math).values() if callable(function)),
    )
}
_SIGNS = {
    **{"iadd": "+=", "isub": "-=", "imul": "*=", "imatmul": "@=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%="},
    **{"ipow": "**=", "ilshift": "<<=", "irshift": ">>=", "iand": "&=", "ior": "|=", "ixor": "^="},
}
_IN_PLACE = frozenset(id(function) for name, function in vars(operator).items() if name.startswith("i"))
FRAME_FUNCTION_IDS = frozenset(id(getattr(builtins, name)) for name in FRAME_FUNCTIONS if hasattr(builtins, name))
_SCALAR_TYPES = (TEXT, INT, FLOAT, BOOL, NONE)
_MAX_REACH = 4
# What belongs to the thread that makes or asks for it, by standard module.
_THREAD_STATE = {
    "sqlite3": ("connect", "Connection"),
    "decimal": ("getcontext", "setcontext", "localcontext"),
    "threading": ("local", "current_thread", "get_ident", "get_native_id"),
    "contextvars": ("ContextVar", "copy_context"),
}
# What a class may define to take part in the making of its instances.
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__setattr__", "__getattribute__", "model_post_init"})
_PLAIN_FACTORIES: tuple[Any, ...] = (None, dataclasses.MISSING, list, dict, set, tuple)
_PLAIN_ANNOTATIONS: tuple[Any, ...] = (str, int, float, bool, None, type(None))


class HostCalls(Leaving):
    """The part of ``Operators`` that calls the user's functions."""

    def call_host(
        self, recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fresh: tuple[Any, ...]
    ) -> Any:
        """Record a call of ``function``. Breaks where its arguments can't be handed over faithfully."""
        self._check_function(recorder, function)
        label = _label(function, args)
        effect, result_type = self._declared(function, args, kwargs)
        # These only look at their arguments; anything else that writes might change or keep them.
        in_place = id(function) in _IN_PLACE
        careful = effect is Effect.WRITES and function is not print and not in_place
        # Its result may be, or hold, what it was given, and so change with it.
        kept = effect is not Effect.WRITES and result_type not in _SCALAR_TYPES and not _makes_anew(function)
        careful = careful or kept
        for index, value in enumerate((*args, *kwargs.values())):
            spec = fresh[index] if index < len(fresh) and len(fresh) == len(args) + len(kwargs) else None
            self.check_argument(recorder, function, value, spec, careful=careful, label=label)
        args = tuple(self._by_identity(recorder, value) for value in args)
        kwargs = {name: self._by_identity(recorder, value) for name, value in kwargs.items()}
        if effect is Effect.WRITES and (
            in_place or not (_is_standard(function) and _are_data((*args, *kwargs.values())))
        ):
            recorder.note_write(label, _declaring(function, label))
        kind = function if isinstance(function, type) and _only_holds_its_arguments(function) else None
        raises = None if kind is None else (TypeError,)
        made = recorder.host_call(
            function,
            self.path,
            args,
            kwargs,
            effect=effect,
            result_type=result_type,
            raises=raises,
            origin=f"the result of {label}",
        )
        if isinstance(function, type) and _only_holds_its_fields(function):
            recorder.instances[recorder.value_of(made)] = function
        if kind is not None:
            recorder.error_kinds[recorder.value_of(made)] = kind
        return made

    def call_value(
        self, recorder: Recorder, function: Proxy, args: tuple[Any, ...], kwargs: dict[str, Any], fresh: tuple[Any, ...]
    ) -> Any:
        """Record a call of something that is itself known only when the program runs."""
        return self.call_host(recorder, call_value, (function, *args), kwargs, (None, *fresh) if fresh else ())

    def _check_function(self, recorder: Recorder, function: Any) -> None:
        if id(function) in FRAME_FUNCTION_IDS:
            raise recorder.stop(f"{function.__name__}() looks at the running function itself", "do without it")
        if isinstance(function, MethodType) and isinstance(function.__self__, JittedFunction):
            raise recorder.stop(
                f"{function.__self__.name}.{function.__name__}() starts a run of its own",
                f"call the program itself, {function.__self__.name}(…), which makes it a part of this one",
            )
        owner = getattr(function, "__self__", None)
        problem = None if owner is None or inspect.ismodule(owner) else recorder.problem_with(owner)
        if problem is not None:
            raise recorder.stop(f"{function.__name__}() is a method of {problem}", "do without it, or do it in a tool")
        inner = function.function if isinstance(function, Tool) else function
        if inspect.iscoroutinefunction(inner) and inner is function:
            raise recorder.stop(f"{inner.__name__}() is async", "declare it, and it is waited for: @lmc.tool")
        called = getattr(inner, "__name__", "the function")
        name = _reached_program(inner)
        if name is not None and isinstance(inner, type):
            raise recorder.stop(
                f"{called}() makes an object that has, or calls, the program {name}()",
                "make the object before the program runs, and pass it as an argument",
            )
        if name is not None:
            raise recorder.stop(
                f"{called}() calls the program {name}(), but is not transformed",
                "decorate it with @lmc.jit too, or call the program here",
            )
        state = _reached_thread_state(inner) if inner is function else None
        if state is not None:
            raise recorder.stop(
                f"{called}() uses state of its thread ({state}), and the next function may run in another thread",
                "do all that needs it in one function, and declare that (@lmc.tool)",
            )

    def _declared(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Effect, Type]:
        if isinstance(function, Tool):
            return function.effect, function.result_type
        if id(function) in _PURE_FUNCTIONS and _are_data((*args, *kwargs.values())):
            return Effect.PURE, ANY
        if isinstance(function, type) and (_only_holds_its_fields(function) or _only_holds_its_arguments(function)):
            return Effect.PURE, ANY
        return Effect.WRITES, ANY

    def check_argument(
        self, recorder: Recorder, function: Any, value: Any, spec: Any, *, careful: bool, label: str = ""
    ) -> None:
        """Break where ``value`` can't be handed to ``function`` faithfully; ``spec`` is its ``freshness``.

        ``label`` is what messages call the function.
        """
        kind = type(value)
        label = label or _label(function, ())
        if kind is Proxy or kind is Grown:
            found = symbol(items_of(value) if kind is Grown else value)
            plain = found.is_scalar or (kind is Grown and element_type([value]) in _SCALAR_TYPES)
            if careful and not found.volatile and not plain and function is not call_value:
                raise recorder.stop(
                    f"{label} takes {with_article(str(found.type))} ({found.origin}) that it might change or keep",
                    f"{_declaring(function, label)}, or pass a text of it",
                )
            return
        problem = recorder.problem_with(value)
        if problem is not None:
            raise recorder.stop(f"{label} takes {problem}", _instead_of(value, label))
        if kind not in (list, tuple, dict, set):
            return
        shared = kind is not tuple and id(value) in recorder.foreign and id(value) not in recorder.argument_parts
        if shared and not holds_proxy(value):
            return  # handed over itself
        if careful and kind is not tuple and spec is None:
            raise recorder.stop(
                f"{label} takes {with_article(kind.__name__)} of the program's own that it might change or keep",
                f"{_declaring(function, label)}, or write the {kind.__name__} right there",
            )
        parts = list(value.values()) if kind is dict else list(value)
        inner = (spec[1],) * len(parts) if spec and spec[0] == "*" else spec
        for index, part in enumerate(parts):
            part_spec = inner[index] if inner is not None and len(inner) == len(parts) else None
            self.check_argument(recorder, function, part, part_spec, careful=careful, label=label)

    def _by_identity(self, recorder: Recorder, value: Any) -> Any:
        """The user's own container is handed over itself, not a copy of it."""
        own = id(value) in recorder.foreign and id(value) not in recorder.argument_parts
        return recorder.constant(value) if own and not holds_proxy(value) else value


def _label(function: Any, args: tuple[Any, ...]) -> str:
    """The text by which messages call ``function``: no function of lmc's own, which no user has written."""
    if function is call_value and args and type(args[0]) is Proxy:
        return f"the call of {symbol(args[0]).origin}"
    name = getattr(function, "__name__", type(function).__name__)
    if id(function) in _IN_PLACE:
        return f"`{_SIGNS.get(name, name)}`"
    return f"{name}()"


def _declaring(function: Any, label: str) -> str:
    """The advice to declare ``function``, or where the user can't decorate it, a function around it."""
    if function is None:
        return "store a text or a number"
    if id(function) in _IN_PLACE:
        return "write it out: x = x + y for x += y"
    inner: Any = function.function if isinstance(function, Tool) else function
    inner = getattr(inner, "__func__", inner)
    if function is not call_value and isinstance(inner, FunctionType) and is_own_file(inner.__code__.co_filename):
        return 'declare it (@lmc.tool(effect="reads") or "pure") and that it returns a text'
    return f'do {label} in a function of your own, declared (@lmc.tool(effect="reads") or "pure") and returning a text'


def _instead_of(value: Any, label: str) -> str:
    """The advice for an argument that only the capture knows."""
    if isinstance(value, FunctionType | functools.partial):
        return f"do {label} in a function of your own outside of the program"
    if hasattr(type(value), "__next__"):
        return "pass a list of it: [*items]"
    return "pass texts and numbers, or take what it needs out of it before"


def _makes_anew(function: Any) -> bool:
    """Whether nothing that ``function`` is given is in its result."""
    return id(function) in _PURE_FUNCTIONS or function is call_value


def call_value(function: Any, *args: Any, **kwargs: Any) -> Any:
    """``function(*args, **kwargs)``, as a host function."""
    return function(*args, **kwargs)


def is_known_now(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether this is a call of a library function without effects on plain data, all of it known in the capture."""
    return id(function) in _PURE_FUNCTIONS and _are_data((*args, *kwargs.values())) and not holds_proxy([args, kwargs])


def _are_data(values: tuple[Any, ...]) -> bool:
    """Whether ``values`` are texts, numbers, what the program computes, or containers of those."""
    for value in values:
        kind = type(value)
        if kind in (list, tuple, set):
            if not _are_data(tuple(value)):
                return False
        elif kind is dict:
            if not _are_data((*value, *value.values())):
                return False
        elif kind is Grown:
            if symbol(items_of(value)).constant:
                return False
        elif kind not in SCALARS and (kind is not Proxy or symbol(value).constant):
            return False
    return True


def _is_standard(function: Any) -> bool:
    """Whether ``function`` is Python's own, or its standard library's."""
    if function is call_value:
        return False
    if isinstance(function, BuiltinMethodType | BuiltinFunctionType):
        owner = function.__self__
        return inspect.ismodule(owner) or owner is None or is_harmless_type(type(owner))
    if isinstance(function, MethodType) and not is_harmless_type(type(function.__self__)):
        return False
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and (is_standard_module(module) or module.startswith("lmc.frontend"))


def _only_holds_its_fields(kind: type) -> bool:
    """Whether making an instance of ``kind`` just stores its arguments: a dataclass or pydantic class without hooks."""
    if type(kind) not in (type, type(pydantic.BaseModel)):
        return False
    bases = [base for base in kind.__mro__ if base not in (object, pydantic.BaseModel, Generic)]
    if issubclass(kind, pydantic.BaseModel):
        return all(map(_is_plain_model, bases))
    if not all(map(_is_plain_dataclass, bases)):
        return False
    return all(_is_plain_factory(field.default_factory) for field in dataclasses.fields(kind))


def _only_holds_its_arguments(kind: type) -> bool:
    """Whether it is a class of exceptions whose instances are made by Python's own code alone."""
    own = [base for base in kind.__mro__ if base.__module__ != "builtins"]
    return issubclass(kind, BaseException) and type(kind) is type and not any(map(_MAKING.intersection, map(vars, own)))


def _is_plain_factory(factory: Any) -> bool:
    return any(factory is plain for plain in _PLAIN_FACTORIES)


def _is_plain_dataclass(base: type) -> bool:
    own = vars(base)
    parameters = own.get("__dataclass_params__")
    if parameters is None or not parameters.init or _MAKING.intersection(own) - _generated(parameters):
        return False
    # One written by hand (replaced later, or by another decorator) comes from a file; the generated one from none.
    if getattr(getattr(own["__init__"], "__code__", None), "co_filename", None) != "<string>":
        return False
    fields = own["__dataclass_fields__"].values()
    return not any(_has_setter(inspect.getattr_static(base, field.name, None)) for field in fields)


def _generated(parameters: Any) -> set[str]:
    return {"__init__", "__setattr__", "__delattr__"} if parameters.frozen else {"__init__"}


def _has_setter(found: Any) -> bool:
    return hasattr(type(found), "__set__") and not isinstance(found, MemberDescriptorType)


def _is_plain_model(base: Any) -> bool:
    own = vars(base)
    if not issubclass(base, pydantic.BaseModel) or _MAKING.intersection(own):
        return False
    found = own["__pydantic_decorators__"]
    if found.validators or found.field_validators or found.root_validators or found.model_validators:
        return False
    fields = base.model_fields.values()
    return all(
        _is_plain_factory(field.default_factory) and not field.metadata and field.annotation in _PLAIN_ANNOTATIONS
        for field in fields
    )


def _reached_program(function: Any) -> str | None:
    """The name of a jitted function that ``function`` refers to, itself or through what it refers to."""
    found = _referred(function, _MAX_REACH, set())
    return next((value.name for _, value in found if isinstance(value, JittedFunction)), None)


def _reached_thread_state(function: Any) -> str | None:
    """The name of state of a thread that ``function`` is, or that the user's own code behind it refers to."""
    loaded = {module: names for module, names in _THREAD_STATE.items() if module in sys.modules}
    bound = {id(getattr(sys.modules[module], name)) for module, names in loaded.items() for name in names}
    if id(function) in bound:
        return function.__name__
    if isinstance(getattr(function, "__self__", None), ContextVar):
        return "a ContextVar"
    for user, value in _referred(function, _MAX_REACH, set()):
        kind = value if isinstance(value, type) else type(value)
        if (id(value) in bound or issubclass(kind, threading.local | ContextVar)) and _is_users(user):
            return value.__name__ if id(value) in bound else with_article(kind.__name__)
    return None


def _referred(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[Any, Any]]:
    """What ``function``, or a class, refers to by name, and what that refers to, each after what refers to it."""
    function = _unwrapped(function)
    if depth == 0 or id(function) in seen or is_standard_module(getattr(function, "__module__", None) or "builtins"):
        return
    seen.add(id(function))
    if isinstance(function, FunctionType):
        held = _held(function)
    elif isinstance(function, type):
        own = [base for base in function.__mro__ if not is_standard_module(base.__module__)]
        held = [value for base in own for value in vars(base).values()]
    else:
        return
    for value in held:
        yield function, value
        yield from _referred(value, depth - 1, seen)


def _unwrapped(function: Any) -> Any:
    """The plain function that a method, a tool, a property, a cached or a partial function calls."""
    for _ in range(_MAX_REACH):
        if isinstance(function, MethodType | staticmethod | classmethod):
            function = function.__func__
        elif isinstance(function, Tool):
            function = function.function
        elif isinstance(function, property):
            function = function.fget
        elif isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, functools._lru_cache_wrapper):  # pyright: ignore[reportPrivateUsage]
            function = function.__wrapped__
        else:
            return function
    return function


def _held(function: FunctionType) -> list[Any]:
    """The values of the names of ``function``, and the parts of standard modules that it may name."""
    held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    names = {name for code in (function.__code__, *_codes(function.__code__)) for name in code.co_names}
    held += [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    modules = [value for value in held if inspect.ismodule(value) and value.__name__ in _THREAD_STATE]
    held += [getattr(module, name) for module in modules for name in sorted(names) if hasattr(module, name)]
    return held


def _is_users(holder: Any) -> bool:
    """Whether a function or class stands in a file of the user's own."""
    code = getattr(holder, "__code__", None)
    file = code.co_filename if code is not None else getattr(sys.modules.get(holder.__module__), "__file__", None)
    return file is not None and is_user_file(file) and "site-packages" not in file


def _codes(code: Any) -> list[Any]:
    inner = [entry for entry in code.co_consts if inspect.iscode(entry)]
    return inner + [deeper for entry in inner for deeper in _codes(entry)]


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True
