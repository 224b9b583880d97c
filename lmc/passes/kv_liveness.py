"""The pass ``kv-liveness``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from lmc.ir.analysis.ordering import objects_of, uses, waits_of
from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.core_ops import GenOp, HostCallOp, PrefillOp, SamplingOp, SelectOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.errors import InputError, Location
from lmc.ir.rewriter import with_regions
from lmc.ir.types import CTX
from lmc.ir.verify.cache_hint_rules import uses_cache
from lmc.ir.wording import with_count
from lmc.passes.analysis.context_lengths import ContextLengths
from lmc.passes.analysis.kv_hints import without_hints
from lmc.passes.analysis.prefix_tree import Measure
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.rewriting import make_op, with_ops


class CallWaves:
    """Waves as a plan counts them: those that plan-fork-join has set, else the calls on the longest way to an op.

    ``wave[op]`` counts from the beginning of the function, as if each region ran once, ``length[op]`` is how many waves
    the op takes, ``start[block]`` the wave in which a block begins. ``asking`` are the ops that wait for a model or a
    tool, themselves or in their regions. Linear; recursion is as deep as regions are nested.
    """

    def __init__(self, body: Block) -> None:
        self.wave: dict[Op, int] = {}
        self.length: dict[Op, int] = {}
        self.start: dict[Block, int] = {}
        self.asking: set[Op] = set()
        self._objects = objects_of(body.ops)
        self._measure(body)
        self._place(body, 0)

    def _measure(self, block: Block) -> int:
        """Return how many waves a block takes. Places are relative to its beginning so far."""
        ends: list[int] = []
        for op, needed in zip(block.ops, waits_of(block.ops, self._objects), strict=True):
            length = self._measure_inside(op) if isinstance(op, RegionOp) else int(op.billable)
            planned = op.wave if isinstance(op, (SamplingOp, SelectOp)) else None
            wave = max([ends[index] for index in needed], default=0) if planned is None else planned
            self.wave[op], self.length[op] = wave, length
            ends.append(wave + length)
            if op.billable or isinstance(op, (PrefillOp, HostCallOp)):
                self.asking.add(op)
        return max(ends, default=0)

    def _measure_inside(self, op: RegionOp) -> int:
        """Return how many waves the regions of an op take. Regions that all run follow each other."""
        at = 0
        counts: list[int] = []
        for region in op.regions:
            counts.append(self._measure(region))
            self.start[region] = 0 if op.EXCLUSIVE else at
            at += counts[-1]
        if any(inner in self.asking for region in op.regions for inner in region.ops):
            self.asking.add(op)
        return max(counts, default=0) if op.EXCLUSIVE else at

    def _place(self, block: Block, start: int) -> None:
        self.start[block] = start
        for op in block.ops:
            self.wave[op] += start
            for region in op.regions:
                self._place(region, self.wave[op] + self.start[region])


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
        """The wave of the first call that continues one of these, behind the region that ends with them."""
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


_ATTENTION = 20_000
"""Tokens of a prefix that cost as much again for attention: keys that cost as much as a row of weights, times two."""


@dataclass(frozen=True)
class KvLiveness(FunctionPass):
    """Mark the next use and the last use of each context in the KV cache.

    A call leaves the KV of its prompt and its answer in the cache, a prefill that of its prefix. Where a later call
    starts from there, ``lm.keep`` names its wave, so that an engine that has to make room evicts the tokens that are
    used later or never. After each wave of uses another ``lm.keep`` says when the next one is; after the last use
    ``lm.free`` ends it. A context is followed through text that is appended, into regions and out of them, and into
    later rounds of a loop. A context without later calls gets no hint.

    A prefix that ``lm.prefill`` has pinned takes room until its ``lm.free``. Holding a token for a wave counts as
    computing ``wave_cost`` tokens: once the remaining uses save less than their waves cost, the prefix is unpinned,
    and computed again if it has been evicted by then. A token of a long prefix costs more to compute, as it attends to
    those before it: that of one with 20,000 tokens twice as much as one of a few. Short ones are not pinned at all
    (``minimum_tokens`` of hoist-prefixes).

    Sound everywhere, since ``lm.keep`` and ``lm.free`` are hints, which change no result.

    ``wave_cost``: 0 holds every pinned prefix to its last use.

    Before::

        %1 = lm.prefill %0 : !ctx
        %2, %a = lm.gen %1 {group = "g0", id = "f/a", wave = 0} : !ctx, !text
        %3, %b = lm.gen %1 {group = "g0", id = "f/b", wave = 0} : !ctx, !text
        %4 = lm.extend %2 ["So: ", %b] : !ctx
        %5, %c = lm.gen %4 {id = "f/c", wave = 1} : !ctx, !text

    After::

        %1 = lm.prefill %0 : !ctx
        lm.keep %1 {next_use = 0}
        %2, %a = lm.gen %1 {group = "g0", id = "f/a", wave = 0} : !ctx, !text
        lm.keep %2 {next_use = 1}
        %3, %b = lm.gen %1 {group = "g0", id = "f/b", wave = 0} : !ctx, !text
        lm.free %1 (%2, %3)
        %4 = lm.extend %2 ["So: ", %b] : !ctx
        %5, %c = lm.gen %4 {id = "f/c", wave = 1} : !ctx, !text
        lm.free %2 (%5)
    """

    NAME: ClassVar[str] = "kv-liveness"

    wave_cost: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 <= self.wave_cost <= 1.0:
            raise InputError(f"wave_cost is {self.wave_cost}", remedy="give a number between 0.0 and 1.0")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        return _Liveness(self, without_hints(block), context).rewritten()


@dataclass(frozen=True, slots=True)
class _Place:
    """The definition of a context in its block: ``op`` at ``index``, which ends in ``wave``, or the beginning."""

    op: Op | None
    index: int
    wave: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """A context that later calls go on from, with its ``uses`` in its block, in order of waves.

    ``escapes``: it flows on from the end of the block; ``leaves`` is the wave of the first use there (None: none).
    ``waves`` are those of all uses, each once; of one that leaves there is the first.
    """

    value: Value
    place: _Place
    uses: tuple[ContextUse, ...]
    escapes: bool
    leaves: int | None
    waves: tuple[int, ...]

    @property
    def location(self) -> Location | None:
        """The user's line."""
        return None if self.place.op is None else self.place.op.location


