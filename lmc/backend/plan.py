"""The Plan: the final Module, slot by slot. It decides nothing (DESIGN.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lmc.ir.cached import cached_property
from lmc.ir.core import Attribute, Block, Constraint, HostFunction, Op, Value, walk
from lmc.ir.dialects.regions import RegionOp
from lmc.ir.errors import InputError
from lmc.ir.module import Function, Module
from lmc.ir.types import Type


class PlanError(InputError):
    """A file that is no plan or schedule, or none that this version can read. The remedy is to write it again."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input of the program: its path among the arguments (``essay``, ``item.title``) and the slot that holds it."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class Leaf:
    """An argument, or a part of one, that is a parameter of the plan.

    ``fixed`` is the only value that the plan holds for, ``default`` the value where a record is given without it, both
    as JSON text; ``length`` the only length of a list.
    """

    parameter: str
    fixed: str | None = None
    default: str | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Frozen:
    """A value that the program was specialised to: as JSON text, or as its repr where JSON has no form for it."""

    text: str
    is_json: bool


@dataclass(frozen=True, slots=True)
class Items:
    """A list of fixed length."""

    items: tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A dict with fixed keys, or a record."""

    fields: tuple[tuple[str, Shape], ...]


Shape = Leaf | Frozen | Items | Fields


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of the program as its user gives it; ``default`` as JSON text."""

    name: str
    shape: Shape
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition for the validity of a plan: the last of ``nodes`` evaluates to ``expected``.

    A node is a pure builtin with its operands, the last of them by ``keywords``; without a name, the parameter that its
    operand names. An operand is a literal or, as a ``NodeRef``, an earlier node.
    """

    nodes: tuple[tuple[str, tuple[Attribute | NodeRef, ...], tuple[str, ...]], ...]
    expected: Attribute


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node by its place."""

    index: int


@dataclass(frozen=True, slots=True)
class JsonClass:
    """A class of the program that values of ``type``, of JSON, are instances of.

    ``target`` is its ``module:qualname``, ``digest`` names its JSON schema. It is ``needed`` where the plan does more
    with an instance than to return it: a text of it, for one, is another than that of the same data as a dict.
    """

    type: str
    target: str
    digest: str
    needed: bool


@dataclass(frozen=True, eq=False, slots=True)
class Instruction:
    """An op over slots: values are called ``0``, ``1`` …, in order of definition, parameters first.

    ``depends`` are the instructions of the same body that must be finished before this one starts, ``wave`` the round
    of model calls of that body it belongs to, 0 for the first. ``bodies`` are the regions of ``op``, in field order.
    """

    op: Op
    depends: tuple[int, ...]
    wave: int
    bodies: tuple[Body, ...] = ()

    @property
    def rounds(self) -> int:
        """Rounds of model calls that it takes by itself, as if each of its bodies ran once."""
        if not isinstance(self.op, RegionOp):
            return int(self.op.billable)
        counts = [body.wave_count for body in self.bodies]
        return max(counts, default=0) if self.op.EXCLUSIVE else sum(counts)


@dataclass(frozen=True, eq=False)
class Body:
    """A region of an op over slots: its parameters and its instructions."""

    parameters: tuple[Value, ...]
    instructions: tuple[Instruction, ...]

    @cached_property
    def wave_count(self) -> int:
        """Rounds of model calls, one after the other, that it needs at least."""
        return max((entry.wave + entry.rounds for entry in self.instructions), default=0)


@dataclass(frozen=True, eq=False)
class Plan:
    """An executable program. Written and read by ``lmc.backend.json.plan_json``.

    ``arguments`` map the program's arguments to the parameters; None in a plan that is not saved, or was made from IR,
    which does not have them. ``classes`` are empty in both cases.
    """

    name: str
    parameters: tuple[Parameter, ...]
    slots: tuple[Type, ...]
    instructions: tuple[Instruction, ...]
    constraints: tuple[Constraint, ...] = ()
    hosts: tuple[HostFunction, ...] = ()
    arguments: tuple[Argument, ...] | None = None
    conditions: tuple[Condition, ...] = ()
    classes: tuple[JsonClass, ...] = ()

    @property
    def body(self) -> Body:
        """The program's own body."""
        return Body(tuple(parameter.value for parameter in self.parameters), self.instructions)

    @property
    def module(self) -> Module:
        """The plan as a Module whose values are called as the slots are."""
        block = Block(self.body.parameters, tuple(instruction.op for instruction in self.instructions))
        return Module(self.name, (Function(self.name, block),), self.constraints, self.hosts)

    @property
    def wave_count(self) -> int:
        """Rounds of model calls, one after the other, that the program needs at least."""
        return self.body.wave_count

    def op_waves(self) -> dict[Op, int]:
        """Return the wave of each op, outer before inner, from the start of the program, as if each region ran once."""
        waves: dict[Op, int] = {}
        _add_waves(self.body, 0, waves)
        return waves


def _add_waves(body: Body, start: int, waves: dict[Op, int]) -> None:
    """Recursion is as deep as regions are nested."""
    for entry in body.instructions:
        at = waves[entry.op] = start + entry.wave
        for inner in entry.bodies:
            _add_waves(inner, at, waves)
            if isinstance(entry.op, RegionOp) and not entry.op.EXCLUSIVE:
                at += inner.wave_count


def defined_values(block: Block) -> Iterator[Value]:
    """Yield the values defined in a function, regions included, in the order of slots: parameters, then op by op."""
    yield from block.parameters
    for op in walk((block,)):
        yield from op.results
        for region in op.regions:
            yield from region.parameters


def slot_values(types: Sequence[Type]) -> tuple[Value, ...]:
    """The values called after their slots."""
    return tuple(Value(str(index), kind) for index, kind in enumerate(types))
