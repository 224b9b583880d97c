"""The pass ``cse``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from lmc.ir.core import Block, Effect, Op, Value
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.op_schema import exact_key, layout_of
from lmc.ir.rewriter import with_regions
from lmc.passes.analysis.kv_hints import with_true_hints
from lmc.passes.analysis.liveness import exposed_values, is_immutable, touches
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.rewriting import with_ops

# What names an op or plans it, and so says nothing about its results.
_NAMING = frozenset({"id", "occurrences", "name", "wave", "group", "early", "expected_tokens"})
_NEVER_MERGED = (Effect.LOCAL, Effect.READS, Effect.WRITES)


@dataclass(frozen=True)
class EliminateCommonSubexpressions(FunctionPass):
    """Merge equal ops, so that equal contexts, texts and greedy generations are computed once.

    Two ops are equal when class, operands, result types and attributes are (ids, names and lines apart); the first one
    stays. Sound for ops whose effect is ``PURE``; for ``SAMPLES`` only at temperature 0, where the same prompt gives
    the same tokens and no seed is read, so sampled generations are never merged, nor any of a target that is not
    greedy; never for ``READS`` and ``WRITES``: a
    clock or a queue that is read twice gives two answers, whatever this program writes; nor for ``LOCAL``: each makes
    an object of its own, or sees what the ones before have changed. Ops that touch a list or object which somebody may
    change, or which the caller gets back, are left alone (``lmc.passes.analysis.liveness``): two equal lists must stay
    two.

    The merged generation keeps the id of the first one.

    A region sees what the blocks around it have computed, so an op in it may become one of theirs. Ops of two regions
    are never merged: the other one may not have run. Ops that hold regions stay.

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

    Before::

        %1 = lm.extend %0, system ["You are terse."] : !ctx
        %r = cf.map (%items) : !list<!text> ^body(%i: !int, %item: !text) {
          %2 = lm.extend %0, system ["You are terse."] : !ctx
          %3 = lm.extend %2, user [%item] : !ctx
          ...

    After::

        %1 = lm.extend %0, system ["You are terse."] : !ctx
        %r = cf.map (%items) : !list<!text> ^body(%i: !int, %item: !text) {
          %3 = lm.extend %1, user [%item] : !ctx
          ...
    """

    NAME: ClassVar[str] = "cse"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        return with_true_hints(_Walk(self, block, context).block(block))


class _Walk:
    """One forward walk over a function; ``first_of`` are the ops that may be used at this place, by what they compute.

    Recursion is as deep as regions are nested.
    """

    def __init__(self, owner: EliminateCommonSubexpressions, body: Block, context: PassContext) -> None:
        self.owner = owner
        self.context = context
        self.exposed = exposed_values(body)
        self.changing = exposed_values(body, at_end=False) if self.exposed else self.exposed
        self.first_of: dict[Hashable, Op] = {}
        self.replaced: dict[Value, Value] = {}

    def block(self, block: Block) -> Block:
        """The rewritten block. What it computes is forgotten after it."""
        kept: list[Op] = []
        added: list[Hashable] = []
        for original in block.ops:
            op = original.substitute(self.replaced)
            if op.REGION_FIELDS:
                op = with_regions(op, [self.block(region) for region in op.regions])
            if op.REGION_FIELDS or op.IS_TERMINATOR or op.effect in _NEVER_MERGED or self._may_differ(original):
                kept.append(op)
                continue
            key = _key(op)
            first = self.first_of.get(key)
            if first is None:
                self.first_of[key] = op
                added.append(key)
                kept.append(op)
            elif not self._gives_the_same_again(op):
                kept.append(op)
                self._remark_missed(op, first)
            else:
                self.replaced.update(zip(op.results, first.results, strict=True))
                if op.billable:
                    self._remark_merged(op, first)
        for key in added:
            del self.first_of[key]
        return with_ops(block, kept)

    def _may_differ(self, op: Op) -> bool:
        """Return True if an equal op may give another result, or an object that must stay another one."""
        return touches(op, self.changing if is_immutable(op) else self.exposed)

    def _gives_the_same_again(self, op: Op) -> bool:
        capabilities = self.context.capabilities
        if isinstance(op, SelectOp):
            return capabilities.scores or capabilities.greedy  # else it is written, and drawn
        return op.effect is not Effect.SAMPLES or (
            isinstance(op, SamplingOp) and op.sampling.greedy and capabilities.greedy
        )

    def _remark_merged(self, op: Op, first: Op) -> None:
        calls = getattr(op, "n", 1)
        message = f"{_identity(op)} equals {_identity(first)} and takes its result"
        self.owner.applied(self.context, op, message, saved_calls=calls)

    def _remark_missed(self, op: Op, first: Op) -> None:
        message = f"{_identity(op)} equals {_identity(first)}, but is sampled"
        if self.context.capabilities.greedy:
            message += ": at temperature 0 one call would do"
        self.owner.missed(self.context, op, message)


def _key(op: Op) -> Hashable:
    """Equal for ops that compute the same thing."""
    fields: list[Any] = [type(op), tuple(value.type for value in op.results)]
    # A greedy generation reads no random numbers, so its seed is no matter; nor is it for the remark on a sampled one.
    skipped = _NAMING | {"seed"} if op.effect is Effect.SAMPLES else _NAMING
    for name, kind in op.VALUE_FIELDS:
        if name in skipped:
            continue
        held = getattr(op, name)
        if kind == "arguments":
            held = tuple(entry if isinstance(entry, Value) else exact_key(entry) for entry in held)
        fields.append(held)
    for field in layout_of(type(op)).attributes:
        value = getattr(op, field.name)
        if field.name == "temperature":
            value = value or None  # 0 is greedy, as none is
        # Defaults are left out, so that the keys of many ops stay small.
        if value is field.default or field.name in skipped:
            continue
        key = exact_key(value)
        if field.required or key != exact_key(field.default):
            fields += (field.name, key)
    return tuple(fields)


def _identity(op: Op) -> str:
    return repr(getattr(op, "id", None) or op.NAME)
