"""From a pattern to a node: characters become bytes, and what may surround a match is written out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lmc.grammar.automata.alphabets import UTF8, Alphabet
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import ANY, CharSet
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Kind, Node
from lmc.grammar.regex.parser import parse
from lmc.grammar.regex.syntax import (
    EMPTY,
    Alternation,
    Anchor,
    Characters,
    Composite,
    Concatenation,
    Item,
    Pattern,
    Repeat,
    Side,
    Text,
    refusal,
)
from lmc.ir.errors import ConstraintError

Sides = tuple[Side, Side]
"""The sides to the left and to the right of an item."""

Placed = list[tuple[Item, Sides]]
"""Parts, each with its sides."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The facts about an item that placement needs."""

    consumes: bool = True  # it matches some text that is not empty
    start: Anchor | None = None  # an anchor in it for either side
    end: Anchor | None = None
    left: Side = Side.OPEN  # its condition on both sides, however it matches; for items that consume nothing
    right: Side = Side.OPEN


_CONSUMING = Summary()
_NOTHING = Summary(consumes=False)


class Placement:
    """Puts every part of a pattern between its sides. Raises ``ConstraintError`` where an anchor may not stand.

    An item that has anchors lies between two sides (``Side``). The sides of the whole pattern are those of the match;
    a sequence passes its left side to its first part that may consume characters and its right side to the last one,
    after applying the anchors before and behind these; an alternation passes both to every arm. An anchor whose side
    is ``INSIDE`` is refused, so accepted patterns mean the same as in `re`.

    ``parts[item]``, of a composite that has anchors and may consume text, are the parts that its language is made of:
    of a sequence those that may consume text, of an alternation its arms; a repeat with anchors is an alternation of
    its item and nothing.
    """

    def __init__(self, pattern: Pattern, sides: Sides) -> None:
        self.parts: dict[Composite, Placed] = {}
        self._pattern = pattern
        self._summaries: dict[Item, Summary] = {anchor: _of_anchor(anchor) for anchor in pattern.anchors}
        for item in pattern.composites:
            self._summaries[item] = self._of_repeat(item) if isinstance(item, Repeat) else self._joined(item)
        sides_of: dict[Item, Sides] = {pattern.root: sides}
        self._check(pattern.root, *sides)
        for item in reversed(pattern.composites):
            if item in sides_of and self.is_anchored(item) and self.summary(item).consumes:
                self.parts[item] = self._parts(item, *sides_of[item])
                sides_of.update(self.parts[item])

    def is_anchored(self, item: Item) -> bool:
        """Return True if there is an anchor in it."""
        summary = self.summary(item)
        return summary.start is not None or summary.end is not None

    def summary(self, item: Item) -> Summary:
        """Return the summary of an item."""
        if isinstance(item, Text) and not item.text:
            return _NOTHING
        return self._summaries.get(item, _CONSUMING)

    def _joined(self, item: Concatenation | Alternation) -> Summary:
        # All items of a sequence have their say, so the strongest counts; of the arms of an alternation the weakest.
        is_sequence = isinstance(item, Concatenation)
        parts = [self.summary(part) for part in (item.items if is_sequence else item.arms)]
        strength = max if is_sequence else min
        return Summary(
            consumes=any(part.consumes for part in parts),
            start=next((part.start for part in parts if part.start), None),
            end=next((part.end for part in parts if part.end), None),
            left=strength(part.left for part in parts),
            right=strength(part.right for part in parts),
        )

    def _of_repeat(self, item: Repeat) -> Summary:
        inner = self.summary(item.item)
        anchor = inner.start or inner.end
        if anchor is not None and inner.consumes and (item.low, item.high) != (0, 1):
            remedy = "put it before or behind the group that is repeated"
            raise self._refusal(anchor, "an anchor in what is repeated", remedy)
        if item.low > 0:
            return inner
        return Summary(inner.consumes, inner.start, inner.end)

    def _parts(self, item: Composite, left: Side, right: Side) -> Placed:
        if isinstance(item, Concatenation):
            parts = self._of_sequence(item.items, left, right)
        else:
            arms = item.arms if isinstance(item, Alternation) else (item.item, EMPTY)
            parts: Placed = [(arm, (left, right)) for arm in arms]
        for part, sides in parts:
            self._check(part, *sides)
        return parts

    def _of_sequence(self, items: tuple[Item, ...], left: Side, right: Side) -> Placed:
        summaries = [self.summary(item) for item in items]
        consuming = [at for at, summary in enumerate(summaries) if summary.consumes]
        first, last = consuming[0], consuming[-1]
        for at, item in enumerate(items):
            if not summaries[at].consumes:
                self._check(item, left if at < first else Side.INSIDE, right if at > last else Side.INSIDE)
        left = max(left, *(summary.left for summary in summaries[:first]), Side.OPEN)
        right = max(right, *(summary.right for summary in summaries[last + 1 :]), Side.OPEN)
        return [
            (items[at], (left if at == first else Side.INSIDE, right if at == last else Side.INSIDE))
            for at in consuming
        ]

    def _check(self, item: Item, left: Side, right: Side) -> None:
        summary = self.summary(item)
        wrong = (summary.start if left is Side.INSIDE else None) or (summary.end if right is Side.INSIDE else None)
        if wrong is None:
            return
        remedy = f"put it {'first' if wrong.is_start else 'last'}"
        if len(wrong.spelling) == 1:
            remedy += rf", or write \{wrong.spelling} for the character"
        raise self._refusal(wrong, "an anchor that may stand inside of the text", remedy)

    def _refusal(self, anchor: Anchor, problem: str, remedy: str) -> ConstraintError:
        return refusal(self._pattern.text, anchor.position, len(anchor.spelling), problem, remedy)


