"""The pass ``hoist-prefixes``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from lmc.ir.analysis.dependences import PathCosts, earliest_starts
from lmc.ir.analysis.ordering import Objects, objects_of, waits_of
from lmc.ir.core import Block, Effect, Op, Value, walk
from lmc.ir.dialects.core_ops import BeginOp, EndOp, ExtendOp, HostCallOp, PrefillOp, SampleOp
from lmc.ir.dialects.region_ops import LoopOp
from lmc.ir.dialects.regions import RegionOp, has_id
from lmc.ir.errors import InputError, Location
from lmc.ir.rewriter import with_regions
from lmc.ir.types import CTX, holds_context
from lmc.passes.analysis.context_lengths import ContextLengths
from lmc.passes.analysis.kv_hints import without_hints
from lmc.passes.analysis.liveness import exposed_values, touches
from lmc.passes.analysis.prefix_tree import (
    AHEAD_TOKENS,
    ContextUser,
    Counter,
    Parts,
    PrefixNode,
    PrefixTree,
    PrefixUse,
    joined,
)
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.rewriting import FreshNames, make_op, with_ops


@dataclass(frozen=True, eq=False, slots=True)
class User:
    """An op that continues a context and is, or leads to, a model call.

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
    """The contexts that ``op``, apart from its regions, continues towards a call."""
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


Moved = Callable[[RegionOp, list[Op]], None]


def move_invariants(body: Block, moved: Moved) -> Block:
    """The body of a function with invariant ops ahead of the loops, maps and races that held them.

    An op moves if it is pure, cannot raise, asks no model, has no id, and uses nothing that depends on the round. Lists
    and objects that others may change, or could tell apart, are left alone. ``moved`` is called for each op with
    regions that lost some.
    """
    return _Motion(body, moved).block(body)


class _Motion:
    """Recursion is as deep as regions are nested; inner regions go first, so that an op can leave several."""

    def __init__(self, body: Block, moved: Moved) -> None:
        self._moved = moved
        self._seen_by_others = exposed_values(body) | objects_of(body.ops).shared

    def block(self, block: Block) -> Block:
        ops: list[Op] = []
        for op in block.ops:
            if not isinstance(op, RegionOp):
                ops.append(op)
                continue
            rest = with_regions(op, [self.block(region) for region in op.regions])
            if not op.EXCLUSIVE:
                rest, found = self._split(rest)
                if found:
                    self._moved(op, found)
                    ops += found
            ops.append(rest)
        return with_ops(block, ops)

    def _split(self, op: Op) -> tuple[Op, list[Op]]:
        """``op`` without what is the same whenever its regions run, and that."""
        found: list[Op] = []
        regions: list[Block] = []
        for region in op.regions:
            inside: set[Value] = set(region.parameters)
            kept: list[Op] = []
            for inner in region.ops:
                if self._may_move(inner) and inside.isdisjoint(inner.operands):
                    found.append(inner)
                else:
                    kept.append(inner)
                    inside.update(inner.results)
            regions.append(with_ops(region, kept))
        return with_regions(op, regions), found

    def _may_move(self, op: Op) -> bool:
        is_pure = op.effect is Effect.PURE and not (op.may_raise or op.billable or has_id(op))
        return is_pure and not op.IS_TERMINATOR and not op.regions and not touches(op, self._seen_by_others)


def _delay(op: Op) -> int:
    """Return the time that an op takes, for the order of events: 1 for a model call or a host function, else 0."""
    return int(op.billable or isinstance(op, HostCallOp))


# Turns of the assistant may open differently for generation than in a transcript, so their text is not cut.
_SPLIT_ROLES = frozenset({None, "system", "user", "tool"})


class Remarks(Protocol):
    """The remarks of the pass. ``context`` counts tokens."""

    @property
    def context(self) -> Counter: ...

    def prefilled(self, node: PrefixNode) -> None: ...

    def short(self, node: PrefixNode) -> None: ...

    def late_text(self, tree: PrefixTree, users: Sequence[User]) -> None: ...


