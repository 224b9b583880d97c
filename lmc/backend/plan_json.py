"""The Plan as versioned JSON. Loading one checks all of it, and imports or executes nothing that it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmc.backend.arguments_json import check_arguments, dump_arguments, dump_condition, load_arguments, load_condition
from lmc.backend.attributes_json import dump_literal, dump_type, load_entry, load_literal, load_slot, load_type
from lmc.backend.plan import Instruction, JsonClass, Parameter, Plan, PlanError, slot_values
from lmc.backend.untrusted_json import fields_of, list_of_width, parse_json, shorten, text_of
from lmc.backend.waves import waves
from lmc.ir.core import Constraint, Effect, HostFunction, Op, Value, op_class
from lmc.ir.errors import LmcError, Location
from lmc.ir.ordering import waits_of
from lmc.ir.verifier import verify

FORMAT = "lmc.plan"
VERSION = 6
MAX_CHARACTERS = 256 * 2**20
MAX_INSTRUCTIONS = 1_000_000


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
        "hosts": [[entry.name, entry.target, entry.digest, entry.effect.value] for entry in plan.hosts],
        "arguments": dump_arguments(plan.arguments),
        "conditions": [dump_condition(entry) for entry in plan.conditions],
        "classes": [[entry.type, entry.target, entry.digest, entry.needed] for entry in plan.classes],
    }
    lines = ",\n".join(json.dumps(_dump_instruction(entry)) for entry in plan.instructions)
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
        plan = _load(data)
        verify(plan.module)
    except PlanError as error:
        raise PlanError(error.cause, remedy=error.remedy or "compile the program again") from error
    except LmcError as error:
        raise PlanError(f"the plan breaks a rule: {error}", remedy="compile the program again") from error
    return plan


def _dump_instruction(instruction: Instruction) -> dict[str, Any]:
    op = instruction.op
    return {
        "op": op.NAME,
        "results": [int(value.name) for value in op.results],
        "fields": {name: _dump_field(kind, getattr(op, name)) for name, kind in op.FIELDS},
        "depends": list(instruction.depends),
        "wave": instruction.wave,
        "location": None if op.location is None else [op.location.file, op.location.line],
    }


def _dump_field(kind: str, held: Any) -> Any:
    if kind == "operand":
        return int(held.name)
    if kind == "operands":
        return [int(value.name) for value in held]
    return dump_literal(held)


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
    plan = Plan(
        name=text_of(name),
        parameters=tuple(
            Parameter(text_of(path), load_slot(slot, values)) for path, slot in _rows(parameters, 2, "parameters")
        ),
        slots=types,
        instructions=_load_instructions(instructions, values),
        constraints=tuple(map(_load_constraint, _rows(constraints, 5, "constraints"))),
        hosts=tuple(_load_host(row) for row in _rows(hosts, 4, "hosts")),
        arguments=load_arguments(arguments),
        conditions=tuple(map(load_condition, list_of_width(conditions, "conditions"))),
        classes=tuple(_load_class(row) for row in _rows(classes, 4, "classes")),
    )
    _check_slots(plan, values)
    check_arguments(plan)
    return plan


def _check_slots(plan: Plan, slots: Sequence[Value]) -> None:
    """Parameters, then results in order, are slots 0, 1 …: none is left without a definition or has two."""
    defined = [parameter.value for parameter in plan.parameters]
    defined.extend(value for instruction in plan.instructions for value in instruction.op.results)
    if defined != list(slots):
        raise PlanError("slots are not defined once each, in order")
    if len({parameter.name for parameter in plan.parameters}) != len(plan.parameters):
        raise PlanError("two parameters have one name")


def _load_instructions(data: Any, slots: Sequence[Value]) -> tuple[Instruction, ...]:
    rows = list_of_width(data, "instructions")
    if not 1 <= len(rows) <= MAX_INSTRUCTIONS:
        raise PlanError(f"a plan has between 1 and {MAX_INSTRUCTIONS} instructions, not {len(rows)}")
    ops: list[Op] = []
    written: list[tuple[Any, Any]] = []
    for index, row in enumerate(rows):
        names = ("op", "results", "depends", "wave", "location", "fields")
        name, results, depends, wave, location, fields = fields_of(row, names, f"instruction {index}")
        written.append((depends, wave))
        ops.append(_load_op(name, results, location, fields, slots))
    waits = waits_of(ops)
    found = waves(ops, waits)
    for index, (depends, wave) in enumerate(written):
        if depends != list(waits[index]) or wave != found[index] or type(wave) is not int:
            raise PlanError(f"instruction {index}: depends and wave don't follow from its op")
    return tuple(map(Instruction, ops, waits, found))


def _load_op(name: Any, results: Any, location: Any, fields: Any, slots: Sequence[Value]) -> Op:
    kind = op_class(text_of(name))
    if kind is None:
        raise PlanError(f"unknown op {shorten(name)}", remedy="read the plan with the version of lmc that wrote it")
    held = fields_of(fields, [field for field, _ in kind.FIELDS], f"{name}'s fields")
    entries = zip(kind.FIELDS, held, strict=True)
    loaded = {field: _load_field(field_kind, data, slots) for (field, field_kind), data in entries}
    return kind(
        results=tuple(load_slot(slot, slots) for slot in list_of_width(results, "results")),
        location=_load_location(location),
        **loaded,
    )


def _load_field(kind: str, data: Any, slots: Sequence[Value]) -> Any:
    if kind == "operand":
        return load_slot(data, slots)
    if kind == "attribute":
        return load_literal(data)
    if kind == "operands":
        return tuple(load_slot(entry, slots) for entry in list_of_width(data, "operands"))
    if kind == "region":
        raise PlanError("a plan holds no regions")
    loaded = tuple(load_entry(entry, slots) for entry in list_of_width(data, kind))
    if kind == "parts" and not all(isinstance(entry, str | Value) for entry in loaded):
        raise PlanError("text parts are texts and slots")
    return loaded


def _load_location(data: Any) -> Location | None:
    if data is None:
        return None
    file, line = list_of_width(data, "location", 2)
    if type(line) is not int:
        raise PlanError(f"not a line: {shorten(line)}")
    return Location(text_of(file), line)


def _load_constraint(row: Sequence[Any]) -> Constraint:
    name, kind, text, whitespace = map(text_of, row[:4])
    return Constraint(name, kind, text, whitespace, None if row[4] is None else text_of(row[4]))


def _load_host(row: Sequence[Any]) -> HostFunction:
    name, target, digest, effect = map(text_of, row)
    try:
        return HostFunction(name, target, digest, Effect(effect))
    except ValueError as error:
        raise PlanError(f"unknown effect {effect[:80]!r}") from error


def _load_class(row: Sequence[Any]) -> JsonClass:
    kind, target, digest = map(text_of, row[:3])
    if type(row[3]) is not bool:
        raise PlanError(f"not a truth value: {shorten(row[3])}")
    return JsonClass(kind, target, digest, row[3])


def _rows(data: Any, width: int, what: str) -> list[list[Any]]:
    return [list_of_width(row, what, width) for row in list_of_width(data, what)]
