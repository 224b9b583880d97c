"""Events of a running program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lmc.ir.semantics.context import Context


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """Newly settled text of one generation (or the choice of a select, whole).

    ``branch`` is the path of the branch that it belongs to: the program's name, then ``fork/2`` or ``sub/…`` for each
    level. ``op_id`` is the generation's stable id, ``name`` the user's variable, ``sample`` its number among the n of
    ``gen(n=…)``. ``context`` is what the generation continues.
    """

    instance: int
    branch: str
    op_id: str
    name: str | None
    sample: int
    text: str
    context: Context | None = field(default=None, repr=False, compare=False)


OnEvent = Callable[[TokenEvent], None]
"""Takes events; called from any thread, and must return at once."""


def branch_of(op_id: str) -> str:
    """The branch of an op: its id without the last component, which is its name (names hold no ``/``)."""
    return op_id.rpartition("/")[0]
