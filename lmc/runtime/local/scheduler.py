"""Which rows of which sequences the next step computes: continuous batching with chunked prefill.

First come, first served. Every decoding sequence advances by one token in every step; beside that a step computes up to
`prefill_tokens` tokens of prompts. When pages run out, the youngest sequence goes back to the queue. Its computed
tokens stay in the radix tree, so it goes on from there unless they have to be evicted too. The oldest sequence is never
preempted, so it always finishes, and nothing starves.
"""

from collections import OrderedDict

from lmc.cache import InvariantError
from lmc.runtime.local.memory import SequenceMemory, Slice
from lmc.runtime.local.sequence import Sequence

GROWTH_RESERVE = 16  # pages kept free for each running sequence at admission, so that few are preempted soon after


class Scheduler:
    """Holds the waiting and the running sequences; running ones hold pages, waiting ones do not."""

    def __init__(self, memory: SequenceMemory, *, prefill_tokens: int, max_running: int) -> None:
        self.memory = memory
        self.preemptions = 0
        self._prefill_tokens = prefill_tokens
        self._max_running = max_running
        # By arrival: whoever is admitted came before all that wait, so one that is preempted belongs to the front.
        self._waiting: OrderedDict[Sequence, None] = OrderedDict()
        self._running: list[Sequence] = []
        self._arrivals = 0

    @property
    def running(self) -> tuple[Sequence, ...]:
        """Sequences that hold pages."""
        return tuple(self._running)

    @property
    def has_work(self) -> bool:
        """Whether `next_step` would find anything to do."""
        return bool(self._waiting or self._running)

    def add(self, sequence: Sequence) -> None:
        """Put a new sequence at the end of the queue."""
        self._arrivals += 1
        sequence.arrival = self._arrivals
        self._waiting[sequence] = None

    def finish(self, sequence: Sequence) -> None:
        """Take a sequence out and keep what it computed in the tree."""
        self._remove(sequence)
        self.memory.retire(sequence)

    def drop(self, sequence: Sequence) -> None:
        """Take a sequence out and forget what only it computed."""
        self._remove(sequence)
        self.memory.discard(sequence)

    def hold(self, sequence: Sequence) -> int:
        """Take a sequence out and hold its prefix in the tree (see `SequenceMemory.hold`)."""
        self._remove(sequence)
        return self.memory.hold(sequence)

    def next_step(self) -> list[Slice]:
        """The rows to compute next; the caller computes all of them and then moves each `computed` to the slice's end.

        A slice may be empty: a prompt without wanted logits that is cached to its end.
        """
        self._running.sort(key=lambda each: each.arrival)
        slices = [rows for sequence in self.running if sequence.is_decoding for rows in self._decode(sequence)]
        budget = self._prefill_tokens
        for sequence in self._running:
            if not sequence.is_decoding and budget:
                budget -= self._prefill(sequence, budget, slices)
        while budget and self._admit_next():
            budget -= self._prefill(self._running[-1], budget, slices)
        return slices

    def _decode(self, sequence: Sequence) -> list[Slice]:
        """The next token of a sequence, or nothing where it had to be preempted."""
        while sequence.node is not None and sequence.page_count < sequence.length:
            if self.memory.available:
                self.memory.grow(sequence)
            else:
                self._make_room()
        return [self.memory.take_rows(sequence, 1)] if sequence.node is not None else []

    def _prefill(self, sequence: Sequence, budget: int, slices: list[Slice]) -> int:
        count = min(budget, sequence.pending)
        slices.append(self.memory.take_shared_rows(sequence, count))
        return count

    def _admit_next(self) -> bool:
        """Start the first waiting sequence if it fits."""
        while self._waiting and len(self._running) < self._max_running:
            first = next(iter(self._waiting))
            if self.memory.try_admit(first, headroom=self._headroom(first)):
                del self._waiting[first]
                self._running.append(first)
                return True
            if self._running:
                return False
            self._release_pin()
        return False

    def _headroom(self, newcomer: Sequence) -> int:
        if not self._running:
            return 0
        return sum(min(each.remaining_capacity, GROWTH_RESERVE) for each in (*self._running, newcomer))

    def _make_room(self) -> None:
        """Preempt the youngest sequence; with a single one left, give up a pinned prefix instead."""
        if len(self._running) == 1:
            self._release_pin()
            return
        youngest = max(self._running, key=lambda each: each.arrival)
        self._running.remove(youngest)
        self.memory.retire(youngest)
        self._waiting[youngest] = None
        self._waiting.move_to_end(youngest, last=False)
        self.preemptions += 1

    def _release_pin(self) -> None:
        if not self.memory.release_oldest_held():
            raise InvariantError("a request that was checked to fit the pool does not fit")

    def _remove(self, sequence: Sequence) -> None:
        if sequence.node is not None:
            self._running.remove(sequence)
        else:
            del self._waiting[sequence]
