"""Two keys that are sure to differ, where the schema does not name them.

That two keys differ is not regular. That they differ in their first characters, or in their last, is, and is cheap
that distinguishes few kinds of characters: by the last byte of a character modulo 7. Left
out are objects all of whose keys agree in both; of pairs of words one in 25 does. Keys have their one spelling here.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.documents.errors import Pointer
from lmc.grammar.schema.layout import Punctuation
from lmc.grammar.schema.shapes.shapes import Shape
from lmc.grammar.schema.strings.alphabet import JSON, any_character
from lmc.grammar.schema.strings.strings import Strings

_KINDS = 7  # of characters


class Other(NamedTuple):
    """Properties that the schema does not name: the contents of their keys (None: any) and their values."""

    contents: Node | None
    value: Node


class KeyBuilder(Protocol):
    """The used part of ``SchemaBuilder``."""

    arena: Arena
    layout: Punctuation
    strings: Strings

    def intersection(self, parts: list[Node], pointer: Pointer) -> Node:
        """The texts that all nodes have in common."""
        ...


def one_property(others: list[Other], builder: KeyBuilder) -> Node:
    """One of these properties."""
    return _one_of(
        [Other(builder.strings.contents(Shape()), each.value) if each.contents is None else each for each in others],
        builder,
    )


def two_properties(others: list[Other], builder: KeyBuilder, most: int | None, pointer: Pointer) -> Node:
    """Two or more of these properties, up to ``most``, with commas, two of which have different keys."""
    arena, comma = builder.arena, builder.layout.comma
    any_text = arena.repeat(any_character(), 0, None)
    anything = _one_of(_held(others, any_text, arena), builder)
    found: list[Node] = []

    def add(own: Node, differing: Node) -> None:
        """The first key is of one kind, some other is not."""
        same, other = (_one_of(_held(others, texts, arena), builder) for texts in (own, differing))
        before, behind = (arena.repeat(arena.concat(comma, each), 0, None) for each in (same, anything))
        found.append(arena.concat(same, before, comma, other, behind))

    kinds = [_characters(kind, arena) for kind in range(_KINDS)]
    for kind, own in enumerate(kinds):
        rest = arena.union(kinds[:kind] + kinds[kind + 1 :])
        add(arena.concat(own, any_text), arena.optional(arena.concat(rest, any_text)))
        add(arena.concat(any_text, own), arena.optional(arena.concat(any_text, rest)))
    add(arena.epsilon, arena.repeat(any_character(), 1, None))
    node = arena.union(found)
    if most is None:
        return node
    counted = arena.concat(anything, arena.repeat(arena.concat(comma, anything), 1, most - 1))
    return builder.intersection([node, counted], pointer)


def _characters(kind: int, arena: Arena) -> Node:
    """One character of a kind, in its one spelling."""

    def byte_range(first: int, last: int) -> Node:
        return arena.byte_set((1 << last + 1) - (1 << first))

    ascii_ones = CharSet.of("".join(map(chr, range(kind, 0x80, _KINDS))))
    any_byte = byte_range(0x80, 0xBF)
    last = arena.byte_set(sum(1 << byte for byte in range(0x80, 0xC0) if byte % _KINDS == kind))
    two = byte_range(0xC2, 0xDF)
    three = arena.union(
        [
            arena.concat(byte_range(0xE0, 0xE0), byte_range(0xA0, 0xBF)),
            arena.concat(arena.byte_set(byte_range(0xE1, 0xEF).mask & ~(1 << 0xED)), any_byte),
            arena.concat(byte_range(0xED, 0xED), byte_range(0x80, 0x9F)),
        ]
    )
    four = arena.union(
        [
            arena.concat(byte_range(0xF0, 0xF0), byte_range(0x90, 0xBF)),
            arena.concat(byte_range(0xF1, 0xF3), any_byte),
            arena.concat(byte_range(0xF4, 0xF4), byte_range(0x80, 0x8F)),
        ]
    )
    longer = arena.union([two, three, arena.concat(four, any_byte)])
    return arena.union([JSON.encode(arena, ascii_ones), arena.concat(longer, last)])


def _held(others: list[Other], texts: Node, arena: Arena) -> list[Other]:
    """The same with keys that are among some texts."""
    return [
        Other(texts if each.contents is None else arena.intersection([each.contents, texts]), each.value)
        for each in others
    ]


def _one_of(others: list[Other], builder: KeyBuilder) -> Node:
    pairs: list[Node] = []
    for contents, value in others:
        assert contents is not None
        pairs.append(builder.layout.pair(builder.strings.quoted(contents), value))
    return builder.arena.union(pairs)
