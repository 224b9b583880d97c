"""The scheduler of steps: continuous batching with chunked prefill.

Lanes take turns at admission (`fair_queue.py`); within one, its order decides (`order.py`). Every decoding sequence
advances by one token in every step; beside that a step computes up to `prefill_tokens` tokens of prompts and drafts;
drafts take at most half where prompts wait.

Sequences are preempted for two reasons; their computed tokens stay in the radix tree, so they resume from there unless
these are evicted too. When pages run out, of the lane that runs most the sequence admitted last goes back to the front
of the queue. When no place is free, or no pages for another prompt, and a lane waits that runs less than a quarter of
what another one of no higher priority runs, then that one gives up the place of its last sequence, one a step: so one
client can't keep all places for as long as it likes. A lane that is alone is never interrupted. The one admitted first
is never preempted, so it always finishes, and nothing starves.
"""

from collections import Counter
from collections.abc import Callable

from lmc.cache.expected import Expectation
from lmc.cache.fair_queue import FairQueue, lane_key
from lmc.cache.memory import SequenceMemory, Slice
from lmc.cache.order import ByRank, LaneOrder
from lmc.cache.pool import InvariantError
from lmc.cache.sequence import Obstacle, Sequence

GROWTH_RESERVE = 16  # pages kept free for a running sequence at the least, so that few are preempted soon


