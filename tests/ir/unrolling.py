"""Programs without their control flow: each op as often as it ran, under the id that it then had.

Written without what the interpreter has for regions, so that each can be held against the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lmc.ir.builder import Builder
from lmc.ir.core import Attribute, Block, Op, Value
from lmc.ir.dialects.core_ops import BreakOp, HostCallOp, PyCallOp, ReturnOp
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, RaceOp, TryOp, YieldOp
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.module import Module
from lmc.ir.semantics.interpreter import _Machine, bind_parameters
from lmc.ir.types import ANY, BOOL, INT, ListType, Type, type_of
from tests.ir.region_ops import make
from tests.program_strategies import Program

Known = Value | list["Known"]
"""What stands for a value of the program: a value, or what stands for each entry of a list."""


def unroll(program: Program, *, run_seed: int = 0, instance: int = 0) -> Module:
    """A module without regions that does what ``program`` does on the toy engine for its inputs."""
    parameters = program.module.main.parameters
    environment = bind_parameters(parameters, program.inputs)
    machine = _Machine(ToyEngine(), environment, dict(program.hosts), run_seed, instance, program.constraints)
    unroller = _Unroller(machine, Builder(parameters), {})
    with suppress(_End):
        unroller.block(program.module.main.body, parameters)
    return program.module.with_main(unroller.builder.block())


class _End(Exception):  # noqa: N818 - no error
    """The program came to its end."""


@dataclasses.dataclass
class _Unroller:
    """``known`` says what stands for each value of the program in the module that ``builder`` builds."""

    machine: _Machine
    builder: Builder
    known: dict[Value, Known]
    rounds: tuple[int, ...] = ()

    def block(self, block: Block, arguments: Sequence[Known], number: int | None = None) -> list[Known]:
        """What the terminator of a block lists."""
        self.known.update(zip(block.parameters, arguments, strict=True))
        around = self.rounds
        self.rounds = around if number is None else (*around, number)
        for op in block.ops[:-1]:
            self.known.update(zip(op.results, self.results(op), strict=True))
        self.rounds = around
        if isinstance(block.terminator, ReturnOp | BreakOp):
            self.builder.ops.append(self.flat(block.terminator))
            raise _End
        end = block.terminator
        if isinstance(end, ConditionOp):
            return [self.known[end.flag], *self.all(end.values)]
        assert isinstance(end, YieldOp)
        return self.all(end.values)

    def results(self, op: Op) -> Sequence[Known]:
        if isinstance(op, CondOp):
            return self.block(op.then if self.is_true(self.known[op.flag]) else op.otherwise, ())
        if isinstance(op, LoopOp):
            goes_on, *values = self.block(op.condition, self.all(op.initial), 0)
            rounds = 0
            while self.is_true(goes_on):
                values = self.block(op.body, values, rounds)
                rounds += 1
                goes_on, *values = self.block(op.condition, values, rounds)
            return values
        if isinstance(op, MapOp):
            rows = [self.block(op.body, element, index) for index, element in enumerate(self.elements(op))]
            return [[row[column] for row in rows] for column in range(len(op.results))]
        if isinstance(op, RaceOp):
            row: list[Known] = []
            for index, element in enumerate(self.elements(op)):
                row = self.block(op.body, element, index)
                if self.is_true(row[0]):
                    break
            return row
        if isinstance(op, TryOp):
            return self.protected(op)
        return self.run(self.flat(op))

    def protected(self, op: TryOp) -> Sequence[Known]:
        """The op of the body that raises stands alone in a ``cf.try``; those before it are as all others."""
        around = self.rounds
        try:
            yielded = self.block(op.body, ())
        except Exception:
            self.rounds = around
            raising = self.builder.ops.pop()
            results = (Value(self.builder.fresh_name(), BOOL), Value(self.builder.fresh_name(), ANY))
            body = Block((), (raising, make(YieldOp)))
            self.run(make(TryOp, *results, base=op.base, body=body))
            return [*results, *self.all(op.fallback)]
        return [*self.all((True, None)), *yielded]

    def elements(self, op: MapOp | RaceOp) -> list[list[Known]]:
        """What the parameters of the body are for each element."""
        lists = [self.entries(value) for value in op.lists]
        return [
            [self.call("add", INT, index, 0), *(entries[index] for entries in lists)]
            for index in range(min(map(len, lists)))
        ]

    def entries(self, value: Value) -> list[Known]:
        found = self.known[value]
        if isinstance(found, list):
            return found
        assert isinstance(value.type, ListType)
        kind = value.type.element
        return [self.call("getitem", kind, found, index) for index in range(len(self.machine.environment[found]))]

    def all(self, values: Sequence[Attribute | Value]) -> list[Known]:
        """What stands for values and literals."""
        return [
            self.known[value] if isinstance(value, Value) else self.call("getitem", type_of(value), (value,), 0)
            for value in values
        ]

    def flat(self, op: Op) -> Op:
        """``op`` over the values of the new module, with an id without holes."""
        mapping = {value: self.value(value) for value in op.operands}
        fields: dict[str, Any] = {"results": tuple(Value(self.builder.fresh_name(), v.type) for v in op.results)}
        numbers = [self.machine.environment[mapping[value]] for value in getattr(op, "occurrences", ())]
        if numbers:
            *first, last = op.id.split("$") if "$" in op.id else [op.id]  # type: ignore[attr-defined]
            pieces = [f"{piece}{number}" for piece, number in zip(first, numbers, strict=False)]
            fields["id"] = "".join(pieces) + last.replace("*", f"#{numbers[-1]}" if numbers[-1] else "")
            fields["occurrences"] = ()
        if isinstance(op, HostCallOp) and self.rounds:
            fields["id"] = op.id + "@" + ".".join(map(str, self.rounds))
        return dataclasses.replace(op.substitute(mapping), **fields)

    def value(self, value: Value) -> Value:
        """What stands for ``value``, as one value."""
        found = self.known[value]
        return self.listed(found, value.type) if isinstance(found, list) else found

    def listed(self, entries: list[Known], kind: Type) -> Value:
        inner = kind.element if isinstance(kind, ListType) else ANY
        values = [self.listed(entry, inner) if isinstance(entry, list) else entry for entry in entries]
        return self.call("list", kind, *values)

    def call(self, function: str, kind: Type, *arguments: Any) -> Value:
        """The result of a builtin."""
        result = Value(self.builder.fresh_name(), kind)
        self.run(make(PyCallOp, result, function=function, arguments=arguments))
        return result

    def is_true(self, flag: Known) -> bool:
        assert isinstance(flag, Value)
        assert flag.type == BOOL
        return self.machine.environment[flag]

    def run(self, op: Op) -> tuple[Value, ...]:
        self.builder.ops.append(op)
        self.machine.run(op)
        return op.results
