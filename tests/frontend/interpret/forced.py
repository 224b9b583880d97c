"""Breaks that a test forces before a statement of the program."""

import ast
import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any

from lmc.driver.compile.compile import compile_captured
from lmc.driver.targets.constraints import compiler
from lmc.frontend.capture import StopBefore, capture
from lmc.frontend.continuation.going_on import go_on
from lmc.frontend.language.eager import EagerSession
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured, inputs_of
from lmc.grammar.sharing import ConstraintCache
from lmc.ir.engine.target import Target
from lmc.ir.engine.toy import ToyEngine, toy_tokenizer
from lmc.ir.errors import CaptureError
from lmc.ir.semantics.interpreter import Outcome
from lmc.passes.pipelines import PipelineOptions
from lmc.runtime.executor import Executor, Finished, Instance
from tests.frontend.harness import EFFECTS, Run, check, ending, run_plain

CACHE = ConstraintCache()
CAUSE = "the caller of the capture stops it here"
Make = Callable[[], tuple[Any, ...]]


def from_step(number: int) -> StopBefore:
    """Stop one capture before its statement of that number, and before each that it comes to from there on."""
    steps = count(1)
    return lambda node: node is not None and next(steps) >= number


def statements_of(program: JittedFunction, make: Make, kwargs: dict[str, Any]) -> list[ast.stmt]:
    """The statements that a capture comes to, of helpers too, as often as it comes to them."""
    found: list[ast.stmt] = []

    def note(node: ast.stmt | None) -> bool:
        if node is not None:
            found.append(node)
        return False

    capture(program, bind(program, make(), kwargs), stop_before=note)
    return found


def check_breaks(program: JittedFunction, make: Make, kwargs: dict[str, Any], most: int) -> int:
    """Break before each statement, and from each step on, at most so often; every continuation is plain Python.

    Returns how many of these captures end in a break behind the beginning of the program.
    """
    nodes = statements_of(program, make, kwargs)
    plain = run_plain(program, make(), kwargs)
    found = 0
    for node in _some({id(node): node for node in nodes}.values(), most):
        found += _check(program, make, kwargs, lambda each, node=node: each is node, plain)
    for number in _some(range(2, len(nodes) + 1), most):
        found += _check(program, make, kwargs, from_step(number), plain)
    return found


def _some(items: Any, most: int) -> list[Any]:
    """At most so many of the items, evenly spread."""
    held = list(items)
    step = max(1, -(-len(held) // most))
    return held[::step]


def _check(program: JittedFunction, make: Make, kwargs: dict[str, Any], before: StopBefore, plain: Run) -> bool:
    EFFECTS.clear()
    try:
        captured = capture(program, bind(program, make(), kwargs), stop_before=before)
    except CaptureError as error:  # control flow that is spelt out is captured or refused
        if f"can't be captured: {CAUSE}" not in str(error):
            raise
        return False
    assert EFFECTS == []
    if not captured.matches(bind(program, make(), kwargs)):
        return False
    check(program, make, kwargs, captured=captured, plain=plain)
    check_optimized(program, make, kwargs, captured, plain)
    return _is_in_the_middle(captured)


def check_optimized(
    program: JittedFunction, make: Make, kwargs: dict[str, Any], captured: Captured, plain: Run
) -> None:
    """A row of a batch at -O2 on the executor ends as plain Python does."""
    compiled = compile_captured(captured, Target.parse("toy"), PipelineOptions("O2"), toy_tokenizer(), cache=CACHE)
    compile = compiler(CACHE, toy_tokenizer())
    bound = bind(program, make(), kwargs)
    executor = Executor(ToyEngine(), compiled.prepared, compiled.hosts, constraints=compiled.constraints(compile))
    ends: dict[int, Finished] = {}
    EFFECTS.clear()
    asyncio.run(executor.run_batch([Instance(0, inputs_of(captured, bound))], [0], ends.__setitem__))

    def go() -> Outcome:
        if ends[0].error is not None:
            raise ends[0].error
        outcome = ends[0].outcome
        assert outcome is not None
        if outcome.live is None:
            return outcome
        return go_on(captured, bound, outcome.live, EagerSession(ToyEngine(), compile=compile))

    found = ending(go), list(EFFECTS)
    assert found == (plain.end, plain.effects)


def _is_in_the_middle(captured: Captured) -> bool:
    return bool(captured.breaks) and len(captured.module.main.body.ops) > 1