class _Liveness:
    """The hints of one function. Recursion is as deep as regions are nested."""

    def __init__(self, owner: KvLiveness, body: Block, context: PassContext) -> None:
        self._owner = owner
        self._context = context
        self._body = body
        self._waves = CallWaves(body)
        self._uses = ContextUses(body, self._waves)
        self._lengths = ContextLengths(context)

    def rewritten(self) -> Block:
        """The function's body with hints."""
        return self._block(self._body)

    def _block(self, block: Block) -> Block:
        for value in _contexts(block.parameters):
            self._lengths.start(value)
        rewritten: list[Op] = []
        for op in block.ops:
            for value in _contexts(op.results):
                self._lengths.add(op, value)
            rewritten.append(with_regions(op, [self._block(region) for region in op.regions]))
        hints = _Hints(self._waves, block)
        for kept in self._kept(block):
            self._follow(kept, hints)
        return with_ops(block, hints.among(rewritten))

    def _kept(self, block: Block) -> Iterator[_Kept]:
        """The contexts of a block whose part of the cache is used again."""
        found = uses_in(block, self._waves)
        places: list[tuple[_Place, Sequence[Value]]] = []
        if block is not self._body and not self._waves.asking.isdisjoint(block.ops):
            places.append((_Place(None, -1, self._waves.start[block]), block.parameters))
        for index, op in enumerate(block.ops):
            if _leaves_cached(op):
                places.append((_Place(op, index, self._waves.wave[op] + self._waves.length[op]), op.results))
        for place, values in places:
            for value in _contexts(values):
                if value in self._uses.first:
                    yield self._kept_at(place, value, found.get(value, ()), block)

    def _kept_at(self, place: _Place, value: Value, uses: Sequence[ContextUse], block: Block) -> _Kept:
        inside = sorted((use for use in uses if not use.op.IS_TERMINATOR), key=lambda use: (use.wave, use.index))
        escapes = len(inside) < len(uses)
        leaves = self._uses.flows_to(block.terminator.operands) if escapes else None
        waves = sorted({use.wave for use in inside} | ({leaves} if leaves is not None else set()))
        return _Kept(value, place, tuple(inside), escapes, leaves, tuple(waves))

    def _follow(self, kept: _Kept, hints: _Hints) -> None:
        """The hints about one context."""
        hints.add(KeepOp, kept, (), self._uses.first[kept.value])  # a region may begin long before it uses it
        let_go = self._let_go_after(kept) if isinstance(kept.place.op, PrefillOp) else None
        for number, (wave, group) in enumerate(groupby(kept.uses, key=lambda use: use.wave)):
            later = kept.waves[number + 1] if number + 1 < len(kept.waves) else None
            if later is not None and wave == let_go:
                hints.add(FreeOp, kept, [use for use in kept.uses if use.wave <= wave], later)
                self._remark_let_go(kept, number)
                return
            if later is not None:
                hints.add(KeepOp, kept, list(group), later)
        if not kept.escapes:
            hints.add(FreeOp, kept, kept.uses, None)
        self._remark(kept)

    def _let_go_after(self, kept: _Kept) -> int | None:
        """The wave after which a pinned prefix costs more than it saves."""
        waves, worth = kept.waves, self._worth(kept)
        for number, wave in enumerate(waves[:-1]):
            if worth * (len(waves) - number - 1) < self._owner.wave_cost * (waves[-1] - wave):
                return wave
        return None

    def _worth(self, kept: _Kept) -> float:
        """Return the cost of computing a token of a context, as a multiple of one that attends to nothing."""
        return 1 + self._lengths.whole(kept.value).tokens / _ATTENTION

    def _remark(self, kept: _Kept) -> None:
        if kept.waves[-1] == kept.place.wave:  # by calls that begin right then
            return
        count = len(kept.uses) + (kept.leaves is not None)
        uses = with_count(count, "use")
        behind = ", one of them behind its block" if kept.leaves is not None else ""
        self._owner.applied(
            self._context,
            kept.location,
            f"{self._lengths.whole(kept.value)} are kept from wave {kept.place.wave} to wave {kept.waves[-1]}, "
            f"for {uses}{behind}",
        )

    def _remark_let_go(self, kept: _Kept, number: int) -> None:
        length = self._lengths.whole(kept.value)
        wave, last = kept.waves[number], kept.waves[-1]
        saved = _times(length, self._worth(kept) * (len(kept.waves) - number - 1))
        cost = _times(length, self._owner.wave_cost * (last - wave))
        self._owner.applied(
            self._context,
            kept.location,
            f"a pinned prefix of {length} is let go after wave {wave}: until wave {last} it would save {saved}, but "
            f"take room worth {cost} (wave_cost={self._owner.wave_cost:g})",
        )


