"""The part of a schema to blame for an exhausted budget: the smallest one that used most of it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from lmc.grammar.automata.building import Arena
from lmc.grammar.schema.documents.errors import Pointer, located
from lmc.ir.errors import ConstraintError

_MUCH = 1_000  # steps from which on a part is remembered


class Culprit:
    """Counts what the parts of a schema cost in an arena."""

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
