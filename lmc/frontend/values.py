"""The values of a capture: what becomes an operand, a pure call, a host call, and what is specialised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmc.frontend import sizes
from lmc.frontend.catching import Classes
from lmc.frontend.disorder import CAUSE, REMEDY, is_disordered
from lmc.frontend.emitting import SCALARS
from lmc.frontend.growing import as_value, is_grown
from lmc.frontend.hosts import plain_name
from lmc.frontend.locations import user_location
from lmc.frontend.proxy import Expression, Proxy, Symbol, symbol
from lmc.frontend.specialising import Specialising
from lmc.ir import builtins
from lmc.ir.core import Effect, Value
from lmc.ir.ops import (
    ConcatOp,
    HostCallOp,
    PyCallOp,
)
from lmc.ir.section_ops import SectionsOp
from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, NONE, TEXT, Type, type_of
from lmc.ir.wording import with_article

_PLAIN_TYPES = frozenset({TEXT, INT, FLOAT, BOOL, NONE})
# Text is kept as a list of parts up to this many; a longer one becomes an op, so that long chains stay linear.
_MAX_PARTS = 64


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


class ValueRecorder(Specialising):
    """The part of ``Recorder`` that knows values."""

    def proxy(
        self, value: Value, origin: str, *, expression: Expression | None = None, volatile: bool = False
    ) -> Proxy:
        """A Proxy for an IR value."""
        return Proxy(Symbol(self, value.type, value, origin, expression, volatile=volatile))

    def value_of(self, proxy: Proxy) -> Value:
        """The IR value of ``proxy``; text that is a list of parts becomes an op here."""
        found = symbol(proxy)
        if found.value is None:
            parts = self.ir_parts(proxy)
            (found.value,) = self.emit(ConcatOp, (TEXT,), text=parts, location=found.location)
            self.regions.note(lambda: setattr(found, "value", None))
        return found.value

    def ir_parts(self, text: Any) -> tuple[str | Value, ...]:
        """``text`` as parts of an op."""
        if type(text) is str:
            if sizes.is_too_large(text):
                raise self.stop(sizes.CAUSE, sizes.REMEDY)
            return (text,)
        found = symbol(text)
        if found.value is not None:
            return (found.value,)
        if any(type(part) is str and sizes.is_too_large(part) for part in found.parts):
            raise self.stop(sizes.CAUSE, sizes.REMEDY)
        return tuple(part if type(part) is str else self.value_of(part) for part in found.parts)

    def extend_sections(self, context: Value, role: str | None, kinds: Sequence[str], texts: Sequence[Any]) -> Value:
        found = [self.ir_parts(self.as_text(text)) for text in texts]
        return self.emit(
            SectionsOp,
            (CTX,),
            context=context,
            role=role,
            text=tuple(part for parts in found for part in parts),
            lengths=tuple(map(len, found)),
            kinds=tuple(kinds),
        )[0]

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
            if sizes.is_too_large(value):
                raise self.stop(sizes.CAUSE, sizes.REMEDY)
            return Operand(value, type_of(value), True, value)
        if is_disordered(value):
            raise self.stop(CAUSE, REMEDY)
        if is_grown(value):
            return self.operand(as_value(self, value))
        if kind in (list, tuple, dict, set):
            parts = [part for pair in value.items() for part in pair] if kind is dict else value
            made = self.pure(kind.__name__, tuple(parts))
            return self.operand(made)
        return self.operand(self.constant(value))

    def pure(
        self,
        name: str,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any] | None = None,
        *,
        total: bool = False,
        gives: Type | None = None,
    ) -> Proxy:
        """Call the pure builtin ``name`` of ``lmc.ir.builtins``.

        ``gives`` is the type of its result, where more is known than follows from those of the arguments.
        """
        builtin = builtins.lookup(name)
        assert builtin is not None, name
        named = dict(keywords or {})
        operands = [self.operand(value) for value in (*arguments, *named.values())]
        result_type = gives or builtin.result_type([operand.type for operand in operands[: len(arguments)]])
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

    def next_number(self, count: Proxy) -> Proxy:
        return self.pure("add", (count, 1), total=True)

    def length(self, items: Proxy) -> Proxy:
        """``len(items)``, once for each list."""
        value = self.value_of(items)
        if symbol(items).volatile:
            return self.pure("len", (items,))
        if value not in self._lengths:
            self._lengths[value] = self.pure("len", (items,))
            self.regions.note(lambda: self._forget_length(value))
        return self._lengths[value]

    def _forget_length(self, value: Value) -> None:
        self._lengths.pop(value, None)

    def host_call(
        self,
        function: Any,
        path: str,
        arguments: Sequence[Any],
        keywords: Mapping[str, Any],
        *,
        effect: Effect,
        result_type: Type,
        raises: Classes | None = None,
        origin: str | None = None,
    ) -> Proxy:
        """Record a call of the user's ``function``, to be run once per instance, in order.

        ``raises`` is what alone it may raise, where that is known; ``origin`` what messages call the result.
        """
        part = self.outside.parts[-1] if self.outside.parts else None
        if effect is Effect.WRITES and part is not None and not part.lenient:
            part.called.has_effects = True
            raise self.stop(f"{plain_name(function)}() may do things to the world", "nothing has to change")
        if effect is Effect.WRITES:
            self.check_arguments_kept(function, (*arguments, *keywords.values()))
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
            origin=origin or f"the result of {name}()",
            path=path,
            raises=raises,
        )

    def constant(self, value: Any) -> Proxy:
        """An object of the user's program that has no literal, as a symbolic value of type ``!any``.

        Raises ``CaptureBreak`` for what only the capture knows.
        """
        problem = self.problem_with(value)
        if problem is not None:
            raise self.stop(f"{problem} can't be part of the graph", "take what is needed out of it before")
        host = self.hosts.constant(value)
        origin = f"{with_article(type(value).__name__)} of the program"
        made = self._host_op(host, "constant", effect=Effect.PURE, result_type=ANY, origin=origin)
        symbol(made).constant = True
        return made

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
        raises: Classes | None = None,
    ) -> Proxy:
        op_id = self.allocate_host(self.path if path is None else path, name)
        if op_id in self.outside.unanswered:
            raise self.stop(
                f"{origin} is read by an operation of several steps, and a later part of the program runs eagerly",
                "do the operation in a tool, or let a tool return a list, a text or a number: @lmc.tool, with the type "
                "of the result",
            )
        results = self.emit(
            HostCallOp,
            (result_type,),
            host=host,
            id=str(op_id),
            arguments=ir,
            keywords=keywords,
            declared=effect.value,
            raises=raises,
        )
        self.record(op_id, results)
        self.last_host = (self.ticks, op_id, results[0])
        return self.proxy(results[0], origin, volatile=result_type not in _PLAIN_TYPES)


def is_literal(value: Any) -> bool:
    """Whether ``value`` can be an attribute of an op."""
    kind = type(value)
    if kind is tuple:
        return all(map(is_literal, value))
    return kind in SCALARS
