"""Waiting sequences, taken in turns by the instances they belong to.

Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995): instances stand in a ring, by the time their first waiting
sequence came. Whoever is in front admits sequences, first come first served, until they used up `QUANTUM` tokens (a
sequence counts with the tokens it may grow to), then goes to the back; what it used too much is subtracted from its
next turn. An instance keeps its turn for thousands of tokens, not for one sequence, because its sequences are those
that share prefixes.

The bound: once an instance waits, each other one admits at most `QUANTUM` tokens and one sequence more before its turn,
however many it asked for. Preempted sequences were admitted before and go first; they do not count again.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

from lmc.cache.sequence import Sequence

QUANTUM = 4096


@dataclass(slots=True)
class _Lane:
    """What waits of one instance, and how many tokens of its turn are left."""

    credit: int = QUANTUM
    sequences: OrderedDict[Sequence, None] = field(default_factory=OrderedDict)


class FairQueue:
    """Adding, removing and finding the next one take constant time, whatever the length."""

    def __init__(self) -> None:
        self._preempted: OrderedDict[Sequence, None] = OrderedDict()
        self._lanes: OrderedDict[int | None, _Lane] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, sequence: Sequence) -> None:
        """Put a new sequence behind all others of its instance."""
        self._lanes.setdefault(sequence.instance, _Lane()).sequences[sequence] = None
        self._length += 1

    def put_back(self, sequence: Sequence) -> None:
        """Put a preempted sequence in front of all; the youngest is preempted first, so they stay in order."""
        self._preempted[sequence] = None
        self._preempted.move_to_end(sequence, last=False)
        self._length += 1

    def first(self) -> Sequence:
        """The sequence whose turn it is. It stays so until it is taken or removed.

        Raises:
            StopIteration: nothing waits.
        """
        if self._preempted:
            return next(iter(self._preempted))
        return next(iter(next(iter(self._lanes.values())).sequences))

    def take(self) -> Sequence:
        """Remove and return the first sequence, and count it in its instance's turn."""
        sequence = self.first()
        if sequence not in self._preempted:
            self._lanes[sequence.instance].credit -= sequence.capacity
        self.remove(sequence)
        self._end_turn()
        return sequence

    def remove(self, sequence: Sequence) -> None:
        """Take out a sequence, wherever it stands."""
        self._length -= 1
        if sequence in self._preempted:
            del self._preempted[sequence]
            return
        lane = self._lanes[sequence.instance]
        del lane.sequences[sequence]
        if not lane.sequences:
            del self._lanes[sequence.instance]

    def _end_turn(self) -> None:
        """Send instances that used up their turn to the back until one stands in front that did not."""
        while self._lanes:
            instance, lane = next(iter(self._lanes.items()))
            if lane.credit > 0:
                return
            lane.credit += QUANTUM
            self._lanes.move_to_end(instance)
