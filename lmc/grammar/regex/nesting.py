"""Counted repeats within other repeats: those whose counts are ambiguous as the text is read are refused.

In ``(a{1,9}b?){1,9}`` the same letters may be one round or nine, so a state holds every count that is possible. Mostly
these are a few ranges; where they are not, each byte takes long. So it is with several counted repeats within a plain
one, as in ``(.{1,20}a|.{3,30}b)*``. Such patterns are found by following them to where states become large.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Kind, Node
from lmc.grammar.regex.syntax import Alternation, Concatenation, Item, Pattern, Repeat
from lmc.ir.errors import ConstraintError

MAX_WORK_OF_ROW = 1_000  # see `Arena.work`; about a millisecond
_WALKS = 3  # at random, the same each time: of states that count alike none is the widest
_MAX_WORK = 50_000
_ROWS_WITHOUT_GROWTH = 64
_MAX_ROWS = 256
_LOOKED_INTO = 8  # parts in front of a union


def check_nesting(pattern: Pattern, node: Node, arena: Arena) -> None:
    """Raise ``ConstraintError`` where rows of ``node``, which is the pattern's, take long to make."""
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
