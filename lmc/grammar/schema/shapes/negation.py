"""The negation of one schema as a choice between others, one step deep: what is inside stays negated in name only.

A value fails a schema where it fails one of its keywords, and most keywords that say what a value must be have a
counterpart that says what it must not be. So `not`, `oneOf` and `if` need nothing but what there is for schemas. A
keyword without a counterpart is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.errors import Pointer, Subschema, refusal
from lmc.grammar.schema.documents.keywords import COMPANIONS, Internal
from lmc.grammar.schema.shapes.shapes import Goal, Some
from lmc.grammar.schema.values import ANY, TYPES, check_value

_Alternatives = Iterator[Any]
"""Schemas one of which holds where the keyword does not, or goals."""

_Negate = Callable[[dict[Any, Any], Any, Pointer], _Alternatives]
"""Takes the whole schema, the value of the keyword and where the schema stands."""


def negate(sub: Subschema, document: Document) -> Subschema:
    """A schema for the values that do not meet ``sub``. Raises ``ConstraintError`` where there is none."""
    pointer = sub.pointer
    if isinstance(sub.schema, bool):
        return Subschema(not sub.schema, pointer)
    schema = document.keywords(sub)
    goals: list[Goal] = []
    for keyword, value in schema.items():
        if keyword in COMPANIONS:
            continue
        if keyword in ("$dynamicRef", "$recursiveRef"):
            goals.append((negated(document.resolve_dynamic(keyword, value, (pointer, keyword))),))
            continue
        if keyword == "$ref":
            goals.append((negated(document.resolve(value, (pointer, keyword))),))
            continue
        rule = _RULES.get(keyword)
        if rule is None:
            raise _refused(keyword, pointer)
        for alternative in rule(schema, value, pointer):
            goals.append(alternative if isinstance(alternative, tuple) else (Subschema(alternative, pointer),))
    return Subschema({Internal.CHOICES: goals}, pointer)


def negated(sub: Subschema) -> Subschema:
    """A schema for what does not meet this one. It is taken apart when it is come to."""
    if isinstance(sub.schema, bool):
        return Subschema(not sub.schema, sub.pointer)
    return Subschema({Internal.NOT: sub}, sub.pointer)


def _refused(keyword: Any, pointer: Pointer) -> Exception:
    return refusal(
        (pointer, str(keyword)),
        f"{keyword} would have to be negated (for not, if, or a oneOf whose branches overlap), which is not supported",
        "say what is allowed, not what is not; in oneOf, give every branch a required property with a const of its own",
    )


def _type(_schema: dict[Any, Any], value: Any, _pointer: Pointer) -> _Alternatives:
    rest = ANY
    for name in [value] if isinstance(value, str) else value:
        rest &= ~TYPES[name]
    yield {Internal.CLASSES: rest}


def _const(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    return _enum(_schema, [value], pointer)


def _enum(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    for each in value:
        check_value(each, pointer)
    scalars = [each for each in value if not isinstance(each, list | dict)]
    others = [negated(Subschema(_spelled_out(each), pointer)) for each in value if isinstance(each, list | dict)]
    yield (Subschema({Internal.EXCLUDED: scalars}, pointer), *others)


def _spelled_out(value: list[Any] | dict[str, Any]) -> dict[str, Any]:
    """A schema for one array or object, by its parts."""
    if isinstance(value, list):
        parts = [{"const": each} for each in value]
        more = {"prefixItems": parts} if parts else {}
        return {"type": "array", "minItems": len(value), "maxItems": len(value), **more}
    properties = {name: {"const": each} for name, each in value.items()}
    return {"type": "object", "properties": properties, "required": list(value), "maxProperties": len(value)}


def _bound(counterpart: str) -> _Negate:
    def rule(_schema: dict[Any, Any], value: Any, _pointer: Pointer) -> _Alternatives:
        yield {"type": "number", counterpart: value}

    return rule


def _low_count(kind: str, counterpart: str) -> _Negate:
    def rule(_schema: dict[Any, Any], value: Any, _pointer: Pointer) -> _Alternatives:
        if value > 0:
            yield {"type": kind, counterpart: value - 1}

    return rule


def _high_count(kind: str, counterpart: str) -> _Negate:
    def rule(_schema: dict[Any, Any], value: Any, _pointer: Pointer) -> _Alternatives:
        yield {"type": kind, counterpart: value + 1}

    return rule


def _pattern(_schema: dict[Any, Any], value: Any, _pointer: Pointer) -> _Alternatives:
    yield {"type": "string", Internal.NOT_PATTERN: value}


def _prefix_items(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "prefixItems")
    for index, each in enumerate(value):
        wrong = negated(Subschema(each, (at, index))).schema
        yield {"type": "array", "minItems": index + 1, "prefixItems": [True] * index + [wrong]}


def _items(schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    if isinstance(value, list):
        raise _refused("items", pointer)
    before = len(schema.get("prefixItems", ()))
    if value is False:
        yield {"type": "array", "minItems": before + 1}
    elif value is not True and value:
        if before:
            raise _refused("items", pointer)
        yield {"type": "array", "contains": negated(Subschema(value, (pointer, "items"))).schema}


def _contains(schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    if schema.get("minContains", 1) != 1 or "maxContains" in schema:
        raise _refused("contains", pointer)
    yield {"type": "array", "items": negated(Subschema(value, (pointer, "contains"))).schema}


def _properties(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "properties")
    for name, each in value.items():
        if each is not True and each != {}:
            wrong = negated(Subschema(each, (at, name))).schema
            yield {"type": "object", "required": [name], "properties": {name: wrong}}


def _required(_schema: dict[Any, Any], value: Any, _pointer: Pointer) -> _Alternatives:
    for name in value:
        yield {"type": "object", "properties": {name: False}}


def _some(names: Any, names_pointer: Pointer, value: Subschema) -> dict[Any, Any]:
    """A schema for objects with a property of such a name and such a value."""
    return {"type": "object", Internal.SOME: Some(Subschema(names, names_pointer), value)}


def _additional(schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    if value is True or value == {}:
        return
    at = (pointer, "additionalProperties")
    names: dict[Any, Any] = {"type": "string", Internal.EXCLUDED: list(schema.get("properties", ()))}
    patterns = [{Internal.NOT_PATTERN: pattern} for pattern in schema.get("patternProperties", ())]
    if patterns:
        names["allOf"] = patterns
    yield _some(names, at, negated(Subschema(value, at)))


def _pattern_properties(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "patternProperties")
    for pattern, each in value.items():
        if each is not True and each != {}:
            names = {"type": "string", "pattern": pattern}
            yield _some(names, (at, pattern), negated(Subschema(each, (at, pattern))))


def _property_names(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "propertyNames")
    if value is not True and value != {}:
        yield _some({Internal.NOT: Subschema(value, at)}, at, Subschema(True, at))


def _dependent(keyword: str) -> _Negate:
    def rule(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
        at = (pointer, keyword)
        for name, each in value.items():
            if isinstance(each, list):
                for other in each:
                    yield {"type": "object", "required": [name], "properties": {other: False}}
            else:
                present = Subschema({"type": "object", "required": [name]}, pointer)
                yield (present, negated(Subschema(each, (at, name))))

    return rule


def _all_of(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "allOf")
    for index, each in enumerate(value):
        yield (negated(Subschema(each, (at, index))),)


def _any_of(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "anyOf")
    yield tuple(negated(Subschema(each, (at, index))) for index, each in enumerate(value))


def _one_of(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    at = (pointer, "oneOf")
    branches = [Subschema(each, (at, index)) for index, each in enumerate(value)]
    yield tuple(map(negated, branches))
    for index, left in enumerate(branches):
        for right in branches[index + 1 :]:
            yield (left, right)


def _not(_schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    yield (Subschema(value, (pointer, "not")),)


def _if(schema: dict[Any, Any], value: Any, pointer: Pointer) -> _Alternatives:
    condition = Subschema(value, (pointer, "if"))
    if "then" in schema:
        yield (condition, negated(Subschema(schema["then"], (pointer, "then"))))
    if "else" in schema:
        yield (negated(condition), negated(Subschema(schema["else"], (pointer, "else"))))


def _internal_not(_schema: dict[Any, Any], value: Subschema, _pointer: Pointer) -> _Alternatives:
    yield (value,)


def _nothing(_schema: dict[Any, Any], _value: Any, _pointer: Pointer) -> _Alternatives:
    """For keywords that another one reads."""
    yield from ()


_RULES: dict[Any, _Negate] = {
    "type": _type,
    "const": _const,
    "enum": _enum,
    "minimum": _bound("exclusiveMaximum"),
    "maximum": _bound("exclusiveMinimum"),
    "exclusiveMinimum": _bound("maximum"),
    "exclusiveMaximum": _bound("minimum"),
    "minLength": _low_count("string", "maxLength"),
    "maxLength": _high_count("string", "minLength"),
    "pattern": _pattern,
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "minContains": _nothing,
    "maxContains": _nothing,
    "minItems": _low_count("array", "maxItems"),
    "maxItems": _high_count("array", "minItems"),
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    "minProperties": _low_count("object", "maxProperties"),
    "maxProperties": _high_count("object", "minProperties"),
    "dependentRequired": _dependent("dependentRequired"),
    "dependentSchemas": _dependent("dependentSchemas"),
    "dependencies": _dependent("dependencies"),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "then": _nothing,
    "else": _nothing,
    Internal.NOT: _internal_not,
}
