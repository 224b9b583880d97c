"""Captures of one program, kept for later arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmc.frontend.breaks import Break
from lmc.frontend.language.binding import MethodOwner
from lmc.frontend.program.argument_specs import Arguments
from lmc.frontend.program.arguments import Bound
from lmc.frontend.program.guards import ReadGuards, ValueGuard
from lmc.frontend.tools.reachability import changeable, reaches
from lmc.ir.errors import InputError, LmcError
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import Reader

if TYPE_CHECKING:
    from lmc.frontend.program.function import JittedFunction


@dataclass(frozen=True)
class Captured:
    """One captured variant of a program.

    ``hosts`` resolves the module's host symbols, ``readers`` make values of JSON by the names of their types,
    ``breaks`` says where it ends early. It holds for arguments of this ``shape`` for which the
    ``guards`` do, while ``reads`` of its surroundings give the same; of a method, for what ``owner`` admits.
    ``writers`` are the functions in it that may change data, and what they are given: none reaches an argument.
    ``refused`` is an error that the program raises whatever models answer, if it comes to that line.
    """

    function: JittedFunction
    module: Module
    hosts: Mapping[str, Callable[..., Any]]
    breaks: tuple[Break, ...]
    shape: Arguments
    guards: tuple[ValueGuard, ...]
    reads: ReadGuards
    owner: MethodOwner | None = None
    readers: Mapping[str, Reader] = field(default_factory=dict[str, Reader])
    refused: LmcError | None = None
    writers: tuple[Any, ...] = ()

    def matches(self, bound: Bound) -> bool:
        """Return True if this variant is valid for these arguments, now."""
        receiver = bound.program.receiver
        if self.owner is not None and not self.owner.admits(receiver):
            return False
        inputs = self.shape.extract(bound.values)
        if inputs is None or not self.reads.hold(receiver):
            return False
        if self.writers and reaches(self.writers, changeable(bound.values), receiver):
            return False
        known: dict[Any, Any] = {}
        return all(guard.holds(inputs, known) for guard in self.guards)


def inputs_of(captured: Captured, bound: Bound) -> dict[str, Any]:
    """The module's inputs by parameter name. Raises ``InputError`` where the arguments have another shape."""
    inputs = captured.shape.extract(bound.values)
    if inputs is None:
        raise InputError(
            f"the arguments of {captured.function.name}() have another shape than those it was compiled for",
            remedy="compile it with arguments of this shape, or call the program itself, which compiles a variant",
            location=captured.function.location,
        )
    return inputs


class VariantCache:
    """The variants of one program, most recently used last; the oldest goes when there are more than ``limit``."""

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._variants: list[Captured] = []

    def find(self, bound: Bound) -> Captured | None:
        """A variant that holds for ``bound``."""
        for index in range(len(self._variants) - 1, -1, -1):
            if self._variants[index].matches(bound):
                found = self._variants.pop(index)
                self._variants.append(found)
                return found
        return None

    def add(self, captured: Captured) -> None:
        """Keep a variant, and let go of those whose object nothing refers to any more."""
        self._variants = [known for known in self._variants if known.owner is None or not known.owner.is_gone]
        self._variants.append(captured)
        del self._variants[: -self._limit]

    def __len__(self) -> int:
        return len(self._variants)
