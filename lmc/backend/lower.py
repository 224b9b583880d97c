"""Lowering: the final Module to a Plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from lmc.backend.dependences import dependences, waves
from lmc.backend.plan import Instruction, Parameter, Plan
from lmc.ir.core import Block, Module, Op, Value
from lmc.ir.errors import LoweringError
from lmc.ir.ops import SamplingOp
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
    waits = dependences(ops)
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


def _over_slots(op: Op, slots: dict[Value, Value]) -> Op:
    renamed = op.substitute(slots)
    return dataclasses.replace(renamed, results=tuple(slots[value] for value in op.results)) if op.results else renamed
