"""The pass ``dce``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.core import Block, Op, walk
from lmc.ir.dialects.cache_hints import FreeOp, KeepOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.rewriter import with_regions
from lmc.passes.analysis.liveness import Liveness
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.rewriting import trimmed, with_ops


@dataclass(frozen=True)
class EliminateDeadCode(FunctionPass):
    """Drop ops with unused results.

    Unused results of conditionals, loops and maps that stay are dropped too.

    What is read in the end are the operands of the terminator: the returned values, the names on the root context and
    its text; of ``lm.break``, what its record names as live.

    An op is dropped if it does not write, changes no object of this run and cannot raise by the meaning of the
    program. So an unused ``int(answer)`` or host call stays, since it may raise and the program would then end there. A
    model call (``billable``) is dropped although its engine may fail: failing to serve an unused answer is
    no part of what a program means. ``py.assume`` counts as a write and stays.

    ``lm.keep`` and ``lm.free`` keep nothing alive, and go with what they are about.

    Of an op with regions the same holds for each op inside. It stays where one inside does, where it leaves the
    program, and where it raises itself, as a loop with a ``limit`` may. Its results, and what a loop carries from round
    to round, are dropped where they are read for nothing else that stays. A loop without ``limit`` is taken to end.

    Before::

        %1, %draft = lm.gen %0 {id = "f/draft"} : !ctx, !text
        %2 = text.concat [%draft, "!"] : !text
        %3, %answer = lm.gen %0 {id = "f/answer"} : !ctx, !text
        lm.return %3 (%answer)

    After::

        %3, %answer = lm.gen %0 {id = "f/answer"} : !ctx, !text
        lm.return %3 (%answer)

    Before::

        %c, %n, %all = cf.loop (%0, 0, "") : !ctx, !int, !text ^condition(%1: !ctx, %i: !int, %s: !text) {
          %go = py.call lt (%i, %last) : !bool
          cf.condition %go (%1, %i, %s)
        } ^body(%2: !ctx, %k: !int, %t: !text) {
          %3, %a = lm.gen %2 (%k) {id = "f/a*"} : !ctx, !text
          %m = py.call add (%k, 1) : !int
          %u = text.concat [%t, %a] : !text
          cf.yield (%3, %m, %u)
        }
        lm.return %c

    After::

        %c, %n = cf.loop (%0, 0) : !ctx, !int ^condition(%1: !ctx, %i: !int) {
          %go = py.call lt (%i, %last) : !bool
          cf.condition %go (%1, %i)
        } ^body(%2: !ctx, %k: !int) {
          %3, %a = lm.gen %2 (%k) {id = "f/a*"} : !ctx, !text
          %m = py.call add (%k, 1) : !int
          cf.yield (%3, %m)
        }
        lm.return %c
    """

    NAME: ClassVar[str] = "dce"

    def rewrite(self, block: Block, context: PassContext) -> Block:
        return self._swept(block, Liveness(block), context)

    def _swept(self, block: Block, live: Liveness, context: PassContext) -> Block:
        """The block without what is not needed. Recursion is as deep as regions are nested."""
        kept: list[Op] = []
        for op in block.ops:
            if isinstance(op, (KeepOp, FreeOp)):
                if all(map(live.stays, op.operands)):
                    kept.append(op)
                continue
            if op not in live.ops:
                self._remark(op, context)
                continue
            rest = with_regions(op, [self._swept(region, live, context) for region in op.regions])
            kept.append(trimmed(rest, live.values.__contains__))
        return with_ops(block, kept)

    def _remark(self, dropped: Op, context: PassContext) -> None:
        for op in (dropped, *walk(dropped.regions)):
            if op.billable and not isinstance(op, RegionOp):
                identity = repr(getattr(op, "id", None) or op.NAME)
                calls = getattr(op, "n", 1)
                self.applied(context, op, f"{identity} is dropped: its result is unused", saved_calls=calls)
