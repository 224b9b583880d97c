"""Nodes of JSON with references in them, as rules whose terminals are the tokens of JSON.

A lexer that takes as much as it can finds those where they are: a string ends with its quote, a number before what
can't belong to it, and a brace is alone. Larger terminals could begin like others and swallow what should have been
their end. Whatever is cut, the language stays the same: a row is a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lmc.grammar.building import Arena
from lmc.grammar.context_free.rules import Alternative, Repetition, Symbol
from lmc.grammar.nodes import ALL_BYTES, Kind, Node
from lmc.grammar.schema.errors import Pointer, json_pointer
from lmc.ir.errors import ConstraintError

MAX_SYMBOLS = 100_000

_REFERENCE = re.compile(rb"\xff([0-9]+)\xfe")
_PIECES = re.compile(rb'\xff[0-9]+\xfe|[{}\[\]:,"]|[^{}\[\]:,"\xff]+')  # outside of strings
_CONTENTS = re.compile(rb'(?:[^"\\]|\\.|\\\Z)*"?', re.DOTALL)  # of a string, with its end if it is there


def _mask(characters: str) -> int:
    return sum(1 << ord(character) for character in characters)


_SPACE = _mask(" \t\r\n")
_STRUCTURE = _mask('{}[]:,"') | 1 << 0xFF


def reference(number: int) -> bytes:
    """The bytes that stand for a rule in a node; no JSON has them."""
    return b"\xff%d\xfe" % number


def references(node: Node) -> Iterator[int]:
    """The numbers of the rules that a node refers to."""
    seen, stack = {node}, [node]
    while stack:
        top = stack.pop()
        for match in _REFERENCE.finditer(top.data):
            yield int(match[1])
        for part in top.parts:
            if part not in seen:
                seen.add(part)
                stack.append(part)


def rule_name(number: int) -> str:
    """The name of the rule that a reference means."""
    return f"value{number}"


class Cutting:
    """Makes rules of nodes. ``places`` says where in the schema a rule comes from, by number."""

    def __init__(self, arena: Arena, places: dict[int, Pointer]) -> None:
        self.alternatives: dict[str, list[Alternative]] = {}
        self._arena = arena
        self._places = places
        self._bytes: dict[Node, int] = {}
        self._helpers: dict[Node, str] = {}
        self._waiting: list[tuple[str, Node]] = []
        self._symbols = 0

    def add(self, name: str, node: Node) -> None:
        """Make the rule of a node, and those of its parts. Raises ``ConstraintError`` where that is too much."""
        self._waiting.append((name, node))
        while self._waiting:
            name, node = self._waiting.pop()
            single: list[Node] = []
            found: list[Alternative] = []
            for arm in node.parts if node.kind is Kind.UNION else (node,):
                symbols = self._row(arm)
                self._count(len(symbols))
                if len(symbols) == 1 and isinstance(symbols[0], Node):
                    single.append(symbols[0])
                else:
                    found.append(symbols)
            if single:
                found.append((self._arena.union(single),))
            self.alternatives[name] = found

    def _row(self, node: Node) -> Alternative:
        """The symbols of a node that is no union."""
        row = _Row(self._arena)
        for part in _flat(node):
            data = _bytes_of(part)
            if data:
                row.take_bytes(data)
            elif row.in_string or not self._bytes_in(part) & (_STRUCTURE | _SPACE):
                row.pending.append(part)
            else:
                row.flush()
                row.symbols += self._composite(part)
        row.flush()
        return tuple(row.symbols)

    def _composite(self, node: Node) -> Alternative:
        """A part with structure in it, or with white space."""
        if node.kind is Kind.EPSILON:
            return ()
        if not self._bytes_in(node) & ~_SPACE or node.kind is Kind.BYTE:
            return (node,)
        if node.kind is Kind.UNION:
            return (self._helper(node),)
        if node.kind is Kind.REPEAT:
            return (Repetition(self._helper(node.parts[0]), node.low, node.high),)
        self._check_opaque(node)
        return (node,)

    def _helper(self, node: Node) -> str:
        """The rule of a part."""
        name = self._helpers.get(node)
        if name is None:
            name = self._helpers[node] = f"part{len(self._helpers)}"
            self._waiting.append((name, node))
        return name

    def _check_opaque(self, node: Node) -> None:
        """Raise ``ConstraintError`` where an intersection or a complement holds a reference."""
        for number in references(node):
            where = json_pointer(self._places[number])
            raise ConstraintError(
                f"schema, #{where}: contains asks for values that nest without bound",
                remedy="say what these values are without reference to the schema around them",
                pointer=where,
            )

    def _bytes_in(self, node: Node) -> int:
        """A set of bytes that holds all those of the texts of a node."""
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [part for part in top.parts if part not in self._bytes]
            if missing and top not in self._bytes:
                stack += missing
                continue
            stack.pop()
            if top not in self._bytes:
                self._bytes[top] = _combined(top, [self._bytes[part] for part in top.parts])
        return self._bytes[node]

    def _count(self, symbols: int) -> None:
        self._symbols += symbols + 1
        if self._symbols > MAX_SYMBOLS:
            raise ConstraintError(
                f"the schema becomes a grammar of more than {MAX_SYMBOLS} symbols",
                remedy="have fewer properties that may be left out, or fewer alternatives",
            )


class _Row:
    """The symbols of a row so far. What is ``pending`` is one token of JSON that may go on."""

    def __init__(self, arena: Arena) -> None:
        self.symbols: list[Symbol] = []
        self.pending: list[Node] = []
        self.in_string = False
        self._arena = arena

    def take_bytes(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self.in_string:
                match = _CONTENTS.match(data, at)
                assert match is not None
                self.pending.append(self._arena.literal(match[0]))
                at = match.end()
                if match[0].endswith(b'"'):
                    self.flush()
                continue
            match = _PIECES.match(data, at)
            assert match is not None
            at = match.end()
            piece = match[0]
            if piece[0] == 0xFF:
                self.flush()
                self.symbols.append(rule_name(int(piece[1:-1])))
            elif piece == b'"':
                self.flush()
                self.in_string = True
                self.pending.append(self._arena.literal(piece))
            elif 1 << piece[0] & _STRUCTURE:
                self.flush()
                self.symbols.append(self._arena.literal(piece))
            else:
                self.pending.append(self._arena.literal(piece))

    def flush(self) -> None:
        """End the token."""
        if self.pending:
            self.symbols.append(self._arena.concat(*self.pending))
        self.pending = []
        self.in_string = False


def _combined(node: Node, parts: list[int]) -> int:
    match node.kind:
        case Kind.BYTE:
            return node.mask
        case Kind.LITERAL:
            mask = 0
            for byte in node.data:
                mask |= 1 << byte
            return mask
        case Kind.INTERSECTION:
            mask = ALL_BYTES
            for part in parts:
                mask &= part
            return mask
        case Kind.COMPLEMENT:
            return ALL_BYTES
        case _:
            mask = 0
            for part in parts:
                mask |= part
            return mask


def _flat(node: Node) -> list[Node]:
    parts: list[Node] = []
    while node.kind is Kind.CONCAT:
        head, node = node.parts
        parts.append(head)
    return [*parts, node]


def _bytes_of(node: Node) -> bytes:
    """The bytes of a node that stands for one string; empty for any other."""
    if node.kind is Kind.LITERAL:
        return node.data
    if node.kind is Kind.BYTE and not node.mask & (node.mask - 1):
        return bytes((node.mask.bit_length() - 1,))
    return b""
