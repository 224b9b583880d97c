"""List scheduling of model calls in rounds of limited width."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from lmc.ir.analysis import longest_paths
from lmc.ir.core import Op
from lmc.ir.dialects.core_ops import SampleOp
from lmc.ir.dialects.regions import RegionOp


def rounds_of(op: Op) -> int:
    """Return how many rounds of model calls the op itself takes; those of its regions are not counted."""
    return int(op.billable and not isinstance(op, RegionOp))


def weight_of(op: Op) -> int:
    """Return how many requests of the op run at once; one for an op with regions, whose number is unknown."""
    return op.n if isinstance(op, SampleOp) else 1


def limited_rounds(
    ops: Sequence[Op],
    lengths: Sequence[int],
    waits: Sequence[Sequence[int]],
    width: int,
    urgency: Sequence[float] | None = None,
) -> list[int]:
    """As ``lmc.ir.analysis.earliest_starts`` where at most ``width`` requests begin in a round.

    List scheduling: of the calls that are ready, those with the longest way to the end go first (Graham 1969, Hu 1961):
    in rounds, or by ``urgency``. One call of more than ``width`` requests has a round of its own.
    """
    schedule = _Schedule(ops, lengths, waits, longest_paths(lengths, waits) if urgency is None else urgency)
    schedule.run(width)
    return schedule.rounds


class _Schedule:
    """A list scheduler: ``rounds[i]`` is the first round in which op i can run, for a call the one in which it does."""

    def __init__(
        self,
        ops: Sequence[Op],
        lengths: Sequence[int],
        waits: Sequence[Sequence[int]],
        urgency: Sequence[float],
    ) -> None:
        self.rounds = [0] * len(ops)
        self._ops = ops
        self._lengths = lengths
        self._urgency = urgency
        self._missing = [len(needed) for needed in waits]
        self._followers: list[list[int]] = [[] for _ in ops]
        for index, needed in enumerate(waits):
            for earlier in needed:
                self._followers[earlier].append(index)
        self._free = [index for index, count in enumerate(self._missing) if not count]
        self._ready: list[tuple[float, int]] = []
        self._running: list[tuple[int, int]] = []

    def run(self, width: int) -> None:
        """Fill round after round with at most ``width`` requests."""
        current = 0
        while self._free or self._ready or self._running:
            while self._running and self._running[0][0] <= current:
                self._finish(heapq.heappop(self._running)[1], current)
            self._settle()
            room = width
            while self._ready and (room == width or weight_of(self._ops[self._ready[0][1]]) <= room):
                _, index = heapq.heappop(self._ready)
                room -= weight_of(self._ops[index])
                self.rounds[index] = current
                heapq.heappush(self._running, (current + self._lengths[index], index))
            current += 1

    def _settle(self) -> None:
        """Finish what is no call; the calls that are free now wait for room."""
        while self._free:
            index = self._free.pop()
            if self._lengths[index]:
                heapq.heappush(self._ready, (-self._urgency[index], index))
            else:
                self._finish(index, self.rounds[index])

    def _finish(self, index: int, available: int) -> None:
        """Op ``index`` is finished before round ``available``."""
        for follower in self._followers[index]:
            self.rounds[follower] = max(self.rounds[follower], available)
            self._missing[follower] -= 1
            if not self._missing[follower]:
                self._free.append(follower)
