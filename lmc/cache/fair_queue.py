"""Waiting sequences, admitted in turns by the lanes they belong to.

A lane is what one client asks for: the instances of one batch run together, or a single request. Lanes of higher
priority go before others. Among those of one priority deficit round robin decides (Shreedhar and Varghese, SIGCOMM
1995): they form a ring, by the time their first waiting sequence came. The front one admits sequences, in the
lane's own order (`order.py`), until they used up `QUANTUM` tokens, then goes to the back; what it used too much is
subtracted from its next turn. A lane keeps its turn for thousands of tokens, not for one sequence, because its
sequences are those that share prefixes.

A sequence counts with the rows that it may have to compute: the tokens it may grow to, less those that it found in the
cache and need not compute again. It counts with `MINIMUM` at the least, however much it found: it takes a slot for a
step all the same, and a stream of what is cached to its end must not be free.

No lane starves. While one waits,

- by *turns*, each lane of its priority that waited already admits less than `QUANTUM` tokens and one sequence more
  before it, and no more than `QUANTUM / MINIMUM` sequences; lanes that come later admit none. All of them have one such
  turn more for each whole `QUANTUM` that the lane itself used beyond its last turn;
- by *aging*, whatever the priorities: a lane without admissions while `AGE` tokens of others were admitted, which are
  no more than `AGE / MINIMUM` sequences, is aged. Of every two sequences one is that of an aged lane, of several the
  one that was served longest ago; so high priorities keep half. A lane is passed by less than `AGE` tokens of others
  and the sequence that completes them, then by one, and by two for each lane that had waited longer than it.

Both hold for the sequence that is first in its lane; in a lane its order decides. Once its turn has come by aging,
no other passes it however large it is: it waits for room, and nothing is admitted.

Sequences that were preempted for want of pages were admitted before and go first; they do not count again.

A lane that runs less than a quarter of what another runs does not wait for its end: `poorest` finds it, the scheduler
has the other give up a place, and `favor` lets the first sequence of the poor one have it, before all others. Who gave
it up goes to the front of its own lane, and does not count again there. Among lanes that run nothing the one whose turn
is next is favored first, so that this starves none: a lane that runs nothing is passed by those before it in the ring.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

from lmc.cache.order import ByRank, LaneOrder
from lmc.cache.sequence import Sequence

QUANTUM = 4096
AGE = 16 * QUANTUM
MINIMUM = 16
"""Tokens that a sequence counts with at the least. A step costs about as much as 80 rows and has several slots."""

LaneKey = tuple[int, Hashable]
"""The priority and the name of a lane."""


def lane_key(sequence: Sequence) -> LaneKey:
    """The lane of a sequence."""
    return sequence.priority, sequence.lane


class _Lane:
    """The waiting sequences of a client, the rest of its turn, and the tokens admitted before it was last served.

    Those that gave up a place are `back`, and go before the `waiting` ones.
    """

    __slots__ = ("back", "credit", "served_at", "waiting")

    def __init__(self, waiting: LaneOrder, now: int) -> None:
        self.back: OrderedDict[Sequence, None] = OrderedDict()
        self.waiting = waiting
        self.credit = QUANTUM
        self.served_at = now

    @property
    def first(self) -> Sequence:
        """The sequence of this lane to admit next."""
        return next(iter(self.back)) if self.back else self.waiting.first


class FairQueue:
    """Waiting sequences. Adding, removing and finding the next one take at most logarithmic time."""

    def __init__(self, order: Callable[[], LaneOrder] = ByRank) -> None:
        self._order = order
        self._preempted: OrderedDict[Sequence, None] = OrderedDict()
        self._lanes: OrderedDict[LaneKey, _Lane] = OrderedDict()  # whoever was served longest ago is first
        self._rings: dict[int, OrderedDict[LaneKey, _Lane]] = {}  # by priority; whose turn it is is first
        self._favored: LaneKey | None = None
        self._length = 0
        self._admitted_tokens = 0
        self._last_was_aged = False

    def __len__(self) -> int:
        return self._length

    def add(self, sequence: Sequence) -> None:
        """Put a new sequence into its lane."""
        self._lane_of(sequence).waiting.add(sequence)
        self._length += 1

    def give_back(self, sequence: Sequence) -> None:
        """Put a sequence that gave up its place in front of its lane; the youngest gives it up first."""
        lane = self._lane_of(sequence)
        lane.back[sequence] = None
        lane.back.move_to_end(sequence, last=False)
        self._length += 1

    def put_back(self, sequence: Sequence) -> None:
        """Put a sequence that was preempted for want of pages in front of all; the last of a lane comes first."""
        self._preempted[sequence] = None
        self._preempted.move_to_end(sequence, last=False)
        self._length += 1

    def poorest(self, running: Mapping[LaneKey, int]) -> LaneKey | None:
        """The lane of the highest priority that waits and runs least, as `running` has it; None if nothing waits."""
        least: LaneKey | None = None
        for key in self._rings[max(self._rings)] if self._rings else ():
            if key not in running:
                return key
            if least is None or running[key] < running[least]:
                least = key
        return least

    def favor(self, key: LaneKey) -> None:
        """Let the first sequence of a lane that waits go before all others, once."""
        self._favored = key

    def begin_step(self) -> None:
        """A step is planned: what was cached may have changed."""
        for lane in self._lanes.values():
            if not lane.waiting.FOLLOWS_CACHE:
                return  # nor do the others
            lane.waiting.begin_step()

    def first(self) -> Sequence:
        """The sequence whose turn it is. It stays so until it is taken or removed, or one with more right comes.

        Raises:
            StopIteration: nothing waits.
        """
        if self._favored is not None:
            return self._lanes[self._favored].first
        if self._preempted:
            return next(iter(self._preempted))
        if (aged := self._aged_lane()) is not None and not self._last_was_aged:
            return aged.first
        return next(iter(self._rings[max(self._rings)].values())).first

    def take(self) -> Sequence:
        """Remove and return the first sequence, and count it in its lane's turn."""
        sequence = self.first()
        if sequence in self._preempted:
            self.remove(sequence)
            return sequence
        key = lane_key(sequence)
        lane = self._lanes[key]
        self._last_was_aged = lane is self._aged_lane() and not self._last_was_aged
        cost = 0 if sequence in lane.back else max(sequence.capacity - sequence.computed, MINIMUM)
        self._favored = None
        lane.credit -= cost
        self._admitted_tokens += cost
        lane.served_at = self._admitted_tokens
        self._lanes.move_to_end(key)
        self.remove(sequence)
        return sequence

    def remove(self, sequence: Sequence) -> None:
        """Take out a sequence, wherever it stands. Raises ``KeyError`` where it does not wait."""
        if sequence in self._preempted:
            del self._preempted[sequence]
            self._length -= 1
            return
        key = lane_key(sequence)
        lane = self._lanes[key]
        if sequence in lane.back:
            del lane.back[sequence]
        else:
            lane.waiting.remove(sequence)
        self._length -= 1
        if not lane.back and not len(lane.waiting):
            if self._favored == key:
                self._favored = None
            del self._lanes[key]
            del self._rings[sequence.priority][key]
            if not self._rings[sequence.priority]:
                del self._rings[sequence.priority]
        self._end_turn(sequence.priority)

    def _lane_of(self, sequence: Sequence) -> _Lane:
        """The lane of a sequence that is to wait; it is made where nothing waits in it."""
        key = lane_key(sequence)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(self._order(), self._admitted_tokens)
            self._rings.setdefault(sequence.priority, OrderedDict())[key] = lane
        return lane

    def _aged_lane(self) -> _Lane | None:
        """The lane that was not served for longest, if that is too long."""
        lane = next(iter(self._lanes.values()))
        return lane if self._admitted_tokens - lane.served_at >= AGE else None

    def _end_turn(self, priority: int) -> None:
        """Send lanes that used up their turn to the back of their ring until the front one has not."""
        ring = self._rings.get(priority)
        while ring:
            key, lane = next(iter(ring.items()))
            if lane.credit > 0:
                return
            lane.credit += QUANTUM
            ring.move_to_end(key)
