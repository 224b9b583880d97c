"""The instructions of a body: what each op waits for, and the round of model calls it belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.backend.plan import Body, Instruction
from lmc.ir.analysis.ordering import Objects, objects_of, waits_of
from lmc.ir.core import Block, Op
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp


def instructions_of(block: Block) -> tuple[Instruction, ...]:
    """The instructions of a function's body, and in them those of its regions."""
    return _instructions(block, objects_of(block.ops))


def _instructions(block: Block, objects: Objects) -> tuple[Instruction, ...]:
    """Recursion is as deep as regions are nested, which the verifier has bounded."""
    waits = waits_of(block.ops, objects)
    bodies = [
        tuple(Body(region.parameters, _instructions(region, objects)) for region in op.regions) for op in block.ops
    ]
    found: list[Instruction] = []
    for op, needed, inner in zip(block.ops, waits, bodies, strict=True):
        found.append(Instruction(op, needed, _wave(op, [found[index] for index in needed]), inner))
    return tuple(found)


def _wave(op: Op, needed: Sequence[Instruction]) -> int:
    """Its ``wave`` attribute where a pass has set it, else the number of calls on the longest way to it."""
    planned = op.wave if isinstance(op, SamplingOp | SelectOp) else None
    if planned is not None:
        return planned
    return max((entry.wave + entry.rounds for entry in needed), default=0)