@dataclass
class _Function:
    """The shared state of walks over the blocks of a function.

    ``replaced`` maps contexts without a defining op to their replacements; those in ``decided`` have been planned.
    """

    minimum_tokens: int
    remarks: Remarks
    names: FreshNames
    leading: set[Value]
    constants: frozenset[Value]
    lengths: ContextLengths
    objects: Objects
    slow: PathCosts[int]
    replaced: dict[Value, Value] = field(default_factory=dict[Value, Value])
    decided: set[Value] = field(default_factory=set[Value])


class PrefixWalk:
    """One forward walk over a block; prefixes of a context are planned when it is there and made at their first use.

    Users in regions of the block count: their prefixes are made ahead of the op that holds the regions, and then the
    regions are walked over themselves. Recursion is as deep as regions are nested.
    """

    @classmethod
    def over(cls, body: Block, minimum_tokens: int, remarks: Remarks) -> Block:
        """The rewritten body of a function."""
        objects = objects_of(body.ops)
        function = _Function(
            minimum_tokens,
            remarks,
            FreshNames(body),
            contexts_that_lead_to_calls(body),
            same_in_every_instance(body),
            ContextLengths(remarks.context),
            objects,
            PathCosts(objects, _delay),
        )
        return cls(function, body, None).run()

    def __init__(self, function: _Function, block: Block, around: Op | None) -> None:
        self.function = function
        self.block = block
        self.around = around
        self.users = users_that_call(block, function.leading)
        costs = [function.slow.of(op) for op in block.ops]
        starts = earliest_starts(costs, waits_of(block.ops, function.objects))
        self.ready = {
            value: start + cost
            for op, start, cost in zip(block.ops, starts, costs, strict=True)
            for value in op.results
        }
        self.ops: list[Op] = []
        self.places: dict[Op, tuple[PrefixNode, Parts]] = {}
        self.nested: dict[int, list[Op]] = {}
        self.roots: dict[PrefixNode, Value] = {}
        self.made: dict[PrefixNode, Value] = {}

    def run(self) -> Block:
        """The rewritten block."""
        for value in self.block.parameters:
            if value.type == CTX:
                self.function.lengths.start(value)
        if self.around is not None:
            inside = {value for op in self.block.ops for value in op.results}
            for value in self.users:
                if value not in inside:
                    self._plan(self.around, value)
        for index, op in enumerate(self.block.ops):
            self._emit(index, op)
            for value in op.results:
                if value.type == CTX:
                    self.function.lengths.add(op, value)
                    if value in self.users:
                        self._plan(op, value)
        return with_ops(self.block, self.ops)

    # Planning

    def _plan(self, op: Op, value: Value) -> None:
        """Decide where the users of ``value`` share a prefix. ``op`` gives it, or holds the block that it comes to."""
        users = self.users[value]
        constant = self.around is None and value in self.function.constants
        ready = self.ready.get(value, 0)
        is_alone = len(users) == 1 and users[0].requests == 1 and not (users[0].repeats or self._waits(users[0], ready))
        if (is_alone and not constant) or (
            users[0].arm is not None and all(user.arm == users[0].arm for user in users)
        ):
            return
        root = PrefixNode(
            parent=None,
            parts=(),
            opens=None,
            measure=self.function.lengths.whole(value),
            covered=self.function.lengths.covered(value),
            computed=self.function.lengths.computed(value),
            constant=constant,
            members=len(users),
            location=op.location,
        )
        root.prefilled = root.measure == root.covered
        self.roots[root] = value
        if root.prefilled:
            self.made[root] = self.function.replaced.get(value, value)
        tree = PrefixTree(root, self.function.minimum_tokens, self.function.remarks.context)
        tree.build(self._members(users, ready))
        self._count_branches(tree, users, ready)
        for node in tree.nodes:
            if node is not root or value not in self.function.decided:
                self._decide(node)
        self.function.decided.add(value)
        self.function.remarks.late_text(tree, users)
        for number, user in enumerate(users):
            self.places[user.op] = tree.place.get(number, (root, ()))
            if user.op is not self.block.ops[user.index]:
                self.nested.setdefault(user.index, []).append(user.op)

    def _waits(self, user: User, ready: int) -> bool:
        """Return True if ``user`` runs in any case, and an operand is known later than its context, at ``ready``."""
        inside = user.op is not self.block.ops[user.index]
        return not inside and any(self.ready.get(value, 0) > ready for value in user.op.operands)

    def _members(self, users: Sequence[User], ready: int) -> list[ContextUser]:
        """Return the users that append text which others may share, or which is known before the rest of the prompt.

        Text of a region is not known outside of it.
        """
        members: list[ContextUser] = []
        for number, user in enumerate(users):
            op, waits = user.op, self._waits(user, ready)
            if not isinstance(op, ExtendOp) or op.role not in _SPLIT_ROLES:
                continue
            text = joined(op.text)
            late = {part for part in op.operands if self.ready.get(part, 0) > ready} if waits else user.hidden
            cut = next(
                (index for index, part in enumerate(text) if isinstance(part, Value) and part in late), len(text)
            )
            if text[:cut]:
                members.append(
                    ContextUser(number, op.role, text[:cut], op.location, text[cut:], user.repeats, user.arm, waits)
                )
        return members

    def _count_branches(self, tree: PrefixTree, users: Sequence[User], ready: int) -> None:
        """Note what leaves each node."""
        for node in tree.nodes[1:]:
            assert node.parent is not None
            node.parent.branches.append(PrefixUse())
            node.parent.leaves_batch |= not node.constant
        for number, user in enumerate(users):
            node, _ = tree.place.get(number, (tree.root, ()))
            node.branches.append(PrefixUse(user.requests, user.repeats, user.arm, self._waits(user, ready)))
            node.leaves_batch |= not self.function.constants.issuperset(user.op.results)

    def _decide(self, node: PrefixNode) -> None:
        """Decide on a prefill of the prefix that ends at ``node``. Its parents have been decided."""
        if node.parent is not None:
            node.covered = node.parent.measure if node.parent.prefilled else node.parent.covered
            node.computed = node.parent.measure if node.parent.prefilled else node.parent.computed
        for_batch = node.constant and node.leaves_batch
        node.ahead = node.gained_ahead.reaches(AHEAD_TOKENS)
        is_own = node.ahead and not node.constant
        if node.prefilled or not (node.is_shared or for_batch or is_own):
            return
        if is_own or node.gained.reaches(self.function.minimum_tokens):
            node.prefilled = True
            self.function.remarks.prefilled(node)
        elif node.gained.tokens:
            self.function.remarks.short(node)

    # Emitting

    def _emit(self, index: int, op: Op) -> None:
        rewritten = self._placed(op)
        placed = {inner: self._placed(inner) for inner in self.nested.pop(index, ())}
        for each in rewritten:
            regions = [self._renamed(region, placed) for region in each.regions]
            regions = [PrefixWalk(self.function, region, each).run() for region in regions]
            self.ops.append(with_regions(each, regions))

    def _renamed(self, block: Block, placed: dict[Op, list[Op]]) -> Block:
        """A region with what takes the place of the ops in ``placed``."""
        ops: list[Op] = []
        for op in block.ops:
            for each in placed.get(op, (op,)):
                regions = [self._renamed(region, placed) for region in each.regions]
                ops.append(with_regions(each.substitute(self.function.replaced), regions))
        return with_ops(block, ops)

    def _placed(self, op: Op) -> list[Op]:
        """Return the replacement of ``op``; the prefix that it starts from is computed then."""
        if op not in self.places:
            return [op.substitute(self.function.replaced)]
        node, rest = self.places.pop(op)
        context = self._materialize(node)
        covered = node.measure if node.prefilled else node.covered
        for value in op.results:
            if value.type == CTX:
                self.function.lengths.cover(value, covered)
        if node.parent is None:
            return [op.substitute({self.roots[node]: context}).substitute(self.function.replaced)]
        assert isinstance(op, ExtendOp)
        if op.role is None and not rest:
            self.function.replaced[op.results[0]] = context
            return []
        if op.role is None:
            return [dataclasses.replace(op, context=context, text=rest)]
        if not rest:
            return [make_op(EndOp, op.results, op.location, context=context)]
        appended = self._new(ExtendOp, node, "rest", op.location, context=context, text=rest)
        return [appended, make_op(EndOp, op.results, op.location, context=appended.results[0])]

    def _materialize(self, node: PrefixNode) -> Value:
        """The context at ``node``; its ops, and those of its parents, are made at the first use."""
        missing: list[PrefixNode] = []
        at: PrefixNode | None = node
        while at is not None and at not in self.made:
            missing.append(at)
            at = at.parent
        for each in reversed(missing):
            self.made[each] = self._make(each)
        return self.made[node]

    def _make(self, node: PrefixNode) -> Value:
        if node.parent is None:
            context = self.function.replaced.get(self.roots[node], self.roots[node])
        else:
            context = self.made[node.parent]
            if node.opens is not None:
                context = self._add(BeginOp, node, "open", context=context, role=node.opens)
            context = self._add(ExtendOp, node, "shared", context=context, text=node.parts)
        if not node.prefilled:
            return context
        scope = "batch" if node.constant else "instance"
        return self._add(PrefillOp, node, "prefix", context=context, scope=scope, ahead=node.ahead and node.constant)

    def _add(self, kind: type[Op], node: PrefixNode, suffix: str, **fields: Any) -> Value:
        op = self._new(kind, node, suffix, node.location, **fields)
        self.ops.append(op)
        return op.results[0]

    def _new(self, kind: type[Op], node: PrefixNode, suffix: str, location: Location | None, **fields: Any) -> Op:
        root = node
        while root.parent is not None:
            root = root.parent
        result = Value(self.function.names.fresh(f"{self.roots[root].name}.{suffix}"), CTX)
        op = make_op(kind, (result,), location, **fields)
        self.function.lengths.add(op, result)
        self.function.decided.add(result)
        self.function.leading.add(result)
        return op


