"""Values of a program that differ from row to row, or from one use of a call to another."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import HostCallOp, LocalCallOp, SamplingOp
from lmc.ir.dialects.region_ops import CondOp, MapOp, RaceOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.module import Module
from lmc.ir.types import ANY, ListType


class RowInputs:
    """The inputs of the rows so far: their first values, and the names of those that differ."""

    def __init__(self) -> None:
        self.first: dict[str, Any] = {}
        self.differing: set[str] = set()

    def add(self, inputs: Mapping[str, Any]) -> None:
        """Add the inputs of a row."""
        for name, value in inputs.items():
            if name not in self.first:
                self.first[name] = value
            elif name not in self.differing and self.first[name] != value:
                self.differing.add(name)


def differing_values(module: Module, names: AbstractSet[str], *, elements_differ: bool) -> set[Value]:
    """Return the values that depend on the inputs ``names``, on time, or on chance.

    Greedy calls of a model answer equal prompts alike, and pure host functions equal arguments. ``elements_differ``:
    the elements of a list and the rounds of a loop differ, too, even if they are the same in all rows.
    """
    body = module.main.body
    differing = {value for value in body.parameters if value.name in names}
    _add_block(body, differing, elements_differ=elements_differ)
    return differing


def _add_block(block: Block, differing: set[Value], *, elements_differ: bool) -> None:
    for op in block.ops:
        if isinstance(op, RegionOp):
            _add_regions(op, differing, elements_differ=elements_differ)
        elif _differs_itself(op) or not differing.isdisjoint(op.operands):
            differing.update(op.results)
            if isinstance(op, LocalCallOp | HostCallOp):  # what they put into an object differs
                differing.update(
                    value for value in op.operands if value.type == ANY or isinstance(value.type, ListType)
                )


def _differs_itself(op: Op) -> bool:
    if isinstance(op, SamplingOp):
        return not op.sampling.greedy
    return isinstance(op, HostCallOp) and op.effect is not Effect.PURE


def _add_regions(op: RegionOp, differing: set[Value], *, elements_differ: bool) -> None:
    """Add the values of an op with regions: those of each element and arm exactly, those of loops as a whole."""
    if isinstance(op, MapOp | RaceOp):
        pairs = zip(op.lists, op.body.parameters[1:], strict=True)
        differing.update(place for value, place in pairs if elements_differ or value in differing)
        if elements_differ:
            differing.update(op.body.parameters[:1])
        whole = not differing.isdisjoint(op.lists)
    elif isinstance(op, CondOp):
        whole = op.flag in differing
    else:
        whole = not differing.isdisjoint((*op.operands, *op.free_values))
        whole = whole or any(_differs_itself(inner) for inner in walk(op.regions))
        if whole or elements_differ:
            differing.update(value for region in op.regions for value in region.parameters)
    for region in op.regions:
        _add_block(region, differing, elements_differ=elements_differ)
        whole = whole or not differing.isdisjoint(region.terminator.operands)
    if whole:
        differing.update(op.results)
