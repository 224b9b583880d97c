"""The Plan as versioned JSON. Loading one checks all of it, and imports or executes nothing that it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmc.backend.json.arguments_json import (
    check_arguments,
    dump_arguments,
    dump_condition,
    load_arguments,
    load_condition,
)
from lmc.backend.json.attributes_json import dump_type, load_slot, load_type
from lmc.backend.json.instructions_json import InstructionReader, block_of, check_instructions, dump_instruction
from lmc.backend.json.untrusted_json import fields_of, list_of_width, parse_json, shorten, text_of, truth_of
from lmc.backend.lower import instructions_of
from lmc.backend.plan import JsonClass, Parameter, Plan, PlanError, defined_values, slot_values
from lmc.ir.core import Block, Constraint, Effect, HostFunction, Value
from lmc.ir.errors import LmcError
from lmc.ir.module import Function, Module
from lmc.ir.verify.verifier import verify

FORMAT = "lmc.plan"
VERSION = 16
MAX_CHARACTERS = 256 * 2**20


def dump_plan(plan: Plan) -> str:
    """The plan as JSON: one instruction to a line, the same text for the same plan."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "name": plan.name,
        "parameters": [[parameter.name, int(parameter.value.name)] for parameter in plan.parameters],
        "slots": [dump_type(kind) for kind in plan.slots],
        "constraints": [
            [entry.name, entry.kind, entry.text, entry.whitespace, entry.digest] for entry in plan.constraints
        ],
        "hosts": [[entry.name, entry.target, entry.digest, entry.effect.value, entry.early] for entry in plan.hosts],
        "arguments": dump_arguments(plan.arguments),
        "conditions": [dump_condition(entry) for entry in plan.conditions],
        "classes": [[entry.type, entry.target, entry.digest, entry.needed] for entry in plan.classes],
    }
    lines = ",\n".join(json.dumps(dump_instruction(entry)) for entry in plan.instructions)
    return f'{json.dumps(head)[:-1]}, "instructions": [\n{lines}\n]}}\n'


def load_plan(text: str) -> Plan:
    """Read what ``dump_plan`` wrote. Raises ``PlanError`` for anything else."""
    if len(text) > MAX_CHARACTERS:
        raise PlanError(f"a plan of {len(text)} characters is too large", remedy=f"at most {MAX_CHARACTERS}")
    data = parse_json(text, "plan")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise PlanError("not a plan", remedy="name a file written by lmc compile --emit plan")
    if data.get("version") != VERSION:
        raise PlanError(
            f"plan version {shorten(data.get('version'))}, this lmc reads {VERSION}", remedy="compile again"
        )
    try:
        return _load(data)
    except PlanError as error:
        raise PlanError(error.cause, remedy=error.remedy or "compile the program again") from error
    except LmcError as error:
        raise PlanError(f"the plan breaks a rule: {error}", remedy="compile the program again") from error


def _load(data: dict[str, Any]) -> Plan:
    names = (
        "format",
        "version",
        "name",
        "parameters",
        "slots",
        "constraints",
        "hosts",
        "arguments",
        "conditions",
        "classes",
        "instructions",
    )
    _, _, name, parameters, slots, constraints, hosts, arguments, conditions, classes, instructions = fields_of(
        data, names, "a plan"
    )
    types = tuple(load_type(entry) for entry in list_of_width(slots, "slots"))
    values = slot_values(types)
    taken = tuple(
        Parameter(text_of(path), load_slot(slot, values)) for path, slot in _rows(parameters, 2, "parameters")
    )
    written = InstructionReader(values).read(instructions)
    block = block_of(tuple(entry.value for entry in taken), written)
    _check_slots(taken, block, values)
    module = Module(
        text_of(name),
        (Function(name, block),),
        tuple(map(_load_constraint, _rows(constraints, 5, "constraints"))),
        tuple(_load_host(row) for row in _rows(hosts, 5, "hosts")),
    )
    verify(module)  # later code relies on the rules of ops
    plan = Plan(
        name=name,
        parameters=taken,
        slots=types,
        instructions=instructions_of(block),
        constraints=module.constraints,
        hosts=module.hosts,
        arguments=load_arguments(arguments),
        conditions=tuple(map(load_condition, list_of_width(conditions, "conditions"))),
        classes=tuple(_load_class(row) for row in _rows(classes, 4, "classes")),
    )
    check_instructions(written, plan.instructions)
    check_arguments(plan)
    return plan


def _check_slots(parameters: Sequence[Parameter], block: Block, slots: Sequence[Value]) -> None:
    """Return what is defined, in order, is slots 0, 1 …: none is left without a definition or has two."""
    if list(defined_values(block)) != list(slots):
        raise PlanError("slots are not defined once each, in order")
    if len({parameter.name for parameter in parameters}) != len(parameters):
        raise PlanError("two parameters have one name")


def _load_constraint(row: Sequence[Any]) -> Constraint:
    name, kind, text, whitespace = map(text_of, row[:4])
    return Constraint(name, kind, text, whitespace, None if row[4] is None else text_of(row[4]))


def _load_host(row: Sequence[Any]) -> HostFunction:
    name, target, digest, effect = map(text_of, row[:4])
    try:
        return HostFunction(name, target, digest, Effect(effect), truth_of(row[4]))
    except ValueError as error:
        raise PlanError(f"unknown effect {effect[:80]!r}") from error


def _load_class(row: Sequence[Any]) -> JsonClass:
    kind, target, digest = map(text_of, row[:3])
    return JsonClass(kind, target, digest, truth_of(row[3]))


def _rows(data: Any, width: int, what: str) -> list[list[Any]]:
    return [list_of_width(row, what, width) for row in list_of_width(data, what)]
