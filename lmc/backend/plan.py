"""The Plan: the final Module, slot by slot. It decides nothing (DESIGN.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmc.ir.core import Block, Constraint, Function, HostFunction, Module, Op, Value
from lmc.ir.errors import InputError
from lmc.ir.types import Type


class PlanError(InputError):
    """A file is no plan, no schedule, or not one this version can trust."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of the program: its path among the arguments (``essay``, ``item.title``) and the slot that holds it."""

    name: str
    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """An op over slots: values are called ``0``, ``1`` …, in order of definition, parameters first.

    ``depends`` are the instructions that must be finished before this one starts, ``wave`` the round of model
    calls it belongs to, 0 for the first.
    """

    op: Op
    depends: tuple[int, ...]
    wave: int


@dataclass(frozen=True, eq=False)
class Plan:
    """What is executed. Written and read by ``lmc.backend.plan_json``."""

    name: str
    parameters: tuple[Parameter, ...]
    slots: tuple[Type, ...]
    instructions: tuple[Instruction, ...]
    constraints: tuple[Constraint, ...] = ()
    hosts: tuple[HostFunction, ...] = ()

    @property
    def module(self) -> Module:
        """The plan as a Module whose values are called as the slots are."""
        body = Block(
            tuple(parameter.value for parameter in self.parameters),
            tuple(instruction.op for instruction in self.instructions),
        )
        return Module(self.name, (Function(self.name, body),), self.constraints, self.hosts)

    @property
    def wave_count(self) -> int:
        """Rounds of model calls, one after the other, that the program needs at least."""
        return max((entry.wave + entry.op.billable for entry in self.instructions), default=0)


def slot_values(types: Sequence[Type]) -> tuple[Value, ...]:
    """The values called after their slots."""
    return tuple(Value(str(index), kind) for index, kind in enumerate(types))
