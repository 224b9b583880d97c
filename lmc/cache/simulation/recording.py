"""A `SequenceMemory` that writes down who held pages when."""

from collections.abc import Sequence as Sequences
from typing import NamedTuple

import numpy as np

from lmc.cache.eviction import Eviction
from lmc.cache.memory import SequenceMemory
from lmc.cache.node import path_to_root
from lmc.cache.sequence import Sequence
from lmc.cache.simulation.timeline import Timeline, Use


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
