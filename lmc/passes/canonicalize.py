"""The pass ``canonicalize``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from lmc.ir.core import Attribute, Block, Op, Value
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
from lmc.ir.types import TEXT
from lmc.passes.absorbing import AbsorbingWalk
from lmc.passes.base import Pass, PassContext
from lmc.passes.exposure import exposed_values
from lmc.passes.folding import fold_call
from lmc.passes.making import make_op
from lmc.passes.rope import Rope

# A text that several ops use is copied into them only where it is short, so that modules can't blow up.
_SHARED_SIZE = 16
_SHARED_CHARACTERS = 1024


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
    (DESIGN.md, "Meaning of a context"). A context or text with other users stays, so nothing is computed twice.

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
        return Block(block.parameters, _Walk(self, block, context).run())


class _Walk(AbsorbingWalk):
    """The folds, one method for each op class. ``constants`` are values known to be a literal."""

    def __init__(self, owner: Canonicalize, block: Block, context: PassContext) -> None:
        super().__init__(block)
        self.owner = owner
        self.context = context
        self.exposed = exposed_values(block)
        self.constants: dict[Value, Attribute] = {}
        self.folded: list[int] = []
        self.visitors: dict[type[Op], Callable[[Any], None]] = {
            ExtendOp: self._extend,
            BeginOp: self._begin,
            EndOp: self._end,
            PrefillOp: self._prefill,
            ConcatOp: self._concat,
            PyCallOp: self._py_call,
            HostCallOp: self._host_call,
            SelectOp: self._select,
        }

    def run(self) -> tuple[Op, ...]:
        """The ops of the rewritten block."""
        for op in self.block.ops:
            self.visitors.get(type(op), self.emit)(op.substitute(self.replaced))
        for position in self.folded:
            op = self.ops[position]
            if op is not None and not self.uses[op.results[0]]:
                self.ops[position] = None
        return self.written()

    # Contexts

    def _extend(self, op: ExtendOp) -> None:
        rope = self._rope(op.text)
        if op.role is not None:
            op = self._skip_end(op)
            self.ropes[op.results[0]] = rope
            self.emit(op)
            return
        if rope.is_empty:
            self.forward(dataclasses.replace(op, text=()), op.context)
            return
        before = self.definition(op.context)
        if isinstance(before, ExtendOp) and before.role is None and self.uses[op.context] == 1:
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
        text = before if isinstance(before, ExtendOp) and self.uses[op.context] == 1 else None
        opening_value = text.context if text is not None else op.context
        opening = self.definition(opening_value)
        if not isinstance(opening, BeginOp) or self.uses[opening_value] != 1:
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
        if others or not isinstance(choice, str) or self.uses[scores]:
            self.emit(op)
            return
        self.owner.applied(
            self.context, op.location, f"select {op.id} has one choice: it is appended without a call", saved_calls=1
        )
        self._concat(make_op(ConcatOp, (value,), op.location, text=(choice,)))
        self._extend(make_op(ExtendOp, (new_context,), op.location, context=op.context, text=(choice,)))

    def _choice(self, choice: str | Value) -> str | Value:
        literal = self._literal(choice)
        return literal if isinstance(literal, str) and literal else choice

    # Texts and values

    def _concat(self, op: ConcatOp) -> None:
        rope = self._rope(op.text)
        if len(rope.pieces) == 1 and isinstance(rope.pieces[0], Value):
            self.forward(dataclasses.replace(op, text=rope.pieces), rope.pieces[0])
            return
        self.ropes[op.results[0]] = rope
        self.emit(op)

    def _rope(self, text: Sequence[str | Value]) -> Rope:
        return Rope([self._piece(part) for part in text])

    def _piece(self, part: str | Value) -> str | Value | Rope:
        """What stands for ``part`` in the op that uses it: the parts of a text that is short or of no other use."""
        if isinstance(part, str):
            return part
        before = self.definition(part)
        if not isinstance(before, ConcatOp):
            return part
        rope = self.ropes[part]
        if self.uses[part] == 1:
            self.absorb(part)
            return rope
        if rope.size > _SHARED_SIZE or rope.characters > _SHARED_CHARACTERS:
            return part
        self.uses[part] -= 1
        self.uses.update(rope.values())
        return rope

    def _py_call(self, op: PyCallOp) -> None:
        op = self._with_literals(op)
        if not op.operands:
            folded = fold_call(op.function, op.arguments, op.keywords, op.results[0].type)
            if folded is not None:
                self._fold(op, folded.value)
                return
        same = self._same_text(op)
        if same is not None:
            self.forward(op, same)
            return
        text = self._as_parts(op)
        if text is None:
            self.emit(op)
            return
        self.uses.update(part for part in text if isinstance(part, Value))
        self._release(op)
        self._concat(make_op(ConcatOp, op.results, op.location, text=text))

    def _release(self, op: PyCallOp) -> None:
        """Give up the operands of ``op``, and a list among them that nobody else uses."""
        self.uses.subtract(op.operands)
        for value in op.operands:
            listed = self.definition(value)
            if isinstance(listed, PyCallOp) and not listed.may_raise and not self.uses[value]:
                self.remove(value)
                self.uses.subtract(listed.operands)

    def _fold(self, op: PyCallOp, value: Attribute) -> None:
        if isinstance(value, str) and op.results[0].type == TEXT:
            self._concat(make_op(ConcatOp, op.results, op.location, text=(value,)))
            return
        # There is no op for other literals: users take the value, and the call goes where none needs its result.
        self.constants[op.results[0]] = value
        self.folded.append(len(self.ops))
        self.emit(op)

    def _same_text(self, op: PyCallOp) -> Value | None:
        """The argument that ``op`` gives back unchanged, if it does."""
        if op.keywords:
            return None
        match op.function, op.arguments:
            case ("str", (Value(type=kind) as text,)) | ("format", (Value(type=kind) as text,)) if kind == TEXT:
                return text
            case "format", (Value(type=kind) as text, "") if kind == TEXT:
                return text
            case "choose", (bool(condition), when_true, when_false):
                chosen = when_true if condition else when_false
                return chosen if isinstance(chosen, Value) and chosen.type == op.results[0].type else None
            case _:
                return None

    def _as_parts(self, op: PyCallOp) -> tuple[Any, ...] | None:
        """The parts whose concatenation ``op`` gives, if it is one."""
        if op.keywords or op.results[0].type != TEXT:
            return None
        match op.function, op.arguments:
            case "add", (left, right) if _is_text(left) and _is_text(right):
                return (left, right)
            case "str.join", (separator, Value() as items) if _is_text(separator):
                return self._joined(separator, items)
            case _:
                return None

    def _joined(self, separator: Attribute | Value, items: Value) -> tuple[Any, ...] | None:
        listed = self.definition(items)
        if not isinstance(listed, PyCallOp) or listed.function not in ("list", "tuple") or listed.keywords:
            return None
        texts = listed.arguments
        is_short = self.uses[items] == 1 or len(texts) <= _SHARED_SIZE
        if not is_short or items in self.exposed or not all(map(_is_text, texts)):
            return None
        parts: list[Any] = []
        for text in texts:
            parts += [separator, text]
        return tuple(parts[1:])

    def _host_call(self, op: HostCallOp) -> None:
        self.emit(self._with_literals(op))

    def _with_literals(self, op: Any) -> Any:
        """``op`` with its arguments replaced by the literals they are known to be."""
        arguments = tuple(self._literal(argument) for argument in op.arguments)
        if all(new is old for new, old in zip(arguments, op.arguments, strict=True)):
            return op
        self.uses.subtract(op.operands)
        new = dataclasses.replace(op, arguments=arguments)
        self.uses.update(new.operands)
        return new

    def _literal(self, argument: Any) -> Any:
        """The literal that ``argument`` is known to be, else ``argument``."""
        if not isinstance(argument, Value):
            return argument
        if argument in self.constants:
            return self.constants[argument]
        rope = self.ropes.get(argument) if argument.type == TEXT else None
        if rope is None or not rope.is_literal or rope.characters > _SHARED_CHARACTERS:
            return argument
        return rope.text()


def _is_text(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, Value) and part.type == TEXT)
