"""Statements: one function for each kind of node. What is not in the table ends the capture."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import resolve_name
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import Break, CaptureBreak, TooDeepBreak
from lmc.frontend.continuation import stopping
from lmc.frontend.control.conditions import adopt, branch
from lmc.frontend.emit.known import decided
from lmc.frontend.emit.operands import exception
from lmc.frontend.emit.raising import throw
from lmc.frontend.handles.misuse import refuse_deletion
from lmc.frontend.heap.cells import BranchesCell, ListCell
from lmc.frontend.heap.values import NONE, Abstract, Const, Raised, Symbol, same
from lmc.frontend.interpret import calls, comprehensions, loops, names, patterns, protected
from lmc.frontend.interpret.expressions import evaluate, make_function, test
from lmc.frontend.machine.exits import Exit, Left, Outcome
from lmc.frontend.machine.machine import MadeError, Saved
from lmc.frontend.python import attributes, foreign, items, iteration, operators
from lmc.ir.errors import LmcError

if TYPE_CHECKING:
    from lmc.frontend.machine.machine import Machine


def execute(machine: Machine, body: Sequence[ast.stmt], end: Callable[[], None] | None = None) -> None:
    """Run statements in order, and then ``end``. Raises ``Left`` where no run gets to their end.

    Where one can't be captured, the block ends before it, or before the last one that a break can stand before.
    """
    begun: list[Saved] = []
    try:
        for node in body:
            begun.append(machine.save())
            run_statement(machine, node)
        if end is not None:
            end()
    except (CaptureBreak, MadeError, RecursionError) as stop:
        if machine.attempts or (machine.ends.in_rounds and isinstance(stop, TooDeepBreak)):
            raise
        _end_before(machine, list(zip(body, begun, strict=False)), stop)
        raise
    finally:
        for saved in reversed(begun):
            machine.release(saved)


def reason_of(machine: Machine, stop: BaseException) -> Break:
    """Return what the user reads about the end of a capture."""
    if isinstance(stop, CaptureBreak):
        inner = machine.ends.not_counted
        if not isinstance(stop, TooDeepBreak) or inner is None:
            return stop.reason
        where = "" if inner.location is None else f" in line {inner.location.line}"
        cause = f"{stop.reason.cause}; as one loop its rounds can't be captured, since{where} {inner.cause}"
        return Break(stop.reason.location, cause, inner.remedy)
    if isinstance(stop, MadeError):
        error = stop.error
        own = error if isinstance(error, LmcError) else None
        said = str(error).partition("\n")[0] if own is None else own.cause
        remedy = (own and own.remedy) or "nothing has to change: the program raises this when it runs"
        return Break(stop.location, f"this raises {type(error).__name__}: {said}", remedy)
    return Break(
        machine.graph.location, "the program goes deeper than a capture can", "write a loop, or bound the depth"
    )


def _end_before(machine: Machine, begun: list[tuple[ast.stmt, Saved]], stop: BaseException) -> None:
    """End the innermost block with ``lm.break`` before the last statement where that can be, and raise ``Left``.

    Returns, or raises what goes outward, where it can't be before any of those that have ``begun``.
    """
    reason = reason_of(machine, stop)
    tried: Saved | None = None
    for node, saved in reversed(begun):
        ways = stopping.ways_to(machine, node)
        if ways is None:
            continue
        machine.restore(saved)
        machine.activation.statement, machine.activation.block = node, machine.graph.builder
        try:
            stopping.stop_before(machine, ways, reason)
        except (CaptureBreak, RecursionError):
            tried = saved
            continue
        machine.protected = saved.protected[0]
        if isinstance(stop, MadeError) and saved.stack == begun[-1][1].stack:
            machine.ends.refused[reason] = stop.error
        raise Left(Outcome({}, machine.state, machine.watermark())) from None
    if tried is not None:
        machine.restore(tried)
        raise CaptureBreak(reason) from None


def run_statement(machine: Machine, node: ast.stmt) -> None:
    """Run one statement. Raises ``CaptureBreak`` where it can't be captured."""
    machine.at(node)
    machine.check_stop(node)
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise machine.unsupported(f"`{type(node).__name__}`")
    machine.step()
    machine.activation.statement, machine.activation.block = node, machine.graph.builder
    mark = len(machine.watched)
    handler(machine, node)
    machine.unwatch(mark)


def _expression(machine: Machine, node: ast.Expr) -> None:
    evaluate(machine, node.value)


def _assign(machine: Machine, node: ast.Assign) -> None:
    value = evaluate(machine, node.value)
    for target in node.targets:
        assign(machine, target, value)


def assign(machine: Machine, target: ast.expr, value: Abstract) -> None:
    """``target = value``."""
    if isinstance(target, ast.Name):
        names.store_name(machine, target.id, value)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(machine, target.elts, value)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(machine, target.value)
        attributes.write(machine, owner, machine.activation.definition.mangled(target.attr), value)
    elif isinstance(target, ast.Subscript):
        owner = evaluate(machine, target.value)
        items.set_item(machine, owner, evaluate(machine, target.slice), value)
    else:
        raise machine.unsupported(f"an assignment to `{type(target).__name__}`")


def _unpack(machine: Machine, targets: list[ast.expr], value: Abstract) -> None:
    starred = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    found = iteration.unpacked(machine, value, len(targets), starred)
    for target, item in zip(targets, found, strict=True):
        assign(machine, target.value if isinstance(target, ast.Starred) else target, item)


