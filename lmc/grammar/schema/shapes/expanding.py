"""From the schemas that a value has to meet to shapes, at least one of which it has to have.

References and `allOf` are followed, `not` is written out, and every `anyOf`, `oneOf` and `if` multiplies the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, TypeVar

from lmc.grammar.schema import values
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.keywords import ASSERTIONS, Internal
from lmc.grammar.schema.errors import Pointer, Subschema, refusal
from lmc.grammar.schema.shapes.absorbing import ABSORB
from lmc.grammar.schema.shapes.negation import negate, negated
from lmc.grammar.schema.shapes.shapes import (
    Alternatives,
    EvaluatedParts,
    Goal,
    ItemRules,
    Keyword,
    Path,
    PropertyRules,
    SchemaContext,
    Scope,
    Shape,
    Unevaluated,
)
from lmc.grammar.schema.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from lmc.ir.errors import ConstraintError

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

    Which schemas hold for a value, and so which parts they evaluate, is known once a shape has no choices left. There
    the keywords mean the same as `items` and `additionalProperties` beside everything that is described.

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


MAX_SHAPES = 20_000
MAX_DEPTH = 100


class Expander:
    """Expands the goals of one document, with one budget for all of them."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.leaves_out = False
        """True if combinations of alternatives were left out, so that a goal without shapes may have values."""
        self._made: dict[tuple[str, int], object] = {}
        self._shapes = 0
        self._depth = 0

    def expand(self, goal: Goal) -> list[Shape]:
        """The shapes that meet a goal, those that are seen to be impossible left out.

        Raises ``ConstraintError`` for what is wrong or can't be enforced in the schemas, and for too many shapes.
        """
        shape = self._new_shape()
        shape.pointer = goal[0].pointer if goal else None
        for sub in goal:
            self.absorb(shape, sub, SchemaContext())
        found: list[Shape] = []
        stack = [shape]
        while stack:
            shape = stack.pop()
            shape.settle()
            if shape.is_impossible:
                continue
            if not shape.choices:
                settle(shape, self._any_of, contains_evaluates=self.document.dialect.contains_evaluates)
                found.append(shape)
                continue
            (goals, context), *others = shape.choices
            shape.choices = tuple(others)
            branches: list[Shape] = []
            for branch in goals:
                made = self._new_shape(shape)
                for sub in branch:
                    self.absorb(made, sub, context)
                branches.append(made)
            stack += reversed(branches)
        return found

    def target(self, sub: Subschema) -> Subschema:
        """Follow a schema that only refers to another one; any other schema is itself."""
        path: Path = None
        while isinstance(sub.schema, dict) and "$ref" in sub.schema:
            keywords = self.document.keywords(sub)
            if any(keyword in ASSERTIONS and keyword != "$ref" for keyword in keywords):
                break
            at = (sub.pointer, "$ref")
            sub = self.document.resolve(keywords["$ref"], at)
            path = followed(sub, path, at)
        return sub

    def branches(self, goal: Goal) -> list[Goal] | None:
        """The branches of a goal that is one `anyOf` or `oneOf` and says nothing else, each then a goal of its own."""
        schema = goal[0].schema if len(goal) == 1 else None
        if not isinstance(schema, dict) or ("anyOf" not in schema and "oneOf" not in schema):
            return None
        if sum(keyword in ASSERTIONS for keyword in self.document.keywords(goal[0])) > 1:
            return None
        shape = self._new_shape()
        self.absorb(shape, goal[0], SchemaContext())
        return shape.choices[0].goals

    def absorb(self, shape: Shape, sub: Subschema, context: SchemaContext) -> None:
        """Add a schema to a shape."""
        pointer = sub.pointer
        if sub.schema is True:
            return
        if sub.schema is False:
            shape.classes = 0
            return
        schema = self.document.keywords(sub)
        sub = Subschema(schema, pointer)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise refusal(pointer, f"schemas nested deeper than {MAX_DEPTH}", "nest less deeply")
        context = enter(shape, sub, context)
        for name, value in schema.items():
            absorb, combine = ABSORB.get(name), COMBINE.get(name)
            if absorb is not None:
                absorb(shape, Keyword(name, value, schema, pointer, context))
            elif combine is not None:
                combine(self, shape, Keyword(name, value, schema, pointer, context))
        self._depth -= 1

    def once(self, keyword: str, schema: object, make: Callable[[], _Made], *, meanwhile: _Made | None = None) -> _Made:
        """Return the cached result of ``make`` for a keyword of a schema, by identity.

        ``meanwhile`` is its result in its own recursion.
        """
        key = (keyword, id(schema))
        if key not in self._made:
            if meanwhile is not None:
                self._made[key] = (meanwhile, schema)
            self._made[key] = (make(), schema)
        return self._made[key][0]  # type: ignore[index, return-value]

    def are_disjoint(self, goals: list[Goal]) -> bool:
        """Return True if no value meets two of the goals, where that is seen without comparing every pair."""
        shapes = [self.expand(goal) for goal in goals]
        if any(len(each) != 1 for each in shapes):
            return False
        singles = [shape for (shape,) in shapes]
        together = 0
        for shape in singles:
            if shape.classes & together:
                break
            together |= shape.classes
        else:
            return True
        if _distinct(singles):
            return True
        if any(shape.classes != OBJECT for shape in singles):
            return False
        names = [name for name, _ in singles[0].required]
        return any(self._tells_apart(name, singles) for name in names)

    def is_contradiction(self, goal: Goal, depth: int = 4) -> bool:
        """Return True if no value meets a goal, by a proof within ``depth`` steps into objects and arrays."""
        return all(self._is_dead(shape, depth) for shape in self.expand(goal))

    def _tells_apart(self, name: str, shapes: list[Shape]) -> bool:
        """Return True if a property is required in all shapes, with values that are disjoint."""
        found: list[Shape] = []
        for shape in shapes:
            goal = tuple(members.named[name] for members in shape.members if name in members.named)
            inner = self.expand(goal)
            if len(inner) != 1 or all(name != required for required, _ in shape.required):
                return False
            found += inner
        return _distinct(found)

    def _is_dead(self, shape: Shape, depth: int) -> bool:
        if shape.allowed is not None:
            return False
        dead = 0
        if shape.low and shape.high and shape.low.value > shape.high.value:
            dead |= NUMBER
        if shape.min_length and shape.max_length and shape.min_length.value > shape.max_length.value:
            dead |= STRING
        if shape.min_items and shape.max_items and shape.min_items.value > shape.max_items.value:
            dead |= ARRAY
        if shape.min_members and shape.max_members and shape.min_members.value > shape.max_members.value:
            dead |= OBJECT
        left = shape.classes & ~dead
        if left & (NULL | BOOLEAN) or not depth:
            return not left
        if left & OBJECT and any(
            self.is_contradiction(shape.member_goal(name, None), depth - 1) for name, _ in shape.required
        ):
            left &= ~OBJECT
        if left & ARRAY and shape.min_items:
            for index in range(min(shape.min_items.value, max((len(each.prefix) for each in shape.items), default=0))):
                if self.is_contradiction(shape.item_goal(index), depth - 1):
                    left &= ~ARRAY
                    break
        return not left

    def _any_of(self, schemas: list[Subschema]) -> Subschema:
        """A schema that holds where one of these does, made once."""
        key = f"any of {[id(sub.schema) for sub in schemas]}"
        parts = [sub.schema for sub in schemas]
        return Subschema(self.once(key, None, lambda: {"anyOf": parts}), schemas[-1].pointer)

    def _new_shape(self, base: Shape | None = None) -> Shape:
        self._shapes += 1
        if self._shapes > MAX_SHAPES:
            raise ConstraintError(
                f"the schema has more than {MAX_SHAPES} combinations of alternatives",
                remedy="combine fewer anyOf, oneOf, if and not in one place, or tell the branches of oneOf apart by a "
                "required property with a const of its own",
            )
        return Shape() if base is None else base.copy()


