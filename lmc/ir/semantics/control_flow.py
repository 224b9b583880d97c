"""Semantics of ops with regions, given the results of their regions.

The functions here run nothing themselves. The interpreter runs regions one after the other through ``run``; a
concurrent executor uses the parts: the elements, and the combination of yielded values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmc.ir.core import Attribute, Block, Op, Value
from lmc.ir.dialects.region_ops import ConditionOp, CondOp, LoopOp, MapOp, RaceOp, TryOp, YieldOp
from lmc.ir.errors import InputError, LmcError, Location, LoopLimitError, located

Environment = Mapping[Value, Any]
RunRegion = Callable[[Block, Sequence[Any], "int | None"], tuple[Any, ...]]
"""Runs a region with these values for its parameters; gives those of its terminator's operands.

The number is that of the round or the element, None where the region runs at most once.
"""


class ProgramLeft(BaseException):
    """The run came to ``op``, which ends the program in a region; ``RunRegion`` raises it. Nothing catches it."""

    def __init__(self, op: Op) -> None:
        super().__init__()
        self.op = op


def run(op: Op, environment: Environment, run_region: RunRegion) -> tuple[Any, ...]:
    """Results of an op with regions. Regions run one after the other, elements by index."""
    runner = _RUNNERS.get(type(op))
    if runner is None:
        raise TypeError(f"{op.NAME} has regions of no known meaning")
    return runner(op, environment, run_region)


def given(values: Sequence[Attribute | Value], environment: Environment) -> tuple[Any, ...]:
    """Return the values of operands and literals."""
    return tuple(environment[value] if isinstance(value, Value) else value for value in values)


def region_results(end: Op, environment: Environment) -> tuple[Any, ...]:
    """Return the values of a terminator that does not leave; of ``cf.condition`` its flag first."""
    if isinstance(end, ConditionOp):
        return (environment[end.flag], *given(end.values, environment))
    if isinstance(end, YieldOp):
        return given(end.values, environment)
    return tuple(environment[value] for value in end.operands)


def chosen_region(op: CondOp, environment: Environment) -> Block:
    """The region of a ``cf.cond`` that runs."""
    return op.then if environment[op.flag] else op.otherwise


def check_round(op: LoopOp, rounds: int) -> None:
    """Raise ``LoopLimitError`` where a loop that has run its body ``rounds`` times may not do so once more."""
    if op.limit is not None and rounds >= op.limit:
        raise LoopLimitError(
            f"the loop went on after {op.limit} rounds, which is its limit",
            remedy="raise the limit, or see to it that the loop ends earlier",
            location=op.location,
        )


def no_elements(location: Location | None = None) -> InputError:
    """The error of a race over an empty list."""
    return InputError(
        "a race has no elements, so it can't be won", remedy="give it a list that is not empty", location=location
    )


def elements(op: MapOp | RaceOp, environment: Environment) -> list[tuple[Any, ...]]:
    """The values of the body's parameters for each element: its index, then one entry of each list.

    Raises ``ValueError`` where lists that are strict differ in length, ``InputError`` for a race without elements.
    """
    strict = isinstance(op, MapOp) and op.strict
    rows = list(zip(*(environment[value] for value in op.lists), strict=strict))
    if isinstance(op, RaceOp) and not rows:
        raise no_elements(op.location)
    return [(index, *row) for index, row in enumerate(rows)]


def map_results(op: MapOp, yielded: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    """Results of a ``cf.map`` from what each element yielded, in order."""
    return tuple([row[column] for row in yielded] for column in range(len(op.results)))


def race_results(yielded: tuple[Any, ...]) -> tuple[Any, ...]:
    """Results of a ``cf.race`` from what its winner yielded, or its last element where none is good."""
    return (bool(yielded[0]), *yielded[1:])


def catches(op: TryOp, error: BaseException) -> bool:
    """Return True if a ``cf.try`` turns ``error`` into values."""
    if isinstance(error, LmcError) and error.ends_run:
        return False
    return isinstance(error, Exception) or (op.base and not isinstance(error, ProgramLeft))


def caught_results(op: TryOp, error: BaseException, environment: Environment) -> tuple[Any, ...]:
    """Results of a ``cf.try`` whose body raised ``error``."""
    return (False, error, *given(op.fallback, environment))


def yielded_results(yielded: Sequence[Any]) -> tuple[Any, ...]:
    """Results of a ``cf.try`` whose body came to its end."""
    return (True, None, *yielded)


def caught_at(error: BaseException, failed: Op) -> None:
    """Give an error that is caught, of the op ``failed``, the line that it has in eager mode.

    There requests are made without one, so the text of their errors has none.
    """
    if isinstance(error, LmcError) and not failed.billable:
        located(error, failed.location)


def _run_cond(op: CondOp, environment: Environment, run_region: RunRegion) -> tuple[Any, ...]:
    return run_region(chosen_region(op, environment), (), None)


def _run_loop(op: LoopOp, environment: Environment, run_region: RunRegion) -> tuple[Any, ...]:
    values = given(op.initial, environment)
    rounds = 0
    while True:
        goes_on, *values = run_region(op.condition, values, rounds)
        if not goes_on:
            return tuple(values)
        check_round(op, rounds)
        values = run_region(op.body, values, rounds)
        rounds += 1


def _run_map(op: MapOp, environment: Environment, run_region: RunRegion) -> tuple[Any, ...]:
    return map_results(op, [run_region(op.body, values, values[0]) for values in elements(op, environment)])


def _run_try(op: TryOp, environment: Environment, run_region: RunRegion) -> tuple[Any, ...]:
    try:
        yielded = run_region(op.body, (), None)
    except BaseException as error:
        if not catches(op, error):
            raise
        return caught_results(op, error, environment)
    return yielded_results(yielded)


def _run_race(op: RaceOp, environment: Environment, run_region: RunRegion) -> tuple[Any, ...]:
    yielded: tuple[Any, ...] = ()
    for values in elements(op, environment):
        yielded = run_region(op.body, values, values[0])
        if yielded[0]:
            break
    return race_results(yielded)


_RUNNERS: dict[type[Op], Callable[[Any, Environment, RunRegion], tuple[Any, ...]]] = {
    CondOp: _run_cond,
    LoopOp: _run_loop,
    MapOp: _run_map,
    RaceOp: _run_race,
    TryOp: _run_try,
}
