"""Symbolic derivatives: by which bytes a node can begin, and what is left of it after each.

Brzozowski, "Derivatives of regular expressions" (1964), over sets of bytes at once (Stanford et al., "Symbolic Boolean
derivatives", PLDI 2021).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from lmc.grammar.building import Arena
from lmc.grammar.nodes import ALL_BYTES, EMPTY, Arc, Kind, Node
from lmc.ir.errors import ConstraintError

MAX_SEARCH = 300_000  # steps to find out which nodes are empty: arcs followed, and what the arena did for them


class Derivatives:
    """Arcs of the nodes of one arena, without those that lead nowhere."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._live: dict[Node, bool] = {}

    def arcs(self, node: Node) -> list[Arc]:
        """Disjoint byte sets, by their lowest byte, each with the node of what may follow; none leads to a dead end."""
        arcs = self._raw(node)
        return [arc for arc in arcs if arc[1].certain or self.is_live(arc[1])]

    def derive_all(self, node: Node) -> None:
        """Find the arcs of all nodes that a finite one leads to."""
        known, stack = {node}, [node]
        while stack:
            found = {target for _, target in self._raw(stack.pop())} - known
            known |= found
            stack += found

    def is_live(self, node: Node) -> bool:
        """Whether the node has any string. Raises ``ConstraintError`` where that can't be found out within bounds."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._live or top.certain:
                stack.pop()
                continue
            waiting = () if top.nullable else self._deciding(top)
            missing = [part for part in waiting if not (part.certain or part in self._live)]
            if missing:
                stack += missing
                continue
            stack.pop()
            self._live[top] = top.nullable or self._decide(top)
        return node.kind is not Kind.EMPTY if node.certain else self._live[node]

    def _deciding(self, node: Node) -> tuple[Node, ...]:
        """Nodes that decide about this one; none where it has to be searched."""
        return node.parts if node.kind in (Kind.CONCAT, Kind.UNION, Kind.REPEAT) else ()

    def _decide(self, node: Node) -> bool:
        parts = [part.kind is not Kind.EMPTY if part.certain else self._live[part] for part in self._deciding(node)]
        if node.kind is Kind.UNION:
            return any(parts)
        if node.kind in (Kind.CONCAT, Kind.REPEAT):
            return all(parts)
        return self._search(node)

    def _search(self, start: Node) -> bool:
        """Breadth first, for a node that takes the empty string: what it passes is live, else all is dead."""
        before: dict[Node, Node | None] = {start: None}
        steps, worked = 0, self.arena.work
        queue = deque([start])
        while queue:
            node = queue.popleft()
            arcs = self._raw(node)
            steps += len(arcs) + self.arena.work - worked
            worked = self.arena.work
            if steps > MAX_SEARCH:
                raise ConstraintError(
                    f"whether anything meets the constraint can't be said within {MAX_SEARCH} steps",
                    remedy="combine fewer patterns and lengths in one place, or give smaller bounds",
                )
            for _, target in arcs:
                if target.nullable or (target.certain and target.kind is not Kind.EMPTY) or self._live.get(target):
                    passed: Node | None = node
                    while passed is not None:
                        self._live[passed] = True
                        passed = before[passed]
                    return True
                if target not in before and target.kind is not Kind.EMPTY and self._live.get(target) is not False:
                    before[target] = node
                    queue.append(target)
        self._live.update(dict.fromkeys(before, False))
        return False

    def _raw(self, node: Node) -> tuple[Arc, ...]:
        """Arcs as the rules give them, possibly to nodes without a string. Iterative: nodes nest deeply."""
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
            case Kind.INTERSECTION:
                return self._intersection(node)
            case _:
                return self._complement(node)

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

    def _intersection(self, node: Node) -> tuple[Arc, ...]:
        found: list[tuple[int, list[Node]]] = [(ALL_BYTES, [])]
        for part in node.parts:
            found = [
                (mask & own, [*held, target]) for mask, held in found for own, target in _derived(part) if mask & own
            ]
        return _gathered([(mask, self.arena.intersection(held)) for mask, held in found])

    def _complement(self, node: Node) -> tuple[Arc, ...]:
        arcs = _derived(node.parts[0])
        rest = ALL_BYTES
        for mask, _ in arcs:
            rest &= ~mask
        others = [(mask, self.arena.complement(target)) for mask, target in arcs]
        return _gathered([*others, (rest, self.arena.everything)] if rest else others)

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


def _needed(node: Node) -> Iterable[Node]:
    """Nodes whose arcs those of ``node`` are made of."""
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
