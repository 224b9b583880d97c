"""The dialects of JSON Schema: the keywords that restrict values in each, and where they mean something else."""

from __future__ import annotations

from typing import Any, NamedTuple

from lmc.grammar.schema.documents.errors import refusal, shown

_DRAFT_4 = frozenset(
    {
        "$ref", "additionalItems", "additionalProperties", "allOf", "anyOf", "dependencies", "enum", "exclusiveMaximum",
        "exclusiveMinimum", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
        "minLength", "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties",
        "properties", "required", "type", "uniqueItems",
    }
)  # fmt: skip
_DRAFT_6 = _DRAFT_4 | {"const", "contains", "propertyNames"}
_DRAFT_7 = _DRAFT_6 | {"if", "then", "else"}
_DRAFT_2019 = (_DRAFT_7 - {"dependencies"}) | {
    "$recursiveRef", "contentSchema", "dependentRequired", "dependentSchemas", "maxContains", "minContains",
    "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
_DRAFT_2020 = (_DRAFT_2019 - {"$recursiveRef", "additionalItems"}) | {"$dynamicRef", "prefixItems"}


class Dialect(NamedTuple):
    """The rules of one dialect.

    Attributes:
        name: the name in messages.
        keywords: the keywords that restrict values; any other is an annotation.
        identifier: the keyword that gives a schema its URI.
        ignores_siblings: keywords beside ``$ref`` restrict nothing.
        has_flags: ``exclusiveMinimum`` and ``exclusiveMaximum`` are true or false.
        has_nullable: ``nullable`` adds null to ``type``.
        contains_evaluates: items that meet ``contains`` are evaluated for ``unevaluatedItems``.
    """

    name: str
    keywords: frozenset[str]
    identifier: str = "$id"
    ignores_siblings: bool = False
    has_flags: bool = False
    has_nullable: bool = False
    contains_evaluates: bool = True


UNDECLARED = Dialect("2020-12", _DRAFT_2020 | _DRAFT_2019 | _DRAFT_7, has_flags=True)
"""A schema without ``$schema``: 2020-12, with the keywords that only older drafts have as they were there."""

_DIALECTS = {
    "json-schema.org/draft/2020-12/": Dialect("2020-12", _DRAFT_2020),
    "json-schema.org/draft/2019-09/": Dialect("2019-09", _DRAFT_2019, contains_evaluates=False),
    "json-schema.org/draft-07/": Dialect("draft-07", _DRAFT_7, ignores_siblings=True),
    "json-schema.org/draft-06/": Dialect("draft-06", _DRAFT_6, ignores_siblings=True),
    "json-schema.org/draft-04/": Dialect("draft-04", _DRAFT_4, "id", ignores_siblings=True, has_flags=True),
    "json-schema.org/schema": UNDECLARED,  # names no draft
    "spec.openapis.org/oas/3.1/": Dialect("OpenAPI 3.1", _DRAFT_2020),
    "spec.openapis.org/oas/3.0/": Dialect(
        "OpenAPI 3.0", _DRAFT_4, "id", ignores_siblings=True, has_flags=True, has_nullable=True
    ),
}


def dialect_of(schema: Any) -> Dialect:
    """The dialect that ``$schema`` at the root names. Raises ``ConstraintError`` for one that is not supported."""
    named = schema.get("$schema", "") if isinstance(schema, dict) else ""
    if named == "":
        return UNDECLARED
    for part, dialect in _DIALECTS.items():
        if isinstance(named, str) and part in named:
            return dialect
    raise refusal((None, "$schema"), f"unknown dialect {shown(named)}", "write the schema for 2020-12")
