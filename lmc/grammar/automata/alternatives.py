"""Unions with fewer parts: what differs only in how it begins, or in how often it is repeated, is one part."""

from __future__ import annotations

from typing import Protocol

from lmc.grammar.automata.nodes import Kind, Node

_DEPTH = 2  # parts in front of a repeat that are looked at


class Making(Protocol):
    """The used part of ``Arena``."""

    epsilon: Node

    def byte_set(self, mask: int) -> Node: ...

    def concat(self, *parts: Node) -> Node: ...

    def repeat(self, node: Node, low: int, high: int | None) -> Node: ...


def merged(arena: Making, parts: dict[Node, None]) -> dict[Node, None]:
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


def _joined_behind(arena: Making, parts: dict[Node, None], depth: int) -> dict[Node, None]:
    """The same where repeats stand behind ``depth`` parts that are the same: counts of what is under way."""
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