def _of_anchor(anchor: Anchor) -> Summary:
    if anchor.is_start:
        return Summary(consumes=False, start=anchor, left=anchor.side)
    return Summary(consumes=False, end=anchor, right=anchor.side)


MAX_WORK_OF_ROW = 1_000  # see `Arena.work`; about a millisecond
_WALKS = 3  # at random, the same each time: of states that count alike none is the widest
_MAX_WORK = 50_000
_ROWS_WITHOUT_GROWTH = 64
_MAX_ROWS = 256
_LOOKED_INTO = 8  # parts in front of a union


def check_nesting(pattern: Pattern, node: Node, arena: Arena) -> None:
    """Raise ``ConstraintError`` where rows of ``node``, which is the pattern's, take long to make.

    In ``(a{1,9}b?){1,9}`` the same letters may be one round or nine, so a state holds every count that is possible.
    Mostly these are a few ranges; where they are not, each byte takes long. So it is with several counted repeats
    within a plain one, as in ``(.{1,20}a|.{3,30}b)*``. Such patterns are found by following them to large states.
    """
    if not node.certain or not _is_nested(pattern):
        return
    worked = arena.work
    try:
        _follow(node, arena, _widest)
        for seed in range(_WALKS):
            _follow(node, arena, random.Random(seed).choice)  # noqa: S311 - no secret
    finally:
        arena.work = worked  # rows are no part of what the nodes of the constraint cost


def _is_nested(pattern: Pattern) -> bool:
    """Return whether a counted repeat is within another repeat; ``a?`` counts nothing."""
    depths: dict[Item, int] = {}
    for item in pattern.composites:
        match item:
            case Repeat(item=inner, low=low, high=high):
                depth = depths.get(inner, 0)
                counts = low > 1 or (bool(depth) if high is None else high > 1)
                depths[item] = depth + counts
            case Concatenation(items=parts) | Alternation(arms=parts):
                depths[item] = max(depths.get(part, 0) for part in parts)
    return max(depths.values(), default=0) > 1


def _follow(node: Node, arena: Arena, choose: Callable[[list[Node]], Node]) -> None:
    """Make rows, each that of the state that is chosen of those to which the one before leads."""
    derivatives = Derivatives(arena)
    known = {node}
    widest = _width(node)
    total = arena.work
    growing = 0
    for row in range(_MAX_ROWS):
        worked = arena.work
        arcs = derivatives.arcs(node)
        if arena.work - worked > MAX_WORK_OF_ROW:
            raise ConstraintError(
                "repeats within repeats can be counted in too many ways at one place",
                remedy="give one of them no upper bound, or begin or end what is repeated with a character of its own",
            )
        following = [target for _, target in arcs if target not in known]
        if not following or arena.work - total > _MAX_WORK or row - growing > _ROWS_WITHOUT_GROWTH:
            return
        node = choose(following)
        known.add(node)
        if _width(node) > widest:
            widest, growing = _width(node), row


def _widest(nodes: list[Node]) -> Node:
    return max(nodes, key=_width)


def _width(node: Node) -> int:
    """Return how many alternatives a state begins with."""
    for _ in range(_LOOKED_INTO):
        if node.kind is not Kind.CONCAT:
            break
        head, tail = node.parts
        node = head if head.kind is Kind.UNION else tail
    return len(node.parts) if node.kind is Kind.UNION else 1


def to_node(pattern: str, arena: Arena, alphabet: Alphabet = UTF8, *, flags: int = 0, ecma: bool = False) -> Node:
    """The texts that match the pattern as a whole, as `re.fullmatch` has it.

    Args:
        pattern: in the dialect of README.md.
        arena: makes the nodes.
        alphabet: how characters become bytes.
        flags: of `re`: ``I``, ``M``, ``S``, ``U``, ``X``. Classes and case are ASCII without ``U``.
        ecma: read the pattern as ECMA-262 does where it differs from `re`.

    Raises:
        ConstraintError: for a pattern that is wrong or can't be kept exactly, with ``position`` and a remedy; where
            the arena's budget is used up.
    """
    parsed = parse(pattern, flags=flags, ecma=ecma)
    return _checked(parsed, _Lowering(parsed, arena, alphabet).node((Side.EDGE, Side.EDGE)), arena)


