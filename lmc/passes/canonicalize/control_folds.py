"""The folds of ``canonicalize`` on ops with regions."""

from __future__ import annotations

import abc
import dataclasses
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lmc.ir.core import Attribute, Block, Op, Value, walk
from lmc.ir.dialects.core_ops import HostCallOp, PyCallOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, TryOp, YieldOp
from lmc.ir.dialects.regions import LEAVING
from lmc.ir.errors import Location
from lmc.ir.op_schema import exact_key
from lmc.ir.rewriter import with_regions
from lmc.ir.types import BOOL
from lmc.passes.analysis.loop_invariants import invariants
from lmc.passes.canonicalize.text_folds import TextWalk, fold_call
from lmc.passes.rewriting import substituted, trimmed, with_ops

Held = Attribute | Value


class FlowWalk(TextWalk, abc.ABC):
    """The part of the walk that folds regions. ``say`` makes a remark.

    ``ended`` says that the open block has left, so that nothing of it that follows runs; ``is_stale`` that another walk
    may find more. Recursion is as deep as regions are nested.
    """

    def __init__(self, block: Block, say: Callable[[Location | None, str], None]) -> None:
        super().__init__(block)
        self.say = say
        self.ended = False
        self.is_stale = False
        self._facts: list[Value] = []

    @abc.abstractmethod
    def visit(self, op: Op) -> None:
        """Fold one op, whose operands have been replaced."""

    def block(self, block: Block) -> Block:
        """A block, rewritten."""
        around = (self.ops, self.folded, self.ended, self._facts)
        self.ops, self.folded, self.ended, self._facts = [], [], False, []
        self._visit_all(block.ops)
        self.drop_folded()
        rewritten = with_ops(block, self.written())
        for fact in self._facts:
            del self.constants[fact]
        self.ops, self.folded, self.ended, self._facts = around
        return rewritten

    def with_regions(self, op: Op) -> Op:
        """``op`` with its regions rewritten."""
        return with_regions(op, [self.block(region) for region in op.regions])

    def _visit_all(self, ops: Sequence[Op]) -> None:
        for index, op in enumerate(ops):
            if self.ended:
                self.forget(ops[index:])
                return
            self.visit(op.substitute(self.replaced))

    def leave(self, op: Op) -> None:
        """The end of a block that leaves."""
        self.emit(op)
        self.ended = True

    def end_region(self, op: YieldOp | ConditionOp) -> None:
        """The end of a region, with the literals that its values are known to be."""
        self.emit(self.with_literals(op, "values"))

    def cond(self, op: CondOp) -> None:
        """``cf.cond``: the arm that runs, if that is known; results only where the arms give different ones."""
        flag = self.literal(op.flag)
        if isinstance(flag, bool):
            self.say(op.location, f"the condition is always {str(flag).lower()}: one arm is left")
            taken, other = (op.then, op.otherwise) if flag else (op.otherwise, op.then)
            self.forget(other.ops)
            self.uses[op.flag] -= 1
            self._inline(op, taken)
            return
        arms: list[Block] = []
        for arm, value in ((op.then, True), (op.otherwise, False)):
            with self._assuming(self._facts_of(op.flag, value)):
                arms.append(self.block(arm))
        self._emit_joined(op, with_regions(op, arms))
        leaving = [isinstance(arm.terminator, LEAVING) for arm in arms]
        if leaving in ([True, False], [False, True]):
            facts = self._facts_of(op.flag, value=leaving[1])
            self.constants.update(facts)
            self._facts.extend(facts)

    def protected(self, op: TryOp) -> None:
        """``cf.try``: its body alone where nothing in it may raise; results only where body and fallback differ."""
        op = self.with_literals(op, "fallback")
        if not any(inner.may_raise for inner in op.body.ops):
            self.say(op.location, "nothing in the protected region may raise: its body is left")
            self.uses.subtract(op.operands)
            self._inline(op, op.body, first=(True, None))
            return
        rewritten = self.with_regions(op)
        assert isinstance(rewritten, TryOp)
        end = rewritten.body.terminator
        assert isinstance(end, YieldOp)
        self._emit_same(op, rewritten, op.results[2:], [rewritten.fallback, end.values])

    def loop(self, op: LoopOp) -> None:
        """``cf.loop``: its condition alone where no round begins; what is the same in all rounds comes from outside."""
        op = self.with_literals(op, "initial")
        if self._ends_at_once(op):
            self.say(op.location, "no round of the loop begins: its condition is left")
            self.forget(op.body.ops)
            self.uses.subtract(op.operands)
            for parameter, value in zip(op.condition.parameters, op.initial, strict=True):
                self._give(parameter, value, op.location)
            self._inline(op, op.condition)
            return
        same = invariants(op, self._resolve)
        places = (*op.condition.parameters, *op.body.parameters)
        literals = {place: same[place] for place in places if place in same and not isinstance(same[place], Value)}
        for place in places:
            value = same.get(place)
            if isinstance(value, Value):
                self.stand_for(place, value)
        with self._assuming(literals):
            rewritten = self.with_regions(op)
        self.is_stale = self.is_stale or rewritten is not op
        gone = {place for place in places if place in same and not self.uses[place]}
        gone |= {
            result for result, one in zip(op.results, op.body.parameters, strict=True) if result in same and one in gone
        }
        self._emit_without(rewritten, gone)
        for result in op.results:
            if result in gone:
                self._give(result, same[result], op.location)

    def _facts_of(self, flag: Value, value: bool) -> dict[Value, Attribute]:
        """Return the values known where ``flag`` is ``value``."""
        facts: dict[Value, Attribute] = {flag: value}
        before = self.definition(flag)
        if isinstance(before, PyCallOp) and before.function == "not":
            [argument] = before.arguments
            if isinstance(argument, Value) and argument.type == BOOL and argument not in self.constants:
                facts[argument] = not value
        return facts

    @contextmanager
    def _assuming(self, facts: Mapping[Value, Any]) -> Generator[None]:
        self.constants.update(facts)
        yield
        for value in facts:
            del self.constants[value]

    def _inline(self, op: Op, region: Block, first: Sequence[Held] = ()) -> None:
        """Put a region in the place of ``op``, which runs it once; its parameters are given already.

        ``first`` are the results of ``op`` before those that the region yields.
        """
        self._visit_all(region.ops[:-1])
        end = region.terminator.substitute(self.replaced)
        if self.ended:
            self.forget((end,))
        elif isinstance(end, YieldOp | ConditionOp):
            self.forget((end,))
            for result, value in zip(op.results, (*first, *end.values), strict=True):
                self._give(result, self._resolve(value) if isinstance(value, Value) else value, op.location)
        else:
            self.visit(end)

    def _give(self, place: Value, held: Held, location: Location | None) -> None:
        """Let ``held`` stand for ``place``, which no op gives any more."""
        if isinstance(held, Value):
            self.stand_for(place, held)
        elif self.uses[place]:
            self.define(place, held, location)

    def _emit_joined(self, op: CondOp, rewritten: Op) -> None:
        """Emit a conditional without the results that are the same whichever arm runs."""
        assert isinstance(rewritten, CondOp)
        ends = [region.terminator for region in rewritten.regions]
        rows = [end.values for end in ends if isinstance(end, YieldOp)]
        self._emit_same(op, rewritten, rewritten.results, rows, op.flag)

    def _emit_same(
        self, op: Op, rewritten: Op, results: Sequence[Value], rows: Sequence[Sequence[Held]], flag: Held = None
    ) -> None:
        """Emit ``rewritten`` without those of ``results`` that are the same in all ``rows``.

        Where they are true in the first row and false in the second, ``flag`` stands for them, if there is one.
        """
        inside = {value for inner in walk(rewritten.regions) for value in inner.results}
        same: dict[Value, Held] = {}
        for result, *values in zip(results, *rows, strict=True) if rows else ():
            is_flag = {_key(value) for value in values} == {_key(True), _key(False)} and values[0] is True
            if is_flag and flag is not None:
                same[result] = flag
            elif len({_key(value) for value in values}) == 1 and values[0] not in inside:
                same[result] = values[0]
        self._emit_without(rewritten, set(same))
        for result, held in same.items():
            self._give(result, held, op.location)

    def _emit_without(self, op: Op, gone: set[Value]) -> None:
        """Emit ``op`` without the results and carried values in ``gone``."""
        rest = trimmed(op, lambda value: value not in gone)
        if rest is not op:
            for one in (op, *(region.terminator for region in op.regions)):
                self.uses.subtract(one.operands)
            for one in (rest, *(region.terminator for region in rest.regions)):
                self.uses.update(one.operands)
        self.emit(rest)

    def _ends_at_once(self, op: LoopOp) -> bool:
        """Return True if the condition is false at first. Host calls stay: they have the round in their ids."""
        end = op.condition.terminator
        if not isinstance(end, ConditionOp):
            return False
        known: dict[Value, Any] = {}
        for parameter, value in zip(op.condition.parameters, op.initial, strict=True):
            if not isinstance(value, Value):
                known[parameter] = value
        for inner in op.condition.ops:
            if isinstance(inner, PyCallOp):
                arguments = [self._known(argument, known) for argument in inner.arguments]
                if not any(isinstance(argument, Value) for argument in arguments):
                    folded = fold_call(inner.function, arguments, inner.keywords, inner.results[0].type)
                    if folded is not None:
                        known[inner.results[0]] = folded.value
        if self._known(end.flag, known) is not False:
            return False
        return not any(isinstance(inner, HostCallOp) for inner in walk((op.condition,)))

    def _known(self, held: Held, known: Mapping[Value, Any]) -> Held:
        return known.get(held, self._resolve(held)) if isinstance(held, Value) else held

    def _resolve(self, value: Value) -> Held:
        """The value or the literal that stands for ``value`` by now."""
        value = self.replaced.get(value, value)
        return self.constants.get(value, value)


