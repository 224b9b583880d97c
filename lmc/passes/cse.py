"""The pass ``cse``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from lmc.ir.core import Attribute, Block, Effect, Op, Value
from lmc.ir.layout import Field, exact_key, layout_of
from lmc.ir.ops import SamplingOp
from lmc.passes.base import Pass, PassContext
from lmc.passes.exposure import exposed_values, touches

# What names an op or plans it, and so says nothing about its results.
_NAMING = frozenset({"id", "name", "wave", "group"})
_OUTSIDE = frozenset({Effect.READS, Effect.WRITES})


@dataclass(frozen=True)
class EliminateCommonSubexpressions(Pass):
    """Merge equal ops, so that equal contexts, texts and greedy generations are computed once.

    Two ops are equal when class, operands, result types and attributes are (ids, names and lines apart); the first one
    stays. Sound for ops whose effect is ``PURE``; for ``SAMPLES`` only at temperature 0, where the same prompt gives
    the same tokens and no seed is read, so sampled generations are never merged; never for ``READS`` and ``WRITES``: a
    clock or a queue that is read twice gives two answers, whatever this program writes. Ops that touch a list or object
    which a host function may change, or which the caller gets back, are left alone (``lmc.passes.exposure``): two equal
    lists must stay two.

    The merged generation keeps the id of the first one. An ``lm.break`` still lists both ids, with the same values.

    Before::

        %1 = lm.extend %0, system ["You are terse."] : !ctx
        %2 = lm.extend %0, system ["You are terse."] : !ctx
        %3, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
        %4, %b = lm.gen %2 {id = "f/b"} : !ctx, !text
        lm.return %3 (%a, %b)

    After::

        %1 = lm.extend %0, system ["You are terse."] : !ctx
        %3, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
        lm.return %3 (%a, %a)
    """

    NAME: ClassVar[str] = "cse"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        exposed = exposed_values(block)
        first_of: dict[Hashable, Op] = {}
        replaced: dict[Value, Value] = {}
        kept: list[Op] = []
        for original in block.ops:
            op = original.substitute(replaced)
            if op.effect in _OUTSIDE or op.IS_TERMINATOR or op.regions or touches(original, exposed):
                kept.append(op)
                continue
            first = first_of.setdefault(_key(op), op)
            if first is op or not _gives_the_same_again(op):
                kept.append(op)
                if first is not op:
                    self._remark_missed(op, first, context)
                continue
            replaced.update(zip(op.results, first.results, strict=True))
            if op.billable:
                self._remark_merged(op, first, context)
        return Block(block.parameters, tuple(kept))

    def _remark_merged(self, op: Op, first: Op, context: PassContext) -> None:
        calls = getattr(op, "n", 1)
        message = f"{_identity(op)} equals {_identity(first)} and takes its result"
        self.applied(context, op.location, message, saved_calls=calls)

    def _remark_missed(self, op: Op, first: Op, context: PassContext) -> None:
        message = f"{_identity(op)} equals {_identity(first)}, but is sampled: at temperature 0 one call would do"
        self.missed(context, op.location, message)


def _gives_the_same_again(op: Op) -> bool:
    return op.effect is not Effect.SAMPLES or (isinstance(op, SamplingOp) and op.sampling.greedy)


def _key(op: Op) -> Hashable:
    """Equal for ops that compute the same thing."""
    fields: list[Any] = [type(op), tuple(value.type for value in op.results)]
    # A greedy generation reads no random numbers, so its seed is no matter; nor is it for the remark on a sampled one.
    skipped = _NAMING | {"seed"} if op.effect is Effect.SAMPLES else _NAMING
    for name, kind in op.VALUE_FIELDS:
        held = getattr(op, name)
        if kind == "arguments":
            held = tuple(entry if isinstance(entry, Value) else exact_key(entry) for entry in held)
        fields.append(held)
    for field in layout_of(type(op)).attributes:
        value = getattr(op, field.name)
        # Defaults are left out, so that the keys of many ops stay small.
        if field.name not in skipped and not _is_default(field, value):
            fields += (field.name, exact_key(value))
    return tuple(fields)


def _is_default(field: Field, value: Attribute) -> bool:
    if field.required:
        return False
    return value is field.default or exact_key(value) == exact_key(field.default)


def _identity(op: Op) -> str:
    return repr(getattr(op, "id", op.NAME))
