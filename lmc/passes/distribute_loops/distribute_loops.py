"""The pass ``distribute-loops``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.region_ops import LoopOp, guarded_ops
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.rewriter import with_regions
from lmc.passes.analysis.kv_hints import without_hints
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.distribute_loops.counted_loops import counted
from lmc.passes.distribute_loops.loop_split import KnownLists, LoopSplit
from lmc.passes.rewriting.new_ops import FreshNames, with_ops


@dataclass(frozen=True)
class DistributeLoops(FunctionPass):
    """Let what rounds of a loop do without needing each other run at the same time.

    A loop over a list is split in two: a ``cf.map`` of all that needs nothing of earlier rounds, and a loop of the rest
    that takes the results one after the other (loop distribution: Kennedy and Allen, "Optimizing Compilers for Modern
    Architectures", 2002, section 2.2). Numbers that count rounds, such as how often an id was used, follow from the
    number of the round, so ids and draws stay what they are.

    Sound where nothing in the loop writes, since rounds no longer run in order (ops on objects of this run stay with
    the rest, where they do); where the number of rounds is known
    when the loop begins, so that no round runs which would not have; and where nothing of the rest may raise (but for
    an engine that fails), since then no later round would have begun. In a ``cf.try`` no model call of the rest may
    fail either, since it shows which op fails first. A context that the rest goes on from can't be
    taken out of a list, so there the loop stays. A list that somebody may change meanwhile is looked into in each
    round, as before. A loop is left alone unless a model or a host function is asked in what can run at the same time.

    Before::

        %n = py.call len (%items) : !int
        %any = py.call lt (0, %n) : !bool
        %all, %k = cf.loop (%any, "", 0) : !text, !int ^condition(%f: !bool, %s: !text, %i: !int) {
          cf.condition %f (%s, %i)
        } ^body(%t: !text, %j: !int) {
          %item = py.call getitem (%items, %j) : !text
          %1 = lm.extend %0, user [%item] : !ctx
          %2, %a = lm.gen %1 (%j) {id = "f/$/a"} : !ctx, !text
          %u = text.concat [%t, %a] : !text
          %m = py.call add (%j, 1) : !int
          %go = py.call lt (%m, %n) : !bool
          cf.yield (%go, %u, %m)
        }

    After::

        %n = py.call len (%items) : !int
        %any = py.call lt (0, %n) : !bool
        %as = cf.map (%items) : !list<!text> ^body(%index: !int, %element: !text) {
          %1 = lm.extend %0, user [%element] : !ctx
          %2, %a = lm.gen %1 (%index) {id = "f/$/a"} : !ctx, !text
          cf.yield (%a)
        }
        %all, %k = cf.loop (%any, "", 0) : !text, !int ^condition(%f: !bool, %s: !text, %i: !int) {
          cf.condition %f (%s, %i)
        } ^body(%t: !text, %j: !int) {
          %a_1 = py.call getitem (%as, %j) : !text
          %u = text.concat [%t, %a_1] : !text
          %m = py.call add (%j, 1) : !int
          %go = py.call lt (%m, %n) : !bool
          cf.yield (%go, %u, %m)
        }
    """

    NAME: ClassVar[str] = "distribute-loops"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        block = without_hints(block)
        if not any(isinstance(op, LoopOp) for op in walk((block,))):
            return block
        function = _Function(FreshNames(block), KnownLists.of(block), guarded_ops(block))
        return self._block(block, {}, function, context)

    def _block(self, block: Block, around: Mapping[Value, Op], function: _Function, context: PassContext) -> Block:
        """The block with its loops split, inner ones first. Recursion is as deep as regions are nested."""
        producers = dict(around)
        ops: list[Op] = []
        for op in block.ops:
            rest = with_regions(op, [self._block(region, producers, function, context) for region in op.regions])
            guarded = op in function.guarded
            found = self._split(rest, producers, function, context, guarded) if isinstance(rest, LoopOp) else None
            found = [rest] if found is None else found
            ops += found
            producers.update((value, made) for made in found for value in made.results)
        return with_ops(block, ops)

    def _split(
        self, op: LoopOp, producers: Mapping[Value, Op], function: _Function, context: PassContext, guarded: bool
    ) -> list[Op] | None:
        """Return what takes the place of a loop; None where it stays. ``guarded``: it is in a ``cf.try``."""
        if not any(map(_asks, walk(op.regions))):
            return None
        loop = counted(op, producers)
        if loop is None or op.leaves:
            return None
        split = LoopSplit(op, loop, producers, function.lists, guarded=guarded)
        if not any(map(_asks, split.together)):
            self.missed(context, op.location, "each round goes on from what the one before gives")
            return None
        problem = split.problem()
        if problem is not None:
            self.missed(context, op.location, f"rounds that could run at the same time run in order: {problem}")
            return None
        count = sum(
            each.billable and not isinstance(each, RegionOp) for each in walk([Block((), tuple(split.together))])
        )
        calls = f"{count} model call{'s' * (count != 1)} of each" if count else "the host calls of each"
        self.applied(context, op.location, f"rounds of the loop run at the same time, with {calls}")
        return split.ops(function.names)


@dataclass(frozen=True)
class _Function:
    """The shared state of walks over the blocks of a function. ``guarded`` are the ops in the bodies of ``cf.try``."""

    names: FreshNames
    lists: KnownLists
    guarded: frozenset[Op]


def _asks(op: Op) -> bool:
    """Return whether the op asks a model, or a host function that takes its time."""
    return op.billable or op.effect in (Effect.READS, Effect.SAMPLES)
