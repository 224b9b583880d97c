"""Types of IR values. Each prints as ``!name`` and compares by value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Type:
    """A type without parameters: ``!ctx``, ``!text``, ``!int``, ``!float``, ``!bool``, ``!none`` or ``!any``."""

    name: str

    def __eq__(self, other: object) -> bool:
        # Written by hand, since types are compared more than anything else, and most often one object with itself.
        return self is other or (type(other) is type(self) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return f"!{self.name}"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    """A list whose elements are all of one type; its length is known at run time only."""

    name: str
    element: Type

    def __str__(self) -> str:
        return f"!list<{self.element}>"


@dataclass(frozen=True, slots=True)
class JsonType(Type):
    """A JSON value that fits the schema called ``schema``."""

    name: str
    schema: str

    def __str__(self) -> str:
        return f"!json<{self.schema}>"


CTX = Type("ctx")
TEXT = Type("text")
INT = Type("int")
FLOAT = Type("float")
BOOL = Type("bool")
NONE = Type("none")
ANY = Type("any")

SCALAR_TYPES = frozenset({TEXT, INT, FLOAT, BOOL, NONE})
SCALARS = frozenset({str, int, float, bool, type(None)})
"""The Python types of scalars."""
SIMPLE_TYPES = {kind.name: kind for kind in (CTX, TEXT, INT, FLOAT, BOOL, NONE, ANY)}


def list_of(element: Type) -> ListType:
    """``!list<element>``."""
    return ListType("list", element)


def json_of(schema: str) -> JsonType:
    """``!json<schema>``."""
    return JsonType("json", schema)


def holds_context(kind: Type) -> bool:
    """Return True if values of ``kind`` are contexts, or lists of them."""
    while isinstance(kind, ListType):
        kind = kind.element
    return kind == CTX


def fits(found: Type, place: Type) -> bool:
    """Return True if a value of type ``found`` can go where values of type ``place`` are expected.

    It can where both are equal, and into ``!any`` wherever it is no context; the same holds for elements of lists.
    """
    while isinstance(found, ListType) and isinstance(place, ListType):
        found, place = found.element, place.element
    return found == place or (place == ANY and not holds_context(found))


def type_of(value: object) -> Type:
    """The type of a plain Python value: its own where the IR has one, else ``!any``."""
    if value is None:
        return NONE
    for kind, found in ((bool, BOOL), (int, INT), (float, FLOAT), (str, TEXT)):
        if type(value) is kind:
            return found
    if type(value) is list:
        kinds = {type_of(entry) for entry in value}
        return list_of(kinds.pop()) if len(kinds) == 1 else list_of(ANY)
    return ANY
