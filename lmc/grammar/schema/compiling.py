"""From a JSON Schema to a node.

Where values nest without bound, each goal that comes up within itself is a definition of its own. In its place there
stands a reference to its definition; ``linked`` makes one node of all. Strings are resolved as everywhere, so what is
too large is refused here, and not while text is generated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Kind, Node, fold, inner_parts, references
from lmc.grammar.schema.builder import SchemaBuilder
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.errors import Pointer, RecursiveSchemaError, Subschema, UndescribedError, refusal
from lmc.grammar.schema.layout import Whitespace
from lmc.grammar.schema.shapes.shapes import Goal, ItemRules, PropertyRules, Shape
from lmc.grammar.schema.values import ARRAY, OBJECT
from lmc.ir.errors import ConstraintError


def to_node(
    schema: dict[str, Any] | bool,
    arena: Arena,
    *,
    whitespace: Whitespace = "compact",
    narrowed: dict[str, str] | None = None,
) -> Node:
    """The texts that are JSON of a value which meets the schema, in the spellings of README.md.

    Every text is valid; which valid texts are left out is listed there.

    Args:
        schema: JSON Schema 2020-12, as parsed JSON. Nothing of it is fetched.
        arena: makes the nodes.
        whitespace: "compact": none; "flexible": spaces and indented lines, as printers write them; see ``Punctuation``.
        narrowed: takes the keywords that are enforced by fewer values than they allow, by their JSON pointers.

    Raises:
        RecursiveSchemaError: values may nest without bound.
        ConstraintError: a keyword is unknown, wrong, or can't be enforced (``pointer`` says which); no value meets the
            schema; the arena's budget is used up.
    """
    return SchemaBuilder(Document(schema), arena, whitespace, narrowed).whole()


def any_node(
    schema: dict[str, Any] | bool,
    arena: Arena,
    *,
    whitespace: Whitespace = "compact",
    narrowed: dict[str, str] | None = None,
) -> Node:
    """The texts that ``to_node`` describes, for any schema: values that nest without bound are references.

    Raises the errors of ``to_node`` but ``RecursiveSchemaError``.
    """
    work = arena.work
    narrowed = {} if narrowed is None else narrowed
    try:
        return to_node(schema, arena, whitespace=whitespace, narrowed=narrowed)
    except RecursiveSchemaError:
        narrowed.clear()
        arena.work = work  # nodes are counted again; strings stay resolved
        return recursive_node(schema, arena, whitespace, narrowed)


def linked(root: Node, definitions: Mapping[int, Node], arena: Arena) -> tuple[Node, list[int]]:
    """Return ``root`` with references that are defined, and the numbers of the definitions that no string meets.

    A definition may be another one, or that or something else (``anyOf`` of references): then it takes over what the
    other one is. So none begins with a reference, and a derivative of a reference comes to an end.

    ``definitions`` are certain nodes of ``arena``, as is ``root``. The result is the empty node where it has no string.
    """
    finite = _finite(definitions)
    dropped = frozenset(arena.reference(number) for number in definitions if number not in finite)
    alternatives = {number: _alternatives(definitions[number]) for number in finite}
    trimmed: dict[Node, Node] = {}
    for number in finite:
        parts = [part for each in _same_value(number, alternatives) for part in alternatives[each]]
        own = [part for part in parts if part.kind is not Kind.REFERENCE]
        arena.reference(number).resolved = _without(dropped, arena.union(own), arena, trimmed)
    return _without(dropped, root, arena, trimmed), [number for number in definitions if number not in finite]


def _alternatives(node: Node) -> tuple[Node, ...]:
    return node.parts if node.kind is Kind.UNION else (node,)


def _same_value(number: int, alternatives: Mapping[int, tuple[Node, ...]]) -> list[int]:
    """The definitions that a value of one may meet instead, itself first."""
    found = {number: None}
    waiting = [number]
    while waiting:
        for part in alternatives[waiting.pop()]:
            if part.kind is Kind.REFERENCE and part.state in alternatives and part.state not in found:
                found[part.state] = None
                waiting.append(part.state)
    return list(found)


def _finite(definitions: Mapping[int, Node]) -> dict[int, None]:
    """The definitions that have a string: the least fixed point."""
    found: dict[int, None] = {}
    while True:
        known: dict[Node, bool] = {}
        more = [number for number, node in definitions.items() if number not in found and _ends(node, found, known)]
        if not more:
            return found
        found.update(dict.fromkeys(more))


def ends(node: Node) -> bool:
    """Return whether a node has a string without any reference."""
    return _ends(node, {}, {})


def _ends(node: Node, finite: Mapping[int, None], known: dict[Node, bool]) -> bool:
    """Return whether a node has a string, where of the references only those to ``finite`` have one."""

    def has_string(top: Node, parts: list[bool]) -> bool:
        match top.kind:
            case Kind.EMPTY:
                return False
            case Kind.REFERENCE:
                return top.state in finite
            case Kind.CONCAT:
                return all(parts)
            case Kind.UNION:
                return any(parts)
            case Kind.REPEAT:
                return not top.low or parts[0]
            case _:
                return True

    return fold(node, known, has_string, inner_parts)


def _without(dropped: frozenset[Node], node: Node, arena: Arena, made: dict[Node, Node]) -> Node:
    """The same without these references."""

    def kept(top: Node, parts: list[Node]) -> Node:
        if top in dropped:
            return arena.empty
        is_same = all(part is own for part, own in zip(parts, inner_parts(top), strict=True))
        return top if is_same else arena.rebuilt(top, parts)

    return fold(node, made, kept, inner_parts) if dropped else node


def recursive_node(
    schema: dict[str, Any] | bool, arena: Arena, whitespace: Whitespace, narrowed: dict[str, str] | None = None
) -> Node:
    """The texts that ``to_node`` describes, for any schema. Arguments and errors are those of ``to_node``.

    Never raises ``RecursiveSchemaError``.
    """
    document = Document(schema)
    builder = _RecursiveBuilder(document, arena, whitespace, narrowed)
    root, endless = linked(builder.whole(), builder.definitions, arena)
    if root is arena.empty:
        builder = _RecursiveBuilder(document, arena, whitespace, narrowed, before=builder)
        root, endless = linked(builder.whole(), builder.definitions, arena)
    if root is not arena.empty:
        return root
    where = builder.places[endless[-1]] if endless else None
    which = "can be produced for" if builder.has_other_values else "meets"
    remedy = "let values end: with a property that may be left out, an array that may be empty, or an alternative"
    raise refusal(where, f"every value that {which} this schema holds another one, without end", remedy)


def _any_value() -> dict[str, Any]:
    """A schema that accepts any JSON value."""
    value: dict[str, Any] = {}
    simple = [{"type": name} for name in ("null", "boolean", "number", "string")]
    nested = [{"type": "array", "items": value}, {"type": "object", "additionalProperties": value}]
    value["anyOf"] = [*simple, *nested]
    return value


class _RecursiveBuilder(SchemaBuilder):
    """Builds goals that come up within themselves, and those that leave open what a value is.

    Whether a definition has a finite value is known when all are built. Where nothing was left of it ``before``,
    none is taken to have one when properties are counted: an object that needs more may have others, which nothing
    describes.
    """

    def __init__(
        self,
        document: Document,
        arena: Arena,
        whitespace: Whitespace,
        narrowed: dict[str, str] | None = None,
        before: _RecursiveBuilder | None = None,
    ) -> None:
        super().__init__(document, arena, whitespace, narrowed)
        self._before = before
        self.definitions: dict[int, Node] = {}
        """The nodes of the goals that are referred to, by their number."""
        self.places: dict[int, Pointer] = {}
        """The places of these goals in the schema."""
        self._numbers: dict[tuple[int, ...], int] = {}
        self._open: set[tuple[int, ...]] = set()
        self._any = _any_value()
        self._within_any = frozenset(map(id, (self._any, *self._any["anyOf"])))

    def surely_has_value(self, node: Node) -> bool:
        return self._before is None or ends(node)

    def node(self, goal: Goal, pointer: Pointer) -> Node:
        if not goal:
            goal = (Subschema(self._any, pointer),)
        if len(goal) == 1:
            goal = (self.expander.target(goal[0]),)
        key = tuple(id(sub.schema) for sub in goal)
        if key in self._open or key in self._numbers:
            if key not in self._numbers:
                self._numbers[key] = self.arena.new_reference()
            number = self._numbers[key]
            own = (sub.pointer for sub in goal if id(sub.schema) not in self._within_any)
            self.places.setdefault(number, next(own, pointer))
            return self.arena.reference(number)
        self._open.add(key)
        node = super().node(goal, pointer)
        self._open.remove(key)
        number = self._numbers.get(key, -1)
        if number < 0:
            return node
        self.definitions[number] = node
        return self.arena.reference(number)

    def intersection(self, parts: list[Node], pointer: Pointer) -> Node:
        for part in parts:
            if any(references(part)):
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
        """A shape whose unconstrained parts are spelt out as any JSON value."""
        made, anything = shape.copy(), Subschema(self._any, pointer)
        if shape.meant & ARRAY and not shape.item_goal(max((len(each.prefix) for each in shape.items), default=0)):
            made.items = (*shape.items, ItemRules([], anything))
        if shape.meant & OBJECT and not shape.has_rest and _opens(shape):
            described = Subschema(True, pointer)
            named = dict.fromkeys(shape.declared(), described)
            patterns = [(pattern, described) for members in shape.members for pattern, _ in members.patterns]
            made.members = (*shape.members, PropertyRules(named, patterns, anything))
        return made


def _opens(shape: Shape) -> bool:
    """Return whether objects may need properties that nothing describes."""
    return not (shape.members or shape.required) or shape.min_members is not None or bool(shape.some)
