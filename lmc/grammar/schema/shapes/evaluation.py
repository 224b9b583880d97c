"""`unevaluatedItems` and `unevaluatedProperties`: what they ask of the parts that no other schema describes.

Which schemas hold for a value, and so which parts they evaluate, is known once a shape has no choices left. There the
two keywords mean the same as `items` and `additionalProperties` beside everything that is described.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmc.grammar.schema.documents.errors import Subschema
from lmc.grammar.schema.shapes.shapes import (
    EvaluatedParts,
    ItemRules,
    PropertyRules,
    SchemaContext,
    Scope,
    Shape,
    Unevaluated,
)

KEYWORDS = ("unevaluatedItems", "unevaluatedProperties")


def enter(shape: Shape, sub: Subschema, context: SchemaContext) -> SchemaContext:
    """Note that a schema evaluates parts of the value. Return the context of the schemas in it for the same value."""
    schema, pointer = sub
    for keyword in KEYWORDS:
        value = schema.get(keyword, True)
        if value is not True and value != {}:
            shape.unevaluated += (Unevaluated(keyword, id(schema), Subschema(value, (pointer, keyword))),)
            if context.scope is None or context.scope[0] != id(schema):
                context = context._replace(scope=(id(schema), context.scope))
    if context.scope is not None:
        shape.evaluated += (EvaluatedParts(schema, context.scope),)
    return context


def settle(shape: Shape, any_of: Callable[[list[Subschema]], Subschema], *, contains_evaluates: bool) -> None:
    """Turn the unevaluated keywords of a shape without choices into what they ask of items and properties.

    Args:
        shape: is changed.
        any_of: a schema that holds where one of these does; the same for the same schemas.
        contains_evaluates: items that meet `contains` are evaluated, as they are from 2020-12 on.
    """
    for keyword, holder, sub in shape.unevaluated:
        found = [schema for schema, scope in shape.evaluated if _is_within(scope, holder)]
        if any(keyword in schema and id(schema) != holder for schema in found):
            continue
        if keyword == "unevaluatedProperties":
            _settle_members(shape, sub, found)
            continue
        hits = [schema["contains"] for schema in found if "contains" in schema] if contains_evaluates else []
        _settle_items(shape, any_of([Subschema(hit, sub.pointer) for hit in hits] + [sub]) if hits else sub, found)
    shape.unevaluated = ()


def _settle_members(shape: Shape, sub: Subschema, schemas: list[dict[Any, Any]]) -> None:
    if any("additionalProperties" in schema for schema in schemas):
        return
    described = Subschema(True, sub.pointer)
    named = {name: described for schema in schemas for name in schema.get("properties", ())}
    patterns = {pattern: described for schema in schemas for pattern in schema.get("patternProperties", ())}
    shape.members += (PropertyRules(named, list(patterns.items()), sub),)


def _settle_items(shape: Shape, sub: Subschema, schemas: list[dict[Any, Any]]) -> None:
    count = 0
    for schema in schemas:
        items = schema.get("items", [])
        if not isinstance(items, list) or "additionalItems" in schema:
            return
        count = max(count, len(schema.get("prefixItems", items)))
    shape.items += (ItemRules([Subschema(True, sub.pointer)] * count, sub),)


def _is_within(scope: Scope, holder: int) -> bool:
    while scope is not None:
        if scope[0] == holder:
            return True
        scope = scope[1]
    return False
