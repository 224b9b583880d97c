"""Short names for nodes over ASCII, for grammars that are written in Python."""

from __future__ import annotations

import re
from functools import cache

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node


class Notation:
    """Makes nodes of one arena."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.nothing = arena.epsilon
        self.digit = self.some("0-9")

    def text(self, text: str) -> Node:
        """Exactly this."""
        return self.arena.literal(text.encode())

    def some(self, characters: str) -> Node:
        """One of the characters, written as in a class: ``a-z0-9_-``."""
        return self.arena.byte_set(_mask(characters))

    def sequence(self, *parts: Node) -> Node:
        """One after the other."""
        return self.arena.concat(*parts)

    def either(self, *parts: Node) -> Node:
        """Any of them."""
        return self.arena.union(parts)

    def maybe(self, part: Node) -> Node:
        """The part or nothing."""
        return self.arena.repeat(part, 0, 1)

    def times(self, part: Node, low: int, high: int | None) -> Node:
        """Repetitions; ``high`` None: without end."""
        return self.arena.repeat(part, low, high)

    def digits(self, low: int, high: int | None = 0) -> Node:
        """Decimal digits: ``low`` of them, or ``low`` to ``high``."""
        return self.arena.repeat(self.digit, low, low if high == 0 else high)


@cache
def _mask(characters: str) -> int:
    matching = re.compile(f"[{characters}]")
    return sum(1 << code for code in range(128) if matching.fullmatch(chr(code)))
