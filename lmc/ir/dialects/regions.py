"""The common base of ops with regions: effects and uses of their regions, computed once for each op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.builtins.statements import RAISING
from lmc.ir.cached import cached_property
from lmc.ir.core import Block, Effect, Op, Value, attribute
from lmc.ir.dialects.core_ops import (
    AssumeOp,
    BreakOp,
    HostCallOp,
    PyCallOp,
    ReturnOp,
    SamplingOp,
    SelectOp,
    UnreachableOp,
)
from lmc.ir.dialects.rules import expect_occurrences
from lmc.ir.types import ANY, JsonType, ListType, holds_context

LEAVING = (ReturnOp, BreakOp, UnreachableOp)
"""Terminators after which control does not come back to the op that holds the region."""
_STRENGTH = (Effect.PURE, Effect.LOCAL, Effect.SAMPLES, Effect.READS, Effect.WRITES)


@dataclass(frozen=True, eq=False, kw_only=True)
class RegionOp(Op):
    """The common base of ops with regions.

    ``id`` is the key of its runs in a profile (``lmc.ir.profile``), or none.
    """

    # The cached properties keep an analysis of nested ops linear.
    id: str | None = attribute(None)

    EXCLUSIVE: ClassVar[bool] = False
    """True if at most one of the regions runs, and that at most once."""

    def verify(self) -> None:
        if self.id is not None:
            expect_occurrences(self, (self.id,), ())

    def verify_regions(self) -> None:
        """Raise ``VerifyError`` where regions and op don't fit together. Everything inside is verified already."""

    def flows(self) -> Iterator[tuple[Value, Value]]:
        """Return where values go: from operands to parameters, from terminators to results and to later regions."""
        return iter(())

    def carried(self) -> Iterator[tuple[Value, Value]]:
        """Return where values go from one run of a region to the next one of a region that stands before it."""
        return iter(())

    @property
    def effect(self) -> Effect:
        """The strongest effect of the ops inside."""
        return max(self.effects, key=_STRENGTH.index)

    @cached_property
    def effects(self) -> frozenset[Effect]:
        """Everything the ops inside do; at least ``PURE``.

        Leaving the program counts as ``WRITES``: without the op, all that comes after it would run.
        """
        leaving = (Effect.WRITES,) if self.leaves else ()
        return frozenset((Effect.PURE, *leaving, *(effect for op in self._inner for effect in effects_of(op))))

    @property
    def raises_itself(self) -> bool:
        """Return whether the op may raise whatever the ops inside do."""
        return False

    @property
    def may_raise(self) -> bool:
        """If an op inside may raise, or the op itself (``limit``, ``strict``, a race)."""
        return self.raises_itself or self.inner_may_raise

    @property
    def billable(self) -> bool:
        """If an op inside is billable."""
        return self.inner_billable

    @cached_property
    def inner_may_raise(self) -> bool:
        """Return whether an op inside may raise."""
        return any(op.may_raise for op in self._inner)

    @cached_property
    def may_exit(self) -> bool:
        """Return whether an op inside may raise what a ``cf.try`` does not catch (``may_exit``)."""
        return any(map(may_exit, self._inner))

    @cached_property
    def inner_billable(self) -> bool:
        """Return whether an op inside is billable."""
        return any(op.billable for op in self._inner)

    @cached_property
    def writes(self) -> bool:
        """Return whether an op inside changes something outside the graph."""
        return any(is_write(op) for op in self._inner)

    @cached_property
    def changes_objects(self) -> bool:
        """Return whether an op inside makes, changes or looks into an object of this run (``Effect.LOCAL``)."""
        return Effect.LOCAL in self.effects

    @cached_property
    def leaves(self) -> bool:
        """Return whether the program, or its captured part, may end inside."""
        return any(map(may_leave, self.regions))

    @cached_property
    def has_ids(self) -> bool:
        """Return whether an op inside has an id (``has_id``)."""
        return any(map(has_id, self._inner))

    @cached_property
    def gives_objects(self) -> bool:
        """Return whether a host function that is called inside gives an object which others may change."""
        return any(map(gives_objects, self._inner))

    @cached_property
    def free_values(self) -> tuple[Value, ...]:
        """The values from outside that the ops inside use, each once, in the order of their first uses."""
        inside = {value for region in self.regions for value in region.parameters}
        found: dict[Value, None] = {}
        for op in self._inner:
            found.update((value, None) for value in op.operands)
            if isinstance(op, RegionOp):
                found.update((value, None) for value in op.free_values)
            inside.update(op.results)
        return tuple(value for value in found if value not in inside)

    @property
    def _inner(self) -> tuple[Op, ...]:
        """The ops of the regions, without those in regions of their own."""
        return tuple(op for region in self.regions for op in region.ops)


def may_exit(op: Op) -> bool:
    """Return whether the op may raise what a ``cf.try`` without ``base`` lets through.

    That are exceptions which are no ``Exception``, such as ``SystemExit``: of host functions and ``raise`` statements.
    A failed ``py.assume`` ends the run, so nothing catches it.
    """
    if isinstance(op, RegionOp):
        return op.may_exit
    return isinstance(op, HostCallOp | AssumeOp) or (isinstance(op, PyCallOp) and op.function in RAISING)


def effects_of(op: Op) -> frozenset[Effect]:
    """The effects of an op and of all ops in its regions."""
    return op.effects if isinstance(op, RegionOp) else frozenset((op.effect,))


def is_read(op: Op) -> bool:
    """Return whether the op, or one in its regions, reads data that somebody else may change."""
    return Effect.READS in op.effects if isinstance(op, RegionOp) else op.effect is Effect.READS


def is_write(op: Op) -> bool:
    """Return whether the op changes something outside the graph, so that no op that may fail can be moved past it."""
    if isinstance(op, RegionOp):
        return op.writes
    return op.effect is Effect.WRITES and not isinstance(op, AssumeOp)


def is_local(op: Op) -> bool:
    """Return whether the op, or one in its regions, makes, changes or looks into an object of this run."""
    return op.changes_objects if isinstance(op, RegionOp) else op.effect is Effect.LOCAL


def may_leave(block: Block) -> bool:
    """Return whether the program may end in this block or in a region of it, other than by an exception.

    Where no run gets to the end of a block, an op before that leaves or raises; which of them, that op says.
    """
    return isinstance(block.terminator, ReturnOp | BreakOp) or any(
        isinstance(op, RegionOp) and op.leaves for op in block.ops
    )


def has_id(op: Op) -> bool:
    """Return whether the op, or one in its regions, has an id: it reports text, or calls a function of the user's."""
    return op.has_ids if isinstance(op, RegionOp) else isinstance(op, SamplingOp | SelectOp | HostCallOp)


def gives_objects(op: Op) -> bool:
    """Return whether a host function gives an object here, in a region too, which others may change."""
    if isinstance(op, RegionOp):
        return op.gives_objects
    return isinstance(op, HostCallOp) and any(map(can_change, op.results))


def can_change(value: Value) -> bool:
    """Return whether the value may be a Python object that can change."""
    kind = value.type
    return kind == ANY or (isinstance(kind, ListType | JsonType) and not holds_context(kind))
