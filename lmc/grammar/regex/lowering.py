"""From a pattern to a node: characters become bytes, and what may surround a match is written out."""

from __future__ import annotations

from collections.abc import Iterable

from lmc.grammar.automata.alphabets import UTF8, Alphabet
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import ANY, CharSet
from lmc.grammar.automata.nodes import Node
from lmc.grammar.regex.anchors import Placement, Sides
from lmc.grammar.regex.nesting import check_nesting
from lmc.grammar.regex.parser import parse
from lmc.grammar.regex.syntax import (
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
