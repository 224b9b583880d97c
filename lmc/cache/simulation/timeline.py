"""The cache use of requests over time, recorded by a simulation for upper bounds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmc.cache.node import Tokens


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
