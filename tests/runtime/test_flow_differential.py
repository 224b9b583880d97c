import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmc.backend.lower import lower
from lmc.ir.core import Op, walk
from lmc.ir.dialects.core_ops import HostCallOp, SamplingOp, SelectOp
from lmc.ir.dialects.region_ops import LoopOp, RaceOp, TryOp
from lmc.ir.dialects.regions import LEAVING, RegionOp
from lmc.ir.engine.protocol import Engine
from lmc.ir.engine.toy import ToyEngine
from lmc.ir.ids import matching
from lmc.ir.module import Module
from lmc.ir.profile import BranchProfile, RepeatProfile
from lmc.ir.rewriter import Rewriter, rewrite
from lmc.ir.semantics.interpreter import Outcome, interpret
from lmc.ir.types import ANY, BOOL, CTX, FLOAT, INT, NONE, TEXT, ListType, Type
from lmc.passes.base import PassContext
from lmc.passes.start_reads_early import StartReadsEarly
from lmc.runtime.executor import Executor
from tests.flow_strategies import flow_programs
from tests.module_strategies import modules
from tests.program_strategies import Program
from tests.runtime.engines import LateEngine
from tests.runtime.flow_programs import failing_flows
from tests.runtime.region_texts import TOY

Log = list[tuple[Any, ...]]


