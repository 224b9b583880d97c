"""From a JSON Schema to a node."""

from __future__ import annotations

from typing import Any

from lmc.grammar.automata.building import Arena
from lmc.grammar.automata.nodes import Node
from lmc.grammar.schema.builder import SchemaBuilder
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.errors import RecursiveSchemaError
from lmc.grammar.schema.layout import Whitespace
from lmc.grammar.schema.recursion import recursive_node


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


def node_of(schema: dict[str, Any] | bool, *, whitespace: Whitespace = "compact") -> tuple[Node, Arena, dict[str, str]]:
    """The node of any schema, the arena that made it, and what ``narrowed`` of ``to_node`` took.

    Values that nest without bound are references in it. Raises the errors of ``to_node`` but
    ``RecursiveSchemaError``.
    """
    arena, narrowed = Arena(), dict[str, str]()
    try:
        node = to_node(schema, arena, whitespace=whitespace, narrowed=narrowed)
    except RecursiveSchemaError:
        narrowed.clear()
        arena.work = 0  # nodes are counted again; strings stay resolved
        node = recursive_node(schema, arena, whitespace, narrowed)
    return node, arena, narrowed


def is_recursive(schema: dict[str, Any] | bool) -> bool:
    """Return whether ``to_node`` would raise ``RecursiveSchemaError``; at the same cost. Raises its other errors."""
    try:
        to_node(schema, Arena())
    except RecursiveSchemaError:
        return True
    return False
