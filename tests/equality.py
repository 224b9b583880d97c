"""Structural equality of modules. Ops compare by identity; this compares their contents."""

from __future__ import annotations

from typing import Any

from lmc.ir.core import Block, Op, Value
from lmc.ir.module import Module
from lmc.ir.op_schema import exact_key


def structurally_equal(left: Module, right: Module) -> bool:
    """Return True if both have the same symbols and functions, op by op, names and locations included.

    Literals are compared by type too: 1, 1.0 and True differ, 0.0 and -0.0 differ, nan equals nan.
    """
    if (left.name, left.constraints, left.hosts) != (right.name, right.constraints, right.hosts):
        return False
    if [function.name for function in left.functions] != [function.name for function in right.functions]:
        return False
    work: list[tuple[Block, Block]] = [
        (one.body, other.body) for one, other in zip(left.functions, right.functions, strict=True)
    ]
    while work:
        one, other = work.pop()
        if one.parameters != other.parameters or len(one.ops) != len(other.ops):
            return False
        for first, second in zip(one.ops, other.ops, strict=True):
            if op_key(first) != op_key(second) or (first.results, first.location) != (second.results, second.location):
                return False
            work.extend(zip(first.regions, second.regions, strict=True))
    return True


def op_key(op: Op) -> tuple[Any, ...]:
    """A hashable key that two ops share where they have the same class, operands and attributes.

    Results, location and regions are left out.
    """
    held: list[Any] = [type(op)]
    for name, kind in op.FIELDS:
        value = getattr(op, name)
        if kind == "attribute":
            held.append(exact_key(value))
        elif kind == "operand":
            held.append(value)
        elif kind != "region":
            held.append(tuple(entry if isinstance(entry, Value) else exact_key(entry) for entry in value))
    return tuple(held)
