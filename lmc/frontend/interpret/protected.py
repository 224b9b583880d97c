"""``try``, ``with`` and ``raise``: blocks that handle exceptions and other exits.

In such a block an op that may raise is put in a ``cf.try`` (``Machine.emit``); its exception is an exit of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lmc.frontend.control.conditions import adopt, branch, divided, scope
from lmc.frontend.emit.operands import class_of, describe, host_call, pure
from lmc.frontend.emit.raising import raise_new, throw
from lmc.frontend.handles.roles import begin_role, end_role
from lmc.frontend.heap.cells import Cell
from lmc.frontend.heap.state import Content
from lmc.frontend.heap.values import (
    FALSE,
    NONE,
    TRUE,
    UNBOUND,
    Abstract,
    Block,
    Const,
    Managed,
    Poison,
    Raised,
    Ref,
    RoleTurn,
    Symbol,
    Tuple,
    Unbound,
    Union,
)
from lmc.frontend.interpret import comprehensions, names
from lmc.frontend.machine.exits import NORMAL, RAISE, Exit, Way
from lmc.frontend.machine.raises import Classes, may_take, takes_all
from lmc.frontend.python.operators import truth
from lmc.ir.builtins.statements import EXCEPTIONS
from lmc.ir.core import Effect
from lmc.ir.types import ANY, BOOL

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


@contextmanager
def looking_at_exceptions(machine: Machine, *, base: bool, classes: Classes | None = None) -> Generator[None]:
    """A block whose exceptions are looked at; ``base``: every one, not only instances of ``Exception``.

    ``classes``: no others than those are.
    """
    machine.protected += 1
    machine.taken.append(classes)
    machine.catches_base += base
    machine.try_marks.append(len(machine.turns))
    try:
        yield
    finally:
        machine.protected -= 1
        machine.catches_base -= base
        machine.try_marks.pop()
        machine.taken.pop()


def run_try(machine: Machine, node: ast.Try) -> None:
    """``try: … except …: … else: … finally: …``."""
    if node.finalbody:

        def final(pending: Sequence[tuple[str, Abstract]]) -> None:
            with machine.within(node, "finalbody", pending):
                machine.rules.execute(node.finalbody)

        finally_do(machine, lambda: _with_handlers(machine, node), final)
    else:
        _with_handlers(machine, node)


def _with_handlers(machine: Machine, node: ast.Try) -> None:
    if not node.handlers:
        with machine.within(node, "body"):
            machine.rules.execute(node.body)
        return
    base = any(_may_take_all(handler) for handler in node.handlers)
    classes = _named_classes(machine, node)

    def body() -> None:
        with looking_at_exceptions(machine, base=base, classes=classes), machine.within(node, "body"):
            machine.rules.execute(node.body)

    def handle(error: Abstract) -> None:
        _handle(machine, node, error, 0)

    def otherwise() -> None:
        with machine.within(node, "orelse"):
            machine.rules.execute(node.orelse)

    outcome = scope(machine, body)
    if RAISE not in outcome.ways:
        adopt(machine, outcome)
        otherwise()
        return
    machine.at(node)
    adopt(machine, divided(machine, outcome, RAISE, handle, otherwise))


def _named_classes(machine: Machine, node: ast.Try) -> Classes | None:
    """The classes that all handlers take, where these are plain names; None where a handler may take others."""
    found: list[type[BaseException]] = []
    for handler in node.handlers:
        kinds = handler.type
        parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        for part in parts:
            if not isinstance(part, ast.Name) or names.frame_of(machine, part.id) is not None:
                return None
            if part.id not in EXCEPTIONS or part.id in machine.activation.definition.globals:
                return None
            found.append(EXCEPTIONS[part.id])
    return tuple(found)


def _may_take_all(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler may take what is no ``Exception``."""
    if handler.type is None:
        return True
    named = {part.id for part in ast.walk(handler.type) if isinstance(part, ast.Name)}
    return not named <= {name for name, kind in EXCEPTIONS.items() if issubclass(kind, Exception)} or not named


def _handle(machine: Machine, node: ast.Try, error: Abstract, index: int) -> None:
    """Return what the handlers from ``index`` on do with an exception."""
    if isinstance(error, Union):
        first, second = error.first, error.second
        adopt(
            machine,
            branch(
                machine,
                error.flag,
                lambda: _handle(machine, node, first, index),
                lambda: _handle(machine, node, second, index),
            ),
        )
        return
    if not isinstance(error, Raised):
        raise machine.stop(*_cause(machine, error))
    if index == len(node.handlers):
        throw(machine, error)
    handler = node.handlers[index]
    machine.at(handler)
    flag = TRUE if handler.type is None else is_instance(machine, error, machine.rules.evaluate(handler.type))

    def take() -> None:
        _run_handler(machine, node, handler, error)

    def pass_on() -> None:
        _handle(machine, node, error, index + 1)

    if isinstance(flag, Const):
        (take if flag.value else pass_on)()
        return
    assert isinstance(flag, Symbol)
    adopt(machine, branch(machine, flag, take, pass_on))


