"""Placement of prefills: the walk of ``hoist-prefixes`` over a function and its regions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lmc.ir.core import Block, Op, Value
from lmc.ir.dialects.core_ops import BeginOp, EndOp, ExtendOp, PrefillOp
from lmc.ir.errors import Location
from lmc.ir.rewriter import with_regions
from lmc.ir.types import CTX
from lmc.passes.analysis.context_lengths import ContextLengths
from lmc.passes.analysis.prefix_tree import ContextUser, Counter, Parts, PrefixNode, PrefixTree, PrefixUse, joined
from lmc.passes.hoist_prefixes.branches import (
    User,
    contexts_that_lead_to_calls,
    same_in_every_instance,
    users_that_call,
)
from lmc.passes.rewriting.new_ops import FreshNames, make_op, with_ops

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
        function = _Function(
            minimum_tokens,
            remarks,
            FreshNames(body),
            contexts_that_lead_to_calls(body),
            same_in_every_instance(body),
            ContextLengths(remarks.context),
        )
        return cls(function, body, None).run()

    def __init__(self, function: _Function, block: Block, around: Op | None) -> None:
        self.function = function
        self.block = block
        self.around = around
        self.users = users_that_call(block, function.leading)
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
        is_alone = len(users) == 1 and users[0].requests == 1 and not users[0].repeats
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
            constant=constant,
            members=len(users),
            location=op.location,
        )
        root.prefilled = root.measure == root.covered
        self.roots[root] = value
        if root.prefilled:
            self.made[root] = self.function.replaced.get(value, value)
        tree = PrefixTree(root, self.function.minimum_tokens, self.function.remarks.context)
        tree.build(_members(users))
        self._count_branches(tree, users)
        for node in tree.nodes:
            if node is not root or value not in self.function.decided:
                self._decide(node)
        self.function.decided.add(value)
        self.function.remarks.late_text(tree, users)
        for number, user in enumerate(users):
            self.places[user.op] = tree.place.get(number, (root, ()))
            if user.op is not self.block.ops[user.index]:
                self.nested.setdefault(user.index, []).append(user.op)

    def _count_branches(self, tree: PrefixTree, users: Sequence[User]) -> None:
        """Note what leaves each node."""
        for node in tree.nodes[1:]:
            assert node.parent is not None
            node.parent.branches.append(PrefixUse())
            node.parent.leaves_batch |= not node.constant
        for number, user in enumerate(users):
            node, _ = tree.place.get(number, (tree.root, ()))
            node.branches.append(PrefixUse(user.requests, user.repeats, user.arm))
            node.leaves_batch |= not self.function.constants.issuperset(user.op.results)

    def _decide(self, node: PrefixNode) -> None:
        """Decide on a prefill of the prefix that ends at ``node``. Its parents have been decided."""
        if node.parent is not None:
            node.covered = node.parent.measure if node.parent.prefilled else node.parent.covered
        for_batch = node.constant and node.leaves_batch
        if node.prefilled or not (node.is_shared or for_batch):
            return
        if node.gained.reaches(self.function.minimum_tokens):
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
        return self._add(PrefillOp, node, "prefix", context=context, scope=scope)

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


def _members(users: Sequence[User]) -> list[ContextUser]:
    """The users that append text which others may share; what belongs to a region is not there outside of it."""
    members: list[ContextUser] = []
    for number, user in enumerate(users):
        op = user.op
        if not isinstance(op, ExtendOp) or op.role not in _SPLIT_ROLES:
            continue
        text = joined(op.text)
        cut = next((at for at, part in enumerate(text) if isinstance(part, Value) and part in user.hidden), len(text))
        if text[:cut]:
            members.append(ContextUser(number, op.role, text[:cut], op.location, text[cut:], user.repeats, user.arm))
    return members
