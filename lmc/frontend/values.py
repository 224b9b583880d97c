"""The values of a capture: what becomes an operand, a pure call, a host call, and what is specialised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from lmc.frontend.arguments import Record
from lmc.frontend.branches import Branches, RoleBlock
from lmc.frontend.breaks import Break, CaptureBreak
from lmc.frontend.guards import ReadGuards, ValueGuard
from lmc.frontend.hosts import HostTable
from lmc.frontend.locations import user_location
from lmc.frontend.messages import Appendable
from lmc.frontend.proxy import Expression, MissingInputError, Proxy, ProxyMethod, Symbol, evaluate, symbol
from lmc.frontend.session import Session
from lmc.frontend.state import State
from lmc.ir import builtins
from lmc.ir.builder import Builder
from lmc.ir.core import Constraint, Effect, Op, Value
from lmc.ir.errors import Location
from lmc.ir.ops import (
    AssumeOp,
    ConcatOp,
    HostCallOp,
    PyCallOp,
)
from lmc.ir.types import ANY, BOOL, FLOAT, INT, NONE, TEXT, Type, type_of

SCALARS = frozenset({type(None), bool, int, float, str})
_PLAIN_TYPES = frozenset({TEXT, INT, FLOAT, BOOL, NONE})
# What only a capture knows, and what a message calls it.
_CAPTURE_ONLY: dict[type, str] = {
    State: "a state",
    Branches: "the branches of a state",
    RoleBlock: "a role block",
    Record: "a whole argument whose fields are known only when the program runs",
    ProxyMethod: "a method of a value that is known only when the program runs",
}
# Python's own types whose instances never change, or that a capture never makes.
_FIXED_BUILTINS = frozenset(
    {
        bytes,
        complex,
        range,
        slice,
        frozenset,
        type,
        list,
        tuple,
        dict,
        set,
        type(Ellipsis),
        type(NotImplemented),
        ModuleType,
        FunctionType,
        BuiltinFunctionType,
        MethodType,
        type(str.upper),
        *SCALARS,
    }
)
# Text is kept as a list of parts up to this many; a longer one becomes an op, so that long chains stay linear.
_MAX_PARTS = 64
_MAX_OPS = 500_000


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument of ``py.call`` or ``host.call`` with what is known of it.

    ``ir`` is a literal or an IR value, ``expression`` a literal, an Expression, or None where it does not follow from
    the arguments alone (``follows`` says which).
    """

    ir: Any
    type: Type
    follows: bool
    expression: Any = None
    volatile: bool = False
    origin: str | None = None