def _key(held: Held) -> object:
    return held if isinstance(held, Value) else exact_key(held)


# Conditions on one flag


def with_merged_conditions(block: Block) -> Block:
    """``block`` with each such condition in the arms of the next one; itself if there is none.

    Nothing may be between the two, so that all ops keep their order. Recursion is as deep as regions are nested.
    """
    rewritten = [with_regions(op, [with_merged_conditions(region) for region in op.regions]) for op in block.ops]
    uses: Counter[Value] | None = None
    ops: list[Op] = []
    for op in rewritten:
        before = ops[-1] if ops else None
        if isinstance(op, CondOp) and isinstance(before, CondOp) and before.flag == op.flag:
            uses = uses or _uses_in([Block((), tuple(rewritten))])
            merged = _merged(before, op, uses)
            if merged is not None:
                ops[-1] = merged
                continue
        ops.append(op)
    return with_ops(block, ops)


def _merged(first: CondOp, second: CondOp, uses: Counter[Value]) -> CondOp | None:
    inside = _uses_in(second.regions)
    if any(uses[result] != inside[result] for result in first.results):
        return None
    arms: list[Block] = []
    for before, after in zip(first.regions, second.regions, strict=True):
        end = before.terminator
        if not isinstance(end, YieldOp):
            arms.append(before)
            continue
        given = dict(zip(first.results, end.values, strict=True))
        used = _uses_in([after])
        places = {result: held for result, held in given.items() if isinstance(held, Value)}
        if any(used[result] for result in given.keys() - places.keys()):
            return None  # a literal can't be an operand of every op
        arms.append(Block((), (*before.ops[:-1], *[substituted(op, places) for op in after.ops])))
    return dataclasses.replace(second, id=first.id, probability=first.probability, then=arms[0], otherwise=arms[1])


def _uses_in(regions: Sequence[Block]) -> Counter[Value]:
    return Counter(operand for op in walk(regions) for operand in op.operands)
