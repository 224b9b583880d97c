"""Programs that a program calls: each is a part of it, with a context and ids of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmc.frontend.function import JittedFunction
from lmc.frontend.heap.values import Abstract

if TYPE_CHECKING:
    from lmc.frontend.interpret.machine import Machine


def call(machine: Machine, held: Any, args: Sequence[Abstract], kwargs: Mapping[str, Abstract]) -> Abstract | None:
    """A call of a program; None for what is none."""
    del args, kwargs
    if isinstance(held, JittedFunction):
        raise machine.unsupported("a program that is called by a program")
    return None
