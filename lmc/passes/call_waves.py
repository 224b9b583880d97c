"""In which wave of model calls each op of a function runs, counted over all blocks."""

from __future__ import annotations

from collections.abc import Sequence

from lmc.ir.core import Block, Op
from lmc.ir.ops import HostCallOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.ordering import objects_of, waits_of
from lmc.ir.regions import RegionOp


class CallWaves:
    """Waves as a plan counts them: those that plan-fork-join has set, else the calls on the longest way to an op.

    ``wave[op]`` counts from the beginning of the function, as if each region ran once, ``length[op]`` is how many waves
    the op takes, ``start[block]`` the wave in which a block begins. ``asking`` are the ops that wait for a model or a
    tool, themselves or in their regions. Linear; recursion is as deep as regions are nested.
    """

    def __init__(self, body: Block) -> None:
        self.wave: dict[Op, int] = {}
        self.length: dict[Op, int] = {}
        self.start: dict[Block, int] = {}
        self.asking: set[Op] = set()
        self._objects = objects_of(body.ops)
        self._measure(body)
        self._place(body, 0)

    def _measure(self, block: Block) -> int:
        """Return how many waves a block takes. Places are relative to its beginning so far."""
        count = 0
        for op, needed in zip(block.ops, waits_of(block.ops, self._objects), strict=True):
            inner = [self._measure(region) for region in op.regions]
            if isinstance(op, RegionOp):
                self.length[op] = max(inner, default=0) if op.EXCLUSIVE else sum(inner)
            else:
                self.length[op] = int(op.billable)
            planned = op.wave if isinstance(op, SamplingOp | SelectOp) else None
            earlier = (block.ops[index] for index in needed)
            wave = max((self.wave[each] + self.length[each] for each in earlier), default=0)
            self.wave[op] = wave if planned is None else planned
            count = max(count, self.wave[op] + self.length[op])
            self._spread(op, inner)
            if op.billable or isinstance(op, PrefillOp | HostCallOp) or self._asks_inside(op):
                self.asking.add(op)
        return count

    def _asks_inside(self, op: Op) -> bool:
        return any(inner in self.asking for region in op.regions for inner in region.ops)

    def _spread(self, op: Op, counts: Sequence[int]) -> None:
        """Regions of which each runs follow each other."""
        at = 0
        for region, count in zip(op.regions, counts, strict=True):
            self.start[region] = at
            if isinstance(op, RegionOp) and not op.EXCLUSIVE:
                at += count

    def _place(self, block: Block, start: int) -> None:
        self.start[block] = start
        for op in block.ops:
            self.wave[op] += start
            for region in op.regions:
                self._place(region, self.wave[op] + self.start[region])
