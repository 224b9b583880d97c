"""Strings of a shape: the contents between the quotes, by length, patterns, formats and values that are out.

A string of which nothing but a length is asked may be spelled in any way that JSON has, but for halves of surrogate
pairs; an escape counts as the one character that it stands for. In any other string every character has one spelling
(`alphabet.Json`), so that what a pattern says of characters can be said of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.documents.errors import Pointer
from lmc.grammar.schema.shapes.shapes import Goal, Shape, TextRule
from lmc.grammar.schema.strings.alphabet import JSON, any_character, any_spelling
from lmc.grammar.schema.strings.formats import format_node
from lmc.grammar.schema.strings.patterns import pattern_node
from lmc.grammar.schema.values import string_text


class Strings:
    """Makes the nodes of one arena. ``inner`` gives the contents of strings that are the JSON of what meets a goal."""

    def __init__(self, arena: Arena, inner: Callable[[Goal], Node]) -> None:
        self._arena = arena
        self._inner = inner
        self._quote = arena.literal(b'"')
        self._quoted: dict[Node, Node] = {}
        self._patterns: dict[tuple[str, bool], Node] = {}
        self._automata: dict[Node, Automaton] = {}

    def node(self, shape: Shape) -> Node:
        """The strings that meet a shape, with their quotes. Raises ``ConstraintError`` for patterns and formats."""
        contents = self.contents(shape)
        node = self._quoted.get(contents)
        if node is None:
            node = self._quoted[contents] = self.quoted(contents)
        return node

    def quoted(self, contents: Node) -> Node:
        """A string from its contents."""
        return self._arena.concat(self._quote, contents, self._quote)

    def contents(self, shape: Shape) -> Node:
        """The contents of the strings that meet a shape."""
        arena = self._arena
        low = 0 if shape.min_length is None else shape.min_length.value
        high = None if shape.max_length is None else shape.max_length.value
        if high is not None and high < low:
            return arena.empty
        excluded = [value for value in shape.excluded if isinstance(value, str)]
        if not shape.patterns and not shape.formats and not excluded and not shape.contents:
            return arena.repeat(any_spelling(), low, high)
        parts = [self._pattern(text) for text in shape.patterns] + [format_node(text.text) for text in shape.formats]
        if shape.contents:
            parts.append(self._inner(shape.contents))
        is_positive = bool(shape.formats or shape.contents) or not all(text.is_negated for text in shape.patterns)
        if excluded and not parts:
            parts.append(self.other_than(excluded))
            is_positive = True
        elif excluded:
            spelled = arena.union(arena.literal(string_text(value, None)[1:-1]) for value in excluded)
            parts.append(arena.complement(spelled))
        if low == 1 and not all(part.nullable for part in parts):
            low = 0
        if not is_positive or low or high is not None:
            parts.append(arena.repeat(any_character(), low, high))
        return arena.intersection(parts)

    def other_than(self, strings: Iterable[str]) -> Node:
        """The contents of all strings but these.

        Written out along the prefixes of the strings, so that nothing has to be searched for strings that are left.
        """
        arena = self._arena
        rest = arena.repeat(any_character(), 0, None)
        more = arena.repeat(any_character(), 1, None)
        ends = set(strings)
        followers: dict[str, set[str]] = {}
        for string in ends:
            for at, character in enumerate(string):
                followers.setdefault(string[:at], set()).add(character)
        nodes: dict[str, Node] = {}
        for prefix in sorted(followers, key=len, reverse=True):
            here = followers[prefix]
            parts = [arena.concat(JSON.encode(arena, ~CharSet.of("".join(here))), rest)]
            for character in sorted(here):
                following = prefix + character
                parts.append(arena.concat(JSON.encode_text(arena, character), nodes.get(following, more)))
            if prefix not in ends:
                parts.append(arena.epsilon)
            nodes[prefix] = arena.union(parts)
        return nodes.get("", more if ends else rest)

    def meets(self, shape: Shape, value: str) -> bool:
        """Return True if a string meets the shape's rules for strings, apart from excluded values."""
        if shape.min_length is not None and len(value) < shape.min_length.value:
            return False
        if shape.max_length is not None and len(value) > shape.max_length.value:
            return False
        nodes = [self._pattern(text) for text in shape.patterns]
        nodes += [format_node(text.text) for text in shape.formats]
        nodes += [self._inner(shape.contents)] if shape.contents else []
        return all(self.holds(node, value, shape.pointer) for node in nodes)

    def pattern(self, pattern: str, pointer: Pointer, *, is_negated: bool = False) -> Node:
        """The contents of the strings in which a pattern is found; negated: all byte strings but these."""
        return self._pattern(TextRule(pattern, is_negated, pointer))

    def find(self, pattern: str, text: str, pointer: Pointer) -> tuple[bool, bool]:
        """Return whether a pattern is found in a text in every reading, and whether it is found in none."""
        return (
            self.holds(self.pattern(pattern, pointer), text, pointer),
            self.holds(self.pattern(pattern, pointer, is_negated=True), text, pointer),
        )

    def holds(self, contents: Node, value: str, pointer: Pointer) -> bool:
        """Return True if a string is among these contents."""
        automaton = self._automata.get(contents)
        if automaton is None:
            automaton = self._automata[contents] = Automaton(contents, self._arena)
        return automaton.matches(string_text(value, pointer)[1:-1])

    def _pattern(self, text: TextRule) -> Node:
        key = (text.text, text.is_negated)
        node = self._patterns.get(key)
        if node is None:
            node = self._patterns[key] = pattern_node(text, self._arena)
        return node
