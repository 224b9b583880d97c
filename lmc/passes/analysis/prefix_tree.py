"""The text that the users of one context have in common, as a tree of prefixes worth computing once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lmc.ir.core import Value
from lmc.ir.errors import Location
from lmc.ir.wording import with_count

Parts = tuple[str | Value, ...]

AHEAD_TOKENS = 64
"""Tokens of a prefix that is worth a request of its own while the call that needs it waits for other results."""
# Branches that diverge more often than this are not split further.
_MAX_SPLITS = 16


class Counter(Protocol):
    """Counts tokens, as ``lmc.passes.base.PassContext`` does."""

    def tokens(self, text: str) -> int:
        """Count the tokens of a text by itself."""
        ...

    def turn_tokens(self, role: str) -> tuple[int, int]:
        """Count the tokens before and after the text of a turn."""
        ...


@dataclass(frozen=True, slots=True)
class Measure:
    """The length of a prefix: ``tokens`` of known text and ``unknown`` texts (inputs, generations) beside them."""

    tokens: int = 0
    unknown: int = 0

    def __add__(self, other: Measure) -> Measure:
        return Measure(self.tokens + other.tokens, self.unknown + other.unknown)

    def __sub__(self, other: Measure) -> Measure:
        return Measure(self.tokens - other.tokens, self.unknown - other.unknown)

    def __str__(self) -> str:
        tokens = f"about {with_count(self.tokens, 'token')}"
        if not self.unknown:
            return tokens
        return f"{tokens} and {with_count(self.unknown, 'text')} known at run time"

    def reaches(self, minimum_tokens: int) -> bool:
        """Return True for at least ``minimum_tokens`` tokens; an unknown text counts as long enough."""
        return self.unknown > 0 or self.tokens >= minimum_tokens


@dataclass(frozen=True, slots=True)
class PrefixUse:
    """A user of a prefix: ``requests`` each time, perhaps several times; the rest as for ``ContextUser``."""

    requests: int = 1
    repeats: bool = False
    arm: tuple[int, int] | None = None
    waits: bool = False

    @property
    def weight(self) -> int:
        """The estimated number of requests: repeated ones count twice."""
        return self.requests * (1 + self.repeats)


@dataclass(eq=False, slots=True)
class PrefixNode:
    """A prefix: that of ``parent`` followed by ``parts``; the root is the context itself.

    ``opens`` is the role of the turn that begins with ``parts``. ``members`` counts the users below, ``branches`` are
    the users of this very prefix; ``leaves_batch`` is True if one of them depends on the instance. ``covered`` is the
    nearest prefix above that is computed once anyway, ``computed`` the one that a call or a prefill has computed.
    """

    parent: PrefixNode | None
    parts: Parts
    opens: str | None
    measure: Measure
    covered: Measure
    computed: Measure
    constant: bool
    members: int
    location: Location | None
    prefilled: bool = False
    ahead: bool = False
    branches: list[PrefixUse] = field(default_factory=list[PrefixUse])
    leaves_batch: bool = False

    @property
    def gained(self) -> Measure:
        """The length that a prefill here computes beyond the nearest one above."""
        return self.measure - self.covered

    @property
    def gained_ahead(self) -> Measure:
        """The length that a prefill here computes while a user waits; nothing where no user does."""
        return self.measure - self.computed if any(branch.waits for branch in self.branches) else Measure()

    @property
    def is_shared(self) -> bool:
        """True if more than one request may start from here."""
        return sum(branch.weight for branch in self.branches) > 1

    @property
    def computed_again(self) -> int:
        """The number of requests that would have recomputed the prefix; of exclusive arms, the largest counts."""
        arms: dict[int, dict[int, int]] = {}
        count = 0
        for branch in self.branches:
            if branch.arm is None:
                count += branch.weight
            else:
                index, number = branch.arm
                weights = arms.setdefault(index, {})
                weights[number] = weights.get(number, 0) + branch.weight
        return max(count + sum(max(weights.values()) for weights in arms.values()) - 1, 0)


@dataclass(eq=False, slots=True)
class ContextUser:
    """User ``index`` of the context, which appends ``text``; ``part`` and ``offset`` are its position in it.

    ``tail`` is text after that which can't be shared. ``repeats``: the user may run several times. ``arm`` is its
    place among exclusive regions: arm n of op i. ``waits``: ``tail``, or another operand of the user, is there later
    than the context.
    """

    index: int
    role: str | None
    text: Parts
    location: Location | None
    tail: Parts = ()
    repeats: bool = False
    arm: tuple[int, int] | None = None
    waits: bool = False
    part: int = 0
    offset: int = 0

    @property
    def head(self) -> str | Value | None:
        """The next part: the rest of a literal, a value, or None at the end."""
        if self.part == len(self.text):
            return None
        part = self.text[self.part]
        return part[self.offset :] if isinstance(part, str) else part

    @property
    def rest(self) -> Parts:
        """All text after the position."""
        head = self.head
        return self.tail if head is None else (head, *self.text[self.part + 1 :], *self.tail)

    @property
    def is_ahead(self) -> bool:
        """True if it waits behind text of its own instance. Literal text is cached anyway: all instances share it."""
        return self.waits and any(isinstance(part, Value) for part in self.text)

    @property
    def is_literal(self) -> bool:
        """True if no value is left."""
        return not any(isinstance(part, Value) for part in (*self.text[self.part :], *self.tail))

    def advance(self, head: str | Value) -> None:
        """Go past ``head``, with which the rest begins."""
        part = self.text[self.part]
        if isinstance(head, str) and isinstance(part, str) and self.offset + len(head) < len(part):
            self.offset += len(head)
        else:
            self.part, self.offset = self.part + 1, 0


@dataclass(frozen=True, slots=True)
class _Group:
    """Members that agree on everything up to ``node`` and on ``pending`` after it."""

    members: list[ContextUser]
    node: PrefixNode
    pending: Parts
    splits: int
    past_constant: bool


@dataclass(eq=False)
class PrefixTree:
    """Groups ``members`` under ``root``: ``place[index]`` is a user's node and the text it still appends itself."""

    root: PrefixNode
    minimum_tokens: int
    counter: Counter
    nodes: list[PrefixNode] = field(default_factory=list[PrefixNode])
    place: dict[int, tuple[PrefixNode, Parts]] = field(default_factory=dict[int, tuple[PrefixNode, Parts]])

    def build(self, members: Iterable[ContextUser]) -> None:
        """Make the nodes, parents first."""
        self.nodes.append(self.root)
        by_role: dict[str | None, list[ContextUser]] = {}
        for member in members:
            by_role.setdefault(member.role, []).append(member)
        work = [_Group(group, self.root, (), 0, past_constant=False) for group in by_role.values()]
        work.reverse()
        while work:
            work.extend(reversed(self._split(work.pop())))

    def _split(self, group: _Group) -> list[_Group]:
        """One step: past what all members of ``group`` share, then apart by what comes next.

        What the members of one arm alone share is left to that arm: it may not run.
        """
        members, node = group.members, group.node
        literal_only = node.constant and not group.past_constant
        alone = len(members) == 1 and not (members[0].repeats or members[0].is_ahead)
        one_arm = members[0].arm is not None and all(member.arm == members[0].arm for member in members)
        if group.splits > _MAX_SPLITS or one_arm or (alone and (not literal_only or members[0].is_literal)):
            return self._attach(group)
        shared = (*group.pending, *_advance_common(members, literal_only=literal_only))
        pending = joined(shared)
        made = self._node(members, node, pending)
        if made is not None:
            node, pending = made, ()
        if literal_only:
            # What comes next may be a value that all members share: common to the branches, not to the batch.
            return [_Group(members, node, pending, group.splits + 1, past_constant=True)]
        parted = _by_next(members)
        return [_Group(found, node, pending, group.splits + 1, past_constant=True) for found in parted]

    def _node(self, members: list[ContextUser], node: PrefixNode, parts: Parts) -> PrefixNode | None:
        """A new node below ``node``, if one is worth its step: either in place of a prefill there, or long enough."""
        if not parts:
            return None
        opens = members[0].role if node is self.root else None
        length = text_measure(parts, opens, self.counter)
        if len(members) == 1 and not (members[0].repeats or node.constant):  # its user waits
            covered, worth = node.covered, (node.measure + length - node.computed).reaches(AHEAD_TOKENS)
        elif len(members) == node.members and not node.prefilled:
            covered, worth = node.covered, (node.gained + length).reaches(self.minimum_tokens)
        else:
            covered, worth = node.measure, length.reaches(self.minimum_tokens)
        if not worth:
            return None
        constant = node.constant and not any(isinstance(part, Value) for part in parts)
        made = PrefixNode(
            node,
            parts,
            opens,
            node.measure + length,
            covered,
            node.computed,
            constant,
            len(members),
            members[0].location,
        )
        self.nodes.append(made)
        return made

    def _attach(self, group: _Group) -> list[_Group]:
        for member in group.members:
            self.place[member.index] = (group.node, joined((*group.pending, *member.rest)))
        return []


