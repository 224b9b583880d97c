"""The classes that values of a saved plan are instances of: what it keeps of them, and finding them again."""

from __future__ import annotations

from lmc.backend.plan import JsonClass, Plan
from lmc.driver.programs import UsageError
from lmc.frontend.conversions import ClassReader
from lmc.frontend.variants import Captured
from lmc.ir.constraints import Reader
from lmc.ir.core import Value
from lmc.ir.errors import InputError
from lmc.ir.ops import PyCallOp, ReturnOp, SamplingOp
from lmc.ir.types import BOOL, FLOAT, INT, TEXT, JsonType, list_of

# What only takes parts of an instance, or puts it into a container: of its data these give the data of the same.
_HANDLING = frozenset({"field", "getitem", "slice", "len", "list", "tuple", "dict"})
_SCALARS = (TEXT, INT, FLOAT, BOOL)


def classes_of(plan: Plan, captured: Captured) -> tuple[JsonClass, ...]:
    """The classes of the values that ``plan``, compiled of ``captured``, gets from a model."""
    readers = {name: found for name, found in captured.readers.items() if isinstance(found, ClassReader)}
    needed: dict[str, bool] = {}
    held: dict[Value, str] = {}  # what is an instance or a part of one, by the type of the instance
    for instruction in plan.instructions:
        op = instruction.op
        if isinstance(op, SamplingOp):
            kind = op.value_type
            if isinstance(kind, JsonType) and kind.schema in readers and not readers[kind.schema].schema.is_plain:
                needed.setdefault(kind.schema, False)
                held.update({value: kind.schema for value in op.results if value.type in (kind, list_of(kind))})
            continue
        for name in {held[value]: None for value in op.operands if value in held}:
            if isinstance(op, PyCallOp) and op.function in _HANDLING:
                held.update({value: name for value in op.results if not _is_same(value, readers[name])})
            elif not isinstance(op, ReturnOp):
                needed[name] = True
    return tuple(
        JsonClass(name, readers[name].target, readers[name].digest, is_needed) for name, is_needed in needed.items()
    )


def readers_of(plan: Plan, captured: Captured | None) -> dict[str, Reader]:
    """How the plan's values are made by the classes of a program; without one (None) they stay data.

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
