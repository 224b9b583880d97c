"""The cache use of requests over time, for upper bounds, and a `SequenceMemory` that records it."""

from collections.abc import Sequence as Sequences
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.cache.eviction import Eviction
from lmc.cache.memory import SequenceMemory
from lmc.cache.node import Tokens, path_to_root
from lmc.cache.sequence import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One admission of a request, from the event at which it got its pages to that at which it gave them back.

    `tokens` are those that it left in the tree at its end: what it came with, and what it generated but for the last
    token, whose keys and values are never computed. It came with the first `prompt_length` of them: the prompt, and
    where it is `readmitted` after a preemption also what it had generated before. Running requests held the first
    `shared` of these in the tree at its start; so they were there whatever the eviction. `cached` of them were found
    there, by the eviction of the simulation (up to `prompt_length`: the last row is computed again for its logits).
    A use that was preempted while its prompt was computed has fewer tokens at its end than it came with.
    """

    tokens: Tokens
    prompt_length: int
    start: int
    end: int
    readmitted: bool
    shared: int
    cached: int


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Uses by their start, over events `0 … n-1`: each is the start or end of one use, so `n` is twice their number.

    `pages_in_use[t]` is the most pages (each counted once) that running requests held at any moment from event `t` to
    just before event `t + 1`, int64. All others are free, or there for the cache to keep what it wants.
    """

    uses: tuple[Use, ...]
    pages_in_use: NDArray[np.int64]


class _Admission(NamedTuple):
    start: int
    length: int
    shared: int
    cached: int
    readmitted: bool


class RecordingMemory(SequenceMemory):
    """Decides nothing of its own: what a scheduler does with it is what it would do without the record."""

    def __init__(self, num_pages: int, *, scratch_page: int, eviction: Eviction | None = None) -> None:
        super().__init__(num_pages, scratch_page=scratch_page, eviction=eviction)
        self._admissions: dict[Sequence, _Admission] = {}
        self._uses: list[Use] = []
        self._pages_in_use: list[int] = []

    def try_admit(self, sequence: Sequence, *, headroom: int) -> bool:
        readmitted = sequence.cached_tokens is not None
        if not super().try_admit(sequence, headroom=headroom):
            return False
        assert sequence.node is not None
        # One pin is its own; where there are more, others hold it too.
        shared = sum(node.length for node in path_to_root(sequence.node) if node.pin_count > 1)
        start = len(self._pages_in_use)
        self._admissions[sequence] = _Admission(start, sequence.length, shared, sequence.computed, readmitted)
        self._pages_in_use.append(self._in_use())
        return True

    def grow(self, sequence: Sequence, length: int) -> None:
        super().grow(sequence, length)
        if sequence in self._admissions:  # else it is being admitted: what it gets belongs to that event
            self._pages_in_use[-1] = max(self._pages_in_use[-1], self._in_use())

    def try_grow(self, sequences: Sequences[Sequence]) -> bool:
        if not super().try_grow(sequences):
            return False
        self._pages_in_use[-1] = max(self._pages_in_use[-1], self._in_use())
        return True

    def discard(self, sequence: Sequence) -> None:
        admission = self._admissions.pop(sequence, None)
        if admission is None:
            return
        tokens = sequence.tokens[: sequence.shared].copy()
        super().discard(sequence)
        end = len(self._pages_in_use)
        start, length, shared, cached, readmitted = admission
        self._uses.append(Use(tokens, length, start, end, readmitted, shared, cached))
        self._pages_in_use.append(self._in_use())

    def timeline(self) -> Timeline:
        """Return the recorded timeline, once nothing runs any more."""
        uses = sorted(self._uses, key=lambda use: use.start)
        return Timeline(tuple(uses), np.array(self._pages_in_use, dtype=np.int64))

    def _in_use(self) -> int:
        return self.pool.num_pages - self.available
