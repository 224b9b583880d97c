"""From what a value has to meet to a node, each distinct goal once."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.derivatives import Derivatives
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.alphabet import embedded
from lmc.grammar.schema.arrays import array_node
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.errors import (
    Culprit,
    Pointer,
    RecursiveSchemaError,
    Subschema,
    UndescribedError,
    recursive,
    refusal,
)
from lmc.grammar.schema.layout import Punctuation, Whitespace
from lmc.grammar.schema.numbers import Numbers, is_within
from lmc.grammar.schema.objects import object_node
from lmc.grammar.schema.shapes.expanding import MAX_DEPTH, Expander
from lmc.grammar.schema.shapes.shapes import Goal, LengthBound, Shape
from lmc.grammar.schema.strings import Strings
from lmc.grammar.schema.values import (
    ANY,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    SCALAR,
    STRING,
    TYPES,
    WHOLE,
    class_of,
    exact,
    identity,
    scalar_text,
    string_text,
)
from lmc.ir.errors import ConstraintError


class SchemaBuilder:
    """Makes the nodes of one schema in one arena."""

    def __init__(
        self, document: Document, arena: Arena, whitespace: Whitespace, narrowed: dict[str, str] | None = None
    ) -> None:
        self.arena = arena
        self.layout = Punctuation(arena, whitespace)
        self.strings = Strings(arena, self._embedded)
        self.numbers = Numbers(arena)
        self.expander = Expander(document)
        self.conflict: Pointer = None
        """The place of a part of the schema without values, the cause of their lack around it. None: unknown."""
        self.leaves_out = False
        """True if something that is empty may have values that are not produced (README.md lists them)."""
        self.narrowed = {} if narrowed is None else narrowed
        """Keywords that are enforced by fewer values than they allow, by JSON pointer, each with what is produced."""
        self.has_other_values = False
        """True if values of some part may be of types that are not produced, as nothing names or describes them."""
        self._conflicts: dict[tuple[int, ...], tuple[Pointer, bool]] = {}
        self._derivatives = Derivatives(arena)
        self._culprit: Culprit = Culprit(arena)
        self._inner: SchemaBuilder | None = None
        self._contents: dict[Node, Node] = {}
        self._plain: dict[str, Node] = {}
        self._made: dict[tuple[int, ...], Node | None] = {}
        self._goals: list[Goal] = []  # held, as the identities of their schemas stand for them
        self._depth = 0

    def whole(self) -> Node:
        """The texts that are JSON of values which meet the schema. Raises ``ConstraintError`` where there are none."""
        schema = self.expander.document.schema
        try:
            node = self.node((Subschema(schema, None),), None)
        except RecursionError:
            raise refusal(None, "something in the schema is nested too deeply", "nest less deeply") from None
        if node is self.arena.empty:
            if self.leaves_out:
                cause = "none of the values that can be produced meets this schema"
                remedy = (
                    "name the type, or ask for less here: what is never produced (types, kinds of a format, long "
                    "numbers) is listed in lmc/grammar/schema/README.md"
                )
            else:
                cause = "no value meets this schema"
                remedy = (
                    "look for keywords that contradict each other: bounds that cross, a required property that can't "
                    "be, a length that no text of the pattern has"
                )
            raise refusal(self.conflict, cause, remedy)
        return self.layout.whole(node)

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        """The values that meet a goal, at ``pointer`` where it says nothing itself.

        Raises ``RecursiveSchemaError`` where the goal comes up within itself, and ``ConstraintError``.
        """
        if len(goal) == 1:
            goal = (self.expander.target(goal[0]),)
            plain = self._plain_type(goal[0])
            if plain is not None:
                return self._plain_node(plain)
        key = tuple(id(sub.schema) for sub in goal)
        if key in self._made:
            node = self._made[key]
            if node is None:
                raise recursive(goal[0].pointer, "the schema refers to itself")
            if node is self.arena.empty:
                conflict, leaves_out = self._conflicts[key]
                self.conflict = conflict if self.conflict is None else self.conflict
                self.leaves_out |= leaves_out
            return node
        where = goal[0].pointer if goal else pointer
        if self._depth == MAX_DEPTH:
            raise refusal(where, f"values nested deeper than {MAX_DEPTH}", "nest less deeply")
        self._made[key] = None
        self._goals.append(goal)
        self._depth += 1
        before, self.conflict = self.conflict, None
        left_out, self.leaves_out = self.leaves_out, False
        with self._culprit.watch(where):
            node = self._new(goal, where)
        self._depth -= 1
        if node is self.arena.empty:
            if self.conflict is None and not _is_false(goal):
                self.conflict = where
            self._conflicts[key] = (self.conflict, self.leaves_out)
            before = self.conflict if before is None else before
            left_out |= self.leaves_out
        self.conflict, self.leaves_out = before, left_out
        if goal:
            self._made[key] = node
        return node

    def _new(self, goal: Goal, where: Pointer) -> Node:
        """The node of a goal; the empty node where it has no text."""
        parts: list[Node] = []
        branches = self.expander.branches(goal)
        for branch in branches or ():
            parts.append(self.node(branch, where))
        undescribed: UndescribedError | None = None
        for shape in self.expander.expand(goal) if branches is None else ():
            try:
                parts.append(self._shape(shape, where))
            except UndescribedError as error:
                undescribed = error
        self.leaves_out |= self.expander.leaves_out
        self.expander.leaves_out = False
        node = self.arena.union(map(self._derivatives.resolved, parts))
        if undescribed is not None and node is self.arena.empty:
            raise recursive(where, undescribed.reason)
        return node

    def is_live(self, node: Node) -> bool:
        """Return whether a node has a text."""
        return self._derivatives.is_live(node)

    def surely_has_value(self, node: Node) -> bool:
        """Return whether a node that is not empty has a text: all have here."""
        del node
        return True

    def _plain_type(self, sub: Subschema) -> str | None:
        """The type of a schema that says no more than it: most are like this, and need no shape."""
        if not isinstance(sub.schema, dict) or not isinstance(sub.schema.get("type"), str):
            return None
        keywords = self.expander.document.keywords(sub)
        name = keywords.get("type")
        return name if len(keywords) == 1 and isinstance(name, str) and TYPES[name] & SCALAR else None

    def _plain_node(self, name: str) -> Node:
        node = self._plain.get(name)
        if node is None:
            node = self._plain[name] = self._shape(Shape(classes=TYPES[name], is_typed=True), None)
        return node

    def _shape(self, shape: Shape, pointer: Pointer) -> Node:
        if shape.allowed is not None:
            if shape.says_more:
                return self.arena.union([self.literal(value) for value in self._allowed(shape).values()])
            return self.arena.union([self.literal(value) for value in shape.allowed.values()])
        if shape.is_open:
            raise recursive(pointer, "any JSON value is allowed here")
        meant = shape.meant
        if shape.classes & ~meant:
            self.has_other_values = self.leaves_out = True
        parts: list[Node] = []
        if meant & (NULL | BOOLEAN):
            parts += [self.literal(value) for value in _singles(shape).values()]
        if meant & NUMBER:
            steps = [step for step, _ in shape.multiples]
            self.leaves_out |= any(step.denominator > 1 for step in steps) or not (meant & WHOLE or steps)
            parts.append(self.numbers.node(shape))
        if meant & STRING:
            self.leaves_out |= bool(shape.formats)
            parts.append(self.strings.node(shape))
        if meant & ARRAY:
            parts.append(array_node(shape, self, pointer))
        if meant & OBJECT:
            parts.append(object_node(shape, self, pointer))
        return parts[0] if len(parts) == 1 else self.arena.union(parts)

    def literal(self, value: Any) -> Node:
        """One value that was checked, its parts in their order."""
        arena = self.arena
        if isinstance(value, list):
            pairs = [self.literal(each) for each in value]
            return self.layout.brackets(b"[]", self._joined(pairs), may_be_empty=not pairs)
        if isinstance(value, dict):
            pairs = [
                arena.concat(self.layout.key(string_text(name, None)), self.literal(each))
                for name, each in value.items()
            ]
            return self.layout.brackets(b"{}", self._joined(pairs), may_be_empty=not pairs)
        return arena.literal(scalar_text(value))

    def intersection(self, parts: list[Node], pointer: Pointer) -> Node:
        """The texts that all nodes have in common. Raises ``ConstraintError`` where nodes stand for other texts."""
        del pointer
        return self.arena.intersection(parts)

    def _joined(self, parts: list[Node]) -> Node:
        if not parts:
            return self.arena.empty
        return self.arena.concat(parts[0], *(node for part in parts[1:] for node in (self.layout.comma, part)))

    def _embedded(self, goal: Goal) -> Node:
        """The contents of strings that are JSON, without white space, of values which meet a goal."""
        if self._inner is None:
            self._inner = _InnerBuilder(self.expander.document, self.arena, "compact", self.narrowed)
        try:
            node = self._inner.node(goal, None)
        except RecursiveSchemaError as error:
            remedy = "say what the values in the text are, without reference to the schema around them"
            raise ConstraintError(error.cause, remedy=remedy, pointer=error.pointer) from None
        if node not in self._contents:
            self._contents[node] = embedded(node, self.arena)
        return self._contents[node]

    def listed(self, goal: Goal) -> dict[Hashable, Any] | None:
        """The values that meet a goal by what tells equal ones, where schemas list them; else None.

        Whole numbers between bounds are a list where they are few.
        """
        found: dict[Hashable, Any] = {}
        for shape in self.expander.expand(goal):
            if shape.allowed is not None:
                found.update(self._allowed(shape))
                continue
            numbers = self.numbers.listed(shape) if shape.meant & WHOLE else []
            if shape.is_open or shape.meant & ~(NULL | BOOLEAN | WHOLE) or numbers is None:
                return None
            found.update(_singles(shape))
            found.update((number, number) for number in numbers)
        return found

    def classes(self, goal: Goal) -> int:
        """The classes of the values that are produced for a goal; all where nothing is asked of them."""
        found = 0 if goal else ANY
        for shape in self.expander.expand(goal):
            found |= shape.meant if shape.allowed is None else 0
            for value in (shape.allowed or {}).values():
                found |= class_of(value)
        return found

    def key_list(self, goal: Goal) -> list[str] | None:
        """The strings that meet a goal, where schemas list them; else None."""
        found: dict[str, None] = {}
        for shape in self.expander.expand(goal):
            if shape.allowed is not None:
                found.update(dict.fromkeys(each for each in self._allowed(shape).values() if isinstance(each, str)))
            elif shape.classes & STRING:
                return None
        return list(found)

    def key_contents(self, goal: Goal) -> Node:
        """The contents of the strings that meet a goal."""
        arena = self.arena
        found = [arena.empty]
        for shape in self.expander.expand(goal):
            if shape.allowed is not None:
                strings = [each for each in self._allowed(shape).values() if isinstance(each, str)]
                found += [arena.literal(string_text(each, shape.pointer)[1:-1]) for each in strings]
            elif shape.classes & STRING:
                self.leaves_out |= bool(shape.formats)
                found.append(self.strings.contents(shape))
        return arena.union(found)

    def _allowed(self, shape: Shape) -> dict[Hashable, Any]:
        """Return the values listed by a shape that meet the rest of it."""
        assert shape.allowed is not None
        return {key: value for key, value in shape.allowed.items() if _meets(value, shape, self)}


class _InnerBuilder(SchemaBuilder):
    """Builds the JSON in a string, where a schema that leaves open what a value is stands for values of some depth."""

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        if all(self._is_open(sub) for sub in goal):
            goal = (Subschema(_SHALLOW, pointer),)
        return super().node(goal, pointer)

    def _is_open(self, sub: Subschema) -> bool:
        """Return whether a schema restricts nothing."""
        return sub.schema is True or (isinstance(sub.schema, dict) and not self.expander.document.keywords(sub))


def _any_value(depth: int) -> dict[str, Any]:
    """A schema of any JSON value that nests at most ``depth`` deep."""
    simple = {"type": ["null", "boolean", "number", "string"]}
    if not depth:
        return simple
    inner = _any_value(depth - 1)
    return {"anyOf": [simple, {"type": "array", "items": inner}, {"type": "object", "additionalProperties": inner}]}


_SHALLOW = _any_value(2)


def _singles(shape: Shape) -> dict[Hashable, Any]:
    """The nulls and booleans of a shape."""
    values: list[Any] = [None] if shape.meant & NULL else []
    values += [True, False] if shape.meant & BOOLEAN else []
    excluded = {identity(value) for value in shape.excluded}
    return {identity(value): value for value in values if identity(value) not in excluded}


def _is_false(goal: Goal) -> bool:
    return any(isinstance(sub, Subschema) and sub.schema is False for sub in goal)


def _meets(value: Any, shape: Shape, by: SchemaBuilder) -> bool:
    """Return True if a JSON value meets a shape."""
    found = class_of(value)
    if not found & shape.classes or (shape.allowed is not None and identity(value) not in shape.allowed):
        return False
    if any(identity(value) == identity(each) for each in shape.excluded):
        return False
    if found & NUMBER:
        number = exact(value)
        return is_within(number, shape.low, shape.high) and all(
            (number / step).denominator == 1 for step, _ in shape.multiples
        )
    if found == STRING:
        return by.strings.meets(shape, value)
    if isinstance(value, list):
        return _array_meets(value, shape, by)
    return not isinstance(value, dict) or _object_meets(value, shape, by)


def _meets_goal(value: Any, goal: Goal, by: SchemaBuilder) -> bool:
    return not goal or any(_meets(value, shape, by) for shape in by.expander.expand(goal))


def _is_counted(count: int, low: LengthBound | None, high: LengthBound | None) -> bool:
    return not (low is not None and count < low.value) and not (high is not None and count > high.value)


def _array_meets(value: list[Any], shape: Shape, by: SchemaBuilder) -> bool:
    if not _is_counted(len(value), shape.min_items, shape.max_items):
        return False
    if shape.unique is not None and len({identity(each) for each in value}) < len(value):
        return False
    for contains in shape.contains:
        hits = sum(_meets_goal(each, (contains.schema,), by) for each in value)
        if hits < contains.low or (contains.high is not None and hits > contains.high):
            return False
    goals = [shape.item_goal(index) for index in range(len(value))]
    return all(_meets_goal(each, goal, by) for each, goal in zip(value, goals, strict=True))


def _object_meets(value: dict[str, Any], shape: Shape, by: SchemaBuilder) -> bool:
    if not _is_counted(len(value), shape.min_members, shape.max_members):
        return False
    if any(name not in value for name, _ in shape.required):
        return False
    if shape.names and not all(_meets_goal(name, shape.names, by) for name in value):
        return False
    for names, wanted in shape.some:
        found = [each for name, each in value.items() if _meets_goal(name, (names,), by)]
        if not any(_meets_goal(each, (wanted,), by) for each in found):
            return False
    goals = [shape.member_goal(name, by.strings) for name in value]
    return all(_meets_goal(each, goal, by) for each, goal in zip(value.values(), goals, strict=True))
