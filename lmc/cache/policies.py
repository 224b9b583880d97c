"""The policies by name: order of admission and eviction."""

from collections.abc import Callable
from dataclasses import dataclass

from lmc.cache.eviction import Eviction, LeastFrequentlyUsed, LeastRecentlyUsed, NextUse
from lmc.cache.order import Arrival, ByRank, LaneOrder, LongestPrefix
from lmc.cache.radix import RadixCache


@dataclass(frozen=True, slots=True)
class Policy:
    """``eviction`` makes what decides about pages, ``order`` that of a lane. Without ``turns`` all share one lane."""

    eviction: Callable[[], Eviction]
    order: Callable[[RadixCache], LaneOrder]
    turns: bool = True


def _arrival(_: RadixCache) -> LaneOrder:
    return Arrival()


def _by_rank(_: RadixCache) -> LaneOrder:
    return ByRank()


POLICIES = {
    "lmc": Policy(NextUse, _by_rank),
    "lru": Policy(LeastRecentlyUsed, _by_rank),
    "lfu": Policy(LeastFrequentlyUsed, _by_rank),
    "next-use": Policy(NextUse, _arrival),
    "lpm": Policy(LeastRecentlyUsed, LongestPrefix, turns=False),
    "fcfs": Policy(LeastRecentlyUsed, _arrival, turns=False),
}
"""By name:

- ``lmc``: the plan's order, eviction by next use.
- ``lru``, ``lfu``: the plan's order with those evictions.
- ``next-use``: requests as they come, eviction by next use.
- ``lpm``: longest prefix match first and LRU, as in SGLang.
- ``fcfs``: requests as they come and LRU, as in vLLM.
"""