def _cause(machine: Machine, error: Abstract) -> tuple[str, str]:
    if isinstance(error, Poison):
        return error.cause, error.remedy
    return f"{describe(machine, error)} is handled", "handle each exception in a `try` of its own"


def _run_handler(machine: Machine, node: ast.Try, handler: ast.ExceptHandler, error: Raised) -> None:
    def body() -> None:
        machine.handled.append(error)
        try:
            with looking_at_exceptions(machine, base=False), machine.within(node, "handlers", [("error", error)]):
                machine.rules.execute(handler.body)
        finally:
            machine.handled.pop()

    if handler.name is not None:
        names.store_name(machine, handler.name, error)
    outcome = scope(machine, body, lambda exit, way: _in_context(exit, way, error))
    if RAISE in outcome.ways and not machine.protected:
        outcome = divided(machine, outcome, RAISE, lambda raised: _throw(machine, raised), lambda: None)
    adopt(machine, outcome)
    if handler.name is not None:
        names.store_name(machine, handler.name, UNBOUND)


def _in_context(exit: Exit, way: Way, handled: Raised) -> tuple[Exit, Abstract | None]:
    """Return what an op of a handler raises has the exception that is handled as its context."""
    error = way.payload
    if exit == RAISE and isinstance(error, Raised) and error.context is None and error is not handled:
        return exit, replace(error, context=handled)
    return exit, error


def _throw(machine: Machine, error: Abstract) -> Abstract | None:
    if isinstance(error, Union):
        return machine.cases(error, lambda one: _throw(machine, one) or UNBOUND)
    if not isinstance(error, Raised):
        raise machine.stop(*_cause(machine, error))
    return throw(machine, error)


def is_instance(machine: Machine, error: Raised, kinds: Abstract) -> Abstract:
    """Return whether a handler of these classes takes an exception: a constant or a flag."""
    wanted = _classes(machine, kinds)
    if error.made is not None:
        return Const(isinstance(error.made, tuple(wanted)))
    if error.symbol is None and error.kind is not None:
        return Const(issubclass(error.kind, tuple(wanted)))
    assert isinstance(error.symbol, Symbol)
    if any(kind is BaseException for kind in wanted):
        return TRUE
    if error.kinds is not None and takes_all(tuple(wanted), error.kinds):
        return TRUE
    if error.kinds is not None and not may_take(tuple(wanted), error.kinds):
        return FALSE
    if all(EXCEPTIONS.get(kind.__name__) is kind for kind in wanted):
        return pure(machine, "is_exception", (error.symbol, *(Const(kind.__name__) for kind in wanted)), raises=False)
    return host_call(machine, isinstance, (error.symbol, Const(tuple(wanted))), effect=Effect.PURE, result_type=BOOL)


def _classes(machine: Machine, kinds: Abstract) -> list[type[BaseException]]:
    parts: list[Any] = []
    if isinstance(kinds, Tuple):
        for part in kinds.items:
            parts += _classes(machine, part)
        return parts
    if isinstance(kinds, Const):
        parts = list(kinds.value) if isinstance(kinds.value, tuple) else [kinds.value]
    if not parts or not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in parts):
        raise machine.unsupported(f"a handler of {describe(machine, kinds)}")
    return parts


# What runs whichever way a block is left


def finally_do(
    machine: Machine, body: Callable[[], None], final: Callable[[Sequence[tuple[str, Abstract]]], None]
) -> None:
    """Interpret ``body``, then ``final`` whichever exit it took, then take that exit.

    ``final`` is given which exit that is, what it returns and what it raises, for a continuation.
    """
    exits: list[Exit] = [NORMAL]

    def guarded() -> None:
        machine.guarded_returns += 1
        try:
            with looking_at_exceptions(machine, base=True):
                body()
        finally:
            machine.guarded_returns -= 1

    held = adopt(machine, scope(machine, guarded, lambda exit, way: _hold(exits, exit, way)))
    assert isinstance(held, Tuple)
    code, returned, raised = held.items
    kinds = Tuple(tuple(Const(exit.kind) for exit in exits))
    certain = exits[code.value].kind if isinstance(code, Const) else None
    pending = [
        ("returned", returned if certain in (None, "return") else UNBOUND),
        ("raised", raised if certain in (None, "raise") else UNBOUND),
    ]
    final([("left", code), ("exits", kinds), *pending])
    _take_exit(machine, exits, code, returned, raised)


