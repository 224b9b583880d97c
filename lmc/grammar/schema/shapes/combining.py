"""Keywords that hold schemas for the same value, and what a negation was rewritten to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple, Protocol, TypeVar

from lmc.grammar.schema import values
from lmc.grammar.schema.documents.checking import Internal
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.errors import Pointer, Subschema, refusal
from lmc.grammar.schema.shapes.negation import negate, negated
from lmc.grammar.schema.shapes.shapes import Alternatives, Goal, Path, SchemaContext, Shape

_Made = TypeVar("_Made")

MAX_TOGETHER = 4  # branches of `anyOf` of which every combination is made where it matters which of them hold

# Keywords without which a schema describes no part of a value.
_DESCRIBING = frozenset(
    {
        "$dynamicRef", "$recursiveRef", "$ref", "additionalProperties", "allOf", "anyOf", "contains", "dependencies",
        "dependentSchemas", "if", "items", "oneOf", "patternProperties", "prefixItems", "properties",
        "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip


class KeywordPlace(NamedTuple):
    """A keyword: its schema, its value, and the context of that schema."""

    sub: Subschema
    value: Any
    context: SchemaContext

    def inner(self, keyword: str) -> list[Subschema]:
        """The schemas of a list."""
        at = (self.sub.pointer, keyword)
        return [Subschema(each, (at, index)) for index, each in enumerate(self.value)]


class Expanding(Protocol):
    """The used part of ``Expander``."""

    document: Document
    leaves_out: bool

    def absorb(self, shape: Shape, sub: Subschema, context: SchemaContext) -> None:
        """Add a schema to a shape."""

    def once(self, keyword: str, schema: object, make: Callable[[], _Made], *, meanwhile: _Made | None = None) -> _Made:
        """Return the result of ``make`` for a keyword of a schema; ``meanwhile`` in its own recursion."""
        ...

    def are_disjoint(self, goals: list[Goal]) -> bool:
        """Return True if no value meets two of them."""
        ...

    def is_contradiction(self, goal: Goal) -> bool:
        """Return True if no value meets a goal."""
        ...


Combine = Callable[[Expanding, Shape, KeywordPlace], None]


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


def _reference(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    at = (place.sub.pointer, "$ref")
    target = expander.document.resolve(place.value, at)
    expander.absorb(shape, target, place.context._replace(path=followed(target, place.context.path, at)))


def _dynamic(keyword: str) -> Combine:
    def combine(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
        at = (place.sub.pointer, keyword)
        target = expander.document.resolve_dynamic(keyword, place.value, at)
        expander.absorb(shape, target, place.context._replace(path=followed(target, place.context.path, at)))

    return combine


def _all_of(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    for sub in place.inner("allOf"):
        expander.absorb(shape, sub, place.context)


def _any_of(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    goals = expander.once("anyOf", place.sub.schema, lambda: _branches(place, "anyOf"))
    if place.context.scope is not None:
        if sum(map(_describes, goals)) > MAX_TOGETHER:
            expander.leaves_out = True
        goals = expander.once("anyOf together", place.sub.schema, lambda: _together(goals))
    shape.choices += (Alternatives(goals, place.context),)


def _describes(goal: Goal) -> bool:
    """Return True if some part of a value may be evaluated by it."""
    return any(isinstance(sub.schema, dict) and not _DESCRIBING.isdisjoint(sub.schema) for sub in goal)


def _together(goals: list[Goal]) -> list[Goal]:
    """The goals, and those that hold together: all branches of `anyOf` that hold evaluate parts of the value.

    Of more than ``MAX_TOGETHER`` branches only all of them are put together, which leaves out values.
    """
    describing = list(filter(_describes, goals))
    counts = range(2, len(describing) + 1) if len(describing) <= MAX_TOGETHER else [len(describing)]
    return [*goals, *(sum(some, ()) for count in counts for some in combinations(describing, count))]


def _one_of(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    schema = place.sub.schema
    branches = expander.once("branches", schema, lambda: _branches(place, "oneOf"))
    # Whether branches overlap may depend on their parts, and so on this keyword again. Taking it for `anyOf` there
    # leaves more values, with which two branches that are seen to have none in common have none either.
    goals = expander.once("oneOf", schema, lambda: _exclusive(expander, branches), meanwhile=branches)
    shape.choices += (Alternatives(goals, place.context),)


def _branches(place: KeywordPlace, keyword: str) -> list[Goal]:
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


def _not(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    _negated(expander, shape, place, Subschema(place.value, (place.sub.pointer, "not")))


def _internal_not(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    _negated(expander, shape, place, place.value)


def _negated(expander: Expanding, shape: Shape, place: KeywordPlace, inner: Subschema) -> None:
    context = SchemaContext(followed(inner, place.context.path, inner.pointer))
    if isinstance(inner.schema, bool):
        expander.absorb(shape, negate(inner, expander.document), context)
    else:
        expander.absorb(shape, expander.once("not", inner.schema, lambda: negate(inner, expander.document)), context)


def _if(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    schema, pointer = place.sub
    condition = Subschema(place.value, (pointer, "if"))
    if "then" not in schema and "else" not in schema:
        # Alone it does nothing but evaluate what it describes; where that is not needed, it need not fail.
        if place.context.scope is not None:
            shape.choices += (Alternatives([(condition,), ()], place.context),)
        return
    then = Subschema(schema.get("then", True), (pointer, "then"))
    other = Subschema(schema.get("else", True), (pointer, "else"))
    goals: list[Goal] = expander.once("if", schema, lambda: [(condition, then), (negated(condition), other)])
    shape.choices += (Alternatives(goals, place.context),)


def _dependent(keyword: str) -> Combine:
    """Return the rule for objects with a property: a schema, or the names of others."""

    def combine(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
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
        shape.choices += tuple(Alternatives(goals, place.context) for goals in made)

    return combine


def _internal_choices(expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    if len(place.value) == 1:
        for sub in place.value[0]:
            expander.absorb(shape, sub, place.context)
    else:
        shape.choices += (Alternatives(place.value, place.context),)


def _internal_classes(_expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    shape.classes &= place.value


def _internal_excluded(_expander: Expanding, shape: Shape, place: KeywordPlace) -> None:
    shape.excluded += tuple(place.value)


def _unevaluated(implied: int) -> Combine:
    """Defer a keyword about evaluated parts until all choices are made (``evaluation.py``)."""

    def combine(_expander: Expanding, shape: Shape, _place: KeywordPlace) -> None:
        shape.implied |= implied

    return combine


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
    "unevaluatedItems": _unevaluated(values.ARRAY),
    "unevaluatedProperties": _unevaluated(values.OBJECT),
    Internal.NOT: _internal_not,
    Internal.CHOICES: _internal_choices,
    Internal.CLASSES: _internal_classes,
    Internal.EXCLUDED: _internal_excluded,
}
"""The effect of a keyword on a shape. Those about the value alone are in ``absorbing.py``."""
