"""Calls, by the callee: handles and programs, functions of the program, Python's own functions, tools.

Functions of the program's are inlined: their statements are interpreted with a frame of their own.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any, NoReturn

from lmc.frontend.breaks import CaptureBreak
from lmc.frontend.control.conditions import adopt, scope
from lmc.frontend.emit import objects
from lmc.frontend.emit.known import concrete
from lmc.frontend.emit.operands import (
    class_name,
    class_of,
    concat,
    describe,
    host_call,
    is_scalar,
    is_text,
    pure,
    type_of_value,
)
from lmc.frontend.emit.raising import raise_new
from lmc.frontend.handles import handles
from lmc.frontend.handles.appending import append
from lmc.frontend.handles.cores import is_handle, takes
from lmc.frontend.heap.cells import (
    CollectedCell,
    DictCell,
    GeneratorCell,
    GrownCell,
    InstanceCell,
    ListCell,
    ObjectCell,
    PoisonCell,
)
from lmc.frontend.heap.reach import current, reached_from
from lmc.frontend.heap.values import (
    NONE,
    Abstract,
    BoundMethod,
    Const,
    Function,
    Managed,
    Partial,
    Poison,
    Raised,
    Ref,
    RoleTurn,
    Super,
    Symbol,
    Tuple,
    Unbound,
    Union,
    View,
    parts_of,
)
from lmc.frontend.interpret import names
from lmc.frontend.machine.budget import MAX_CALLS, MAX_UNKNOWN_RECURSION
from lmc.frontend.machine.exits import NORMAL, Exit, Left, Outcome, Way
from lmc.frontend.machine.machine import Activation, Within
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.guards import MUTABLE_CONTAINERS
from lmc.frontend.python import attributes, classes, foreign, object_methods
from lmc.frontend.python.conversions import formatted, to_text
from lmc.frontend.python.functions import FUNCTIONS, REFUSED, TAKING_ITEMS
from lmc.frontend.python.items import put
from lmc.frontend.python.library import callbacks, table
from lmc.frontend.python.library import calls as library
from lmc.frontend.python.methods import CHANGING, call_method
from lmc.frontend.python.operators import SIGNS, binary, run_now
from lmc.frontend.source.exception_reads import looks_at_exceptions
from lmc.frontend.source.files import Unsupported
from lmc.frontend.source.functions import POLYFILLS, Definition, definition_of
from lmc.frontend.source.locations import is_own_file
from lmc.frontend.source.pure_types import is_harmless_type, is_standard_module
from lmc.frontend.tools.tools import Tool
from lmc.ir.builtins.builtins import lookup
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL, FLOAT, INT
from lmc.ir.wording import with_article

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


@contextlib.contextmanager
def _managed() -> Generator[None]:
    yield


_MANAGER_CODE: Any = getattr(_managed, "__code__")  # noqa: B009 - that of every function that is decorated so
_DECLARE = 'declare what it does (@lmc.tool(effect="reads") or "pure"), or pass a copy of it'
Args = Sequence[Abstract]
Kwargs = Mapping[str, Abstract]

__all__ = ["call", "formatted", "in_place", "leave_with", "super_call", "to_text"]


def call(machine: Machine, function: Abstract, args: Args, kwargs: Kwargs) -> Abstract:
    """``function(*args, **kwargs)``; the arguments are evaluated already."""
    direct = machine.take_direct()
    machine.step()
    if not isinstance(function, BoundMethod) or not isinstance(function.function, str):
        machine.direct = direct
    if isinstance(function, Union | Poison | Unbound):
        return machine.cases(function, lambda one: call(machine, one, args, kwargs))
    if isinstance(function, Partial):
        return call(machine, function.function, [*function.args, *args], {**function.kwargs, **kwargs})
    if isinstance(function, Function):
        return inline(machine, function.definition, function.frames, function.defaults, args=args, kwargs=kwargs)
    if isinstance(function, BoundMethod):
        if isinstance(function.function, str):
            return method(machine, function.receiver, function.function, args, kwargs)
        return call(machine, function.function, [function.receiver, *args], kwargs)
    if isinstance(function, Const):
        return _call_constant(machine, function, args, kwargs)
    own = _call_method_of(machine, function, args, kwargs)
    if own is not None:
        return own
    if isinstance(function, Symbol):
        _check_handed_over(machine, function.origin, [*args, *kwargs.values()], Effect.WRITES)
        origin = f"the result of {function.origin}"
        return host_call(machine, foreign.call_value, [function, *args], kwargs, effect=Effect.WRITES, origin=origin)
    raise machine.unsupported(f"a call of {describe(machine, function)}")


def _call_method_of(machine: Machine, function: Abstract, args: Args, kwargs: Kwargs) -> Abstract | None:
    kind = class_of(machine, function)
    held = None if kind is None else classes.lookup(kind, "__call__")
    if not isinstance(held, FunctionType):
        return None
    machine.graph.reads.add_attribute(kind, "__call__", held)
    return call(machine, Const(held), [function, *args], kwargs)


def method(machine: Machine, receiver: Abstract, name: str, args: Args, kwargs: Kwargs) -> Abstract:
    """A method of a handle, or of a class of Python's own."""
    if isinstance(receiver, Union | Poison | Unbound):
        return machine.cases(receiver, lambda one: method(machine, one, name, args, kwargs))
    found = handles.call_method(machine, receiver, name, args, kwargs)
    if found is None and isinstance(receiver, Const | Symbol):
        found = _method_outside(machine, receiver, name, args, kwargs)
    return found if found is not None else call_method(machine, receiver, name, args, kwargs)


