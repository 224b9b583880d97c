"""Capture: from a program and its arguments to a module (see lmc/frontend/README.md)."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

from lmc.frontend.breaks import Break, CaptureBreak
from lmc.frontend.continuation import stopping
from lmc.frontend.control import conditions
from lmc.frontend.control.conditions import scope
from lmc.frontend.emit.objects import Rebuilt, stored
from lmc.frontend.emit.operands import constant, host_call, operand
from lmc.frontend.handles import handles, programs
from lmc.frontend.handles.cores import core_of, metas, new_handle, variables
from lmc.frontend.handles.making import append_together
from lmc.frontend.handles.roles import end_role
from lmc.frontend.heap.cells import DictCell, GrownCell, InstanceCell, ListCell
from lmc.frontend.heap.expressions import parameter
from lmc.frontend.heap.reach import reached_from
from lmc.frontend.heap.values import (
    UNBOUND,
    Abstract,
    Const,
    Poison,
    Ref,
    Symbol,
    Tuple,
    Unbound,
    Union,
    is_literal,
)
from lmc.frontend.interpret import calls, comprehensions, expressions, names, statements
from lmc.frontend.language.binding import MethodOwner
from lmc.frontend.machine.budget import MAX_RESTARTS
from lmc.frontend.machine.exits import Left, Outcome
from lmc.frontend.machine.graph import Graph
from lmc.frontend.machine.machine import Activation, Machine, MadeError, Restart, Rules
from lmc.frontend.program.argument_specs import Arguments, Record
from lmc.frontend.program.arguments import Bound, shape_of, shape_of_annotations
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.guards import ReadGuards
from lmc.frontend.program.variants import Captured
from lmc.frontend.python import classes, foreign
from lmc.frontend.source.files import Unsupported
from lmc.frontend.source.functions import Definition, definition_of
from lmc.frontend.source.region_ids import with_region_ids
from lmc.frontend.tools.reachability import changeable
from lmc.ir.analysis.dependences import called_hosts
from lmc.ir.builder import Builder
from lmc.ir.builtins import structure
from lmc.ir.builtins.live import hosts_of
from lmc.ir.core import Block, Constraint, Effect, HostFunction, Value, walk
from lmc.ir.dialects.core_ops import BreakOp, ReturnOp, SamplingOp
from lmc.ir.errors import CaptureError, LmcError, Location, VerifyError
from lmc.ir.module import Function, Module
from lmc.ir.types import ANY, BOOL, SCALARS, ListType, Type
from lmc.ir.verify.verifier import verify


@dataclass(frozen=True)
class NotCaptured:
    """Why nothing of a program can be captured."""

    reason: Break
    error: BaseException | None = None


StopBefore = Callable[[ast.stmt | None], bool]
"""Decides if a capture stops before a statement that the interpreter comes to, or (None) before the program ends."""


def capture(function: JittedFunction, arguments: Bound | None, *, stop_before: StopBefore | None = None) -> Captured:
    """Capture ``function`` for ``arguments``, or without them for what its annotations promise.

    Runs no effect of the user's and never fails because of what the function does: where the interpreter can't go on
    there are breaks. A defect of the capture itself, such as a module that does not verify, is a warning, and the
    program runs as plain Python. Raises ``CaptureError`` only for a function that can't run at all.

    ``stop_before`` puts breaks where the caller wants them: tests hold the continuations from any place against plain
    Python.
    """
    function.refuse_async()
    shape = shape_of_annotations(function) if arguments is None else shape_of(function, arguments)
    try:
        found = _capture(function, arguments, shape, stop_before)
        if isinstance(found, Captured):
            verify(found.module)
    except Exception as error:
        if isinstance(error, LmcError) and not isinstance(error, VerifyError):
            raise
        found = _defect(function, error)
    if not isinstance(found, NotCaptured):
        return found
    reason = found.reason
    body = Builder(_leaves(shape))
    body.emit(BreakOp, location=reason.location, cause=reason.cause, remedy=reason.remedy, record=stopping.BEGIN)
    module = Module(function.name, (Function(function.name, body.block()),))
    refused = found.error if isinstance(found.error, LmcError) else None
    made = function.template or function
    reads = ReadGuards(function.receiver)
    owner = MethodOwner(function.receiver[0], exclusive=False) if function.receiver else None
    return Captured(made, module, {}, (reason,), shape, (), reads, owner, refused=refused)


def _defect(function: JittedFunction, error: Exception) -> NotCaptured:
    """Warn that the capture itself is wrong, and give nothing up but the graph."""
    location = (error.location if isinstance(error, LmcError) else None) or function.location or Location("<lmc>", 0)
    text = f"{type(error).__name__}: {error.cause if isinstance(error, LmcError) else error}"
    cause = f"lmc made no valid graph of {function.name!r} ({text})"
    remedy = "nothing has to change: this is a defect of lmc; please report it with the program"
    message = f"{cause}; it runs as plain Python. Please report this with the program"
    warnings.warn_explicit(message, RuntimeWarning, location.file, location.line)
    return NotCaptured(Break(location, cause, remedy))


def _leaves(shape: Arguments) -> tuple[Value, ...]:
    found: list[Value] = []

    def leaf(name: str, kind: Type) -> Value:
        found.append(Value(name, kind))
        return found[-1]

    shape.build(leaf)
    return tuple(found)


def _capture(
    function: JittedFunction, arguments: Bound | None, shape: Arguments, stop_before: StopBefore | None
) -> Captured | NotCaptured:
    inputs: dict[str, Any] = {}
    given = function.defaults if arguments is None else arguments.values
    for name, value in given.items():
        shape.specs[name].extract(value, inputs)
    written: dict[Any, Any] = {}
    parts = changeable(given)
    for _ in range(MAX_RESTARTS):
        with contextlib.suppress(Restart):
            graph = Graph(_leaves(shape), inputs, function.receiver, parts)
            made = _Capture(function, shape, graph, written)
            made.machine.ends.stop_before = stop_before
            return made.run()
    return NotCaptured(
        Break(function.location, "the program writes many places outside of it", "keep what it changes in one object")
    )


class _Capture:
    def __init__(self, function: JittedFunction, shape: Arguments, graph: Graph, written: dict[Any, Any]) -> None:
        self.function = function
        self.shape = shape
        self.graph = graph
        self.machine = Machine(graph, function.name, written)
        self.machine.rules = rules(self.machine, self.finish)

    def run(self) -> Captured | NotCaptured:
        graph = self.graph
        graph.location = self.function.location
        plain = self.function.definition
        if not isinstance(plain, FunctionType):
            return NotCaptured(Break(None, f"{plain!r} is no plain function", "decorate a function written with def"))
        try:
            definition = definition_of(plain)
        except Unsupported as reason:
            where = Location(plain.__code__.co_filename, reason.line or plain.__code__.co_firstlineno)
            return NotCaptured(
                Break(where, f"{plain.__name__} can't be captured: {reason.what}", "define it with def in a file")
            )
        graph.reads.add_attribute(plain, "__code__", plain.__code__)
        try:
            self._interpret(definition)
        except (CaptureBreak, MadeError, RecursionError) as stop:
            reason = statements.reason_of(self.machine, stop)
            self._check_form(reason)
            return NotCaptured(reason, stop.error if isinstance(stop, MadeError) else None)
        block = with_region_ids(graph.block(), graph.sites)
        breaks: list[Break] = []
        refused: list[BaseException] = []
        for op in walk((block,)):
            keys: list[Any] = [*op.results]
            if isinstance(op, BreakOp):
                breaks.append(Break(op.location, op.cause, op.remedy))
                self._check_form(breaks[-1])
                keys = breaks[-1:]
            refused += [error for key, error in self.machine.ends.refused.items() if key in keys]
        module = Module(
            self.function.name,
            (Function(self.function.name, block),),
            self._used_constraints(block),
            self._used_hosts(block),
        )
        return Captured(
            self.function.template or self.function,
            module,
            {host.name: graph.hosts.callables[host.name] for host in module.hosts},
            tuple(breaks),
            self.shape,
            tuple(graph.value_guards),
            graph.reads,
            self._owner(),
            graph.json_types.readers,
            next((error for error in refused if isinstance(error, LmcError)), None),
            writers=tuple(graph.writers),
        )

    def _check_form(self, reason: Break) -> None:
        """Raise ``CaptureError`` where the program would break in a form of control flow that the user spelt out."""
        form = self.machine.ends.forms.get(reason)
        if form is not None:
            eager = reason.remedy.startswith("nothing has to change")
            remedy = "write it as a plain loop or `if`, which may run eagerly" if eager else reason.remedy
            raise CaptureError(f"{form} can't be captured: {reason.cause}", remedy=remedy, location=reason.location)

    def _owner(self) -> MethodOwner | None:
        """The object whose method this is a capture of, and whether it holds for that alone."""
        receiver = self.function.receiver
        if not receiver:
            return None
        graph = self.graph
        used = graph.hosts.exclusive or graph.reads.exclusive or graph.receiver_used
        return MethodOwner(receiver[0], exclusive=used)

    def _used_constraints(self, block: Block) -> tuple[Constraint, ...]:
        """The constraints of generations that stayed: one that was given up may have no meaning."""
        used = {op.constraint for op in walk((block,)) if isinstance(op, SamplingOp)}
        return tuple(constraint for constraint in self.graph.constraints.values() if constraint.name in used)

    def _used_hosts(self, block: Block) -> tuple[HostFunction, ...]:
        """The host functions that calls and breaks name: others are left of interpretations that were given up."""
        used = called_hosts(block)
        for op in walk((block,)):
            if isinstance(op, BreakOp):
                used |= hosts_of(op.record, len(op.values))
        return tuple(host for host in self.graph.hosts.symbols.values() if host.name in used)

    def _interpret(self, definition: Definition) -> None:
        machine = self.machine
        if definition.sites is not None:
            self.graph.sites.add(definition.sites)
        if definition.scope.is_generator:
            raise machine.unsupported("a program that is a generator")
        self.state = machine.ends.root = new_handle(machine, self.function.name, language=self.function.language)
        programs.bring_language(machine, self.function)
        args, kwargs = self._arguments()
        receiver = [Const(value) for value in self.function.receiver]
        given = calls.bound_arguments(machine, definition, {}, [*receiver, self.state, *args], kwargs)
        frame = names.new_frame(machine, definition.scope.local)
        for name, value in given.items():
            machine.state.put((frame, name), value)
        target = machine.begin_target()
        first = next(iter(given), None)
        machine.activations.append(Activation(target, definition, (frame,), decides=True, first_argument=first))

        def end() -> None:
            self.graph.location = self.function.location
            self.finish(Const(None))
            raise Left(Outcome({}, machine.state, machine.watermark()))

        outcome = scope(machine, lambda: statements.execute(machine, definition.body, end))
        assert not outcome.ways, "a way out of the program has no target"

    def _arguments(self) -> tuple[list[Abstract], dict[str, Abstract]]:
        """Arguments as the function takes them."""

        def leaf(name: str, kind: Type) -> Any:
            return Symbol(Value(name, kind), f"the argument {name!r}", parameter(name))

        values = {name: self._argument(value, [name]) for name, value in self.shape.build(leaf).items()}
        args: list[Abstract] = []
        kwargs: dict[str, Abstract] = {}
        for name, found in self.function.signature.parameters.items():
            if name not in values:
                continue
            if found.kind is found.VAR_POSITIONAL:
                packed = values[name]
                args += packed.items if isinstance(packed, Tuple) else ()
            elif found.kind is found.VAR_KEYWORD:
                cell = self.machine.cell(values[name])
                assert isinstance(cell, DictCell)
                kwargs.update(zip(cell.keys, cell.values, strict=True))
            elif found.kind is found.KEYWORD_ONLY:
                kwargs[name] = values[name]
            else:
                args.append(values[name])
        return args, kwargs

    def _argument(self, value: Any, way: list[Any]) -> Abstract:
        """An argument, or a part of one: ``way`` is the parameter and what leads from there."""

        def parts(items: Mapping[Any, Any], kind: str = "item") -> tuple[Abstract, ...]:
            return tuple(self._argument(part, [*way, [kind, key]]) for key, part in items.items())

        kind = type(value)
        if isinstance(value, Symbol):
            if isinstance(value.type, ListType):
                return self._read_only(GrownCell(value), way)
            return value
        if kind is tuple:
            made = Tuple(parts(dict(enumerate(value))))
            self.machine.ends.origins[made] = way
            return made
        if kind is list:
            return self._read_only(ListCell(parts(dict(enumerate(value)))), way)
        if kind is dict and all(map(is_literal, value)):
            return self._read_only(DictCell(tuple(value), parts(value)), way)
        if kind is Record:
            made = self._read_only(InstanceCell(value.kind, tuple(value.fields)), way)
            for name, held in zip(value.fields, parts(value.fields, "field"), strict=True):
                self.machine.state.put((made.address, name), held)
            return made
        unseen = names.changes_unseen(value)
        if unseen is None:
            return Const(value)
        self.machine.ends.origins[unseen] = way
        return unseen

    def _read_only(self, cell: Any, way: list[Any]) -> Ref:
        made = self.machine.new(cell)
        self.machine.read_only.add(made.address)
        self.machine.ends.origins[made.address] = way
        return made

    def finish(self, value: Abstract) -> None:
        """``lm.return``."""
        machine = self.machine
        machine.check_stop(None)
        self.given: dict[int, Abstract | None] = {}
        leaves: list[Value] = []
        nesting = structure.canonical(self._structure(value, leaves, 0))
        found = variables(machine, self.state)
        if self.function.language is not None:
            found |= metas(machine, self.state)
        maybe = {name: held for name, held in found.items() if isinstance(held, Union) and held.second is UNBOUND}
        held = [maybe[name].first if name in maybe else part for name, part in found.items()]
        self.graph.location = self.function.location
        _address, core = core_of(machine, self.state)
        values = tuple(self._value(part) for part in held)
        self.graph.emit(
            ReturnOp,
            context=core.context.ir,
            values=tuple(leaves),
            structure=nesting,
            variables=values,
            variable_names=tuple(found),
            present=tuple(part.flag.ir for part in maybe.values()),
            present_names=tuple(maybe),
        )

    def _structure(self, value: Abstract, leaves: list[Value], depth: int) -> Any:
        machine = self.machine
        if depth > 60:
            raise self._no_result("it is nested too deep")
        cell = machine.cell(value)
        if isinstance(value, Ref) and value.address in machine.read_only:
            if not isinstance(cell, GrownCell):
                raise self._no_result("it is a container that the program did not make itself")
            raise self._no_result("it is an argument itself")
        if isinstance(value, Const) and type(value.value) in SCALARS:
            operand(machine, value)  # which ends the capture where it is too large
            return {"literal": value.value}
        if isinstance(value, Tuple) and value.kind is tuple:
            return {"tuple": [self._structure(part, leaves, depth + 1) for part in value.items]}
        if isinstance(cell, ListCell):
            return {"list": [self._structure(part, leaves, depth + 1) for part in cell.items]}
        if isinstance(cell, DictCell):
            pairs = zip(cell.keys, cell.values, strict=True)
            return {
                "dict": [
                    [self._structure(Const(key), leaves, depth + 1), self._structure(part, leaves, depth + 1)]
                    for key, part in pairs
                ]
            }
        if isinstance(value, Union):
            if not reached_from(machine.state, [value]).isdisjoint(machine.read_only):
                raise self._no_result("it holds a container that the program did not make itself")
            made = self._with_objects(value, False)  # once, whichever way leads to them
            value = machine.cases(made, lambda one: Symbol(self._value(one), "the result"))
        leaves.append(self._value(value))
        return {"leaf": len(leaves) - 1}

    def _value(self, value: Abstract) -> Value:
        value = self._with_objects(value, False)
        found = operand(self.machine, value).ir
        if isinstance(found, Value):
            return found

        return constant(self.machine, found).ir

    def _with_objects(self, value: Abstract, inside: bool) -> Abstract:
        """``value`` with objects of the run in the place of those that the program makes; ``inside`` such an object."""
        machine = self.machine
        cell = machine.cell(value)
        if isinstance(value, Tuple) and value.kind is tuple:
            return Tuple(tuple(self._with_objects(item, inside) for item in value.items))
        if isinstance(value, Union):
            return Union(value.flag, *(self._with_objects(one, inside) for one in (value.first, value.second)))
        if not isinstance(value, Ref) or not (inside or isinstance(cell, InstanceCell)):
            return value
        if value.address in self.given:
            found = self.given[value.address]
            if found is None:
                raise self._no_result("objects in it hold each other, or a list that something else holds as well")
            return found
        self.given[value.address] = None
        if value.address in machine.read_only:
            raise self._no_result("it holds a container that the program did not make itself")
        if isinstance(cell, ListCell):
            return machine.new(ListCell(tuple(self._with_objects(item, True) for item in cell.items)))
        if isinstance(cell, DictCell):
            values = tuple(self._with_objects(item, True) for item in cell.values)
            return machine.new(dataclasses.replace(cell, values=values))
        if not isinstance(cell, InstanceCell) or not classes.is_plain(cell.kind):
            return value
        parts = [machine.state.get((value.address, name)) for name in cell.names]
        held = [part for part in parts if isinstance(part, Abstract) and not isinstance(part, Union | Unbound | Poison)]
        if len(held) != len(parts):
            raise self._no_result("an attribute of an object in it may not be there")
        make = Rebuilt.of(machine, cell.kind, cell.names)
        made = host_call(machine, make, [self._with_objects(part, True) for part in held], effect=Effect.READS)
        self.given[value.address] = made
        return made

    def _no_result(self, cause: str) -> BaseException:
        return self.machine.stop(
            f"the program's result can't be captured: {cause}",
            "return texts, numbers, or new lists, tuples and dicts of them",
        )


def rules(machine: Machine, finish: Callable[[Abstract], None]) -> Rules:
    """Return how the parts of a program are interpreted."""

    def object_call(name: str, function: Callable[..., Any], args: Sequence[Abstract]) -> Abstract:
        del name
        return host_call(machine, function, args, effect=Effect.WRITES, result_type=ANY)

    def truth_of_object(value: Const) -> Abstract:

        return host_call(machine, bool, (value,), effect=Effect.WRITES, result_type=BOOL)

    return Rules(
        execute=partial(statements.execute, machine),
        assign=partial(statements.assign, machine),
        evaluate=partial(expressions.evaluate, machine),
        test=partial(expressions.test, machine),
        call=partial(calls.call, machine),
        stored=partial(stored, machine),
        finish=finish,
        append_together=partial(append_together, machine),
        special=partial(classes.special, machine),
        has_special=partial(classes.has_special, machine),
        truth_of_object=truth_of_object,
        contains_of=partial(handles.contains_of, machine),
        run_generator=partial(calls.run_generator, machine),
        collected=partial(comprehensions.collected, machine),
        consume=partial(comprehensions.consume, machine),
        next_item=partial(comprehensions.next_item, machine),
        for_each=partial(comprehensions.for_each, machine),
        leave_with=partial(calls.take_return, machine),
        end_turn=partial(end_role, machine),
        size_of=lambda value: calls.FUNCTIONS[len](machine, value),
        item_of=partial(handles.item_of, machine),
        set_item_of=partial(handles.set_item_of, machine),
        attribute_of=partial(handles.attribute_of, machine),
        object_call=object_call,
        outside=partial(names.outside, machine),
        is_changed=partial(foreign.is_changed, machine),
        check_kept=partial(calls.check_kept, machine),
        inline=partial(calls.inline_part, machine),
        choose=partial(conditions.choose, machine),
        tried=partial(conditions.tried, machine),
    )
