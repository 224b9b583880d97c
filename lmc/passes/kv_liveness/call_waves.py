"""In which wave of model calls each op of a function runs, counted over all blocks."""

from __future__ import annotations

from lmc.ir.core import Block, Op
from lmc.ir.dialects.core_ops import HostCallOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.ordering import objects_of, waits_of


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
        ends: list[int] = []
        for op, needed in zip(block.ops, waits_of(block.ops, self._objects), strict=True):
            length = self._measure_inside(op) if isinstance(op, RegionOp) else int(op.billable)
            planned = op.wave if isinstance(op, (SamplingOp, SelectOp)) else None
            wave = max([ends[index] for index in needed], default=0) if planned is None else planned
            self.wave[op], self.length[op] = wave, length
            ends.append(wave + length)
            if op.billable or isinstance(op, (PrefillOp, HostCallOp)):
                self.asking.add(op)
        return max(ends, default=0)

    def _measure_inside(self, op: RegionOp) -> int:
        """Return how many waves the regions of an op take. Regions that all run follow each other."""
        at = 0
        counts: list[int] = []
        for region in op.regions:
            counts.append(self._measure(region))
            self.start[region] = 0 if op.EXCLUSIVE else at
            at += counts[-1]
        if any(inner in self.asking for region in op.regions for inner in region.ops):
            self.asking.add(op)
        return max(counts, default=0) if op.EXCLUSIVE else at

    def _place(self, block: Block, start: int) -> None:
        self.start[block] = start
        for op in block.ops:
            self.wave[op] += start
            for region in op.regions:
                self._place(region, self.wave[op] + self.start[region])
