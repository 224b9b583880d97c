"""Encodings of characters as bytes: between a pattern over characters and an automaton over bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from weakref import WeakKeyDictionary

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet, Range
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node


class Alphabet(ABC):
    """A way to write one character as bytes; different characters have different, prefix-free writings.

    An alphabet keeps what it encoded for as long as the arena lives. Not safe for several threads on one arena.
    """

    def __init__(self) -> None:
        self._encoded: WeakKeyDictionary[Arena, dict[CharSet, Node]] = WeakKeyDictionary()

    def encode(self, arena: Arena, charset: CharSet) -> Node:
        """One character of the set; the same node for equal sets. The empty set is the empty node."""
        known = self._encoded.get(arena)
        if known is None:
            known = self._encoded[arena] = {}
        node = known.get(charset)
        if node is None:
            node = known[charset] = self.encode_new(arena, charset)
        return node

    def encode_text(self, arena: Arena, text: str) -> Node:
        """Exactly these characters, none of them a surrogate."""
        return arena.concat(*(self.encode(arena, CharSet.of(each)) for each in text))

    @abstractmethod
    def encode_new(self, arena: Arena, charset: CharSet) -> Node:
        """Encode a character of a set that is not cached in this arena yet."""


class Utf8(Alphabet):
    """Characters as UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.

    A set becomes the smallest tree of byte sets: parts with equal rests are one, in time linear in the ranges.
    """

    def encode_text(self, arena: Arena, text: str) -> Node:
        return arena.literal(text.encode())

    def encode_new(self, arena: Arena, charset: CharSet) -> Node:
        return _shared_utf8(charset) if len(charset.ranges) > _SHARED_FROM else self.encode_in(arena, charset)

    def encode_in(self, arena: Arena, charset: CharSet) -> Node:
        """The set in nodes of the arena."""
        nodes: list[Node] = []
        for arcs in _utf8_states(charset):
            parts = [
                arena.byte_set(mask) if rest == _END else arena.concat(arena.byte_set(mask), nodes[rest])
                for mask, rest in arcs
            ]
            nodes.append(parts[0] if len(parts) == 1 else arena.union(parts))
        return nodes[-1]


UTF8 = Utf8()
_SHARED_FROM = 40  # ranges of a set, such as those of Unicode's classes


@lru_cache(maxsize=64)
def _shared_utf8(charset: CharSet) -> Node:
    """A large set in nodes of no constraint in particular, made once for all of them."""
    arena = Arena()
    node = UTF8.encode_in(arena, charset)
    Derivatives(arena).derive_all(node)  # now: later the nodes of whichever constraint comes first would be held
    return node


_END = -1
_Arcs = tuple[tuple[int, int], ...]
"""Byte sets, by their lowest byte, each with the index of the state that reads the rest, or ``_END``."""

# Bytes in all → first and last code point, and the leading byte of code point 0 if it were written so.
_LENGTHS = {1: (0, 0x7F, 0), 2: (0x80, 0x7FF, 0xC0), 3: (0x800, 0xFFFF, 0xE0), 4: (0x10000, 0x10FFFF, 0xF0)}
_CONTINUATION = 0x80
_BLOCK = 64  # code points that differ in the last continuation byte only


@lru_cache(maxsize=256)
def _utf8_states(charset: CharSet) -> tuple[_Arcs, ...]:
    """The smallest acyclic automaton of the UTF-8 of a set, the start last, after what it leads to."""
    states: dict[_Arcs, int] = {}
    start: _Arcs = ()
    for length, (lowest, highest, lead) in _LENGTHS.items():
        ranges = [(max(a, lowest), min(b, highest)) for a, b in charset.ranges if a <= highest and b >= lowest]
        start += _arcs(ranges, length, lead, states)
    return (*states, start)


def _arcs(ranges: list[Range], depth: int, base: int, states: dict[_Arcs, int]) -> _Arcs:
    """Arcs for ``depth`` bytes, the first of them ``base`` plus the highest digit in base 64 of a number in ranges."""
    size = _BLOCK ** (depth - 1)  # of what one value of the first byte stands for
    whole = 0  # values whose rest is anything
    partial: dict[int, list[Range]] = {}
    for first, last in ranges:
        low, begin = divmod(first, size)
        high, end = divmod(last, size)
        if low == high and (begin > 0 or end < size - 1):
            partial.setdefault(low, []).append((begin, end))
            continue
        if begin > 0:
            partial.setdefault(low, []).append((begin, size - 1))
            low += 1
        if end < size - 1:
            partial.setdefault(high, []).append((0, end))
            high -= 1
        whole |= (1 << (high + 1)) - (1 << low)
    masks: dict[int, int] = {}
    if whole:
        masks[_state([(0, size - 1)], depth - 1, states)] = whole
    for value, rest in partial.items():
        target = _state(rest, depth - 1, states)
        masks[target] = masks.get(target, 0) | (1 << value)
    return tuple(sorted(((mask << base, target) for target, mask in masks.items()), key=_lowest))


def _state(ranges: list[Range], depth: int, states: dict[_Arcs, int]) -> int:
    """The state that reads ``depth`` continuation bytes."""
    if depth == 0:
        return _END
    return states.setdefault(_arcs(ranges, depth, _CONTINUATION, states), len(states))


def _lowest(arc: tuple[int, int]) -> int:
    return arc[0] & -arc[0]
