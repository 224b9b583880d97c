"""The tokens of a KV pool that an instance of a batch uses while it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiveTokens:
    """Tokens of an instance in the pool.

    Attributes:
        whole: the most at a time.
        new: the most at a time, without those that the instance before has.
        mean: on average over its steps, without those.
        again: tokens that it computes twice if others evict what it does not use at the time.
    """

    whole: int
    new: int
    mean: int
    again: int
