"""Specs of arguments: how one is taken apart into symbolic leaves, and its counterpart in the program."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lmc.frontend.program.guards import Snapshot
from lmc.ir.types import ANY, BOOL, FLOAT, INT, TEXT, ListType, Type

TYPES_OF_ARGUMENTS: dict[type, Type] = {str: TEXT, int: INT, float: FLOAT}
PYTHON_TYPES = {kind: python for python, kind in TYPES_OF_ARGUMENTS.items()}

MakeLeaf = Callable[[str, Type], Any]


class Spec(ABC):
    """The shape of an argument. ``extract`` takes an argument apart, ``build`` makes its symbolic counterpart."""

    @abstractmethod
    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        """Put the symbolic leaves of ``value`` by name into ``into``; False where the shape is another."""

    @abstractmethod
    def build(self, leaf: MakeLeaf) -> Any:
        """The argument with ``leaf(name, type)`` in place of each symbolic leaf."""


@dataclass(frozen=True)
class LeafSpec(Spec):
    """One symbolic parameter."""

    name: str
    type: Type

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        if not _fits(value, self.type):
            return False
        # A copy: what a program sees of a list is the list as it was when the program was called.
        into[self.name] = list(value) if isinstance(self.type, ListType) else value
        return True

    def build(self, leaf: MakeLeaf) -> Any:
        return leaf(self.name, self.type)


@dataclass(frozen=True)
class StaticSpec(Spec):
    """A value that is part of what the capture holds for."""

    snapshot: Snapshot

    def extract(self, value: Any, into: dict[str, Any]) -> bool:  # noqa: ARG002
        return self.snapshot.matches(value)

    def build(self, leaf: MakeLeaf) -> Any:  # noqa: ARG002
        return self.snapshot.value


@dataclass(frozen=True)
class SequenceSpec(Spec):
    """A list or tuple of fixed length."""

    kind: type
    items: tuple[Spec, ...]

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        return (
            type(value) is self.kind
            and len(value) == len(self.items)
            and all(spec.extract(item, into) for spec, item in zip(self.items, value, strict=True))
        )

    def build(self, leaf: MakeLeaf) -> Any:
        return self.kind(spec.build(leaf) for spec in self.items)


@dataclass(frozen=True)
class DictSpec(Spec):
    """A dict with fixed keys, in order."""

    items: tuple[tuple[Any, Spec], ...]

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        return (
            type(value) is dict
            and len(value) == len(self.items)
            and all(
                type(key) is type(found) and key == found and spec.extract(value[found], into)
                for (key, spec), found in zip(self.items, value, strict=True)
            )
        )

    def build(self, leaf: MakeLeaf) -> Any:
        return {key: spec.build(leaf) for key, spec in self.items}


@dataclass(frozen=True)
class Record:
    """An instance of the user's class ``kind`` whose fields are known only at run time."""

    kind: type
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class RecordSpec(Spec):
    """An instance of a dataclass or pydantic class."""

    kind: type
    items: tuple[tuple[str, Spec], ...]

    def extract(self, value: Any, into: dict[str, Any]) -> bool:
        if type(value) is not self.kind:
            return False
        fields = vars(value)
        return all(name in fields and spec.extract(fields[name], into) for name, spec in self.items)

    def build(self, leaf: MakeLeaf) -> Any:
        return Record(self.kind, {name: spec.build(leaf) for name, spec in self.items})


@dataclass(frozen=True)
class Arguments:
    """The shapes of all parameters of a program, in order."""

    specs: Mapping[str, Spec]

    def extract(self, values: Mapping[str, Any]) -> dict[str, Any] | None:
        """Inputs by parameter name; None where the arguments have another shape."""
        into: dict[str, Any] = {}
        return into if all(spec.extract(values[name], into) for name, spec in self.specs.items()) else None

    def build(self, leaf: MakeLeaf) -> dict[str, Any]:
        """The symbolic counterpart of every parameter."""
        return {name: spec.build(leaf) for name, spec in self.specs.items()}


def _fits(value: Any, kind: Type) -> bool:
    if kind == ANY:
        return True
    if kind == BOOL:
        return type(value) is bool
    if isinstance(kind, ListType):
        python = PYTHON_TYPES[kind.element]
        return type(value) is list and all(type(entry) is python for entry in value)
    return type(value) is PYTHON_TYPES[kind]
