"""Lowering: the final Module to a Plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lmc.backend.instructions import instructions_of
from lmc.backend.plan import Parameter, Plan, defined_values
from lmc.ir.core import Block, Op, Value, walk
from lmc.ir.dialects.core_ops import SamplingOp
from lmc.ir.engine.target import Target
from lmc.ir.errors import LoweringError
from lmc.ir.module import Module


def lower(module: Module, target: Target) -> Plan:
    """The plan of a verified module's main function.

    Raises ``LoweringError`` (user line, cause, remedy) where the module asks for what ``target`` can't do.
    """
    block = module.main.body
    for op in walk((block,)):
        _refuse(op, module, target)
    slots = {value: Value(str(index), value.type) for index, value in enumerate(defined_values(block))}
    return Plan(
        name=module.name,
        parameters=tuple(Parameter(value.name, slots[value]) for value in block.parameters),
        slots=tuple(value.type for value in slots),
        instructions=instructions_of(_block_over_slots(block, slots)),
        constraints=module.constraints,
        hosts=module.hosts,
    )


def _refuse(op: Op, module: Module, target: Target) -> None:
    if not isinstance(op, SamplingOp) or target.supports_constraints:
        return
    kind = next((entry.kind for entry in module.constraints if entry.name == op.constraint), op.definition_kind)
    if kind is not None:
        raise LoweringError(
            f"generation {op.id!r} has a constraint ({kind}), which target {target.spec!r} does not enforce",
            remedy="leave out regex, choices, schema and dtype and check the text in the program; "
            "to pick one of a few texts, use select",
            location=op.location,
        )


def _block_over_slots(block: Block, slots: Mapping[Value, Value]) -> Block:
    """Recursion is as deep as regions are nested, which the verifier has bounded."""
    parameters = tuple(slots[value] for value in block.parameters)
    return Block(parameters, tuple(_over_slots(op, slots) for op in block.ops))


def _over_slots(op: Op, slots: Mapping[Value, Value]) -> Op:
    """``op.substitute`` for operands and results in one go: a plan has many ops, and each costs a copy."""
    held = {name: _renamed(kind, getattr(op, name), slots) for name, kind in op.VALUE_FIELDS}
    held.update((name, _block_over_slots(getattr(op, name), slots)) for name in op.REGION_FIELDS)
    return dataclasses.replace(op, results=tuple(slots[value] for value in op.results), **held)


def _renamed(kind: str, held: Any, slots: Mapping[Value, Value]) -> Any:
    if kind == "operand":
        return slots[held]
    return tuple(slots[entry] if isinstance(entry, Value) else entry for entry in held)
