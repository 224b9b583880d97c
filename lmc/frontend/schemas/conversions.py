"""Conversion of a generation by a class that runs the user's code: a call of its own, in order with all others."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmc.frontend.schemas.schemas import JsonSchema
from lmc.ir.semantics.constraint_runtime import unreadable


class Conversion:
    """Makes values of the text of generations: what validators of the class say beyond its schema counts.

    ``source`` is the text of the class (that of its schema, where Python has no source): what a saved plan compares.
    """

    def __init__(self, schema: JsonSchema) -> None:
        self.schema = schema
        kind = schema.kind
        self.__name__ = schema.name
        self.__module__ = getattr(kind, "__module__", "builtins")
        self.__qualname__: str = getattr(kind, "__qualname__", schema.name)
        try:
            self.source = inspect.getsource(kind)
        except (OSError, TypeError):
            self.source = schema.text

    def __call__(self, text: str | list[str], op_id: str) -> Any:
        """The value of ``text``, which generation ``op_id`` gave; of each of several.

        Raises ``ConstraintError`` where the class does not take it, and whatever else its code raises.
        """
        return [self._one(entry, op_id) for entry in text] if isinstance(text, list) else self._one(text, op_id)

    def _one(self, text: str, op_id: str) -> Any:
        assert self.schema.read is not None
        try:
            return self.schema.read(text)
        except ValueError as error:
            raise unreadable(op_id, text, self.schema.name, error) from error


@dataclass(frozen=True, slots=True)
class ClassReader:
    """Makes a value of JSON text by the class of ``schema``, which runs no code of the user's."""

    schema: JsonSchema

    def __call__(self, text: str) -> Any:
        """The value. Raises ``ValueError`` where the class does not take the text."""
        assert self.schema.read is not None
        return self.schema.read(text)

    @property
    def target(self) -> str:
        """``module:qualname`` of a class, the name of any other type."""
        kind = self.schema.kind
        return f"{kind.__module__}:{kind.__qualname__}" if inspect.isclass(kind) else self.schema.name

    @property
    def digest(self) -> str:
        """The SHA-256 of its JSON schema: what a saved plan compares."""
        return hashlib.sha256(self.schema.text.encode()).hexdigest()


class JsonTypes:
    """The classes that the values of a capture are made by, under the names of their types: ``!json<name>``."""

    def __init__(self) -> None:
        self._schemas: dict[str, JsonSchema] = {}
        self._conversions: dict[str, Conversion] = {}

    def name(self, schema: JsonSchema) -> str:
        """The name that stands for ``schema`` alone: its own, with a number where another one has it."""
        name, number = schema.name, 0
        while not _is_same(self._schemas.setdefault(name, schema), schema):
            number += 1
            name = f"{schema.name}_{number}"
        return name

    def schema(self, name: str) -> JsonSchema | None:
        """Return the schema of that name, or None."""
        return self._schemas.get(name)

    def conversion(self, schema: JsonSchema) -> Conversion:
        """The call that makes a value; the same object each time."""
        return self._conversions.setdefault(self.name(schema), Conversion(schema))

    @property
    def readers(self) -> Mapping[str, ClassReader]:
        """The readers that make values of JSON text without running code of the user's."""
        found = self._schemas.items()
        return {name: ClassReader(schema) for name, schema in found if schema.read is not None and not schema.runs_code}


def _is_same(one: JsonSchema, other: JsonSchema) -> bool:
    return one is other or (one.kind is None and other.kind is None and one.text == other.text)
