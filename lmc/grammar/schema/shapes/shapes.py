"""The conjunction of several schemas on one value, keyword by keyword, sorted by the class of value it is about."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, NamedTuple, Protocol, TypeAlias

from lmc.grammar.schema.errors import Pointer, Subschema
from lmc.grammar.schema.values import ANY, SCALAR, class_of, identity

Goal: TypeAlias = tuple[Subschema, ...]
"""Schemas that a value has to meet, all of them. Without any: whatever."""

Path: TypeAlias = "tuple[int, Path] | None"
"""The references that were followed without going into the value, as identities of what they point at."""

Scope: TypeAlias = "tuple[int, Scope] | None"
"""The schemas with `unevaluatedItems` or `unevaluatedProperties` that a schema is within, innermost first, by identity.

A negation in between ends the scope: what holds because something else does not evaluates nothing.
"""


class NumberBound(NamedTuple):
    """A bound on a number; ``is_open``: the bound itself is out."""

    value: Fraction
    is_open: bool
    pointer: Pointer


class LengthBound(NamedTuple):
    """A bound on a length or number of parts."""

    value: int
    pointer: Pointer


class TextRule(NamedTuple):
    """A pattern or the name of a format. ``is_negated``: a pattern that must not match."""

    text: str
    is_negated: bool
    pointer: Pointer


class ItemRules(NamedTuple):
    """A schema's rules for the items of an array: the first ones, and the others (None: nothing)."""

    prefix: list[Subschema]
    rest: Subschema | None


class Contains(NamedTuple):
    """Bounds on the number of items that meet a schema."""

    schema: Subschema
    low: int
    high: int | None


class PropertyRules(NamedTuple):
    """A schema's rules for the properties of an object; ``rest`` is for keys without a name or pattern in it."""

    named: dict[str, Subschema]
    patterns: list[tuple[str, Subschema]]
    rest: Subschema | None


class SchemaContext(NamedTuple):
    """The context of a schema: the references that led to it, and its scope."""

    path: Path = None
    scope: Scope = None


class Keyword(NamedTuple):
    """A keyword: its value, the keywords of its schema, where that stands, and its context."""

    name: Any
    value: Any
    schema: dict[Any, Any]
    pointer: Pointer
    context: SchemaContext = SchemaContext()

    @property
    def at(self) -> Pointer:
        """Its own place."""
        return (self.pointer, self.name)

    @property
    def inner(self) -> Subschema:
        """The schema that it holds."""
        return Subschema(self.value, self.at)

    def each(self) -> list[Subschema]:
        """The schemas of a list."""
        at = self.at
        return [Subschema(each, (at, index)) for index, each in enumerate(self.value)]

    def named(self) -> dict[str, Subschema]:
        """The schemas of an object."""
        at = self.at
        return {name: Subschema(each, (at, name)) for name, each in self.value.items()}

    def beside(self, name: str, default: Any = True) -> Keyword:
        """Another keyword of the same schema."""
        return Keyword(name, self.schema.get(name, default), self.schema, self.pointer, self.context)


class Alternatives(NamedTuple):
    """One of several goals has to be met as well."""

    goals: list[Goal]
    context: SchemaContext


class EvaluatedParts(NamedTuple):
    """A schema that holds for the value, and the scope whose schemas take what it describes as evaluated."""

    schema: dict[Any, Any]
    scope: Scope


class Unevaluated(NamedTuple):
    """`unevaluatedItems` or `unevaluatedProperties`: the schema around it, by identity, and its own schema."""

    keyword: str
    holder: int
    schema: Subschema


class Some(NamedTuple):
    """One property at least has a name that meets ``names`` and a value that meets ``value``."""

    names: Subschema
    value: Subschema


class PatternMatcher(Protocol):
    """Knows regular expressions."""

    def find(self, pattern: str, text: str, pointer: Pointer) -> tuple[bool, bool]:
        """Return whether the pattern is found in a text in every reading, and whether it is found in none."""
        ...


