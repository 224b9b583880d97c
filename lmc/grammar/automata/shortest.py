"""Shortest strings: along the states of an automaton, and of nodes by a fixed point over what they refer to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import TypeVar

from lmc.grammar.automata.nodes import Kind, Node, fold, inner_parts
from lmc.ir.errors import ConstraintError

MAX_STATES = 30_000  # that a search looks at
MAX_BYTES = 1 << 20  # of a string

_At = TypeVar("_At", bound=Hashable)


def shortest_path(
    start: _At, arcs: Callable[[_At], Iterable[tuple[int, _At]]], accepts: Callable[[_At], bool]
) -> bytes | None:
    """A shortest string from a state to an accepting one, the first by its bytes; None where there is none.

    Breadth first. ``arcs`` are disjoint byte sets, by their lowest byte, each with the state it leads to. Raises
    ``ConstraintError`` beyond ``MAX_STATES``, and what ``arcs`` raises.
    """
    before: dict[_At, tuple[_At, int]] = {}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        if accepts(at):
            found = bytearray()
            while at != start:
                at, byte = before[at]
                found.append(byte)
            return bytes(reversed(found))
        if len(before) > MAX_STATES:
            raise ConstraintError(
                f"the constraint needs more than {MAX_STATES} states",
                remedy="give smaller bounds, ASCII classes, or fewer alternatives that begin alike",
            )
        for mask, target in arcs(at):
            if target not in before and target != start:
                before[target] = (at, (mask & -mask).bit_length() - 1)
                queue.append(target)
    return None


class ShortestStrings:
    """Shortest strings of certain nodes that are not empty; what was found out stays for others."""

    def __init__(self) -> None:
        self._lengths: dict[Node, float] = {}
        self._states: dict[Node, bytes] = {}

    def of(self, node: Node) -> bytes:
        """A shortest string of a node. Raises ``ConstraintError`` where it is too long, or far off in an automaton."""
        length = self._length(node)
        if length > MAX_BYTES:
            raise ConstraintError(
                f"every output has more than {MAX_BYTES} bytes", remedy="ask for fewer parts, or for shorter texts"
            )
        written: list[bytes] = []
        stack = [node]
        while stack:
            top = stack.pop()
            match top.kind:
                case Kind.BYTE:
                    written.append(bytes(((top.mask & -top.mask).bit_length() - 1,)))
                case Kind.LITERAL:
                    written.append(top.data)
                case Kind.STATE:
                    written.append(self._states[top])
                case Kind.CONCAT:
                    stack += reversed(top.parts)
                case Kind.UNION:
                    stack.append(min(top.parts, key=self._lengths.__getitem__))
                case Kind.REPEAT if self._lengths[top]:
                    stack += top.parts * top.low
                case Kind.REFERENCE:
                    assert top.resolved is not None
                    stack.append(top.resolved)
                case _:
                    pass
        return b"".join(written)

    def _length(self, node: Node) -> float:
        """The bytes of a shortest string. References are settled first, those that a node leads to all together."""
        definitions = _definitions(node, self._lengths)
        self._lengths.update(dict.fromkeys(definitions, inf))
        while True:
            known: dict[Node, float] = {}
            lengths = {each: self._sum(definition, known) for each, definition in definitions.items()}
            if all(self._lengths[each] == length for each, length in lengths.items()):
                self._lengths.update(known)
                return self._sum(node, self._lengths)
            self._lengths.update(lengths)

    def _sum(self, node: Node, known: dict[Node, float]) -> float:
        """The same from the lengths of references so far."""
        return fold(node, known, self._own, lambda top: () if top in self._lengths else inner_parts(top))

    def _own(self, node: Node, parts: list[float]) -> float:
        if node in self._lengths:
            return self._lengths[node]
        match node.kind:
            case Kind.BYTE:
                return 1
            case Kind.LITERAL:
                return len(node.data)
            case Kind.CONCAT:
                return sum(parts)
            case Kind.UNION:
                return min(parts)
            case Kind.REPEAT:
                return node.low * parts[0] if node.low else 0
            case Kind.STATE:
                if node not in self._states:
                    self._states[node] = _string_of_state(node)
                return len(self._states[node])
            case Kind.EMPTY:
                return inf
            case _:
                return 0


def _definitions(node: Node, known: dict[Node, float]) -> dict[Node, Node]:
    """The references that a node leads to, through definitions too, and their definitions; but for those ``known``."""
    found: dict[Node, Node] = {}
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        parts: Iterable[Node] = inner_parts(top)
        if top.kind is Kind.REFERENCE and top not in known:
            assert top.resolved is not None
            found[top] = top.resolved
            parts = (top.resolved,)
        for part in parts:
            if part not in seen and part not in known:
                seen.add(part)
                stack.append(part)
    return found


def _string_of_state(node: Node) -> bytes:
    automaton = node.automaton
    assert automaton is not None

    def arcs(at: tuple[int, int, int | None]) -> list[tuple[int, tuple[int, int, int | None]]]:
        found = [(mask, (state, low, high)) for mask, state, low, high in automaton.arcs(*at)]
        return sorted(found, key=lambda arc: arc[0] & -arc[0])

    found = shortest_path((node.state, node.low, node.high), arcs, lambda at: automaton.accepts(at[0], at[1]))
    assert found is not None, "a state without an end"
    return found
