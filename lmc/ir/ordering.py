"""What must be finished before an op may start: its operands, and the effects it must not overtake.

One set of rules for every pass, the backend and the graph views, so that a plan can't allow what a pass forbids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmc.ir.core import Effect, Op, Value, walk
from lmc.ir.ops import AssumeOp, HostCallOp
from lmc.ir.types import ANY, JsonType, ListType


def waits_of(ops: Sequence[Op]) -> list[tuple[int, ...]]:
    """For each op of a block the indices of those it waits for, ascending. Linear in operands.

    Writes keep their order, reads wait for the last write, and a write waits for everything earlier that reads or may
    raise: where plain Python would have stopped before a write, it does not happen here either. Looking into a list or
    an object that a host function gave counts as a read, since any write may change it. ``py.assume`` only checks.
    """
    producers: dict[Value, int] = {}
    shared: set[Value] = set()
    last_write: int | None = None
    before_next_write: list[int] = []
    found: list[tuple[int, ...]] = []
    for index, op in enumerate(ops):
        used = list(uses(op))
        needed = {producers[value] for value in used if value in producers}
        looks_at_shared = any(value in shared for value in used)
        effects = effects_of(op)
        writes = is_write(op)
        reads = Effect.READS in effects or looks_at_shared
        if last_write is not None and (writes or reads):
            needed.add(last_write)
        if writes:
            needed.update(before_next_write)
            before_next_write, last_write = [], index
        elif reads or op.may_raise:
            before_next_write.append(index)
        found.append(tuple(sorted(needed)))
        producers.update((value, index) for value in op.results)
        if looks_at_shared or isinstance(op, HostCallOp):
            shared.update(value for value in op.results if _can_change(value))
    return found


def is_write(op: Op) -> bool:
    """Whether the op changes something outside the graph, so that no op that may fail can trade places with it."""
    return Effect.WRITES in effects_of(op) and not isinstance(op, AssumeOp)


def effects_of(op: Op) -> frozenset[Effect]:
    """The effects of an op and of all ops in its regions."""
    return frozenset((op.effect, *(inner.effect for inner in walk(op.regions))))


def uses(op: Op) -> Iterator[Value]:
    """The values an op uses, those from outside that its regions use included; repeats included."""
    yield from op.operands
    if not op.regions:
        return
    inner = [*walk(op.regions)]
    defined = {value for one in inner for value in one.results}
    defined.update(value for one in (op, *inner) for region in one.regions for value in region.parameters)
    yield from (value for one in inner for value in one.operands if value not in defined)


def _can_change(value: Value) -> bool:
    return value.type == ANY or isinstance(value.type, ListType | JsonType)