@dataclass(slots=True)
class Shape:
    """The conjunction of some schemas. Without ``choices`` it says all; a choice is still to be made where there are.

    ``classes`` are the classes of values that are left; ``is_typed`` says that some `type` or `enum` named them, and
    ``implied`` are the classes that other keywords are about. ``allowed``, where not None, are all values there are, by
    identity. ``contents`` are schemas of what a string holds as JSON. ``unique`` is where the keyword stands, None
    without it; ``evaluated`` is kept for ``unevaluated``, which become ``items`` and ``members`` when all choices are
    made.

    What a field holds is replaced, never changed, so that copies share it.
    """

    pointer: Pointer = None
    classes: int = ANY
    is_typed: bool = False
    implied: int = 0
    allowed: dict[Hashable, Any] | None = None
    excluded: tuple[Any, ...] = ()
    low: NumberBound | None = None
    high: NumberBound | None = None
    multiples: tuple[tuple[Fraction, Pointer], ...] = ()
    min_length: LengthBound | None = None
    max_length: LengthBound | None = None
    patterns: tuple[TextRule, ...] = ()
    formats: tuple[TextRule, ...] = ()
    contents: tuple[Subschema, ...] = ()
    items: tuple[ItemRules, ...] = ()
    contains: tuple[Contains, ...] = ()
    min_items: LengthBound | None = None
    max_items: LengthBound | None = None
    unique: Pointer = None
    members: tuple[PropertyRules, ...] = ()
    required: tuple[tuple[str, Pointer], ...] = ()
    names: tuple[Subschema, ...] = ()
    some: tuple[Some, ...] = ()
    min_members: LengthBound | None = None
    max_members: LengthBound | None = None
    choices: tuple[Alternatives, ...] = ()
    evaluated: tuple[EvaluatedParts, ...] = ()
    unevaluated: tuple[Unevaluated, ...] = ()

    def copy(self) -> Shape:
        """Another shape that says the same."""
        made = Shape()
        for name in _FIELDS:
            setattr(made, name, getattr(self, name))
        return made

    def settle(self) -> None:
        """Leave only those of the values it lists that no other keyword seen so far rules out."""
        if self.allowed is not None:
            excluded = {identity(value) for value in self.excluded}
            self.allowed = {
                key: value
                for key, value in self.allowed.items()
                if key not in excluded and class_of(value) & self.classes
            }
            self.excluded = ()

    @property
    def has_rest(self) -> bool:
        """True if a schema describes the properties that have no name and match no pattern."""
        return any(members.rest is not None for members in self.members)

    @property
    def has_patterns(self) -> bool:
        """True if a schema describes the properties that match some pattern."""
        return any(members.patterns for members in self.members)

    def declared(self) -> list[str]:
        """The names of properties, in the order in which they are produced."""
        named = dict.fromkeys(name for members in self.members for name in members.named)
        return list(named | dict.fromkeys(name for name, _ in self.required))

    def item_goal(self, index: int) -> Goal:
        """Return the goal of an item of an array."""
        return of_schemas(
            sub for prefix, rest in self.items if (sub := prefix[index] if index < len(prefix) else rest) is not None
        )

    def member_goal(self, name: str, matcher: PatternMatcher | None) -> Goal:
        """Return the goal of a property; without a matcher for patterns, the part that is known then.

        Where readings of a pattern differ on the name, it has to meet both consequences.
        """
        found: list[Subschema] = []
        for named, patterns, rest in self.members:
            own = named.get(name)
            is_known = own is not None or (matcher is None and bool(patterns))
            if own is not None:
                found.append(own)
            for pattern, sub in patterns if matcher is not None else ():
                assert matcher is not None
                is_found, is_missed = matcher.find(pattern, name, sub.pointer)
                if not is_missed:
                    found.append(sub)
                is_known |= is_found
            if rest is not None and not is_known:
                found.append(rest)
        return of_schemas(found)

    @property
    def says_more(self) -> bool:
        """True if it has keywords other than `type`, `enum` and `const`."""
        return self.implied != 0

    @property
    def is_open(self) -> bool:
        """True if it does not restrict the type of a value."""
        return not (self.is_typed or self.implied or self.excluded) and self.classes == ANY

    @property
    def meant(self) -> int:
        """The classes of values to produce: those named, else those that the keywords are about.

        A negation says nothing of what to produce instead; scalars will do.
        """
        if self.is_typed:
            return self.classes
        return self.classes & self.implied or self.classes & SCALAR or self.classes

    @property
    def is_impossible(self) -> bool:
        """True if it obviously has no value."""
        return not self.classes or (self.allowed is not None and not self.allowed)


def of_schemas(schemas: Iterable[Subschema]) -> Goal:
    """A goal without repetitions. ``True`` stays only where it is alone: then anything may come."""
    found = {id(sub.schema): sub for sub in schemas}
    if len(found) > 1:
        found.pop(id(True), None)
    return tuple(found.values())


_FIELDS = tuple(field.name for field in fields(Shape))