def _method_outside(
    machine: Machine, receiver: Const | Symbol, name: str, args: Args, kwargs: Kwargs
) -> Abstract | None:
    """A method of a list, dict or set that stands outside the program; None for those of other values."""
    if isinstance(receiver, Const) and type(receiver.value) in MUTABLE_CONTAINERS:
        if name in CHANGING:
            foreign.note_change(machine, receiver.value)
            receiver = foreign.live(machine, receiver.value)
        else:
            found = foreign.current(machine, receiver)
            assert isinstance(found, Const | Symbol)
            receiver = found
    if not isinstance(receiver, Symbol) or receiver.kind not in MUTABLE_CONTAINERS or not receiver.foreign:
        return None
    if name in CHANGING:
        check_kept(machine, describe(machine, receiver), [*args, *kwargs.values()])
    return foreign.call_container(machine, receiver, name, args, kwargs)


def _call_constant(machine: Machine, function: Const, args: Args, kwargs: Kwargs) -> Abstract:
    held: Any = function.value
    direct = machine.take_direct()
    found = handles.call_function(machine, held, args, kwargs)
    if found is not None:
        return found
    if isinstance(held, Tool):
        return _call_tool(machine, held, args, kwargs)
    known = _call_known(machine, held, args, kwargs) if _is_hashable(held) else None
    if known is not None:
        return known
    if type(held) in callbacks.GETTERS and len(args) == 1:
        return callbacks.got(machine, held, args[0])
    managed = managed_function(held)
    if managed is not None:
        return Managed(call(machine, Const(managed), args, kwargs))
    forwarded = _forwarded(machine, held, args, kwargs)
    if forwarded is not None:
        machine.direct = direct
        return call(machine, *forwarded)
    if isinstance(held, type):
        return _call_class(machine, held, args, kwargs)
    if isinstance(held, MethodDescriptorType | WrapperDescriptorType) and args:
        if isinstance(machine.cell(args[0]), InstanceCell):
            return _call_of_object(machine, held, args, kwargs)
        return method(machine, args[0], held.__name__, args[1:], kwargs)
    if isinstance(held, FunctionType):
        machine.direct = direct
        return _call_function(machine, held, args, kwargs)
    if isinstance(held, BuiltinFunctionType):
        return _call_library(machine, held, args, kwargs)
    if isinstance(held, functools._lru_cache_wrapper):  # pyright: ignore[reportPrivateUsage]
        return _call_opaque(machine, held, args, kwargs)
    own = _call_method_of(machine, function, args, kwargs)
    if own is not None:
        return own
    return _call_no_function(machine, held)


