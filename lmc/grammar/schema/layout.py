"""What stands between the values: brackets, commas and colons, with or without white space."""

from __future__ import annotations

from typing import Literal

from lmc.grammar.building import Arena
from lmc.grammar.nodes import Node
from lmc.grammar.schema.alphabet import byte_mask

Whitespace = Literal["compact", "flexible"]


class Layout:
    """The punctuation of one arena. ``compact``: no white space; ``flexible``: any amount wherever JSON allows it."""

    def __init__(self, arena: Arena, whitespace: Whitespace) -> None:
        self._arena = arena
        self.space = arena.epsilon
        if whitespace == "flexible":
            self.space = arena.repeat(arena.byte_set(byte_mask(" \t\n\r")), 0, None)
        self.comma = arena.concat(self.space, arena.literal(b","), self.space)
        self._colon = arena.concat(self.space, arena.literal(b":"), self.space)
        self._is_compact = whitespace == "compact"

    def key(self, name: bytes) -> Node:
        """A property name in quotes and the colon behind it."""
        if self._is_compact:
            return self._arena.literal(name + b":")
        return self._arena.concat(self._arena.literal(name), self._colon)

    def later_key(self, name: bytes) -> Node:
        """The same behind a comma."""
        if self._is_compact:
            return self._arena.literal(b"," + name + b":")
        return self._arena.concat(self.comma, self._arena.literal(name), self._colon)

    def pair(self, key: Node, value: Node) -> Node:
        """Any key with its quotes, and a value."""
        return self._arena.concat(key, self._colon, value)

    def brackets(self, pair: bytes, inner: Node, *, may_be_empty: bool) -> Node:
        """``inner``, or nothing as well, in brackets. ``inner`` does not take the empty string."""
        arena = self._arena
        close = arena.literal(pair[1:])
        inner = arena.concat(inner, self.space)
        if may_be_empty:
            inner = arena.optional(inner)
        return arena.concat(arena.literal(pair[:1]), self.space, inner, close)

    def whole(self, node: Node) -> Node:
        """A value as a whole text."""
        return self._arena.concat(self.space, node, self.space)
