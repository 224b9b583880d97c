r"""Strings of a shape: the contents between the quotes, by length, patterns, formats and values that are out.

A string of which nothing but a length is asked may be spelled in any way that JSON has, but for halves of surrogate
pairs; an escape counts as the one character that it stands for. In any other string every character has one spelling
(`alphabet.Json`), so that what a pattern says of characters can be said of bytes.

``pattern`` is a search in the characters of a string, read so that every validator agrees. The specification asks for
ECMA-262; validators use the regular expressions of Python or Rust, where ``\s``, ``\W``, ``$`` and some others mean
other characters. A string is produced only where both readings take it, and kept out of a negated pattern where either
does. Look-aheads at the very start, as in ``^(?=.*[0-9])(?!.*\s).{8,}$``, are patterns of their own.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from lmc.grammar.automata.automaton import Automaton
from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.charsets import CharSet
from lmc.grammar.automata.nodes import Node
from lmc.grammar.regex import search_to_node, without_match_to_node
from lmc.grammar.regex.escapes import sets_in
from lmc.grammar.schema.alphabet import JSON, any_character, any_spelling
from lmc.grammar.schema.errors import Pointer, json_pointer
from lmc.grammar.schema.formats import format_node
from lmc.grammar.schema.shapes.shapes import Goal, Shape, TextRule
from lmc.grammar.schema.values import string_text
from lmc.ir.errors import ConstraintError

# What Python takes for less than ECMA-262 does: negated classes and case in Unicode; white space (U+FEFF) in any.
_NARROWER_IN_UNICODE = re.compile(r"\\[WDS]|\(\?[a-zA-Z]*i")
_CLASS = re.compile(r"\\[wds]")
_NARROWER = re.compile(r"\\s")
# What is not a plain character for both.
_DIFFERENT = re.compile(r"\\[a-zA-Z]|[.$]|\[\^|\[\]|\(\?[a-zA-Z]*i")
# Sets that are closed at once for ECMA-262, and begin with a bracket for all others.
_CLOSED = re.compile(r"\[\^?\]")


class _Part(NamedTuple):
    pattern: str
    is_negated: bool


def pattern_node(text: TextRule, arena: Arena) -> Node:
    """The contents of strings, between the quotes, that meet the pattern (or do not: it is negated).

    A negation is over all byte strings; the caller intersects it with what is meant. Raises ``ConstraintError`` for a
    pattern that is wrong or not regular, with its place in the schema and in the pattern.
    """
    parts = _split(text.text)
    try:
        nodes = [
            _avoiding(part.pattern, arena) if part.is_negated else _matching(part.pattern, arena) for part in parts
        ]
        if not text.is_negated:
            return arena.intersection(nodes)
        if len(parts) == 1 and not parts[0].is_negated:
            return _avoiding(parts[0].pattern, arena)
        return arena.union(
            _matching(part.pattern, arena) if part.is_negated else _avoiding(part.pattern, arena) for part in parts
        )
    except ConstraintError as error:
        where = json_pointer(text.pointer)
        cause = f"schema, #{where}: {error.cause}"
        position = error.position if len(parts) == 1 else None
        raise ConstraintError(cause, remedy=error.remedy, pointer=where, position=position) from None


def _matching(pattern: str, arena: Arena) -> Node:
    node = search_to_node(pattern, arena, JSON, ecma=True)
    if _CLOSED.search(pattern):
        with contextlib.suppress(ConstraintError):  # for others it may be no pattern at all
            return arena.intersection([node, search_to_node(pattern, arena, JSON, flags=re.UNICODE)])
    if _is_narrower_in_unicode(pattern):
        return arena.intersection([node, search_to_node(pattern, arena, JSON, flags=re.UNICODE)])
    if _NARROWER.search(pattern):
        return arena.intersection([node, search_to_node(pattern, arena, JSON)])
    return node


def _is_narrower_in_unicode(pattern: str) -> bool:
    if _NARROWER_IN_UNICODE.search(pattern):
        return True
    return any(each.startswith("^") and _CLASS.search(each) for each in sets_in(pattern))


def _avoiding(pattern: str, arena: Arena) -> Node:
    node = without_match_to_node(pattern, arena, JSON, ecma=True)
    if _DIFFERENT.search(pattern):
        other = without_match_to_node(pattern, arena, JSON, flags=re.UNICODE)
        return arena.intersection([node, other])
    return node


def _split(pattern: str) -> list[_Part]:
    """The pattern without look-aheads behind a leading ``^``, and these as patterns that begin there."""
    parts: list[_Part] = []
    rest = pattern[1:]
    while pattern.startswith("^") and rest.startswith(("(?=", "(?!")):
        end = _closing(rest)
        if end is None or _has_alternatives(rest):
            return [_Part(pattern, False)]
        parts.append(_Part(f"^(?:{rest[3:end].removeprefix('^')})", rest[2] == "!"))
        rest = rest[end + 1 :]
    return [*parts, _Part("^" + rest, False)] if parts else [_Part(pattern, False)]


def _closing(pattern: str) -> int | None:
    """The parenthesis that closes the first one."""
    depth = 0
    for at, character in _syntax(pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return at
    return None


def _has_alternatives(pattern: str) -> bool:
    """Return True if a ``|`` is outside of all groups: a leading ``^`` then belongs to the first alternative."""
    depth = 0
    for _, character in _syntax(pattern):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            return True
    return False


def _syntax(pattern: str) -> list[tuple[int, str]]:
    """The characters of a pattern that are neither escaped nor in a class."""
    found: list[tuple[int, str]] = []
    at, in_class = 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            at += 2
            continue
        if in_class or character == "[":
            in_class = character != "]"
        else:
            found.append((at, character))
        at += 1
    return found


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
