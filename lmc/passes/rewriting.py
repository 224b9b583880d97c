"""New ops with fresh names, and ops with regions without their unused results."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, RaceOp, TryOp, YieldOp
from lmc.ir.errors import Location
from lmc.ir.rewriter import with_regions

OpType = TypeVar("OpType", bound=Op)


def make_op(kind: type[OpType], results: Sequence[Value], location: Location | None, **fields: Any) -> OpType:
    """An op of class ``kind``; ``fields`` are those that the class declares."""
    return kind(results=tuple(results), location=location, **fields)


def with_ops(block: Block, ops: Sequence[Op]) -> Block:
    """The block with other ops; itself where they are the same objects."""
    if len(ops) == len(block.ops) and all(new is old for new, old in zip(ops, block.ops, strict=True)):
        return block
    return Block(block.parameters, tuple(ops))


def substituted(op: Op, places: Mapping[Value, Value]) -> Op:
    """The op with other operands, in its regions too. Recursion is as deep as regions are nested."""
    regions = [with_ops(region, [substituted(inner, places) for inner in region.ops]) for region in op.regions]
    return with_regions(op.substitute(places), regions)


class FreshNames:
    """Gives names that no value of ``block`` has, the same ones for the same block."""

    def __init__(self, block: Block) -> None:
        self._names = {value.name for value in block.parameters}
        for op in walk((block,)):
            self._names.update(value.name for value in op.results)
            self._names.update(value.name for region in op.regions for value in region.parameters)
        self._suffixes: dict[str, int] = {}

    def fresh(self, wish: str) -> str:
        """``wish``, or ``wish_1``, ``wish_2`` … where it is taken."""
        name = wish
        while name in self._names:
            self._suffixes[wish] = self._suffixes.get(wish, 0) + 1
            name = f"{wish}_{self._suffixes[wish]}"
        self._names.add(name)
        return name


IsNeeded = Callable[[Value], bool]
_Item = TypeVar("_Item")


def trimmed(op: Op, is_needed: IsNeeded) -> Op:
    """``op`` without the results that are not needed, and without what its regions compute for them alone.

    A loop loses what it carries too: a parameter of its condition with the value that it begins with and what the body
    yields for it, a result with its parameter of the body. A result that is needed stands for its parameter. The first
    result of a race stays, and so do the first two of a ``cf.try``.
    """
    if isinstance(op, LoopOp):
        return _trimmed_loop(op, is_needed)
    if not isinstance(op, CondOp | MapOp | RaceOp | TryOp):
        return op
    kept = [is_needed(value) for value in op.results]
    if isinstance(op, RaceOp):
        kept[0] = True
    if isinstance(op, TryOp):
        kept[:2] = [True, True]
    if all(kept):
        return op
    if isinstance(op, TryOp):
        body = _yielding(op.body, kept[2:])
        fallback = _chosen(op.fallback, kept[2:])
        return dataclasses.replace(op, results=_chosen(op.results, kept), fallback=fallback, body=body)
    regions = {name: _yielding(getattr(op, name), kept) for name in op.REGION_FIELDS}
    return dataclasses.replace(op, results=_chosen(op.results, kept), **regions)


def _trimmed_loop(op: LoopOp, is_needed: IsNeeded) -> LoopOp:
    carried = [is_needed(value) for value in op.condition.parameters]
    given = [is_needed(one) or is_needed(other) for one, other in zip(op.body.parameters, op.results, strict=True)]
    if all(carried) and all(given):
        return op
    condition = Block(_chosen(op.condition.parameters, carried), op.condition.ops)
    if isinstance(condition.terminator, ConditionOp):
        condition = _ending(condition, values=_chosen(condition.terminator.values, given))
    body = _yielding(Block(_chosen(op.body.parameters, given), op.body.ops), carried)
    return dataclasses.replace(
        op,
        results=_chosen(op.results, given),
        initial=_chosen(op.initial, carried),
        condition=condition,
        body=body,
    )


def _yielding(block: Block, kept: Sequence[bool]) -> Block:
    """The block with only those of the values that it yields, if it does."""
    end = block.terminator
    return _ending(block, values=_chosen(end.values, kept)) if isinstance(end, YieldOp) else block


def _ending(block: Block, **fields: Any) -> Block:
    end: Op = dataclasses.replace(block.terminator, **fields)
    return Block(block.parameters, (*block.ops[:-1], end))


def _chosen(items: Sequence[_Item], kept: Sequence[bool]) -> tuple[_Item, ...]:
    return tuple(item for item, keep in zip(items, kept, strict=True) if keep)
