"""Regular expressions over bytes as immutable nodes. Only an ``Arena`` (``building.py``) makes them.

Equal expressions of one arena are one node, so nodes are compared by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Protocol, TypeVar

T = TypeVar("T")

ALL_BYTES = (1 << 256) - 1


class Kind:
    """The kinds of nodes. Plain integers: an enumeration's members take many times as long to look up."""

    EMPTY = 0  # no string at all
    EPSILON = 1  # the empty string
    BYTE = 2  # one byte out of `mask`
    LITERAL = 3  # the bytes of `data`, two or more
    CONCAT = 4  # the first of `parts`, then the second; the first is no CONCAT
    UNION = 5  # any of `parts`
    INTERSECTION = 6  # all of `parts`
    COMPLEMENT = 7  # any string but those of the only part
    REPEAT = 8  # the only part, `low` to `high` times (None: without end)
    STATE = 9  # what follows a state of `automaton`, in `low` to `high` characters (None: without end)
    REFERENCE = 10  # a definition by its number (`state`), which may refer to itself: `resolved`


_NAMES = (
    *("EMPTY", "EPSILON", "BYTE", "LITERAL", "CONCAT", "UNION", "INTERSECTION", "COMPLEMENT", "REPEAT", "STATE"),
    "REFERENCE",
)


class States(Protocol):
    """The automaton of a ``STATE``: see ``StateTexts`` (`booleans.py`)."""

    def arcs(self, state: int, low: int, high: int | None) -> list[tuple[int, int, int, int | None]]:
        """Byte sets, each with the state after it and the bounds that are left; none leads to a dead end."""
        ...

    def accepts(self, state: int, low: int) -> bool:
        """Return whether the empty string may follow."""
        ...

    def far_bounds(self, low: int, high: int | None, reach: int) -> tuple[int, int | None]:
        """Bounds that rule out the same within ``reach`` characters; one pair for all whose ends are farther off."""
        ...

    def loop(self, state: int, low: int, high: int | None) -> tuple[int, int | None]:
        """The bytes of which any so many may follow, in any order; None: any number."""
        ...


class Node:
    """One expression. ``number`` counts all nodes ever made, ``nullable``: it accepts the empty string.

    ``mask`` is a set of bytes: bit b stands for byte b. ``certain`` holds where nothing in it is an intersection or a
    complement; then its language is empty for the empty node only. A ``STATE`` has what it was made from as its only
    part, where it is the first state of an automaton. ``derived`` are its arcs and ``resolved`` is the same language as
    a certain node, once they were asked for. Only ``resolved`` of a ``REFERENCE`` leads back to a node: ``parts`` never
    do, and a ``REFERENCE`` has none.
    """

    __slots__ = (
        *("automaton", "certain", "data", "derived", "high", "kind", "low", "mask", "nullable", "number", "parts"),
        *("resolved", "state"),
    )

    def __init__(
        self,
        kind: int,
        *,
        nullable: bool,
        certain: bool = True,
        parts: tuple[Node, ...] = (),
        mask: int = 0,
        data: bytes = b"",
        low: int = 0,
        high: int | None = None,
        automaton: States | None = None,
        state: int = 0,
    ) -> None:
        self.kind = kind
        self.number = next(_NUMBERS)
        self.nullable = nullable
        self.certain = certain
        self.parts = parts
        self.mask = mask
        self.data = data
        self.low = low
        self.high = high
        self.automaton = automaton
        self.state = state
        self.derived: tuple[Arc, ...] | None = None
        self.resolved: Node | None = None

    def __repr__(self) -> str:
        detail: object = self.parts
        if self.kind is Kind.BYTE:
            detail = hex(self.mask)
        elif self.kind is Kind.LITERAL:
            detail = self.data
        elif self.kind is Kind.REPEAT:
            detail = f"{self.parts[0]!r}{{{self.low},{'' if self.high is None else self.high}}}"
        elif self.kind is Kind.STATE:
            detail = f"{self.state}{{{self.low},{'' if self.high is None else self.high}}}"
        elif self.kind is Kind.REFERENCE:
            detail = self.state
        return f"{_NAMES[self.kind]}({detail})"


Arc = tuple[int, Node]
"""A set of bytes and what may follow any of them."""

_NUMBERS = count()

# The same in every arena, so that expressions of one may be part of another's.
EMPTY = Node(Kind.EMPTY, nullable=False)
EPSILON = Node(Kind.EPSILON, nullable=True)
EVERYTHING = Node(
    Kind.REPEAT, nullable=True, parts=(Node(Kind.BYTE, nullable=False, mask=ALL_BYTES),), low=0, high=None
)


def bytes_of(node: Node) -> bytes:
    """The bytes of a node that stands for one string; empty for any other."""
    if node.kind is Kind.LITERAL:
        return node.data
    if node.kind is Kind.BYTE and not node.mask & (node.mask - 1):
        return bytes((node.mask.bit_length() - 1,))
    return b""


def inner_parts(node: Node) -> tuple[Node, ...]:
    """The parts whose strings are in those of a node: not what a ``STATE`` was made from."""
    return () if node.kind is Kind.STATE else node.parts


def fold(
    node: Node, made: dict[Node, T], make: Callable[[Node, list[T]], T], parts: Callable[[Node], Sequence[Node]]
) -> T:
    """Return what is made of a node, by what is made of its parts; ``made`` keeps it. Iterative: nodes nest deeply."""
    stack = [node]
    while stack:
        top = stack[-1]
        inner = parts(top)
        missing = [part for part in inner if part not in made] if top not in made else []
        if missing:
            stack += missing
            continue
        stack.pop()
        if top not in made:
            made[top] = make(top, [made[part] for part in inner])
    return made[node]


def references(node: Node) -> Iterator[Node]:
    """The references in a node, each once; not those in their definitions, and none of an automaton."""
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        if top.kind is Kind.REFERENCE:
            yield top
        for part in inner_parts(top):
            if part not in seen:
                seen.add(part)
                stack.append(part)


def longest_length(node: Node) -> int | None:
    """A bound on the bytes of a string of the node; None: there is none."""
    return fold(node, dict[Node, int | None](), _longest, lambda top: top.parts)


def _longest(node: Node, parts: list[int | None]) -> int | None:
    bounded = [part for part in parts if part is not None]
    match node.kind:
        case Kind.EMPTY | Kind.EPSILON:
            return 0
        case Kind.BYTE:
            return 1
        case Kind.LITERAL:
            return len(node.data)
        case Kind.CONCAT:
            return sum(bounded) if len(bounded) == len(parts) else None
        case Kind.UNION:
            return max(bounded) if len(bounded) == len(parts) else None
        case Kind.INTERSECTION:
            return min(bounded, default=None)
        case Kind.COMPLEMENT | Kind.REFERENCE:
            return None
        case Kind.STATE:
            return parts[0] if parts else None
        case _:
            if parts[0] == 0:
                return 0
            return None if node.high is None or parts[0] is None else node.high * parts[0]
