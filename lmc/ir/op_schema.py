"""The schema of an op class, computed once: the fields' order, kinds, defaults and attribute types.

Printer, parser and verifier read ops through this, so none of them knows any single op.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeGuard, cast

from lmc.ir.core import Attribute, Block, FieldKind, Op, SymbolKind, Value, op_names
from lmc.ir.types import SCALARS

MAX_ATTRIBUTE_DEPTH = 32
MAX_INTEGER_BITS = 4096
_HELD: dict[FieldKind, str] = {
    "operand": "a value",
    "operands": "a tuple of values",
    "parts": "a tuple of strings and values",
    "arguments": "a tuple of literals and values",
    "region": "a block",
    "attribute": "a literal",
}


@dataclass(frozen=True, slots=True)
class AttributeType:
    """The type an attribute is annotated with: some scalar types, and tuples of ``element`` where that is not None."""

    scalars: tuple[type, ...]
    element: AttributeType | None = None
    anything: bool = False

    def __str__(self) -> str:
        if self.anything:
            return "any literal"
        names = ["none" if kind is type(None) else kind.__name__ for kind in self.scalars]
        return " or ".join([*names, *([f"tuple of {self.element}"] if self.element is not None else [])])

    def accepts(self, value: object) -> bool:
        """Return True if ``value`` is of exactly this type: an int is no float here, and a bool no int."""
        if self.anything:
            return is_attribute(value)
        if type(value) is not tuple:
            return type(value) in self.scalars
        return self.element is not None and all(map(self.element.accepts, value))


@dataclass(frozen=True, slots=True)
class Field:
    """One declared field. ``positional`` ones are written in order before the attributes."""

    name: str
    kind: FieldKind
    default: Any
    keyword: bool = False
    symbol: SymbolKind | None = None
    type: AttributeType = dataclasses.field(default=AttributeType((), anything=True))

    @property
    def required(self) -> bool:
        """True if the op can't be built without it."""
        return self.default is dataclasses.MISSING

    @property
    def held(self) -> str:
        """The content of the field, in words."""
        return _HELD[self.kind]

    def accepts(self, held: object) -> bool:
        """Return True if the field may hold this."""
        if self.kind == "attribute":
            return self.type.accepts(held)
        if self.kind == "region":
            return isinstance(held, Block)
        if self.kind == "operand":
            return isinstance(held, Value)
        return is_tuple_of_values(held, self._accepts_literal)

    def _accepts_literal(self, entry: object) -> bool:
        if self.kind == "arguments":
            return is_attribute(entry) and not exceeds_bounds(entry)
        return self.kind == "parts" and isinstance(entry, str)


@dataclass(frozen=True, slots=True)
class OpSchema:
    """The fields of one op class: operands and keywords, attributes sorted by name, regions.

    ``holders`` are the fields that hold values or blocks, ``symbols`` the attributes that name one, ``has_id`` says
    whether ops of this class have a stable id.
    """

    positional: tuple[Field, ...]
    attributes: tuple[Field, ...]
    regions: tuple[Field, ...]
    holders: tuple[Field, ...]
    symbols: tuple[Field, ...]
    has_id: bool


@cache
def layout_of(kind: type[Op]) -> OpSchema:
    """The layout of an op class."""
    fields = tuple(_fields(kind))
    regions = tuple(field for field in fields if field.kind == "region")
    attributes = [field for field in fields if field.kind == "attribute"]
    return OpSchema(
        positional=tuple(field for field in fields if field.keyword or field.kind not in {"attribute", "region"}),
        attributes=tuple(sorted(attributes, key=lambda field: field.name)),
        regions=regions,
        holders=(*(field for field in fields if field.kind not in {"attribute", "region"}), *regions),
        symbols=tuple(field for field in attributes if field.symbol is not None),
        has_id=any(field.name == "id" for field in attributes),
    )


def is_tuple_of_values(held: object, accepts: Callable[[object], bool] = lambda _: False) -> bool:
    """Return True if ``held`` is a tuple of values, and of other entries that ``accepts`` takes."""
    return type(held) is tuple and all(
        isinstance(entry, Value) or accepts(entry) for entry in cast("tuple[object, ...]", held)
    )


def is_attribute(value: object) -> TypeGuard[Attribute]:
    """Return True for a literal the IR can hold, at most ``MAX_ATTRIBUTE_DEPTH`` tuples deep. Never recursive."""
    level = [value]
    for _ in range(MAX_ATTRIBUTE_DEPTH + 1):
        tuples = [entry for entry in level if type(entry) is tuple]
        if any(type(entry) not in SCALARS for entry in level if type(entry) is not tuple):
            return False
        level = [entry for inner in tuples for entry in inner]
        if not tuples:
            return True
    return False


def exceeds_bounds(value: Attribute) -> bool:
    """Return True if an integer in ``value`` (of bounded depth) has more than ``MAX_INTEGER_BITS`` bits."""
    if isinstance(value, tuple):
        return any(map(exceeds_bounds, value))
    return isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS


def exact_key(value: Attribute) -> object:
    """A hashable key, equal for equal literals only: 1, 1.0 and True differ, so do 0.0 and -0.0; nan equals nan."""
    if isinstance(value, tuple):
        return tuple(map(exact_key, value))
    return (type(value), repr(value) if isinstance(value, float) else value)


def nearest_op_names(name: str) -> list[str]:
    """Registered names that look like ``name``, best first."""
    import difflib

    return difflib.get_close_matches(name[:64], op_names(), n=3, cutoff=0.5)


def _fields(kind: type[Op]) -> Iterator[Field]:
    hints = typing.get_type_hints(kind)
    declared = {field.name: field for field in dataclasses.fields(kind)}
    for name, field_kind in kind.FIELDS:
        field = declared[name]
        if field_kind != "attribute":
            yield Field(name, field_kind, field.default)
            continue
        yield Field(
            name,
            field_kind,
            field.default,
            keyword=field.metadata["keyword"],
            symbol=field.metadata["symbol"],
            type=_attribute_type(hints[name]),
        )


def _attribute_type(hint: Any) -> AttributeType:
    members = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    scalars: list[type] = []
    element: AttributeType | None = None
    for member in members:
        if member in SCALARS:
            scalars.append(member)
            continue
        entry, *rest = typing.get_args(member)
        if rest != [...]:
            raise TypeError(f"{hint} is no type of an attribute")
        if isinstance(entry, str | typing.ForwardRef):  # the recursive alias ``Attribute``
            return AttributeType((), anything=True)
        element = _attribute_type(entry)
    return AttributeType(tuple(scalars), element)
