"""Lowering: the final Module to a Plan, whose instructions say what each op waits for, and its round of model calls."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from lmc.backend.plan import Body, Instruction, Parameter, Plan, defined_values
from lmc.grammar.provider_schema import form_of
from lmc.grammar.sharing import source_of
from lmc.ir.analysis.open_turns import OpenTurn, open_turns
from lmc.ir.analysis.ordering import Objects, objects_of, waits_of
from lmc.ir.core import Block, Constraint, Op, Value, walk
from lmc.ir.dialects.core_ops import SamplingOp, SelectOp
from lmc.ir.engine.capabilities import OWN
from lmc.ir.engine.target import Target
from lmc.ir.errors import ConstraintError
from lmc.ir.module import Module
from lmc.ir.semantics.constraint_runtime import refused
from lmc.ir.semantics.requirements import check_op


def lower(module: Module, target: Target) -> Plan:
    """The plan of a verified module's main function.

    Raises ``LoweringError`` (user line, cause, remedy) where the module asks for what ``target`` can't do.
    """
    block = module.main.body
    _check_needs(module, target)
    slots = {value: Value(str(index), value.type) for index, value in enumerate(defined_values(block))}
    return Plan(
        name=module.name,
        parameters=tuple(Parameter(value.name, slots[value]) for value in block.parameters),
        slots=tuple(value.type for value in slots),
        instructions=instructions_of(_block_over_slots(block, slots)),
        constraints=module.constraints,
        hosts=module.hosts,
    )


def _check_needs(module: Module, target: Target) -> None:
    """Raise ``LoweringError`` or ``ConstraintError`` for the first op that asks for something the target can't do."""
    if target.capabilities == OWN:
        return
    block, symbols = module.main.body, {entry.name: entry for entry in module.constraints}
    ends = open_turns(block)
    for op in walk((block,)):
        if isinstance(op, SamplingOp | SelectOp) and op.billable:
            # The first turn in an order that is always the same: there may be one for each way through the program.
            turns = sorted(ends.get(op.context, ()), key=repr) or (OpenTurn(is_chat=True),)
            for turn in turns:
                check_op(op, turn, target.served)
            if isinstance(op, SamplingOp) and op.constraint is not None:
                for each in target.chain:
                    _check_form(op, symbols[op.constraint], each)


def _check_form(op: SamplingOp, symbol: Constraint, target: Target) -> None:
    """Raise ``ConstraintError`` for a constraint that the provider can't enforce as it is meant."""
    capabilities = target.capabilities
    if capabilities.structured == "exact" and capabilities.dialect == "sglang" and symbol.kind == "grammar":
        error = ConstraintError(
            f"{target.spec} takes no grammar in Lark's language", remedy="use a regex or a schema, or another server"
        )
        raise refused(error, op)
    if capabilities.structured != "schema":
        return
    try:
        source = source_of(symbol.kind, symbol.text, symbol.whitespace)
        form_of(source, target.capabilities.schema_keywords, target.spec)
    except ConstraintError as error:
        raise refused(error, op) from error


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


def instructions_of(block: Block) -> tuple[Instruction, ...]:
    """The instructions of a function's body, and in them those of its regions."""
    return _instructions(block, objects_of(block.ops))


def _instructions(block: Block, objects: Objects) -> tuple[Instruction, ...]:
    """Recursion is as deep as regions are nested, which the verifier has bounded."""
    waits = waits_of(block.ops, objects)
    bodies = [
        tuple(Body(region.parameters, _instructions(region, objects)) for region in op.regions) for op in block.ops
    ]
    found: list[Instruction] = []
    for op, needed, inner in zip(block.ops, waits, bodies, strict=True):
        found.append(Instruction(op, needed, _wave(op, [found[index] for index in needed]), inner))
    return tuple(found)


def _wave(op: Op, needed: Sequence[Instruction]) -> int:
    """Its ``wave`` attribute where a pass has set it, else the number of calls on the longest way to it."""
    planned = op.wave if isinstance(op, SamplingOp | SelectOp) else None
    if planned is not None:
        return planned
    return max((entry.wave + entry.rounds for entry in needed), default=0)