class _Hints:
    """The hints of one block, by the index of the op that they come after."""

    def __init__(self, waves: CallWaves, block: Block) -> None:
        self._start = waves.start[block]
        self._after: dict[int, list[Op]] = {}

    def add(self, kind: type[KeepOp | FreeOp], kept: _Kept, uses: Sequence[ContextUse], wave: int | None) -> None:
        """A hint after ``uses``. None where one of them gives nothing that could be waited for."""
        if not all(use.op.results for use in uses):
            return
        ordered = sorted(uses, key=lambda use: use.index)
        after = tuple(_waited_for(use.op) for use in ordered)
        next_use = None if wave is None else wave - self._start
        hint = make_op(kind, (), kept.location, context=kept.value, after=after, next_use=next_use)
        self._after.setdefault(ordered[-1].index if ordered else kept.place.index, []).append(hint)

    def among(self, ops: Sequence[Op]) -> list[Op]:
        """``ops`` with the hints after each, those first that keep something."""
        found = list(self._after.get(-1, ()))
        for index, op in enumerate(ops):
            found.append(op)
            found += sorted(self._after.get(index, ()), key=lambda hint: isinstance(hint, FreeOp))
        return found


def _waited_for(op: Op) -> Value:
    """Return the result of an op that a hint waits for: its context, if it has one."""
    return next(iter(_contexts(op.results)), op.results[0])


def _contexts(values: Iterable[Value]) -> list[Value]:
    return [value for value in values if value.type == CTX]


def _leaves_cached(op: Op) -> bool:
    """Return True if the op itself leaves its context in the cache, for this instance alone."""
    if isinstance(op, PrefillOp):
        return op.scope == "instance"
    return isinstance(op, RegionOp) or (op.billable and isinstance(op, GenOp | SelectOp))


def _times(length: Measure, factor: float) -> str:
    """The cost of computing a prefix so many times."""
    return with_count(round(length.tokens * factor), "token") + (
        f" and {factor:g} times its texts" if length.unknown else ""
    )