def _hold(exits: list[Exit], exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
    """An exit that is kept as a value: its number, what it returns and what it raises."""
    if isinstance(way.payload, Tuple) and way.payload.kind is _Held:
        return NORMAL, way.payload
    if exit not in exits:
        exits.append(exit)
    value = way.payload or UNBOUND
    held = (value, UNBOUND) if exit.kind == "return" else (UNBOUND, value if exit == RAISE else UNBOUND)
    return NORMAL, Tuple((Const(exits.index(exit)), *held), _Held)


class _Held(tuple[Any, ...]):
    """Marks what ``finally_do`` keeps of an exit."""


def _take_exit(machine: Machine, exits: list[Exit], code: Abstract, returned: Abstract, raised: Abstract) -> None:
    """Take the exit that a block was left by, after what had to run in between."""
    for index, exit in enumerate(exits):
        if exit == NORMAL:
            continue

        def leave(exit: Exit = exit) -> None:
            if exit == RAISE:
                _throw(machine, _there(raised))
            elif exit.kind == "return":
                machine.rules.leave_with(exit, _there(returned))
            else:
                machine.leave_for(exit)

        if isinstance(code, Const):
            if code.value == index:
                leave()
            continue
        flag = pure(machine, "eq", (code, Const(index)), raises=False)
        adopt(machine, branch(machine, flag, leave, lambda: None))


def _there(value: Abstract) -> Abstract:
    """A value that is there on the way that asks for it."""
    if isinstance(value, Union) and isinstance(value.second, Unbound):
        return value.first
    return value


# with


def run_with(machine: Machine, node: ast.With) -> None:
    """``with manager as name: …``."""
    _enter(machine, node, ())


def _with_block(machine: Machine, block: Block, target: ast.expr | None, body: Callable[[], None]) -> None:
    """A block of another language, which is left at its end alone."""
    value, begun = block.enter(machine, block)
    if target is not None:
        machine.rules.assign(target, value)
    machine.guarded_returns += 1
    try:
        outcome = scope(machine, body)
    finally:
        machine.guarded_returns -= 1
    if list(outcome.ways) != [NORMAL]:
        raise machine.stop("a block of a state is left before its end", "leave it behind the block")
    adopt(machine, outcome)
    block.leave(machine, block, begun)


def _enter(machine: Machine, node: ast.With, entered: tuple[Abstract, ...]) -> None:
    index = len(entered)
    if index == len(node.items):
        with machine.within(node, "body", [("managers", Tuple(entered))]):
            machine.rules.execute(node.body)
        return
    item = node.items[index]
    manager = machine.rules.evaluate(item.context_expr)
    if isinstance(manager, RoleTurn):
        begin_role(machine, manager)
        if item.optional_vars is not None:
            machine.rules.assign(item.optional_vars, manager.handle)
        machine.turns.append(manager)
        try:
            _enter(machine, node, (*entered, manager))
        finally:
            machine.turns.pop()
        end_role(machine, manager)
        return

    def body() -> None:
        _enter(machine, node, (*entered, manager))

    if isinstance(manager, Block):
        _with_block(machine, manager, item.optional_vars, body)
        return

    def bind(value: Abstract) -> None:
        if item.optional_vars is not None:
            machine.rules.assign(item.optional_vars, value)

    if isinstance(manager, Managed):
        _with_generator(machine, manager, bind, body)
    elif machine.has_special("__enter__", manager) and machine.has_special("__exit__", manager):
        _with_instance(machine, manager, bind, body)
    else:
        raise machine.unsupported(f"`with` of {describe(machine, manager)}")


def _with_generator(
    machine: Machine, manager: Managed, bind: Callable[[Abstract], None], body: Callable[[], None]
) -> None:
    """The body stands for the ``yield``. How it was left is kept while the generator goes on, and done then."""
    assert isinstance(manager.generator, Ref)
    place = machine.allocate()
    exits: list[Exit] = [NORMAL]
    kept = [(place, name) for name in ("code", "returned")]
    machine.state.put(kept[0], Const(0))
    machine.state.put(kept[1], UNBOUND)
    runs = 0

    def each(value: Abstract) -> None:
        nonlocal runs
        runs += 1
        if runs > 1:
            raise machine.unsupported("`with` of a generator that yields at several places")

        def settle(exit: Exit, way: Way) -> tuple[Exit, Abstract | None]:
            if exit == RAISE or (isinstance(way.payload, Tuple) and way.payload.kind is _Held):
                return exit, way.payload
            if exit not in exits:
                exits.append(exit)
            returned = (way.payload or UNBOUND) if exit.kind == "return" else UNBOUND
            return NORMAL, Tuple((Const(exits.index(exit)), returned), _Held)

        def bound() -> None:
            bind(value)
            machine.guarded_returns += 1
            try:
                body()
            finally:
                machine.guarded_returns -= 1

        held = adopt(machine, scope(machine, bound, settle))
        assert isinstance(held, Tuple)
        for where, part in zip(kept, held.items, strict=True):
            machine.state.put(where, part)

    comprehensions.consume(machine, manager.generator, each, managed=True)
    code, returned = (machine.state.get(where) for where in kept)
    assert isinstance(code, Abstract)
    assert isinstance(returned, Abstract)
    _take_exit(machine, exits, code, returned, UNBOUND)


def _with_instance(
    machine: Machine, manager: Abstract, bind: Callable[[Abstract], None], body: Callable[[], None]
) -> None:
    """``__enter__`` and ``__exit__`` of an object of the program's."""
    value = machine.special("__enter__", manager)
    if value is None:
        raise machine.unsupported(f"`with` of {describe(machine, manager)}")
    exits: list[Exit] = [NORMAL]

    def guarded() -> None:
        machine.guarded_returns += 1
        try:
            with looking_at_exceptions(machine, base=True):
                bind(value)
                body()
        finally:
            machine.guarded_returns -= 1

    held = adopt(machine, scope(machine, guarded, lambda exit, way: _hold(exits, exit, way)))
    assert isinstance(held, Tuple)
    code, returned, raised = held.items

    def left() -> None:
        machine.special("__exit__", manager, *[Const(None)] * 3)
        _take_exit(machine, exits, code, returned, raised)

    def failed() -> None:
        error = _there(raised)
        if not isinstance(error, Raised) or (error.kind is None and error.made is None):
            raise machine.unsupported("`__exit__` that is given an exception of which only a run knows the class")
        kind = Const(error.kind or type(error.made))
        trace = Poison("the traceback of an exception", "use the exception itself")
        machine.handled.append(error)
        try:
            swallowed = machine.special("__exit__", manager, kind, error, trace)
        finally:
            machine.handled.pop()
        assert swallowed is not None
        flag = truth(machine, swallowed)
        if isinstance(flag, Const):
            if not flag.value:
                throw(machine, error)
            return
        assert isinstance(flag, Symbol)
        adopt(machine, branch(machine, flag, lambda: None, lambda: throw(machine, error)))

    if RAISE not in exits:
        left()
        return
    number = exits.index(RAISE)
    if isinstance(code, Const):
        (failed if code.value == number else left)()
        return
    flag = pure(machine, "eq", (code, Const(number)), raises=False)
    exits[number] = NORMAL  # taken here
    adopt(machine, branch(machine, flag, failed, left))


# raise


def as_exception(machine: Machine, value: Abstract) -> Raised:
    """Return what ``raise value`` raises."""
    if isinstance(value, Raised):
        return value
    if isinstance(value, Const) and isinstance(value.value, type) and issubclass(value.value, BaseException):
        made = machine.rules.call(value, [], {})
        if isinstance(made, Raised):
            return made
        value = made
    if isinstance(value, Symbol) and value.kind is not None and issubclass(value.kind, BaseException):
        return Raised(value.kind, (), value)
    kind = class_of(machine, value)
    if kind is None or issubclass(kind, BaseException):
        raise machine.unsupported(f"raising {describe(machine, value)}")
    return raise_new(machine, TypeError, "exceptions must derive from BaseException")


def as_cause(machine: Machine, value: Abstract) -> Abstract:
    """Return the cause that ``raise … from value`` gives: an exception, a new one of a class, or None."""
    if isinstance(value, Const) and value.value is None:
        return NONE
    if isinstance(value, Symbol) and value.kind is None and value.type == ANY:
        raise machine.unsupported(f"`from` with {describe(machine, value)}")
    kind = class_of(machine, value)
    is_class = isinstance(value, Const) and isinstance(value.value, type) and issubclass(value.value, BaseException)
    if not is_class and kind is not None and not issubclass(kind, BaseException):
        raise_new(machine, TypeError, "exception causes must derive from BaseException")
    return value if not is_class else as_exception(machine, value)


def is_held(machine: Machine, error: Raised) -> bool:
    """Return whether a name or an object of the program holds an exception."""
    value = error.symbol.ir if isinstance(error.symbol, Symbol) else None

    def is_it(part: Abstract) -> bool:
        symbol = part.symbol if isinstance(part, Raised) else part
        return part is error or (value is not None and isinstance(symbol, Symbol) and symbol.ir == value)

    return any(any(map(is_it, _parts(each))) for each in machine.state.all().values())


def _parts(content: Content) -> Iterator[Abstract]:
    """Return the values in a content, those in tuples too."""
    values = content.inner() if isinstance(content, Cell) else [content]
    while values:
        value = values.pop()
        yield value
        if isinstance(value, Tuple):
            values += value.items


def raise_again(machine: Machine) -> None:
    """``raise`` in a handler."""
    if not machine.handled:
        raise_new(machine, RuntimeError, "No active exception to reraise")
    throw(machine, machine.handled[-1])
