"""Liveness: ops and values of a function that its results or its visible effects need."""

from __future__ import annotations

from collections.abc import Iterable

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.region_ops import ConditionOp, LoopOp, RaceOp, TryOp, YieldOp, guarded_ops
from lmc.ir.dialects.regions import LEAVING, RegionOp

_KEPT = (Effect.LOCAL, Effect.WRITES)


class Liveness:
    """The ops of a function that are needed, and the values that are.

    Found by marking, so that values which a loop carries only for themselves are not needed. What a region yields is
    needed where the result is that it goes to. Linear up to the depth of regions, and never recursive.
    """

    def __init__(self, body: Block) -> None:
        self.ops: set[Op] = set()
        self.values: set[Value] = set()
        self._guarded = guarded_ops(body)
        self._givers: dict[str, Op] = {}
        self._sources: dict[Value, list[Value]] = {}
        for op in walk((body,)):
            for value in op.results:
                self._givers[value.name] = op
            if isinstance(op, RegionOp):
                for source, place in (*op.flows(), *op.carried()):
                    self._sources.setdefault(place, []).append(source)
        self._new_ops: list[Op] = []
        self._new_values: list[Value] = []
        self._mark_block(body)
        self._run()

    def stays(self, value: Value) -> bool:
        """Return True if the value is still defined, though perhaps unused, after dead code has been dropped."""
        giver = self._givers.get(value.name)
        return value in self.values or (giver in self.ops and not isinstance(giver, RegionOp))

    def _run(self) -> None:
        while self._new_ops or self._new_values:
            while self._new_ops:
                self._mark_uses(self._new_ops.pop())
            while self._new_values:
                value = self._new_values.pop()
                giver = self._givers.get(value.name)
                if giver is not None:
                    self._mark_op(giver)
                if self._sources:
                    self._mark_values(self._sources.get(value, ()))

    def _mark_block(self, block: Block) -> None:
        """Return what stays in a block that may run, whoever reads its results."""
        for op in block.ops:
            if op.IS_TERMINATOR or self._stays(op):
                self._mark_op(op)

    def _stays(self, op: Op) -> bool:
        around = op in self._guarded
        return self._can_be_seen(op, around=around) or (
            bool(op.REGION_FIELDS) and any(self._can_be_seen(each, around=around) for each in walk(op.regions))
        )

    def _can_be_seen(self, op: Op, *, around: bool) -> bool:
        """Return whether it would be noticed that the op, apart from those in its regions, does not run.

        ``around``: the block is part of a ``cf.try`` that is needed. Then an exception of any op of
        the block, model calls included, changes the path of the program. If the ``cf.try`` is part of
        the block, its results alone show what it catches.
        """
        if isinstance(op, TryOp):
            return op.may_raise
        raises = op.raises_itself if isinstance(op, RegionOp) else op.may_raise and (around or not op.billable)
        if raises and (around or op not in self._guarded):
            return True
        return not isinstance(op, RegionOp) and (op.effect in _KEPT or isinstance(op, LEAVING))

    def _mark_op(self, op: Op) -> None:
        if op not in self.ops:
            self.ops.add(op)
            self._new_ops.append(op)

    def _mark_values(self, values: Iterable[Value]) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._new_values.append(value)

    def _mark_uses(self, op: Op) -> None:
        """Return what an op that is needed needs itself; values that flow are left to those they flow to."""
        if isinstance(op, ConditionOp):
            self._mark_values((op.flag,))
        elif not isinstance(op, (YieldOp, LoopOp, TryOp)):
            self._mark_values(op.operands)
        if not isinstance(op, RegionOp):
            return
        for region in op.regions:
            self._mark_block(region)
        if isinstance(op, RaceOp):
            self._mark_values(op.results[:1])
