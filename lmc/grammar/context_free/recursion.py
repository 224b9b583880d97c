"""Schemas whose values nest without bound, as rules: each goal that comes up within itself is a rule of its own.

The nodes are those of ``lmc/grammar/schema``. Where a goal would be built within itself there stands a reference: bytes
that no JSON has. ``cutting.py`` makes rules of all that.
"""

from __future__ import annotations

from typing import Any

from lmc.grammar.building import Arena
from lmc.grammar.context_free.cutting import Cutting, reference, references, rule_name
from lmc.grammar.context_free.rules import Rules
from lmc.grammar.derivatives import Derivatives
from lmc.grammar.nodes import Node
from lmc.grammar.schema.builder import Builder
from lmc.grammar.schema.documents import Document
from lmc.grammar.schema.errors import Pointer, RecursiveSchemaError, Subschema, UndescribedError, refusal
from lmc.grammar.schema.shapes import Goal, Items, Members, Shape
from lmc.grammar.schema.values import ARRAY, OBJECT
from lmc.grammar.sources import Whitespace
from lmc.ir.errors import ConstraintError

_START = "start"


def rules_of_schema(
    schema: dict[str, Any] | bool, arena: Arena, whitespace: Whitespace, *, narrowed: dict[str, str] | None = None
) -> Rules:
    """The rules of any schema, recursive or not: the JSON that ``lmc/grammar/schema`` describes.

    ``narrowed`` is as for ``to_node`` there. Raises ``ConstraintError`` for what is wrong or can't be enforced, with
    the ``pointer`` to the keyword.
    """
    builder = _RecursiveBuilder(Document(schema), arena, whitespace, narrowed)
    root = builder.whole()
    cutting = Cutting(arena, builder.places)
    cutting.add(_START, root)
    for number, node in builder.rules.items():
        cutting.add(rule_name(number), node)
    derivatives = Derivatives(arena)
    rules = Rules(cutting.alternatives, _START, derivatives).trimmed()
    if rules.is_empty:
        endless = [
            place
            for number, place in builder.places.items()
            if Rules(cutting.alternatives, rule_name(number), derivatives).trimmed().is_empty
        ]
        remedy = "let values end: with a property that may be left out, an array that may be empty, or an alternative"
        where = endless[-1] if endless else None
        which = "can be produced for" if builder.has_other_types else "meets"
        raise refusal(where, f"every value that {which} this schema holds another one, without end", remedy)
    return rules


def _any_value() -> dict[str, Any]:
    """A schema that says of any JSON value that it is one."""
    value: dict[str, Any] = {}
    simple = [{"type": name} for name in ("null", "boolean", "number", "string")]
    nested = [{"type": "array", "items": value}, {"type": "object", "additionalProperties": value}]
    value["anyOf"] = [*simple, *nested]
    return value


class _RecursiveBuilder(Builder):
    """Builds goals that come up within themselves, and those that leave open what a value is."""

    def __init__(
        self, document: Document, arena: Arena, whitespace: Whitespace, narrowed: dict[str, str] | None = None
    ) -> None:
        super().__init__(document, arena, whitespace, narrowed)
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
            return self.arena.literal(reference(number))
        self._open.add(key)
        node = super().node(goal, pointer)
        self._open.remove(key)
        number = self._numbers.get(key, -1)
        if number < 0:
            return node
        self.rules[number] = node
        return self.arena.literal(reference(number))

    def intersection(self, parts: list[Node], pointer: Pointer) -> Node:
        for part in parts:
            if next(references(part), None) is not None:
                cause = "values that nest without bound would have to be counted in two ways at once"
                remedy = "say what these values are, without reference to the schema around them"
                raise refusal(pointer, cause, remedy)
        return super().intersection(parts, pointer)

    def _shape(self, shape: Shape, pointer: Pointer) -> Node:
        try:
            return super()._shape(shape, pointer)
        except RecursiveSchemaError:
            if shape.is_open and shape.allowed is None:
                return self.node((), pointer)
        except UndescribedError:
            pass
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
        if shape.meant & OBJECT and not shape.has_rest and _opens(shape):
            described = Subschema(True, pointer)
            named = dict.fromkeys(shape.declared(), described)
            patterns = [(pattern, described) for members in shape.members for pattern, _ in members.patterns]
            made.members = (*shape.members, Members(named, patterns, anything))
        return made


def _opens(shape: Shape) -> bool:
    """Whether objects may need properties that nothing describes."""
    return not (shape.members or shape.required) or shape.min_members is not None or bool(shape.some)