@dataclass(frozen=True)
class HoistPrefixes(FunctionPass):
    """Compute prefixes common to branches, calls and batch instances once, and pin them.

    Where several model calls go on from one context, ``lm.prefill`` computes its stable prefix before they start, and
    holds it until the last of them ends. Where those branches first append text that begins alike, that text is cut off
    and moved ahead of the prefill. A prefix that depends on no input gets ``scope = "batch"``: it is computed once for
    all instances, together with the literal text that the next op would begin with; an instance that runs alone leaves
    it to its calls.

    A prefix with text of the instance is computed ahead while the rest of its prompt waits for another call or a host
    function. It has at least 64 tokens that no earlier call computes.

    Regions are branches too: a prefix that the body of a loop or a map continues is computed before it, and so is
    one that both arms of a conditional begin with. What one arm alone shares stays there. Before that, ops that give
    the same in every round, cannot raise and ask no model are moved out of the bodies of loops, maps and races, as
    their contexts and texts may be such prefixes.

    Sound everywhere: ``lm.prefill`` gives its context back unchanged, a message is the same as ``begin``, its text and
    ``end``, and text may be cut anywhere, since pending text is settled as one string.

    ``minimum_tokens``: a prefill is a step of its own, so shorter prefixes are left to the calls. A text that is known
    at run time only counts as long enough.

    Before::

        %2, %a = lm.gen %1 {id = "f/a"} : !ctx, !text
        %3 = lm.extend %1, user ["Judge the tone of ", %x] : !ctx
        %4 = lm.extend %1, user ["Judge the style of ", %x] : !ctx

    After::

        %1.prefix = lm.prefill %1 : !ctx
        %2, %a = lm.gen %1.prefix {id = "f/a"} : !ctx, !text
        %1.open = lm.begin %1.prefix, user : !ctx
        %1.shared = lm.extend %1.open ["Judge the "] : !ctx
        ...

    Before::

        %r = cf.map (%essays) : !list<!text> ^body(%i: !int, %essay: !text) {
          %1 = lm.extend %0, system [%rules] : !ctx
          %2 = lm.extend %1, user ["Judge this essay: ", %essay] : !ctx
          %3, %a = lm.gen %2 (%i) {id = "f/a*"} : !ctx, !text
          cf.yield (%a)
        }

    After::

        %1 = lm.extend %0, system [%rules] : !ctx
        %1.open = lm.begin %1, user : !ctx
        %1.shared = lm.extend %1.open ["Judge this essay: "] : !ctx
        %1.prefix = lm.prefill %1.shared : !ctx
        %r = cf.map (%essays) : !list<!text> ^body(%i: !int, %essay: !text) {
          %1.rest = lm.extend %1.prefix [%essay] : !ctx
          %2 = lm.end %1.rest : !ctx
          %3, %a = lm.gen %2 (%i) {id = "f/a*"} : !ctx, !text
          cf.yield (%a)
        }
    """

    NAME: ClassVar[str] = "hoist-prefixes"

    minimum_tokens: int = 8

    def __post_init__(self) -> None:
        if self.minimum_tokens < 1:
            raise InputError(f"minimum_tokens is {self.minimum_tokens}", remedy="a prefix has at least one token")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        remarks = _Remarks(self, context)
        return PrefixWalk.over(move_invariants(without_hints(block), remarks.moved), self.minimum_tokens, remarks)


