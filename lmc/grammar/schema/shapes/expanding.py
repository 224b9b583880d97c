"""From the schemas that a value has to meet to shapes, at least one of which it has to have.

References and `allOf` are followed, `not` is written out, and every `anyOf`, `oneOf` and `if` multiplies the shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lmc.grammar.schema.documents.checking import ASSERTIONS
from lmc.grammar.schema.documents.documents import Document
from lmc.grammar.schema.documents.errors import Subschema, refusal
from lmc.grammar.schema.shapes.absorbing import ABSORB
from lmc.grammar.schema.shapes.combining import COMBINE, KeywordPlace, followed
from lmc.grammar.schema.shapes.evaluation import enter, settle
from lmc.grammar.schema.shapes.shapes import Goal, Path, SchemaContext, Shape
from lmc.grammar.schema.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from lmc.ir.errors import ConstraintError

MAX_SHAPES = 20_000
MAX_DEPTH = 100

_Made = TypeVar("_Made")


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
        for keyword, value in schema.items():
            absorb = ABSORB.get(keyword)
            if absorb is not None:
                absorb(shape, schema, value, pointer)
                continue
            combine = COMBINE.get(keyword)
            if combine is not None:
                combine(self, shape, KeywordPlace(sub, value, context))
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
