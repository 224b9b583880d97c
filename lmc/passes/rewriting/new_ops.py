"""New ops and names for the values they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from lmc.ir.core import Block, Op, Value, walk
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
