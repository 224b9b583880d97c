"""The pass ``plan-fork-join``."""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.analysis.dependences import PathCosts, earliest_starts, last_end, longest_paths
from lmc.ir.analysis.ordering import Objects, objects_of, uses, waits_of
from lmc.ir.core import Block, Effect, Op, walk
from lmc.ir.dialects.core_ops import PrefillOp, SampleOp, SamplingOp, SelectOp
from lmc.ir.dialects.region_ops import CondOp, LoopOp, guarded_ops
from lmc.ir.dialects.regions import RegionOp, is_write
from lmc.ir.errors import InputError
from lmc.ir.rewriter import with_regions
from lmc.ir.types import CTX
from lmc.ir.wording import with_count
from lmc.passes.analysis.kv_hints import without_hints
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.rewriting import with_ops


class ExpectedTokens:
    """Tokens on the longest path through ops, and one for each call, as a call with an empty answer takes a step too.

    A generation without an expectation counts as one that is never reached. A conditional has the mean of its arms,
    the longer one if their probability is unknown; a loop its rounds, one if their number is unknown; elements of
    a map or a race run at the same time. ``objects`` are those of ``lmc.ir.analysis.ordering.waits_of``.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[RegionOp, float] = {}

    def after(self, ops: Sequence[Op], waits: Sequence[Sequence[int]]) -> list[float]:
        """For each op the tokens on the longest way from it to the end, itself included."""
        return longest_paths([self._of(op) for op in ops], waits)

    def _of(self, op: Op) -> float:
        if not op.billable:
            return 0.0
        if not isinstance(op, RegionOp):
            return 1.0 + ((op.expected_tokens or 0) if isinstance(op, SamplingOp) else 0)
        if op not in self._known:
            self._known[op] = self._of_regions(op)
        return self._known[op]

    def _of_regions(self, op: RegionOp) -> float:
        inside = [max(self.after(region.ops, waits_of(region.ops, self._objects))) for region in op.regions]
        if isinstance(op, CondOp):
            then, otherwise = inside
            return max(inside) if op.probability is None else otherwise + (then - otherwise) * op.probability
        if isinstance(op, LoopOp):
            condition, body = inside
            return condition + (condition + body) * (1.0 if op.expected_rounds is None else op.expected_rounds)
        return sum(inside)


def expects_anything(block: Block) -> bool:
    """Return whether it is known of a generation how long its outputs are."""
    return any(isinstance(op, SamplingOp) and op.expected_tokens is not None for op in walk((block,)))


def rounds_of(op: Op) -> int:
    """Return how many rounds of model calls the op itself takes; those of its regions are not counted."""
    return int(op.billable and not isinstance(op, RegionOp))


def weight_of(op: Op) -> int:
    """Return how many requests of the op run at once; one for an op with regions, whose number is unknown."""
    return op.n if isinstance(op, SampleOp) else 1


def limited_rounds(
    ops: Sequence[Op],
    lengths: Sequence[int],
    waits: Sequence[Sequence[int]],
    width: int,
    urgency: Sequence[float] | None = None,
) -> list[int]:
    """As ``lmc.ir.analysis.dependences.earliest_starts`` where at most ``width`` requests begin in a round.

    List scheduling: of the calls that are ready, those with the longest way to the end go first (Graham 1969, Hu 1961):
    in rounds, or by ``urgency``. One call of more than ``width`` requests has a round of its own.
    """
    schedule = _Schedule(ops, lengths, waits, longest_paths(lengths, waits) if urgency is None else urgency)
    schedule.run(width)
    return schedule.rounds


class _Schedule:
    """A list scheduler: ``rounds[i]`` is the first round in which op i can run, for a call the one in which it does."""

    def __init__(
        self,
        ops: Sequence[Op],
        lengths: Sequence[int],
        waits: Sequence[Sequence[int]],
        urgency: Sequence[float],
    ) -> None:
        self.rounds = [0] * len(ops)
        self._ops = ops
        self._lengths = lengths
        self._urgency = urgency
        self._missing = [len(needed) for needed in waits]
        self._followers: list[list[int]] = [[] for _ in ops]
        for index, needed in enumerate(waits):
            for earlier in needed:
                self._followers[earlier].append(index)
        self._free = [index for index, count in enumerate(self._missing) if not count]
        self._ready: list[tuple[float, int]] = []
        self._running: list[tuple[int, int]] = []

    def run(self, width: int) -> None:
        """Fill round after round with at most ``width`` requests."""
        current = 0
        while self._free or self._ready or self._running:
            while self._running and self._running[0][0] <= current:
                self._finish(heapq.heappop(self._running)[1], current)
            self._settle()
            room = width
            while self._ready and (room == width or weight_of(self._ops[self._ready[0][1]]) <= room):
                _, index = heapq.heappop(self._ready)
                room -= weight_of(self._ops[index])
                self.rounds[index] = current
                heapq.heappush(self._running, (current + self._lengths[index], index))
            current += 1

    def _settle(self) -> None:
        """Finish what is no call; the calls that are free now wait for room."""
        while self._free:
            index = self._free.pop()
            if self._lengths[index]:
                heapq.heappush(self._ready, (-self._urgency[index], index))
            else:
                self._finish(index, self.rounds[index])

    def _finish(self, index: int, available: int) -> None:
        """Op ``index`` is finished before round ``available``."""
        for follower in self._followers[index]:
            self.rounds[follower] = max(self.rounds[follower], available)
            self._missing[follower] -= 1
            if not self._missing[follower]:
                self._free.append(follower)


Call = SamplingOp | SelectOp


@dataclass(frozen=True)
class PlanForkJoin(FunctionPass):
    """Decide which model calls run together: waves, groups that share a prefix, and the order of ops.

    ``wave`` of a call is its round: the number of calls on the longest path to it, or more where ``width``, or else the
    ``concurrency`` of the target, limits how many requests a round has; then calls with the longest path to the end go
    first. Calls of one wave whose contexts start from one prefix (an ``lm.prefill``, or a context with several users)
    get a common ``group``.

    Where output lengths are known (``expected_tokens``, of a profile), the longest path is that of the most
    tokens, and calls of a wave are sorted by theirs: where not all of them run at once, those begin first that
    others would have to wait for in the end.

    Ops are put in the order of waves, the calls of a wave side by side, their producers before them: so a join is
    right after the last wave it waits for, and nothing it does not need is before it.

    Regions are planned each by itself, and their waves count from where the region begins. An op with regions takes as
    many rounds as the calls that follow each other inside: a loop or a map as if it ran once, a conditional as its
    longer arm.

    Sound because only independent ops trade places: results are the same in any order that keeps operands before
    users, and random draws are keyed by ids. Ops that may raise keep their order among each other (model calls
    apart), and nothing moves past an op that writes or may leave the program, so a program that fails has done the same
    effects and fails alike. In the body of a ``cf.try`` all ops keep their order: it shows which call fails first.

    Before::

        %2, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
        %3 = lm.extend %2 ["!"] : !ctx
        %4, %b = lm.gen %3 {id = "f/b"} : !ctx, !text
        %5, %c = lm.gen %1 {id = "f/c"} : !ctx, !text

    After::

        %2, %a = lm.gen %1 {group = "g0", id = "f/a", wave = 0} : !ctx, !text
        %5, %c = lm.gen %1 {group = "g0", id = "f/c", wave = 0} : !ctx, !text
        %3 = lm.extend %2 ["!"] : !ctx
        %4, %b = lm.gen %3 {id = "f/b", wave = 1} : !ctx, !text
    """

    NAME: ClassVar[str] = "plan-fork-join"

    width: int | None = None

    def __post_init__(self) -> None:
        if self.width is not None and self.width < 1:
            raise InputError(f"width is {self.width}", remedy="a round has room for at least one request")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        block = without_hints(block)
        return _Planner(self, block, context).block(block, None)


class _Planner:
    """Plans a function block by block. Recursion is as deep as regions are nested."""

    def __init__(self, owner: PlanForkJoin, body: Block, context: PassContext) -> None:
        self.owner = owner
        self.context = context
        self.width = context.width if owner.width is None else owner.width
        self.objects = objects_of(body.ops)
        self.lengths = PathCosts(self.objects, rounds_of)
        self.expected = ExpectedTokens(self.objects) if expects_anything(body) else None
        self.groups_so_far = 0
        self.guarded = guarded_ops(body)

    def block(self, block: Block, around: RegionOp | None) -> Block:
        """The planned block, a region of ``around``."""
        ops = block.ops
        if not any(op.billable for op in ops):
            return block
        waits = waits_of(ops, self.objects)
        lengths = [self.lengths.of(op) for op in ops]
        shortest = earliest_starts(lengths, waits)
        urgency = None if self.expected is None else self.expected.after(ops, waits)
        rounds = shortest if self.width is None else limited_rounds(ops, lengths, waits, self.width, urgency)
        groups = _groups(ops, rounds)
        self._remark(ops, lengths, shortest, rounds, around)
        guarded = ops[0] in self.guarded
        order = list(range(len(ops))) if guarded else _order(ops, lengths, rounds, groups, urgency)
        if urgency is not None and not guarded:
            self._remark_order(ops, order, _order(ops, lengths, rounds, groups, None), urgency)
        names: dict[int, str] = {}
        planned: list[Op] = []
        for index in order:
            op = ops[index]
            if isinstance(op, RegionOp):
                planned.append(with_regions(op, [self.block(region, op) for region in op.regions]))
                continue
            if index in groups and groups[index] not in names:
                names[groups[index]] = f"g{self.groups_so_far}"
                self.groups_so_far += 1
            planned.append(_planned(op, rounds[index], names.get(groups.get(index, -1))))
        return with_ops(block, planned)

    def _remark(
        self,
        ops: Sequence[Op],
        lengths: Sequence[int],
        shortest: Sequence[int],
        rounds: Sequence[int],
        around: RegionOp | None,
    ) -> None:
        calls = [index for index, length in enumerate(lengths) if length]
        if len(calls) == 1:
            return
        where = f"in {around.NAME}: " if around is not None else ""
        waves = last_end(rounds, lengths)
        last = max(calls, key=lambda index: (shortest[index] + lengths[index], -index))
        longest = shortest[last] + lengths[last]
        message = (
            f"{where}{_listed(ops[index] for index in calls)} in {with_count(waves, 'wave')}; the longest chain has "
            f"{with_count(longest, 'call')} and ends with {_identity(ops[last])}"
        )
        saved = sum(lengths) - waves
        self.owner.applied(self.context, ops[last], message, saved_steps=saved)
        if self.width is not None and waves > longest:
            room = f"room for {with_count(self.width, 'request')}"
            message = f"{where}{room} makes {waves} waves of what could run in {longest}"
            self.owner.missed(self.context, ops[last], message)
        for index, joined in _joins(ops):
            wave = max(rounds[call] + lengths[call] - 1 for call in joined)
            message = f"{where}joins {with_count(len(joined), 'call')}; it can start right after wave {wave}"
            self.owner.applied(self.context, ops[index], message)

    def _remark_order(
        self, ops: Sequence[Op], order: Sequence[int], before: Sequence[int], urgency: Sequence[float]
    ) -> None:
        """Record the calls that begin earlier because their lengths are known."""
        places = {index: place for place, index in enumerate(before)}
        earlier = [index for place, index in enumerate(order) if ops[index].billable and place < places[index]]
        if earlier:
            first = max(earlier, key=lambda index: (urgency[index], -index))
            tokens = f"about {with_count(round(urgency[first]), 'token')}"
            message = f"{_identity(ops[first])} begins before other calls of its wave: from it on {tokens} are expected"
            self.owner.applied(self.context, ops[first], message)


def _planned(op: Op, wave: int, group: str | None) -> Op:
    if not (isinstance(op, Call) and op.billable) or (op.wave, op.group) == (wave, group):
        return op
    return dataclasses.replace(op, wave=wave, group=group)


def _groups(ops: Sequence[Op], rounds: Sequence[int]) -> dict[int, int]:
    """For each call that shares its prefix with others of its round the first of them."""
    users = Counter(value.name for op in ops if _goes_on(op) for value in op.operands if value.type == CTX)
    prefixes = {name: name for name, count in users.items() if count > 1}
    members: dict[tuple[int, str], list[int]] = {}
    for index, op in enumerate(ops):
        before = next((prefixes[value.name] for value in op.operands if value.name in prefixes), None)
        is_prefill = isinstance(op, PrefillOp)
        if before is None and not is_prefill:
            continue
        if before is not None and isinstance(op, Call) and op.billable:
            members.setdefault((rounds[index], before), []).append(index)
        for value in op.results:
            if value.type == CTX and value.name not in prefixes:
                prefixes[value.name] = value.name if is_prefill or before is None else before
    return {index: indices[0] for indices in members.values() if len(indices) > 1 for index in indices}


def _goes_on(op: Op) -> bool:
    """Return whether the op continues a context, rather than reading it."""
    return op.billable or any(value.type == CTX for value in op.results)


def _order(
    ops: Sequence[Op],
    lengths: Sequence[int],
    rounds: Sequence[int],
    groups: dict[int, int],
    urgency: Sequence[float] | None,
) -> list[int]:
    """The order of ops: by wave, in each first what feeds its calls, then the calls, group by group, urgent ones first.

    Any order by these levels keeps operands before users: an op's level is that of its operands or a later one, and of
    the same level are only ops that keep their old order, and calls, whose results are of a later level.
    """
    ready: dict[str, int] = {}
    segment = 0
    last_raising = 0
    most_urgent: dict[int, float] = {}
    for index, tokens in enumerate(urgency or ()):
        group = groups.get(index, index)
        most_urgent[group] = max(most_urgent.get(group, 0.0), tokens)
    keys: list[tuple[float, ...]] = []
    for index, op in enumerate(ops):
        level = max([ready[value.name] for value in uses(op) if value.name in ready], default=0)
        level += level % 2  # even levels hold what feeds the calls of the odd level after it
        if lengths[index]:
            level = max(level, 2 * rounds[index]) + 1
        stays = _keeps_its_place(op) or op.IS_TERMINATOR
        stays = stays or (bool(op.REGION_FIELDS) and any(map(_keeps_its_place, walk(op.regions))))
        if stays:
            level = last_raising = max(level, last_raising)
        given = max(level, 2 * (rounds[index] + lengths[index])) if lengths[index] else level
        for value in op.results:
            ready[value.name] = given
        is_border = is_write(op) or (isinstance(op, RegionOp) and op.leaves)
        if is_border or op.IS_TERMINATOR:
            segment += 1
        group = groups.get(index, index)
        place: tuple[float, ...] = (0.0, group, 0.0)
        if urgency is not None and level % 2:
            place = (-math.inf, group, 0.0) if stays else (-most_urgent[group], group, -urgency[index])
        keys.append((segment, level, *place, index))
        if is_border:
            segment += 1
            last_raising = 0
    return sorted(range(len(ops)), key=keys.__getitem__)


def _keeps_its_place(op: Op) -> bool:
    """Return whether the op, apart from those in its regions, raises or has effects beyond those of a model call."""
    if isinstance(op, RegionOp):
        return op.raises_itself
    return not op.billable and (op.may_raise or op.effect is not Effect.PURE)


def _joins(ops: Sequence[Op]) -> list[tuple[int, list[int]]]:
    """Ops that bring the answers of several calls together, each with those calls in the order they stand."""
    sources: dict[str, int] = {}
    found: list[tuple[int, list[int]]] = []
    for index, op in enumerate(ops):
        if op.billable:
            sources.update((value.name, index) for value in op.results)
            continue
        calls = sorted({sources[value.name] for value in uses(op) if value.name in sources and value.type != CTX})
        if len(calls) > 1 and not op.IS_TERMINATOR:
            found.append((index, calls))
        elif calls:
            sources.update((value.name, calls[-1]) for value in op.results)
    return found


def _listed(ops: Iterable[Op]) -> str:
    """Return what makes calls: those of the block themselves, and ops with calls inside."""
    counts = Counter(op.NAME if isinstance(op, RegionOp) else "model call" for op in ops)
    direct = counts.pop("model call", 0)
    return " and ".join(with_count(count, name) for name, count in (("model call", direct), *counts.items()) if count)


def _identity(op: Op) -> str:
    return repr(getattr(op, "id", None) or op.NAME)