@dataclass(frozen=True)
class _Remarks:
    """Says what was done, and what could not be."""

    owner: HoistPrefixes
    context: PassContext

    def moved(self, op: RegionOp, found: Sequence[Op]) -> None:
        """Ops were moved out of the regions of ``op``."""
        what = "1 op gives" if len(found) == 1 else f"{len(found)} ops give"
        again = "the same in every round" if "loop" in op.NAME else "the same for every element"
        self.owner.applied(self.context, op, f"{what} {again}: computed once before {op.NAME}")

    def prefilled(self, node: PrefixNode) -> None:
        """The prefix that ends at ``node`` is computed ahead."""
        reasons: list[str] = []
        if len(node.branches) > 1 or any(branch.requests > 1 for branch in node.branches):
            reasons.append(f"for {sum(branch.requests for branch in node.branches)} branches")
        if any(branch.repeats for branch in node.branches):
            reasons.append("for all rounds or elements")
        if node.constant:
            reasons.append("for all instances of a batch")
        found = f"a prefix of {node.gained} is computed once {' and '.join(reasons)}"
        if node.ahead:
            how = "also" if reasons else f"a prefix of {node.gained_ahead} is computed"
            found = f"{found}, {how}" if reasons else how
            found += " while the next call waits for other results"
        self.owner.applied(
            self.context,
            node.location,
            found,
            saved_tokens=node.gained.tokens * node.computed_again,
        )

    def short(self, node: PrefixNode) -> None:
        """The prefix that ends at ``node`` is too short."""
        self.owner.missed(
            self.context,
            node.location,
            f"a prefix of {node.gained} is shared, but shorter than minimum_tokens={self.owner.minimum_tokens}",
            saved_tokens=node.gained.tokens * node.computed_again,
        )

    def late_text(self, tree: PrefixTree, users: Sequence[User]) -> None:
        """Long literal text that branches or instances share, but behind text in which they differ."""
        found: dict[str, list[int]] = {}
        for number, (_, rest) in tree.place.items():
            for part in dict.fromkeys(rest[1:]):
                if isinstance(part, str):
                    found.setdefault(part, []).append(number)
        for part, numbers in found.items():
            tokens = self.context.tokens(part)
            repeats = any(users[number].repeats for number in numbers)
            in_batch = tree.root.constant and len(tree.place) == 1
            if tokens < self.owner.minimum_tokens or not (len(numbers) > 1 or repeats or in_batch):
                continue
            who = "all instances of a batch share"
            if len(numbers) > 1 or repeats:
                who = f"{len(numbers)} branches share" if len(numbers) > 1 else "all rounds or elements share"
            self.owner.missed(
                self.context,
                users[numbers[0]].op,
                f"{who} {_excerpt(part)}, but behind text in which they differ: move it ahead of that",
                saved_tokens=tokens * (len(numbers) - 1 + repeats),
            )


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")