class Scheduler:
    """Holds the waiting and the running sequences; running ones hold pages, waiting ones do not."""

    def __init__(
        self,
        memory: SequenceMemory,
        *,
        prefill_tokens: int,
        max_running: int,
        order: Callable[[], LaneOrder] = ByRank,
    ) -> None:
        self.memory = memory
        self.preemptions = 0
        self._steps = 0
        self._obstacle: Obstacle | None = None
        self._is_short = False  # of pages for the one that waits
        self._prefill_tokens = prefill_tokens
        self._max_running = max_running
        self._waiting = FairQueue(order)
        self._expectations: dict[Sequence, Expectation | None] = {}
        # By admission: whoever is preempted comes back before anyone new, so the order is kept by appending.
        self._running: dict[Sequence, None] = {}

    @property
    def running(self) -> tuple[Sequence, ...]:
        """Sequences that hold pages, in the order of their admission."""
        return tuple(self._running)

    @property
    def waiting_count(self) -> int:
        """The number of sequences that wait."""
        return len(self._waiting)

    @property
    def has_work(self) -> bool:
        """True if `next_step` would find anything to do."""
        return bool(self._waiting or self._running)

    def add(self, sequence: Sequence) -> None:
        """Let a new sequence wait in its lane."""
        sequence.queued = self._steps
        self._waiting.add(sequence)
        self._expect(sequence)

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out and keep what it computed in the tree."""
        self._remove(sequence)
        self.memory.retire(sequence)

    def drop(self, sequence: Sequence) -> None:
        """Take a sequence out; rows of it that are in the tree stay there, the others are forgotten."""
        self._remove(sequence)
        self.memory.discard(sequence)

    def purge(self, sequence: Sequence) -> None:
        """Remove from the tree what was computed for a sequence that was dropped because its results are no numbers.

        Running sequences that use any of it go back to the front of the queue, in their order, to be computed again.
        """
        branch = self.memory.branch_of(sequence)
        if branch is None:
            return
        for user in reversed([each for each in self._running if self.memory.uses(each, branch)]):
            del self._running[user]
            self._waiting.put_back(user)
            self._expect(user)
            self.memory.discard(user)
        self.memory.forget(branch)

    def hold(self, sequence: Sequence) -> int:
        """Take a sequence out and hold its prefix in the tree (see `SequenceMemory.hold`)."""
        self._remove(sequence)
        return self.memory.hold(sequence)

    def next_step(self) -> list[Slice]:
        """The rows to compute next; the caller computes all of them and then moves each `computed` to the slice's end.

        A slice may be empty: a prompt without wanted logits that is cached to its end.
        """
        self._steps += 1
        self._give_way()
        growing = [sequence for sequence in self._running if sequence.settled > sequence.page_count]
        if growing and not self.memory.try_grow(growing):
            for sequence in growing:
                self._make_room_for(sequence)
        slices: list[Slice] = []
        decoding: list[Sequence] = []
        prefills: list[Sequence] = []
        for sequence in self._running:
            (decoding if sequence.is_decoding else prefills).append(sequence)
        budget = self._prefill_tokens
        drafts = budget // 2 if prefills or self._waiting else budget
        for sequence in decoding:
            drafted = self._decode(sequence, drafts, slices)
            drafts -= drafted
            budget -= drafted
        for sequence in prefills:
            if budget:
                budget -= self._prefill(sequence, budget, slices)
        if self._waiting:
            self._waiting.begin_step()
            self._admit(budget, slices)
        return slices

    def _admit(self, budget: int, slices: list[Slice]) -> None:
        """Start waiting sequences, as long as there is budget for rows of them."""
        if budget and len(self._running) < self._max_running:
            reserve = sum(map(_growth, self._running))
            while budget and (admitted := self._admit_next(reserve)):
                budget -= self._prefill(admitted, budget, slices)
                reserve += _growth(admitted)
        is_full = len(self._running) >= self._max_running
        self._obstacle = "batch" if is_full else "memory" if budget else "budget"
        self._is_short = self._obstacle == "memory" and bool(self._waiting)

    def _give_way(self) -> None:
        """Have a lane give up a place to one that runs less than a quarter as many and can have no other."""
        if not self._is_short and (len(self._running) < self._max_running or not self._waiting):
            return
        running = Counter(map(lane_key, self._running))
        poor = self._waiting.poorest(running)
        if poor is None:
            return
        others = [key for key in running if key[0] <= poor[0] and key[1] != poor[1]]
        rich = max(others, key=running.__getitem__, default=poor)
        if running[rich] >= 4 * (running[poor] + 1):
            self._preempt(
                next(each for each in reversed(self._running) if lane_key(each) == rich), self._waiting.give_back
            )
            self._waiting.favor(poor)

    def _make_room_for(self, sequence: Sequence) -> None:
        """Give each settled token of a sequence a page, if need be by preempting others, or it itself."""
        needed = sequence.settled - sequence.page_count
        while sequence.node is not None and needed > self.memory.available:
            self._make_room()
        if sequence.node is not None and needed > 0:
            self.memory.grow(sequence, sequence.settled)

    def _decode(self, sequence: Sequence, most: int, slices: list[Slice]) -> int:
        """Plan the row of the last token and up to `most` of the draft; these preempt no sequence."""
        drafted = 0
        if sequence.drafted and most:
            length = sequence.settled + min(most, sequence.drafted)
            length = min(length, sequence.page_count + self.memory.available)
            if length > sequence.page_count:
                self.memory.grow(sequence, length)
            drafted = length - sequence.settled
        slices.append(self.memory.take_rows(sequence, 1 + drafted))
        return drafted

    def _prefill(self, sequence: Sequence, budget: int, slices: list[Slice]) -> int:
        count = min(budget, sequence.pending)
        slices.append(self.memory.take_shared_rows(sequence, count))
        return count

    def _admit_next(self, reserve: int) -> Sequence | None:
        """Start the first waiting sequence if it leaves `reserve` pages for the running ones to grow.

        No other passes it by, so a large one does not wait for ever.
        """
        while self._waiting and len(self._running) < self._max_running:
            first = self._waiting.first()
            is_new = first.cached_tokens is None
            if self.memory.try_admit(first, headroom=reserve + _growth(first) if self._running else 0):
                self._running[self._waiting.take()] = None
                self._withdraw(first)
                if is_new and first.queued < self._steps - 1:
                    first.obstacle = self._obstacle
                return first
            if self._running:
                return None
            self._release_pin()
        return None

    def _make_room(self) -> None:
        """Preempt the last of the lane that runs most; with a single one left, give up a pinned prefix instead."""
        if len(self._running) == 1:
            self._release_pin()
            return
        running = Counter(map(lane_key, self._running))
        most = max(running.values())
        youngest = next(each for each in reversed(self._running) if running[lane_key(each)] == most)
        self._preempt(youngest, self._waiting.put_back)

    def _preempt(self, sequence: Sequence, put_back: Callable[[Sequence], None]) -> None:
        del self._running[sequence]
        put_back(sequence)
        self._expect(sequence)
        self.memory.retire(sequence)
        self.preemptions += 1

    def _release_pin(self) -> None:
        if not self.memory.release_oldest_held():
            raise InvariantError("a request that was checked to fit the pool does not fit")

    def _remove(self, sequence: Sequence) -> None:
        if sequence.node is not None:
            del self._running[sequence]
            self._is_short = False
        else:
            self._waiting.remove(sequence)
            self._withdraw(sequence)

    def _expect(self, sequence: Sequence) -> None:
        """Expect the prompt of a waiting sequence: at its rank, or without a plan after all that wait before it."""
        rank = len(self._waiting) if sequence.run is None else sequence.rank
        self._expectations[sequence] = self.memory.expect(
            sequence.settled_tokens, sequence.cache_key, sequence.run, rank
        )

    def _withdraw(self, sequence: Sequence) -> None:
        self.memory.withdraw(self._expectations.pop(sequence))


def _growth(sequence: Sequence) -> int:
    """Pages that a running sequence will probably need beyond those it has."""
    expected = 0 if sequence.expected_length is None else sequence.expected_length - sequence.length
    return min(sequence.remaining_capacity, max(expected, GROWTH_RESERVE))
