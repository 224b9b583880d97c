"""What waits for what, in rounds of model calls."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from lmc.ir.core import Op
from lmc.ir.ops import SampleOp


def weight_of(op: Op) -> int:
    """How many requests of the op run at once."""
    return op.n if isinstance(op, SampleOp) else 1


def earliest_rounds(ops: Sequence[Op], waits: Sequence[Sequence[int]]) -> list[int]:
    """For each op the number of model calls on the longest way to it."""
    rounds: list[int] = []
    for needed in waits:
        rounds.append(max((rounds[index] + ops[index].billable for index in needed), default=0))
    return rounds


def calls_after(ops: Sequence[Op], waits: Sequence[Sequence[int]]) -> list[int]:
    """For each op the number of model calls on the longest way from it to the end, itself included."""
    after = [0] * len(ops)
    for index in range(len(ops) - 1, -1, -1):
        after[index] += ops[index].billable
        for earlier in waits[index]:
            after[earlier] = max(after[earlier], after[index])
    return after


def limited_rounds(ops: Sequence[Op], waits: Sequence[Sequence[int]], width: int) -> list[int]:
    """As ``earliest_rounds`` where at most ``width`` requests run in a round.

    List scheduling: of the calls that are ready, those with the longest way to the end go first (Graham 1969, Hu 1961).
    One call of more than ``width`` requests has a round of its own.
    """
    schedule = _Schedule(ops, waits)
    schedule.run(width)
    return schedule.rounds


class _Schedule:
    """A list scheduler: ``rounds[i]`` is the first round in which op i can run, for a call the one in which it does."""

    def __init__(self, ops: Sequence[Op], waits: Sequence[Sequence[int]]) -> None:
        self.rounds = [0] * len(ops)
        self._ops = ops
        self._urgency = calls_after(ops, waits)
        self._missing = [len(needed) for needed in waits]
        self._followers: list[list[int]] = [[] for _ in ops]
        for index, needed in enumerate(waits):
            for earlier in needed:
                self._followers[earlier].append(index)
        self._free = [index for index, count in enumerate(self._missing) if not count]
        self._ready: list[tuple[int, int]] = []

    def run(self, width: int) -> None:
        """Fill round after round with at most ``width`` requests."""
        current = 0
        while self._free or self._ready:
            self._settle()
            room = width
            while self._ready and (room == width or weight_of(self._ops[self._ready[0][1]]) <= room):
                _, index = heapq.heappop(self._ready)
                room -= weight_of(self._ops[index])
                self.rounds[index] = current
                self._finish(index, current + 1)
            current += 1

    def _settle(self) -> None:
        """Finish what is no call; the calls that are free now wait for room."""
        while self._free:
            index = self._free.pop()
            if self._ops[index].billable:
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
