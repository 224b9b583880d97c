"""Places in a schema, errors of refused ones, and the part to blame for an exhausted budget."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

from lmc.grammar.automata.building import Arena
from lmc.ir.errors import ConstraintError

Pointer: TypeAlias = "tuple[Pointer, str | int] | None"
"""A place in the schema: the place that holds it and the key or index there; None is the whole schema.

Linked, so that a step down costs one tuple and only an error spells it out.
"""


class Subschema(NamedTuple):
    """A schema within the document (an object or a boolean, once checked) and where it stands."""

    schema: Any
    pointer: Pointer


class RecursiveSchemaError(ConstraintError):
    """A schema whose values may nest without bound, where only values of bounded depth can be built.

    It refers to itself, or leaves open what a value is (``{}``, an array without ``items``).
    """


class UndescribedError(Exception):
    """All objects of a shape have properties that nothing describes; they are produced only where there are no others.

    ``reason`` is what asks for the properties.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def tokens_of(pointer: Pointer) -> list[str | int]:
    """The keys and indices from the whole schema to a place."""
    tokens: list[str | int] = []
    while pointer is not None:
        pointer, token = pointer
        tokens.append(token)
    tokens.reverse()
    return tokens


def json_pointer(pointer: Pointer) -> str:
    """RFC 6901: ``/properties/age/minimum``; empty for the whole schema."""
    tokens = ["/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens_of(pointer)]
    return "".join(tokens).encode("utf-8", "backslashreplace").decode()


def refusal(pointer: Pointer, cause: str, remedy: str) -> ConstraintError:
    """The error for a keyword that can't be enforced or is wrong."""
    where = json_pointer(pointer)
    return ConstraintError(f"schema, #{where}: {cause}", remedy=remedy, pointer=where)


def located(error: ConstraintError, pointer: Pointer) -> ConstraintError:
    """An error that says nothing of the schema, with a place in it."""
    where = json_pointer(pointer)
    return ConstraintError(f"schema, #{where}: {error.cause}", remedy=error.remedy, pointer=where)


def recursive(pointer: Pointer, cause: str) -> RecursiveSchemaError:
    """The error for values that nest without bound."""
    where = json_pointer(pointer)
    remedy = "say what the values are, without reference to the schema around them"
    return RecursiveSchemaError(f"schema, #{where}: {cause}", remedy=remedy, pointer=where)


def shown(value: Any) -> str:
    """A value in a message: its beginning, where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


_MUCH = 1_000  # steps from which on a part is remembered


class Culprit:
    """Counts what the parts of a schema cost in an arena: the smallest one that used most of a budget is to blame."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._spent: list[tuple[int, Pointer]] = []

    @contextmanager
    def watch(self, where: Pointer) -> Generator[None]:
        """While the part at ``where`` is made. An error without a pointer that is raised meanwhile gets one.

        It is the pointer of the innermost part, or where steps were counted over the whole schema, of the smallest one
        that took half of them.
        """
        arena = self._arena
        start = arena.work
        try:
            yield
        except ConstraintError as error:
            if error.pointer is not None:
                raise
            spent = arena.work - start
            if arena.work <= arena.work_limit:
                raise located(error, where) from None
            large = [part for part in [*self._spent, (spent, where)] if 2 * part[0] >= arena.work]
            if large:
                raise located(error, min(large, key=_steps)[1]) from None
            raise
        spent = arena.work - start
        if spent >= _MUCH:
            self._spent.append((spent, where))


def _steps(part: tuple[int, Pointer]) -> int:
    return part[0]
