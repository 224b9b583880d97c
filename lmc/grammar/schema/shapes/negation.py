"""The negation of one schema as a choice between others, one step deep: what is inside stays negated in name only.

A value fails a schema where it fails one of its keywords, and most keywords that say what a value must be have a
counterpart that says what it must not be. So `not`, `oneOf` and `if` need nothing but what there is for schemas. A
keyword without a counterpart is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.keywords import COMPANIONS, Internal
from lmc.grammar.schema.errors import Pointer, Subschema, refusal
from lmc.grammar.schema.shapes.shapes import Goal, Keyword, Some
from lmc.grammar.schema.values import ANY, TYPES, check_value

_Alternatives = Iterable[Any]
"""Schemas one of which holds where the keyword does not, or goals."""


def negate(sub: Subschema, document: Document) -> Subschema:
    """A schema for the values that do not meet ``sub``. Raises ``ConstraintError`` where there is none."""
    pointer = sub.pointer
    if isinstance(sub.schema, bool):
        return Subschema(not sub.schema, pointer)
    schema = document.keywords(sub)
    goals: list[Goal] = []
    for name, value in schema.items():
        if name in COMPANIONS:
            continue
        if name in ("$dynamicRef", "$recursiveRef"):
            goals.append((negated(document.resolve_dynamic(name, value, (pointer, name))),))
            continue
        if name == "$ref":
            goals.append((negated(document.resolve(value, (pointer, name))),))
            continue
        keyword = Keyword(name, value, schema, pointer)
        rule = _RULES.get(name)
        if rule is None:
            raise _refused(keyword)
        for alternative in rule(keyword):
            goals.append(alternative if isinstance(alternative, tuple) else (Subschema(alternative, pointer),))
    return Subschema({Internal.CHOICES: goals}, pointer)


def negated(sub: Subschema) -> Subschema:
    """A schema for what does not meet this one. It is taken apart when it is come to."""
    if isinstance(sub.schema, bool):
        return Subschema(not sub.schema, sub.pointer)
    return Subschema({Internal.NOT: sub}, sub.pointer)


def _refused(keyword: Keyword) -> Exception:
    return refusal(
        (keyword.pointer, str(keyword.name)),
        f"{keyword.name} would have to be negated (for not, if, or a oneOf whose branches overlap), which is not "
        "supported",
        "say what is allowed, not what is not; in oneOf, give every branch a required property with a const of its own",
    )


def _type(keyword: Keyword) -> _Alternatives:
    rest = ANY
    for name in [keyword.value] if isinstance(keyword.value, str) else keyword.value:
        rest &= ~TYPES[name]
    yield {Internal.CLASSES: rest}


def _enum(keyword: Keyword) -> _Alternatives:
    value = [keyword.value] if keyword.name == "const" else keyword.value
    for each in value:
        check_value(each, keyword.pointer)
    scalars = [each for each in value if not isinstance(each, list | dict)]
    parts = [Subschema(_spelled_out(each), keyword.pointer) for each in value if isinstance(each, list | dict)]
    yield (Subschema({Internal.EXCLUDED: scalars}, keyword.pointer), *map(negated, parts))


def _spelled_out(value: list[Any] | dict[str, Any]) -> dict[str, Any]:
    """A schema for one array or object, by its parts."""
    if isinstance(value, list):
        parts = [{"const": each} for each in value]
        more = {"prefixItems": parts} if parts else {}
        return {"type": "array", "minItems": len(value), "maxItems": len(value), **more}
    properties = {name: {"const": each} for name, each in value.items()}
    return {"type": "object", "properties": properties, "required": list(value), "maxProperties": len(value)}


# The type that a bound is about, the keyword of the opposite one, and how far off that is.
_COUNTERPARTS = {
    "minimum": ("number", "exclusiveMaximum", 0),
    "maximum": ("number", "exclusiveMinimum", 0),
    "exclusiveMinimum": ("number", "maximum", 0),
    "exclusiveMaximum": ("number", "minimum", 0),
    "minLength": ("string", "maxLength", -1),
    "maxLength": ("string", "minLength", 1),
    "minItems": ("array", "maxItems", -1),
    "maxItems": ("array", "minItems", 1),
    "minProperties": ("object", "maxProperties", -1),
    "maxProperties": ("object", "minProperties", 1),
}


def _bound(keyword: Keyword) -> _Alternatives:
    kind, counterpart, step = _COUNTERPARTS[keyword.name]
    if step != -1 or keyword.value > 0:
        yield {"type": kind, counterpart: keyword.value + step}


def _prefix_items(keyword: Keyword) -> _Alternatives:
    for index, each in enumerate(keyword.each()):
        yield {"type": "array", "minItems": index + 1, "prefixItems": [True] * index + [negated(each).schema]}


def _items(keyword: Keyword) -> _Alternatives:
    if isinstance(keyword.value, list):
        raise _refused(keyword)
    before = len(keyword.schema.get("prefixItems", ()))
    if keyword.value is False:
        yield {"type": "array", "minItems": before + 1}
    elif keyword.value is not True and keyword.value:
        if before:
            raise _refused(keyword)
        yield {"type": "array", "contains": negated(keyword.inner).schema}


def _contains(keyword: Keyword) -> _Alternatives:
    if keyword.schema.get("minContains", 1) != 1 or "maxContains" in keyword.schema:
        raise _refused(keyword)
    yield {"type": "array", "items": negated(keyword.inner).schema}


def _restricting(subs: dict[str, Subschema]) -> Iterator[tuple[str, Subschema]]:
    """The negations of those schemas that say something."""
    return ((name, negated(sub)) for name, sub in subs.items() if sub.schema is not True and sub.schema != {})


def _properties(keyword: Keyword) -> _Alternatives:
    for name, wrong in _restricting(keyword.named()):
        yield {"type": "object", "required": [name], "properties": {name: wrong.schema}}


def _some(names: Any, names_pointer: Pointer, value: Subschema) -> dict[Any, Any]:
    """A schema for objects with a property of such a name and such a value."""
    return {"type": "object", Internal.SOME: Some(Subschema(names, names_pointer), value)}


def _additional(keyword: Keyword) -> _Alternatives:
    names: dict[Any, Any] = {"type": "string", Internal.EXCLUDED: list(keyword.schema.get("properties", ()))}
    patterns = [{Internal.NOT_PATTERN: pattern} for pattern in keyword.schema.get("patternProperties", ())]
    if patterns:
        names["allOf"] = patterns
    for _, wrong in _restricting({"": keyword.inner}):
        yield _some(names, keyword.at, wrong)


def _pattern_properties(keyword: Keyword) -> _Alternatives:
    for pattern, wrong in _restricting(keyword.named()):
        yield _some({"type": "string", "pattern": pattern}, (keyword.at, pattern), wrong)


def _property_names(keyword: Keyword) -> _Alternatives:
    if keyword.value is not True and keyword.value != {}:
        yield _some({Internal.NOT: keyword.inner}, keyword.at, Subschema(True, keyword.at))


def _dependent(keyword: Keyword) -> _Alternatives:
    for name, sub in keyword.named().items():
        if isinstance(sub.schema, list):
            for other in sub.schema:
                yield {"type": "object", "required": [name], "properties": {other: False}}
        else:
            yield (Subschema({"type": "object", "required": [name]}, keyword.pointer), negated(sub))


def _one_of(keyword: Keyword) -> _Alternatives:
    branches = keyword.each()
    yield tuple(map(negated, branches))
    yield from combinations(branches, 2)


def _if(keyword: Keyword) -> _Alternatives:
    if "then" in keyword.schema:
        yield (keyword.inner, negated(keyword.beside("then").inner))
    if "else" in keyword.schema:
        yield (negated(keyword.inner), negated(keyword.beside("else").inner))


_RULES: dict[Any, Callable[[Keyword], _Alternatives]] = {
    "type": _type,
    "const": _enum,
    "enum": _enum,
    **dict.fromkeys(_COUNTERPARTS, _bound),
    "pattern": lambda keyword: [{"type": "string", Internal.NOT_PATTERN: keyword.value}],
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "properties": _properties,
    "required": lambda keyword: [{"type": "object", "properties": {name: False}} for name in keyword.value],
    "additionalProperties": _additional,
    "patternProperties": _pattern_properties,
    "propertyNames": _property_names,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), _dependent),
    "allOf": lambda keyword: [(negated(each),) for each in keyword.each()],
    "anyOf": lambda keyword: [tuple(map(negated, keyword.each()))],
    "oneOf": _one_of,
    "not": lambda keyword: [(keyword.inner,)],
    "if": _if,
    Internal.NOT: lambda keyword: [(keyword.value,)],
    # What another one reads.
    **dict.fromkeys(("minContains", "maxContains", "then", "else"), lambda _: ()),
}