def _forwarded(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> tuple[Const, Args, Kwargs] | None:
    """Return the call that a partial, a method of an object or an alias such as ``list[int]`` makes."""
    if isinstance(held, functools.partial):
        machine.graph.reads.add_attribute(held, "keywords", held.keywords)
        given = {name: Const(value) for name, value in held.keywords.items()}
        return Const(held.func), [*map(Const, held.args), *args], {**given, **kwargs}
    if isinstance(held, MethodType):
        return Const(held.__func__), [Const(held.__self__), *args], kwargs
    if isinstance(held, GenericAlias) and not getattr(held.__origin__, "__dictoffset__", True):  # no `__orig_class__`
        return Const(held.__origin__), args, kwargs
    return None


def _call_no_function(machine: Machine, held: Any) -> NoReturn:
    if not callable(held):
        raise_new(machine, TypeError, f"'{type(held).__name__}' object is not callable")
    raise _opaque(machine, held)


def _call_function(machine: Machine, held: FunctionType, args: Args, kwargs: Kwargs) -> Abstract:
    direct = machine.take_direct()
    generated = classes.call_generated(machine, held, args, kwargs)
    if generated is not None:
        return generated
    if held.__code__.co_filename == POLYFILLS:
        return _call_polyfill(machine, held, args, kwargs)
    if is_own_file(held.__code__.co_filename):
        machine.direct = direct
        return _call_user_function(machine, held, args, kwargs)
    return _call_library(machine, held, args, kwargs)


def _call_of_object(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> Abstract:
    """A method that every object has, called by its class: ``object.__init__(self)`` and the like."""
    if held is object.__init__ and len(args) == 1 and not kwargs:
        return NONE
    if held is object.__setattr__ and len(args) == 3 and not kwargs:
        attributes.put(machine, args[0], concrete(machine, args[1], "the name of an attribute is needed now"), args[2])
        return NONE
    raise machine.unsupported(f"`object.{held.__name__}`")


def _call_known(machine: Machine, held: Any, args: Args, kwargs: Kwargs) -> Abstract | None:
    """Call a function of Python's own that there is a polyfill, a rule or a row for; None for others."""
    polyfill = callbacks.chosen(machine, held, args)
    if polyfill is not None:
        return _call_polyfill(machine, polyfill, args, kwargs)
    combined = callbacks.combined(machine, held, args, kwargs)
    if combined is not None:
        return combined
    handler = FUNCTIONS.get(held)
    union = next((index for index, each in enumerate(args) if isinstance(each, Union)), None)
    if handler is not None and union is not None and held in TAKING_ITEMS:
        before, behind = args[:union], args[union + 1 :]
        return machine.cases(args[union], lambda one: call(machine, Const(held), [*before, one, *behind], kwargs))
    if handler is not None:
        return _fitting(machine, handler, held, args, kwargs)
    if held in callbacks.GETTERS:
        return Const(held(*[concrete(machine, each) for each in args]))
    if held in REFUSED:
        raise machine.stop(*REFUSED[held])
    row = table.find(held)
    return None if row is None else library.call(machine, held, row, args, kwargs)


def _call_polyfill(machine: Machine, polyfill: Any, args: Args, kwargs: Kwargs) -> Abstract:
    """Inline a function of Python's own that is written in Python here."""
    if isinstance(polyfill, type):
        return _call_class(machine, polyfill, args, kwargs)
    managed = managed_function(polyfill)
    if managed is not None:
        return Managed(_call_polyfill(machine, managed, args, kwargs))
    return inline_outside(machine, polyfill, definition_of(polyfill), args, kwargs)


def managed_function(held: Any) -> FunctionType | None:
    """The generator function that ``contextlib.contextmanager`` decorates; None where ``held`` is no such thing."""
    if not isinstance(held, FunctionType) or held.__code__ is not _MANAGER_CODE:
        return None
    inner = getattr(held, "__wrapped__", None)
    return inner if isinstance(inner, FunctionType) else None


def _is_hashable(held: Any) -> bool:
    return isinstance(held, FunctionType | BuiltinFunctionType | type)


def _fitting(machine: Machine, handler: Any, held: Any, args: Args, kwargs: Kwargs) -> Abstract:
    """Call a rule of Python's own; arguments that the function does not take raise what Python does."""
    if not takes(handler, len(args) + 1, tuple(kwargs)):
        plain = [machine.plain(value) for value in args]
        if all(each is not None for each in plain) and not kwargs:
            return run_now(machine, held, [each[0] for each in plain if each is not None], held.__name__)
        raise machine.unsupported(f"this call of {held.__name__}()")
    return handler(machine, *args, **kwargs)


def _call_tool(machine: Machine, tool: Tool[..., Any], args: Args, kwargs: Kwargs) -> Abstract:
    check_unlooked(machine, tool)
    _check_handed_over(machine, f"{tool.name}()", [*args, *kwargs.values()], tool.effect)
    found = host_call(machine, tool, args, kwargs, effect=tool.effect, result_type=tool.result_type)
    if not is_scalar(found):
        lent = reached_from(machine.state, [*args, *kwargs.values()])
        machine.ends.lent |= lent
        if any(not isinstance(machine.state.get(address), ObjectCell | PoisonCell) for address in lent):
            machine.ends.borrowed.add(found.ir)
    return found


def reaches_handle(machine: Machine, value: Abstract, seen: set[int] | None = None) -> bool:
    """Return whether a handle is in ``value``."""
    seen = set() if seen is None else seen
    if isinstance(value, Ref):
        if value.address in seen:
            return False
        seen.add(value.address)
        if is_handle(machine, value):
            return True
        cell = machine.cell(value)
        held: Sequence[Abstract] = ()
        if isinstance(cell, ListCell):
            held = cell.items
        elif isinstance(cell, DictCell):
            held = cell.values
        elif isinstance(cell, InstanceCell):
            found = [machine.state.get((value.address, name)) for name in cell.names]
            held = [each for each in found if isinstance(each, Abstract)]
        return any(reaches_handle(machine, each, seen) for each in held)
    if isinstance(value, Function):
        return any(reaches_handle(machine, each, seen) for each in _closed_over(machine, value)) or any(
            reaches_handle(machine, each, seen) for each in value.defaults.values()
        )
    return any(reaches_handle(machine, each, seen) for each in parts_of(value))


def _closed_over(machine: Machine, value: Function) -> list[Abstract]:

    names_used = {node.id for node in ast.walk(value.definition.node) if isinstance(node, ast.Name)}
    found: list[Abstract] = []
    for name in names_used - value.definition.scope.local:
        for frame in value.frames:
            held = machine.state.get((frame, name))
            if isinstance(held, Abstract) and not isinstance(held, Unbound):
                found.append(held)
                break
    return found


def check_kept(machine: Machine, taker: str, values: Sequence[Abstract]) -> None:
    """End the capture where ``taker`` would keep what the program still uses, or a handle."""
    _check_handed_over(machine, taker, values, Effect.WRITES, "store a text or a number, or a copy: list(x), dict(x)")


def _check_handed_over(
    machine: Machine, taker: str, values: Sequence[Abstract], effect: Effect, remedy: str = _DECLARE
) -> None:
    """End the capture where a function would get a handle, or could change or keep what the program still uses.

    Objects of the program's own classes become objects of the run, which the function and the program share.
    """
    values = [value for value in values if not objects.put_into_run(machine, value)]
    again = effect is Effect.WRITES and objects.shared(machine, values)
    for value in values:
        can_change = isinstance(value, Tuple) or machine.cell(value) is not None or isinstance(value, Symbol)
        kept = machine.can_be_stored(value, ()) and machine.may_be_kept(value)
        if effect is Effect.WRITES and can_change and (again or not kept):
            raise machine.stop(
                f"{taker} takes {with_article(class_name(machine, value))} of the program's own, and might change or "
                "keep it",
                remedy,
            )
        if reaches_handle(machine, value):
            raise machine.stop(
                f"a state is handed to {taker}, which the program does not contain",
                "pass its text (s.text()) or the value that is needed",
            )
        if isinstance(value, Function) or isinstance(machine.cell(value), InstanceCell):
            raise machine.stop(
                f"{describe(machine, value)} is handed to {taker}", "pass texts, numbers, lists and dicts of them"
            )


def _call_user_function(machine: Machine, function: FunctionType, args: Args, kwargs: Kwargs) -> Abstract:
    """A plain function of the user's: inlined where that is possible, else called in the run."""
    direct = machine.take_direct()
    values = [*args, *kwargs.values()]
    must = any(_stays(machine, value) for value in values)
    flags = function.__code__.co_flags
    if flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise machine.stop(
            f"{function.__name__}() is async, and is called as a plain function: its result is a coroutine",
            "declare it with @lmc.tool: the call then waits for its result",
        )
    try:
        definition = definition_of(function)
    except Unsupported as reason:
        if must:
            raise machine.stop(
                f"{function.__name__}() is given a state, and has no source: {reason.what}",
                "define it in a file",
            ) from None
        return _call_opaque(machine, function, args, kwargs)

    def inlined() -> Abstract:
        return inline_outside(machine, function, definition, args, kwargs, decides=False)

    if must or reaches_program(function):
        machine.direct = direct
        return inline_outside(machine, function, definition, args, kwargs)

    def opaque() -> Abstract:
        return _call_opaque(machine, function, args, kwargs)

    def called() -> Abstract:
        return machine.attempt(opaque, inlined, CaptureBreak)

    turns = [each for each in machine.activations if each.definition is definition and each.block is not None]
    if sum(each.block is not machine.graph.builder for each in turns) >= MAX_UNKNOWN_RECURSION:
        return called()
    return machine.attempt_small(inlined, called)


def _stays(machine: Machine, value: Abstract) -> bool:
    """Return whether no function of the run can take ``value``."""
    own = isinstance(value, Function | Super) or isinstance(machine.cell(value), InstanceCell)
    return own or reaches_handle(machine, value)


def reaches_program(function: FunctionType) -> bool:
    """Return whether a function may call a program: then it is a part of the one that calls it, or nothing."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name in (*code.co_names, *cells):
        try:
            held = cells[name].cell_contents if name in cells else function.__globals__.get(name)
        except ValueError:
            continue
        if isinstance(held, JittedFunction):
            return True
    return False


def inline_part(machine: Machine, function: FunctionType, args: Args, kwargs: Kwargs) -> Abstract:
    """Inline the function of a program that this one calls. Ends the capture where it has no source."""
    try:
        definition = definition_of(function)
    except Unsupported as reason:
        raise machine.stop(f"{function.__name__}() can't be captured: {reason.what}", "define it in a file") from None
    return inline_outside(machine, function, definition, args, kwargs)


def inline_outside(
    machine: Machine,
    function: FunctionType,
    definition: Definition,
    args: Args,
    kwargs: Kwargs,
    *,
    decides: bool = True,
) -> Abstract:
    """Inline a function that exists outside the program; its code and defaults are guarded.

    ``decides``: conditions on arguments of the program are decided in it, where they are in its caller.
    """
    reads = machine.graph.reads
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        reads.add_attribute(function, name, getattr(function, name))
    defaults: dict[str, Abstract] = {}
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    given = function.__defaults__ or ()
    for name, value in zip(positional[len(positional) - len(given) :], given, strict=True):
        defaults[name] = names.outside(machine, value, f"the default of {name!r}")
    for name, value in (function.__kwdefaults__ or {}).items():
        defaults[name] = names.outside(machine, value, f"the default of {name!r}")
    return inline(machine, definition, (), defaults, args=args, kwargs=kwargs, decides=decides)


def check_unlooked(machine: Machine, function: Any) -> None:
    """End the capture where ``function`` may ask for the exception that is handled: the graph handles none."""
    if machine.handled and looks_at_exceptions(function):
        raise machine.stop(
            f"{getattr(function, '__name__', 'a function')}() may ask for the exception that is handled here",
            "pass it the exception, or its text",
        )


def _call_opaque(machine: Machine, function: Any, args: Args, kwargs: Kwargs) -> Abstract:
    """Call what is not known to do nothing: in the run, in order."""
    check_unlooked(machine, function)
    name = getattr(function, "__name__", type(function).__name__)
    _check_handed_over(machine, f"{name}()", [*args, *kwargs.values()], Effect.WRITES)
    return host_call(machine, function, args, kwargs, effect=Effect.WRITES, result_type=ANY)


def _call_library(machine: Machine, function: Any, args: Args, kwargs: Kwargs) -> Abstract:
    """A function of an installed package or of Python itself that no rule is there for."""
    owner = getattr(function, "__self__", None)
    if isinstance(function, BuiltinFunctionType) and owner is not None and not inspect.ismodule(owner):
        return method(machine, Const(owner), function.__name__, args, kwargs)
    if is_standard_module(function.__module__ or "builtins"):
        raise _opaque(machine, function)
    return _call_opaque(machine, function, args, kwargs)


def _opaque(machine: Machine, held: Any) -> BaseException:
    name = getattr(held, "__name__", type(held).__name__)
    return machine.stop(
        f"what {name}() does is not known to the capture", "call it in a tool: a function of your own with @lmc.tool"
    )


def _call_class(machine: Machine, kind: type, args: Args, kwargs: Kwargs) -> Abstract:
    if issubclass(kind, BaseException):
        return _new_exception(machine, kind, args, kwargs)
    made = classes.construct(machine, kind, args, kwargs)
    if made is not None:
        return made
    found = _call_opaque(machine, kind, args, kwargs)
    if isinstance(found, Symbol) and classes.makes_its_own(kind):
        return dataclasses.replace(found, kind=kind)
    return found


def _new_exception(machine: Machine, kind: type[BaseException], args: Args, kwargs: Kwargs) -> Raised:
    """An exception that the program makes; code of the user's that takes part in it runs here, in the run."""
    own = [base for base in kind.__mro__ if base.__module__ != "builtins"]
    plain = not any(name in vars(base) for base in own for name in ("__init__", "__new__"))
    if type(kind) is not type:
        raise machine.unsupported(f"an exception of the class {kind.__name__}")
    if plain and not kwargs:
        return Raised(kind, tuple(args))
    _check_handed_over(machine, f"{kind.__name__}()", [*args, *kwargs.values()], Effect.WRITES)
    made = host_call(
        machine, kind, args, kwargs, effect=Effect.WRITES, result_type=ANY, origin=with_article(kind.__name__)
    )
    return Raised(kind, (), Symbol(made.ir, made.origin, kind=kind, foreign=True))


# Inlining


def inline(
    machine: Machine,
    definition: Definition,
    frames: tuple[int, ...],
    defaults: Mapping[str, Abstract],
    *,
    args: Args,
    kwargs: Kwargs,
    decides: bool = True,
) -> Abstract:
    """Interpret the body of a function as a part of the program."""
    direct = machine.take_direct()
    if len(machine.activations) > MAX_CALLS:
        raise machine.stop(
            f"{definition.name}() is called more than {MAX_CALLS} levels deep", "write a loop, or bound the depth"
        )
    given = bound_arguments(machine, definition, defaults, args, kwargs)
    if definition.scope.is_generator:
        return machine.new(GeneratorCell(definition, frames, tuple(given.items())))
    return _inlined(machine, definition, frames, given, decides=decides, direct=direct)


def run_generator(
    machine: Machine, cell: GeneratorCell, each: Callable[[Abstract], None], *, managed: bool = False
) -> None:
    """Interpret a generator function; ``each`` takes what it yields. ``managed``: its exceptions are those of both."""
    assert isinstance(cell.definition, Definition)
    caller = machine.activation

    def consumed(item: Abstract) -> None:
        """Back in the frame of the consumer, for one item."""
        if not managed and any(map(_sees_exits, machine.activation.within)):
            raise machine.stop(
                f"{machine.activation.definition.name}() yields inside a `try` or `with` that sees how a block is left",
                "yield outside of it, or make a list",
            )
        machine.activations.append(caller)
        try:
            each(item)
        finally:
            machine.activations.pop()

    _inlined(machine, cell.definition, cell.frames, dict(cell.given), consumed)


def _sees_exits(within: Within) -> bool:
    """Return whether a construct would take an exit of the consumer, which is interpreted in it, for one of its own."""
    node = within.node
    if isinstance(node, ast.With):
        return not all(isinstance(each, RoleTurn) for _, managers in within.given for each in parts_of(managers))
    if not isinstance(node, ast.Try):
        return False
    leaves = any(isinstance(part, ast.Return | ast.Break | ast.Continue) for part in _parts(node.finalbody))
    return leaves or within.block == "handlers" or (within.block == "body" and bool(node.handlers))


def _parts(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    return [part for node in nodes for part in ast.walk(node)]


def _inlined(
    machine: Machine,
    definition: Definition,
    frames: tuple[int, ...],
    given: Mapping[str, Abstract],
    on_yield: Callable[[Abstract], None] | None = None,
    *,
    decides: bool = True,
    direct: ast.expr | None = None,
) -> Abstract:
    decides = decides and machine.activation.decides
    location = machine.graph.location
    number = machine.begin_target()
    exit = Exit("return", number)

    def body() -> Abstract:
        frame = names.new_frame(machine, definition.scope.local)
        for name, value in given.items():
            machine.state.put((frame, name), value)
        first = next(iter(given), None)
        activation = Activation(
            number, definition, (frame, *frames), decides, call=direct, first_argument=first, on_yield=on_yield
        )
        machine.activations.append(activation)
        if definition.sites is not None:
            machine.graph.sites.add(definition.sites)
        try:
            if not definition.body:
                return machine.rules.evaluate(definition.node.body)
            machine.rules.execute(definition.body)
            return NONE
        finally:
            machine.activations.pop()

    def settle(found: Exit, way: Way) -> tuple[Exit, Abstract | None]:
        return (NORMAL, way.payload) if found == exit else (found, way.payload)

    value = adopt(machine, scope(machine, body, settle))
    machine.graph.location = location
    assert value is not None
    return value


def bound_arguments(
    machine: Machine, definition: Definition, defaults: Mapping[str, Abstract], args: Args, kwargs: Kwargs
) -> dict[str, Abstract]:
    """Parameters with what they are bound to; raises ``TypeError`` in the program as Python does."""
    signature = definition.signature(defaults)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        raise machine.stop(
            f"the arguments do not fit {definition.name}({ast.unparse(definition.arguments)})",
            "give it the arguments that it takes",
        ) from None
    found: dict[str, Abstract] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            found[name] = Tuple(bound.arguments.get(name, ()))
        elif parameter.kind is parameter.VAR_KEYWORD:
            value = bound.arguments.get(name, {})
            found[name] = machine.new(DictCell(tuple(value), tuple(value.values())))
        else:
            found[name] = bound.arguments[name] if name in bound.arguments else defaults[name]
    _note_receiver(machine, definition, found)
    return found


def _note_receiver(machine: Machine, definition: Definition, given: Mapping[str, Abstract]) -> None:
    """Note where the object of the captured method is given to a function that uses more than its attributes."""
    for held in machine.graph.receiver:
        names = [name for name, value in given.items() if isinstance(value, Const) and value.value is held]
        if names and (names != [next(iter(given))] or not definition.only_reads_first):
            machine.graph.receiver_used = True


def leave_with(machine: Machine, value: Abstract) -> None:
    """``return value``."""
    take_return(machine, Exit("return", machine.activation.number), value)


def take_return(machine: Machine, exit: Exit, value: Abstract) -> None:
    """Leave the call that ``exit`` names; that of the program itself ends it at once where nothing looks at that."""
    if exit.target == machine.activations[0].number and not machine.guarded_returns:
        machine.close_turns(0)
        machine.rules.finish(value)
        raise Left(Outcome({}, machine.state, machine.watermark()))
    machine.leave_for(exit, value)


def in_place(machine: Machine, name: str, old: Abstract, value: Abstract) -> Abstract:
    """Return what ``old <name>= value`` leaves under its name."""
    old = current(machine.state, old)
    if isinstance(old, Union | Poison | Unbound):
        return machine.cases(old, lambda one: in_place(machine, name, one, value))
    if name == "add":
        if is_handle(machine, old):
            append(machine, old, value)
            return old
        cell = machine.cell(old)
        if isinstance(cell, ListCell | GrownCell | CollectedCell):
            method(machine, old, "extend", [value], {})
            return old
        if is_text(machine, old) and is_text(machine, value):
            return concat(machine, (old, value))
    if name == "or_" and isinstance(machine.cell(old), DictCell):
        method(machine, old, "update", [value], {})
        return old
    if isinstance(machine.cell(old), ListCell | GrownCell) and name == "mul":
        made = machine.cell(binary(machine, name, old, value))
        if made is None:
            raise machine.unsupported("this change of a list")
        put(machine, old, made)
        return old
    if isinstance(old, Ref) and class_of(machine, old) is set and name in _SET_UPDATES:
        return _update_set(machine, name, old, value)
    if objects.is_object(machine, old) and name in objects.IN_PLACE:
        return objects.in_place(machine, name, old, object_methods.taken(machine, value))
    own = machine.special(f"__i{name.rstrip('_')}__", old, value)
    if own is not None:
        return machine.cases(
            own, lambda one: binary(machine, name, old, value) if classes.is_not_implemented(one) else one
        )
    if isinstance(old, Const | Symbol) and _may_change_in_place(machine, old):
        if isinstance(old, Const):
            foreign.note_change(machine, old.value)
        check_kept(machine, describe(machine, old), [value])
        function = getattr(operator, f"i{name.rstrip('_')}")
        made = host_call(machine, function, [old, value], effect=Effect.WRITES, origin=describe(machine, old))
        return dataclasses.replace(made, kind=old.kind) if isinstance(old, Symbol) else made
    kinds = [type_of_value(machine, each) for each in (old, value)]
    plain = machine.plain(old) is not None and machine.plain(value) is not None
    numbers = all(kind in (INT, FLOAT, BOOL) for kind in kinds)
    texts = is_text(machine, old) and name in ("add", "mul", "mod")
    if plain or numbers or texts or not is_scalar(old) or lookup(f"i{name}") is None:
        return binary(machine, name, old, value)
    return pure(machine, f"i{name}", (old, value))  # its errors name the operator


_SET_UPDATES = {
    "or_": "update",
    "and_": "intersection_update",
    "sub": "difference_update",
    "xor": "symmetric_difference_update",
}


def _update_set(machine: Machine, name: str, old: Ref, value: Abstract) -> Abstract:
    """``old |= value`` and the like; of what is no set, a view of a dict alone can be taken: into a new set."""
    if isinstance(value, View):
        return binary(machine, name, old, value)
    kind = class_of(machine, value)
    if kind is None:
        objects.escape(machine, old)
        return objects.in_place(machine, name, old, object_methods.taken(machine, value))
    if kind not in (set, frozenset):
        sign = SIGNS[name]
        raise_new(machine, TypeError, f"unsupported operand type(s) for {sign}=: 'set' and '{kind.__name__}'")
    method(machine, old, _SET_UPDATES[name], [value], {})
    return old


def _may_change_in_place(machine: Machine, value: Const | Symbol) -> bool:
    """Return whether ``value += …`` may change an object that others see as well."""
    if isinstance(value, Const):
        kind = type(value.value)
        return kind in MUTABLE_CONTAINERS or (is_standard_module(kind.__module__) and not is_harmless_type(kind))
    kind = class_of(machine, value)
    return value.foreign and (kind is None or not is_harmless_type(kind)) and not is_scalar(value)


def super_call(machine: Machine, args: Args) -> Abstract:
    """``super()`` in a method, and ``super(Class, self)``."""
    start, receiver = args if len(args) == 2 else (None, None)
    if start is None and not args:
        activation = machine.activation
        cell = activation.definition.cells.get("__class__")
        first = activation.first_argument
        if cell is not None and first is not None:
            start, receiver = Const(cell.cell_contents), names.read_name(machine, first)
    if not isinstance(start, Const) or not isinstance(start.value, type) or receiver is None:
        raise machine.unsupported("this `super()`")
    return Super(start.value, receiver)
