"""Symbolic derivatives: by which bytes a node can begin, and what is left of it after each.

Brzozowski, "Derivatives of regular expressions" (1964), over sets of bytes at once (Stanford et al., "Symbolic Boolean
derivatives", PLDI 2021).
"""

from __future__ import annotations

from collections.abc import Iterable

from lmc.grammar.automata.booleans import Resolution
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import EMPTY, Arc, Kind, Node


class Derivatives:
    """Arcs of the nodes of one arena, none of which leads to a dead end."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def arcs(self, node: Node) -> tuple[Arc, ...]:
        """Disjoint byte sets, by their lowest byte, each with the node of what may follow.

        Raises ``ConstraintError`` like ``resolved``; never for a node that is certain.
        """
        return self._raw(self.resolved(node))

    def resolved(self, node: Node) -> Node:
        """The same language without intersections and complements: the empty node where there is no string.

        Raises ``ConstraintError`` where that needs too large an automaton.
        """
        if node.certain:
            return node
        if node.resolved is None:
            node.resolved = Resolution(self.arena, self._raw).resolved(node)
        return node.resolved

    def is_live(self, node: Node) -> bool:
        """Return whether the node has any string. Raises like ``resolved``."""
        return self.resolved(node).kind is not Kind.EMPTY

    def unbounded(self, node: Node, reach: int) -> Node:
        """A node with the same beginnings of up to ``reach`` bytes: lengths whose end is farther off have none.

        So the states of a long text, one for each remaining length, are one within the length of a token.
        """
        match node.kind:
            case Kind.STATE:
                assert node.automaton is not None
                bounds = node.automaton.far_bounds(node.low, node.high, reach)
                if bounds != (node.low, node.high):
                    return self.arena.state(node.automaton, node.state, *bounds)
            case Kind.CONCAT if node.parts[0].kind is Kind.STATE:
                return self.arena.join(self.unbounded(node.parts[0], reach), node.parts[1])
            case Kind.UNION:
                parts = [self.unbounded(part, reach) for part in node.parts]
                if any(part is not own for part, own in zip(parts, node.parts, strict=True)):
                    return self.arena.union(parts)
            case _:
                pass
        return node

    def derive_all(self, node: Node) -> None:
        """Find the arcs of all nodes that a finite one leads to."""
        known, stack = {node}, [node]
        while stack:
            found = {target for _, target in self._raw(stack.pop())} - known
            known |= found
            stack += found

    def _raw(self, node: Node) -> tuple[Arc, ...]:
        """The arcs of a node that is certain. Iterative: nodes nest deeply."""
        if node.derived is not None:
            return node.derived
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [part for part in _needed(top) if part.derived is None]
            if missing:
                stack += missing
                continue
            stack.pop()
            if top.derived is None:
                top.derived = self._derive(top)
        assert node.derived is not None
        return node.derived

    def _derive(self, node: Node) -> tuple[Arc, ...]:
        arena = self.arena
        match node.kind:
            case Kind.EMPTY | Kind.EPSILON:
                return ()
            case Kind.BYTE:
                return ((node.mask, arena.epsilon),)
            case Kind.LITERAL:
                arena.charge(len(node.data) // 64)
                return ((1 << node.data[0], arena.literal(node.data[1:])),)
            case Kind.CONCAT:
                return self._concat(node)
            case Kind.UNION:
                return self._united([arc for part in node.parts for arc in _derived(part)])
            case Kind.REPEAT:
                part = node.parts[0]
                high = None if node.high is None else node.high - 1
                rest = arena.repeat(part, max(node.low - 1, 0), high)
                return tuple([(mask, arena.join(target, rest)) for mask, target in _derived(part)])
            case Kind.REFERENCE:
                return _derived(_definition(node))
            case _:
                assert node.automaton is not None, f"the arcs of {node!r} were asked for before it was resolved"
                found = node.automaton.arcs(node.state, node.low, node.high)
                return _gathered(
                    [(mask, arena.state(node.automaton, state, low, high)) for mask, state, low, high in found]
                )

    def _concat(self, node: Node) -> tuple[Arc, ...]:
        arcs: list[Arc] = []
        several = False
        while node.kind is Kind.CONCAT:
            head, tail = node.parts
            arcs += [(mask, self.arena.join(target, tail)) for mask, target in _derived(head)]
            if not head.nullable:
                break
            node, several = tail, True
        else:
            arcs += _derived(node)
        return self._united(arcs) if several else tuple(arcs)

    def _united(self, arcs: list[Arc]) -> tuple[Arc, ...]:
        return _gathered(
            [(mask, targets[0] if len(targets) == 1 else self._union(targets)) for mask, targets in _disjoint(arcs)]
        )

    def _union(self, targets: list[Node]) -> Node:
        """Any of them. What all begin with is taken once: a counter in front of hundreds of texts is one counter."""
        heads: list[Node] = []
        while (head := _common_head(targets)) is not None:
            self.arena.charge(len(targets))
            heads.append(head)
            targets = [target.parts[1] for target in targets]
        return self.arena.concat(*heads, self.arena.union(targets))


def _derived(node: Node) -> tuple[Arc, ...]:
    assert node.derived is not None
    return node.derived


def _definition(reference: Node) -> Node:
    assert reference.resolved is not None, f"the arcs of {reference!r} were asked for before it was defined"
    return reference.resolved


def _needed(node: Node) -> Iterable[Node]:
    """Nodes whose arcs those of ``node`` are made of."""
    if node.kind is Kind.STATE:
        return ()
    if node.kind is Kind.REFERENCE:
        return (_definition(node),)
    if node.kind is not Kind.CONCAT:
        return node.parts
    heads: list[Node] = []
    while node.kind is Kind.CONCAT:
        heads.append(node.parts[0])
        if not node.parts[0].nullable:
            return heads
        node = node.parts[1]
    return [*heads, node]


def _common_head(nodes: list[Node]) -> Node | None:
    """The first part of all of them; None where they begin with different ones."""
    first = nodes[0]
    if first.kind is not Kind.CONCAT:
        return None
    head = first.parts[0]
    return head if all(node.kind is Kind.CONCAT and node.parts[0] is head for node in nodes) else None


def _disjoint(arcs: list[Arc]) -> list[tuple[int, list[Node]]]:
    """The byte sets of all arcs, cut so that they are disjoint, each with the targets of all arcs that hold it."""
    grouped: dict[int, list[Node]] = {}
    for mask, target in arcs:
        grouped.setdefault(mask, []).append(target)
    together = 0
    for mask in grouped:
        if together & mask:
            break
        together |= mask
    else:
        return list(grouped.items())
    pieces: list[tuple[int, list[Node]]] = []
    for mask, targets in grouped.items():
        rest = mask
        cut: list[tuple[int, list[Node]]] = []
        for other, held in pieces:
            common = other & rest
            if not common:
                cut.append((other, held))
                continue
            rest &= ~common
            cut.append((common, held + targets))
            if other != common:
                cut.append((other & ~common, held))
        if rest:
            cut.append((rest, targets))
        pieces = cut
    return pieces


def _gathered(arcs: list[Arc]) -> tuple[Arc, ...]:
    """Arcs with the same target as one, by their lowest byte."""
    masks: dict[Node, int] = {}
    for mask, target in arcs:
        if target is not EMPTY:
            masks[target] = masks.get(target, 0) | mask
    gathered = [(mask, target) for target, mask in masks.items()]
    if len(gathered) > 1:
        gathered.sort(key=_lowest)
    return tuple(gathered)


def _lowest(arc: Arc) -> int:
    return arc[0] & -arc[0]
