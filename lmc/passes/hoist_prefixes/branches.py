"""Users of a context, and the values that are the same in every instance of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import SampleOp
from lmc.ir.dialects.region_ops import LoopOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.types import CTX, holds_context


@dataclass(frozen=True, eq=False, slots=True)
class User:
    """An op that goes on from a context and is, or leads to, a model call.

    ``index`` is its place in the block that is looked at, or that of the op whose regions hold it; then ``hidden`` are
    the values of those regions. ``repeats`` says that it may run several times, ``arm`` in which of several exclusive
    regions it stands.
    """

    op: Op
    index: int
    repeats: bool = False
    arm: tuple[int, int] | None = None
    hidden: AbstractSet[Value] = frozenset()

    @property
    def requests(self) -> int:
        """The number of requests that start from the context when the op runs."""
        return self.op.n if isinstance(self.op, SampleOp) else 1


def contexts_that_lead_to_calls(body: Block) -> set[Value]:
    """The contexts of a function from which a model call goes on, at once or further down. Linear."""
    sources: dict[Value, list[Value]] = {}
    work: list[Value] = []
    for op in walk((body,)):
        if isinstance(op, RegionOp):
            for source, place in (*op.flows(), *op.carried()):
                if holds_context(place.type):
                    sources.setdefault(place, []).append(source)
            continue
        used = [value for value in op.operands if value.type == CTX]
        if op.billable:
            work += used
        for value in op.results:
            if value.type == CTX:
                sources.setdefault(value, []).extend(used)
    found: set[Value] = set()
    while work:
        value = work.pop()
        if value not in found:
            found.add(value)
            work += sources.get(value, ())
    return found


def users_that_call(block: Block, leading: AbstractSet[Value]) -> dict[Value, list[User]]:
    """For each context that a block and its regions use the ops that go on from it, in order.

    Contexts that belong to a region in it are left out. ``leading`` are ``contexts_that_lead_to_calls``.
    """
    users: dict[Value, list[User]] = {}
    for index, op in enumerate(block.ops):
        for value in _continued(op, leading):
            users.setdefault(value, []).append(User(op, index))
        if not isinstance(op, RegionOp):
            continue
        hidden = {value for region in op.regions for value in _defined(region)}
        for number, region in enumerate(op.regions):
            arm = (index, number) if op.EXCLUSIVE else None
            for inner, repeats in _inside(region, repeats=not op.EXCLUSIVE):
                for value in _continued(inner, leading):
                    if value not in hidden:
                        users.setdefault(value, []).append(User(inner, index, repeats, arm, hidden))
    return users


def same_in_every_instance(block: Block) -> frozenset[Value]:
    """The values of a function, but for those of regions, that depend on no input, no model and no host function."""
    same: set[Value] = set()
    for op in block.ops:
        is_plain = op.effect is Effect.PURE and not (op.may_raise or op.billable or op.regions)
        if is_plain and same.issuperset(op.operands):
            same.update(op.results)
    return frozenset(same)


def _continued(op: Op, leading: AbstractSet[Value]) -> list[Value]:
    """The contexts that ``op``, apart from its regions, goes on from towards a call."""
    if isinstance(op, LoopOp):
        pairs = zip(op.initial, op.condition.parameters, strict=True)
        return [value for value, place in pairs if isinstance(value, Value) and value.type == CTX and place in leading]
    if isinstance(op, RegionOp) or not (op.billable or any(value in leading for value in op.results)):
        return []
    return [value for value in op.operands if value.type == CTX]


def _defined(region: Block) -> Iterator[Value]:
    """All values of a region and of those in it."""
    yield from region.parameters
    for op in walk((region,)):
        yield from op.results
        for inner in op.regions:
            yield from inner.parameters


def _inside(region: Block, *, repeats: bool) -> Iterator[tuple[Op, bool]]:
    """All ops of a region and of those in it, in order, and whether they may run several times."""
    stack = [(iter(region.ops), repeats)]
    while stack:
        ops, repeats = stack[-1]
        op = next(ops, None)
        if op is None:
            stack.pop()
            continue
        yield op, repeats
        if isinstance(op, RegionOp):
            stack.extend((iter(inner.ops), repeats or not op.EXCLUSIVE) for inner in reversed(op.regions))