def search_to_node(
    pattern: str, arena: Arena, alphabet: Alphabet = UTF8, *, flags: int = 0, ecma: bool = False
) -> Node:
    """The texts in which the pattern matches somewhere, as `re.search` has it: ``pattern`` of JSON Schema.

    Arguments and errors are those of ``to_node``.
    """
    parsed = _parsed_search(pattern, flags, ecma)
    return _checked(parsed, _Lowering(parsed, arena, alphabet).node((Side.OPEN, Side.OPEN)), arena)


def without_match_to_node(
    pattern: str, arena: Arena, alphabet: Alphabet = UTF8, *, flags: int = 0, ecma: bool = False
) -> Node:
    """A complement: of all texts of the alphabet those in which the pattern matches nowhere, and other byte strings.

    The caller intersects it with what is meant. Nothing is asked of the bytes behind a match, so that the complement is
    empty as soon as there is one. Arguments and errors are those of ``to_node``.
    """
    parsed = _parsed_search(pattern, flags, ecma)
    node = _Lowering(parsed, arena, alphabet, after=arena.everything).node((Side.OPEN, Side.OPEN))
    return arena.complement(_checked(parsed, node, arena))


def _parsed_search(pattern: str, flags: int, ecma: bool) -> Pattern:
    parsed = parse(pattern, flags=flags, ecma=ecma)
    for anchor in parsed.anchors:
        if anchor.of_line:
            remedy = "leave out the flag m, or write the line breaks out"
            problem = "an anchor at every line is not supported in a search"
            raise refusal(pattern, anchor.position, len(anchor.spelling), problem, remedy)
    return parsed


def _checked(pattern: Pattern, node: Node, arena: Arena) -> Node:
    check_nesting(pattern, node, arena)
    return node


class _Lowering:
    """``after`` may follow a match that ends before the text does; None: any characters."""

    def __init__(self, pattern: Pattern, arena: Arena, alphabet: Alphabet, *, after: Node | None = None) -> None:
        self._after = after
        self._pattern = pattern
        self._arena = arena
        self._alphabet = alphabet
        self._composites: dict[Composite, Node] = {}

    def node(self, sides: Sides) -> Node:
        """The node of the whole pattern between these sides."""
        if not self._pattern.anchors:
            for item in self._pattern.composites:
                self._composites[item] = self._plain(item)
            return self._between(self._node(self._pattern.root), *sides)
        placement = Placement(self._pattern, sides)
        for item in self._pattern.composites:
            if not placement.is_anchored(item):
                self._composites[item] = self._plain(item)
            elif item in placement.parts:
                self._composites[item] = self._placed(item, placement)
        return self._placed_part(self._pattern.root, sides, placement)

    def _node(self, item: Item) -> Node:
        """The node of an item without anchors."""
        if isinstance(item, Text):
            return self._alphabet.encode_text(self._arena, item.text)
        if isinstance(item, Characters):
            return self._alphabet.encode(self._arena, item.charset)
        assert not isinstance(item, Anchor)
        return self._composites[item]

    def _plain(self, item: Composite) -> Node:
        if isinstance(item, Repeat):
            return self._arena.repeat(self._node(item.item), item.low, item.high)
        if isinstance(item, Concatenation):
            return self._arena.concat(*map(self._node, item.items))
        return self._arena.union(map(self._node, item.arms))

    def _placed(self, item: Composite, placement: Placement) -> Node:
        parts: Iterable[Node] = (self._placed_part(part, sides, placement) for part, sides in placement.parts[item])
        return self._arena.concat(*parts) if isinstance(item, Concatenation) else self._arena.union(parts)

    def _placed_part(self, item: Item, sides: Sides, placement: Placement) -> Node:
        """An item together with what may surround it."""
        left, right = sides
        summary = placement.summary(item)
        if not summary.consumes:
            return self._between(self._arena.epsilon, max(left, summary.left), max(right, summary.right))
        if placement.is_anchored(item):
            return self._node(item)
        return self._between(self._node(item), left, right)

    def _between(self, node: Node, left: Side, right: Side) -> Node:
        after = self._side(right) if right is not Side.OPEN or self._after is None else self._after
        return self._arena.concat(self._side(left), node, after)

    def _side(self, side: Side) -> Node:
        if side is Side.OPEN:
            return self._arena.repeat(self._alphabet.encode(self._arena, ANY), 0, None)
        if side is Side.FINAL_NEWLINE:
            return self._arena.optional(self._alphabet.encode(self._arena, CharSet.of("\n")))
        return self._arena.epsilon
