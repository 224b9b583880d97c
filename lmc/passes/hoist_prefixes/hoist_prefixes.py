"""The pass ``hoist-prefixes``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from lmc.ir.core import Block, Op
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.errors import InputError
from lmc.passes.analysis.kv_hints import without_hints
from lmc.passes.analysis.prefix_tree import PrefixNode, PrefixTree
from lmc.passes.base import FunctionPass, PassContext
from lmc.passes.hoist_prefixes.branches import User
from lmc.passes.hoist_prefixes.loop_motion import move_invariants
from lmc.passes.hoist_prefixes.prefix_walk import PrefixWalk


@dataclass(frozen=True)
class HoistPrefixes(FunctionPass):
    """Compute prefixes common to branches, calls and batch instances once, and pin them.

    Where several model calls go on from one context, ``lm.prefill`` computes its stable prefix before they start, and
    holds it until the last of them ends. Where those branches first append text that begins alike, that text is cut off
    and moved ahead of the prefill. A prefix that depends on no input gets ``scope = "batch"``: it is computed once for
    all instances, together with the literal text that the next op would begin with.

    Regions are branches too: a prefix that the body of a loop or a map goes on from is computed before it, and so is
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
        self.owner.applied(self.context, op.location, f"{what} {again}: computed once before {op.NAME}")

    def prefilled(self, node: PrefixNode) -> None:
        """The prefix that ends at ``node`` is computed ahead."""
        reasons: list[str] = []
        if len(node.branches) > 1 or any(branch.requests > 1 for branch in node.branches):
            reasons.append(f"for {sum(branch.requests for branch in node.branches)} branches")
        if any(branch.repeats for branch in node.branches):
            reasons.append("for all rounds or elements")
        if node.constant:
            reasons.append("for all instances of a batch")
        self.owner.applied(
            self.context,
            node.location,
            f"a prefix of {node.gained} is computed once {' and '.join(reasons)}",
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
                users[numbers[0]].op.location,
                f"{who} {_excerpt(part)}, but behind text in which they differ: move it ahead of that",
                saved_tokens=tokens * (len(numbers) - 1 + repeats),
            )


def _excerpt(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "…")
