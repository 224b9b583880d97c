"""The classes of values of a saved plan: their descriptions, and their lookup in a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmc.backend.plan import JsonClass, Plan
from lmc.driver.errors import UsageError
from lmc.frontend.program.variants import Captured
from lmc.frontend.schemas.conversions import ClassReader
from lmc.ir.core import Op, Value, walk
from lmc.ir.dialects.core_ops import FreeOp, KeepOp, PyCallOp, ReturnOp, SamplingOp
from lmc.ir.dialects.region_ops import ConditionOp, YieldOp
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.errors import InputError
from lmc.ir.semantics.constraint_runtime import Reader
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, JsonType, list_of

# What only takes parts of an instance, or puts it into a container: of its data these give the data of the same.
_HANDLING = frozenset({"field", "getitem", "slice", "len", "list", "tuple", "dict"})
# What hands values on as they are, but for its flag, or only waits for them.
_HANDING_ON = (ReturnOp, RegionOp, YieldOp, ConditionOp, KeepOp, FreeOp)
_SCALARS = (TEXT, INT, FLOAT, BOOL)


def classes_of(plan: Plan, captured: Captured) -> tuple[JsonClass, ...]:
    """The classes of the values that ``plan``, compiled of ``captured``, gets from a model."""
    readers = {name: found for name, found in captured.readers.items() if isinstance(found, ClassReader)}
    ops = list(walk([plan.module.main.body]))
    needed: dict[str, bool] = {}
    found: list[tuple[Value, str]] = []  # what is an instance or a part of one, with the type of the instance
    for op in ops:
        kind = op.value_type if isinstance(op, SamplingOp) else None
        if isinstance(kind, JsonType) and kind.schema in readers and not readers[kind.schema].schema.is_plain:
            needed.setdefault(kind.schema, False)
            found.extend((value, kind.schema) for value in op.results if value.type in (kind, list_of(kind)))
    uses = _Uses(ops)
    held = set(found)
    while found:
        value, name = found.pop()
        needed[name] = needed[name] or uses.is_needed(value)
        parts = {(part, name) for part in uses.parts(value) if not _is_same(part, readers[name])}
        fresh = parts - held
        held.update(fresh)
        found.extend(fresh)
    return tuple(
        JsonClass(name, readers[name].target, readers[name].digest, is_needed) for name, is_needed in needed.items()
    )


class _Uses:
    """Def-use information of each value."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._flows: dict[Value, list[Value]] = {}  # where it goes as it is, or element by element
        self._users: dict[Value, list[Op]] = {}
        for op in ops:
            for value in op.operands:
                self._users.setdefault(value, []).append(op)
            for source, place in (*op.flows(), *op.carried()) if isinstance(op, RegionOp) else ():
                self._flows.setdefault(source, []).append(place)

    def parts(self, value: Value) -> Iterator[Value]:
        """Yield the values that ``value`` flows into: itself in another block, parts of it, containers that hold it."""
        yield from self._flows.get(value, ())
        for op in self._users.get(value, ()):
            if _only_handles(op):
                yield from op.results

    def is_needed(self, value: Value) -> bool:
        """Return True if ``value`` is used other than to pass it on or to return it."""
        return any(
            not _only_handles(op) and not (isinstance(op, _HANDING_ON) and getattr(op, "flag", None) != value)
            for op in self._users.get(value, ())
        )


def _only_handles(op: Op) -> bool:
    return isinstance(op, PyCallOp) and op.function in _HANDLING


def readers_of(plan: Plan, captured: Captured | None) -> dict[str, Reader]:
    """Return the readers of the plan's values from the classes of a program; without one (None) they stay data.

    Raises ``UsageError`` where the plan needs a class, and ``InputError`` where the program has not the same ones.
    """
    if captured is None:
        missing = [entry.target for entry in plan.classes if entry.needed]
        if missing:
            raise UsageError(
                f"the plan works with instances of {', '.join(missing)}",
                remedy="name the program that has them: --program PROGRAM.py[:name]",
            )
        return {}
    readers = [found for found in captured.readers.values() if isinstance(found, ClassReader)]
    known = {(found.target, found.digest): found for found in readers}
    targets = {found.target for found in readers}
    found: dict[str, Reader] = {}
    for entry in plan.classes:
        reader = known.get((entry.target, entry.digest))
        if reader is None:
            changed = entry.target in targets
            cause = "has changed since the plan was compiled" if changed else f"is not used by {captured.function.name}"
            raise InputError(
                f"the class {entry.target} {cause}", remedy="compile the plan again, or run the program itself"
            )
        found[entry.type] = reader
    return found


def _is_same(value: Value, reader: ClassReader) -> bool:
    return value.type in _SCALARS and reader.schema.keeps_texts