def text_measure(parts: Parts, opens: str | None, counter: Counter) -> Measure:
    """Length of ``parts``, and of the header of a turn they open."""
    known = sum(counter.tokens(part) for part in parts if isinstance(part, str))
    unknown = sum(isinstance(part, Value) for part in parts)
    return Measure(known + (0 if opens is None else counter.turn_tokens(opens)[0]), unknown)


def joined(parts: Sequence[str | Value]) -> Parts:
    """``parts`` with adjacent literals joined and empty ones left out."""
    found: list[str | Value] = []
    for part in parts:
        if isinstance(part, str) and found and isinstance(found[-1], str):
            found[-1] += part
        elif part != "":
            found.append(part)
    return tuple(found)


def _advance_common(members: list[ContextUser], *, literal_only: bool) -> Parts:
    """Return the longest common prefix of the rests of all ``members``, and advance them past it."""
    shared: list[str | Value] = []
    while True:
        heads = [member.head for member in members]
        texts = [head for head in heads if isinstance(head, str)]
        common: str | Value | None
        if len(texts) == len(heads):
            common = _common_prefix(min(texts), max(texts))
        else:
            common = None if literal_only or any(head != heads[0] for head in heads) else heads[0]
        if not common:
            return tuple(shared)
        shared.append(common)
        for member in members:
            member.advance(common)


def _common_prefix(left: str, right: str) -> str:
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return left[:low]


def _by_next(members: list[ContextUser]) -> list[list[ContextUser]]:
    groups: dict[str | Value | None, list[ContextUser]] = {}
    for member in members:
        head = member.head
        groups.setdefault(head[0] if isinstance(head, str) else head, []).append(member)
    return list(groups.values())
