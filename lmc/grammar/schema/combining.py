"""Keywords that hold schemas for the same value, and what a negation was rewritten to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from lmc.grammar.schema import values
from lmc.grammar.schema.checking import Internal
from lmc.grammar.schema.documents import Document
from lmc.grammar.schema.errors import Pointer, Subschema, refusal
from lmc.grammar.schema.negation import negate, negated
from lmc.grammar.schema.shapes import Choice, Goal, Items, Members, Path, Shape

_Made = TypeVar("_Made")

_IN_PLACE = (
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "dependentSchemas",
    "dependencies",
)


class Place(NamedTuple):
    """A keyword: the schema it stands in, its value, and the references that led here.

    ``is_whole``: nothing is said of the value outside of this schema.
    """

    sub: Subschema
    value: Any
    path: Path
    is_whole: bool

    def inner(self, keyword: str) -> list[Subschema]:
        """The schemas of a list."""
        at = (self.sub.pointer, keyword)
        return [Subschema(each, (at, index)) for index, each in enumerate(self.value)]


class Expanding(Protocol):
    """What is needed of an ``Expander``."""

    document: Document

    def absorb(self, shape: Shape, sub: Subschema, path: Path) -> None:
        """Add a schema to a shape."""

    def once(self, keyword: str, schema: object, make: Callable[[], _Made], *, meanwhile: _Made | None = None) -> _Made:
        """What ``make`` gives for a keyword of a schema; ``meanwhile`` where it asks for itself."""
        ...

    def are_disjoint(self, goals: list[Goal]) -> bool:
        """Whether no value meets two of them."""
        ...

    def is_contradiction(self, goal: Goal) -> bool:
        """Whether no value meets a goal."""
        ...


Combine = Callable[[Expanding, Shape, Place], None]


def followed(sub: Subschema, path: Path, at: Pointer) -> Path:
    """The path with one more step. Raises ``ConstraintError`` where it comes back to where it was."""
    if isinstance(sub.schema, bool):
        return path
    step = path
    while step is not None:
        if step[0] == id(sub.schema):
            raise refusal(at, "the schema refers to itself for the same value", "refer to it in a property or an item")
        step = step[1]
    return (id(sub.schema), path)


def _reference(expander: Expanding, shape: Shape, place: Place) -> None:
    at = (place.sub.pointer, "$ref")
    target = expander.document.resolve(place.value, at)
    expander.absorb(shape, target, followed(target, place.path, at))


def _dynamic(keyword: str) -> Combine:
    def combine(expander: Expanding, shape: Shape, place: Place) -> None:
        at = (place.sub.pointer, keyword)
        target = expander.document.resolve_dynamic(keyword, place.value, at)
        expander.absorb(shape, target, followed(target, place.path, at))

    return combine


def _all_of(expander: Expanding, shape: Shape, place: Place) -> None:
    for sub in place.inner("allOf"):
        expander.absorb(shape, sub, place.path)


def _any_of(expander: Expanding, shape: Shape, place: Place) -> None:
    goals = expander.once("anyOf", place.sub.schema, lambda: _branches(place, "anyOf"))
    shape.choices += (Choice(goals, place.path),)


def _one_of(expander: Expanding, shape: Shape, place: Place) -> None:
    schema = place.sub.schema
    branches = expander.once("branches", schema, lambda: _branches(place, "oneOf"))
    # Whether branches overlap may depend on their parts, and so on this keyword again. Taking it for `anyOf` there
    # leaves more values, with which two branches that are seen to have none in common have none either.
    goals = expander.once("oneOf", schema, lambda: _exclusive(expander, branches), meanwhile=branches)
    shape.is_rewritten |= any(Internal.NOT in sub.schema for goal in goals for sub in goal[1:])
    shape.choices += (Choice(goals, place.path),)


def _branches(place: Place, keyword: str) -> list[Goal]:
    """One goal for each branch. The property that a `discriminator` (OpenAPI) names is required in all of them."""
    more: Goal = ()
    named = place.sub.schema.get("discriminator")
    if isinstance(named, dict) and isinstance(named.get("propertyName"), str):
        more = (Subschema({"required": [named["propertyName"]]}, (place.sub.pointer, "discriminator")),)
    return [(sub, *more) for sub in place.inner(keyword)]


def _exclusive(expander: Expanding, goals: list[Goal]) -> list[Goal]:
    """Each goal, and of the others those not that it may have a value in common with."""
    if len(goals) == 1 or expander.are_disjoint(goals):
        return goals
    overlaps: dict[int, list[Subschema]] = {index: [] for index in range(len(goals))}
    for index, goal in enumerate(goals):
        for other in range(index):
            if not expander.is_contradiction(goal + goals[other]):
                overlaps[index].append(negated(goals[other][0]))
                overlaps[other].append(negated(goal[0]))
    return [(*goal, *overlaps[index]) for index, goal in enumerate(goals)]


def _not(expander: Expanding, shape: Shape, place: Place) -> None:
    _negated(expander, shape, place, Subschema(place.value, (place.sub.pointer, "not")))


def _internal_not(expander: Expanding, shape: Shape, place: Place) -> None:
    _negated(expander, shape, place, place.value)


def _negated(expander: Expanding, shape: Shape, place: Place, inner: Subschema) -> None:
    shape.is_rewritten = True
    path = followed(inner, place.path, inner.pointer)
    if isinstance(inner.schema, bool):
        expander.absorb(shape, negate(inner, expander.document), path)
    else:
        expander.absorb(shape, expander.once("not", inner.schema, lambda: negate(inner, expander.document)), path)


def _if(expander: Expanding, shape: Shape, place: Place) -> None:
    schema, pointer = place.sub
    if "then" not in schema and "else" not in schema:
        return
    condition = Subschema(place.value, (pointer, "if"))
    then = Subschema(schema.get("then", True), (pointer, "then"))
    other = Subschema(schema.get("else", True), (pointer, "else"))
    goals: list[Goal] = expander.once("if", schema, lambda: [(condition, then), (negated(condition), other)])
    shape.is_rewritten = True
    shape.choices += (Choice(goals, place.path),)


def _dependent(keyword: str) -> Combine:
    """What is asked of an object where it has a property: a schema, or the names of others."""

    def combine(expander: Expanding, shape: Shape, place: Place) -> None:
        at = (place.sub.pointer, keyword)

        def choices() -> list[list[Goal]]:
            found: list[list[Goal]] = []
            for name, each in place.value.items():
                where = (at, name)
                if each == []:
                    continue
                if isinstance(each, list):
                    present: Goal = (Subschema({"required": [name, *each]}, where),)
                else:
                    present = (Subschema({"required": [name]}, where), Subschema(each, where))
                found.append([(Subschema({"properties": {name: False}}, where),), present])
            return found

        shape.implied |= values.OBJECT
        made = expander.once(keyword, place.sub.schema, choices)
        shape.choices += tuple(Choice(goals, place.path) for goals in made)

    return combine


def _internal_choices(expander: Expanding, shape: Shape, place: Place) -> None:
    if len(place.value) == 1:
        for sub in place.value[0]:
            expander.absorb(shape, sub, place.path)
    else:
        shape.choices += (Choice(place.value, place.path),)


def _internal_classes(_expander: Expanding, shape: Shape, place: Place) -> None:
    shape.classes &= place.value


def _internal_excluded(_expander: Expanding, shape: Shape, place: Place) -> None:
    shape.excluded += tuple(place.value)


def _unevaluated_items(_expander: Expanding, shape: Shape, place: Place) -> None:
    schema, pointer = place.sub
    at = (pointer, "unevaluatedItems")
    shape.implied |= values.ARRAY
    items = schema.get("items", [])
    if place.value is True or place.value == {} or not isinstance(items, list) or "additionalItems" in schema:
        return
    if any(keyword in schema for keyword in (*_IN_PLACE, "contains")):
        _only_produced(shape, place, "unevaluatedItems")
    else:
        prefix = [Subschema(True, at)] * len(schema.get("prefixItems", items))
        shape.items += (Items(prefix, Subschema(place.value, at)),)


def _unevaluated_properties(_expander: Expanding, shape: Shape, place: Place) -> None:
    schema, pointer = place.sub
    at = (pointer, "unevaluatedProperties")
    shape.implied |= values.OBJECT
    if place.value is True or place.value == {} or "additionalProperties" in schema:
        return
    if any(keyword in schema for keyword in _IN_PLACE):
        _only_produced(shape, place, "unevaluatedProperties")
    else:
        named = {name: Subschema(True, at) for name in schema.get("properties", ())}
        patterns = [(pattern, Subschema(True, at)) for pattern in schema.get("patternProperties", ())]
        shape.members += (Members(named, patterns, Subschema(place.value, at)),)


def _only_produced(shape: Shape, place: Place, keyword: str) -> None:
    """`false` beside `allOf` and the like: all that is produced comes from a schema that evaluates it.

    But for what comes from a negation, which the builder looks for, and for listed values, which have to meet it.
    """
    at = (place.sub.pointer, keyword)
    if place.value is not False or not place.is_whole or "contains" in place.sub.schema:
        remedy = "use false at the outermost schema of the value, or additionalProperties or items"
        raise refusal(at, "what is unevaluated here depends on other schemas, which is not supported", remedy)
    shape.unevaluated += (at,)


COMBINE: dict[Any, Combine] = {
    "$ref": _reference,
    "$dynamicRef": _dynamic("$dynamicRef"),
    "$recursiveRef": _dynamic("$recursiveRef"),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "dependentRequired": _dependent("dependentRequired"),
    "dependentSchemas": _dependent("dependentSchemas"),
    "dependencies": _dependent("dependencies"),
    "unevaluatedItems": _unevaluated_items,
    "unevaluatedProperties": _unevaluated_properties,
    Internal.NOT: _internal_not,
    Internal.CHOICES: _internal_choices,
    Internal.CLASSES: _internal_classes,
    Internal.EXCLUDED: _internal_excluded,
}
"""What a keyword adds to a shape. Those that speak of the value alone are in ``absorbing.py``."""
