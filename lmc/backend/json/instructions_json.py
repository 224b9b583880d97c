"""The instructions of a plan as JSON, both ways.

What follows from the ops (``depends``, ``wave``) is written for those who read the file, and compared when it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmc.backend.json.attributes_json import dump_literal, load_entry, load_literal, load_slot
from lmc.backend.json.untrusted_json import fields_of, list_of_width, shorten, text_of
from lmc.backend.plan import Body, Instruction, PlanError
from lmc.ir.core import Block, Op, Value, op_class
from lmc.ir.errors import Location
from lmc.ir.verify.verifier import MAX_REGION_DEPTH

MAX_INSTRUCTIONS = 1_000_000


def dump_instruction(instruction: Instruction) -> dict[str, Any]:
    """Write an instruction for ``InstructionReader``; those of a region are in the field that holds it."""
    op = instruction.op
    bodies = dict(zip(op.REGION_FIELDS, map(_dump_body, instruction.bodies), strict=True))
    return {
        "op": op.NAME,
        "results": [int(value.name) for value in op.results],
        "fields": {name: bodies.get(name) or _dump_field(kind, getattr(op, name)) for name, kind in op.FIELDS},
        "depends": list(instruction.depends),
        "wave": instruction.wave,
        "location": None if op.location is None else [op.location.file, op.location.line],
    }


def _dump_body(body: Body) -> dict[str, Any]:
    parameters = [int(value.name) for value in body.parameters]
    return {"parameters": parameters, "instructions": [dump_instruction(entry) for entry in body.instructions]}


def _dump_field(kind: str, held: Any) -> Any:
    if kind == "operand":
        return int(held.name)
    if kind == "operands":
        return [int(value.name) for value in held]
    return dump_literal(held)


@dataclass(frozen=True, slots=True)
class Written:
    """An instruction of a file: its op, what the file says follows from it, and where it stands."""

    op: Op
    depends: Any
    wave: Any
    place: str
    bodies: tuple[tuple[Written, ...], ...]


class InstructionReader:
    """Reads the instructions of one plan, over ``slots``.

    Raises ``PlanError`` for what ``dump_instruction`` did not write. Recursion is as deep as regions are nested, and no
    deeper than the IR has them.
    """

    def __init__(self, slots: Sequence[Value]) -> None:
        self._slots = slots
        self._count = 0

    def read(self, data: Any) -> tuple[Written, ...]:
        """The instructions of the program's own body."""
        return self._instructions(data, "", 0)

    def _instructions(self, data: Any, place: str, depth: int) -> tuple[Written, ...]:
        rows = list_of_width(data, "instructions")
        self._count += len(rows)
        if not 1 <= self._count <= MAX_INSTRUCTIONS:
            raise PlanError(f"a plan has between 1 and {MAX_INSTRUCTIONS} instructions, not {self._count}")
        if depth > MAX_REGION_DEPTH:
            raise PlanError(f"regions are nested deeper than {MAX_REGION_DEPTH}")
        return tuple(self._instruction(row, f"{place}{index}", depth) for index, row in enumerate(rows))

    def _instruction(self, row: Any, place: str, depth: int) -> Written:
        names = ("op", "results", "depends", "wave", "location", "fields")
        name, results, depends, wave, location, fields = fields_of(row, names, f"instruction {place}")
        kind = op_class(text_of(name))
        if kind is None:
            raise PlanError(f"unknown op {shorten(name)}", remedy="read the plan with the version of lmc that wrote it")
        held = fields_of(fields, [field for field, _ in kind.FIELDS], f"{name}'s fields")
        loaded: dict[str, Any] = {}
        bodies: list[tuple[Written, ...]] = []
        for (field, field_kind), data in zip(kind.FIELDS, held, strict=True):
            if field_kind == "region":
                parameters, inner = fields_of(data, ("parameters", "instructions"), f"{name}'s {field}")
                bodies.append(self._instructions(inner, f"{place}.{field}.", depth + 1))
                loaded[field] = block_of(self._values(parameters, "parameters"), bodies[-1])
            else:
                loaded[field] = self._field(field_kind, data)
        made = kind(results=self._values(results, "results"), location=_load_location(location), **loaded)
        return Written(made, depends, wave, place, tuple(bodies))

    def _field(self, kind: str, data: Any) -> Any:
        if kind == "operand":
            return load_slot(data, self._slots)
        if kind == "attribute":
            return load_literal(data)
        if kind == "operands":
            return self._values(data, "operands")
        loaded = tuple(load_entry(entry, self._slots) for entry in list_of_width(data, kind))
        if kind == "parts" and not all(isinstance(entry, str | Value) for entry in loaded):
            raise PlanError("text parts are texts and slots")
        return loaded

    def _values(self, data: Any, what: str) -> tuple[Value, ...]:
        return tuple(load_slot(entry, self._slots) for entry in list_of_width(data, what))


def block_of(parameters: tuple[Value, ...], written: Sequence[Written]) -> Block:
    """The block of what was read."""
    return Block(parameters, tuple(entry.op for entry in written))


def check_instructions(written: Sequence[Written], instructions: Sequence[Instruction]) -> None:
    """Raise ``PlanError`` unless a file says of its ops what follows from them."""
    for entry, found in zip(written, instructions, strict=True):
        if entry.depends != list(found.depends) or entry.wave != found.wave or type(entry.wave) is not int:
            raise PlanError(f"instruction {entry.place}: depends and wave don't follow from its op")
        for inner, body in zip(entry.bodies, found.bodies, strict=True):
            check_instructions(inner, body.instructions)


def _load_location(data: Any) -> Location | None:
    if data is None:
        return None
    file, line = list_of_width(data, "location", 2)
    if type(line) is not int:
        raise PlanError(f"not a line: {shorten(line)}")
    return Location(text_of(file), line)
