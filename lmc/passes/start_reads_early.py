"""The pass ``start-reads-early``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.analysis.ordering import objects_of
from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.dialects.region_ops import CondOp, TryOp
from lmc.ir.dialects.regions import RegionOp, has_id
from lmc.ir.module import Module
from lmc.ir.rewriter import with_regions
from lmc.ir.semantics.speculation import CallAhead, calls_ahead
from lmc.passes.analysis.liveness import exposed_values, touches
from lmc.passes.base import Pass, PassContext
from lmc.passes.rewriting import with_ops


@dataclass(frozen=True)
class StartReadsEarly(Pass):
    """Let calls of tools that only read start before it is known whether their way is taken.

    A call in an arm of a conditional waits for the condition, although what it is called with is often known before.
    Where its tool is declared ``early``, so that it may be called for a way that is then not taken, such a call is
    marked: a run starts it once its arguments are there, takes what it gave (or its error) where the call stands, and
    drops it where that is not reached. So results, errors, ids and the order of what can be seen stay as they are.
    Of a loop, calls of the first round may start before the loop does; in a round, those in its conditionals. Of a map,
    those of all elements may, once its lists are known.

    Sound because only a call that reads, or is pure, is marked, and only where nothing that writes, nor anything that
    may end the program, stands between its new beginning and its place (``lmc.ir.semantics.speculation``). Ops that
    make its arguments move out of the arms to where it begins; they have to be pure, unable to raise, and free of
    objects that others may change. Arms that are known to be unlikely (``probability`` of ``cf.cond`` below one half)
    are left alone.

    Before::

        %2, %d = lm.gen %1 {id = "f/d"} : !ctx, !text
        %3 = py.call eq (%d, "search") : !bool
        %7 = cf.cond %3 : !ctx ^then() {
          %4 = text.concat ["about ", %question] : !text
          %5 = host.call @search (%4) {declared = "reads", id = "f/@search"} : !text
          ...

    After::

        %2, %d = lm.gen %1 {id = "f/d"} : !ctx, !text
        %3 = py.call eq (%d, "search") : !bool
        %4 = text.concat ["about ", %question] : !text
        %7 = cf.cond %3 : !ctx ^then() {
          %5 = host.call @search (%4) {declared = "reads", early = true, id = "f/@search"} : !text
          ...
    """

    NAME: ClassVar[str] = "start-reads-early"

    def run(self, module: Module, context: PassContext) -> Module:
        hosts = frozenset(host.name for host in module.hosts if host.early)
        if not hosts:
            return module
        return module.with_bodies(
            {function.name: _Marking(self, function.body, hosts, context).run() for function in module.functions}
        )


class _Marking:
    """Marks the calls of one function. Recursion is as deep as regions are nested."""

    def __init__(self, owner: StartReadsEarly, body: Block, hosts: frozenset[str], context: PassContext) -> None:
        self._owner = owner
        self._body = body
        self._hosts = hosts
        self._context = context
        self._objects = objects_of(body.ops)
        self._seen_by_others = exposed_values(body) | self._objects.shared
        self._reasons: dict[HostCallOp, str] = {}

    def run(self) -> Block:
        body = self._block(self._body)
        for op in walk((body,)):
            if not isinstance(op, HostCallOp):
                continue
            if op.early:
                message = f"{op.id!r} may start before it is known whether the program comes to it"
                self._owner.applied(self._context, op, message)
            elif op in self._reasons:
                message = f"{op.id!r} starts where the program comes to it: {self._reasons[op]}"
                self._owner.missed(self._context, op, message)
        return body

    def _is_wanted(self, op: Op) -> bool:
        return isinstance(op, HostCallOp) and op.host in self._hosts and not op.early

    def _block(self, block: Block) -> Block:
        ops: list[Op] = []
        for op in block.ops:
            found = op
            if isinstance(op, RegionOp) and any(map(self._is_wanted, walk(op.regions))):
                moved, rest = self._mark(op)
                ops += moved
                found = with_regions(rest, [self._block(region) for region in rest.regions])
            ops.append(found)
        return with_ops(block, ops)

    def _mark(self, op: RegionOp) -> tuple[list[Op], Op]:
        """The ops that move out of ``op``, in order, and the rest of it, with the calls marked that may start there."""
        makers = _ops_of_arms(op)
        moving: dict[Op, None] = {}
        marked: set[Op] = set()
        for ahead in calls_ahead(op, self._is_wanted, self._objects):
            needed, reason = self._needed(ahead, makers)
            if reason is None:
                moving.update(dict.fromkeys(needed))
                marked.add(ahead.call)
            else:
                self._reasons[ahead.call] = reason
        if not marked:
            return [], op
        moved = [inner for inner in makers.values() if inner in moving]
        return list(dict.fromkeys(moved)), _Changes(marked, frozenset(moving)).op(op)

    def _needed(self, ahead: CallAhead, makers: dict[Value, Op]) -> tuple[list[Op], str | None]:
        """The ops in arms that make the arguments of a call, or why it can't start before those."""
        if ahead.obstacle is not None:
            return [], ahead.obstacle
        found: dict[Op, None] = {}
        values = list(ahead.unknown)
        while values:
            value = values.pop()
            maker = makers.get(value)
            if maker is None:
                return [], f"it is called with what a loop or a map gives, or computes in it: {value}"
            if maker in found:
                continue
            if not self._may_move(maker):
                return [], f"it is called with what {getattr(maker, 'id', maker.NAME)!r} gives there"
            found[maker] = None
            values += [used for used in maker.operands if used in makers]
        return list(found), None

    def _may_move(self, op: Op) -> bool:
        is_pure = op.effect is Effect.PURE and not (op.may_raise or op.billable or has_id(op))
        return is_pure and not op.regions and not touches(op, self._seen_by_others)


def _ops_of_arms(op: Op) -> dict[Value, Op]:
    """The values defined in ``op``, with the ops that make them, in order, but for those in what repeats."""
    found: dict[Value, Op] = {}
    if isinstance(op, CondOp | TryOp):
        for region in op.regions:
            for inner in region.ops:
                found.update(_ops_of_arms(inner))
                found.update((value, inner) for value in inner.results)
    return found


@dataclass(frozen=True)
class _Changes:
    """Marks ops, and leaves out others, anywhere in an op's regions."""

    marked: Iterable[Op]
    left_out: frozenset[Op]

    def op(self, op: Op) -> Op:
        if op in self.marked:
            return dataclasses.replace(op, early=True)
        return with_regions(op, [self._block(region) for region in op.regions])

    def _block(self, block: Block) -> Block:
        return with_ops(block, [self.op(op) for op in block.ops if op not in self.left_out])