class ValueRecorder(Session):
    """The part of ``Recorder`` that knows values. ``inputs`` are the arguments that are given, by name."""

    def __init__(
        self,
        parameters: Sequence[Value],
        inputs: Mapping[str, Any],
        *,
        start: Location | None = None,
        careful: bool = False,
    ) -> None:
        super().__init__()
        self.start = start
        self.builder = Builder(parameters)
        self.inputs = inputs
        self.careful = careful
        self.hosts = HostTable()
        self.constraints: dict[tuple[str, str], Constraint] = {}
        self.value_guards: list[ValueGuard] = []
        self.reads = ReadGuards()
        self.broken: Break | None = None
        self.break_tick = 0
        self.protected = 0  # depth of try blocks: what could raise in them can't be captured
        self.depth = 0  # of inlined programs
        self.codes: dict[int, CodeType] = {}  # of transformed functions: what they do is captured
        self.foreign: dict[int, Any] = {}  # containers and iterators made outside the capture, by id: read only here
        self.argument_parts: set[int] = set()  # those of them that stand for arguments
        self.mutable_reads = 0  # reads so far of data that the user's functions could change
        self.user_writes = 0  # host calls so far that may have changed the user's own data
        self.hazard = False  # such a call came after a read of data that it may have changed
        self.last_host: tuple[int, str, Value] | None = None  # tick, id and result of the last host call
        self._recorded: list[tuple[str, tuple[Value, ...]]] = []
        self._lengths: dict[Value, Proxy] = {}
        self._specialised: dict[Value, Any] = {}
        self._evaluated: dict[Expression, Any] = {}

    def stop(self, cause: str, remedy: str, location: Location | None = None) -> CaptureBreak:
        """The exception that ends this capture here. Once ended, it stays so for the first reason."""
        if self.broken is None:
            self.broken = Break(location or user_location(), cause, remedy)
            self.break_tick = self.ticks
        return CaptureBreak(self.broken)

    def emit(
        self,
        kind: type[Op],
        types: Sequence[Type] = (),
        *,
        names: Sequence[str | None] = (),
        location: Location | None = None,
        total: bool = False,
        **fields: Any,
    ) -> tuple[Value, ...]:
        """Append an op. ``total`` says that it can't raise here, though its kind can.

        Raises ``CaptureBreak`` where it could raise inside a ``try`` of the user's.
        """
        if self.broken is not None:
            raise CaptureBreak(self.broken)
        if len(self.builder.ops) >= _MAX_OPS:
            raise self.stop(f"the program is longer than {_MAX_OPS} operations", "bound its loops")
        results = self.builder.emit(kind, types, names=names, location=location or user_location(), **fields)
        if self.protected and not total and self.builder.ops[-1].may_raise:
            self.builder.ops.pop()
            raise self.stop_protected()
        return results

    def stop_protected(self) -> CaptureBreak:
        """The break for what could raise inside a ``try`` of the user's."""
        return self.stop(
            "this may raise inside a `try` or `with` block, and which way the block then takes is not known yet",
            "move it out of the block, or check the value before instead of catching the exception",
        )

    # Values

    def proxy(
        self, value: Value, origin: str, *, expression: Expression | None = None, volatile: bool = False
    ) -> Proxy:
        """A Proxy for an IR value."""
        return Proxy(Symbol(self, value.type, value, origin, expression, volatile=volatile))

    def value_of(self, proxy: Proxy) -> Value:
        """The IR value of ``proxy``; text that is a list of parts becomes an op here."""
        found = symbol(proxy)
        if found.value is None:
            parts = tuple(part if type(part) is str else self.value_of(part) for part in found.parts)
            (found.value,) = self.emit(ConcatOp, (TEXT,), text=parts, location=found.location)
        return found.value

    def ir_parts(self, text: Any) -> tuple[str | Value, ...]:
        """``text`` as parts of an op."""
        if type(text) is str:
            return (text,)
        found = symbol(text)
        if found.value is not None:
            return (found.value,)
        return tuple(part if type(part) is str else self.value_of(part) for part in found.parts)

    def concat(self, pieces: Sequence[Any]) -> Any:
        """The texts of ``pieces`` (str, or Proxies of ``!text``) one after the other, as a str where all are."""
        parts: list[Any] = []
        for piece in pieces:
            inner = symbol(piece).parts if type(piece) is Proxy else ()
            small = inner and len(inner) <= _MAX_PARTS and symbol(piece).value is None
            for part in inner if small else (piece,):
                if type(part) is str and parts and type(parts[-1]) is str:
                    parts[-1] += part
                elif type(part) is not str or part:
                    parts.append(part)
        if not parts:
            return ""
        if len(parts) == 1:
            return parts[0]
        symbols = [None if type(part) is str else symbol(part) for part in parts]
        expressions = tuple(
            part if found is None else found.expression for part, found in zip(parts, symbols, strict=True)
        )
        known = all(expression is not None for expression in expressions)
        origin = next(found.origin for found in symbols if found is not None)
        expression = Expression("str.join", ("", Expression("tuple", expressions))) if known else None
        return Proxy(Symbol(self, TEXT, None, origin, expression, tuple(parts), location=user_location()))

    def operand(self, value: Any) -> Operand:
        """``value`` as an argument of a call. Raises ``CaptureBreak`` for what can't stand in the IR."""
        kind = type(value)
        if kind is Proxy:
            found = symbol(value)
            return Operand(
                self.value_of(value),
                found.type,
                found.expression is not None,
                found.expression,
                found.volatile,
                found.origin,
            )
        if is_literal(value):
            return Operand(value, type_of(value), True, value)
        if kind in (list, tuple, dict, set):
            parts = [part for pair in value.items() for part in pair] if kind is dict else value
            made = self.pure(kind.__name__, tuple(parts))
            return self.operand(made)
        return self.operand(self.constant(value))

    def problem_with(self, value: Any) -> str | None:
        """Why ``value`` can't be handed to a function that runs later; None where it can."""
        kind: type = type(value)
        if kind in _CAPTURE_ONLY or isinstance(value, Appendable):
            return _CAPTURE_ONLY.get(kind, "a message or a generation")
        if isinstance(value, FunctionType) and id(value.__code__) in self.codes:
            return "a function that is made in the program"
        if isinstance(value, GeneratorType) and id(value.gi_code) in self.codes:
            return "a generator that is made in the program"
        if isinstance(value, BaseException) or (kind.__module__ == "builtins" and kind not in _FIXED_BUILTINS):
            return None if id(value) in self.foreign else f"a {kind.__name__}"
        return None

    def pure(
        self, name: str, arguments: Sequence[Any], keywords: Mapping[str, Any] | None = None, *, total: bool = False
    ) -> Proxy:
        """Call the pure builtin ``name`` of ``lmc.ir.builtins``."""
        builtin = builtins.lookup(name)
        assert builtin is not None, name
        named = dict(keywords or {})
        operands = [self.operand(value) for value in (*arguments, *named.values())]
        result_type = builtin.result_type([operand.type for operand in operands[: len(arguments)]])
        origin = next((operand.origin for operand in operands if operand.origin is not None), f"the result of {name}")
        ir = tuple(operand.ir for operand in operands)
        if any(operand.volatile for operand in operands):
            # The object may be changed by the user's functions: read it in order with them.
            host = self.hosts.builtin(builtin)
            return self._host_op(
                host,
                name,
                ir=ir,
                keywords=tuple(named),
                effect=Effect.READS,
                result_type=result_type,
                origin=origin,
            )
        (result,) = self.emit(PyCallOp, (result_type,), total=total, function=name, arguments=ir, keywords=tuple(named))
        follows = all(operand.follows for operand in operands)
        expression = Expression(name, tuple(operand.expression for operand in operands), tuple(named))
        return self.proxy(result, origin, expression=expression if follows else None)

    def length(self, items: Proxy) -> Proxy:
        """``len(items)``, once for each list."""
        value = self.value_of(items)
        if symbol(items).volatile:
            return self.pure("len", (items,))
        if value not in self._lengths:
            self._lengths[value] = self.pure("len", (items,))
        return self._lengths[value]

    def host_call(
        self,
        function: Any,
        path: str,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        *,
        effect: Effect,
        result_type: Type,
    ) -> Proxy:
        """Record a call of the user's ``function``, to be run once per instance, in order."""
        operands = [self.operand(value) for value in (*arguments, *keywords.values())]
        if effect is Effect.PURE and any(operand.volatile for operand in operands):
            effect = Effect.READS
        host, name = self.hosts.function(function, effect)
        ir = tuple(operand.ir for operand in operands)
        return self._host_op(
            host,
            name,
            ir=ir,
            keywords=tuple(keywords),
            effect=effect,
            result_type=result_type,
            origin=f"the result of {name}()",
            path=path,
        )

    def constant(self, value: Any) -> Proxy:
        """An object of the user's program that has no literal, as a symbolic value of type ``!any``.

        Raises ``CaptureBreak`` for what only the capture knows.
        """
        problem = self.problem_with(value)
        if problem is not None:
            raise self.stop(f"{problem} can't be part of the graph", "take what is needed out of it before")
        host = self.hosts.constant(value)
        origin = f"a {type(value).__name__} of the program"
        made = self._host_op(host, "constant", effect=Effect.PURE, result_type=ANY, origin=origin)
        symbol(made).constant = True
        return made

    def specialise(self, proxy: Proxy, use: str = "its value is needed now") -> Any:
        """The plain value of a scalar that follows from the arguments; the module then holds for that value only.

        Raises ``CaptureBreak`` where it does not follow from them, or none were given.
        """
        found = symbol(proxy)
        if found.expression is None:
            raise self.stop(
                f"{found.origin} is known only when the program runs, but {use}",
                "nothing has to change: it goes on eagerly from here; what should be compiled, do before it",
            )
        value = self.value_of(proxy)
        if value in self._specialised:
            return self._specialised[value]
        try:
            result = evaluate(found.expression, self.inputs, self._evaluated)
        except MissingInputError:
            raise self.stop(
                f"{found.origin} is not given, but {use}",
                "compile with example inputs, which the program specialises for",
            ) from None
        except Exception as error:
            raise self.stop(
                f"this raises {type(error).__name__} for these arguments: {error}", "check the arguments before"
            ) from error
        if type(result) not in SCALARS or result != result:  # noqa: PLR0124 - NaN
            raise self.stop(
                f"{found.origin} is a {type(result).__name__}, and {use}",
                "use its items, its length or a comparison, which can be checked",
            )
        self.emit(AssumeOp, value=value, expected=result, total=True)
        self.value_guards.append(ValueGuard(found.expression, result))
        self._specialised[value] = result
        return result

    def _host_op(
        self,
        host: str,
        name: str,
        *,
        ir: tuple[Any, ...] = (),
        keywords: tuple[str, ...] = (),
        effect: Effect,
        result_type: Type,
        origin: str,
        path: str | None = None,
    ) -> Proxy:
        op_id = self.allocate_host(self.path if path is None else path, name)
        results = self.emit(
            HostCallOp,
            (result_type,),
            host=host,
            id=op_id,
            arguments=ir,
            keywords=keywords,
            declared=effect.value,
        )
        self._recorded.append((op_id, results))
        self.last_host = (self.ticks, op_id, results[0])
        return self.proxy(results[0], origin, volatile=result_type not in _PLAIN_TYPES)


def is_literal(value: Any) -> bool:
    """Whether ``value`` can be an attribute of an op."""
    kind = type(value)
    if kind is tuple:
        return all(map(is_literal, value))
    return kind in SCALARS
