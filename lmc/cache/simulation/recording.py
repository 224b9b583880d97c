"""The cache use of requests over time, for upper bounds and views, and a `SequenceMemory` that records it."""

from collections.abc import Sequence as Sequences
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmc.cache.eviction import Eviction
from lmc.cache.memory import SequenceMemory
from lmc.cache.node import RadixNode, Tokens, path_to_root, whole_path
from lmc.cache.pool import PagePool, Pages
from lmc.cache.radix import RadixCache
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


@dataclass(slots=True, eq=False)
class Evicted:
    """Tokens that were evicted: those of a prefix in the tree after the first `kept`."""

    prefix: Tokens
    kept: int


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Uses by their start, over events `0 … n-1`: each is the start or end of one use, so `n` is twice their number.

    `pages_in_use[t]` is the most pages (each counted once) that running requests held at any moment from event `t` to
    just before event `t + 1`, int64. All others are free, or there for the cache to keep what it wants. A token is in
    `evicted` each time that it was.
    """

    uses: tuple[Use, ...]
    pages_in_use: NDArray[np.int64]
    evicted: tuple[Evicted, ...] = ()


class _Admission(NamedTuple):
    start: int
    length: int
    shared: int
    cached: int
    readmitted: bool


class _RecordingCache(RadixCache):
    """Keeps for each node that was cut the prefix that ended there, and how much of it is left."""

    def __init__(self, pool: PagePool, eviction: Eviction) -> None:
        super().__init__(pool, eviction)
        self._cut: dict[RadixNode, Evicted] = {}
        self._regrown: list[Evicted] = []

    @property
    def evicted(self) -> tuple[Evicted, ...]:
        return (*self._regrown, *self._cut.values())

    def _grow_leaf(self, leaf: RadixNode, tokens: Tokens, pages: Pages) -> None:
        if leaf in self._cut:
            self._regrown.append(self._cut.pop(leaf))
        super()._grow_leaf(leaf, tokens, pages)

    def _cut_tail(self, node: RadixNode, count: int) -> int:
        cut = self._cut.get(node)
        if cut is None:
            prefix, _ = whole_path(node)
            cut = self._cut[node] = Evicted(prefix, prefix.size)
        freed = super()._cut_tail(node, count)
        cut.kept -= freed
        return freed


class RecordingMemory(SequenceMemory):
    """Decides nothing of its own: what a scheduler does with it is what it would do without the record."""

    def __init__(self, num_pages: int, *, scratch_page: int, eviction: Eviction | None = None) -> None:
        super().__init__(num_pages, scratch_page=scratch_page, eviction=eviction)
        self._recorded = self.radix = _RecordingCache(self.pool, self.radix.eviction)
        self._admissions: dict[Sequence, _Admission] = {}
        self._uses: list[Use] = []
        self._pages_in_use: list[int] = []

    def try_admit(self, sequence: Sequence, *, headroom: int) -> bool:
        readmitted = sequence.cached_tokens is not None
        if not super().try_admit(sequence, headroom=headroom):
            return False
        assert sequence.node is not None
        # One pin is its own; where there are more, others hold it too.
        shared = sum(node.tokens.size for node in path_to_root(sequence.node) if node.pin_count > 1)
        start = len(self._pages_in_use)
        self._admissions[sequence] = _Admission(start, sequence.length, shared, sequence.computed, readmitted)
        self._pages_in_use.append(self.held_pages)
        return True

    def grow(self, sequence: Sequence, length: int) -> None:
        super().grow(sequence, length)
        if sequence in self._admissions:  # else it is being admitted: what it gets belongs to that event
            self._pages_in_use[-1] = max(self._pages_in_use[-1], self.held_pages)

    def try_grow(self, sequences: Sequences[Sequence]) -> bool:
        if not super().try_grow(sequences):
            return False
        self._pages_in_use[-1] = max(self._pages_in_use[-1], self.held_pages)
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
        self._pages_in_use.append(self.held_pages)

    def timeline(self) -> Timeline:
        """Return the recorded timeline, once nothing runs any more."""
        uses = sorted(self._uses, key=lambda use: use.start)
        pages_in_use = np.array(self._pages_in_use, dtype=np.int64)
        return Timeline(tuple(uses), pages_in_use, self._recorded.evicted)
