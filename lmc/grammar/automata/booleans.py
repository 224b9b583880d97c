"""Intersections and complements are computed when a constraint is compiled: each becomes a state of an automaton.

All states of the automaton are known, and whether each still leads to an end; so nothing is searched for while text is
generated. A bound on the length of a text is no part of the automaton: it is counted beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import NamedTuple

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.dfa import Dfa, Lengths, Product, intersection, of_arcs
from lmc.grammar.automata.nodes import EMPTY, Arc, Kind, Node

_STEPS_OF_WORK = 100  # steps of `Arena.spend` that take as long as one of `Arena.work`


class StateTexts:
    """The texts after states of an automaton; with bounds on their characters if ``lengths`` counts them."""

    def __init__(self, dfa: Dfa, lengths: Lengths | None = None) -> None:
        self.dfa = dfa
        self._lengths = lengths
        self._arcs: dict[int, list[tuple[int, int]]] = {}

    @property
    def is_whole(self) -> bool:
        """True if the automaton decides alone, without counts beside it."""
        return self._lengths is None

    def accepts(self, state: int, low: int) -> bool:
        """Return True if the empty string may follow and ``low`` is 0."""
        return not low and bool(self.dfa.accepting[state])

    def arcs(self, state: int, low: int, high: int | None) -> list[tuple[int, int, int, int | None]]:
        """Byte sets, each with the state after it and the bounds that are left; none leads to a dead end."""
        arcs = self._arcs.get(state)
        if arcs is None:
            arcs = self._arcs[state] = self.dfa.arcs(state)
        lengths = self._lengths
        if lengths is None:
            return [(mask, target, 0, None) for mask, target in arcs]
        found: list[tuple[int, int, int, int | None]] = []
        for mask, target in arcs:
            left = (low, high)
            if lengths.ends[target]:
                left = (max(low - 1, 0), None if high is None else high - 1)
            if lengths.reaches(target, *left):
                found.append((mask, target, *left))
        return found

    def far_bounds(self, low: int, high: int | None, reach: int) -> tuple[int, int | None]:
        """Bounds that rule out the same within ``reach`` characters; one pair for all whose ends are farther off."""
        lengths = self._lengths
        if lengths is None:
            return low, high
        if not low:
            return (0, None) if high is not None and high - reach >= lengths.farthest else (low, high)
        settled = lengths.settled
        if settled is None or low - reach <= settled or (high is not None and high - low + 1 < lengths.period):
            return low, high
        return settled + reach + 1, None

    def loop(self, state: int, low: int, high: int | None) -> tuple[int, int | None]:
        """The bytes that lead back to a state, and how many of them may come before the end is out of reach.

        (0, 0) where that is not known. None: any number.
        """
        mask = next((mask for mask, target, *_ in self.arcs(state, low, high) if target == state), 0)
        if self._lengths is None or not mask:
            return mask, None
        if low or not self._lengths.ends[state]:
            return 0, 0
        return mask, None if high is None else high - int(self._lengths.shortest[state])


class CharacterCount(NamedTuple):
    """A part of an intersection that asks for ``low`` to ``most`` characters out of a set, and nothing else."""

    character: Node
    low: int
    most: float  # a whole number, or without end


class Resolution:
    """Nodes of one arena without intersections and complements. ``arcs`` gives those of a node that has none."""

    def __init__(self, arena: Arena, arcs: Callable[[Node], tuple[Arc, ...]]) -> None:
        self._arena = arena
        self._arcs = arcs
        self._automata: dict[Node, Dfa] = {}

    def resolved(self, node: Node) -> Node:
        """The same language; the empty node where there is no string. Raises ``ConstraintError`` beyond a budget.

        Iterative: nodes nest deeply.
        """
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [part for part in top.parts if not part.certain and part.resolved is None]
            if missing and not top.certain:
                stack += missing
                continue
            stack.pop()
            if not top.certain and top.resolved is None:
                top.resolved = self._combined(top, [_resolved(part) for part in top.parts])
        return _resolved(node)

    def _combined(self, node: Node, parts: list[Node]) -> Node:
        match node.kind:
            case Kind.COMPLEMENT:
                return self._complement(node, parts[0])
            case Kind.INTERSECTION:
                return self._intersection(node, parts)
            case _:
                return self._arena.rebuilt(node, parts)

    def _complement(self, node: Node, part: Node) -> Node:
        if part.kind is Kind.EMPTY:
            return self._arena.everything
        return self._first_state(node, self._dfa(part).complement(self._arena.spend))

    def _intersection(self, node: Node, parts: list[Node]) -> Node:
        if any(part.kind is Kind.EMPTY for part in parts):
            return EMPTY
        counts = [found for found in map(self._count, parts) if found is not None]
        rest = [part for part in parts if self._count(part) is None]
        # Lengths are counted in the largest of the sets; what has characters that it lacks is no count.
        unit = next((each for each in counts if all(self._is_inside(other, each) for other in counts)), None)
        if unit is None:
            return self._first_state(node, self._together(parts))
        low, high = max(each.low for each in counts), min(each.most for each in counts)
        if high < low:
            return EMPTY
        bounds = (low, None if high == inf else int(high))
        least = next((each for each in counts if all(self._is_inside(each, other) for other in counts)), None)
        if least is not None and not rest:
            return self._arena.repeat(least.character, *bounds)
        any_number = [self._arena.repeat(character, 0, None) for character in {each.character for each in counts}]
        together = self._together([*rest, *any_number])
        if together is None:
            return EMPTY
        units = self._dfa(self._arena.repeat(unit.character, 0, None))
        product = Product((together, units), self._arena.spend)
        assert product.dfa is not None
        # A code without words that begin others: between two of them, and nowhere else, any number of them may end.
        lengths = Lengths(product.dfa, units.accepting[product.places(1)], *bounds, self._arena.spend)
        if not lengths.reaches(0, *bounds):
            return EMPTY
        return self._arena.state(StateTexts(product.dfa, lengths), 0, *bounds, source=node)

    def _first_state(self, source: Node, dfa: Dfa | None) -> Node:
        return EMPTY if dfa is None else self._arena.state(StateTexts(dfa), 0, source=source)

    def _together(self, parts: Iterable[Node]) -> Dfa | None:
        return intersection([self._dfa(part) for part in parts], self._arena.spend)

    def _count(self, part: Node) -> CharacterCount | None:
        """Return the bounds on the length of a part that restricts nothing else, or None."""
        if part.kind is not Kind.REPEAT or (part.low <= 1 and part.high is None):
            return None
        (character,) = part.parts
        found = self._dfa(character)
        is_code = not found.accepting[0] and (found.rows[found.accepting] < 0).all()
        return CharacterCount(character, part.low, inf if part.high is None else part.high) if is_code else None

    def _is_inside(self, part: CharacterCount, other: CharacterCount) -> bool:
        """Return True if one set of characters holds all of another."""
        if part.character is other.character:
            return True
        rest = self._dfa(other.character).complement(self._arena.spend)
        return rest is None or Product((self._dfa(part.character), rest), self._arena.spend).dfa is None

    def _dfa(self, node: Node) -> Dfa:
        """The automaton of a node that is certain and not empty."""
        found = self._automata.get(node)
        if found is None:
            found = self._automata[node] = self._explored(node)
        return found

    def _explored(self, node: Node) -> Dfa:
        if isinstance(node.automaton, StateTexts) and node.automaton.is_whole and not node.state:
            return node.automaton.dfa
        arena = self._arena
        numbers, nodes = {node: 0}, [node]
        arcs: list[list[tuple[int, int]]] = []
        worked = arena.work
        while len(arcs) < len(nodes):
            before = arena.work
            found = self._arcs(nodes[len(arcs)])
            # Not part of what the nodes of the constraint cost: it is paid for here.
            spent, arena.work = arena.work - before, before
            arena.spend(_STEPS_OF_WORK * (spent + 3 * (1 + len(found))))
            for _, target in found:
                if numbers.setdefault(target, len(nodes)) == len(nodes):
                    nodes.append(target)
            arcs.append([(mask, numbers[target]) for mask, target in found])
        assert arena.work == worked
        return of_arcs(arcs, [each.nullable for each in nodes]).minimised()


def _resolved(node: Node) -> Node:
    found = node if node.certain else node.resolved
    assert found is not None
    return found
