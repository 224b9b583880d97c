"""Loops that run a known number of rounds: which of their values count the rounds, and by how much.

Induction variables (Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.1.6), of ``cf.loop`` as captures make it:
the condition is computed at the end of the body, and its region only passes it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmc.ir.core import Attribute, Op, Value
from lmc.ir.dialects.core_ops import PyCallOp
from lmc.ir.dialects.region_ops import ConditionOp, LoopOp, YieldOp
from lmc.ir.types import INT

Held = Attribute | Value


@dataclass(frozen=True)
class CountedLoop:
    """A loop of ``rounds`` rounds, or of none where that is below 1.

    ``index`` is the parameter of its body that begins with 0 and is the number of the round; ``counters`` are those
    that count: what they begin with, and by how much they grow in each round. ``following`` is what the body yields for
    each of its parameters.
    """

    rounds: Value
    index: Value
    counters: Mapping[Value, tuple[Held, int]]
    following: Mapping[Value, Held]


def counted(op: LoopOp, producers: Mapping[Value, Op]) -> CountedLoop | None:
    """``op`` as such a loop; None where it is none. ``producers`` are the ops that define what is seen around it."""
    condition, end = op.condition.terminator, op.body.terminator
    if not isinstance(condition, ConditionOp) or not isinstance(end, YieldOp) or len(op.condition.ops) > 1:
        return None
    if op.limit is not None:
        return None
    initial = dict(zip(op.condition.parameters, op.initial, strict=True))
    yielded = dict(zip(op.condition.parameters, end.values, strict=True))
    if not all(isinstance(value, Value) and value in initial for value in condition.values):
        return None
    sources = {
        parameter: value
        for parameter, value in zip(op.body.parameters, condition.values, strict=True)
        if isinstance(value, Value)
    }
    inside = {value: inner for inner in op.body.ops for value in inner.results}
    following = {parameter: yielded[source] for parameter, source in sources.items()}
    counters = {
        parameter: (initial[source], step)
        for parameter, source in sources.items()
        if parameter.type == INT and (step := _step(parameter, following[parameter], inside)) is not None
    }
    first, further = initial.get(condition.flag), yielded.get(condition.flag)
    made, again = _comparison(first, producers), _comparison(further, inside)
    if made is None or again is None:
        return None
    rounds = again[1]
    if made != (0, rounds) or not isinstance(rounds, Value) or rounds.type != INT:
        return None
    if rounds in inside or rounds in op.body.parameters:
        return None
    for parameter, (start, step) in counters.items():
        if start == 0 and type(start) is int and step == 1 and _is_next(again[0], parameter, inside):
            return CountedLoop(rounds, parameter, counters, following)
    return None


def _comparison(value: object, made: Mapping[Value, Op]) -> tuple[Held, Held] | None:
    """The arguments of ``lt`` that ``value`` is the result of."""
    op = made.get(value) if isinstance(value, Value) else None
    if isinstance(op, PyCallOp) and op.function == "lt" and len(op.arguments) == 2:
        return op.arguments[0], op.arguments[1]
    return None


def _is_next(value: Held, parameter: Value, inside: Mapping[Value, Op]) -> bool:
    return isinstance(value, Value) and _step(parameter, value, inside) == 1


def _step(parameter: Value, value: Held, inside: Mapping[Value, Op]) -> int | None:
    """By how much ``value`` is more than ``parameter``, where that is known."""
    total = 0
    while value != parameter:
        op = inside.get(value) if isinstance(value, Value) else None
        if not isinstance(op, PyCallOp) or op.function != "add" or len(op.arguments) != 2:
            return None
        value, step = op.arguments
        if type(step) is not int or not isinstance(value, Value):
            return None
        total += step
    return total
