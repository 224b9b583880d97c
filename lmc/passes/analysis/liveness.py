"""Liveness: ops and values of a function that its results or its visible effects need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.dialects.region_ops import ConditionOp, LoopOp, RaceOp, TryOp, YieldOp, guarded_ops
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.types import BOOL, CTX, FLOAT, INT, NONE, TEXT

_IMMUTABLE = (CTX, TEXT, INT, FLOAT, BOOL, NONE)
_CHANGING = (Effect.LOCAL, Effect.WRITES)
_IDENTITY = frozenset({"is", "is_not"})


def exposed_values(block: Block, *, at_end: bool = True) -> frozenset[Value]:
    """The values of ``block`` and its regions that share an object, or may share one, with what leaves the graph.

    What leaves are mutable operands of ops that write or change objects of this run. Those of ``lm.return``,
    ``lm.break`` and identity comparisons leave as well, unless ``at_end`` is false: they change nothing in a run.
    An op's mutable results may be, or hold, any of its mutable operands; what a region is given, and what comes out of
    it, is what went in there. Linear in operands (union-find).
    """
    ops = [*walk((block,))]
    leaving = [value for op in ops if _exposes(op, at_end) for value in op.operands if value.type not in _IMMUTABLE]
    if not leaving:
        return frozenset()
    groups = _Groups()
    for op in ops:
        if isinstance(op, RegionOp):
            for flow in (*op.flows(), *op.carried()):
                groups.join(flow)
            if isinstance(op, TryOp):  # an exception may hold what the op that raised it was given
                groups.join((op.results[1], *(value for inner in walk(op.regions) for value in inner.operands)))
        elif any(value.type not in _IMMUTABLE for value in op.results):
            groups.join((*op.results, *op.operands))
    exposed = {groups.root(value) for value in leaving}
    values = {*block.parameters, *(value for op in ops for value in op.results)}
    values.update(value for op in ops for region in op.regions for value in region.parameters)
    return frozenset(value for value in values if groups.root(value) in exposed)


def is_immutable(op: Op) -> bool:
    """Return whether no result of ``op`` can change, or differ in identity from an equal one."""
    return all(value.type in _IMMUTABLE for value in op.results)


def touches(op: Op, values: frozenset[Value]) -> bool:
    """Return whether a result or an operand of ``op`` is among ``values``."""
    return bool(values) and any(value in values for value in (*op.results, *op.operands))


def _exposes(op: Op, at_end: bool) -> bool:
    if isinstance(op, PyCallOp):
        return at_end and op.function in _IDENTITY
    return (at_end and isinstance(op, LEAVING)) or (op.effect in _CHANGING and not isinstance(op, RegionOp))


class _Groups:
    """Disjoint sets of values that may change, with path halving."""

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def root(self, value: Value) -> Value:
        parents = self._parents
        while (parent := parents.get(value, value)) != value:
            parents[value] = value = parents.get(parent, parent)
        return value

    def join(self, values: Sequence[Value]) -> None:
        """Put all of ``values`` that may change into one set."""
        held = [value for value in values if value.type not in _IMMUTABLE]
        for other in held[1:]:
            self._parents[self.root(other)] = self.root(held[0])


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