def _distinct(shapes: list[Shape]) -> bool:
    """Return True if all shapes are lists of values without one in common."""
    seen: set[object] = set()
    for shape in shapes:
        if shape.allowed is None or not seen.isdisjoint(shape.allowed):
            return False
        seen.update(shape.allowed)
    return True


def _reference(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    document = expander.document
    if keyword.name == "$ref":
        target = document.resolve(keyword.value, keyword.at)
    else:
        target = document.resolve_dynamic(keyword.name, keyword.value, keyword.at)
    expander.absorb(shape, target, keyword.context._replace(path=followed(target, keyword.context.path, keyword.at)))


def _all_of(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    for sub in keyword.each():
        expander.absorb(shape, sub, keyword.context)


def _any_of(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    goals = expander.once("anyOf", keyword.schema, lambda: _branches(keyword))
    if keyword.context.scope is not None:
        if sum(map(_describes, goals)) > MAX_TOGETHER:
            expander.leaves_out = True
        goals = expander.once("anyOf together", keyword.schema, lambda: _together(goals))
    shape.choices += (Alternatives(goals, keyword.context),)


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


def _one_of(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    schema = keyword.schema
    branches = expander.once("branches", schema, lambda: _branches(keyword))
    # Whether branches overlap may depend on their parts, and so on this keyword again. Taking it for `anyOf` there
    # leaves more values, with which two branches that are seen to have none in common have none either.
    goals = expander.once("oneOf", schema, lambda: _exclusive(expander, branches), meanwhile=branches)
    shape.choices += (Alternatives(goals, keyword.context),)


def _branches(keyword: Keyword) -> list[Goal]:
    """One goal for each branch. The property that a `discriminator` (OpenAPI) names is required in all of them."""
    more: Goal = ()
    named = keyword.schema.get("discriminator")
    if isinstance(named, dict) and isinstance(named.get("propertyName"), str):
        more = (Subschema({"required": [named["propertyName"]]}, (keyword.pointer, "discriminator")),)
    return [(sub, *more) for sub in keyword.each()]


def _exclusive(expander: Expander, goals: list[Goal]) -> list[Goal]:
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


def _not(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    inner: Subschema = keyword.value if keyword.name is Internal.NOT else keyword.inner
    context = SchemaContext(followed(inner, keyword.context.path, inner.pointer))
    if isinstance(inner.schema, bool):
        expander.absorb(shape, negate(inner, expander.document), context)
    else:
        expander.absorb(shape, expander.once("not", inner.schema, lambda: negate(inner, expander.document)), context)


def _if(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    condition, schema = keyword.inner, keyword.schema
    if "then" not in schema and "else" not in schema:
        # Alone it does nothing but evaluate what it describes; where that is not needed, it need not fail.
        if keyword.context.scope is not None:
            shape.choices += (Alternatives([(condition,), ()], keyword.context),)
        return
    then, other = keyword.beside("then").inner, keyword.beside("else").inner
    goals: list[Goal] = expander.once("if", schema, lambda: [(condition, then), (negated(condition), other)])
    shape.choices += (Alternatives(goals, keyword.context),)


def _dependent(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    """For objects with a property: a schema, or the names of others."""

    def choices() -> list[list[Goal]]:
        found: list[list[Goal]] = []
        for name, sub in keyword.named().items():
            if sub.schema == []:
                continue
            if isinstance(sub.schema, list):
                present: Goal = (Subschema({"required": [name, *sub.schema]}, sub.pointer),)
            else:
                present = (Subschema({"required": [name]}, sub.pointer), sub)
            found.append([(Subschema({"properties": {name: False}}, sub.pointer),), present])
        return found

    shape.implied |= values.OBJECT
    made = expander.once(keyword.name, keyword.schema, choices)
    shape.choices += tuple(Alternatives(goals, keyword.context) for goals in made)


def _internal_choices(expander: Expander, shape: Shape, keyword: Keyword) -> None:
    if len(keyword.value) == 1:
        for sub in keyword.value[0]:
            expander.absorb(shape, sub, keyword.context)
    else:
        shape.choices += (Alternatives(keyword.value, keyword.context),)


def _internal_classes(_expander: Expander, shape: Shape, keyword: Keyword) -> None:
    shape.classes &= keyword.value


def _internal_excluded(_expander: Expander, shape: Shape, keyword: Keyword) -> None:
    shape.excluded += tuple(keyword.value)


def _unevaluated(_expander: Expander, shape: Shape, keyword: Keyword) -> None:
    """Defer a keyword about evaluated parts until all choices are made (``settle``)."""
    shape.implied |= values.ARRAY if keyword.name == "unevaluatedItems" else values.OBJECT


COMBINE: dict[Any, Callable[[Expander, Shape, Keyword], None]] = {
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), _reference),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), _dependent),
    **dict.fromkeys(KEYWORDS, _unevaluated),
    Internal.NOT: _not,
    Internal.CHOICES: _internal_choices,
    Internal.CLASSES: _internal_classes,
    Internal.EXCLUDED: _internal_excluded,
}
"""The effect of a keyword on a shape. Those about the value alone are in ``absorbing.py``."""