def _annotated(machine: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        assign(machine, node.target, evaluate(machine, node.value))


def _augmented(machine: Machine, node: ast.AugAssign) -> None:
    name = operators.BINARY[type(node.op)]
    target = node.target
    if isinstance(target, ast.Name):
        old = names.read_name(machine, target.id)
        names.store_name(machine, target.id, calls.in_place(machine, name, old, evaluate(machine, node.value)))
    elif isinstance(target, ast.Attribute):
        owner = evaluate(machine, target.value)
        attribute = machine.activation.definition.mangled(target.attr)
        old = attributes.read(machine, owner, attribute)
        attributes.write(machine, owner, attribute, calls.in_place(machine, name, old, evaluate(machine, node.value)))
    else:
        owner = evaluate(machine, target.value)
        key = evaluate(machine, target.slice)
        old = items.get_item(machine, owner, key)
        new = calls.in_place(machine, name, old, evaluate(machine, node.value))
        if not (same(new, old) and isinstance(machine.cell(owner), BranchesCell | ListCell)):
            items.set_item(machine, owner, key, new)


def _if(machine: Machine, node: ast.If) -> None:
    flag = decided(machine, test(machine, node.test))
    machine.at(node)
    if isinstance(flag, Const):
        execute(machine, node.body if flag.value else node.orelse)
        return
    assert isinstance(flag, Symbol)

    def then() -> None:
        execute(machine, node.body)

    def otherwise() -> None:
        execute(machine, node.orelse)

    adopt(machine, branch(machine, flag, then, otherwise))


def _return(machine: Machine, node: ast.Return) -> None:
    value = NONE if node.value is None else evaluate(machine, node.value)
    machine.at(node)
    calls.leave_with(machine, value)


def _break(machine: Machine, _node: ast.Break) -> None:
    machine.leave_for(Exit("break", machine.activation.loops[-1]))


def _continue(machine: Machine, _node: ast.Continue) -> None:
    machine.leave_for(Exit("continue", machine.activation.loops[-1]))


def _pass(_machine: Machine, _node: ast.Pass) -> None:
    return


def _function(machine: Machine, node: ast.FunctionDef) -> None:
    decorators = [evaluate(machine, each) for each in node.decorator_list]
    made: Abstract = make_function(machine, node)
    for decorator in reversed(decorators):
        made = machine.rules.call(decorator, [made], {})
    names.store_name(machine, node.name, made)


def _import(machine: Machine, node: ast.Import) -> None:
    for each in node.names:
        module = foreign.loaded_module(machine, each.name)
        first = each.name.partition(".")[0]
        bound = module if each.asname is not None else foreign.loaded_module(machine, first)
        names.store_name(machine, each.asname or first, bound)


def _import_from(machine: Machine, node: ast.ImportFrom) -> None:
    package = machine.activation.definition.globals.get("__package__") or ""
    name = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
    module = foreign.loaded_module(machine, name)
    for each in node.names:
        there = attributes.presence(machine, module, each.name)
        if isinstance(there, Const) and not there.value:
            found: Abstract = foreign.loaded_module(machine, f"{name}.{each.name}")
        else:
            found = attributes.read(machine, module, each.name)
        names.store_name(machine, each.asname or each.name, found)


def _raise(machine: Machine, node: ast.Raise) -> None:
    if node.exc is None:
        protected.raise_again(machine)
        return
    error = protected.as_exception(machine, evaluate(machine, node.exc))
    cause: Abstract | None = None
    if node.cause is not None:
        cause = protected.as_cause(machine, evaluate(machine, node.cause))
        if cause is not NONE and protected.is_held(machine, error):
            raise machine.unsupported("`from` behind an exception that was made before, which other names may hold")
    machine.at(node)
    context: Abstract | None = None
    if machine.protected and isinstance(cause, Raised) and machine.handled and cause is machine.handled[-1]:
        if cause.symbol is None and cause.made is None:  # they stay one object until a run raises
            cause = replace(cause, symbol=exception(machine, cause))
        context = cause
    throw(machine, Raised(error.kind, error.args, error.symbol, error.made, cause, context, keywords=error.keywords))


def _assert(machine: Machine, node: ast.Assert) -> None:
    flag = decided(machine, test(machine, node.test))

    def fail() -> None:
        args = () if node.msg is None else (evaluate(machine, node.msg),)
        throw(machine, Raised(AssertionError, args))

    machine.at(node)
    if isinstance(flag, Const):
        if not flag.value:
            fail()
        return
    assert isinstance(flag, Symbol)
    adopt(machine, branch(machine, flag, lambda: None, fail))


def _delete(machine: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            names.delete_name(machine, target.id)
        elif isinstance(target, ast.Subscript):
            owner = evaluate(machine, target.value)
            key = evaluate(machine, target.slice)
            refuse_deletion(machine, owner, key)
            items.delete_item(machine, owner, key)
        elif isinstance(target, ast.Attribute):
            owner = evaluate(machine, target.value)
            attributes.delete(machine, owner, machine.activation.definition.mangled(target.attr))
        else:
            raise machine.unsupported(f"`del` of `{type(target).__name__}`")


def _declaration(_machine: Machine, _node: ast.Global | ast.Nonlocal) -> None:
    return


_HANDLERS: dict[type[ast.stmt], Callable[[Machine, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.If: _if,
    ast.For: loops.run_for,
    ast.While: loops.run_while,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Pass: _pass,
    ast.FunctionDef: _function,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _declaration,
    ast.Nonlocal: _declaration,
    ast.Match: patterns.run_match,
    ast.With: protected.run_with,
    ast.Try: protected.run_try,
    comprehensions.Innermost: comprehensions.execute_innermost,
}
