"""The pass ``hoist-prefixes``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from lmc.ir.core import Block, Op, Value
from lmc.ir.errors import InputError, Location
from lmc.ir.ops import BeginOp, EndOp, ExtendOp, PrefillOp, SamplingOp
from lmc.ir.types import CTX
from lmc.passes.base import Pass, PassContext
from lmc.passes.branches import same_in_every_instance, users_that_call, weight
from lmc.passes.making import FreshNames, make_op
from lmc.passes.prefix_tree import Measure, Member, Node, Parts, PrefixTree, joined, text_measure

# Turns of the assistant may open differently for generation than in a transcript, so their text is not cut.
_SPLIT_ROLES = frozenset({None, "system", "user", "tool"})


@dataclass(frozen=True)
class HoistPrefixes(Pass):
    """Compute prefixes common to branches, calls and batch instances once, and pin them.

    Where several model calls go on from one context, ``lm.prefill`` computes its stable prefix before they start, and
    holds it until the last of them ends. Where those branches first append text that begins alike, that text is cut off
    and moved ahead of the prefill. A prefix that depends on no input gets ``scope = "batch"``: it is computed once for
    all instances, together with the literal text that the next op would begin with.

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
    """

    NAME: ClassVar[str] = "hoist-prefixes"

    minimum_tokens: int = 8

    def __post_init__(self) -> None:
        if self.minimum_tokens < 1:
            raise InputError(f"minimum_tokens is {self.minimum_tokens}", remedy="a prefix has at least one token")

    def rewrite(self, block: Block, context: PassContext) -> Block:
        return _Walk(self, block, context).run()


class _Walk:
    """One forward walk; the prefixes of a context are planned when it is defined and made at their first use."""

    def __init__(self, owner: HoistPrefixes, block: Block, context: PassContext) -> None:
        self.owner = owner
        self.block = block
        self.context = context
        self.users = users_that_call(block)
        self.constants = same_in_every_instance(block)
        self.names = FreshNames(block)
        self.ops: list[Op] = []
        self.measures: dict[Value, Measure] = {}
        self.covered: dict[Value, Measure] = {}
        self.open_roles: dict[Value, str] = {}
        self.places: dict[int, tuple[Node, Parts]] = {}
        self.roots: dict[Node, Value] = {}
        self.made: dict[Node, Value] = {}
        self.replaced: dict[Value, Value] = {}

    def run(self) -> Block:
        """The rewritten block."""
        for index, op in enumerate(self.block.ops):
            self._emit(index, op)
            for value in op.results:
                if value.type == CTX:
                    self._measure(op, value)
                    if value in self.users:
                        self._plan(op, value)
        return Block(self.block.parameters, tuple(self.ops))

    # Planning

    def _measure(self, op: Op, value: Value) -> None:
        """How long the context ``value`` is, and how much of it is computed ahead."""
        before = next((operand for operand in op.operands if operand.type == CTX), None)
        known = Measure() if before is None else self.measures[before]
        if isinstance(op, ExtendOp):
            known += text_measure(op.text, op.role, self.context) + self._end_mark(op.role)
        elif isinstance(op, BeginOp):
            known += text_measure((), op.role, self.context)
            self.open_roles[value] = op.role
        elif isinstance(op, EndOp):
            known += self._end_mark(self.open_roles.get(op.context))
        elif isinstance(op, SamplingOp) and op.forced is not None:
            known += Measure(len(op.forced))
        elif op.billable:
            known += Measure(unknown=1)
        if not isinstance(op, BeginOp | EndOp) and before in self.open_roles and getattr(op, "role", None) is None:
            self.open_roles[value] = self.open_roles[before]
        self.measures[value] = known
        if isinstance(op, PrefillOp):
            self.covered[value] = known
        elif value not in self.covered:
            self.covered[value] = Measure() if before is None else self.covered[before]

    def _end_mark(self, role: str | None) -> Measure:
        return Measure() if role is None else Measure(self.context.turn_tokens(role)[1])

    def _plan(self, op: Op, value: Value) -> None:
        """Decide where the users of ``value`` share a prefix."""
        indices = self.users[value]
        users = [self.block.ops[index] for index in indices]
        constant = value in self.constants
        if len(indices) == 1 and weight(users[0]) == 1 and not constant:
            return
        root = Node(
            parent=None,
            parts=(),
            opens=None,
            measure=self.measures[value],
            covered=self.covered[value],
            constant=constant,
            members=len(indices),
            location=op.location,
        )
        root.prefilled = root.measure == root.covered
        self.roots[root] = value
        if root.prefilled:
            self.made[root] = self.replaced.get(value, value)
        tree = PrefixTree(root, self.owner.minimum_tokens, self.context)
        tree.build(
            Member(index, user.role, text, user.location)
            for index, user in zip(indices, users, strict=True)
            if isinstance(user, ExtendOp) and user.role in _SPLIT_ROLES and (text := joined(user.text))
        )
        self._weigh(tree, indices)
        for node in tree.nodes:
            self._decide(node)
        self._remark_late_text(tree)
        self.places.update((index, tree.place.get(index, (root, ()))) for index in indices)

    def _weigh(self, tree: PrefixTree, indices: list[int]) -> None:
        """Count the branches that leave each node."""
        for node in tree.nodes[1:]:
            assert node.parent is not None
            node.parent.weight += 1
            node.parent.leaves_batch |= not node.constant
        for index in indices:
            node, _ = tree.place.get(index, (tree.root, ()))
            user = self.block.ops[index]
            node.weight += weight(user)
            node.leaves_batch |= not self.constants.issuperset(user.results)

    def _decide(self, node: Node) -> None:
        """Whether the prefix that ends at ``node`` is computed ahead. Parents have been decided."""
        if node.parent is not None:
            node.covered = node.parent.measure if node.parent.prefilled else node.parent.covered
        for_batch = node.constant and node.leaves_batch
        if node.prefilled or not (node.weight > 1 or for_batch):
            return
        if node.gained.reaches(self.owner.minimum_tokens):
            node.prefilled = True
            self._remark_prefill(node)
        elif node.gained.tokens:
            self._remark_short(node)

    # Emitting

    def _emit(self, index: int, op: Op) -> None:
        place = self.places.pop(index, None)
        if place is None:
            self.ops.append(op.substitute(self.replaced))
            return
        node, rest = place
        context = self._materialize(node)
        covered = node.measure if node.prefilled else node.covered
        self.covered.update((value, covered) for value in op.results if value.type == CTX)
        if node.parent is None:
            self.ops.append(op.substitute({self.roots[node]: context}))
            return
        assert isinstance(op, ExtendOp)
        if op.role is None and not rest:
            self.replaced[op.results[0]] = context
        elif op.role is None:
            self.ops.append(dataclasses.replace(op, context=context, text=rest))
        else:
            if rest:
                context = self._add(ExtendOp, node, "rest", op.location, context=context, text=rest)
            self.ops.append(make_op(EndOp, op.results, op.location, context=context))

    def _materialize(self, node: Node) -> Value:
        """The context at ``node``; its ops, and those of its parents, are made at the first use."""
        missing: list[Node] = []
        at: Node | None = node
        while at is not None and at not in self.made:
            missing.append(at)
            at = at.parent
        for each in reversed(missing):
            self.made[each] = self._make(each)
        return self.made[node]

    def _make(self, node: Node) -> Value:
        if node.parent is None:
            context = self.replaced.get(self.roots[node], self.roots[node])
        else:
            context = self.made[node.parent]
            if node.opens is not None:
                context = self._add(BeginOp, node, "open", node.location, context=context, role=node.opens)
            context = self._add(ExtendOp, node, "shared", node.location, context=context, text=node.parts)
        if not node.prefilled:
            return context
        scope = "batch" if node.constant else "instance"
        return self._add(PrefillOp, node, "prefix", node.location, context=context, scope=scope)

    def _add(self, kind: type[Op], node: Node, suffix: str, location: Location | None, **fields: Any) -> Value:
        root = node
        while root.parent is not None:
            root = root.parent
        result = Value(self.names.fresh(f"{self.roots[root].name}.{suffix}"), CTX)
        self.ops.append(make_op(kind, (result,), location, **fields))
        return result

    # Remarks

    def _remark_prefill(self, node: Node) -> None:
        reasons: list[str] = []
        if node.weight > 1:
            reasons.append(f"for {node.weight} branches")
        if node.constant:
            reasons.append("for all instances of a batch")
        self.owner.applied(
            self.context,
            node.location,
            f"a prefix of {node.gained} is computed once {' and '.join(reasons)}",
            saved_tokens=node.gained.tokens * max(node.weight - 1, 0),
        )

    def _remark_short(self, node: Node) -> None:
        self.owner.missed(
            self.context,
            node.location,
            f"a prefix of {node.gained} is shared, but shorter than minimum_tokens={self.owner.minimum_tokens}",
            saved_tokens=node.gained.tokens * max(node.weight - 1, 0),
        )

    def _remark_late_text(self, tree: PrefixTree) -> None:
        """Long literal text that branches or instances share, but behind text in which they differ."""
        found: dict[str, list[int]] = {}
        for index, (_, rest) in tree.place.items():
            for part in dict.fromkeys(rest[1:]):
                if isinstance(part, str):
                    found.setdefault(part, []).append(index)
        for part, indices in found.items():
            tokens = self.context.tokens(part)
            in_batch = tree.root.constant and len(tree.place) == 1
            if tokens < self.owner.minimum_tokens or not (len(indices) > 1 or in_batch):
                continue
            who = f"{len(indices)} branches share" if len(indices) > 1 else "all instances of a batch share"
            self.owner.missed(
                self.context,
                self.block.ops[indices[0]].location,
                f"{who} {_excerpt(part)}, but behind text in which they differ: move it ahead of that",
                saved_tokens=tokens * (len(indices) - 1),
            )


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")
