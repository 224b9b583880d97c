"""The pass ``canonicalize``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import (
    BeginOp,
    ConcatOp,
    ContextOp,
    EndOp,
    ExtendOp,
    HostCallOp,
    PrefillOp,
    PyCallOp,
    SelectOp,
)
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, TryOp, YieldOp
from lmc.ir.dialects.regions import LEAVING
from lmc.ir.dialects.section_ops import SectionsOp
from lmc.passes.analysis.kv_hints import with_true_hints
from lmc.passes.analysis.liveness import exposed_values
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.canonicalize.control_folds import FlowWalk, with_merged_conditions
from lmc.passes.canonicalize.text_folds import Rope
from lmc.passes.rewriting import make_op

# One walk nearly always does: another one follows only where an op lost a user after it was passed. A module made for
# it could ask for as many walks as it has ops, so there is an end.
_MAX_WALKS = 32


@dataclass(frozen=True)
class Canonicalize(FunctionPass):
    """Fold literals and write every context and every text in its shortest form.

    * Texts: nested ``text.concat`` flattened, adjacent literals joined, empty ones left out; ``str`` and ``format`` of
      a text, ``add`` of texts and ``str.join`` of a captured list become parts.
    * ``py.call`` on literals is run now, where it is cheap and does not raise.
    * Contexts: consecutive bare texts become one ``lm.extend``, ``begin … end`` around text one whole message, what
      closes a closed turn or appends nothing goes away, and so does ``lm.prefill`` of a prefilled context.
    * A ``lm.select`` with one literal choice and unused scores appends that choice without a model call.
    * ``cf.cond`` on a flag that is known, as in an arm of a conditional on the same flag, becomes its arm. What both
      arms yield alike comes from outside, and an arm that leaves says what the flag is from there on. One whose results
      only the next ``cf.cond`` on the same flag reads becomes a part of that.
    * ``cf.loop`` whose condition is false before the first round becomes its condition. What is the same in every round
      comes from outside and is carried no more.
    * ``cf.try`` whose body has no op that may raise becomes that body. What body and fallback give alike comes from
      outside.

    Sound because pending text is settled as one string: how it was cut into ops is no part of the meaning of a context.
    A context or text with other users stays, and so does one from outside of the region that uses it, so nothing is
    computed twice. What it gives it leaves as it is when it runs again.

    Before::

        %1 = lm.begin %0, user : !ctx
        %2 = lm.extend %1 ["Judge its "] : !ctx
        %3 = py.call str (%dim) : !text
        %4 = lm.extend %2 [%3, "."] : !ctx
        %5 = lm.end %4 : !ctx

    After::

        %5 = lm.extend %0, user ["Judge its ", %dim, "."] : !ctx

    Before::

        %2, %n = cf.cond %short : !ctx, !int ^then() {
          %b = py.call not (%short) : !bool
          %1 = cf.cond %b : !ctx ^then() { ... } ^otherwise() {
            %a = lm.extend %0 ["Be brief."] : !ctx
            cf.yield (%a)
          }
          cf.yield (%1, 3)
        } ^otherwise() {
          cf.yield (%0, 3)
        }

    After::

        %2 = cf.cond %short : !ctx ^then() {
          %a = lm.extend %0 ["Be brief."] : !ctx
          cf.yield (%a)
        } ^otherwise() {
          cf.yield (%0)
        }
        %n = py.call choose (true, 3, 3) : !int   // unless its users can take the literal
    """

    NAME: ClassVar[str] = "canonicalize"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        block = with_merged_conditions(block)
        for _ in range(_MAX_WALKS):
            walk = _Walk(self, block, context)
            rewritten = walk.block(block)
            if rewritten is block:
                break
            block = with_true_hints(rewritten)
            if block is rewritten and not walk.is_unfinished(block):
                break
        return block


class _Walk(FlowWalk):
    """The folds, one method for each op class: here those of contexts."""

    def __init__(self, owner: Canonicalize, block: Block, context: PassContext) -> None:
        super().__init__(block, partial(owner.applied, context))
        self.owner = owner
        self.context = context
        self.visitors: dict[type[Op], Callable[[Any], None]] = {
            ExtendOp: self._extend,
            SectionsOp: self._sections,
            BeginOp: self._begin,
            EndOp: self._end,
            PrefillOp: self._prefill,
            ConcatOp: self.concat,
            PyCallOp: self.py_call,
            HostCallOp: self.host_call,
            SelectOp: self._select,
            CondOp: self.cond,
            LoopOp: self.loop,
            TryOp: self.protected,
            YieldOp: self.end_region,
            ConditionOp: self.end_region,
            **dict.fromkeys(LEAVING, self.leave),
        }

    def visit(self, op: Op) -> None:
        visitor = self.visitors.get(type(op))
        if visitor is None:
            self.emit(self.with_regions(op))
        else:
            visitor(op)

    def is_unfinished(self, block: Block) -> bool:
        """Return True if another walk over the result, ``block``, would find more to do."""
        return self.misses or self.is_stale or (bool(self.kept_lists) and not self.kept_lists <= exposed_values(block))

    def _extend(self, op: ExtendOp) -> None:
        rope = self.rope_of(op.text)
        if op.role is not None:
            op = self._skip_end(op)
            self.ropes[op.results[0]] = rope
            self.emit(op)
            return
        if rope.is_empty:
            self.forward(dataclasses.replace(op, text=()), op.context)
            return
        before = self.definition(op.context)
        if isinstance(before, ExtendOp) and before.role is None and self._is_only_used_here(op.context):
            rope = Rope((self.ropes[op.context], rope))
            self.absorb(op.context)
            op = dataclasses.replace(op, context=before.context, location=before.location or op.location)
        self.ropes[op.results[0]] = rope
        self.emit(op)

    def _sections(self, op: SectionsOp) -> None:
        """Replace sections by their text: where they were to be ordered, they have been."""
        fields = {"context": op.context, "role": op.role, "text": op.text}
        self._extend(make_op(ExtendOp, op.results, op.location, **fields))

    def _begin(self, op: BeginOp) -> None:
        self.emit(self._skip_end(op))

    def _skip_end(self, op: Any) -> Any:
        """A new turn closes the open one by itself."""
        before = self.definition(op.context)
        if not isinstance(before, EndOp):
            return op
        if self.uses[op.context] > 1 or not self.is_here(op.context):
            return self.reuse(op, before.context)
        self.absorb(op.context)
        return dataclasses.replace(op, context=before.context)

    def _end(self, op: EndOp) -> None:
        before = self.definition(op.context)
        if isinstance(before, EndOp | ContextOp) or (isinstance(before, ExtendOp) and before.role is not None):
            self.forward(op, op.context)
            return
        text = before if isinstance(before, ExtendOp) and self._is_only_used_here(op.context) else None
        opening_value = text.context if text is not None else op.context
        opening = self.definition(opening_value)
        if not isinstance(opening, BeginOp) or not self._is_only_used_here(opening_value):
            self.emit(op)
            return
        rope = self.ropes[op.context] if text is not None else Rope(())
        if text is not None:
            self.absorb(op.context)
        self.absorb(opening_value)
        location = opening.location or op.location
        self.ropes[op.results[0]] = rope
        self.emit(make_op(ExtendOp, op.results, location, context=opening.context, role=opening.role))

    def _is_only_used_here(self, value: Value) -> bool:
        """Return True if an op of the open block defines ``value``, and no other op uses it."""
        return self.is_here(value) and self.expect(value, 1)

    def _prefill(self, op: PrefillOp) -> None:
        before = self.definition(op.context)
        if not isinstance(before, PrefillOp):
            self.emit(op)
        elif before.scope in (op.scope, "batch") and (before.ahead or not op.ahead):
            self.forward(op, op.context)
        else:
            self.emit(self.reuse(op, before.context))

    def _select(self, op: SelectOp) -> None:
        choices = tuple(self._choice(choice) for choice in op.choices)
        if choices != op.choices:
            self.uses.subtract(value for value in op.choices if isinstance(value, Value))
            self.uses.update(value for value in choices if isinstance(value, Value))
            op = dataclasses.replace(op, choices=choices)
        new_context, value, scores = op.results
        [*others, choice] = choices
        if others or not isinstance(choice, str) or not self.expect(scores, 0):
            self.emit(op)
            return
        self.owner.applied(
            self.context, op, f"select {op.id} has one choice: it is appended without a call", saved_calls=1
        )
        self.concat(make_op(ConcatOp, (value,), op.location, text=(choice,)))
        self._extend(make_op(ExtendOp, (new_context,), op.location, context=op.context, text=(choice,)))

    def _choice(self, choice: str | Value) -> str | Value:
        literal = self.literal(choice)
        return literal if isinstance(literal, str) and literal else choice
