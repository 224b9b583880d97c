"""The next uses of cached contexts, by wave."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import PrefillOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.ordering import uses
from lmc.ir.types import CTX
from lmc.ir.verify.cache_hint_rules import uses_cache
from lmc.passes.kv_liveness.call_waves import CallWaves


@dataclass(frozen=True, slots=True)
class ContextUse:
    """An op of a block that needs what is in the cache for a context: at ``index``, in ``wave``."""

    wave: int
    index: int
    op: Op


class ContextUses:
    """Uses of a function's contexts, by waves as ``CallWaves`` counts them.

    ``first[context]`` is the wave of the first call or prefill that starts from it, in other blocks and in later rounds
    of loops too; a context without one is missing. These are shortest paths (Dijkstra 1959) over the edges along which
    contexts grow and flow; only an edge from one round of a loop to the next takes time. ``n log n``.
    """

    def __init__(self, body: Block, waves: CallWaves) -> None:
        self._waves = waves
        self.first: dict[Value, int] = {}
        self._places: dict[Value, list[tuple[Value, int]]] = {}
        sources: dict[Value, list[tuple[Value, int]]] = {}
        used: list[tuple[int, str, Value]] = []
        for op in walk((body,)):
            for source, place, later in self._edges(op):
                sources.setdefault(place, []).append((source, later))
                if isinstance(op, RegionOp):
                    self._places.setdefault(source, []).append((place, later))
            if not isinstance(op, RegionOp) and (op.billable or isinstance(op, PrefillOp)):
                used += [(waves.wave[op], value.name, value) for value in op.operands if value.type == CTX]
        heapq.heapify(used)
        while used:
            wave, _, value = heapq.heappop(used)
            if value in self.first:
                continue
            self.first[value] = wave
            for source, later in sources.get(value, ()):
                if source not in self.first:
                    heapq.heappush(used, (wave + later, source.name, source))

    def flows_to(self, values: Iterable[Value]) -> int | None:
        """The wave of the first call that goes on from one of these, behind the region that ends with them."""
        waves = [
            self.first[place] + later
            for value in values
            for place, later in self._places.get(value, ())
            if place in self.first
        ]
        return min(waves, default=None)

    def _edges(self, op: Op) -> Iterator[tuple[Value, Value, int]]:
        """From which context what the op gives grows, or flows; how many waves later it is there."""
        if isinstance(op, RegionOp):
            yield from ((source, place, 0) for source, place in op.flows() if place.type == CTX)
            yield from ((source, place, self._waves.length[op]) for source, place in op.carried() if place.type == CTX)
        elif grows(op):
            yield from ((value, op.results[0], 0) for value in op.operands if value.type == CTX)


def grows(op: Op) -> bool:
    """Return True if the op extends a context, without asking a model."""
    is_plain = not (op.billable or isinstance(op, RegionOp | PrefillOp))
    return is_plain and bool(op.results) and op.results[0].type == CTX


def uses_in(block: Block, waves: CallWaves) -> dict[Value, list[ContextUse]]:
    """For the contexts of a block, and those from outside, the ops of the block that need their part of the cache.

    What grows from a context counts as that context (``lmc.ir.verify.cache_hint_rules``). The block's end is a use too
    if contexts flow on from there.
    """
    origins: dict[Value, Value] = {}
    found: dict[Value, list[ContextUse]] = {}
    for index, op in enumerate(block.ops):
        if isinstance(op, KeepOp | FreeOp):
            continue
        contexts = [value for value in uses(op) if value.type == CTX]
        if grows(op):
            origins.update((op.results[0], origins.get(value, value)) for value in contexts)
        elif uses_cache(op):
            for origin in dict.fromkeys(origins.get(value, value) for value in contexts):
                found.setdefault(origin, []).append(ContextUse(waves.wave[op], index, op))
    return found
