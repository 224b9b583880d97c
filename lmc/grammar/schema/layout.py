"""The texts between values, and what arrays and objects ask of the builder of the values in them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal, Protocol

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.errors import Pointer
from lmc.grammar.schema.shapes.expanding import Expander
from lmc.grammar.schema.shapes.shapes import Goal
from lmc.grammar.schema.strings import Strings

Values = dict[Hashable, Any]
"""Values by what tells equal ones."""

Whitespace = Literal["compact", "flexible"]
MAX_SPACES = 40
MAX_TABS = 10


class Punctuation:
    """The punctuation of one arena.

    ``compact``: no white space. ``flexible``: that of JSON printers, and no more, because a model may repeat
    spaces for as long as it is allowed to. A space around a colon and before a comma; inside of brackets, behind a
    comma and around the whole a space, a line break, or both, the line indented by ``MAX_SPACES`` or ``MAX_TABS`` at
    most.
    """

    def __init__(self, arena: Arena, whitespace: Whitespace) -> None:
        self._arena = arena
        self._is_compact = whitespace == "compact"
        self._break, blank = arena.epsilon, arena.epsilon
        if whitespace == "flexible":
            blank = arena.optional(arena.literal(b" "))
            self._break = arena.concat(blank, arena.optional(_new_line(arena)))
        self.comma = arena.concat(blank, arena.literal(b","), self._break)
        self._colon = arena.concat(blank, arena.literal(b":"), blank)

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
        inner = self._arena.concat(inner, self._break)
        if may_be_empty:
            inner = self._arena.optional(inner)
        return self.opened(pair, self._arena.concat(inner, self._arena.literal(pair[1:])))

    def opened(self, pair: bytes, *inner: Node) -> Node:
        """Parts, the last of which closes the bracket, behind the opening one."""
        return self._arena.concat(self._arena.literal(pair[:1]), self._break, *inner)

    def closing(self, pair: bytes) -> Node:
        """The closing bracket behind the last of what is in it."""
        return self._arena.concat(self._break, self._arena.literal(pair[1:]))

    def whole(self, node: Node) -> Node:
        """A value as a whole text."""
        return self._arena.concat(self._break, node, self._break)


class ValueBuilder(Protocol):
    """The part of ``SchemaBuilder`` that arrays and objects use."""

    arena: Arena
    layout: Punctuation
    expander: Expander
    strings: Strings
    narrowed: dict[str, str]
    conflict: Pointer
    leaves_out: bool
    has_other_values: bool

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        """The values that meet a goal."""
        ...

    def listed(self, goal: Goal) -> Values | None:
        """All values that meet a goal, where they are a short list."""
        ...

    def classes(self, goal: Goal) -> int:
        """The classes of the values that are produced for a goal."""
        ...

    def literal(self, value: Any) -> Node:
        """One value."""
        ...

    def is_live(self, node: Node) -> bool:
        """Return whether a node has a text."""
        ...

    def surely_has_value(self, node: Node) -> bool:
        """Return whether a property of these values counts where more properties are asked for."""
        ...

    def intersection(self, parts: list[Node], pointer: Pointer) -> Node:
        """The texts that all nodes have in common."""
        ...

    def key_contents(self, goal: Goal) -> Node:
        """The contents of the strings that meet a goal."""
        ...

    def key_list(self, goal: Goal) -> list[str] | None:
        """All strings that meet a goal, where they are a list."""
        ...


def _new_line(arena: Arena) -> Node:
    """A line break of either kind, and the indent of the next line."""
    spaces = arena.repeat(arena.literal(b" "), 0, MAX_SPACES)
    tabs = arena.repeat(arena.literal(b"\t"), 0, MAX_TABS)
    return arena.concat(arena.optional(arena.literal(b"\r")), arena.literal(b"\n"), arena.union([spaces, tabs]))