def logged(program: Program) -> tuple[dict[str, Callable[..., Any]], Log]:
    """The program's functions, with a log of the calls that write, and of those that are made at all."""
    log: Log = []

    def called(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def host(*args: Any, **kwargs: Any) -> Any:
            log.append((name, args, tuple(kwargs.items())))
            return function(*args, **kwargs)

        return host

    return {name: called(name, function) for name, function in program.hosts.items()}, log


def end(run: Callable[[], Outcome]) -> tuple[Any, ...]:
    """Return what a run gave, or what it raised, with its line."""
    try:
        outcome = run()
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", [])
    return repr((outcome.value, outcome.variables)), outcome.text, outcome.live


def same_as_interpreter(program: Program, engine: Engine) -> None:
    hosts, log = logged(program)
    options: dict[str, Any] = {"hosts": hosts, "constraints": program.constraints}
    found: list[Outcome] = []

    def interpreted() -> Outcome:
        found.append(interpret(program.module, program.inputs, ToyEngine(), run_seed=5, instance=2, **options))
        return found[-1]

    def executed() -> Outcome:
        executor = Executor(engine, lower(program.module, TOY), **options)
        found.append(asyncio.run(executor.run(program.inputs, run_seed=5, instance=2)))
        return found[-1]

    expected, expected_log = end(interpreted), list(log)
    log.clear()
    assert end(executed) == expected
    assert [entry for entry in log if entry[0] == "tell"] == [entry for entry in expected_log if entry[0] == "tell"]
    assert engine.pinned == ()  # type: ignore[attr-defined]
    if not found:
        return
    costs = [{op_id: cost.usage for op_id, cost in entry.profile.ops.items() if cost.usage.calls} for entry in found]
    if any(isinstance(op, RaceOp) for op in walk([program.module.main.body])):
        costs[1] = {op_id: usage for op_id, usage in costs[1].items() if op_id in costs[0]}  # later elements ran too
    for op in walk([program.module.main.body]):
        # What a body asks after an op of it that fails may have been asked; the interpreter counts nothing that fails.
        if isinstance(op, TryOp):
            asking = [inner for inner in walk(op.regions) if isinstance(inner, SamplingOp | SelectOp)]
            patterns = [matching(inner.id) for inner in asking]
            costs = [
                {op_id: usage for op_id, usage in entry.items() if not any(one.fullmatch(op_id) for one in patterns)}
                for entry in costs
            ]
    assert costs[1] == costs[0]
    vain = [op for op in walk([program.module.main.body]) if isinstance(op, RaceOp | TryOp)]
    racing = {inner.id for op in vain for inner in _regions_in(op)}
    ways = [_counts(entry, racing) for entry in found]
    if any(isinstance(op, LEAVING) for outer in walk([program.module.main.body]) for op in walk(outer.regions)):
        # What asks nobody may have run before it is clear that the program ends in front of it; nothing else may.
        inside = [op for op in walk([program.module.main.body]) if isinstance(op, RegionOp) and not _asks(op)]
        for op_id in {op.id for op in inside if op.id is not None} & ways[1].keys():
            ran, expected = ways[1].pop(op_id), ways[0].pop(op_id, None)
            assert expected is None or _at_least(ran, expected)
    assert ways[1] == ways[0]


def _asks(op: RegionOp) -> bool:
    """Return whether it waits for a model or a function of the user's."""
    return any(inner.billable or isinstance(inner, HostCallOp) for inner in walk(op.regions))


def _at_least(found: BranchProfile | RepeatProfile, expected: BranchProfile | RepeatProfile) -> bool:
    pairs = zip(dataclasses.astuple(found), dataclasses.astuple(expected), strict=True)
    return all(ran >= counted for ran, counted in pairs)


def _regions_in(op: Op) -> Iterator[RegionOp]:
    return (inner for inner in walk(op.regions) if isinstance(inner, RegionOp))


def _counts(outcome: Outcome, skipped: Set[str | None]) -> dict[str, Any]:
    """Return what was counted of ops with regions."""
    counted = {**outcome.profile.branches, **outcome.profile.repeats}
    return {op_id: entry for op_id, entry in counted.items() if op_id not in skipped}


_INPUTS: dict[Type, Any] = {TEXT: "ab", INT: 2, FLOAT: 0.5, BOOL: True, NONE: None, ANY: "x", CTX: None}


def any_value(kind: Type) -> Any:
    return [any_value(kind.element)] * 2 if isinstance(kind, ListType) else _INPUTS.get(kind, {"a": 1})


def bounded(op: Op, _: Rewriter) -> Sequence[Op] | None:
    """Random conditions may hold for ever."""
    return [dataclasses.replace(op, limit=3)] if isinstance(op, LoopOp) and op.limit is None else None


@given(modules(), st.one_of(st.none(), st.integers(0, 2**16)))
def test_modules_of_any_kind_end_alike(module: Module, seed: int | None):
    """Return what they do makes no sense and mostly fails: the same way, and at the same place."""
    module = rewrite(module, bounded)
    inputs = {parameter.name: any_value(parameter.type) for parameter in module.main.parameters}
    hosts = {host.name: lambda *args, **kwargs: "told" for host in module.hosts}
    program = Program(module, inputs, hosts)
    same_as_interpreter(program, ToyEngine() if seed is None else LateEngine(seed=seed, most_seconds=0.002))


@given(flow_programs())
def test_the_executor_agrees_with_the_interpreter(program: Program):
    same_as_interpreter(program, ToyEngine())


@given(flow_programs(), st.integers(0, 2**16))
def test_order_of_answers_changes_nothing(program: Program, seed: int):
    same_as_interpreter(program, LateEngine(seed=seed, most_seconds=0.002))


@given(st.one_of(flow_programs(), failing_flows()), st.integers(0, 2**16))
def test_calls_that_start_early_change_nothing(program: Program, seed: int):
    module = StartReadsEarly().run(program.module, PassContext())
    marked = Program(module, program.inputs, program.hosts)
    same_as_interpreter(marked, LateEngine(seed=seed, most_seconds=0.002))


@given(failing_flows())
def test_programs_that_fail_do_so_alike(program: Program):
    same_as_interpreter(program, ToyEngine())


@given(failing_flows(), st.integers(0, 2**16))
def test_programs_that_fail_do_so_alike_in_any_order_of_answers(program: Program, seed: int):
    same_as_interpreter(program, LateEngine(seed=seed, most_seconds=0.002))
