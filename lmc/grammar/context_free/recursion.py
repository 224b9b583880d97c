"""Schemas whose values nest without bound, as rules: each goal that comes up within itself is a rule of its own.

The nodes are those of ``lmc/grammar/schema``. Where a goal would be built within itself there stands a reference: bytes
that no JSON has. Afterwards every node with references in it is cut into rules at these places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lmc.grammar.building import Arena
from lmc.grammar.context_free.rules import Alternative, Repetition, Rules, Symbol
from lmc.grammar.derivatives import Derivatives
from lmc.grammar.nodes import Kind, Node
from lmc.grammar.schema.builder import Builder
from lmc.grammar.schema.documents import Document
from lmc.grammar.schema.errors import Pointer, RecursiveSchemaError, Subschema, json_pointer
from lmc.grammar.schema.shapes import Goal, Items, Members, Shape
from lmc.grammar.schema.values import ARRAY, OBJECT
from lmc.grammar.sources import Whitespace
from lmc.ir.errors import ConstraintError

_START = "start"
_REFERENCE = re.compile(rb"\xff([0-9]+)\xfe")


def rules_of_schema(schema: dict[str, Any] | bool, arena: Arena, whitespace: Whitespace) -> Rules:
    """The rules of any schema, recursive or not: the JSON that ``lmc/grammar/schema`` describes.

    Raises ``ConstraintError`` for what is wrong or can't be enforced, with the ``pointer`` to the keyword.
    """
    builder = _RecursiveBuilder(Document(schema), arena, whitespace)
    root = builder.layout.whole(builder.node((Subschema(schema, None),), None))
    cut = _Cut(arena, builder.places)
    cut.rule(_START, root)
    for number, node in builder.rules.items():
        cut.rule(_rule_name(number), node)
    return Rules(cut.alternatives, _START, Derivatives(arena))


def _any_value() -> dict[str, Any]:
    """A schema that says of any JSON value that it is one."""
    value: dict[str, Any] = {}
    simple = [{"type": name} for name in ("null", "boolean", "number", "string")]
    nested = [{"type": "array", "items": value}, {"type": "object", "additionalProperties": value}]
    value["anyOf"] = [*simple, *nested]
    return value


class _RecursiveBuilder(Builder):
    """Builds goals that come up within themselves, and those that leave open what a value is."""

    def __init__(self, document: Document, arena: Arena, whitespace: Whitespace) -> None:
        super().__init__(document, arena, whitespace)
        self.rules: dict[int, Node] = {}
        """The nodes of the goals that are referred to, by their number."""
        self.places: dict[int, Pointer] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._open: set[tuple[int, ...]] = set()
        self._any = _any_value()

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        if not goal:
            goal = (Subschema(self._any, pointer),)
        if len(goal) == 1:
            goal = (self.expander.target(goal[0]),)
        key = tuple(id(sub.schema) for sub in goal)
        if key in self._open or key in self._numbers:
            number = self._numbers.setdefault(key, len(self._numbers))
            self.places.setdefault(number, goal[0].pointer)
            return self.arena.literal(b"\xff%d\xfe" % number)
        self._open.add(key)
        node = super().node(goal, pointer)
        self._open.remove(key)
        number = self._numbers.get(key, -1)
        if number < 0:
            return node
        self.rules[number] = node
        return self.arena.literal(b"\xff%d\xfe" % number)

    def _shape(self, shape: Shape, pointer: Pointer) -> Node:
        try:
            return super()._shape(shape, pointer)
        except RecursiveSchemaError:
            if shape.is_open and shape.allowed is None:
                return self.node((), pointer)
        opened = self._opened(shape, pointer)
        try:
            return super()._shape(opened, pointer)
        except RecursiveSchemaError as error:
            raise ConstraintError(error.cause, remedy="say what the values are", pointer=error.pointer) from None

    def _opened(self, shape: Shape, pointer: Pointer) -> Shape:
        """A shape that says of parts of which nothing is said that they are any JSON value."""
        made, anything = shape.copy(), Subschema(self._any, pointer)
        if shape.meant & ARRAY and not shape.item_goal(max((len(each.prefix) for each in shape.items), default=0)):
            made.items = (*shape.items, Items([], anything))
        if shape.meant & OBJECT and not shape.members and not shape.required:
            made.members = (Members({}, [], anything),)
        return made


class _Cut:
    """Makes rules of nodes that hold references."""

    def __init__(self, arena: Arena, places: dict[int, Pointer]) -> None:
        self.alternatives: dict[str, list[Alternative]] = {}
        self._arena = arena
        self._places = places
        self._held: dict[Node, int] = {}
        self._helpers: dict[Node, str] = {}

    def rule(self, name: str, node: Node) -> None:
        """Make the rule of a node, and those of its parts."""
        waiting = [(name, node)]
        while waiting:
            name, node = waiting.pop()
            self.alternatives[name] = []
            for arm in self._arms(node):
                symbols: list[Symbol] = []
                for part in self._row(arm):
                    if isinstance(part, str) or self._holds(part) < 0:
                        symbols.append(part)
                    else:
                        inner = part.parts[0] if part.kind is Kind.REPEAT else part
                        helper, made = self._helper(inner)
                        if made:
                            waiting.append((helper, inner))
                        symbols.append(Repetition(helper, part.low, part.high) if inner is not part else helper)
                self.alternatives[name].append(tuple(symbols))

    def _helper(self, node: Node) -> tuple[str, bool]:
        """The rule of a part that needs one, and whether it is still to be made."""
        known = self._helpers.get(node)
        if known is not None:
            return known, False
        name = self._helpers[node] = f"part{len(self._helpers)}"
        return name, True

    def _arms(self, node: Node) -> list[Node]:
        """What a node is any of: those without references as one."""
        if node.kind is not Kind.UNION or self._holds(node) < 0:
            return [node]
        plain = [part for part in node.parts if self._holds(part) < 0]
        cut = [part for part in node.parts if self._holds(part) >= 0]
        return [self._arena.union(plain), *cut] if plain else cut

    def _row(self, node: Node) -> Iterator[Node | str]:
        """The parts of a row: those next to each other that hold no reference as one, references by their rules."""
        plain: list[Node] = []
        for part in _flat(node):
            if self._holds(part) < 0:
                plain.append(part)
                continue
            pieces = list(self._pieces(part))
            for piece in pieces:
                if isinstance(piece, bytes):
                    plain.append(self._arena.literal(piece))
                    continue
                if plain:
                    yield self._arena.concat(*plain)
                    plain = []
                yield piece
        if plain:
            yield self._arena.concat(*plain)

    def _pieces(self, part: Node) -> Iterator[Node | str | bytes]:
        if part.kind is not Kind.LITERAL:
            yield part
            return
        for index, piece in enumerate(_REFERENCE.split(part.data)):
            if index % 2:
                yield _rule_name(int(piece))
            elif piece:
                yield piece

    def _holds(self, node: Node) -> int:
        """The number of a reference within the node, or -1."""
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [part for part in top.parts if part not in self._held]
            if missing and top not in self._held:
                stack += missing
                continue
            stack.pop()
            if top not in self._held:
                self._held[top] = self._found(top)
        return self._held[node]

    def _found(self, node: Node) -> int:
        if node.kind is Kind.LITERAL:
            match = _REFERENCE.search(node.data)
            return -1 if match is None else int(match[1])
        number = max((self._held[part] for part in node.parts), default=-1)
        if number >= 0 and node.kind in (Kind.INTERSECTION, Kind.COMPLEMENT):
            where = json_pointer(self._places[number])
            raise ConstraintError(
                f"schema, #{where}: refers to itself where values have to be told apart (contains, not, oneOf)",
                remedy="say there what the values are, without reference to the schema around them",
                pointer=where,
            )
        return number


def _flat(node: Node) -> list[Node]:
    parts: list[Node] = []
    while node.kind is Kind.CONCAT:
        head, node = node.parts
        parts.append(head)
    return [*parts, node]


def _rule_name(number: int) -> str:
    return f"value{number}"
