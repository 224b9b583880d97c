"""The pass ``canonicalize``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from lmc.ir.core import Block, Op, Value
from lmc.ir.ops import (
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
from lmc.passes.base import Pass, PassContext
from lmc.passes.exposure import exposed_values
from lmc.passes.making import make_op
from lmc.passes.rope import Rope
from lmc.passes.text_folds import TextWalk

# One walk nearly always does: another one follows only where an op lost a user after it was passed. A module made for
# it could ask for as many walks as it has ops, so there is an end.
_MAX_WALKS = 32


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Fold literals and write every context and every text in its shortest form.

    * Texts: nested ``text.concat`` flattened, adjacent literals joined, empty ones left out; ``str`` and ``format`` of
      a text, ``add`` of texts and ``str.join`` of a captured list become parts.
    * ``py.call`` on literals is run now, where it is cheap and does not raise.
    * Contexts: consecutive bare texts become one ``lm.extend``, ``begin … end`` around text one whole message, what
      closes a closed turn or appends nothing goes away, and so does ``lm.prefill`` of a prefilled context.
    * A ``lm.select`` with one literal choice, whose scores nobody reads, appends that choice without a model call.

    Sound because pending text is settled as one string: how it was cut into ops is no part of the meaning of a context
    (DESIGN.md, "Meaning of a context"). A context or text with other users stays, so nothing is computed twice. What
    it gives it leaves as it is when it runs again.

    Before::

        %1 = lm.begin %0, user : !ctx
        %2 = lm.extend %1, ["Judge its "] : !ctx
        %3 = py.call str(%dim) : !text
        %4 = lm.extend %2, [%3, "."] : !ctx
        %5 = lm.end %4 : !ctx

    After::

        %5 = lm.extend %0, user, ["Judge its ", %dim, "."] : !ctx
    """

    NAME: ClassVar[str] = "canonicalize"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        for _ in range(_MAX_WALKS):
            walk = _Walk(self, block, context)
            rewritten = walk.run()
            if rewritten == block.ops:
                break
            block = Block(block.parameters, rewritten)
            if not walk.is_unfinished(block):
                break
        return block


class _Walk(TextWalk):
    """The folds, one method for each op class: here those of contexts."""

    def __init__(self, owner: Canonicalize, block: Block, context: PassContext) -> None:
        super().__init__(block)
        self.owner = owner
        self.context = context
        self.visitors: dict[type[Op], Callable[[Any], None]] = {
            ExtendOp: self._extend,
            BeginOp: self._begin,
            EndOp: self._end,
            PrefillOp: self._prefill,
            ConcatOp: self.concat,
            PyCallOp: self.py_call,
            HostCallOp: self.host_call,
            SelectOp: self._select,
        }

    def run(self) -> tuple[Op, ...]:
        """The ops of the rewritten block."""
        for op in self.block.ops:
            self.visitors.get(type(op), self.emit)(op.substitute(self.replaced))
        self.drop_folded()
        return self.written()

    def is_unfinished(self, block: Block) -> bool:
        """Whether another walk over what this one gave, ``block``, would find more to do."""
        return self.misses or (bool(self.kept_lists) and not self.kept_lists <= exposed_values(block))

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
        if isinstance(before, ExtendOp) and before.role is None and self.expect(op.context, 1):
            rope = Rope((self.ropes[op.context], rope))
            self.absorb(op.context)
            op = dataclasses.replace(op, context=before.context, location=before.location or op.location)
        self.ropes[op.results[0]] = rope
        self.emit(op)

    def _begin(self, op: BeginOp) -> None:
        self.emit(self._skip_end(op))

    def _skip_end(self, op: Any) -> Any:
        """A new turn closes the open one by itself."""
        before = self.definition(op.context)
        if not isinstance(before, EndOp):
            return op
        if self.uses[op.context] > 1:
            return self.reuse(op, before.context)
        self.absorb(op.context)
        return dataclasses.replace(op, context=before.context)

    def _end(self, op: EndOp) -> None:
        before = self.definition(op.context)
        if isinstance(before, EndOp | ContextOp) or (isinstance(before, ExtendOp) and before.role is not None):
            self.forward(op, op.context)
            return
        text = before if isinstance(before, ExtendOp) and self.expect(op.context, 1) else None
        opening_value = text.context if text is not None else op.context
        opening = self.definition(opening_value)
        if not isinstance(opening, BeginOp) or not self.expect(opening_value, 1):
            self.emit(op)
            return
        rope = self.ropes[op.context] if text is not None else Rope(())
        if text is not None:
            self.absorb(op.context)
        self.absorb(opening_value)
        location = opening.location or op.location
        self.ropes[op.results[0]] = rope
        self.emit(make_op(ExtendOp, op.results, location, context=opening.context, role=opening.role))

    def _prefill(self, op: PrefillOp) -> None:
        before = self.definition(op.context)
        if not isinstance(before, PrefillOp):
            self.emit(op)
        elif before.scope in (op.scope, "batch"):
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
            self.context, op.location, f"select {op.id} has one choice: it is appended without a call", saved_calls=1
        )
        self.concat(make_op(ConcatOp, (value,), op.location, text=(choice,)))
        self._extend(make_op(ExtendOp, (new_context,), op.location, context=op.context, text=(choice,)))

    def _choice(self, choice: str | Value) -> str | Value:
        literal = self.literal(choice)
        return literal if isinstance(literal, str) and literal else choice
