"""The module under construction: nested blocks, op by op, each with the line of the user's program."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MethodType
from typing import Any

from lmc.frontend.breaks import Break, CaptureBreak, TooDeepBreak
from lmc.frontend.heap.expressions import Expression, evaluate
from lmc.frontend.language.constraint_options import ConstraintSpec
from lmc.frontend.machine.budget import MAX_DEPTH, MAX_OPS
from lmc.frontend.program.guards import ReadGuards, ValueGuard
from lmc.frontend.schemas.conversions import JsonTypes
from lmc.frontend.source.sites import SiteTable
from lmc.frontend.tools.hosts import HostTable, plain_name
from lmc.frontend.tools.reachability import RECEIVER, reaches, reaches_hooks, thread_state
from lmc.ir.builder import Builder
from lmc.ir.core import Block, Constraint, Op, Value
from lmc.ir.dialects.core_ops import UnreachableOp
from lmc.ir.errors import Location
from lmc.ir.types import Type
from lmc.ir.wording import with_article

UNKNOWN: Any = object()
"""The value of an expression that can't be computed now."""


class Graph:
    """Appends ops to the innermost open block, and keeps what the module needs besides them.

    ``inputs`` are the arguments that are given, by parameter name; empty for a capture of annotations alone.
    ``changeable`` are the ids of the lists, dicts, sets and records in them, of which the graph holds copies.
    ``writers`` are objects from outside that calls of the graph may change, and the functions that may do it: none
    reaches these.
    """

    def __init__(
        self,
        parameters: Sequence[Value],
        inputs: Mapping[str, Any],
        receiver: tuple[Any, ...] = (),
        changeable: Collection[int] = (),
    ) -> None:
        self.receiver = receiver
        self._of_any_thread: list[Any] = []
        self.receiver_used = False
        """True if the captured method uses its object other than through attributes."""
        self.changeable = changeable
        self.writers: list[Any] = []
        self.root = Builder(parameters)
        self.stack = [self.root]
        self.inputs = inputs
        self.location: Location | None = None
        self.hosts = HostTable(receiver)
        self.constraints: dict[tuple[str, ...], Constraint] = {}
        self.json_types = JsonTypes()
        self.value_guards: list[ValueGuard] = []
        self.reads = ReadGuards(receiver)
        self.sites = SiteTable()
        self.op_count = 0
        self.hooked = False
        """True if operators or builtins on host objects may call special methods of user classes."""
        self._searched: list[Any] = []
        self._evaluated: dict[Expression, Any] = {}

    def emit(
        self, kind: type[Op], types: Sequence[Type] = (), *, names: Sequence[str | None] = (), **fields: Any
    ) -> tuple[Value, ...]:
        """Append an op; gives its results."""
        self.op_count += 1
        if self.op_count > MAX_OPS:
            raise self.stop(f"the program is longer than {MAX_OPS:,} operations", "bound its loops, or split it")
        return self.builder.emit(kind, types, names=names, location=self.location, **fields)

    def append(self, kind: type[Op], results: Sequence[Value], **fields: Any) -> None:
        """Append an op whose results have their names already."""
        self.builder.ops.append(kind(results=tuple(results), location=self.location, **fields))

    def stop(self, cause: str, remedy: str) -> CaptureBreak:
        """Return what ends the capture before the statement that is interpreted."""
        return CaptureBreak(Break(self.location, cause, remedy))

    def constant(self, value: Any) -> str:
        """The symbol of an object from outside. The graph holds for that object alone."""
        self.reads.hold_objects(value)
        return self.hosts.constant(value)

    def value(self, kind: Type, wish: str | None = None) -> Value:
        """A value of a name that is free."""
        return Value(self.builder.fresh_name(wish), kind)

    @property
    def builder(self) -> Builder:
        """The innermost open block."""
        return self.stack[-1]

    def open(self, builder: Builder) -> None:
        """``builder`` is the innermost block from here on."""
        if len(self.stack) >= MAX_DEPTH:
            cause = f"conditions and loops stand deeper than {MAX_DEPTH} in each other"
            raise TooDeepBreak(Break(self.location, cause, "move a part into a function"))
        self.stack.append(builder)

    def close(self) -> Builder:
        """The innermost block ends; gives it."""
        return self.stack.pop()

    @contextmanager
    def nested(self, parameters: Sequence[Value] = ()) -> Generator[Builder]:
        """A block in the innermost open one, which is the innermost until the context ends."""
        with self.at_end_of(self.builder.nested(parameters)) as builder:
            yield builder

    @contextmanager
    def at_end_of(self, builder: Builder) -> Generator[Builder]:
        """Append to ``builder``, a block that has no terminator yet."""
        depth = len(self.stack)
        self.open(builder)
        try:
            yield builder
        finally:
            del self.stack[depth:]

    def terminated(self) -> bool:
        """Return whether the innermost block has ended."""
        ops = self.builder.ops
        return bool(ops) and ops[-1].IS_TERMINATOR

    def end_unreachable(self) -> None:
        """End the innermost block, whose end no run reaches."""
        if not self.terminated():
            self.builder.emit(UnreachableOp, location=self.location)

    def block(self) -> Block:
        """The program's own block."""
        return self.root.block()

    def constraint(self, spec: ConstraintSpec | None) -> str | None:
        """The symbol of a constraint."""
        if spec is None:
            return None
        key = (spec.kind, spec.text, spec.whitespace)
        if key not in self.constraints:
            self.constraints[key] = spec.symbol(f"c{len(self.constraints)}")
        return self.constraints[key].name

    def known(self, expression: Expression | None) -> Any:
        """Return the value of an expression of the arguments alone; ``UNKNOWN`` if it can't be computed."""
        if expression is None or (not self.inputs and expression.operands):
            return UNKNOWN
        try:
            return evaluate(expression, self.inputs, self._evaluated)
        except Exception:  # it raises in the run as well; or an argument is not given
            return UNKNOWN

    def check_apart(self, value: Any) -> None:
        """End the capture where ``value``, of which the run gets hold, refers to a part of an argument."""
        if isinstance(value, MethodType) and self.receiver and value.__self__ is self.receiver[0]:
            self.check_apart(value.__self__)
            value = value.__func__
        root = RECEIVER if self.receiver and value is self.receiver[0] else value
        if any(root is known for known in self.writers):
            return
        if reaches([root], self.changeable, self.receiver):
            label = plain_name(value) + "()" if callable(value) else with_article(type(value).__name__)
            raise self.stop(
                f"{label} may change an argument of the program: it refers to the same list, dict or object",
                "pass a copy of the argument (list(x), dict(x)), or declare what the function does "
                '(@lmc.tool(effect="reads") or "pure")',
            )
        self.writers.append(root)

    def check_thread(self, value: Any) -> None:
        """End the capture where ``value``, a function or object of the run's, depends on the thread that it runs in."""
        if any(value is known for known in self._of_any_thread):
            return
        state = thread_state(value)
        if state is not None:
            label = plain_name(value) + "()" if callable(value) else with_article(type(value).__name__)
            raise self.stop(
                f"{label} uses state of its thread ({state}), and the next function may run in another thread",
                "do all that needs it in one function, and declare that (@lmc.tool)",
            )
        self._of_any_thread.append(value)

    def note_hooks(self, value: Any) -> None:
        """Note what gives objects to the run: a function, or an object that exists before."""
        if not self.hooked and not any(value is known for known in self._searched):
            self._searched.append(value)
            self.hooked = reaches_hooks(value)

    def guard(self, expression: Expression, expected: Any) -> None:
        """From here on the capture holds for arguments of which ``expression`` gives ``expected``."""
        self.value_guards.append(ValueGuard(expression, expected))
