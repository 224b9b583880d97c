"""The keywords of a schema that restrict values, by dialect, checked; the others are annotations, and are listed."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

from lmc.grammar.schema.errors import Pointer, refusal, shown
from lmc.grammar.schema.formats import BOUNDS, KNOWN, UNRESTRICTED
from lmc.grammar.schema.values import TYPES

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


class Internal(Enum):
    """Keywords that only rewriting makes; no schema can spell them."""

    NOT = auto()  # a Subschema that must not hold
    CHOICES = auto()  # lists of Subschemas; all of one list hold
    CLASSES = auto()  # a bit set of classes of values (`values.py`)
    EXCLUDED = auto()  # values that are not allowed
    NOT_PATTERN = auto()  # a regular expression that does not match
    SOME = auto()  # a property that there has to be (``shapes.Some``)


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _is_dependencies(value: Any) -> bool:
    return _is_map(value) and all(isinstance(each, dict | bool) or _is_names(each) for each in value.values())


_Check = tuple[Callable[[Any], bool], str]

_NUMBER: _Check = (_is_number, "a number")
_COUNT: _Check = (_is_count, "a whole number that is not negative")
_TEXT: _Check = (lambda value: isinstance(value, str), "a text")
_SCHEMA: _Check = (lambda value: isinstance(value, dict | bool), "a schema: an object, true or false")
_SCHEMAS: _Check = (lambda value: isinstance(value, list) and bool(value), "a list of one schema or more")
_MAP: _Check = (_is_map, "an object of schemas")

ONE_SCHEMA = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not", "propertyNames",
    "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
NAMED_SCHEMAS = ("dependentSchemas", "patternProperties", "properties")
_COUNTS = (
    "maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties",
)  # fmt: skip

ASSERTIONS: dict[str, _Check] = {
    **dict.fromkeys(ONE_SCHEMA, _SCHEMA),
    **dict.fromkeys(SCHEMAS, _SCHEMAS),
    **dict.fromkeys(NAMED_SCHEMAS, _MAP),
    **dict.fromkeys(_COUNTS, _COUNT),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    **dict.fromkeys(("pattern", "format", "$ref", "$dynamicRef", "$recursiveRef"), _TEXT),
    "type": (_is_type, f"one of {', '.join(TYPES)}, or a list of them"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "const": (lambda _: True, "any value"),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "items": (lambda value: isinstance(value, dict | bool | list), "a schema, or as in older drafts a list of schemas"),
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "required": (_is_names, "a list of texts"),
    "dependentRequired": (
        lambda value: _is_map(value) and all(map(_is_names, value.values())),
        "an object of lists of texts",
    ),
    "dependencies": (_is_dependencies, "an object of schemas and lists of texts"),
}
"""Keywords that restrict values, each with what its own value has to be."""

# Keywords that describe values and restrict none. `discriminator` is OpenAPI's; see `expanding.py` for what it adds.
ANNOTATIONS = frozenset(
    {
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary",
        "contentEncoding", "contentMediaType", "default", "definitions", "deprecated", "description", "discriminator",
        "example", "examples", "externalDocs", "readOnly", "title", "writeOnly", "xml",
    }
)  # fmt: skip

_FLAGS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}
# Annotations that the keywords beside them read.
COMPANIONS = frozenset({"contentEncoding", "contentMediaType", "discriminator"})
_MALFORMED_REMEDIES = {
    "exclusiveMinimum": "write the bound here, in place of minimum, or name the older dialect in $schema",
    "exclusiveMaximum": "write the bound here, in place of maximum, or name the older dialect in $schema",
    "required": "list the names in the schema of the object, not in that of a property",
}


class Ignored(NamedTuple):
    """A part of a schema that restricts nothing: a keyword, or the name of a format, and where it stands."""

    name: str
    cause: str
    pointer: Pointer


class Keywords(NamedTuple):
    """The keywords of one schema that restrict values, as 2020-12 spells them where it can, and what is ignored."""

    effective: dict[Any, Any]
    ignored: list[Ignored]


UNKNOWN_KEYWORD = "unknown keywords"
UNKNOWN_FORMAT = "unknown formats"


def read_schema(schema: Any, pointer: Pointer, dialect: Dialect) -> Keywords:
    """Read one schema, not those in it, by the rules of its dialect.

    Keywords that the dialect does not have are annotations, and so are formats that are not known. Raises
    ``ConstraintError`` for a value that is no schema, and for a keyword with a malformed value.
    """
    if not isinstance(schema, dict):
        raise refusal(pointer, f"a schema is an object, true or false, not {shown(schema)}", "write a schema here")
    effective: dict[Any, Any] = {}
    ignored: list[Ignored] = []
    is_reference = dialect.ignores_siblings and isinstance(schema.get("$ref"), str)
    for keyword, value in schema.items():
        if keyword in COMPANIONS:
            effective[keyword] = value
        elif keyword in ANNOTATIONS or keyword == dialect.identifier or str(keyword).startswith("x-"):
            continue
        elif keyword == "nullable":
            _read_nullable(schema, pointer, dialect, ignored)
        elif is_reference and keyword != "$ref" and keyword in dialect.keywords:
            ignored.append(Ignored(keyword, f"keywords beside $ref, which {dialect.name} ignores", (pointer, keyword)))
        elif keyword == "format" and isinstance(value, str) and value in UNRESTRICTED:
            continue
        elif keyword in dialect.keywords:
            cause = _reason_to_ignore(keyword, schema)
            if cause is not None:
                name = str(value) if cause == UNKNOWN_FORMAT else keyword
                ignored.append(Ignored(name, cause, (pointer, keyword)))
                continue
            effective[keyword] = _checked(keyword, schema, pointer, dialect)
        else:
            cause = f"keywords that {dialect.name} does not have" if keyword in ASSERTIONS else UNKNOWN_KEYWORD
            ignored.append(Ignored(str(keyword), cause, (pointer, str(keyword))))
    if is_reference:
        effective = {"$ref": effective["$ref"]}
    if dialect.has_nullable and schema.get("nullable") is True and "type" in effective:
        effective["type"] = [*_listed(effective["type"]), "null"]
    _join_flags(effective)
    if "prefixItems" in effective and isinstance(effective.get("items"), list):
        remedy = "use items for the schema of the others"
        raise refusal((pointer, "items"), "items is a list of schemas beside prefixItems", remedy)
    return Keywords(effective, ignored)


def _checked(keyword: str, schema: dict[Any, Any], pointer: Pointer, dialect: Dialect) -> Any:
    value = schema[keyword]
    is_flag = dialect.has_flags and isinstance(value, bool) and _FLAGS.get(keyword) in schema
    check, expected = ASSERTIONS[keyword]
    if keyword == "items" and isinstance(value, list) and "additionalItems" not in dialect.keywords:
        raise refusal((pointer, keyword), "items is a list, as in older drafts", "write prefixItems")
    if not is_flag and not check(value):
        remedy = _MALFORMED_REMEDIES.get(keyword, "see JSON Schema 2020-12")
        raise refusal((pointer, keyword), f"{keyword} has to be {expected}, not {shown(value)}", remedy)
    return value


def _reason_to_ignore(keyword: str, schema: dict[Any, Any]) -> str | None:
    """The reason for which a keyword of the dialect restricts nothing in this schema; None where it does."""
    value = schema[keyword]
    if keyword == "format" and isinstance(value, str) and value not in KNOWN and value not in BOUNDS:
        return UNKNOWN_FORMAT
    if keyword == "additionalItems" and not isinstance(schema.get("items"), list):
        return "additionalItems where items is no list"
    if keyword == "contentSchema" and (
        schema.get("contentMediaType") != "application/json" or "contentEncoding" in schema
    ):
        return "contentSchema of texts that are not plain application/json"
    return None


def _read_nullable(schema: dict[Any, Any], pointer: Pointer, dialect: Dialect, ignored: list[Ignored]) -> None:
    at = (pointer, "nullable")
    value = schema["nullable"]
    if not dialect.has_nullable:
        if value is not False:
            ignored.append(Ignored("nullable", "keywords of OpenAPI 3.0, without which null stays forbidden", at))
    elif not isinstance(value, bool):
        raise refusal(at, f"nullable has to be true or false, not {shown(value)}", "see OpenAPI 3.0")
    elif value and "type" not in schema:
        ignored.append(Ignored("nullable", "nullable without a type beside it", at))


def _listed(names: Any) -> list[Any]:
    return names if isinstance(names, list) else [names]


def _join_flags(effective: dict[Any, Any]) -> None:
    """Write bounds with the flags of draft-04 as later drafts do."""
    for keyword, bound in _FLAGS.items():
        flag = effective.get(keyword)
        if isinstance(flag, bool):
            del effective[keyword]
            if flag:
                effective[keyword] = effective.pop(bound)
