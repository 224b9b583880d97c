"""Which keywords there are and what their values have to be. Nothing that is unknown or malformed gets past this."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NamedTuple

from lmc.grammar.schema.errors import Pointer, refusal


class Internal(Enum):
    """Keywords that only rewriting makes; no schema can spell them."""

    NOT = auto()  # a Subschema that must not hold
    CHOICES = auto()  # lists of Subschemas; all of one list hold
    CLASSES = auto()  # a bit set of classes of values (`values.py`)
    EXCLUDED = auto()  # values that are not allowed
    NOT_PATTERN = auto()  # a regular expression that does not match


_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(name, str) for name in value)


def _is_items(value: Any) -> bool:
    return isinstance(value, dict | bool | list)


def _is_dependencies(value: Any) -> bool:
    return _is_map(value) and all(isinstance(each, dict | bool) or _is_names(each) for each in value.values())


_Check = tuple[Callable[[Any], bool], str]

_NUMBER: _Check = (_is_number, "a number")
_COUNT: _Check = (_is_count, "a whole number that is not negative")
_FLAG: _Check = (lambda value: isinstance(value, bool), "true or false")
_TEXT: _Check = (lambda value: isinstance(value, str), "a text")
_SCHEMA: _Check = (lambda value: isinstance(value, dict | bool), "a schema: an object, true or false")
_SCHEMAS: _Check = (lambda value: isinstance(value, list) and bool(value), "a list of one schema or more")
_MAP: _Check = (_is_map, "an object of schemas")
_NAMES: _Check = (_is_names, "a list of texts")

ASSERTIONS: dict[str, _Check] = {
    "type": (_is_type, f"one of {', '.join(_TYPES)}, or a list of them"),
    "enum": (lambda value: isinstance(value, list), "a list"),
    "const": (lambda _: True, "any value"),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "contentSchema": _SCHEMA,
    "prefixItems": _SCHEMAS,
    "items": (_is_items, "a schema, or as in older drafts a list of schemas"),
    "additionalItems": _SCHEMA,
    "contains": _SCHEMA,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": _FLAG,
    "unevaluatedItems": _SCHEMA,
    "properties": _MAP,
    "patternProperties": _MAP,
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": _NAMES,
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependentRequired": (
        lambda value: _is_map(value) and all(map(_is_names, value.values())),
        "an object of lists of texts",
    ),
    "dependentSchemas": _MAP,
    "dependencies": (_is_dependencies, "an object of schemas and lists of texts"),
    "$ref": _TEXT,
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
}
"""Keywords that restrict values, each with what its own value has to be."""

_FLAGS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

# They say nothing about which values are valid. `discriminator` is OpenAPI's; see `combining.py` for what it adds.
ANNOTATIONS = frozenset(
    {
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "contentEncoding",
        "contentMediaType", "default", "definitions", "deprecated", "description", "discriminator", "example",
        "examples", "externalDocs", "readOnly", "title", "writeOnly", "xml",
    }
)  # fmt: skip

_REMEDIES = {
    "id": "use $id",
    "$dynamicRef": "use $ref",
    "$recursiveRef": "use $ref",
}
_MALFORMED_REMEDIES = {
    "exclusiveMinimum": "write the bound here, in place of minimum, or name the older dialect in $schema",
    "exclusiveMaximum": "write the bound here, in place of maximum, or name the older dialect in $schema",
    "required": "list the names in the schema of the object, not in that of a property",
}


class Dialect(NamedTuple):
    """Where a dialect differs from 2020-12 in what it says; a keyword that only older ones have is read as there.

    ``ignores_siblings``: keywords beside `$ref` say nothing. ``has_flags``: `exclusiveMinimum` and `exclusiveMaximum`
    are true or false. ``has_nullable``: `nullable` adds null to `type`.
    """

    ignores_siblings: bool = False
    has_flags: bool = False
    has_nullable: bool = False


_DIALECTS = {
    "json-schema.org/draft/2020-12/": Dialect(),
    "json-schema.org/draft/2019-09/": Dialect(),
    "json-schema.org/draft-07/": Dialect(ignores_siblings=True),
    "json-schema.org/draft-06/": Dialect(ignores_siblings=True),
    "json-schema.org/draft-04/": Dialect(ignores_siblings=True, has_flags=True),
    "spec.openapis.org/oas/3.1/": Dialect(),
    "spec.openapis.org/oas/3.0/": Dialect(ignores_siblings=True, has_flags=True, has_nullable=True),
}


def dialect_of(schema: Any) -> Dialect:
    """What ``$schema`` at the root names. Raises ``ConstraintError`` for what is none of those that are read."""
    named = schema.get("$schema", "") if isinstance(schema, dict) else ""
    if named == "":
        return Dialect()
    for part, dialect in _DIALECTS.items():
        if isinstance(named, str) and part in named:
            return dialect
    raise refusal((None, "$schema"), f"unknown dialect {_shown(named)}", "write the schema for 2020-12")


def check_schema(schema: Any, pointer: Pointer, dialect: Dialect) -> None:
    """Raise ``ConstraintError`` for a keyword of this schema, not of those in it, that is unknown or malformed."""
    if not isinstance(schema, dict):
        if isinstance(schema, bool):
            return
        raise refusal(pointer, f"a schema is an object, true or false, not {_shown(schema)}", "write a schema here")
    for keyword, value in schema.items():
        check = ASSERTIONS.get(keyword)
        if check is not None:
            is_flag = dialect.has_flags and isinstance(value, bool) and _FLAGS.get(keyword) in schema
            if not is_flag and not check[0](value):
                remedy = _MALFORMED_REMEDIES.get(keyword, "see JSON Schema 2020-12")
                raise refusal((pointer, keyword), f"{keyword} has to be {check[1]}, not {_shown(value)}", remedy)
        elif keyword == "nullable":
            _check_nullable(schema, pointer, dialect)
        elif keyword not in ANNOTATIONS and not isinstance(keyword, Internal):
            _check_unknown(keyword, pointer)
    if "additionalItems" in schema and not isinstance(schema.get("items"), list):
        remedy = "use items beside prefixItems"
        raise refusal((pointer, "additionalItems"), "additionalItems says nothing unless items is a list", remedy)
    if "prefixItems" in schema and isinstance(schema.get("items"), list):
        remedy = "use items for the schema of the others"
        raise refusal((pointer, "items"), "items is a list of schemas beside prefixItems", remedy)


def _check_nullable(schema: dict[Any, Any], pointer: Pointer, dialect: Dialect) -> None:
    at = (pointer, "nullable")
    value = schema["nullable"]
    if not isinstance(value, bool):
        raise refusal(at, f"nullable has to be true or false, not {_shown(value)}", "see OpenAPI 3.0")
    if not value:
        return
    if not dialect.has_nullable:
        remedy = 'write {"type": [..., "null"]}, or "$schema": "https://spec.openapis.org/oas/3.0/schema/2021-09-28"'
        raise refusal(at, "nullable is a keyword of OpenAPI 3.0; in JSON Schema null stays forbidden", remedy)
    if "type" not in schema:
        remedy = 'write {"anyOf": [..., {"enum": [null]}]}'
        raise refusal(at, "nullable says nothing without a type beside it", remedy)


def _check_unknown(keyword: Any, pointer: Pointer) -> None:
    if isinstance(keyword, str) and keyword.startswith("x-"):
        return
    remedy = _REMEDIES.get(keyword)
    if remedy is None:
        close = difflib.get_close_matches(str(keyword), [*ASSERTIONS, *ANNOTATIONS], 1)
        remedy = f"did you mean {close[0]}?" if close else "leave it out, or begin its name with x-"
    raise refusal((pointer, str(keyword)), f"{keyword} is not supported, and so can't be enforced", remedy)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
