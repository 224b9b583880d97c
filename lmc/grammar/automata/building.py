"""Making nodes: hash-consed, normalised, within a budget. Unions have few parts."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter

from lmc.grammar.automata.nodes import (
    ALL_BYTES,
    EMPTY,
    EPSILON,
    EVERYTHING,
    Kind,
    Node,
    States,
    bytes_of,
    fold,
    inner_parts,
)
from lmc.ir.errors import ConstraintError

MAX_NODES = 500_000
MAX_PARTS = 20_000
MAX_LITERAL = 20_000  # bytes
MAX_WORK = 200_000  # until an automaton sets limits of its own
MAX_STEPS = 60_000_000  # to work out intersections and complements

_DEPTH = 2  # parts in front of a repeat that are looked at
_AT_ONE_PLACE = "too many steps at one place"


@dataclass(frozen=True, slots=True)
class WorkLimit:
    """The limits of the cost of a constraint: see ``Arena``.

    ``nodes``, ``work`` and ``steps`` hold while it is compiled, ``work_of_token`` is for each token of a generation
    after that (None: as much as it takes).
    """

    nodes: int = MAX_NODES
    work: int = MAX_WORK
    steps: int = MAX_STEPS
    work_of_token: int | None = None


UNBOUNDED_TOKENS = WorkLimit()

_Key = tuple[object, ...]
_BY_NUMBER = attrgetter("number")


class Arena:
    """Makes the nodes of one constraint; equal expressions become one node.

    Nodes may have parts from another arena; only an equal expression of the own one is not recognised as the same then.
    ``work`` counts nodes made and parts that unions and intersections were made from: a measure of time that is the
    same on every machine. ``spend`` counts the steps of array operations by which intersections and complements are
    computed, in the same way. While a constraint is compiled, methods raise ``ConstraintError`` beyond the ``budget``
    and ``MAX_PARTS``; after ``lift_limits`` they do only for a token that takes more than ``budget.work_of_token``.
    """

    def __init__(self, budget: WorkLimit = UNBOUNDED_TOKENS) -> None:
        self.work = 0
        self.work_limit = budget.work
        self._steps = 0
        self._is_limited = True
        self._max_parts = MAX_PARTS
        self.budget = budget
        self._next_reference = 0
        self._nodes: dict[_Key, Node] = {}
        self.empty, self.epsilon, self.everything = EMPTY, EPSILON, EVERYTHING
        (any_byte,) = EVERYTHING.parts
        self._nodes[Kind.BYTE, ALL_BYTES] = any_byte
        self._nodes[Kind.REPEAT, any_byte, 0, None] = EVERYTHING

    def __len__(self) -> int:
        """Nodes made so far."""
        return len(self._nodes)

    def charge(self, work: int) -> None:
        """Count work. Raises ``ConstraintError`` beyond ``work_limit``."""
        self.work += work
        if self.work > self.work_limit:
            raise _too_large(_AT_ONE_PLACE)

    def lift_limits(self) -> None:
        """From here on nodes are made for generations, which have the budget of their tokens alone."""
        self.work_limit = self._max_parts = sys.maxsize
        self._is_limited = False

    @contextmanager
    def one_token(self) -> Generator[None]:
        """Hold what is done inside to the budget of a token, where there is one and the limits were lifted."""
        if self.budget.work_of_token is None or self._is_limited:
            yield
            return
        self.work_limit = self.work + self.budget.work_of_token
        try:
            yield
        finally:
            self.work_limit = sys.maxsize

    def copy(self, node: Node) -> Node:
        """The same expression of a certain node of another arena, without anything that was derived there.

        Definitions that it refers to are copied once, whatever refers to them later.
        """
        made: dict[Node, Node] = {}
        undefined: list[tuple[Node, Node]] = []

        def copied(top: Node, parts: list[Node]) -> Node:
            match top.kind:
                case Kind.BYTE:
                    return self.byte_set(top.mask)
                case Kind.LITERAL:
                    return self.literal(top.data)
                case Kind.STATE:
                    assert top.automaton is not None
                    return self.state(top.automaton, top.state, top.low, top.high)
                case Kind.REFERENCE:
                    reference = self.reference(top.state)
                    if reference.resolved is None:
                        assert top.resolved is not None
                        undefined.append((reference, top.resolved))
                    return reference
                case _:
                    return self.rebuilt(top, parts)

        root = fold(node, made, copied, inner_parts)
        for reference, definition in undefined:  # definitions may add others
            reference.resolved = fold(definition, made, copied, inner_parts)
        return root

    def rebuilt(self, node: Node, parts: list[Node]) -> Node:
        """The same of other parts; a node without parts as it is."""
        match node.kind:
            case Kind.CONCAT:
                return self.concat(*parts)
            case Kind.UNION:
                return self.union(parts)
            case Kind.INTERSECTION:
                return self.intersection(parts)
            case Kind.REPEAT:
                return self.repeat(parts[0], node.low, node.high)
            case _:
                return node

    def spend(self, steps: int) -> None:
        """Count steps. Raises ``ConstraintError`` beyond ``MAX_STEPS``."""
        self._steps += steps
        if self._steps > self.budget.steps:
            raise ConstraintError(
                f"the patterns and lengths that have to hold together take more than {self.budget.steps} steps "
                "to combine",
                remedy="combine fewer of them in one place, or give smaller bounds to what patterns repeat",
            )

    def byte_set(self, mask: int) -> Node:
        """One byte out of a set (bit b: byte b)."""
        if not mask:
            return self.empty
        return self._make((Kind.BYTE, mask), Kind.BYTE, nullable=False, mask=mask)

    def literal(self, data: bytes) -> Node:
        """Exactly these bytes."""
        if len(data) < 2:
            return self.byte_set(1 << data[0]) if data else self.epsilon
        if len(data) > MAX_LITERAL:
            raise _too_large(f"a text of more than {MAX_LITERAL} bytes")
        return self._make((Kind.LITERAL, data), Kind.LITERAL, nullable=False, data=data)

    def concat(self, *parts: Node) -> Node:
        """One after the other."""
        some = [part for part in parts if part is not EPSILON]
        if len(some) < 2:
            return some[0] if some else self.epsilon
        last = some.pop()
        return self._before(self._flat(some), last)

    def join(self, left: Node, right: Node) -> Node:
        """One after the other, of two."""
        if left is EPSILON:
            return right
        if right is EPSILON:
            return left
        return self._prepend(left, right) if left.kind is not Kind.CONCAT else self._before(self._flat((left,)), right)

    def _flat(self, parts: Iterable[Node]) -> list[Node]:
        """Return what parts that are not empty consist of, neighbours of different parts joined where that can be."""
        heads: list[Node] = []
        for part in parts:
            border, last = len(heads), part
            while last.kind is Kind.CONCAT:
                head, last = last.parts
                heads.append(head)
            heads.append(last)
            if border:
                joined = self._joined(heads[border - 1], heads[border])
                if joined is not None:
                    heads[border - 1 : border + 1] = [joined]
        self.charge(len(heads))
        return heads

    def _before(self, heads: list[Node], right: Node) -> Node:
        """Parts that can't be joined, then ``right``."""
        if EMPTY in heads:
            return self.empty
        is_kept = False
        for head in reversed(heads):
            if is_kept:
                right = self._pair(head, right)
                continue
            right = self._prepend(head, right)
            # Once a part stays what it is, so do those before it.
            is_kept = right.kind is Kind.CONCAT and right.parts[0] is head
        return right

    def union(self, parts: Iterable[Node]) -> Node:
        """Any of them."""
        flat: dict[Node, None] = {}
        mask = 0
        for part in parts:
            inner = part.parts if part.kind is Kind.UNION else (part,)
            self.charge(len(inner))
            for each in inner:
                if each.kind is Kind.BYTE:
                    mask |= each.mask
                elif each.kind is not Kind.EMPTY:
                    flat[each] = None
        if mask:
            flat[self.byte_set(mask)] = None
        if self.everything in flat:
            return self.everything
        if len(flat) > 1:
            flat = _merged(self, flat)
        if not flat:
            return self.empty
        if len(flat) == 1:
            return next(iter(flat))
        self._check_parts(len(flat))
        ordered = tuple(sorted(flat, key=_BY_NUMBER))
        return self._make(
            (Kind.UNION, ordered),
            Kind.UNION,
            nullable=any(part.nullable for part in ordered),
            certain=all(part.certain for part in ordered),
            parts=ordered,
        )

    def intersection(self, parts: Iterable[Node]) -> Node:
        """Strings of all of them. May turn out to have none: see ``Derivatives.resolved``."""
        flat: dict[Node, None] = {}
        mask: int | None = None
        for part in parts:
            inner = part.parts if part.kind is Kind.INTERSECTION else (part,)
            self.charge(len(inner))
            for each in inner:
                if each.kind is Kind.BYTE:
                    mask = each.mask if mask is None else mask & each.mask
                elif each is not self.everything:
                    flat[each] = None
        if mask is not None:
            flat[self.byte_set(mask)] = None
        if not flat:
            return self.everything
        if self.empty in flat:
            return self.empty
        if len(flat) == 1:
            return next(iter(flat))
        nullable = all(part.nullable for part in flat)
        if self.epsilon in flat:
            return self.epsilon if nullable else self.empty
        self._check_parts(len(flat))
        ordered = tuple(sorted(flat, key=_BY_NUMBER))
        key = (Kind.INTERSECTION, ordered)
        return self._make(key, Kind.INTERSECTION, nullable=nullable, certain=False, parts=ordered)

    def complement(self, node: Node) -> Node:
        """All other byte strings, valid UTF-8 or not."""
        if node.kind is Kind.COMPLEMENT:
            return node.parts[0]
        if node.kind is Kind.EMPTY:
            return self.everything
        if node is self.everything:
            return self.empty
        key = (Kind.COMPLEMENT, node)
        return self._make(key, Kind.COMPLEMENT, nullable=not node.nullable, certain=False, parts=(node,))

    def optional(self, node: Node) -> Node:
        """The node or nothing."""
        return self.repeat(node, 0, 1)

    def repeat(self, node: Node, low: int, high: int | None) -> Node:
        """The node ``low`` to ``high`` times in a row (None: without end)."""
        if high is not None and high < low:
            raise ValueError(f"repeat from {low} to {high}")
        if node.nullable:
            low = 0
        if high == 0 or node.kind is Kind.EPSILON:
            return self.epsilon
        if node.kind is Kind.EMPTY:
            return self.empty if low else self.epsilon
        if low == high == 1 or (high == 1 and node.nullable):
            return node
        if node.kind is Kind.REPEAT:
            inner = (node.low, node.high)
            if low == high or _is_contiguous(low, inner):
                low, high = low * node.low, _times(high, node.high)
                return self.repeat(node.parts[0], low, high)
        key = (Kind.REPEAT, node, low, high)
        return self._make(key, Kind.REPEAT, nullable=low == 0, certain=node.certain, parts=(node,), low=low, high=high)

    def state(
        self, automaton: States, state: int, low: int = 0, high: int | None = None, source: Node | None = None
    ) -> Node:
        """Return what may follow a state of an automaton, in ``low`` to ``high`` characters, of which there is some."""
        key = (Kind.STATE, automaton, state, low, high)
        node = self._nodes.get(key)
        if node is None:
            node = Node(
                Kind.STATE,
                nullable=automaton.accepts(state, low),
                parts=() if source is None else (source,),
                low=low,
                high=high,
                automaton=automaton,
                state=state,
            )
            self._keep(key, node)
        return node

    def new_reference(self) -> int:
        """Return a number that no definition has yet."""
        self._next_reference += 1
        return self._next_reference - 1

    def reference(self, number: int) -> Node:
        """The definition of a number. Whoever calls it sets ``resolved``: a certain node without the empty string.

        A definition may hold references, its own too, but not begin with them.
        """
        return self._make((Kind.REFERENCE, number), Kind.REFERENCE, nullable=False, number=number)

    def _prepend(self, head: Node, tail: Node) -> Node:
        """``head``, which is no concatenation, then ``tail``."""
        if head.kind is Kind.EPSILON:
            return tail
        if tail.kind is Kind.EPSILON:
            return head
        if head.kind is Kind.EMPTY or tail.kind is Kind.EMPTY:
            return self.empty
        following, rest = tail.parts if tail.kind is Kind.CONCAT else (tail, self.epsilon)
        joined = self._joined(head, following)
        if joined is not None:
            return self._prepend(joined, rest)
        return self._pair(head, tail)

    def _pair(self, head: Node, tail: Node) -> Node:
        """The same of two that can't be joined."""
        parts = (head, tail)
        node = self._nodes.get(parts)
        if node is None:
            nullable, certain = head.nullable and tail.nullable, head.certain and tail.certain
            node = self._keep(parts, Node(Kind.CONCAT, nullable=nullable, certain=certain, parts=parts))
        return node

    def _joined(self, left: Node, right: Node) -> Node | None:
        """Neighbours as one node: bytes as a literal, repeats of the same part as one repeat."""
        data, more = bytes_of(left), bytes_of(right)
        if data and more:
            joined = data + more
            if len(joined) >= 64:
                self.charge(len(joined) // 64)
            return self.literal(joined)
        if left.kind is Kind.REPEAT and right.kind is Kind.REPEAT and left.parts == right.parts:
            high = None if left.high is None or right.high is None else left.high + right.high
            return self.repeat(left.parts[0], left.low + right.low, high)
        return None

    def _check_parts(self, count: int) -> None:
        if count > self._max_parts:
            raise _too_large(f"{count} alternatives at one place")

    def _make(
        self,
        key: _Key,
        kind: int,
        *,
        nullable: bool,
        certain: bool = True,
        parts: tuple[Node, ...] = (),
        mask: int = 0,
        data: bytes = b"",
        low: int = 0,
        high: int | None = None,
        number: int = 0,
    ) -> Node:
        node = self._nodes.get(key)
        if node is None:
            node = Node(
                kind,
                nullable=nullable,
                certain=certain,
                parts=parts,
                mask=mask,
                data=data,
                low=low,
                high=high,
                state=number,
            )
            self._keep(key, node)
        return node

    def _keep(self, key: _Key, node: Node) -> Node:
        if len(self._nodes) >= self.budget.nodes and self._is_limited:
            raise _too_large(f"more than {self.budget.nodes} expressions")
        self.work += 1
        if self.work > self.work_limit:
            raise _too_large(_AT_ONE_PLACE)
        self._nodes[key] = node
        return node


def _is_contiguous(times: int, inner: tuple[int, int | None]) -> bool:
    """Return whether ``times`` or more times ``inner`` repetitions leave no gap between the possible counts."""
    low, high = inner
    if high is None:
        return times > 0 or low <= 1
    return (times + 1) * low <= times * high + 1


def _times(outer: int | None, inner: int | None) -> int | None:
    return None if outer is None or inner is None else outer * inner


def _too_large(what: str) -> ConstraintError:
    return ConstraintError(
        f"the constraint needs {what}", remedy="give smaller bounds, or fewer nested repeats and alternatives"
    )


def _merged(arena: Arena, parts: dict[Node, None]) -> dict[Node, None]:
    """The same union with fewer parts: byte sets before the same rest, ranges of repeats before the same rest."""
    sets: dict[Node, int] = {}
    ranges: dict[tuple[Node, Node], list[tuple[int, float]]] = {}
    kept: dict[Node, None] = {}
    for part in parts:
        head, tail = part.parts if part.kind is Kind.CONCAT else (part, arena.epsilon)
        if head.kind is Kind.BYTE and tail is not arena.epsilon:
            sets[tail] = sets.get(tail, 0) | head.mask
        elif head.kind is Kind.REPEAT:
            high = float("inf") if head.high is None else head.high
            ranges.setdefault((head.parts[0], tail), []).append((head.low, high))
        else:
            kept[part] = None
    for tail, mask in sets.items():
        kept[arena.concat(arena.byte_set(mask), tail)] = None
    if arena.epsilon in kept:
        for (_, tail), found in ranges.items():
            if tail is arena.epsilon:
                found.append((0, 0))
    for (node, tail), found in ranges.items():
        for low, high in _joined_ranges(found):
            repeated = arena.repeat(node, low, None if high == float("inf") else int(high))
            kept[arena.concat(repeated, tail)] = None
    if arena.epsilon in kept and any(part.nullable and part is not arena.epsilon for part in kept):
        del kept[arena.epsilon]
    for depth in range(1, _DEPTH + 1):
        kept = _joined_behind(arena, kept, depth)
    return kept


def _joined_behind(arena: Arena, parts: dict[Node, None], depth: int) -> dict[Node, None]:
    """The same for repeats that follow ``depth`` equal parts: the counts of repeats under way."""
    found: dict[tuple[Node, ...], list[tuple[Node, tuple[int, float]]]] = {}
    for part in parts:
        heads: list[Node] = []
        tail = part
        while len(heads) < depth and tail.kind is Kind.CONCAT:
            heads.append(tail.parts[0])
            tail = tail.parts[1]
        repeated, rest = tail.parts if tail.kind is Kind.CONCAT else (tail, arena.epsilon)
        if len(heads) == depth and repeated.kind is Kind.REPEAT:
            high = float("inf") if repeated.high is None else repeated.high
            found.setdefault((*heads, repeated.parts[0], rest), []).append((part, (repeated.low, high)))
    for (*heads, node, rest), several in found.items():
        without = arena.concat(*heads, rest)
        ranges = [each for _, each in several]
        if without in parts:
            ranges.append((0, 0))
        joined = _joined_ranges(ranges)
        if len(joined) == len(ranges):
            continue
        parts = {part: None for part in parts if part not in {each for each, _ in several}}
        for low, high in joined:
            if high:
                repeated = arena.repeat(node, low, None if high == float("inf") else int(high))
                parts[arena.concat(*heads, repeated, rest)] = None
        if joined[0][0] == 0 and joined[0][1]:
            parts.pop(without, None)
    return parts


def _joined_ranges(ranges: list[tuple[int, float]]) -> list[tuple[int, float]]:
    joined: list[tuple[int, float]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], high))
        else:
            joined.append((low, high))
    return joined
