"""Lowering: the final Module to a Plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from lmc.backend.plan import Instruction, Parameter, Plan
from lmc.backend.waves import waves
from lmc.ir.core import Block, Module, Op, Value
from lmc.ir.errors import LoweringError
from lmc.ir.ops import SamplingOp
from lmc.ir.ordering import waits_of
from lmc.ir.target import Target


def lower(module: Module, target: Target) -> Plan:
    """The plan of a verified module's main function.

    Raises ``LoweringError`` (user line, cause, remedy) where the module asks for what ``target`` can't do.
    """
    block = module.main.body
    for op in block.ops:
        _refuse(op, module, target)
    slots = _slots(block)
    ops = [_over_slots(op, slots) for op in block.ops]
    waits = waits_of(ops)
    return Plan(
        name=module.name,
        parameters=tuple(Parameter(value.name, slots[value]) for value in block.parameters),
        slots=tuple(value.type for value in slots),
        instructions=tuple(map(Instruction, ops, waits, waves(ops, waits))),
        constraints=module.constraints,
        hosts=module.hosts,
    )


def _refuse(op: Op, module: Module, target: Target) -> None:
    if op.regions:
        raise LoweringError(
            f"{op.NAME} has regions, which no target of this version runs",
            remedy="run the module with the interpreter, or unroll it before lowering",
            location=op.location,
        )
    if isinstance(op, SamplingOp) and op.constraint is not None and not target.supports_constraints:
        kind = next((entry.kind for entry in module.constraints if entry.name == op.constraint), "constraint")
        raise LoweringError(
            f"generation {op.id!r} has a constraint ({kind}), which target {target.spec!r} does not enforce",
            remedy="leave out regex, choices, schema and dtype and check the text in the program; "
            "to pick one of a few texts, use select",
            location=op.location,
        )


def _slots(block: Block) -> dict[Value, Value]:
    """Every value of the block and the value called after its slot, in order of definition."""
    defined: Iterable[Value] = (*block.parameters, *(value for op in block.ops for value in op.results))
    return {value: Value(str(index), value.type) for index, value in enumerate(defined)}


def _over_slots(op: Op, slots: Mapping[Value, Value]) -> Op:
    """``op.substitute`` for operands and results in one go: a plan has many ops, and each costs a copy."""
    held = {name: _renamed(kind, getattr(op, name), slots) for name, kind in op.VALUE_FIELDS}
    return dataclasses.replace(op, results=tuple(slots[value] for value in op.results), **held)


def _renamed(kind: str, held: Any, slots: Mapping[Value, Value]) -> Any:
    if kind == "operand":
        return slots[held]
    return tuple(slots[entry] if isinstance(entry, Value) else entry for entry in held)
