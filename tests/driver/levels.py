"""Runs a captured program as plans of each level, on a toy whose answers come in any order."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any

from lmc.driver.compile.compile import compile_captured
from lmc.driver.compile.compiled import Compiled
from lmc.driver.run.execute import Job, execute
from lmc.driver.run.result import Result
from lmc.driver.targets.registry import load_tokenizer
from lmc.frontend.program.arguments import bind
from lmc.frontend.program.function import JittedFunction
from lmc.frontend.program.variants import Captured, inputs_of
from lmc.frontend.tools.tool_calls import tool_loop
from lmc.ir.core import Effect, walk
from lmc.ir.dialects.core_ops import HostCallOp
from lmc.ir.engine.target import Target
from lmc.ir.errors import LmcError
from lmc.passes.pipelines import PipelineOptions
from tests.compiled_constraints import CACHE, compile_for_toy
from tests.frontend.harness import EFFECTS, Run, calls_of, described, run_plain
from tests.runtime.engines import LateEngine

LONG = 20.0
TOY = Target("toy")
LEVELS = ("O0", "O2")
_LAST: dict[tuple[object, ...], tuple[Captured, Compiled]] = {}
"""The last capture that was compiled for a level, without the passes that are disabled."""
READS = frozenset({"lookup"})
"""First values of effects of functions that only read, in every header of random programs: they may trade places."""


def run_at(
    level: str,
    captured: Captured,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    program: JittedFunction | None = None,
    disabled: tuple[str, ...] = (),
) -> Run:
    """Return what ``captured`` does as a plan of ``level``, together with its continuation where it breaks.

    ``program`` is the one that is meant, where the capture is of a method.
    """
    EFFECTS.clear()
    others = {*threading.enumerate()}
    compiled = _compiled(PipelineOptions(level, disabled_passes=disabled), captured)
    bound = bind(program or captured.function, args, kwargs)
    found: dict[int, Result] = {}
    job = Job(0, bound, compiled, inputs_of(captured, bound))
    compile = compile_for_toy()
    engine = LateEngine(most_seconds=0.0)
    asyncio.run(execute(captured.function, [job], engine, found.__setitem__, seed=0, compile=compile))
    settle(others)
    assert engine.pinned == ()
    return Run(_end(found[0]), list(EFFECTS), calls_of(found[0].profile.ops))


def _compiled(options: PipelineOptions, captured: Captured) -> Compiled:
    """Compile ``captured``, once for runs that follow each other."""
    last = _LAST.get(options.key)
    if last is None or last[0] is not captured:
        last = _LAST[options.key] = captured, compile_captured(captured, TOY, options, load_tokenizer(TOY), cache=CACHE)
    return last[1]


def check_levels(captured: Captured, make: Callable[[], tuple[Any, ...]], *disabled: str) -> None:
    """Assert that no level tells itself apart from plain Python; ``make`` makes the arguments anew for each run.

    Nor does the highest one without any one of the passes that are ``disabled``.
    Where the program raises, what only reads may have run behind that: it waits for writes alone (``waits_of``).
    """
    function: JittedFunction = captured.function
    plain = run_plain(function, make(), {})
    shown = _without_reads if plain.end[0] == "raised" else _in_order
    for level, *without in (*((level,) for level in LEVELS), *(("O2", name) for name in disabled)):
        found = run_at(level, captured, make(), {}, disabled=tuple(without))
        assert found.end == plain.end, (level, without, found.end, plain.end)
        assert shown(found.effects) == shown(plain.effects), (level, without)
        if plain.end[0] == "gave":
            assert found.calls == plain.calls if level == "O0" else found.calls <= plain.calls, (level, without)
    if may_start_early(captured):
        check_early(captured, make, plain)


def may_start_early(captured: Captured) -> bool:
    """Return whether calls in regions change nothing, so that they could begin before it is known whether those run."""
    inner = (op for op in captured.module.main.body.ops if op.regions)
    return any(
        isinstance(op, HostCallOp) and op.effect is not Effect.WRITES for each in inner for op in walk(each.regions)
    )


def check_early(captured: Captured, make: Callable[[], tuple[Any, ...]], plain: Run) -> None:
    """Assert the same of the highest level where every function that changes nothing may be called in vain."""
    found = run_at("O2", _early(captured), make(), {})
    assert found.end == plain.end, ("early", found.end, plain.end)
    assert _without_reads(found.effects) == _without_reads(plain.effects), "early"
    assert set(plain.effects) <= set(found.effects)


def _early(captured: Captured) -> Captured:
    module = captured.module
    hosts = tuple(replace(host, early=host.effect is not Effect.WRITES) for host in module.hosts)
    return replace(captured, module=replace(module, hosts=hosts))


def settle(others: set[threading.Thread]) -> None:
    """Wait for the calls of tools that nobody waits for: what they do is not done by the next run.

    Threads of ``others`` were there before; tests that ran earlier in this process may have left them busy.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("lmc-host") and thread not in others:
            thread.join(LONG)
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), tool_loop().loop).result(LONG)


def _without_reads(effects: list[Any]) -> list[Any]:
    return [one for one in effects if one[0] not in READS]


def _end(result: Result) -> tuple[Any, ...]:
    if isinstance(result.error, LmcError):
        return ("raised", type(result.error), result.error.cause)
    if result.error is not None:
        return ("raised", *described(result.error))
    messages = [dict(message) for message in result.messages]
    return ("gave", repr(result.value), result.value, result.variables, result.text, messages)


def _in_order(effects: list[Any]) -> list[Any]:
    """``effects``, with those that may trade places sorted, and one where the same was read more often."""
    found: list[Any] = []
    for reads, group in groupby(effects, lambda one: one[0] in READS):
        values = list(group)
        found += sorted(set(values)) if reads else values
    return found
